"""Checks of services: what comes is served, by whole replicas that can do it, and not too much on spot."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from optimizer.audit.case import Case, Key
from optimizer.audit.document import OptionRecord
from optimizer.audit.fitting import gpus_kept
from optimizer.audit.report import Checker
from optimizer.estimator.types import ClassEstimate, ServiceEstimate

Place = tuple[str, str, int, Key]
"""(service, option, estimate, cell)."""


@dataclass(frozen=True)
class Station:
    """The replicas of one deployment on one option in one cell, and what they serve (requests/s by class)."""

    service: str
    option: OptionRecord
    estimate: ServiceEstimate
    key: Key
    replicas: int
    served: dict[str, float] = field(default_factory=dict)

    @cached_property
    def classes(self) -> dict[str, ClassEstimate]:
        """What the estimate says, by class."""
        return {c.request_class: c for c in self.estimate.classes}

    @property
    def stage(self) -> str:
        """`prefill` or `decode` where it does only prompts or only outputs, else empty."""
        return self.estimate.deployment.stage

    @property
    def gpus_kept(self) -> float:
        """GPUs of the option's nodes that one replica keeps."""
        return gpus_kept(self.estimate.deployment.gpus_per_replica, self.option.gpus_per_node)

    def replica_seconds(self, name: str) -> float:
        """Seconds of a replica per request of a class, with what availability and interruptions cost."""
        return self.classes[name].replica_seconds_per_request / self.option.productive_share

    def busy_replicas(self) -> float:
        """Replicas busy on average."""
        return sum(rate * self.replica_seconds(name) for name, rate in self.served.items())

    def needs(self, name: str) -> dict[str, float]:
        """Replicas that 1 request/s of a class needs by each resource of an analytic estimate, and by time."""
        found, estimate, share = self.classes[name], self.estimate, self.option.productive_share
        needs = {"replica_time": self.replica_seconds(name) / estimate.utilisation_cap}
        if not estimate.measured:
            in_flight_bytes = found.kv_bytes_per_sequence * found.residence_s
            needs |= {
                "compute": _over(found.flop_per_request, estimate.effective_flop_per_s) / share,
                "memory_bandwidth": _over(found.moved_bytes_per_request, estimate.effective_bytes_per_s) / share,
                "memory_capacity": _over(in_flight_bytes, estimate.free_memory_bytes) / share,
            }
        return needs


def _over(required: float, ceiling: float) -> float:
    """Replicas per request/s; 0 where the estimate states no ceiling."""
    return required / ceiling if ceiling > 0 else 0.0


def stations(case: Case) -> dict[Place, Station]:
    """Everything that serves, by place."""
    replicas = {(r.workload, r.option, r.estimate, (r.block, r.slice)): r.replicas for r in case.plan.schedule.replicas}
    served: dict[Place, dict[str, float]] = defaultdict(dict)
    for s in case.plan.schedule.served:
        served[s.workload, s.option, s.estimate, (s.block, s.slice)][s.request_class] = s.requests_per_s
    return {
        place: Station(
            service=place[0],
            option=case.options[place[1]],
            estimate=case.service_estimates[place[2]],
            key=place[3],
            replicas=replicas.get(place, 0),
            served=served.get(place, {}),
        )
        for place in dict.fromkeys((*replicas, *served))
    }


def check_services(case: Case, found: dict[Place, Station], checker: Checker) -> None:
    """Check that every rate is served in every cell, by replicas that can do it."""
    for place, station in found.items():
        _check_station(place, station, checker)
    total: dict[tuple[str, str, Key], float] = defaultdict(float)
    on_spot: dict[tuple[str, str, Key], float] = defaultdict(float)
    for station in found.values():
        for name, rate in station.served.items():
            total[station.service, name, station.key] += 0.0 if station.stage == "decode" else rate
            if station.option.interruptible:
                on_spot[station.service, name, station.key] += rate
    for (service, name, key), rate in case.rates.items():
        where = f"{service}/{name} in block {key[0]}, slice {case.cells[key].slice_name}"
        checker.equal("served", where, total.pop((service, name, key), 0.0), rate, "requests/s")
        limit = spot_share(case, service) * rate
        checker.at_most("spot share", where, on_spot[service, name, key], limit, "requests/s", rate)
    for (service, name, key), _ in total.items():
        checker.fail("served", f"{service}/{name} in block {key[0]}", "there is no such class or no demand there")
    _check_handover(case, found.values(), checker)
    _check_floor(case, found.values(), checker)


def same_network(option: OptionRecord) -> tuple[str, str]:
    """Provider and region, or the buyer's own site: what a KV cache may be handed over within."""
    return ("own site", "") if option.purchase_option == "owned" else (option.provider, option.region)


def _check_handover(case: Case, found: Iterable[Station], checker: Checker) -> None:
    """Prompts done apart are answered on the same network, by weights of the same format, in the same cell."""
    prefilled: dict[tuple[str, str, tuple[str, str, str], Key], float] = defaultdict(float)
    decoded: dict[tuple[str, str, tuple[str, str, str], Key], float] = defaultdict(float)
    for station in (s for s in found if s.stage):
        side = decoded if station.stage == "decode" else prefilled
        for name, rate in station.served.items():
            link = (*same_network(station.option), station.estimate.deployment.weights)
            side[station.service, name, link, station.key] += rate
    for place in dict.fromkeys((*prefilled, *decoded)):
        service, name, link, key = place
        where = (
            f"{service}/{name} at {' '.join(filter(None, link))} in block {key[0]}, slice {case.cells[key].slice_name}"
        )
        checker.equal("handover", where, decoded[place], prefilled[place], "requests/s")


def _check_floor(case: Case, found: Iterable[Station], checker: Checker) -> None:
    """As many replicas as a service has at least, wherever requests come."""
    there: dict[tuple[str, Key], int] = defaultdict(int)
    for station in found:
        there[station.service, station.key] += 0 if station.stage == "decode" else station.replicas
    for service, key in {(service, key) for (service, _, key), rate in case.rates.items() if rate > 0}:
        least = float(case.services[service].min_replicas)
        where = f"{service} in block {key[0]}, slice {case.cells[key].slice_name}"
        checker.at_most("least replicas", where, least, float(there[service, key]), "replicas")


def spot_share(case: Case, workload: str) -> float:
    """Most of a workload that interruptible capacity may serve."""
    limit = case.problem.limits.spot_share
    if isinstance(limit, dict):
        return limit.get(workload, 1.0)
    return 1.0 if limit is None else limit


def _check_station(place: Place, station: Station, checker: Checker) -> None:
    where = f"{place[0]} on {place[1]} by estimate {place[2]} in block {station.key[0]}, slice {station.key[1]}"
    checker.holds("whole replicas", where, station.replicas > 0, "is not a number of replicas")
    if station.served:
        checker.holds("served", where, min(station.served.values()) > 0, "serves less than nothing")
    for resource, need in resources(station):
        checker.at_most(resource, where, need, float(station.replicas), "replicas")


def resources(station: Station) -> Iterator[tuple[str, float]]:
    """Replicas needed for what a station serves, by each resource."""
    total: dict[str, float] = defaultdict(float)
    for name, rate in station.served.items():
        for resource, need in station.needs(name).items():
            total[resource] += rate * need
    yield from total.items()
