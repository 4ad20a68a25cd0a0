"""The buyer's further costs derived anew from the problem (docs/model.md §Money): paid once, monthly, per GB."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from optimizer.audit.billing import hours_rented
from optimizer.audit.calendar import EPSILON_MONTHS, HOURS_PER_MONTH
from optimizer.audit.case import Case
from optimizer.audit.document import OptionRecord
from optimizer.audit.lines import Line, stays_charged
from optimizer.audit.services import Place, Station
from optimizer.audit.stretches import When, hours_charged, months_charged
from optimizer.finance import discount_factor
from optimizer.problem.further_costs import FurtherCost
from optimizer.problem.schema import Problem

UNITS = {"node": ("nodes", "node-months"), "gpu": ("GPUs", "GPU-months"), "kw": ("kW", "kW-months")}
BASES = {"purchases": {"capex", "installation"}, "rent": {"usage_fee", "holding_fee", "upfront_fee"}}


def further_lines(case: Case, stations: dict[Place, Station]) -> Iterator[Line]:
    """Lines of all further costs that are no percentages."""
    for cost in case.problem.costs:
        if cost.per is None:
            yield from _fixed(case, cost)
            yield from _moved(case, cost, stations)
            continue
        for option in case.options.values():
            if falls_on(cost, option) and _size(cost, option) > 0:
                yield from _once(case, cost, option)
                yield from _monthly(case, cost, option)


def falls_on(cost: FurtherCost, option: OptionRecord) -> bool:
    """Whether a cost is for nodes of an option."""
    if cost.purchase is not None and not any(way == option.purchase_option for way in cost.purchase):
        return False
    texts = ((cost.provider, option.provider), (cost.option, option.option_id))
    named = all(wanted is None or fnmatchcase(text.lower(), wanted.lower()) for wanted, text in texts)
    return named and cost.gpu in (None, option.gpu_id)


def alike(one: OptionRecord, other: OptionRecord, problem: Problem, number: int = 1) -> bool:
    """Whether so many nodes of one option bear no further cost that a node of the other does not bear."""
    for cost in problem.costs:
        if falls_on(cost, one) != falls_on(cost, other):
            return False
        if cost.per == "gpu" and falls_on(cost, one) and number * one.gpus_per_node > other.gpus_per_node:
            return False
        if cost.per in ("node", "kw") and falls_on(cost, one) and number > 1:
            return False
    return True


def _size(cost: FurtherCost, option: OptionRecord) -> float:
    """What counts of a node."""
    if cost.per == "gpu":
        return float(option.gpus_per_node)
    return option.nameplate_kw if cost.per == "kw" else 1.0


def _paid(case: Case, cost: FurtherCost) -> tuple[tuple[float, float], float]:
    """The months in which a cost is paid, and its change per year."""
    end = min(case.horizon, math.inf if cost.end_month is None else cost.end_month)
    return (cost.start_month, end), getattr(case.problem.finance.opex_escalation, cost.kind)


def _line(
    cost: FurtherCost, option: OptionRecord | None, when: When, price: float, unit: str, group: str = "opex"
) -> Line:
    period, level = when
    return Line(cost.kind, option, period, price * level, group=group, name=cost.name, unit=unit, said=cost.source)


def _filled(line: Line, quantity: float, present: float, *, fixed: bool = False) -> Line:
    """A line with its quantity, and the present value of that quantity at price 1."""
    line.quantity, line.npv = quantity, present * line.unit_price
    if fixed:
        line.fixed_quantity, line.fixed_npv = line.quantity, line.npv
    return line


def _fixed(case: Case, cost: FurtherCost) -> Iterator[Line]:
    """What is paid whatever is chosen."""
    (start, end), change = _paid(case, cost)
    if cost.once and start < case.horizon - EPSILON_MONTHS:
        starts = [p.start_month for p in case.plan.grid.periods]
        period = sum(month <= start + EPSILON_MONTHS for month in starts) - 1
        present = discount_factor(case.rate_per_year, start)
        yield _filled(_line(cost, None, (period, 1.0), cost.once, "times", "capex"), 1.0, present, fixed=True)
    amounts = ((cost.monthly, 1.0, "months"), (cost.per_gb, cost.gb_per_month, "GB"))
    for price, quantity, unit in amounts:
        for when, (months, present) in months_charged(case, start, end, change).items() if price and quantity else ():
            line = _line(cost, None, when, price or 0.0, unit)
            yield _filled(line, months * (quantity or 0.0), present * (quantity or 0.0), fixed=True)


def _once(case: Case, cost: FurtherCost, option: OptionRecord) -> Iterator[Line]:
    """Paid at each order."""
    (start, end), _ = _paid(case, cost)
    for order in case.orders_of(option) if cost.once else ():
        if start - EPSILON_MONTHS <= order.order_month < end - EPSILON_MONTHS:
            quantity = order.nodes * _size(cost, option)
            line = _line(cost, option, (order.period, 1.0), cost.once or 0.0, UNITS[cost.per or ""][0], "capex")
            yield _filled(line, quantity, quantity * discount_factor(case.rate_per_year, order.order_month))


def _monthly(case: Case, cost: FurtherCost, option: OptionRecord) -> Iterator[Line]:
    """Paid while nodes are held, or for node-hours rented ÷ 730."""
    if not cost.monthly:
        return
    window, change = _paid(case, cost)
    size, unit = _size(cost, option), UNITS[cost.per or ""][1]
    if option.held:
        for when, stay in stays_charged(case, option, change, window, whole_term=False).items():
            line = _filled(_line(cost, option, when, cost.monthly, unit), stay.months * size, stay.present * size)
            line.fixed_quantity, line.fixed_npv = stay.fixed_months * size, stay.fixed_present * size * line.unit_price
            yield line
        return
    months = size / HOURS_PER_MONTH
    for when, (hours, present) in hours_rented(case, option, change, window).items():
        yield _filled(_line(cost, option, when, cost.monthly, unit), hours * months, present * months)


def _moved(case: Case, cost: FurtherCost, stations: dict[Place, Station]) -> Iterator[Line]:
    """GB moved by the requests that come (what is planned for, without headroom)."""
    if not cost.per_gb or not cost.gb_per_1000_requests:
        return
    window, change = _paid(case, cost)
    total: dict[str, dict[When, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for place, station in stations.items():
        service = case.services[place[0]]
        answered = station.stage != "prefill"
        if answered and cost.workload in (None, service.name) and falls_on(cost, station.option):
            planned_per_hour = 3600 * math.fsum(station.served.values())
            gb_per_hour = planned_per_hour / (1 + service.headroom) * cost.gb_per_1000_requests / 1000
            for when, (hours, present) in hours_charged(case, station.key, change, window).items():
                total[station.option.option_id][when].append((hours * gb_per_hour, present * gb_per_hour))
    for name, amounts in total.items():
        yield from _summed(cost, case.options[name], cost.per_gb, "GB", amounts)


def _summed(
    cost: FurtherCost, option: OptionRecord, price: float, unit: str, amounts: dict[When, list[tuple[float, float]]]
) -> Iterator[Line]:
    for when, parts in amounts.items():
        quantity, present = (math.fsum(part[i] for part in parts) for i in (0, 1))
        yield _filled(_line(cost, option, when, price, unit), quantity, present)


def percentage_lines(case: Case, lines: Sequence[Line]) -> list[Line]:
    """Shares of the lines derived so far."""
    found: dict[tuple[int, str, int, str], Line] = {}
    for number, cost in enumerate(case.problem.costs):
        for line in lines if cost.percent else ():
            if not _is_base(cost, line):
                continue
            key = (number, line.option_id, line.period, line.group)
            share = cost.percent or 0.0
            new = _line(cost, line.option, (line.period, 1.0), share, case.plan.currency, line.group)
            tax = found.setdefault(key, new)
            tax.quantity += line.amount
            tax.npv += line.npv * share
            tax.fixed_quantity += line.fixed_amount
            tax.fixed_npv += line.fixed_npv * share
    return list(found.values())


def _is_base(cost: FurtherCost, line: Line) -> bool:
    """Whether a line is among what a percentage is of; one for some nodes only is not of what is paid anyway."""
    if line.group == "salvage" or (cost.of != "all" and line.term not in BASES[cost.of or ""]):
        return False
    named = any((cost.purchase, cost.provider, cost.gpu, cost.option))
    return not named or (line.option is not None and falls_on(cost, line.option))
