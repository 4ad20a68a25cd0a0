"""N + k: what the loss of nodes takes from a service, and what the rest can do. Plain numbers, no solver objects.

A lost node is as full of the service as it can be: a plan does not say which replicas stand on which node, so it holds
wherever they stand. See docs/model.md, "Spare capacity".
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

from optimizer.estimator.redundancy import DEGRADED_UTILISATION_CAP
from optimizer.estimator.types import ServiceEstimate, Stage
from optimizer.estimator.workloads import Service
from optimizer.model.entities import Instance, Server
from optimizer.model.resources import RESOURCES
from optimizer.model.staging import is_staged

ALIKE = 1e-9
"""Loads that differ by no more than this share of each other are the same."""

NodeKind = tuple[str, int]
"""GPU type and GPUs per node."""
Loss = tuple[tuple[NodeKind, int], ...]
"""Nodes lost of each kind."""


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """Replicas of one deployment on nodes of one kind, whatever the offer (stages: of one place).

    `per_node` of them go with a node (one, where a replica spans several); `loads` are the replicas needed per
    request/s of each class at the degraded utilisation cap.
    """

    kind: NodeKind
    servers: tuple[Server, ...]
    per_node: int
    loads: Mapping[str, float]

    @property
    def stage(self) -> Stage:
        """`prefill` or `decode`, where they do prompts or outputs alone."""
        return self.servers[0].stage

    @property
    def label(self) -> str:
        """Name for rows: that of its first server."""
        return self.servers[0].label


@dataclass(frozen=True)
class SpareNeed:
    """A service in a cell that must survive the loss of any `nodes` nodes, with its rates by class.

    `by_routes`: every loss has shares of service of its own (exact); else every group serves all classes in
    proportion to their rates, which is exact where their loads are proportional.
    """

    service: str
    cell: tuple[int, int]
    nodes: int
    rates: Mapping[str, float]
    groups: tuple[ReplicaGroup, ...]
    by_routes: bool

    @cached_property
    def kinds(self) -> list[NodeKind]:
        """Kinds of nodes that may host replicas."""
        return list(dict.fromkeys(group.kind for group in self.groups))

    def losses(self) -> Iterator[Loss]:
        """Every way of losing the nodes: a number of each kind."""
        for lost in combinations_with_replacement(self.kinds, self.nodes):
            yield tuple(Counter(lost).items())

    def share(self, group: ReplicaGroup) -> float:
        """Share of the whole service that one replica can do, all classes in proportion, 1 at most; 0: not all."""
        if group.stage or any(name not in group.loads for name in self.rates):
            return 0.0
        return 1.0 / max(1.0, sum(rate * group.loads[name] for name, rate in self.rates.items()))

    @property
    def most_share(self) -> float:
        """Share of the service left of one group that is worth counting: it and the largest loss."""
        largest = max(self.share(group) * group.per_node for group in self.groups)
        return 1.0 if self.nodes == 1 else 1.0 + self.nodes * largest


def loss_label(loss: Loss) -> str:
    """`1 A x8, 2 B x1`."""
    return ", ".join(f"{nodes} {gpu} x{size}" for (gpu, size), nodes in loss)


_CellNeed = tuple[tuple[int, int], dict[str, float], tuple[ReplicaGroup, ...]]
"""A cell, the rates in it, and what may stand there."""


def spare_needs(instance: Instance, serving: Mapping[tuple[int, tuple[int, int]], object]) -> Iterator[SpareNeed]:
    """Services with redundancy, cell by cell; `serving` holds the (server, cell) pairs that have replicas."""
    for workload in instance.problem.workloads:
        if isinstance(workload, Service) and workload.redundancy:
            groups = replica_groups(workload, [s for s in instance.servers if s.workload == workload.name])
            found = list(_needs(instance, workload, groups, serving))
            by_routes = _wants_routes(workload, found, instance.most_routes)
            yield from (SpareNeed(workload.name, cell, workload.redundancy, r, g, by_routes) for cell, r, g in found)


def _needs(
    instance: Instance,
    service: Service,
    groups: Sequence[ReplicaGroup],
    serving: Mapping[tuple[int, tuple[int, int]], object],
) -> Iterator[_CellNeed]:
    demands = [d for d in instance.rate_demands if d.workload == service.name]
    for cell in instance.cells():
        period, key = instance.grid.blocks[cell.block].period, (cell.block, cell.slice)
        rates = {d.request_class: d.rate_per_s[period][cell.slice] for d in demands}
        rates = {name: rate for name, rate in rates.items() if rate > 0}
        present = [
            ReplicaGroup(group.kind, servers, group.per_node, group.loads)
            for group in groups
            if (servers := tuple(s for s in group.servers if (s.index, key) in serving))
        ]
        if rates:
            yield key, rates, tuple(present)


def _wants_routes(service: Service, found: Sequence[_CellNeed], most: float) -> bool:
    """Whether proportional service is not exact, and routes for every loss are few enough (or nothing else works)."""
    if all(_proportional(groups, rates) for _, rates, groups in found):
        return False
    if not all(_some_serve_all(groups, rates) for _, rates, groups in found):
        return True
    return sum(_routes(groups, rates, service.redundancy) for _, rates, groups in found) <= most


def _proportional(groups: Sequence[ReplicaGroup], rates: Mapping[str, float]) -> bool:
    """Whether all groups serve all classes, each as much slower than the first by one factor for all of them."""
    if any(group.stage for group in groups) or not all(set(rates) <= set(group.loads) for group in groups):
        return False
    ratios = [[group.loads[name] / groups[0].loads[name] for name in rates] for group in groups]
    return all(max(each) - min(each) <= ALIKE * max(each) for each in ratios)


def _some_serve_all(groups: Sequence[ReplicaGroup], rates: Mapping[str, float]) -> bool:
    return any(set(rates) <= set(group.loads) and not group.stage for group in groups)


def _routes(groups: Sequence[ReplicaGroup], rates: Mapping[str, float], nodes: int) -> int:
    losses = math.comb(len({group.kind for group in groups}) + nodes - 1, nodes)
    return losses * sum(name in group.loads for group in groups for name in rates)


def replica_groups(service: Service, servers: Sequence[Server]) -> list[ReplicaGroup]:
    """Servers of a service whose replicas and nodes are alike, whatever the offer."""
    groups: dict[tuple[object, ...], list[Server]] = {}
    for server in servers:
        option = server.option
        partners = server.handover if is_staged(server) else ()
        key = (id(server.estimate), option.gpu_id, option.gpus_per_node, option.productive_share, *partners)
        groups.setdefault(key, []).append(server)
    return [
        ReplicaGroup(
            (found[0].option.gpu_id, found[0].option.gpus_per_node),
            tuple(found),
            replicas_per_node(found[0]),
            degraded_loads(service, found[0]),
        )
        for found in groups.values()
    ]


def replicas_per_node(server: Server) -> int:
    """Replicas that a node holds; 1 where a replica spans several, as it dies with any of them."""
    return max(1, math.floor(server.option.gpus_per_node / server.estimate.deployment.gpus_per_replica))


def degraded_loads(service: Service, server: Server) -> dict[str, float]:
    """Replicas needed per request/s of each class after a loss: by time at the degraded cap, or by a scarcer resource.

    No loss suspends what a replica's arithmetic, bandwidth and memory can do.
    """
    estimate, share = server.estimate, server.option.productive_share
    cap = degraded_cap(service, estimate)
    found = {}
    for one in estimate.classes:
        needs = [one.replica_seconds_per_request / cap]
        if not estimate.measured:
            needs += [need(estimate, one) for need in RESOURCES.values()]
        found[one.request_class] = max(needs) / share
    return found


def degraded_cap(service: Service, estimate: ServiceEstimate) -> float:
    """Highest busy share of a replica after a loss."""
    if service.degraded_utilisation_cap is not None:
        return service.degraded_utilisation_cap
    return 1.0 if estimate.measured else max(DEGRADED_UTILISATION_CAP, estimate.utilisation_cap)
