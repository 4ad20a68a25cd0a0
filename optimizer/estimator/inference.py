"""A model served on a GPU type: operating batch, latency and time of a replica per request; offline batches alike."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.estimator.elementwise import larger, smaller
from optimizer.estimator.engines import Engine, default_engine
from optimizer.estimator.memory import (
    ServingMemory,
    kv_bytes_per_sequence,
    largest_batch_in_memory,
    serving_memory,
    tokens_held,
)
from optimizer.estimator.queueing import utilisation_cap
from optimizer.estimator.roofline import (
    Replica,
    StepTime,
    attention_flop,
    step_time,
    touched_weight_bytes,
)
from optimizer.estimator.types import ClassEstimate
from optimizer.estimator.workloads import Batch, Latency, Service
from optimizer.units import MS_PER_S

ONLY_CLASS = "all"
SMALLER_BATCHES = (0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1, 0.05)


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Lengths of a request class in tokens.

    `cached` tokens of the prompt are found in the prefix cache; a step checks `drafted` tokens per sequence and gains
    `accepted` (speculative decoding), and takes `draft_share` longer for the draft.
    """

    name: str
    prompt: float
    output: float
    cached: float = 0.0
    drafted: float = 0.0
    accepted: float = 1.0
    draft_share: float = 0.0

    @property
    def fresh(self) -> float:
        """Prompt tokens to be processed."""
        return self.prompt - self.cached

    @property
    def attended(self) -> float:
        """Prompt length whose causal half is what a fresh token attends to on average: (prompt + cached) ÷ 2."""
        return self.prompt + self.cached


def request_shapes(service: Service) -> tuple[RequestShape, ...]:
    """Request classes of a service: as named, else `class-1`, …; a service without classes has one, `all`."""
    tokens = service.tokens
    prompt, output = (tokens.input, tokens.output) if tokens else (0, 0)
    if not service.classes:
        return (shape_of(service, ONLY_CLASS, prompt, output),)
    return tuple(
        shape_of(
            service,
            c.name or f"class-{i + 1}",
            prompt if c.input is None else c.input,
            output if c.output is None else c.output,
        )
        for i, c in enumerate(service.classes)
    )


def shape_of(workload: Service | Batch, name: str, prompt: float, output: float) -> RequestShape:
    """Requests of these lengths under the workload's prefix cache (a token of the prompt is always new) and draft."""
    cached = min(workload.prefix_cache_share * prompt, max(prompt - 1, 0))
    if workload.speculation is None:
        return RequestShape(name, prompt, output, cached)
    draft = workload.speculation
    return RequestShape(name, prompt, output, cached, draft.draft, draft.accepted, draft.time_share)


def sequences_per_stage(replica: Replica, batch: float) -> float:
    """Sequences in one pipeline stage at a time."""
    return larger(batch / replica.pipeline_parallel, smaller(batch, 1.0))


def mean_context(shape: RequestShape) -> float:
    """Mean tokens held by a running sequence: its prompt and half its output."""
    return shape.prompt + shape.output / 2


def prefill_time(replica: Replica, prompt: float, cached: float = 0.0) -> StepTime:
    """Time to process one prompt alone, of which `cached` tokens are in the cache already."""
    return step_time(replica, 0.0, prompt - cached, 0.0, prompt + cached)


def decode_step(replica: Replica, shape: RequestShape, batch: float, prompt_share: float) -> StepTime:
    """Time per token of `batch` running sequences, with the prompts that replace finished ones riding along.

    Every sequence lasts `output` steps, so `batch · prompt ÷ output` prompt tokens come per step (continuous
    batching, Orca, OSDI 2022); `prompt_share` of them delay the step.
    """
    sequences = sequences_per_stage(replica, batch)
    prompt_tokens = prompt_share * sequences * shape.fresh * shape.accepted / shape.output
    step = step_time(replica, sequences, prompt_tokens, mean_context(shape), shape.attended, shape.drafted)
    return step if not shape.drafted else step.scaled((1 + shape.draft_share) / shape.accepted)


def saturated_seconds(replica: Replica, shape: RequestShape, batch: float) -> StepTime:
    """Replica time per request when requests queue without end: output · step ÷ batch; a prompt alone if no output."""
    if shape.output == 0:
        return prefill_time(replica, max(shape.prompt, 1.0), shape.cached)
    return decode_step(replica, shape, batch, 1.0).scaled(shape.output / batch)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A class on a replica at a batch: mean times of a request in seconds, without waiting for a free slot."""

    batch: int
    ttft_s: float
    tpot_s: float | None
    end_to_end_s: float
    seconds: StepTime
    utilisation_cap: float = 1.0


def operating_point(replica: Replica, shape: RequestShape, batch: int) -> OperatingPoint:
    """Latency and replica time at `batch` running sequences.

    TTFT = prefill · (1 + φ(B−1)/2) + 0.2 · TPOT + fixed: a prompt waits for a share of the others' prompts and of the
    running step. Replica time = residence ÷ batch, but never less than the saturated engine needs.
    """
    saturated = saturated_seconds(replica, shape, batch)
    tpot = 0.0
    if shape.output:
        tpot = decode_step(replica, shape, batch, constant("prefill_overlap_share")).total
    contention = 1 + replica.engine.ttft_contention_share * (batch - 1) / 2
    ttft = (
        prefill_time(replica, max(shape.prompt, 1.0), shape.cached).total * contention
        + constant("ttft_step_share") * tpot
        + replica.engine.ttft_fixed_ms / MS_PER_S
    )
    end_to_end = ttft + tpot * max(shape.output - 1, 0)
    stretched = larger(1.0, end_to_end / batch / saturated.total)
    return OperatingPoint(batch, ttft, tpot if shape.output > 1 else None, end_to_end, saturated.scaled(stretched))


@dataclass(frozen=True, slots=True)
class MissedTarget:
    """A latency target that even a lone request misses."""

    target: str
    required_ms: float
    available_ms: float


def missed_target(point: OperatingPoint, latency: Latency) -> MissedTarget | None:
    """Return the first target that `point` misses, None if it meets all."""
    checks = (
        ("p95_ttft", latency.p95_ttft, point.ttft_s),
        ("p95_tpot", latency.p95_tpot, point.tpot_s),
        ("p95_end_to_end", latency.p95_end_to_end, point.end_to_end_s),
    )
    for name, target_ms, seconds in checks:
        if target_ms is not None and seconds is not None and seconds * MS_PER_S > target_ms:
            return MissedTarget(name, target_ms, seconds * MS_PER_S)
    return None


def waiting_slack_s(point: OperatingPoint, latency: Latency) -> float | None:
    """Time a request may wait for a slot before a target is missed; None without such a target."""
    slacks = [
        target_ms / MS_PER_S - seconds
        for target_ms, seconds in ((latency.p95_ttft, point.ttft_s), (latency.p95_end_to_end, point.end_to_end_s))
        if target_ms is not None
    ]
    return min(slacks, default=None)


def largest_batch_within(replica: Replica, shape: RequestShape, latency: Latency, limit: int) -> int:
    """Largest batch up to `limit` that meets the targets without waiting (0: none does); latency grows with batch."""
    if missed_target(operating_point(replica, shape, limit), latency) is None:
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        if missed_target(operating_point(replica, shape, middle), latency) is None:
            low = middle
        else:
            high = middle
    return low


def best_point(
    replica: Replica, shape: RequestShape, latency: Latency, limit: int, own_cap: float | None
) -> OperatingPoint | None:
    """Operating point with the least replica time at its utilisation cap; None if a target cannot be met.

    A smaller batch is slower per request but leaves slack for waiting, hence allows a higher utilisation.
    """
    largest = largest_batch_within(replica, shape, latency, limit)
    if largest == 0:
        return None
    highest = constant("highest_utilisation")
    best: OperatingPoint | None = None
    best_score = float("inf")
    for batch in _batches(largest):
        point = operating_point(replica, shape, batch)
        if own_cap is None and point.seconds.total / highest >= best_score:
            break
        slack = waiting_slack_s(point, latency)
        cap = own_cap or utilisation_cap(batch, point.seconds.total * batch, slack)
        if cap > 0 and point.seconds.total / cap < best_score:
            best, best_score = replace(point, utilisation_cap=cap), point.seconds.total / cap
        if own_cap is not None or cap >= highest:
            break
    return best


def _batches(largest: int) -> Iterator[int]:
    """The largest batch, then smaller ones, each once."""
    last = largest
    yield largest
    for share in SMALLER_BATCHES:
        batch = max(1, int(largest * share))
        if batch < last:
            yield batch
            last = batch


class Served(Protocol):
    """What limits the batch of a workload."""

    @property
    def max_batch(self) -> int | None:
        """Most sequences a replica runs at once, as the buyer says."""


def engine_batch_cap(gpu: Gpu, workload: Served, engine: Engine | None = None) -> int:
    """Most sequences that the engine runs at once: the buyer's setting, else the engine's default for the card."""
    if workload.max_batch is not None:
        return workload.max_batch
    return default_batch_cap(gpu, engine or default_engine())


def default_batch_cap(gpu: Gpu, engine: Engine) -> int:
    """The engine's default cap of running sequences on the card."""
    large = gpu.memory_usable_bytes >= constant("large_card_bytes")
    return engine.batch_cap_large if large else engine.batch_cap_small


def batch_limit(gpu: Gpu, workload: Served, memory: ServingMemory, replica: Replica, shape: RequestShape) -> int:
    """Most sequences of a class by memory and engine (0: not one fits)."""
    sequence = kv_bytes_per_sequence(replica.model, replica.kv, replica.tensor_parallel, shape.prompt, shape.output)
    return min(engine_batch_cap(gpu, workload), largest_batch_in_memory(memory.free_bytes, sequence))


def flop_per_request(replica: Replica, shape: RequestShape) -> float:
    """2 FLOP per active parameter and token, and the prompt's attention."""
    per_token = replica.dense_flop_per_token + replica.expert_flop_per_token
    tokens = max(shape.fresh + shape.output * (1 + shape.drafted) / shape.accepted, 1.0)
    return per_token * tokens + attention_flop(replica.model, shape.fresh, shape.attended)


def moved_bytes_per_request(replica: Replica, shape: RequestShape, batch: float) -> float:
    """Weights read per step, shared by the batch, and the sequence's KV cache read at every step."""
    steps = max(shape.output / shape.accepted, 1.0)
    sequences = sequences_per_stage(replica, batch) if shape.output else 1.0
    prompt_tokens = sequences * shape.fresh / steps
    kv = tokens_held(replica.model, mean_context(shape)) * replica.kv_bytes_per_token * shape.output / shape.accepted
    shared_by = batch if shape.output else 1.0
    weights = touched_weight_bytes(replica, sequences * (1 + shape.drafted), prompt_tokens, shape.attended)
    return weights * steps * replica.pipeline_parallel / shared_by + kv


def class_estimate(replica: Replica, shape: RequestShape, point: OperatingPoint, cap: float) -> ClassEstimate:
    """Estimate of one class; if its own utilisation cap is below the deployment's, its time is stretched to match.

    Stretching by cap ÷ own cap books the spare time that its waiting target needs; it counts as overhead.
    """
    reserve = point.seconds.total * max(0.0, cap / point.utilisation_cap - 1)
    seconds = point.seconds
    return ClassEstimate(
        request_class=shape.name,
        replica_seconds_per_request=seconds.total + reserve,
        compute_seconds=seconds.compute,
        memory_bandwidth_seconds=seconds.memory_bandwidth,
        interconnect_seconds=seconds.interconnect,
        overhead_seconds=seconds.overhead + reserve,
        flop_per_request=flop_per_request(replica, shape),
        moved_bytes_per_request=moved_bytes_per_request(replica, shape, point.batch),
        kv_bytes_per_sequence=kv_bytes_per_sequence(
            replica.model, replica.kv, replica.tensor_parallel, shape.prompt, shape.output
        ),
        residence_s=seconds.total * point.batch,
        ttft_ms=point.ttft_s * MS_PER_S,
        tpot_ms=None if point.tpot_s is None else point.tpot_s * MS_PER_S,
        end_to_end_ms=point.end_to_end_s * MS_PER_S,
    )


def memory_of(gpu: Gpu, replica: Replica) -> ServingMemory:
    """Memory of the replica's GPUs."""
    return serving_memory(gpu, replica.model, replica.weights, replica.gpus, replica.mean_bits)


def least_serving_bytes(memory: ServingMemory, replica: Replica, shapes: Sequence[RequestShape]) -> float:
    """Memory that the replica needs at least: weights, workspace, one sequence of the shortest class."""
    shortest = min(
        kv_bytes_per_sequence(replica.model, replica.kv, replica.tensor_parallel, s.prompt, s.output) for s in shapes
    )
    return memory.weight_bytes + memory.workspace_bytes + shortest
