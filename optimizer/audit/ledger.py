"""Every line of the ledger derived anew from the conventions, and compared with the plan's, line by line."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from optimizer.audit.calendar import monthly_payments, overlap, residual_share
from optimizer.audit.case import Case
from optimizer.audit.document import LineRecord, OptionRecord
from optimizer.audit.jobs import Working
from optimizer.audit.report import DUST, Checker
from optimizer.audit.services import Place, Station
from optimizer.finance import discount_factor

CAPEX = ("capex", "installation", "upfront_fee")
OPEX = ("usage_fee", "holding_fee", "energy", "hosting", "maintenance")
UNITS = {
    "usage_fee": "node-hours",
    "holding_fee": "node-hours",
    "energy": "kWh",
    "hosting": "kW-months",
    "maintenance": "node-months",
}
"""Units of running costs; everything else counts nodes."""
HOURS_PER_MONTH = 730.0


@dataclass(slots=True)
class Line:
    """A line: quantity × unit price, its present value, and the part that existing nodes fix whatever is decided."""

    term: str
    option: OptionRecord
    period: int
    unit_price: float
    quantity: float = 0.0
    npv: float = 0.0
    fixed_quantity: float = 0.0
    fixed_npv: float = 0.0

    @property
    def amount(self) -> float:
        """Undiscounted amount."""
        return self.quantity * self.unit_price

    @property
    def fixed_amount(self) -> float:
        """Undiscounted amount of the fixed part."""
        return self.fixed_quantity * self.unit_price


def derive_ledger(case: Case, stations: dict[Place, Station], works: list[Working]) -> list[Line]:
    """All lines of the plan's decisions, without lines of nothing."""
    lines = [*_usage_lines(case), *_order_lines(case), *_salvage_lines(case)]
    busy = _busy_node_hours(case, stations, works)
    for option in case.options.values():
        if option.held:
            lines += _held_lines(case, option, busy)
    return [line for line in lines if abs(line.quantity) > DUST]


# --- by the hour ------------------------------------------------------------------------------------------------------


def _usage_lines(case: Case) -> Iterator[Line]:
    """Rented node-hours, for services and jobs, paid with the running costs of their month."""
    found: dict[tuple[str, int], Line] = {}
    nodes = [(option, key, float(count)) for (option, key), count in case.rented.items()]
    nodes += [(option, key, mean) for (option, key), (mean, _) in case.hired.items()]
    for name, key, count in nodes:
        cell, option = case.cells[key], case.options[name]
        if not option.held:
            price = option.price_per_node_hour
            line = found.setdefault((name, cell.period), Line("usage_fee", option, cell.period, price))
            line.quantity += count * cell.hours
            line.npv += count * cell.present_hours * price
    yield from found.values()


# --- per order --------------------------------------------------------------------------------------------------------


def _order_lines(case: Case) -> Iterator[Line]:
    for order in case.orders:
        option = order.option
        factor = discount_factor(case.rate_per_year, order.order_month)
        prices = (option.capex_per_node, option.installation_per_node, option.upfront_per_node)
        for term, price in zip(CAPEX, prices, strict=True):
            if price > 0 and order.nodes:
                yield Line(term, option, order.period, price, order.nodes, order.nodes * price * factor)


def _salvage_lines(case: Case) -> Iterator[Line]:
    """What nodes are worth at the end of the horizon, as a negative cost paid then."""
    factor = discount_factor(case.rate_per_year, case.horizon)
    last = len(case.plan.grid.periods) - 1
    ages = [(order.option, order.nodes, case.horizon - order.arrival_month, 0) for order in case.orders]
    existing = [o for o in case.options.values() if o.existing_nodes]
    ages += [(o, o.existing_nodes, o.age_months + case.horizon, o.existing_nodes) for o in existing]
    for option, nodes, age, fixed in ages:
        worth = -option.capex_per_node * residual_share(age, option.residual_points, option.useful_life_months)
        if worth and nodes:
            value = nodes * worth * factor
            yield Line("salvage_value", option, last, worth, nodes, value, fixed, value if fixed else 0.0)


# --- while held -------------------------------------------------------------------------------------------------------


def _held_lines(case: Case, option: OptionRecord, busy: dict[tuple[str, int], tuple[float, float]]) -> Iterator[Line]:
    """Fees, hosting, maintenance and energy of the nodes of an option, per period."""
    upkeep = option.capex_per_node * option.maintenance_fraction_per_year / 12
    per_month = {
        "holding_fee": (HOURS_PER_MONTH, option.price_per_node_hour),
        "hosting": (option.nameplate_kw, option.hosting_per_kw_month),
        "maintenance": (1.0, upkeep),
        "energy": (option.idle_kw * option.pue * HOURS_PER_MONTH, option.electricity_per_kwh),
    }
    held = _held_months(case, option)
    for term, (quantity, price) in per_month.items():
        if price <= 0:
            continue
        for period in range(len(case.plan.grid.periods) + 1):
            months, present, fixed, fixed_present = held.get(period, (0.0, 0.0, 0.0, 0.0))
            factor = quantity * price
            line = Line(term, option, period, price, months * quantity, present * factor)
            line.fixed_quantity, line.fixed_npv = fixed * quantity, fixed_present * factor
            if term == "energy":
                hours, present_hours = busy.get((option.option_id, period), (0.0, 0.0))
                extra_kw = (option.load_kw - option.idle_kw) * option.pue
                line.quantity += extra_kw * hours
                line.npv += extra_kw * present_hours * price
            yield line


Held = tuple[float, float, float, float]
"""Node-months charged and their present value; the same of existing nodes only."""


def _held_months(case: Case, option: OptionRecord) -> dict[int, Held]:
    """Node-months charged per period; the number after the last period is for what is charged past the horizon."""
    total: dict[int, list[float]] = defaultdict(lambda: [0.0] * 4)
    stays = [(order.nodes, order.arrival_month, order.leave_month, False) for order in case.orders_of(option)]
    if option.existing_nodes:
        stays.append((option.existing_nodes, 0.0, option.months_in_service, True))
    past_horizon = option.term_months is not None and not option.cancellable
    for nodes, arrival, leave, existing in stays:
        stop = leave if past_horizon else min(leave, case.horizon)
        for period, (months, present) in _charged(case, arrival, stop).items() if nodes else ():
            sums = total[period]
            sums[0] += nodes * months
            sums[1] += nodes * present
            if existing:
                sums[2] += nodes * months
                sums[3] += nodes * present
    return {period: (s[0], s[1], s[2], s[3]) for period, s in total.items()}


def _charged(case: Case, arrival: float, stop: float) -> dict[int, tuple[float, float]]:
    """Months from arrival to stop, and their present value, by the period in which they lie."""
    periods = case.plan.grid.periods
    spans = [(p.start_month, p.start_month + p.months) for p in periods] + [(case.horizon, math.inf)]
    found = {}
    for number, span in enumerate(spans):
        if overlap((arrival, stop), span) > DUST:
            begin, end = max(arrival, span[0]), min(stop, span[1])
            payments = list(monthly_payments(begin, end, case.horizon))
            present = math.fsum(months * discount_factor(case.rate_per_year, paid) for months, paid in payments)
            found[number] = (end - begin, present)
    return found


def _busy_node_hours(
    case: Case, stations: dict[Place, Station], works: list[Working]
) -> dict[tuple[str, int], tuple[float, float]]:
    """Node-hours busy and their present value, by (option, period).

    A service keeps busy what it serves ÷ the throughput at its operating point, a job its GPUs ÷ the node's.
    """
    total: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(option: str, key: tuple[int, int], nodes: float) -> None:
        cell = case.cells[key]
        sums = total[option, cell.period]
        sums[0] += nodes * cell.hours
        sums[1] += nodes * cell.present_hours

    for station in stations.values():
        seconds = {name: c.replica_seconds_per_request for name, c in station.classes.items()}
        replicas = math.fsum(rate * seconds[name] for name, rate in station.served.items())
        add(station.option.option_id, station.key, replicas * station.gpus_kept / station.option.gpus_per_node)
    for work in works:
        add(work.record.option, work.key, work.record.gpus_on_free / work.option.gpus_per_node)
    return {place: (sums[0], sums[1]) for place, sums in total.items()}


# --- comparison -------------------------------------------------------------------------------------------------------


def check_ledger(case: Case, lines: list[Line], checker: Checker) -> None:
    """Compare line by line; none may be missing and none may be there that is not derived."""
    derived: dict[tuple[str, str, int], list[Line]] = defaultdict(list)
    for line in lines:
        derived[line.term, line.option.option_id, line.period + 1].append(line)
    listed: dict[tuple[str, str, int], list[LineRecord]] = defaultdict(list)
    for record in case.plan.cost_lines:
        listed[record.term, record.option, record.period].append(record)
    for key in dict.fromkeys((*derived, *listed)):
        where = "cost_lines[{} {} period {}]".format(*key)
        expected = sorted(derived[key], key=_by_price)
        found = sorted(listed[key], key=_by_price)
        if len(expected) != len(found) and not _only_dust(expected, found):
            checker.fail("ledger", where, "lines missing or too many", found=len(found), expected=len(expected))
        for line, record in zip(expected, found, strict=False):
            _check_line(where, line, record, checker)
    _check_totals(case, lines, checker)


def _by_price(line: Line | LineRecord) -> tuple[float, float]:
    return (line.unit_price, line.quantity)


def _only_dust(expected: list[Line], found: list[LineRecord]) -> bool:
    quantities = [*(line.quantity for line in expected), *(record.quantity for record in found)]
    return all(abs(quantity) <= 10 * DUST for quantity in quantities)


def _check_line(where: str, line: Line, record: LineRecord, checker: Checker) -> None:
    unit = UNITS.get(line.term, "nodes")
    checker.equal("ledger", f"{where}.unit_price", record.unit_price, line.unit_price, f"per {unit}")
    checker.equal("ledger", f"{where}.quantity", record.quantity, line.quantity, unit)
    checker.equal("ledger", f"{where}.amount", record.amount, line.amount)
    checker.equal("ledger", f"{where}.npv", record.npv, line.npv)
    checker.same("ledger", f"{where}.unit", record.unit, unit)
    checker.same("ledger", f"{where}.source", record.source, line.option.source)


def _check_totals(case: Case, lines: list[Line], checker: Checker) -> None:
    cost = case.plan.cost
    size = max((abs(line.npv) for line in lines), default=0.0)
    listed = math.fsum(record.npv for record in case.plan.cost_lines)
    checker.equal("totals", "cost.npv", cost.npv, math.fsum(line.npv for line in lines), case.plan.currency, size)
    checker.equal("totals", "cost.npv", cost.npv, listed, case.plan.currency, size)
    for name, terms, sign in (("capex", CAPEX, 1), ("opex", OPEX, 1), ("salvage", ("salvage_value",), -1)):
        total = sign * math.fsum(line.amount for line in lines if line.term in terms)
        checker.equal("totals", f"cost.{name}", getattr(cost, name), total, case.plan.currency)


def check_budgets(case: Case, lines: list[Line], checker: Checker) -> None:
    """Check the budgets of the problem."""
    limits, currency = case.problem.limits, case.plan.currency
    if limits.capex is not None:
        spent = math.fsum(line.amount for line in lines if line.term in CAPEX)
        checker.at_most("budget", "limits.capex", spent, limits.capex, currency)
    if limits.npv is not None:
        checker.at_most("budget", "limits.npv", math.fsum(line.npv for line in lines), limits.npv, currency)
    if limits.opex is not None:
        for number, period in enumerate(case.plan.grid.periods):
            running = math.fsum(line.amount for line in lines if line.term in OPEX and line.period == number)
            where = f"limits.opex in period {number + 1}"
            checker.at_most("budget", where, running / period.months, limits.opex, f"{currency}/month")
