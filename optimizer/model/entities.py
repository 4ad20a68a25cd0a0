"""What an instance is made of: servers, demands, orders. Plain numbers, every index resolved, no solver objects."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from optimizer.estimator.types import Estimates, JobEstimate, ServiceEstimate, Stage
from optimizer.estimator.workloads import Service
from optimizer.model.options import LeftOut, Option
from optimizer.model.timegrid import SAME_MONTH, Cell, TimeGrid
from optimizer.problem.schema import Problem


@dataclass(frozen=True, slots=True)
class Server:
    """A deployment of a service on one option: what a replica there can do.

    `occupied_gpus` are the GPUs of the node that one replica keeps from others; `loads` the replicas needed per
    request/s of each class that it can serve, utilisation cap and availability included.
    """

    index: int
    workload: str
    option: Option
    estimate: ServiceEstimate
    occupied_gpus: float
    loads: Mapping[str, float]
    label: str

    @property
    def stage(self) -> Stage:
        """`prefill` or `decode`, where it does prompts or outputs alone."""
        return self.estimate.deployment.stage

    @property
    def handover(self) -> tuple[str, str, str]:
        """Stages hand requests over among servers alike in this: provider and region (or own site), weight format."""
        own = self.option.purchase_option == "owned"
        place = ("own site", "") if own else (self.option.provider, self.option.region)
        return (*place, self.estimate.deployment.weights)

    def load(self, request_class: str) -> float | None:
        """Replicas needed per request/s of a class; None: cannot serve it."""
        return self.loads.get(request_class)


@dataclass(frozen=True, slots=True)
class RateDemand:
    """Rates of one request class of a service: `rate_per_s[period][slice]`, headroom included."""

    workload: str
    request_class: str
    rate_per_s: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to run a job: the pools it would use together, each with its yield.

    One that is not `tried` keeps its number in rows and plans, and has no columns of work.
    """

    label: str
    gpu_id: str
    min_gpus: int
    max_gpus: int | None
    members: tuple[tuple[Option, JobEstimate], ...]
    shares: tuple[float, ...]
    """Useful share of the paid hours on each member."""
    tried: bool = True


@dataclass(frozen=True, slots=True)
class VolumeDemand:
    """One run of a job: an amount of work inside a window, and the alternatives for doing it."""

    name: str
    workload: str
    amount: float
    unit: str
    start_month: float
    end_month: float
    cells: tuple[Cell, ...]
    alternatives: tuple[Alternative, ...]
    interruptible_share: float
    days: float | None = None
    """Days in it, where each day's work is done that day."""


@dataclass(frozen=True, slots=True)
class Order:
    """A possible acquisition: nodes of an option ordered at the start of a period."""

    option: Option
    period: int
    order_month: float
    arrival_month: float
    end_month: float

    def on_order_or_held(self, month: float) -> bool:
        """Whether its nodes count against the option's stock at `month`."""
        return self.order_month <= month + SAME_MONTH and month < self.end_month - SAME_MONTH

    def in_service(self, month: float) -> bool:
        """Whether its nodes are usable at `month`."""
        return self.arrival_month <= month + SAME_MONTH and month < self.end_month - SAME_MONTH


@dataclass(frozen=True, slots=True)
class Instance:
    """All that the MILP is built from."""

    problem: Problem
    grid: TimeGrid
    options: tuple[Option, ...]
    orders: tuple[Order, ...]
    servers: tuple[Server, ...]
    rate_demands: tuple[RateDemand, ...]
    volume_demands: tuple[VolumeDemand, ...]
    estimates: Estimates
    left_out: tuple[LeftOut, ...] = field(default=())
    placements: Mapping[tuple[int, int], frozenset[int]] | None = None
    """Servers that may serve in a (block, slice); None: all of them everywhere."""
    most_routes: float = 20_000
    """Shares of degraded service up to which spare capacity routes every loss for itself (`model/spare.py`)."""

    @property
    def rate_per_year(self) -> float:
        """Effective annual discount rate."""
        return self.problem.finance.discount_rate

    @property
    def held_options(self) -> tuple[Option, ...]:
        """Options held for a term, or owned."""
        return tuple(o for o in self.options if o.held)

    @property
    def rented_options(self) -> tuple[Option, ...]:
        """Options paid by the hour."""
        return tuple(o for o in self.options if not o.held)

    def cells(self) -> list[Cell]:
        """All cells of the grid."""
        return self.grid.cells()

    def startup_hours(self, workload: str) -> float:
        """Hours that a replica of a service takes to start."""
        return next((w.startup for w in self.problem.workloads if isinstance(w, Service) and w.name == workload), 0.0)

    def existing_in_service(self, option: Option, month: float) -> int:
        """Nodes already held that are still there at `month`."""
        return option.existing_nodes if month < option.held_until(0.0) - SAME_MONTH else 0


def make_server(index: int, option: Option, estimate: ServiceEstimate) -> Server:
    """A deployment placed on an option."""
    able = estimate.utilisation_cap * option.productive_share
    return Server(
        index,
        estimate.workload,
        option,
        estimate,
        occupied_gpus(estimate.deployment.gpus_per_replica, option.gpus_per_node),
        {c.request_class: c.replica_seconds_per_request / able for c in estimate.classes},
        f"{option.option_id} {estimate.deployment.label}".strip(),
    )


def occupied_gpus(gpus_per_replica: int, gpus_per_node: int) -> float:
    """GPUs that a replica keeps from others: a node holds ⌊n/g⌋ whole replicas, a larger one whole nodes."""
    if gpus_per_replica > gpus_per_node:
        return float(math.ceil(gpus_per_replica / gpus_per_node) * gpus_per_node)
    return gpus_per_node / (gpus_per_node // gpus_per_replica)
