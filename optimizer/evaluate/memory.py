"""Predicting a row of published training memory: bytes per GPU by the terms that the row's scope covers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.load import Catalog
from optimizer.estimator.constants import constant
from optimizer.estimator.training_memory import TrainingPlan, training_memory
from optimizer.evaluate.rows import gpu_of, positive, publication, required_positive, text, word
from optimizer.evaluate.shapes import MeasuredModel, measured_model
from optimizer.evaluate.types import NotPredictableError, NotPredicted, Prediction
from optimizer.units import BYTES_PER_GB, BYTES_PER_GIB, BYTES_PER_MB, BYTES_PER_MIB

TARGET = "mem_per_gpu"
_UNITS = {"gb": BYTES_PER_GB, "gib": BYTES_PER_GIB, "mb": BYTES_PER_MB, "mib": BYTES_PER_MIB}
_UNNAMED_GPU = re.compile(r"any|unstated|not stated|\d+ ?gb card", re.IGNORECASE)
"""What tables write on purpose for no GPU in particular."""
_SCOPE = re.compile(
    r"\b(peak|max gpu ram|vram|nvidia-smi|sum|total|activations only|states only|optimizer only|upper bound|fits on|"
    r"that worked|that fits)\b",
    re.IGNORECASE,
)
_BOUNDS = ("that fits", "upper bound", "fits on", "that worked")
_UNSAID_TOKENS = 1_024
_UNSAID_RANK = 32
_STATES = ("weights", "gradients", "optimizer")


def predict(row: Mapping[str, str], catalog: Catalog) -> list[Prediction] | NotPredicted:
    """Memory of a run in the row's own unit and scope."""
    measured = required_positive(row, TARGET)
    run = run_of(row, catalog)
    predicted = run.bytes_in_scope / unit_of(row)
    wider = 1.0 if run.shape_known else constant("unknown_shape_factor")
    return [
        Prediction(
            id=text(row, "id"),
            target=TARGET,
            kind=text(row, "kind"),
            gpu=_gpu_name(row, catalog),
            model=text(row, "model"),
            source=publication(row),
            predicted=predicted,
            measured=measured,
            low=predicted * constant("training_memory_low_factor") / wider,
            high=predicted * constant("training_memory_high_factor") * wider,
            scored=is_scored(row),
        )
    ]


def is_scored(row: Mapping[str, str]) -> bool:
    """Whether the row is a measurement, not a model's figure, a bound or a doubtful one."""
    return word(row, "measured") in ("measured", "") and not _is_bound(row)


def _is_bound(row: Mapping[str, str]) -> bool:
    return any(word in text(row, "scope").lower() for word in _BOUNDS)


def unit_of(row: Mapping[str, str]) -> int:
    """Bytes of the row's unit.

    Raises
    ------
    NotPredictableError
        If it is none of GB, GiB, MB and MiB.
    """
    unit = text(row, "unit")
    if unit.casefold() not in _UNITS:
        msg = f"unit {unit!r} is none of GB, GiB, MB, MiB"
        raise NotPredictableError(msg)
    return _UNITS[unit.casefold()]


def measured_bytes(row: Mapping[str, str]) -> float:
    """The measurement in bytes."""
    return required_positive(row, TARGET) * unit_of(row)


def _gpu_name(row: Mapping[str, str], catalog: Catalog) -> str:
    """Catalog id, or the name as it is where it means several or none in particular: memory does not depend on it.

    Raises
    ------
    NotPredictableError
        If the catalog does not know the name, or if there is none.
    """
    name = text(row, "gpu")
    if _UNNAMED_GPU.fullmatch(name):
        return name
    if name.casefold() in ("", "nan"):
        msg = "column gpu is empty; write a GPU, or any if the figure is of none in particular"
        raise NotPredictableError(msg)
    if len(catalog.gpu_candidates(name)) > 1:
        return name
    return gpu_of(row, catalog).gpu_id


def scope_of(row: Mapping[str, str]) -> str:
    """What of the memory was measured, in lower case.

    Raises
    ------
    NotPredictableError
        If it holds no word that the estimator knows.
    """
    scope = text(row, "scope")
    if not _SCOPE.search(scope):
        msg = (
            f"scope {scope!r} is not known; write peak, activations only, model states only, nvidia-smi or TOTAL, "
            "alone or among other words"
        )
        raise NotPredictableError(msg)
    return scope.lower()


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """A run as the estimator takes it, and what of its memory was measured."""

    plan: TrainingPlan
    tensor_parallel: int
    data_parallel: int
    pipeline_parallel: int
    scope: str
    gpus: int
    shape_known: bool

    @property
    def bytes_in_scope(self) -> float:
        """Bytes of the terms that the scope covers.

        States or activations alone; else all, the context only as seen from outside (nvidia-smi), times the GPUs if
        their sum was measured.
        """
        terms = training_memory(self.plan, self.tensor_parallel, self.data_parallel, self.pipeline_parallel)
        if "activations only" in self.scope:
            return terms["activations"]
        if "states only" in self.scope or "optimizer only" in self.scope:
            return sum(terms[name] for name in _STATES)
        if "nvidia-smi" not in self.scope:
            terms["context"] = 0.0
        return sum(terms.values()) * (self.gpus if re.search(r"\b(sum|total)\b", self.scope) else 1)


def run_of(row: Mapping[str, str], catalog: Catalog) -> MeasuredMemory:
    """Run of a row."""
    model = measured_model(row, catalog)
    size, stages = round(positive(row, "tp") or 1), round(positive(row, "pp") or 1)
    gpus = round(positive(row, "n_gpus") or 1)
    said = re.search(r"(?:DP|Nd)=(\d+)", text(row, "sharding"))
    copies = int(said[1]) if said else gpus / (size * stages * (positive(row, "cp") or 1))
    return MeasuredMemory(
        plan_of(row, model), size, max(1, int(copies)), stages, scope_of(row), gpus, model.shape_known
    )


def plan_of(row: Mapping[str, str], model: MeasuredModel) -> TrainingPlan:
    """Settings of a run; what it does not say as the estimator takes it (docs/estimator.md)."""
    method, optimizer = method_of(row), text(row, "optimizer").lower()
    checkpointing = text(row, "act_ckpt").lower()
    sharding = sharding_of(row, method)
    rank = re.search(r"\br(\d+)\b", text(row, "method"))
    offload = _offload(text(row, "method").lower(), optimizer, checkpointing)
    in_backward = "bwd" in optimizer or "backward" in optimizer
    return TrainingPlan(
        model=model.architecture,
        sequence=int(positive(row, "seq_len") or _UNSAID_TOKENS),
        micro_batch=round(positive(row, "micro_batch") or 1),
        precision="fp32" if word(row, "weights").startswith("fp32") else "bf16",
        method=method,
        sharding=sharding,
        recompute="full" if "full" in checkpointing or "offload" in checkpointing else "none",
        optimizer=optimizer_of(optimizer, method, sharding),
        stack="typical",
        lora_rank=int(rank[1]) if rank else _UNSAID_RANK,
        offload=offload,
        optimizer_in_backward=in_backward,
        chunked_loss=in_backward or offload != "none",
        trains_embeddings="emb" in text(row, "method").lower(),
        context_parallel=round(positive(row, "cp") or 1),
    )


def method_of(row: Mapping[str, str]) -> str:
    """Method of training: full, lora, or qlora.

    Raises
    ------
    NotPredictableError
        If frozen weights are kept at 2 or 8 bits, of which the estimator knows nothing.
    """
    said = text(row, "method").lower()
    if re.search("[28]-bit", said):
        msg = f"method {said!r}: only 4-bit and 16-bit frozen weights are estimated"
        raise NotPredictableError(msg)
    if re.search("q-?lora", said):
        return "qlora"
    return "lora" if "lora" in said else "full"


def sharding_of(row: Mapping[str, str], method: str) -> str:
    """Sharding stage; an unstated stage of ZeRO is taken as the second.

    The flat parameters of FSDP 1 cannot be freed where frozen weights and adapters share them.
    """
    said = text(row, "sharding").lower()
    stage = re.search(r"zero-?([0123])", said)
    if stage:
        return "none" if stage[1] == "0" else f"zero{stage[1]}"
    if "zero" in said:
        return "zero2"
    if "fsdp" in said:
        return "none" if method != "full" and "fsdp2" not in said else "zero3"
    return "none"


def optimizer_of(said: str, method: str, sharding: str) -> str:
    """Optimizer and its states.

    A plain AdamW keeps its states in the weights' own 16 bits where one process trains, and an fp32 master copy under
    the sharding of DeepSpeed and Megatron.
    """
    if "paged" in said:
        return "adamw-paged"
    if "8bit" in said or "8-bit" in said:
        return "adamw-8bit"
    if "sgd" in said:
        return "sgd"
    plain = "fp32" not in said and sharding == "none" and method == "full"
    return "adamw-bf16" if plain else "adamw"


def _offload(method: str, optimizer: str, checkpointing: str) -> str:
    if "offload" in method or "offload" in optimizer:
        return "states"
    return "activations" if "offload" in checkpointing else "none"
