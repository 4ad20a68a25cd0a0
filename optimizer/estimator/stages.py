"""Prompts and outputs on replicas of their own (disaggregated serving; arXiv 2311.18677, arXiv 2401.09670).

A prefill stage does prompts and sends their KV cache over the network; a decode stage generates without prompts in its
steps. Which two work together is the solver's choice, so each must keep to its own part of the targets:

- p95_ttft is the prefill stage's: handling, prompts of a pass, sending the cache, waiting.
- p95_tpot is the decode stage's, waiting for a slot included.
- p95_end_to_end is split: p95_ttft (a quarter without it) for the prompt, the rest for the output; of each part only
  half as many requests may be late, so that together no more are (union bound).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.estimator.elementwise import larger
from optimizer.estimator.inference import (
    Needs,
    OperatingPoint,
    RequestShape,
    batch_limit,
    decode_step,
    flop_per_request,
    mean_context,
    needs_of,
    operating_point,
    sequences_per_stage,
)
from optimizer.estimator.memory import ServingMemory, kv_bytes_per_sequence, tokens_held
from optimizer.estimator.queueing import late_share
from optimizer.estimator.roofline import Replica, StepTime, step_time, touched_weight_bytes
from optimizer.estimator.types import ClassEstimate, Stage
from optimizer.estimator.workloads import Latency, Service
from optimizer.units import MS_PER_S

LEAST_OUTPUT = 2
"""Output tokens from which a request has an output to do apart: the first one comes from the prompt."""


@dataclass(frozen=True, slots=True)
class StageTargets:
    """What one stage has to hold for a class; `tail` is the share of requests that may be late."""

    latency: Latency
    tail: float


def stages_of(service: Service) -> tuple[Stage, ...]:
    """Kinds of deployments to try: whole ones, stages, or both."""
    apart: tuple[Stage, ...] = ("prefill", "decode")
    return {"never": ("",), "allowed": ("", *apart), "required": apart}[service.disaggregated]


def targets_of(service: Service, shape: RequestShape, stage: Stage) -> StageTargets:
    """Targets of a stage for a class; those of the service for whole deployments."""
    wanted = service.latency
    if not stage:
        return StageTargets(wanted, late_share())
    total = wanted.p95_end_to_end
    tail = late_share() if total is None else late_share() / 2
    prompt = (
        wanted.p95_ttft if total is None else min(wanted.p95_ttft or constant("stage_prefill_share") * total, total)
    )
    if stage == "prefill":
        return StageTargets(Latency.model_construct(p95_ttft=prompt), tail)
    whole = None if wanted.p95_tpot is None else wanted.p95_tpot * (shape.output - 1)
    rest = None if total is None or prompt is None else total - prompt
    limits = [limit for limit in (whole, rest) if limit is not None]
    return StageTargets(
        Latency.model_construct(p95_tpot=wanted.p95_tpot, p95_end_to_end=min(limits, default=None)), tail
    )


def transfer_seconds(replica: Replica, shape: RequestShape, bytes_per_s_per_gpu: float) -> float:
    """Time to send a prompt's KV cache, in every copy that tensor parallelism keeps, from the GPUs of its group."""
    cache = replica.kv_bytes_per_token * max(tokens_held(replica.model, shape.prompt), 1.0)
    return cache * replica.data_parallel / (bytes_per_s_per_gpu * replica.gpus)


def prefill_point(replica: Replica, shape: RequestShape, batch: int, bytes_per_s_per_gpu: float) -> OperatingPoint:
    """Times of `batch` prompts in one pass; their caches are sent meanwhile, which may take longer than the pass."""
    step = step_time(replica, 0.0, _pass_tokens(replica, shape, batch), 0.0, shape.attended)
    sending = transfer_seconds(replica, shape, bytes_per_s_per_gpu)
    ttft = step.total + sending + replica.engine.ttft_fixed_ms / MS_PER_S
    seconds = _no_less(step.scaled(1 / batch), sending / replica.data_parallel)
    return OperatingPoint(batch, ttft, None, ttft, seconds)


def _pass_tokens(replica: Replica, shape: RequestShape, batch: float) -> float:
    """Prompt tokens in a pipeline stage at a time; data-parallel groups without a prompt wait for the others'."""
    return larger(sequences_per_stage(replica, batch), 1.0 * replica.data_parallel) * max(shape.fresh, 1.0)


def decode_point(replica: Replica, shape: RequestShape, batch: int, bytes_per_s_per_gpu: float) -> OperatingPoint:
    """Times of `batch` sequences that only generate: all tokens but the first, after the cache has arrived."""
    step = decode_step(replica, shape, batch, 0.0)
    sending = transfer_seconds(replica, shape, bytes_per_s_per_gpu)
    stay = sending + step.total * (shape.output - 1)
    least = larger(stay / batch, sending / replica.data_parallel)
    return OperatingPoint(batch, 0.0, step.total, stay, _no_less(step.scaled((shape.output - 1) / batch), least))


def _no_less(time: StepTime, seconds: float) -> StepTime:
    """A time that takes `seconds` at least; what is added is waiting for the network."""
    return replace(time, interconnect=time.interconnect + larger(seconds - time.total, 0.0))


def point_of_stage(stage: Stage, service: Service) -> Callable[[Replica, RequestShape, int], OperatingPoint]:
    """Operating point of a stage of a service, or of whole deployments."""
    rate = service.kv_transfer or constant("kv_transfer_bytes_per_s")
    if stage == "prefill":
        return lambda replica, shape, batch: prefill_point(replica, shape, batch, rate)
    if stage == "decode":
        return lambda replica, shape, batch: decode_point(replica, shape, batch, rate)
    return operating_point


def serves_in(stage: Stage, shape: RequestShape) -> bool:
    """Whether requests of a class can be done in a stage: those with an output of their own."""
    return not stage or shape.output >= LEAST_OUTPUT


def stage_batch_limit(
    gpu: Gpu, service: Service, memory: ServingMemory, replica: Replica, shape: RequestShape, stage: Stage
) -> int:
    """Most sequences of a class at once (0: not one fits).

    A prefill stage takes prompts of up to 2,048 tokens in all into a pass, and has as many caches on their way.
    """
    if stage != "prefill":
        return batch_limit(gpu, service, memory, replica, shape)
    in_memory = batch_limit(gpu, service, memory, replica, replace(shape, output=0.0)) // 2
    per_pass = max(1, int(constant("prompt_burst_tokens") // max(shape.fresh, 1.0)))
    return min(in_memory, per_pass * replica.pipeline_parallel * replica.data_parallel)


def needs_in(stage: Stage, replica: Replica, shape: RequestShape, point: OperatingPoint) -> Needs:
    """What a request needs of a replica's resources in a stage."""
    if stage == "prefill":
        return _prefill_needs(replica, shape, point)
    return _decode_needs(replica, shape, point) if stage == "decode" else needs_of(replica, shape, point)


def _prefill_needs(replica: Replica, shape: RequestShape, point: OperatingPoint) -> Needs:
    """The prompt's products and attention, weights once per pass, its cache until it is sent."""
    read = touched_weight_bytes(replica, 0.0, _pass_tokens(replica, shape, point.batch), shape.attended)
    return Needs(
        flop=flop_per_request(replica, replace(shape, output=0.0)),
        moved_bytes=read * replica.pipeline_parallel / point.batch,
        kv_bytes=kv_bytes_per_sequence(replica.model, replica.kv, replica.tensor_parallel, shape.prompt, 0.0),
        residence_s=point.end_to_end_s,
    )


def _decode_needs(replica: Replica, shape: RequestShape, point: OperatingPoint) -> Needs:
    """All tokens but the first: products, weights shared by the batch, the cache read at every step."""
    later = (shape.output - 1) / shape.accepted
    sequences = sequences_per_stage(replica, point.batch) * (1 + shape.drafted)
    read = touched_weight_bytes(replica, sequences) * replica.pipeline_parallel / point.batch
    cache = tokens_held(replica.model, mean_context(shape)) * replica.kv_bytes_per_token
    tp = replica.tensor_parallel
    return Needs(
        flop=(replica.dense_flop_per_token + replica.expert_flop_per_token) * later * (1 + shape.drafted),
        moved_bytes=(read + cache) * later,
        kv_bytes=kv_bytes_per_sequence(replica.model, replica.kv, tp, shape.prompt, shape.output),
        residence_s=point.seconds.total * point.batch,
    )


def shown_times(found: ClassEstimate, stage: Stage) -> ClassEstimate:
    """Only the times that a stage can answer for."""
    if not stage:
        return found
    return replace(found, ttft_ms=None) if stage == "decode" else replace(found, tpot_ms=None, end_to_end_ms=None)
