"""Families of limits: supply, providers, interruptible capacity, order sizes, budgets, power.

The docstring of a family is its inequality, then why. Left-hand sides hold variables only, right-hand sides data only,
both in the buyer's units.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from optimizer.estimator.workloads import Service
from optimizer.model.carbon import emissions
from optimizer.model.entities import Instance, Server
from optimizer.model.instance import spot_share
from optimizer.model.lookup import (
    cell_index,
    month_label,
    nodes_in_service,
    rate_in,
    summed,
    work_columns,
)
from optimizer.model.rows import CostLine, Row, Term, row
from optimizer.model.spare import degraded_loads
from optimizer.model.variables import CellKey, Variables, WorkPlace, cell_key
from optimizer.problem.periods import year_of


def supply_limit(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Nodes of an option held, on order and rented at one time ≤ its stock; GPUs of a type ≤ limits.gpus."""
    for option in instance.options:
        if option.max_nodes is None or option.existing_nodes:
            continue
        if option.held:
            for block in instance.grid.blocks:
                counted = [
                    (v.acquire[option.option_id, o.period], 1.0)
                    for o in instance.orders
                    if o.option is option and o.on_order_or_held(block.start_month)
                ]
                index = (option.option_id, month_label(block.start_month))
                if len(counted) > 0:
                    yield row("supply_limit", index, counted, "<=", option.max_nodes, "nodes")
        else:
            yield from _rented_limit(instance, v, "supply_limit", {option.option_id: 1.0}, option.max_nodes, "nodes")
    for gpu, limit in instance.problem.limits.gpus.items():
        weights = {o.option_id: float(o.gpus_per_node) for o in instance.options if o.gpu_id == gpu}
        yield from _rented_limit(instance, v, "supply_limit", weights, limit, "GPUs", label=f"{gpu} GPUs")
        yield from _gpus_at_once(instance, v, gpu, weights, limit)


def _gpus_at_once(instance: Instance, v: Variables, gpu: str, weights: dict[str, float], limit: float) -> Iterator[Row]:
    """Σ GPUs of nodes in service, rented and hired, whole and at one time ≤ limits.gpus, where jobs may hire."""
    hired: dict[CellKey, list[Term]] = defaultdict(list)
    for place in v.places:
        if place.at_once is not None and place.option.gpu_id == gpu:
            hired[cell_key(place.cell)].append((place.at_once, weights[place.option.option_id]))
    for key, terms in hired.items():
        held = [(n, w) for o, w in weights.items() if (n := nodes_in_service(v, o, key)) is not None]
        index = (f"{gpu} GPUs", *cell_index(instance, key), "at-once")
        yield row("supply_limit", index, [*held, *terms], "<=", limit, "GPUs")


def provider_limit(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Nodes held and rented at a provider at one time ≤ its limit, in every block and slice."""
    for provider, limit in instance.problem.limits.providers.items():
        weights = {o.option_id: 1.0 for o in instance.options if o.provider == provider}
        yield from _rented_limit(instance, v, "provider_limit", weights, limit.max_nodes, "nodes", label=provider)


def _rented_limit(
    instance: Instance,
    v: Variables,
    family: str,
    weights: dict[str, float],
    limit: float,
    unit: str,
    label: str | None = None,
) -> Iterator[Row]:
    """Σ weight × nodes in service or rented ≤ limit per cell; a job with a least size counts it at once."""
    hired: dict[CellKey, list[WorkPlace]] = defaultdict(list)
    for place in v.places:
        if place.nodes is not None and place.option.option_id in weights:
            hired[cell_key(place.cell)].append(place)
    for cell in instance.cells():
        key = cell_key(cell)
        held = [(n, w) for o, w in weights.items() if (n := nodes_in_service(v, o, key)) is not None]
        mean = [(p.nodes, weights[p.option.option_id] * p.nodes_per_share) for p in hired[key] if p.nodes is not None]
        index = (label or next(iter(weights)), *cell_index(instance, key))
        if held or mean:
            yield row(family, index, [*held, *mean], "<=", limit, unit)
        yield from _take_turns(family, index, hired[key], weights, limit)
        for place in hired[key]:
            if place.hired_on is not None:
                at_once = weights[place.option.option_id] * place.least_nodes_at_once
                who = (place.demand.name, str(place.alternative), place.option.option_id)
                yield row(family, (*index, *who), [*held, (place.hired_on, at_once)], "<=", limit, unit)


def _take_turns(
    family: str, index: tuple[str, ...], places: Iterable[WorkPlace], weights: dict[str, float], limit: float
) -> Iterator[Row]:
    """Σ time ≤ 1 of jobs that never fit the limit together: each needs its mean ÷ its most nodes of the time."""
    turns = []
    for place in places:
        weight = weights[place.option.option_id]
        if place.nodes is not None and limit / 2 < weight * place.least_nodes_at_once <= limit:
            most = min(limit / weight, place.most_nodes_at_once)
            turns.append((place.nodes, place.nodes_per_share / most))
    if len(turns) > 1:
        yield row(family, (*index, "take-turns"), turns, "<=", 1.0, "share of time")


def interruptible_share(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Served or done on interruptible capacity ≤ its share: of each class's rate in each slice, of a job's work."""
    served = defaultdict(list)
    for (server, name, key), column in v.serve.items():
        if instance.servers[server].option.interruptible:
            served[instance.servers[server].workload, name, key].append(column)
    for demand in instance.rate_demands:
        share = spot_share(instance.problem, demand.workload)
        for cell in instance.cells():
            rate = rate_in(instance, demand.rate_per_s, cell)
            columns = served[demand.workload, demand.request_class, cell_key(cell)]
            if columns and share < 1:
                index = (demand.workload, demand.request_class, *cell_index(instance, cell_key(cell)))
                terms = [(c, rate) for c in columns]
                yield row("interruptible_share", index, terms, "<=", share * rate, "requests/s")
    for volume in instance.volume_demands:
        places = [p for p in v.places if p.demand is volume and p.option.interruptible]
        if places and volume.interruptible_share < 1:
            terms = [(c, volume.amount) for p in places for c in work_columns(p)]
            limit = volume.interruptible_share * volume.amount
            yield row("interruptible_share", (volume.name,), terms, "<=", limit, volume.unit)


def minimum_order(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Least × ordered ≤ nodes ≤ most × ordered: an order is nothing, or at least the least."""
    for order in instance.orders:
        key = (order.option.option_id, order.period)
        if key not in v.ordered:
            continue
        nodes, ordered = v.acquire[key], v.ordered[key]
        most = float(order.option.max_nodes or most_nodes(instance, order.option.option_id))
        least = float(order.option.min_nodes)
        yield row("minimum_order", (*key, "least"), [(nodes, 1.0), (ordered, -least)], ">=", 0.0, "nodes")
        yield row("minimum_order", (*key, "most"), [(nodes, 1.0), (ordered, -max(most, least))], "<=", 0.0, "nodes")


def most_nodes(instance: Instance, option_id: str) -> float:
    """Nodes of an option that would serve all demand alone, spare ones too: no order needs to be larger."""
    option = next(o for o in instance.options if o.option_id == option_id)
    total = float(option.min_nodes)
    for demand in instance.rate_demands:
        peak = max((rate for period in demand.rate_per_s for rate in period), default=0.0)
        for server in instance.servers:
            if server.option is option and server.workload == demand.workload:
                load, spare = _load_and_spare(instance, server, demand.request_class)
                total += (
                    spare
                    + _floor(instance, server)
                    + (peak * load + 1) * server.occupied_gpus / option.gpus_per_node
                    + 1
                )
    for volume in instance.volume_demands:
        for alternative in volume.alternatives:
            hours = min((c.hours for c in volume.cells), default=1.0)
            for (member, estimate), share in zip(alternative.members, alternative.shares, strict=True):
                if member is option:
                    gpus = volume.amount / (estimate.units_per_gpu_hour * share * hours)
                    total += max(gpus, alternative.min_gpus) / option.gpus_per_node + 1
    return total


def _floor(instance: Instance, server: Server) -> float:
    """Nodes that hold the least replicas of a service."""
    service = next(w for w in instance.problem.workloads if w.name == server.workload)
    least = service.min_replicas if isinstance(service, Service) else 0
    return least * server.occupied_gpus / server.option.gpus_per_node


def _load_and_spare(instance: Instance, server: Server, request_class: str) -> tuple[float, float]:
    """Replicas per request/s, at the lower cap of the two where nodes may be lost; nodes that may be lost."""
    service = next(w for w in instance.problem.workloads if w.name == server.workload)
    load = server.load(request_class) or 0.0
    if not isinstance(service, Service) or not service.redundancy:
        return load, 0.0
    return max(load, degraded_loads(service, server).get(request_class, 0.0)), float(service.redundancy)


def budget_capex(instance: Instance, _: Variables, ledger: tuple[CostLine, ...]) -> Iterator[Row]:
    """Capex + installation + upfront fees + costs paid once ≤ limits.capex, capex_by_period, capex_by_year.

    Undiscounted, over the horizon, of the orders of each period, and of each year.
    """
    limits, currency = instance.problem.limits, instance.problem.currency
    lines = [line for line in ledger if line.group == "capex"]
    if limits.capex is not None:
        yield _budget_row("budget_capex", ("horizon",), lines, limits.capex, currency)
    for number, limit in enumerate(limits.capex_by_period or ()):
        if limit is not None:
            own = [line for line in lines if line.period == number]
            yield _budget_row("budget_capex", (f"period-{number + 1}",), own, limit, currency)
    starts = [period.start_month for period in instance.grid.periods]
    for number, limit in enumerate(limits.capex_by_year or ()):
        if limit is not None:
            own = [line for line in lines if line.period < len(starts) and year_of(starts[line.period]) == number]
            yield _budget_row("budget_capex", (f"year-{number + 1}",), own, limit, currency)


def budget_opex(instance: Instance, _: Variables, ledger: tuple[CostLine, ...]) -> Iterator[Row]:
    """Running costs of a period ÷ its months, undiscounted ≤ limits.opex, in every listed period."""
    limit = instance.problem.limits.opex
    if limit is None:
        return
    for period in instance.grid.periods:
        lines = [line for line in ledger if line.period == period.index and line.group == "opex"]
        unit = f"{instance.problem.currency}/month"
        yield _budget_row("budget_opex", (f"period-{period.index + 1}",), lines, limit, unit, period.months)


def budget_npv(instance: Instance, _: Variables, ledger: tuple[CostLine, ...]) -> Iterator[Row]:
    """Present value of everything, net of salvage ≤ limits.npv."""
    limit = instance.problem.limits.npv
    if limit is not None:
        terms = [(column, value) for line in ledger for column, _, value in line.terms]
        fixed = sum(line.constant_npv for line in ledger)
        yield row("budget_npv", ("horizon",), summed(terms), "<=", limit - fixed, instance.problem.currency)


def carbon_limit(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ kWh of owned nodes × g/kWh + Σ kW at the meter × paid hours of rented nodes × g/kWh ≤ limits.carbon.

    In tonnes over the horizon; what existing nodes emit whatever is decided stands on the right.
    """
    limit = instance.problem.limits.carbon
    if limit is not None:
        amounts = [found for _, found in emissions(instance, v)]
        terms = [(c, tonnes) for found in amounts for part in found.terms.values() for c, tonnes, _ in part]
        fixed = math.fsum(tonnes for found in amounts for tonnes, _ in found.constants.values())
        yield row("carbon_limit", ("horizon",), summed(terms), "<=", limit - fixed, "t CO2e")


def _budget_row(
    family: str, index: tuple[str, ...], lines: Iterable[CostLine], limit: float, unit: str, months: float = 1.0
) -> Row:
    lines = list(lines)
    terms = [(column, quantity * line.unit_price / months) for line in lines for column, quantity, _ in line.terms]
    fixed = sum(line.constant_quantity * line.unit_price for line in lines) / months
    return row(family, index, summed(terms), "<=", limit - fixed, unit)
