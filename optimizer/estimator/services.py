"""Analytic estimates of an online service on a GPU type, or why it cannot run there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.deployments import without_dominated
from optimizer.estimator.inference import (
    OperatingPoint,
    RequestShape,
    at_high_end,
    class_estimate,
    least_serving_bytes,
    memory_of,
    missed_target,
    pessimism_of,
    request_shapes,
)
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.layouts import (
    expert_parallel_is_legal,
    legal_tensor_parallel_sizes,
    listed,
    replica_layouts,
    tensor_parallel_is_legal,
)
from optimizer.estimator.memory import ServingMemory
from optimizer.estimator.ranges import range_of
from optimizer.estimator.roofline import Replica, replica_of
from optimizer.estimator.search import Copy, Found, Place, best_batches, formats_of
from optimizer.estimator.stages import (
    LEAST_OUTPUT,
    needs_in,
    point_of_stage,
    serves_in,
    shown_times,
    stages_of,
    targets_of,
)
from optimizer.estimator.steps import service_steps
from optimizer.estimator.types import Deployment, Rejection, ServiceEstimate, Stage
from optimizer.estimator.workloads import Batch, Service
from optimizer.units import BYTES_PER_GB

THROUGHPUT_RANGE = range_of("out_tps", seen=False)
"""Range of a buyer's own deployment: its engine and settings have not been measured."""
ESTIMATE_SOURCE = "analytic estimate (docs/estimator.md)"
_LARGEST_HINT = 64
_WRITTEN_OUT_GB = 1e6
"""Memory from which a reason gives powers of ten."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A deployment with all that its estimate was made from; `failures` say which classes it cannot serve and why."""

    replica: Replica
    memory: ServingMemory
    points: tuple[tuple[RequestShape, OperatingPoint], ...]
    failures: tuple[tuple[str, Rejection], ...]
    estimate: ServiceEstimate | None


def refused_sizes(workload: Service | Batch, gpu: Gpu, model: LlmArchitecture, largest_node: int) -> list[Rejection]:
    """Sizes that the buyer asked for but that no node, head count or number of experts allows."""
    wanted = workload.gpus_per_replica
    sizes = [] if wanted is None else listed(wanted)
    refused = []
    for size in sizes if 1 in listed(workload.expert_parallel) else ():
        if not tensor_parallel_is_legal(model, size):
            heads = f"{model.attention_heads} heads and {model.kv_heads} KV heads"
            reason = f"{size} GPUs per replica do not divide {heads} of {model.model_id}"
            best = max(s for s in legal_tensor_parallel_sizes(model, size))
            refused.append(_parallelism(workload, gpu, reason, size, best, f"TP{size}"))
        elif size > largest_node:
            reason = f"{size} GPUs per replica need a node of {size}; the largest on offer has {largest_node}"
            refused.append(_parallelism(workload, gpu, reason, size, largest_node, f"TP{size}"))
    refused += _refused_experts(workload, gpu, model, largest_node)
    if not refused and not replica_layouts(workload, model, largest_node):
        least = min(listed(workload.pipeline_parallel)) * min(sizes, default=1)
        reason = f"a replica of {least} GPUs (tensor × pipeline parallel) fits no node; the largest has {largest_node}"
        refused.append(_parallelism(workload, gpu, reason, least, largest_node, f"TP{least}"))
    return refused


def _refused_experts(
    workload: Service | Batch, gpu: Gpu, model: LlmArchitecture, largest_node: int
) -> Iterator[Rejection]:
    """Expert-parallel sizes that do not divide the experts, or that no node or listed replica size holds."""
    sizes = None if workload.gpus_per_replica is None else listed(workload.gpus_per_replica)
    for size in (size for size in listed(workload.expert_parallel) if size > 1):
        if model.experts <= 1:
            reason, most = f"{model.model_id} has no experts to spread over {size} GPUs", 1
        elif not expert_parallel_is_legal(model, size):
            reason = f"{size} GPUs do not divide the {model.experts} experts of {model.model_id}"
            most = max(n for n in range(1, size) if model.experts % n == 0)
        elif size > largest_node:
            reason = f"experts over {size} GPUs need a node of {size}; the largest on offer has {largest_node}"
            most = largest_node
        elif sizes is not None and size not in sizes:
            reason = f"experts over {size} GPUs need gpus_per_replica: {size} among those allowed"
            most = max(sizes)
        else:
            continue
        yield _parallelism(workload, gpu, reason, size, most, f"EP{size}")


def _parallelism(
    workload: Service | Batch, gpu: Gpu, reason: str, required: int, available: int, label: str
) -> Rejection:
    unit = "GPUs per replica"
    return Rejection(workload.name, gpu.gpu_id, reason, "parallelism", required, available, unit, label)


def no_unit_for(workload: str, gpu: Gpu, precision: str) -> Rejection:
    """Rejection of a number format that the GPU cannot compute in; the other 16 bits are named where it has them."""
    other = {"bf16": "fp16", "fp16": "bf16"}.get(precision, precision)
    hint = f"; {other} would do" if gpu.peak_tflop_per_s(other) else ""
    reason = f"{gpu.gpu_id} has no {precision} unit{hint}"
    return Rejection(workload, gpu.gpu_id, reason, "precision", 1, 0, f"{precision} unit", precision)


def analytic_services(
    service: Service,
    gpu: Gpu,
    model: LlmArchitecture,
    largest_node: int,
    found: Found | None = None,
) -> tuple[list[ServiceEstimate], list[Rejection]]:
    """Deployments of a service worth considering on a GPU type, and what was rejected or dropped.

    `found` holds the deployments on all GPU types (`best_batches`); they are searched here where it is not given.
    """
    found = best_batches(service, model, [(gpu, largest_node)]) if found is None else found
    rejections = refused_sizes(service, gpu, model, largest_node)
    layouts = replica_layouts(service, model, largest_node)
    candidates: list[Candidate] = []
    for weights in formats_of(service):
        if kernel_for(gpu, weights) is None:
            rejections.append(no_unit_for(service.name, gpu, weights))
            continue
        copies = [found.copies[gpu.gpu_id, weights, layout] for layout in layouts]
        for stage in stages_of(service):
            tried = [_candidate(service, gpu, copy, found, stage) for copy in copies]
            rejections += _misses(tried)
            candidates.extend(tried)
    estimates, dropped = _kept(service, candidates)
    rejections += _nothing_apart(service, gpu)
    return estimates, rejections + dropped + _unserved_classes(estimates, candidates)


def _nothing_apart(service: Service, gpu: Gpu) -> Iterator[Rejection]:
    """Classes that stages cannot serve, where nothing else is allowed: their answers have no token after the first."""
    for shape in request_shapes(service) if service.disaggregated == "required" else ():
        if not serves_in("decode", shape):
            reason = f"class {shape.name}: an answer of {shape.output:g} tokens leaves nothing to do after the prompt"
            unit = "output tokens"
            yield Rejection(service.name, gpu.gpu_id, reason, "stage", LEAST_OUTPUT, shape.output, unit, "decode")


def _misses(tried: Sequence[Candidate]) -> list[Rejection]:
    """The nearest miss of each layout that serves no class; one for all where none serves any."""
    failed = [[r for _, r in c.failures] for c in tried if c.estimate is None and c.failures]
    if len(failed) == len(tried) and failed:
        return [nearest_miss([r for each in failed for r in each])]
    return [nearest_miss(each) for each in failed]


def _kept(service: Service, candidates: Sequence[Candidate]) -> tuple[list[ServiceEstimate], list[Rejection]]:
    """The best whole deployments, and the best of each stage and format (which need partners of their format)."""
    by_deployment = {c.estimate.deployment: c for c in candidates if c.estimate is not None}
    groups: dict[tuple[str, str], list[ServiceEstimate]] = {}
    for candidate in by_deployment.values():
        if candidate.estimate is not None:
            deployment = candidate.estimate.deployment
            part = (deployment.stage, deployment.weights if deployment.stage else "")
            groups.setdefault(part, []).append(candidate.estimate)
    estimates: list[ServiceEstimate] = []
    dropped: list[Rejection] = []
    for group in groups.values():
        kept, worse = without_dominated(group)
        estimates += [_with_steps(service, e, by_deployment[e.deployment]) for e in kept]
        dropped += worse
    return estimates, dropped


def _with_steps(service: Service, estimate: ServiceEstimate, candidate: Candidate) -> ServiceEstimate:
    made_from = (candidate.replica, candidate.memory, candidate.points)
    return replace(estimate, steps=service_steps(*made_from, estimate, pessimism_of(service)))


def _unserved_classes(estimates: Sequence[ServiceEstimate], candidates: Sequence[Candidate]) -> list[Rejection]:
    """Why a class is served by no kept deployment although others are."""
    if not estimates:
        return []
    served = {c.request_class for estimate in estimates for c in estimate.classes}
    failures: dict[str, list[Rejection]] = {}
    for name, rejection in (failure for candidate in candidates for failure in candidate.failures):
        if name not in served:
            failures.setdefault(name, []).append(rejection)
    return [nearest_miss(found) for found in failures.values()]


def nearest_miss(rejections: Sequence[Rejection]) -> Rejection:
    """The rejection that came closest: for latency (it fits in memory) before memory, then the least gap."""
    return min(rejections, key=lambda r: (r.resource == "memory", abs(r.required - r.available)))


def _candidate(service: Service, gpu: Gpu, copy: Copy, found: Found, stage: Stage) -> Candidate:
    replica = copy.replica
    points: list[tuple[RequestShape, OperatingPoint]] = []
    failures: list[tuple[str, Rejection]] = []
    for shape in request_shapes(service):
        place = Place(gpu.gpu_id, replica.weights, replica.layout, shape.name, stage)
        choice = found.choices.get(place)
        if not serves_in(stage, shape):
            continue
        if place not in found.choices:
            failures.append((shape.name, memory_rejection(service, gpu, replica, shape, stage)))
        elif choice is None:
            failures.append((shape.name, _latency_rejection(service, gpu, replica, shape, stage)))
        else:
            point = _planned(service, stage, replica, shape, choice.batch)
            points.append((shape, replace(point, utilisation_cap=choice.utilisation_cap)))
    estimate = _estimate(service, gpu, copy, points, stage) if points else None
    return Candidate(replica, copy.memory, tuple(points), tuple(failures), estimate)


def _planned(service: Service, stage: Stage, replica: Replica, shape: RequestShape, batch: int) -> OperatingPoint:
    """Latencies as they are held against targets; replica time in the middle of its range."""
    point = point_of_stage(stage, service)(replica, shape, batch)
    return replace(at_high_end(point, pessimism_of(service)), seconds=point.seconds)


def _estimate(
    service: Service, gpu: Gpu, copy: Copy, points: Sequence[tuple[RequestShape, OperatingPoint]], stage: Stage
) -> ServiceEstimate:
    replica, cap = copy.replica, max(point.utilisation_cap for _, point in points)
    classes = (class_estimate(shape, point, cap, needs_in(stage, replica, shape, point)) for shape, point in points)
    return ServiceEstimate(
        workload=service.name,
        gpu_id=gpu.gpu_id,
        deployment=deployment_of(replica, max(point.batch for _, point in points), stage),
        classes=tuple(shown_times(found, stage) for found in classes),
        utilisation_cap=cap,
        free_memory_bytes=copy.memory.free_bytes,
        effective_flop_per_s=max(replica.gemm_flop_per_s, replica.attention_flop_per_s),
        effective_bytes_per_s=replica.weight_bytes_per_s,
        source=ESTIMATE_SOURCE,
        low_factor=THROUGHPUT_RANGE.low_factor,
        high_factor=THROUGHPUT_RANGE.high_factor,
    )


def deployment_of(replica: Replica, batch: float, stage: Stage = "") -> Deployment:
    """Deployment record of a replica at a batch; a replica stays within a node."""
    return Deployment(
        gpus_per_replica=replica.gpus,
        tensor_parallel=replica.tensor_parallel,
        pipeline_parallel=replica.pipeline_parallel,
        weights=replica.weights,
        kv=replica.kv,
        batch=batch,
        least_gpus_per_node=replica.gpus,
        data_parallel=replica.data_parallel,
        expert_parallel=replica.expert_parallel,
        stage=stage,
    )


def memory_rejection(
    workload: Service | Batch, gpu: Gpu, replica: Replica, shape: RequestShape, stage: Stage = ""
) -> Rejection:
    """Rejection for memory: what weights, workspace and one request need, what the replica's GPUs hold."""
    memory = memory_of(gpu, replica)
    required = least_serving_bytes(memory, replica, [shape], stage)
    enough = None if stage else _enough_gpus(gpu, replica, shape)
    hint = f"; {enough} GPUs per replica would do" if enough else ""
    weights_gb = memory.weight_bytes / BYTES_PER_GB
    size = f"{weights_gb:.1f}" if weights_gb < _WRITTEN_OUT_GB else f"{weights_gb:.4g}"
    held = "two prompts" if stage == "prefill" else "one request"
    reason = (
        f"{replica.weights} weights ({size} GB) and {held} of "
        f"class {shape.name} do not fit the memory of {replica.gpus} × {gpu.gpu_id}{hint}"
    )
    return Rejection(
        workload.name,
        gpu.gpu_id,
        reason,
        "memory",
        required / BYTES_PER_GB,
        memory.usable_bytes / BYTES_PER_GB,
        "GB",
        deployment_of(replica, 0, stage).label,
    )


def _enough_gpus(gpu: Gpu, replica: Replica, shape: RequestShape) -> int | None:
    for size in legal_tensor_parallel_sizes(replica.model, _LARGEST_HINT):
        larger = replica_of(gpu, replica.model, replica.weights, replica.kv, replica.kernel, size)
        memory = memory_of(gpu, larger)
        if least_serving_bytes(memory, larger, [shape]) <= memory.usable_bytes:
            return size
    return None


def _latency_rejection(service: Service, gpu: Gpu, replica: Replica, shape: RequestShape, stage: Stage) -> Rejection:
    point = _planned(service, stage, replica, shape, 1)
    missed = missed_target(point, targets_of(service, shape, stage).latency)
    label = deployment_of(replica, 0, stage).label
    if missed is None:
        reason = f"class {shape.name}: no utilisation leaves 95 % of requests within their target"
        return Rejection(service.name, gpu.gpu_id, reason, "latency", 0, 0, "ms", label)
    high = " at the high end of its range" if service.plan_for == "low" else ""
    where = f"{replica.gpus} × {gpu.gpu_id}{high}"
    reason = f"class {shape.name}: a lone request already misses {missed.target} on {where}"
    return Rejection(service.name, gpu.gpu_id, reason, "latency", missed.required_ms, missed.available_ms, "ms", label)
