"""Check of N + k: the loss of every combination of k nodes is played through on the plan's own replicas."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

from optimizer.audit.case import Case, Key
from optimizer.audit.report import Checker
from optimizer.audit.routing import Group, most_served
from optimizer.audit.services import Place, Station, same_network
from optimizer.estimator.types import ServiceEstimate
from optimizer.estimator.workloads import Service

DEGRADED_CAP = 0.95
NodeKind = tuple[str, int]


@dataclass(frozen=True)
class Standing:
    """Replicas alike on nodes alike; `fit` of them go with a node, `loads` by class are replicas for the whole rate.

    Those that do prompts or outputs alone (`stage`) hand over within `network`.
    """

    kind: NodeKind
    replicas: int
    fit: int
    loads: dict[str, float]
    stage: str
    network: tuple[str, ...]

    def after(self, nodes: int) -> int:
        """Replicas left when that many of its nodes go, each as full as it can be."""
        return max(0, self.replicas - nodes * self.fit)


def check_spare(case: Case, stations: dict[Place, Station], checker: Checker) -> None:
    """Check every service with redundancy in every cell: after any loss, the rest serves the whole rate."""
    there: dict[tuple[str, Key], list[Station]] = defaultdict(list)
    for station in stations.values():
        there[station.service, station.key].append(station)
    asked: dict[tuple[str, Key], dict[str, float]] = defaultdict(dict)
    for (name, request_class, key), rate in case.rates.items():
        if case.services[name].redundancy and rate > 0:
            asked[name, key][request_class] = rate
    for (name, key), rates in asked.items():
        service = case.services[name]
        standing = _standing(service, there[name, key], rates)
        where = f"{name} in block {key[0]}, slice {case.cells[key].slice_name}"
        for lost, share in _served_after(standing, service.redundancy):
            checker.at_most("spare capacity", f"{where} without {lost}", 1.0, share, "of the rate")


def _standing(service: Service, stations: list[Station], rates: dict[str, float]) -> list[Standing]:
    together: dict[tuple[Any, ...], list[Station]] = defaultdict(list)
    for one in stations:
        option = one.option
        network = (*same_network(option), one.estimate.deployment.weights) if one.stage else ()
        alike_in = (id(one.estimate), option.gpu_id, option.gpus_per_node, option.productive_share, network)
        together[alike_in].append(one)
    found = []
    for (*_, network), alike in together.items():
        first = alike[0]
        size = first.estimate.deployment.gpus_per_replica
        kind = (first.option.gpu_id, first.option.gpus_per_node)
        fit = max(1, first.option.gpus_per_node // size)
        loads = {name: rates[name] * load for name, load in _loads(service, first).items() if name in rates}
        found.append(Standing(kind, sum(s.replicas for s in alike), fit, loads, first.stage, network))
    able = {name for one in found for name in one.loads}
    return found if able >= rates.keys() else []


def _loads(service: Service, station: Station) -> dict[str, float]:
    """Replicas per request/s at the degraded cap, and no fewer than any resource needs."""
    found = {}
    for name in station.classes:
        needs = station.needs(name)
        needs["replica_time"] = station.replica_seconds(name) / _cap(service, station.estimate)
        found[name] = max(needs.values())
    return found


def _cap(service: Service, estimate: ServiceEstimate) -> float:
    if service.degraded_utilisation_cap is not None:
        return service.degraded_utilisation_cap
    return 1.0 if estimate.measured else max(DEGRADED_CAP, estimate.utilisation_cap)


def _served_after(standing: list[Standing], nodes: int) -> Iterator[tuple[str, float]]:
    """What goes, and the share of all rates that the rest can serve: every number of nodes of every kind."""
    kinds = list(dict.fromkeys(one.kind for one in standing))
    if not kinds:
        yield "any node", 0.0
    for gone in combinations_with_replacement(kinds, nodes):
        lost = Counter(gone)
        left = [Group(one.loads, float(one.after(lost[one.kind])), one.stage, one.network) for one in standing]
        label = " and ".join(f"{count} of {gpu} x{size}" for (gpu, size), count in lost.items())
        names = dict.fromkeys(name for one in standing for name in one.loads)
        yield label, most_served(list(names), left)
