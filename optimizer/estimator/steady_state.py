"""What a replica does under a load: a fixed batch, requests without end, so many at once, or a rate of arrivals."""

from dataclasses import dataclass
from math import sqrt

from optimizer.estimator.constants import constant
from optimizer.estimator.inference import (
    RequestShape,
    decode_step,
    mean_context,
    operating_point,
    prefill_time,
    saturated_seconds,
    sequences_per_stage,
)
from optimizer.estimator.roofline import Replica, step_time
from optimizer.units import MS_PER_S

_ROUNDS = 16
_UNDAMPED_ROUNDS = 3
_LEAST_BATCH = 1e-3


@dataclass(frozen=True, slots=True)
class Load:
    """A replica under load: mean running sequences, mean latencies, output tokens per second."""

    batch: float
    ttft_s: float
    tpot_s: float
    tokens_per_s: float


def decode_tokens_per_s(replica: Replica, shape: RequestShape, batch: float) -> float:
    """Output rate while `batch` sequences only generate; no prompts are processed."""
    return batch / decode_step(replica, shape, batch, 0.0).total


def static_tokens_per_s(replica: Replica, shape: RequestShape, batch: float) -> float:
    """Output rate of one fixed batch, prompts first, then run until its last token."""
    prompts = step_time(replica, 0.0, batch * max(shape.prompt, 1.0), 0.0, shape.prompt).total
    step = step_time(replica, sequences_per_stage(replica, batch), 0.0, mean_context(shape), shape.prompt).total
    return batch * shape.output / (prompts + shape.output * step)


def saturated_tokens_per_s(replica: Replica, shape: RequestShape, batch: float) -> float:
    """Output rate with all requests queued and `batch` of them running (continuous batching)."""
    return shape.output / saturated_seconds(replica, shape, batch).total


def closed_loop(replica: Replica, shape: RequestShape, concurrency: float, limit: int) -> Load:
    """Load of clients that keep `concurrency` requests under way, of which `limit` can run at once.

    The others wait for a slot: (C−B)/B residence times on average.
    """
    batch = max(1, min(int(concurrency), limit))
    point = operating_point(replica, shape, batch)
    tpot = point.tpot_s or 0.0
    waiting = max(concurrency - batch, 0.0) / batch * point.end_to_end_s
    total = point.end_to_end_s + waiting
    return Load(batch, point.ttft_s + waiting, tpot, concurrency * shape.output / total)


def open_loop(replica: Replica, shape: RequestShape, requests_per_s: float, limit: int, requests: float) -> Load:
    """Load of `requests` requests that arrive at a rate, one run from the first arrival to the last answer.

    Running sequences follow Little's law, B = rate · residence, solved as a fixed point since residence grows with B.
    The run is finite: B climbs while requests arrive and falls while the last ones are answered, so that the mean over
    tokens is that of a trapezoid (`mean_running`). Without this, a rate above capacity has no steady state at all.
    """
    batch = 1.0
    for done in range(_ROUNDS):
        point = decode_step(replica, shape, max(batch, _LEAST_BATCH), constant("prefill_overlap_share"))
        found = min(mean_running(requests_per_s, shape.output * point.total, requests), float(limit))
        batch = found if done < _UNDAMPED_ROUNDS else sqrt(batch * found)
    batch = max(batch, 1.0)
    tpot = decode_step(replica, shape, batch, constant("prefill_overlap_share")).total
    ttft = (
        prefill_time(replica, max(shape.prompt, 1.0), shape.cached).total
        + constant("ttft_open_step_share") * tpot
        + constant("ttft_open_fixed_ms") / MS_PER_S
    )
    return Load(batch, ttft, tpot, batch / tpot)


def mean_running(requests_per_s: float, residence_s: float, requests: float) -> float:
    """Sequences that run beside a token, mean over all tokens of a run of `requests` arrivals.

    With arrivals over T = requests ÷ rate and residence S, the number running is a trapezoid; ∫B² ÷ ∫B of it is
    rate · S · (1 − S/3T) for S ≤ T, requests · (1 − T/3S) beyond.
    """
    arrivals_s = requests / requests_per_s
    if residence_s <= arrivals_s:
        return requests_per_s * residence_s * (1 - residence_s / (3 * arrivals_s))
    return requests * (1 - arrivals_s / (3 * residence_s))
