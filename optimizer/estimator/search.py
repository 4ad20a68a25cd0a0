"""Operating batches of all deployments of a service at once: the search of `best_point`, over arrays (numpy).

Every (GPU, weight format, replica size, class) is one element; the formulas are those of single deployments, which
take arrays as well as numbers. Only the batch and its utilisation cap are taken from here: the figures of a plan are
computed anew for the one chosen, by the same formulas on plain numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.constants import constant
from optimizer.estimator.deployments import legal_tensor_parallel_sizes, tensor_parallel_is_legal
from optimizer.estimator.inference import (
    SMALLER_BATCHES,
    OperatingPoint,
    RequestShape,
    batch_limit,
    memory_of,
    operating_point,
    request_shapes,
)
from optimizer.estimator.memory import ServingMemory
from optimizer.estimator.queueing import CAP_ITERATIONS
from optimizer.estimator.roofline import Link, Replica, kernel_for, replica_of
from optimizer.estimator.workloads import Batch, Latency, Service
from optimizer.units import MS_PER_S

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class Place(NamedTuple):
    """A deployment and a class of requests."""

    gpu_id: str
    weights: str
    tensor_parallel: int
    pipeline_parallel: int
    request_class: str


class Choice(NamedTuple):
    """Batch with the least replica time at its utilisation cap."""

    batch: int
    utilisation_cap: float


@dataclass(frozen=True, slots=True)
class Copy:
    """A replica and the memory of its GPUs."""

    replica: Replica
    memory: ServingMemory


@dataclass(frozen=True, slots=True)
class Found:
    """All deployments of a service by GPU, format and size, and the batch that suits each of its classes.

    Places without room for one request have no choice; a choice is None where a latency target is missed.
    """

    copies: dict[tuple[str, str, int, int], Copy]
    choices: dict[Place, Choice | None]


def formats_of(workload: Service | Batch) -> list[str]:
    """Weight formats that the buyer allows."""
    return [workload.weights] if isinstance(workload.weights, str) else list(workload.weights)


def replica_layouts(workload: Service | Batch, model: LlmArchitecture, largest_node: int) -> list[tuple[int, int]]:
    """Tensor and pipeline parallel sizes to try: those that fit a node together, a stage being a layer at least."""
    wanted = workload.pipeline_parallel
    stages = [wanted] if isinstance(wanted, int) else sorted(set(wanted))
    sizes = tensor_parallel_sizes(workload, model, largest_node)
    return [(size, pp) for pp in stages for size in sizes if size * pp <= largest_node and pp <= model.layers]


def tensor_parallel_sizes(workload: Service | Batch, model: LlmArchitecture, largest_node: int) -> list[int]:
    """Tensor-parallel sizes to try: the buyer's that are legal and fit a node, else all legal ones."""
    wanted = workload.gpus_per_replica
    if wanted is None:
        return list(legal_tensor_parallel_sizes(model, largest_node))
    sizes = [wanted] if isinstance(wanted, int) else sorted(set(wanted))
    return [size for size in sizes if size <= largest_node and tensor_parallel_is_legal(model, size)]


def best_batches(service: Service, model: LlmArchitecture, cards: Sequence[tuple[Gpu, int]]) -> Found:
    """Best batch of every deployment of `service`; `cards` are GPU types with the largest node of each."""
    copies = {
        (gpu.gpu_id, copy.replica.weights, copy.replica.tensor_parallel, copy.replica.pipeline_parallel): copy
        for gpu, node in cards
        for copy in _copies(service, gpu, model, node)
    }
    gpus = {gpu.gpu_id: gpu for gpu, _ in cards}
    choices: dict[Place, Choice | None] = {}
    for shape in request_shapes(service):
        limits = {
            Place(*key, shape.name): batch_limit(gpus[key[0]], service, copy.memory, copy.replica, shape)
            for key, copy in copies.items()
        }
        room = {place: limit for place, limit in limits.items() if limit >= 1}
        if room:
            replicas = [copies[place[:4]].replica for place in room]
            chosen = _choose(replicas, list(room.values()), shape, service.latency, service.utilisation_cap)
            choices.update(zip(room, chosen, strict=True))
    return Found(copies, choices)


def _copies(service: Service, gpu: Gpu, model: LlmArchitecture, largest_node: int) -> Iterator[Copy]:
    for weights in formats_of(service):
        kernel = kernel_for(gpu, weights)
        if kernel is None:
            continue
        for size, stages in replica_layouts(service, model, largest_node):
            replica = replica_of(gpu, model, weights, service.kv, kernel, size, stages)
            yield Copy(replica, memory_of(gpu, replica))


_SHARED = {"model", "weights", "kv", "kernel", "engine", "mean_bits"}


def stacked(replicas: Sequence[Replica]) -> Replica:
    """Replicas of one model and engine as one whose numbers are arrays."""
    import numpy as np

    numbers: dict[str, Any] = {
        field.name: np.array([getattr(copy, field.name) for copy in replicas], dtype=float)
        for field in fields(Replica)
        if field.name not in _SHARED and field.name != "link"
    }
    latency: Any = np.array([copy.link.latency_s for copy in replicas])
    rate: Any = np.array([copy.link.bytes_per_s for copy in replicas])
    return replace(replicas[0], link=Link("stacked", latency, rate), **numbers)


def _choose(
    replicas: Sequence[Replica], limits: Sequence[int], shape: RequestShape, latency: Latency, own_cap: float | None
) -> list[Choice | None]:
    import numpy as np

    copies = stacked(replicas)
    largest = _largest_batches(copies, shape, latency, np.array(limits, dtype=float))
    batches, caps = _best(copies, shape, latency, largest, own_cap)
    return [
        Choice(int(batch), float(cap)) if cap > 0 else None
        for batch, cap in zip(batches.tolist(), caps.tolist(), strict=True)
    ]


def _points(copies: Replica, shape: RequestShape, batches: "Array") -> OperatingPoint:
    whole: Any = batches
    return operating_point(copies, shape, whole)


def _missed(point: Any, latency: Latency, size: int) -> "Array":
    """Which elements miss a latency target without any waiting."""
    import numpy as np

    missed = np.zeros(size, dtype=bool)
    for target_ms, seconds in (
        (latency.p95_ttft, point.ttft_s),
        (latency.p95_tpot, point.tpot_s),
        (latency.p95_end_to_end, point.end_to_end_s),
    ):
        if target_ms is not None and seconds is not None:
            missed |= seconds * MS_PER_S > target_ms
    return missed


def _largest_batches(copies: Replica, shape: RequestShape, latency: Latency, limits: "Array") -> "Array":
    """Largest batch up to its limit that meets the targets (0: none), by bisection; latency grows with batch."""
    import numpy as np

    low = np.where(_missed(_points(copies, shape, limits), latency, limits.size), 0.0, limits)
    high = np.where(low > 0, low, limits)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        open_ = high - low > 1
        missed = _missed(_points(copies, shape, np.maximum(middle, 1.0)), latency, limits.size)
        low = np.where(open_ & ~missed, middle, low)
        high = np.where(open_ & missed, middle, high)
    return low


def _best(
    copies: Replica, shape: RequestShape, latency: Latency, largest: "Array", own_cap: float | None
) -> "tuple[Array, Array]":
    """Batch with the least replica time at its cap and that cap (0: none), trying ever smaller batches."""
    import numpy as np

    highest = constant("highest_utilisation")
    best_batch, best_cap = np.zeros(largest.size), np.zeros(largest.size)
    best_score = np.full(largest.size, np.inf)
    trying, last = largest > 0, largest + 1
    for share in (1.0, *SMALLER_BATCHES):
        batches = np.maximum(1.0, np.floor(largest * share))
        smaller = trying & (batches < last)
        if not smaller.any():
            continue
        point: Any = _points(copies, shape, batches)
        seconds = point.seconds.total
        if own_cap is None:
            hopeless = smaller & (seconds / highest >= best_score)
            trying, smaller = trying & ~hopeless, smaller & ~hopeless
            caps = _caps(batches, seconds * batches, _slack(point, latency))
        else:
            caps = np.full(largest.size, own_cap)
        score = np.divide(seconds, caps, out=np.full(largest.size, np.inf), where=caps > 0)
        better = smaller & (score < best_score)
        best_batch, best_cap = np.where(better, batches, best_batch), np.where(better, caps, best_cap)
        best_score = np.where(better, score, best_score)
        last = np.where(smaller, batches, last)
        trying &= ~(smaller & (caps >= (0.0 if own_cap is not None else highest)))
    return best_batch, best_cap


def _slack(point: Any, latency: Latency) -> "Array | None":
    """Time a request may wait for a slot before a target is missed; None without such a target."""
    import numpy as np

    slacks = [
        target_ms / MS_PER_S - seconds
        for target_ms, seconds in ((latency.p95_ttft, point.ttft_s), (latency.p95_end_to_end, point.end_to_end_s))
        if target_ms is not None
    ]
    return None if not slacks else np.min(np.stack(slacks), axis=0)


def _caps(servers: "Array", residence_s: "Array", slack_s: "Array | None") -> "Array":
    """Highest utilisation at which 95 % wait no longer than the slack (`queueing.utilisation_cap`), by bisection."""
    import numpy as np

    highest = constant("highest_utilisation")
    if slack_s is None:
        return np.full(servers.size, highest)
    low, high = np.zeros(servers.size), np.full(servers.size, highest)
    fits = _waiting(high, servers, residence_s) <= slack_s
    for _ in range(CAP_ITERATIONS):
        middle = (low + high) / 2
        within = _waiting(middle, servers, residence_s) <= slack_s
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return np.where(fits, highest, low)


def _waiting(utilisation: "Array", servers: "Array", residence_s: "Array") -> "Array":
    """Waiting time that 95 % do not exceed (`queueing.waiting_percentile_s`)."""
    import numpy as np

    tail = 1 - constant("latency_percentile")
    probability = utilisation ** (np.sqrt(2 * (servers + 1)) - 1)
    waits = np.log(np.maximum(probability, tail) / tail)
    waiting: Array = residence_s / (servers * (1 - utilisation)) * waits
    return waiting
