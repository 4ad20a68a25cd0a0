"""Rows of serving measurements: predicted by the estimator that the solver uses, from the row's inputs alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catalog.load import Catalog
from optimizer.estimator.constants import constant
from optimizer.estimator.inference import default_batch_cap, memory_of, prefill_time
from optimizer.estimator.memory import kv_bytes_per_sequence, kv_bytes_per_token, largest_batch_in_memory, tokens_held
from optimizer.estimator.ranges import range_of
from optimizer.estimator.roofline import Replica
from optimizer.estimator.steady_state import (
    closed_loop,
    decode_tokens_per_s,
    open_loop,
    saturated_tokens_per_s,
    static_tokens_per_s,
)
from optimizer.evaluate.rows import positive, publication, text, word
from optimizer.evaluate.seen import was_seen
from optimizer.evaluate.serving_case import ServingCase, serving_case
from optimizer.evaluate.types import NotPredictableError, NotPredicted, Prediction
from optimizer.units import MS_PER_S

MEASURED_COLUMNS = {
    "out_tps": "out_tps_replica",
    "out_tps_single": "out_tps_replica",
    "tpot_ms": "tpot_ms",
    "ttft_ms": "ttft_ms",
    "ttft_prefill_ms": "ttft_ms",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A case with its replica, ready to be predicted."""

    case: ServingCase
    replica: Replica

    @property
    def batch_limit(self) -> int:
        """Most sequences by memory and engine; at least one, since the row was measured."""
        case = self.case
        sequence = kv_bytes_per_sequence(
            case.model, case.kv, case.tensor_parallel, case.shape.prompt, case.shape.output
        )
        return self._within(sequence)

    @property
    def static_batch_limit(self) -> int:
        """Most sequences of a fixed batch, whose cache grows to its full length."""
        case = self.case
        tokens = tokens_held(case.model, case.shape.prompt + case.shape.output)
        return self._within(kv_bytes_per_token(case.model, case.kv, case.tensor_parallel) * max(tokens, 1.0))

    def _within(self, sequence_bytes: float) -> int:
        fitting = largest_batch_in_memory(memory_of(self.case.gpu, self.replica).free_bytes, sequence_bytes)
        return max(1, min(default_batch_cap(self.case.gpu, self.case.engine), fitting))


def _decode(s: Setting) -> dict[str, float]:
    return {"out_tps_single": decode_tokens_per_s(s.replica, s.case.shape, s.case.batch or 1.0)}


def _prefill(s: Setting) -> dict[str, float]:
    return {"ttft_prefill_ms": prefill_time(s.replica, max(s.case.shape.prompt, 1.0)).total * MS_PER_S}


def _static(s: Setting) -> dict[str, float]:
    batch = s.case.batch or s.static_batch_limit
    return {"out_tps": static_tokens_per_s(s.replica, s.case.shape, batch)}


def _saturated(s: Setting) -> dict[str, float]:
    wanted = s.case.concurrency or s.case.batch or s.batch_limit
    batch = min(s.batch_limit, wanted)
    share = constant("server_target_share") if s.case.server_limits else 1.0
    return {"out_tps": share * saturated_tokens_per_s(s.replica, s.case.shape, batch)}


def _serve(s: Setting) -> dict[str, float]:
    concurrency = s.case.concurrency or s.case.batch
    if concurrency is None:
        msg = "column concurrency is empty"
        raise NotPredictableError(msg)
    load = closed_loop(s.replica, s.case.shape, concurrency, s.batch_limit)
    return {"out_tps": load.tokens_per_s, "tpot_ms": load.tpot_s * MS_PER_S, "ttft_ms": load.ttft_s * MS_PER_S}


def _serve_qps(s: Setting) -> dict[str, float]:
    rate = s.case.requests_per_s or 0.0
    load = open_loop(s.replica, s.case.shape, rate, s.batch_limit, constant("benchmark_requests"))
    return {"tpot_ms": load.tpot_s * MS_PER_S, "ttft_ms": load.ttft_s * MS_PER_S}


_PREDICTORS: dict[str, Callable[[Setting], dict[str, float]]] = {
    "decode": _decode,
    "prefill": _prefill,
    "static": _static,
    "maxthr": _saturated,
    "mlperf": _saturated,
    "serve": _serve,
    "serve_qps": _serve_qps,
}


def predicted_targets(case: ServingCase) -> dict[str, float]:
    """All targets of a case, in the units of their columns.

    Raises
    ------
    NotPredictableError
        If the row lacks what its kind is predicted from.
    """
    if case.kind != "prefill" and case.shape.output <= 0:
        msg = "column output_len is empty or 0"
        raise NotPredictableError(msg)
    return _PREDICTORS[case.kind](Setting(case, case.replica()))


def predict(row: Mapping[str, str], catalog: Catalog) -> list[Prediction] | NotPredicted:
    """Predictions of the targets that a row measured (rulings of `evaluate`: docs/evaluate.md).

    Raises
    ------
    UnreadableCellError
        If a cell does not hold what its column is for.
    NotPredictableError
        If the estimator has no answer for the row.
    """
    case = serving_case(row, catalog)
    seen = was_seen(text(row, "gpu"), text(row, "model"), case)
    found = [
        _prediction(row, case, target, predicted, measured, seen)
        for target, predicted in predicted_targets(case).items()
        if (measured := positive(row, MEASURED_COLUMNS[target])) is not None
    ]
    return found or NotPredicted(text(row, "id"), f"the row holds no measurement of kind {case.kind}")


def _prediction(
    row: Mapping[str, str], case: ServingCase, target: str, predicted: float, measured: float, seen: bool
) -> Prediction:
    spread = range_of(target, seen=seen)
    wider = 1.0 if case.shape_known else constant("unknown_shape_factor")
    return Prediction(
        id=text(row, "id"),
        target=target,
        kind=case.kind,
        gpu=case.gpu.gpu_id,
        model=case.model.model_id,
        source=publication(row),
        predicted=predicted,
        measured=measured,
        low=predicted * spread.low_factor / wider,
        high=predicted * spread.high_factor * wider,
        scored=word(row, "quality") in ("", "ok"),
    )
