"""Families of rate demands: what comes is served, and a replica does no more than it can.

The docstring of a family is its inequality, then why. Left-hand sides hold variables only, right-hand sides data only,
both in the buyer's units.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

from optimizer.estimator.types import ClassEstimate, ServiceEstimate
from optimizer.estimator.workloads import Service
from optimizer.model.entities import Instance, Server
from optimizer.model.lookup import (
    cell_index,
    rate_in,
    server_cells,
)
from optimizer.model.resources import RESOURCES
from optimizer.model.rows import CostLine, Row, Term, row
from optimizer.model.staging import is_staged, takes_requests
from optimizer.model.variables import SMALL_LOAD, CellKey, Variables, cell_key, hour_key


def demand_coverage(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ served = rate, for every service, class, block and slice: what comes is served, by prefill stages or whole."""
    served = defaultdict(list)
    for (index, name, key), column in v.serve.items():
        server = instance.servers[index]
        if takes_requests(server):
            served[server.workload, name, key].append(column)
    for demand in instance.rate_demands:
        for cell in instance.cells():
            rate = rate_in(instance, demand.rate_per_s, cell)
            if rate > 0:
                columns = served[demand.workload, demand.request_class, cell_key(cell)]
                place = (demand.workload, demand.request_class, *cell_index(instance, cell_key(cell)))
                yield row("demand_coverage", place, ((c, rate) for c in columns), "=", rate, "requests/s")


def stage_balance(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ prefilled − Σ decoded = 0 requests/s, per service, class, place, weight format, block and slice.

    A prompt done in a prefill stage is answered in a decode stage of the same provider and region (or the own site),
    whose network takes its KV cache, with weights of the same format.
    """
    balance: dict[tuple[str, str, tuple[str, str, str], CellKey], list[Term]] = defaultdict(list)
    for server, key, terms in server_cells(instance, v):
        for name, column, rate in terms if is_staged(server) else ():
            balance[server.workload, name, server.handover, key].append(
                (column, rate if takes_requests(server) else -rate)
            )
    for (workload, name, handover, key), columns in balance.items():
        index = (workload, name, *handover, *cell_index(instance, key))
        yield row("stage_balance", index, columns, "=", 0.0, "requests/s")


def compute(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ FLOP per request × served ≤ replicas × FLOP/s ceiling: necessary; says when compute is what is bought for."""
    yield from _resource(instance, v, "compute", implied=False)


def memory_bandwidth(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ bytes per request × served ≤ replicas × bytes/s ceiling: necessary; says when bandwidth is bought for."""
    yield from _resource(instance, v, "memory_bandwidth", implied=False)


def replica_time(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ replica-seconds × served ≤ replicas × utilisation cap: sufficient, the phases take turns on a GPU."""
    for server, key, terms in server_cells(instance, v):
        loads = [(column, rate * (server.load(name) or 0.0)) for name, column, rate in terms]
        replicas = v.replicas[server.index, key]
        index = (server.workload, server.label, *cell_index(instance, key))
        yield row("replica_time", index, [*loads, (replicas, -1.0)], "<=", 0.0, "replicas")


def whole_replica(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Served share ≤ replicas, where the load is tiny: anything served needs one whole replica."""
    for server, key, terms in server_cells(instance, v):
        for name, column, rate in terms:
            if rate * (server.load(name) or 0.0) < SMALL_LOAD:
                index = (server.workload, name, server.label, *cell_index(instance, key))
                columns = [(column, 1.0), (v.replicas[server.index, key], -1.0)]
                yield row("whole_replica", index, columns, "<=", 0.0, "replicas")


def replica_floor(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ replicas ≥ min_replicas, per service, block and slice with requests: the floor of an autoscaler.

    Stages of outputs alone do not count.
    """
    least = {w.name: w.min_replicas for w in instance.problem.workloads if isinstance(w, Service) and w.min_replicas}
    there: dict[tuple[str, CellKey], list[Term]] = defaultdict(list)
    asked = {(instance.servers[index].workload, key) for index, _, key in v.serve}
    for (index, key), column in v.replicas.items():
        server = instance.servers[index]
        if server.workload in least and takes_requests(server) and (server.workload, key) in asked:
            there[server.workload, key].append((column, 1.0))
    for (workload, key), terms in there.items():
        place = (workload, *cell_index(instance, key))
        yield row("replica_floor", place, terms, ">=", float(least[workload]), "replicas")


def start_up(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Replicas in the last minutes of an hour ≥ replicas in the hour, ≥ replicas in the next: started before needed.

    Per deployment, option, block, and slice in which replicas of the service start.
    """
    slices = instance.grid.slices
    for (index, key), column in v.replicas.items():
        server = instance.servers[index]
        if hour_key(instance, server.workload, key) is None:
            continue
        for other in (slices[key[1]].hour_slice, *slices[key[1]].next_slices):
            needed = v.replicas.get((index, (key[0], other)))
            if needed is not None:
                place = (server.workload, server.label, *cell_index(instance, key), slices[other].name)
                yield row("start_up", place, [(column, 1.0), (needed, -1.0)], ">=", 0.0, "replicas")


def memory_capacity(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ KV bytes × residence × served ≤ replicas × free memory (Little's law: in flight = rate × residence)."""
    yield from _resource(instance, v, "memory_capacity", implied=False)


def implied_rows(instance: Instance, v: Variables) -> Iterator[Row]:
    """The rows of the three resources that follow from the replica-time row: for the report, not for the solver."""
    for family in RESOURCES:
        yield from _resource(instance, v, family, implied=True)


def _resource(instance: Instance, v: Variables, family: str, *, implied: bool) -> Iterator[Row]:
    """Rows Σ need × rate × share ≤ replicas, for deployments whose estimate states the resource.

    Where every class needs no more of the resource than of replica time, the row follows from that one.
    """
    needs = {s.index: _needs(s, RESOURCES[family]) for s in instance.servers if not s.estimate.measured}
    follows = {s.index for s in instance.servers if all(n <= s.loads[c] for c, n in needs.get(s.index, {}).items())}
    for server, key, terms in server_cells(instance, v):
        if server.index in needs and (server.index in follows) == implied:
            used = [(column, rate * needs[server.index][name]) for name, column, rate in terms]
            index = (server.workload, server.label, *cell_index(instance, key))
            yield row(family, index, [*used, (v.replicas[server.index, key], -1.0)], "<=", 0.0, "replicas")


def _needs(server: Server, need: Callable[[ServiceEstimate, ClassEstimate], float]) -> dict[str, float]:
    share = server.option.productive_share
    return {c.request_class: need(server.estimate, c) / share for c in server.estimate.classes}
