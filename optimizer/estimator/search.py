"""Operating batches of all deployments of a service at once: the search of `best_point`, over arrays (numpy).

Every (GPU, weight format, layout, class) is one element; the formulas are those of single deployments, which
take arrays as well as numbers. Only the batch and its utilisation cap are taken from here: the figures of a plan are
computed anew for the one chosen, by the same formulas on plain numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.constants import constant
from optimizer.estimator.inference import (
    SMALLER_BATCHES,
    RequestShape,
    at_high_end,
    memory_of,
    pessimism_of,
    request_shapes,
)
from optimizer.estimator.kernels import Link, kernel_for
from optimizer.estimator.layouts import Layout, replica_layouts
from optimizer.estimator.memory import ServingMemory
from optimizer.estimator.queueing import CAP_ITERATIONS
from optimizer.estimator.roofline import Replica, replica_of
from optimizer.estimator.stages import (
    StageTargets,
    point_of_stage,
    serves_in,
    stage_batch_limit,
    stages_of,
    targets_of,
)
from optimizer.estimator.types import Stage
from optimizer.estimator.workloads import Batch, Latency, Service
from optimizer.units import MS_PER_S

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class Place(NamedTuple):
    """A deployment and a class of requests."""

    gpu_id: str
    weights: str
    layout: Layout
    request_class: str
    stage: Stage = ""


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

    copies: dict[tuple[str, str, Layout], Copy]
    choices: dict[Place, Choice | None]


def formats_of(workload: Service | Batch) -> list[str]:
    """Weight formats that the buyer allows."""
    return [workload.weights] if isinstance(workload.weights, str) else list(workload.weights)


def best_batches(service: Service, model: LlmArchitecture, cards: Sequence[tuple[Gpu, int]]) -> Found:
    """Best batch of every deployment of `service`; `cards` are GPU types with the largest node of each."""
    copies = {
        (gpu.gpu_id, copy.replica.weights, copy.replica.layout): copy
        for gpu, node in cards
        for copy in _copies(service, gpu, model, node)
    }
    gpus = {gpu.gpu_id: gpu for gpu, _ in cards}
    choices: dict[Place, Choice | None] = {}
    for stage in stages_of(service):
        for shape in (shape for shape in request_shapes(service) if serves_in(stage, shape)):
            room: dict[Place, int] = {}
            for key, copy in copies.items():
                limit = stage_batch_limit(gpus[key[0]], service, copy.memory, copy.replica, shape, stage)
                if limit >= 1:
                    room[Place(*key, shape.name, stage)] = limit
            if room:
                replicas = [copies[place[:3]].replica for place in room]
                search = _Search(stacked(replicas), shape, targets_of(service, shape, stage), service, stage)
                choices.update(zip(room, search.choices(list(room.values())), strict=True))
    return Found(copies, choices)


def _copies(service: Service, gpu: Gpu, model: LlmArchitecture, largest_node: int) -> Iterator[Copy]:
    for weights in formats_of(service):
        kernel = kernel_for(gpu, weights)
        if kernel is None:
            continue
        for layout in replica_layouts(service, model, largest_node):
            replica = replica_of(gpu, model, weights, service.kv, kernel, *layout)
            yield Copy(replica, memory_of(gpu, replica))


_SHARED = {"model", "weights", "kv", "kernel", "engine", "mean_bits", "spreads_experts"}


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
    spread = any(copy.spreads_experts for copy in replicas)
    return replace(replicas[0], link=Link("stacked", latency, rate), spreads_experts=spread, **numbers)


class _Search:
    """The batches of one class, or of one stage of it, on all its deployments (`copies`)."""

    def __init__(
        self, copies: Replica, shape: RequestShape, targets: StageTargets, service: Service, stage: Stage
    ) -> None:
        self.copies, self.shape = copies, shape
        self.latency, self.tail = targets.latency, targets.tail
        self.own_cap = service.utilisation_cap
        self._point_at: Any = point_of_stage(stage, service)
        self._pessimism = pessimism_of(service)

    def choices(self, limits: Sequence[int]) -> list[Choice | None]:
        """Batch and cap of every deployment, `limits` being the most by memory and engine; None: a target is missed."""
        import numpy as np

        batches, caps = self._best(self._largest_batches(np.array(limits, dtype=float)))
        return [
            Choice(int(batch), float(cap)) if cap > 0 else None
            for batch, cap in zip(batches.tolist(), caps.tolist(), strict=True)
        ]

    def _points(self, batches: "Array") -> Any:
        return at_high_end(self._point_at(self.copies, self.shape, batches), self._pessimism)

    def _missed(self, batches: "Array") -> "Array":
        """Which elements miss a latency target without any waiting."""
        import numpy as np

        point, latency = self._points(batches), self.latency
        missed = np.zeros(batches.size, dtype=bool)
        for target_ms, seconds in (
            (latency.p95_ttft, point.ttft_s),
            (latency.p95_tpot, point.tpot_s),
            (latency.p95_end_to_end, point.end_to_end_s),
        ):
            if target_ms is not None and seconds is not None:
                missed |= seconds * MS_PER_S > target_ms
        return missed

    def _largest_batches(self, limits: "Array") -> "Array":
        """Largest batch up to its limit that meets the targets (0: none), by bisection; latency grows with batch."""
        import numpy as np

        low = np.where(self._missed(limits), 0.0, limits)
        high = np.where(low > 0, low, limits)
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            open_ = high - low > 1
            missed = self._missed(np.maximum(middle, 1.0))
            low = np.where(open_ & ~missed, middle, low)
            high = np.where(open_ & missed, middle, high)
        return low

    def _best(self, largest: "Array") -> "tuple[Array, Array]":
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
            point = self._points(batches)
            seconds = point.seconds.total
            if self.own_cap is None:
                hopeless = smaller & (seconds / highest >= best_score)
                trying, smaller = trying & ~hopeless, smaller & ~hopeless
                slack = _slack(point, self.latency)
                caps = np.zeros(largest.size)
                caps[smaller] = _caps(
                    batches[smaller], (seconds * batches)[smaller], None if slack is None else slack[smaller], self.tail
                )
            else:
                caps = np.full(largest.size, self.own_cap)
            score = np.divide(seconds, caps, out=np.full(largest.size, np.inf), where=caps > 0)
            better = smaller & (score < best_score)
            best_batch, best_cap = np.where(better, batches, best_batch), np.where(better, caps, best_cap)
            best_score = np.where(better, score, best_score)
            last = np.where(smaller, batches, last)
            trying &= ~(smaller & (caps >= (0.0 if self.own_cap is not None else highest)))
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


def _caps(servers: "Array", residence_s: "Array", slack_s: "Array | None", tail: float) -> "Array":
    """Highest utilisation at which all but `tail` wait no longer than the slack (`queueing.utilisation_cap`)."""
    import numpy as np

    highest = constant("highest_utilisation")
    if slack_s is None:
        return np.full(servers.size, highest)
    exponent = np.sqrt(2 * (servers + 1)) - 1
    allowed = slack_s * servers / residence_s

    def fits(utilisation: "Array") -> "Array":
        """Whether the wait (`queueing.waiting_percentile_s`) is within the slack, both in residence ÷ servers."""
        late = np.log(np.maximum(utilisation**exponent, tail) / tail)
        within: Array = late <= allowed * (1 - utilisation)
        return within

    low, high = np.zeros(servers.size), np.full(servers.size, highest)
    at_highest = fits(high)
    for _ in range(CAP_ITERATIONS):
        middle = (low + high) / 2
        within = fits(middle)
        low, high = np.where(within, middle, low), np.where(within, high, middle)
    return np.where(at_highest, highest, low)
