"""Cost terms of a buyer's further costs (`costs:` in the problem file): each is a line named by its kind.

What is paid once counts as capex, at the order or at its month; what is paid monthly or per GB is opex, at the end of
each calendar month inside the horizon; a percentage counts and is paid as what it is a share of (docs/model.md §Money).
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from optimizer.finance import discount_factor
from optimizer.model.amounts import Amounts, held_amounts, paid_hours
from optimizer.model.entities import Instance
from optimizer.model.option import Option
from optimizer.model.prices import meant
from optimizer.model.rows import CostLine
from optimizer.model.spans import priced_hours, spans
from optimizer.model.staging import sends_answers
from optimizer.model.timegrid import SAME_MONTH
from optimizer.model.variables import Variables, cell_key
from optimizer.problem.further_costs import FurtherCost
from optimizer.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

SHARE_OF = {"purchases": ("capex", "installation"), "rent": ("usage_fee", "holding_fee", "upfront_fee")}
_COUNTED = {"node": "nodes", "gpu": "GPUs", "kw": "kW"}
_HELD = {"node": "node-months", "gpu": "GPU-months", "kw": "kW-months"}


def per_node(cost: FurtherCost, option: Option) -> float:
    """What counts of a node: 1, its GPUs, or its nameplate kW."""
    return {"gpu": float(option.gpus_per_node), "kw": option.nameplate_kw}.get(cost.per or "", 1.0)


def fixed_costs(instance: Instance, _: Variables) -> Iterator[CostLine]:
    """What is paid whatever is chosen: once at its month, or monthly (per GB × GB per month)."""
    for cost in instance.problem.costs:
        if cost.per is not None:
            continue
        window = _window(instance, cost)
        if cost.once and cost.start_month < instance.grid.horizon_months - SAME_MONTH:
            yield _paid_once(instance, cost, cost.once)
        per_gb = cost.per_gb if cost.gb_per_month is not None else None
        price, quantity = (cost.monthly, 1.0) if per_gb is None else (per_gb, cost.gb_per_month or 0.0)
        if price and quantity:
            amounts = Amounts()
            for span in spans(instance, *window, _change(instance, cost)):
                value = span.present_months * quantity * price * span.level
                amounts.add_constant(span.period, span.level, span.months * quantity, value)
            unit = "months" if per_gb is None else "GB"
            yield from amounts.lines(cost.kind, None, unit, price, cost.name, cost.source)


def _paid_once(instance: Instance, cost: FurtherCost, amount: float) -> CostLine:
    value = amount * discount_factor(instance.rate_per_year, cost.start_month)
    periods = instance.grid.periods
    period = max(p.index for p in periods if p.start_month <= cost.start_month + SAME_MONTH)
    return CostLine(cost.kind, "", period, "times", amount, cost.source, (), 1.0, value, "capex", cost.name)


def costs_per_order(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Nodes ordered (or their GPUs or kW) × amount paid once for each, at the order."""
    for cost in instance.problem.costs:
        start, end = _window(instance, cost)
        for order in instance.orders if cost.per is not None and cost.once else ():
            option, quantity = order.option, per_node(cost, order.option)
            if meant(cost, option) and quantity > 0 and start - SAME_MONTH <= order.order_month < end - SAME_MONTH:
                price = cost.once or 0.0
                value = quantity * price * discount_factor(instance.rate_per_year, order.order_month)
                terms = ((v.acquire[option.option_id, order.period], quantity, value),)
                unit, place = _COUNTED[cost.per or "node"], (option.option_id, order.period)
                yield CostLine(cost.kind, *place, unit, price, cost.source, terms, group="capex", name=cost.name)


def costs_while_held(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Months that nodes (their GPUs, kW) are held or rented (node-hours ÷ 730) × amount per month."""
    for cost in instance.problem.costs:
        if cost.per is None or not cost.monthly:
            continue
        rented = _rented_amounts(instance, v, cost)
        change, window = _change(instance, cost), _window(instance, cost)
        for option in instance.options:
            quantity = per_node(cost, option) if meant(cost, option) else 0.0
            amounts = rented.get(option.option_id, Amounts())
            if option.held and quantity > 0:
                amounts = held_amounts(instance, v, option, cost.monthly, quantity, change, window, past_horizon=False)
            yield from amounts.lines(cost.kind, option, _HELD[cost.per], cost.monthly, cost.name, cost.source)


def _rented_amounts(instance: Instance, v: Variables, cost: FurtherCost) -> dict[str, Amounts]:
    """Of each option rented by the hour that a cost falls on: node-hours (of GPUs, kW) ÷ 730."""
    change, window, price = _change(instance, cost), _window(instance, cost), cost.monthly or 0.0
    options = {o.option_id: o for o in instance.rented_options if meant(cost, o) and per_node(cost, o) > 0}
    found: dict[str, Amounts] = defaultdict(Amounts)
    for paid in paid_hours(instance, v, change, window) if options else ():
        if paid.option_id in options:
            counted = per_node(cost, options[paid.option_id]) / HOURS_PER_MONTH
            value = counted * paid.present_hours * price * paid.level
            found[paid.option_id].add(paid.period, paid.level, paid.column, counted * paid.hours, value)
    return found


def costs_of_traffic(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """GB moved by the requests served on an option × price per GB; headroom is capacity, not requests."""
    for cost in instance.problem.costs:
        if cost.per_gb and cost.gb_per_1000_requests:
            for option, amounts in _traffic(instance, v, cost).items():
                found = next(o for o in instance.options if o.option_id == option)
                yield from amounts.lines(cost.kind, found, "GB", cost.per_gb, cost.name, cost.source)


def _traffic(instance: Instance, v: Variables, cost: FurtherCost) -> dict[str, Amounts]:
    """Amounts by option: rate ÷ (1 + headroom) × hours × GB per request, for each share answered from there."""
    found: dict[str, Amounts] = defaultdict(Amounts)
    change, window = _change(instance, cost), _window(instance, cost)
    hours = {cell_key(c): priced_hours(instance, c, change, window) for c in instance.cells()}
    rates = {(d.workload, d.request_class): d.rate_per_s for d in instance.rate_demands}
    headroom = {w.name: w.headroom for w in instance.problem.workloads}
    gb, price = (cost.gb_per_1000_requests or 0.0) / 1000, cost.per_gb or 0.0
    for (index, name, key), column in v.serve.items():
        server, period = instance.servers[index], instance.grid.blocks[key[0]].period
        named = cost.workload in (None, server.workload) and meant(cost, server.option)
        if named and sends_answers(server):
            rate = rates[server.workload, name][period][key[1]] / (1 + headroom[server.workload])
            gb_per_hour = rate * SECONDS_PER_HOUR * gb
            for part in hours[key]:
                value = gb_per_hour * part.present_hours * price * part.level
                found[server.option.option_id].add(period, part.level, column, gb_per_hour * part.hours, value)
    return found


def percentages(instance: Instance, lines: Sequence[CostLine]) -> Iterator[CostLine]:
    """A share of other lines, paid when they are and counted as they are: one line per option, period and group."""
    options = {o.option_id: o for o in instance.options}
    for cost in instance.problem.costs:
        bases: dict[tuple[str, int, str], list[CostLine]] = defaultdict(list)
        for line in lines if cost.percent else ():
            if _taxed(cost, line) and (not cost.selects or (line.option_id and meant(cost, options[line.option_id]))):
                bases[line.option_id, line.period, line.group].append(line)
        for (option_id, period, group), base in bases.items():
            share = cost.percent or 0.0
            terms = tuple((c, q * one.unit_price, value * share) for one in base for c, q, value in one.terms)
            fixed = math.fsum(one.constant_quantity * one.unit_price for one in base)
            value = math.fsum(one.constant_npv for one in base) * share
            unit = instance.problem.currency
            yield CostLine(
                cost.kind, option_id, period, unit, share, cost.source, terms, fixed, value, group, cost.name
            )


def _taxed(cost: FurtherCost, line: CostLine) -> bool:
    return line.group != "salvage" if cost.of == "all" else line.term in SHARE_OF[cost.of or "rent"]


def _window(instance: Instance, cost: FurtherCost) -> tuple[float, float]:
    """Months in which a cost is paid."""
    horizon = instance.grid.horizon_months
    return cost.start_month, horizon if cost.end_month is None else min(cost.end_month, horizon)


def _change(instance: Instance, cost: FurtherCost) -> float:
    return instance.problem.finance.opex_escalation.change(cost.kind)
