"""Predicting a row of published training runs: tokens/s per GPU."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.load import Catalog
from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.estimator.jobs import training_range
from optimizer.estimator.training import gpu_seconds_per_token
from optimizer.estimator.training_memory import TrainingPlan
from optimizer.evaluate.row_gpu import is_guessed, training_gpu
from optimizer.evaluate.rows import positive, publication, required_positive, text, word
from optimizer.evaluate.shapes import MeasuredModel, measured_model
from optimizer.evaluate.types import NotPredictableError, NotPredicted, Prediction
from optimizer.evaluate.words import is_unsaid, number_format, sixteen_bits_of

TARGET = "tok_s_gpu"
_RECOMPUTES = ("full", "full (assumed)", "yes", "true", "on")
_MIXED = ("mixed", "amp", "mixed precision", "16-bit", "16")
_KNOWN_PRECISIONS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32")
_WHOLE_RUNS = ("real_run", "per_step_report")
_UNSAID_GPUS_OF_RUNS = 1_024
_UNSAID_GPUS = 8
_MICRO_BATCHES_PER_STAGE = 8


def predict(row: Mapping[str, str], catalog: Catalog) -> list[Prediction] | NotPredicted:
    """Tokens/s per GPU of a run, from its settings; the software stack is taken as typical."""
    measured = required_positive(row, TARGET)
    gpu = training_gpu(row, catalog)
    model = measured_model(row, catalog, mixture="moe" in word(row, "kind"))
    plan = plan_of(row, model, gpu)
    predicted = run_of(row, gpu, plan).tokens_per_s_per_gpu
    low, high = training_range(plan)
    if not model.shape_known or is_guessed(gpu):
        low, high = low / constant("unknown_shape_factor"), high * constant("unknown_shape_factor")
    return [
        Prediction(
            id=text(row, "id"),
            target=TARGET,
            kind=text(row, "kind"),
            gpu=gpu.gpu_id,
            model=text(row, "model"),
            source=publication(row),
            predicted=predicted,
            measured=measured,
            low=low * predicted,
            high=high * predicted,
            scored=word(row, "eval_use") in ("yes", ""),
        )
    ]


def plan_of(row: Mapping[str, str], model: MeasuredModel, gpu: Gpu) -> TrainingPlan:
    """Settings of a run; those it does not say as the estimator takes them (docs/estimator.md)."""
    method = method_of(row)
    sequence = int(positive(row, "seq_len") or constant("default_training_sequence"))
    unsaid = max(1, round(constant("largest_micro_batch_tokens") / sequence))
    checkpointing = word(row, "act_ckpt")
    return TrainingPlan(
        model=model.architecture,
        sequence=sequence,
        micro_batch=round(positive(row, "micro_batch") or unsaid),
        precision=precision_of(row, gpu),
        method=method,
        sharding="zero3",
        recompute="full" if checkpointing in _RECOMPUTES or (method != "full" and checkpointing != "none") else "none",
        optimizer="adamw",
        stack="typical",
        whole_run=word(row, "record") == "real_run",
        context_parallel=round(positive(row, "cp") or 1),
    )


def method_of(row: Mapping[str, str]) -> str:
    """Method by the word in `kind`: qlora, lora, else full."""
    said = word(row, "kind")
    if re.search("q-?lora", said):
        return "qlora"
    return "lora" if "lora" in said else "full"


def precision_of(row: Mapping[str, str], gpu: Gpu) -> str:
    """Precision of the matrix products, by any of its usual spellings; 16 bits that the card has where none is said.

    Of several (int4+bf16, fp16/fp32) the first that is trained in counts; QLoRA unpacks its 4 bits (nf4) to 16.

    Raises
    ------
    NotPredictableError
        If it is none that the estimator knows.
    """
    said = text(row, "precision")
    if is_unsaid(said) or said.casefold() in _MIXED:
        return sixteen_bits_of(gpu, "bf16")
    for part in (said, *re.split(r"[+/,\s_\-]+", said)):
        precision = number_format(part)
        if precision in _KNOWN_PRECISIONS:
            return sixteen_bits_of(gpu, precision)
    if number_format(said) == "int4" and method_of(row) == "qlora":
        return sixteen_bits_of(gpu, "bf16")
    msg = f"precision {said!r} is none of {', '.join(_KNOWN_PRECISIONS)}"
    raise NotPredictableError(msg)


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run as the estimator takes it."""

    gpu: Gpu
    plan: TrainingPlan
    tensor_parallel: int
    gpus: float
    pipeline_parallel: int
    micro_batches: float

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Rate by the estimator."""
        return 1 / gpu_seconds_per_token(
            self.gpu, self.plan, self.tensor_parallel, self.gpus, self.pipeline_parallel, self.micro_batches
        )


def run_of(row: Mapping[str, str], gpu: Gpu, plan: TrainingPlan) -> MeasuredRun:
    """Run of a row; a whole run that does not say its GPUs is taken at 1,024 of them, another at 8.

    Raises
    ------
    NotPredictableError
        If the GPU has no unit for the precision.
    """
    if gpu.peak_tflop_per_s(plan.precision) is None:
        msg = f"{gpu.gpu_id} has no {plan.precision} unit"
        raise NotPredictableError(msg)
    unsaid = _UNSAID_GPUS_OF_RUNS if word(row, "record") in _WHOLE_RUNS else _UNSAID_GPUS
    gpus = positive(row, "n_gpus") or unsaid
    size, stages = round(positive(row, "tp") or 1), round(positive(row, "pp") or 1)
    return MeasuredRun(gpu, plan, size, gpus, stages, micro_batches(row, gpus, size * stages))


def micro_batches(row: Mapping[str, str], gpus: float, gpus_per_copy: int) -> float:
    """Micro-batches per pipeline and step: by global and micro-batch, else eight per stage."""
    batch, micro_batch = positive(row, "global_batch_seqs"), positive(row, "micro_batch")
    if batch is None or micro_batch is None:
        return _MICRO_BATCHES_PER_STAGE * (positive(row, "pp") or 1)
    copies = positive(row, "dp") or gpus / (gpus_per_copy * (positive(row, "cp") or 1))
    return max(1.0, batch / max(micro_batch * copies, 1.0))
