"""Families of rate demands: what comes is served, and a replica does no more than it can.

The docstring of a family is its inequality, then why. Left-hand sides hold variables only, right-hand sides data only,
both in the buyer's units.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from optimizer.estimator.types import ClassEstimate, ServiceEstimate
from optimizer.model.entities import Instance
from optimizer.model.lookup import (
    cell_index,
    rate_in,
    server_cells,
)
from optimizer.model.rows import CostLine, Row, row
from optimizer.model.variables import SMALL_LOAD, Variables, cell_key


def demand_coverage(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ served = rate, for every service, class, block and slice: what comes is served."""
    served = defaultdict(list)
    for (server, name, key), column in v.serve.items():
        served[instance.servers[server].workload, name, key].append(column)
    for demand in instance.rate_demands:
        for cell in instance.cells():
            rate = rate_in(instance, demand.rate_per_s, cell)
            if rate > 0:
                columns = served[demand.workload, demand.request_class, cell_key(cell)]
                index = (demand.workload, demand.request_class, *cell_index(instance, cell_key(cell)))
                yield row("demand_coverage", index, ((c, rate) for c in columns), "=", rate, "requests/s")


def compute(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ FLOP per request × served ≤ replicas × FLOP/s ceiling: necessary; says when compute is what is bought for."""
    yield from _resource(instance, v, "compute", lambda s, c: _ratio(c.flop_per_request, s.effective_flop_per_s))


def memory_bandwidth(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ bytes per request × served ≤ replicas × bytes/s ceiling: necessary; says when bandwidth is bought for."""
    yield from _resource(
        instance, v, "memory_bandwidth", lambda s, c: _ratio(c.moved_bytes_per_request, s.effective_bytes_per_s)
    )


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


def memory_capacity(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ KV bytes × residence × served ≤ replicas × free memory (Little's law: in flight = rate × residence)."""
    yield from _resource(
        instance,
        v,
        "memory_capacity",
        lambda s, c: _ratio(c.kv_bytes_per_sequence * c.residence_s, s.free_memory_bytes),
    )


def _ratio(required: float, ceiling: float) -> float:
    """Replicas needed per request/s by one resource; 0 where the estimate names no ceiling (measured rates)."""
    return required / ceiling if ceiling > 0 else 0.0


def _resource(
    instance: Instance, v: Variables, family: str, need: Callable[[ServiceEstimate, ClassEstimate], float]
) -> Iterator[Row]:
    """Rows Σ need × rate × share ≤ replicas, for deployments whose estimate states the resource.

    A row whose every coefficient stays within the replica-time row's is implied by it: reported, not solved.
    """
    for server, key, terms in server_cells(instance, v):
        if server.estimate.measured:
            continue
        classes = {c.request_class: c for c in server.estimate.classes}
        per_rate = {name: need(server.estimate, c) / server.option.productive_share for name, c in classes.items()}
        used = [(column, rate * per_rate[name]) for name, column, rate in terms]
        index = (server.workload, server.label, *cell_index(instance, key))
        implied = all(per_rate[name] <= (server.load(name) or 0.0) for name, _, _ in terms)
        found = row(family, index, [*used, (v.replicas[server.index, key], -1.0)], "<=", 0.0, "replicas")
        yield replace(found, role="implied") if implied else found
