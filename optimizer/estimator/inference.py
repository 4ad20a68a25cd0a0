"""A model served on a GPU type: operating batch, latency and time of a replica per request; offline batches alike."""

from collections.abc import Sequence
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
from optimizer.estimator.ranges import range_of
from optimizer.estimator.roofline import (
    Replica,
    StepTime,
    attention_flop,
    step_time,
    touched_weight_bytes,
)
from optimizer.estimator.types import ClassEstimate, Stage
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
    """Time to process one prompt alone, of which `cached` tokens are in the cache already.

    Data-parallel groups do not help each other: each is taken to have such a prompt.
    """
    return step_time(replica, 0.0, (prompt - cached) * replica.data_parallel, 0.0, prompt + cached)


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
class Pessimism:
    """Factors on predicted times at which they are held against targets; all 1 plans for the middle of the range."""

    ttft: float = 1.0
    tpot: float = 1.0
    residence: float = 1.0


MIDDLE = Pessimism()


def pessimism_of(workload: Service) -> Pessimism:
    """High ends of the ranges of latencies, and of replica time, where `plan_for: low` asks for them."""
    if workload.plan_for == "middle":
        return MIDDLE
    unseen = {target: range_of(target, seen=False) for target in ("ttft_ms", "tpot_ms", "out_tps")}
    return Pessimism(unseen["ttft_ms"].high_factor, unseen["tpot_ms"].high_factor, 1 / unseen["out_tps"].low_factor)


def at_high_end(point: OperatingPoint, pessimism: Pessimism) -> OperatingPoint:
    """The point with all times as long as the range allows: first token, later tokens, replica time."""
    later = point.end_to_end_s - point.ttft_s
    return replace(
        point,
        ttft_s=point.ttft_s * pessimism.ttft,
        tpot_s=None if point.tpot_s is None else point.tpot_s * pessimism.tpot,
        end_to_end_s=point.ttft_s * pessimism.ttft + later * pessimism.tpot,
        seconds=point.seconds.scaled(pessimism.residence),
    )


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
    groups = replica.data_parallel
    cap = workload.max_batch or groups * engine_batch_cap(gpu, workload)
    return min(cap, groups * largest_batch_in_memory(memory.free_bytes / groups, sequence))


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


@dataclass(frozen=True, slots=True)
class Needs:
    """What a request needs of a replica: FLOP, bytes moved, KV cache, and for how long."""

    flop: float
    moved_bytes: float
    kv_bytes: float
    residence_s: float


def needs_of(replica: Replica, shape: RequestShape, point: OperatingPoint) -> Needs:
    """Needs of a request that one replica does from its prompt to its last token."""
    tp = replica.tensor_parallel
    return Needs(
        flop=flop_per_request(replica, shape),
        moved_bytes=moved_bytes_per_request(replica, shape, point.batch),
        kv_bytes=kv_bytes_per_sequence(replica.model, replica.kv, tp, shape.prompt, shape.output),
        residence_s=point.seconds.total * point.batch,
    )


def class_estimate(shape: RequestShape, point: OperatingPoint, cap: float, needs: Needs) -> ClassEstimate:
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
        flop_per_request=needs.flop,
        moved_bytes_per_request=needs.moved_bytes,
        kv_bytes_per_sequence=needs.kv_bytes,
        residence_s=needs.residence_s,
        ttft_ms=point.ttft_s * MS_PER_S,
        tpot_ms=None if point.tpot_s is None else point.tpot_s * MS_PER_S,
        end_to_end_ms=point.end_to_end_s * MS_PER_S,
    )


def memory_of(gpu: Gpu, replica: Replica) -> ServingMemory:
    """Memory of the replica's GPUs."""
    groups = replica.data_parallel
    return serving_memory(gpu, replica.model, replica.weights, replica.gpus, replica.mean_bits, groups)


def least_serving_bytes(
    memory: ServingMemory, replica: Replica, shapes: Sequence[RequestShape], stage: Stage = ""
) -> float:
    """Memory that the replica needs at least: weights, workspace, a sequence of the shortest class (per group of GPUs).

    A prefill stage holds one prompt and another's cache on its way.
    """
    prefill = stage == "prefill"
    shortest = min(
        kv_bytes_per_sequence(
            replica.model, replica.kv, replica.tensor_parallel, s.prompt, 0.0 if prefill else s.output
        )
        for s in shapes
    )
    held = replica.data_parallel * (2 if prefill else 1)
    return memory.weight_bytes + memory.workspace_bytes + held * shortest
