"""What may stand where: estimates on options, deployments of services, ways of running a job. No plan needed."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from optimizer.audit.document import OptionRecord
from optimizer.estimator.types import JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import AnyJob, AnyWorkload, Service

AnyEstimate = ServiceEstimate | JobEstimate
ROUNDING = 1e-9


def belongs(estimate: AnyEstimate, option: OptionRecord) -> bool:
    """Whether an estimate holds for an option: its GPU type, its offer, its node size, and nodes large enough."""
    return (
        estimate.gpu_id == option.gpu_id
        and estimate.option in (None, option.option_id)
        and estimate.gpus_per_node in (None, option.gpus_per_node)
        and estimate.deployment.least_gpus_per_node <= option.gpus_per_node
    )


def place_allowed(workload: AnyWorkload, option: OptionRecord) -> bool:
    """Whether a workload's data may go to an option: anywhere by default, always to the buyer's own site."""
    regions = workload.data.regions
    if not regions or option.purchase_option == "owned":
        return True
    return any(fnmatchcase(option.region.lower(), pattern.lower()) for pattern in regions)


def usable_estimates(workload: str, option: OptionRecord, estimates: Sequence[AnyEstimate]) -> list[int]:
    """Numbers of a workload's estimates for an option: those made on this very offer, if there are any."""
    fitting = [i for i, e in enumerate(estimates) if e.workload == workload and belongs(e, option)]
    return [i for i in fitting if estimates[i].option == option.option_id] or fitting


def gpus_kept(gpus_per_replica: int, gpus_per_node: int) -> float:
    """GPUs that a replica keeps from others: a node holds ⌊n/g⌋ of them, a larger one fills ⌈g/n⌉ whole nodes."""
    if gpus_per_replica <= gpus_per_node:
        return gpus_per_node / (gpus_per_node // gpus_per_replica)
    return float(-(-gpus_per_replica // gpus_per_node) * gpus_per_node)


def kept_per_gpu(option: OptionRecord, estimate: JobEstimate) -> float:
    """GPUs kept from others per GPU working: groups that do not divide a node waste the rest."""
    group = estimate.deployment.gpus_per_replica
    return gpus_kept(group, option.gpus_per_node) / group


# --- services ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Possible:
    """A deployment of a service that may stand on an option."""

    service: str
    option: OptionRecord
    number: int
    estimate: ServiceEstimate

    @property
    def label(self) -> str:
        """Option and deployment, as constraints name them."""
        return f"{self.option.option_id} {self.estimate.deployment.label}".strip()


def possible_deployments(
    services: Iterable[Service], options: Sequence[OptionRecord], estimates: Sequence[ServiceEstimate]
) -> Iterator[Possible]:
    """Every deployment that may stand on every option."""
    for service in services:
        for option in options:
            if place_allowed(service, option):
                for number in usable_estimates(service.name, option, estimates):
                    yield Possible(service.name, option, number, estimates[number])


# --- jobs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Member:
    """An offer with the estimate by which a job runs on it."""

    option: OptionRecord
    number: int
    estimate: JobEstimate
    useful_share: float


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a job: offers that may work on it together, and the GPUs at once that are allowed."""

    members: tuple[Member, ...]
    least_gpus: int
    most_gpus: int | None

    def holds(self, option_id: str, estimate: int) -> bool:
        """Whether work on an option by an estimate is done this way."""
        return any(m.option.option_id == option_id and m.number == estimate for m in self.members)

    def least_nodes(self, member: Member) -> int:
        """Nodes that the least size needs at once: ⌈g/n⌉."""
        gpus = self.least_gpus * kept_per_gpu(member.option, member.estimate)
        return math.ceil(gpus / member.option.gpus_per_node - ROUNDING)

    def nodes_for(self, member: Member, gpus: float) -> float:
        """Least mean number of nodes for a mean of `gpus` kept: a job of g GPUs at once holds ⌈g/n⌉ nodes.

        Where a size between least and most fills its nodes, averages lie above the line through full nodes, and beyond
        those above the line to the most GPUs; else the most GPUs use their nodes best.
        """
        per_node = member.option.gpus_per_node
        if self.most_gpus is None:
            return gpus / per_node
        top = self.most_gpus * kept_per_gpu(member.option, member.estimate)
        full = math.floor(top / per_node + ROUNDING)
        if full < self.least_nodes(member):
            return gpus * math.ceil(top / per_node - ROUNDING) / top
        rest = top - full * per_node
        beyond = gpus - full * per_node
        return full + beyond / rest if beyond > 0 and rest > ROUNDING else gpus / per_node


Useful = Callable[[OptionRecord, JobEstimate], float]
"""Share of paid hours in which a job gets on."""


def ways_of(
    job: AnyJob, options: Sequence[OptionRecord], estimates: Sequence[JobEstimate], useful: Useful
) -> list[Way]:
    """All ways in which a job may run, by what its `spread` allows to work together and by the estimates' sizes."""
    groups: dict[tuple[object, ...], list[Member]] = {}
    for option in options:
        if place_allowed(job, option) and (job.interruptible or not option.interruptible):
            for number in usable_estimates(job.name, option, estimates):
                member = Member(option, number, estimates[number], useful(option, estimates[number]))
                if member.useful_share == 0:
                    continue
                groups.setdefault(_together(job, member), []).append(member)
    ways = []
    for members in groups.values():
        least = max(job.min_gpus, min(m.estimate.min_gpus for m in members))
        limits = (job.max_gpus, members[0].estimate.max_gpus)
        most = min((limit for limit in limits if limit is not None), default=None)
        if most is None or most >= least:
            ways.append(Way(tuple(members), least, most))
    return ways


def _together(job: AnyJob, member: Member) -> tuple[object, ...]:
    """Members alike in this may work together."""
    option, estimate = member.option, member.estimate
    size = (estimate.min_gpus, estimate.max_gpus)
    if job.spread == "any":
        return ("any", size)
    way = estimate.measured or estimate.deployment
    if job.spread == "one-gpu-type":
        return (option.gpu_id, size, way)
    return ((option.gpu_id, option.gpus_per_node, option.provider, option.region), size, way)
