"""A row of a serving measurement as the estimator's own terms: model, GPU, replica, request, load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from catalog.load import Catalog
from catalog.schema import Gpu, LlmArchitecture, SourceRef
from optimizer.estimator.architecture import attention_parameters
from optimizer.estimator.engines import Engine, engine_named
from optimizer.estimator.inference import RequestShape
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.roofline import Replica, replica_of
from optimizer.evaluate.rows import catalog_model, gpu_of, number, positive, required_positive, text
from optimizer.evaluate.types import NotPredictableError, UnreadableCellError
from optimizer.evaluate.words import is_unsaid, number_format, sixteen_bits_of

KINDS = ("decode", "prefill", "static", "maxthr", "mlperf", "serve", "serve_qps")
SERVER_LIMITS = "slo"
_NO_LIMIT = {"", "inf", "infinite", "infinity", "max", "unlimited", "offline", SERVER_LIMITS}
_BILLION = 1e9
_MOST_BILLIONS = 1e5
_PACKED_BITS = 8
_CHOSEN, _MATRICES, _MOST_REST = 8, 3, 0.9
_FORMATS = ("fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")
_CACHES = ("fp16", "bf16", "fp8", "int8", "int4")


@dataclass(frozen=True, slots=True)
class ServingCase:
    """What a row says of a run, without anything that was measured."""

    kind: str
    gpu: Gpu
    model: LlmArchitecture
    engine: Engine
    weights: str
    activations: str
    kv: str
    mean_bits: float | None
    tensor_parallel: int
    pipeline_parallel: int
    shape: RequestShape
    batch: float | None
    concurrency: float | None
    server_limits: bool
    requests_per_s: float | None
    shape_known: bool = True
    """False where the experts of a mixture are a guess from its parameters."""

    def replica(self) -> Replica:
        """Replica of the row.

        Raises
        ------
        NotPredictableError
            If the GPU cannot compute in the row's precision.
        """
        kernel = kernel_for(self.gpu, self.weights, self.activations or None)
        if kernel is None:
            msg = f"{self.gpu.gpu_id} has no {self.weights} unit"
            raise NotPredictableError(msg)
        return replica_of(
            self.gpu,
            self.model,
            self.weights,
            self.kv,
            kernel,
            self.tensor_parallel,
            self.pipeline_parallel,
            engine=self.engine,
            mean_bits=self.mean_bits,
        )


def serving_case(row: Mapping[str, str], catalog: Catalog) -> ServingCase:
    """Inputs of a row: its own columns first, then the catalog by the model's name; never measured columns or notes.

    Raises
    ------
    UnreadableCellError
        If a cell does not hold what its column is for.
    NotPredictableError
        If the GPU or the model's shape is not known.
    """
    kind = text(row, "kind").casefold()
    if kind not in KINDS:
        msg = f"column kind: found {kind!r}, write one of {', '.join(KINDS)}"
        raise UnreadableCellError(msg)
    concurrency, gpu = text(row, "concurrency"), gpu_of(row, catalog)
    weights = _weights(row, gpu)
    return ServingCase(
        kind=kind,
        gpu=gpu,
        model=architecture(row, catalog),
        engine=engine_named(text(row, "engine")),
        weights=weights,
        activations=_format(row, "act_precision", _FORMATS, ""),
        kv=_format(row, "kv_precision", _CACHES, "fp16"),
        mean_bits=positive(row, "weight_bits"),
        tensor_parallel=_count(row, "tp", _replica_gpus(row)),
        pipeline_parallel=_count(row, "pp", 1),
        shape=RequestShape("all", _length(row, "input_len"), _length(row, "output_len")),
        batch=None if text(row, "batch").casefold() in _NO_LIMIT else positive(row, "batch"),
        concurrency=None if concurrency.casefold() in _NO_LIMIT else positive(row, "concurrency"),
        server_limits=concurrency.casefold() == SERVER_LIMITS,
        requests_per_s=required_positive(row, "request_rate_rps") if kind == "serve_qps" else None,
        shape_known=not is_unknown_mixture(row, catalog),
    )


def _replica_gpus(row: Mapping[str, str]) -> int:
    """Tensor-parallel size where `tp` is empty: all GPUs of the replica."""
    return _count(row, "gpus_per_replica", 1) // _count(row, "pp", 1) or 1


def _count(row: Mapping[str, str], column: str, default: int) -> int:
    value = positive(row, column)
    if value is None:
        return default
    if value != int(value):
        msg = f"column {column}: found {text(row, column)!r}, write a whole number"
        raise UnreadableCellError(msg)
    return int(value)


def _length(row: Mapping[str, str], column: str) -> float:
    value = number(row, column)
    if value is not None and value < 0:
        msg = f"column {column}: found {text(row, column)!r}, write tokens from 0 on"
        raise UnreadableCellError(msg)
    return value or 0.0


def _format(row: Mapping[str, str], column: str, known: Sequence[str], unsaid: str) -> str:
    """Number format of a column, by any of its usual spellings."""
    word = text(row, column)
    if is_unsaid(word):
        return unsaid
    found = number_format(word)
    if found is None or found not in known:
        msg = f"column {column}: found {word!r}, write one of {', '.join(known)}"
        raise UnreadableCellError(msg)
    return found


def _weights(row: Mapping[str, str], gpu: Gpu) -> str:
    """Weight format; other names (w3, EXL2) count as packed integers by their bits, an empty cell by bits alone."""
    word, bits = text(row, "weight_precision"), positive(row, "weight_bits")
    if number_format(word) not in _FORMATS and bits is not None and bits < _PACKED_BITS:
        return "int4"
    found = _format(row, "weight_precision", _FORMATS, "fp8" if bits == _PACKED_BITS else "bf16")
    return sixteen_bits_of(gpu, found)


def _billions(row: Mapping[str, str], column: str) -> float | None:
    """Parameters of a column, in billions. Raises UnreadableCellError if the cell can only be their count."""
    value = positive(row, column)
    if value is not None and value > _MOST_BILLIONS:
        msg = f"column {column}: found {text(row, column)!r}, write billions of parameters (8.03, not 8.03e9)"
        raise UnreadableCellError(msg)
    return value


def is_unknown_mixture(row: Mapping[str, str], catalog: Catalog) -> bool:
    """Whether a row is of a mixture of experts that the catalog does not know."""
    total, active = _billions(row, "params_total_b"), _billions(row, "params_active_b")
    sparse = total is not None and active is not None and active < total
    return sparse and catalog_model(row, catalog) is None


def architecture(row: Mapping[str, str], catalog: Catalog) -> LlmArchitecture:
    """Shape of the row's model: columns of the row over those of the catalog; dense where neither knows of experts.

    Raises
    ------
    NotPredictableError
        If neither gives the shape.
    """
    known = catalog_model(row, catalog)
    total, active = _billions(row, "params_total_b"), _billions(row, "params_active_b")
    found = replace(
        known or _described(row, total),
        parameters=(known.parameters if known else 0.0) if total is None else total * _BILLION,
        active_parameters=(known.active_parameters if known else 0.0) if active is None else active * _BILLION,
    )
    found = replace(
        found,
        active_parameters=found.active_parameters or found.parameters,
        layers=_count(row, "layers", found.layers),
        hidden_size=_count(row, "hidden", found.hidden_size),
        attention_heads=_count(row, "heads", found.attention_heads),
        kv_heads=_count(row, "kv_heads", found.kv_heads),
        head_dim=_count(row, "head_dim", found.head_dim),
    )
    return _with_guessed_experts(found) if is_unknown_mixture(row, catalog) else found


def _with_guessed_experts(model: LlmArchitecture) -> LlmArchitecture:
    """A mixture of which only parameters are known, in all and per token: eight experts per token, the rest attention.

    Total = rest + experts and active = rest + experts · k/E give the number of experts E; at most nine tenths of the
    active parameters are taken as the rest.
    """
    rest = min(model.layers * attention_parameters(model), _MOST_REST * model.active_parameters)
    routed, chosen = model.parameters - rest, model.active_parameters - rest
    experts = max(_CHOSEN + 1, round(_CHOSEN * routed / chosen))
    width = max(1, round(routed / (model.layers * experts * _MATRICES * model.hidden_size)))
    return replace(model, experts=experts, experts_per_token=_CHOSEN, expert_ffn_size=width)


def _described(row: Mapping[str, str], total: float | None) -> LlmArchitecture:
    """Record of a dense model that the catalog does not know."""
    shape = {name: positive(row, name) for name in ("layers", "hidden", "heads")}
    missing = [name for name, value in {"params_total_b": total, **shape}.items() if value is None]
    if missing:
        msg = f"model {text(row, 'model')!r} is not in the catalog, and the row lacks {', '.join(missing)}"
        raise NotPredictableError(msg)
    hidden, heads = int(shape["hidden"] or 0), int(shape["heads"] or 0)
    return LlmArchitecture(
        model_id=text(row, "model"),
        family="row",
        parameters=(total or 0.0) * _BILLION,
        active_parameters=(total or 0.0) * _BILLION,
        layers=int(shape["layers"] or 0),
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=heads,
        head_dim=max(1, hidden // heads),
        ffn_size=0,
        gated_ffn=True,
        vocabulary_size=0,
        tied_embeddings=False,
        qkv_bias=False,
        experts=1,
        experts_per_token=1,
        expert_ffn_size=0,
        shared_experts=0,
        sliding_window_tokens=None,
        max_context_tokens=None,
        confidence="row",
        notes="",
        ref=SourceRef("row", 0, text(row, "source"), None),
    )
