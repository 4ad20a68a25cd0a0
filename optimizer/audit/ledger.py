"""Every line of the ledger derived anew from the conventions, and compared with the plan's, line by line."""

import math
from collections import defaultdict
from collections.abc import Iterator

from optimizer.audit.billing import hours_rented
from optimizer.audit.calendar import residual_share
from optimizer.audit.carbon import carbon_lines
from optimizer.audit.case import Case, Key
from optimizer.audit.document import LineRecord, OptionRecord
from optimizer.audit.energy import busy_nodes
from optimizer.audit.further_costs import further_lines, percentage_lines
from optimizer.audit.jobs import Working
from optimizer.audit.lines import CAPEX, Line, Stay, stays_charged
from optimizer.audit.report import DUST, Checker
from optimizer.audit.services import Place, Station
from optimizer.audit.stretches import When, hours_charged
from optimizer.finance import discount_factor

UNITS = {
    "usage_fee": "node-hours",
    "holding_fee": "node-hours",
    "energy": "kWh",
    "hosting": "kW-months",
    "maintenance": "node-months",
}
"""Units of the running costs of nodes; other lines of nodes count nodes, further costs say theirs."""
HOURS_PER_MONTH = 730.0


def derive_ledger(case: Case, stations: dict[Place, Station], works: list[Working]) -> list[Line]:
    """All lines of the plan's decisions, without lines of nothing."""
    lines = [*_usage_lines(case), *_order_lines(case), *_salvage_lines(case)]
    busy = busy_nodes(stations, works)
    for option in case.options.values():
        if option.held:
            lines += _held_lines(case, option, busy)
    lines += further_lines(case, stations)
    lines += carbon_lines(case, busy) if case.problem.finance.carbon_price else []
    lines += percentage_lines(case, lines)
    return [line for line in lines if abs(line.quantity) > DUST]


# --- by the hour ------------------------------------------------------------------------------------------------------


def _usage_lines(case: Case) -> Iterator[Line]:
    """Rented node-hours, for services and jobs, paid with the running costs of their month."""
    change = case.problem.finance.opex_escalation.rent
    for option in case.options.values():
        for when, (hours, present) in hours_rented(case, option, change).items() if not option.held else ():
            price = option.price_per_node_hour * when[1]
            yield Line("usage_fee", option, when[0], price, hours, present * price)


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


def _held_lines(case: Case, option: OptionRecord, busy: dict[str, list[tuple[Key, float]]]) -> Iterator[Line]:
    """Fees, hosting, maintenance and energy of the nodes of an option, per period and price."""
    rises = case.problem.finance.opex_escalation
    upkeep = option.capex_per_node * option.maintenance_fraction_per_year / 12
    idle = option.idle_kw * option.pue * HOURS_PER_MONTH
    per_month = (
        ("holding_fee", HOURS_PER_MONTH, option.price_per_node_hour, 0.0),
        ("hosting", option.nameplate_kw, option.hosting_per_kw_month, rises.hosting),
        ("maintenance", 1.0, upkeep, rises.maintenance),
        ("energy", idle, option.electricity_per_kwh, rises.electricity),
    )
    for term, quantity, price, change in per_month:
        if price <= 0:
            continue
        found: dict[When, Line] = {}
        for when, stay in stays_charged(case, option, change).items():
            found[when] = _held_line(Line(term, option, when[0], price * when[1]), stay, quantity)
        if term == "energy":
            for key, nodes in busy[option.option_id]:
                _add_busy(case, found, option, key, nodes)
        yield from found.values()


def _held_line(line: Line, stay: Stay, quantity: float) -> Line:
    line.quantity, line.fixed_quantity = stay.months * quantity, stay.fixed_months * quantity
    line.npv, line.fixed_npv = (p * quantity * line.unit_price for p in (stay.present, stay.fixed_present))
    return line


def _add_busy(case: Case, found: dict[When, Line], option: OptionRecord, key: Key, nodes: float) -> None:
    """What busy nodes draw more than idle ones."""
    extra_kw = (option.load_kw - option.idle_kw) * option.pue * nodes
    for when, (hours, present) in hours_charged(case, key, case.problem.finance.opex_escalation.electricity).items():
        line = found.setdefault(when, Line("energy", option, when[0], option.electricity_per_kwh * when[1]))
        line.quantity += extra_kw * hours
        line.npv += extra_kw * present * line.unit_price


# --- comparison -------------------------------------------------------------------------------------------------------


def check_ledger(case: Case, lines: list[Line], checker: Checker) -> None:
    """Compare line by line; none may be missing and none may be there that is not derived."""
    derived: dict[tuple[str, str, str, int], list[Line]] = defaultdict(list)
    for line in lines:
        derived[line.term, line.name, line.option_id, line.period + 1].append(line)
    listed: dict[tuple[str, str, str, int], list[LineRecord]] = defaultdict(list)
    for record in case.plan.cost_lines:
        listed[record.term, record.name, record.option, record.period].append(record)
    for key in dict.fromkeys((*derived, *listed)):
        where = "cost_lines[{} period {}]".format(" ".join(part for part in key[:3] if part), key[3])
        expected = sorted(derived[key], key=_by_price)
        found = sorted(listed[key], key=_by_price)
        if len(expected) != len(found) and not _only_dust(expected, found):
            checker.fail("ledger", where, "lines missing or too many", found=len(found), expected=len(expected))
        for line, record in zip(expected, found, strict=False):
            _check_line(where, line, record, checker)
    keys = {frozenset(record.model_fields_set) for record in case.plan.cost_lines}
    checker.holds("ledger", "cost_lines", len(keys) < 2, "some lines lack keys that others have")
    _check_totals(case, lines, checker)


def _by_price(line: Line | LineRecord) -> tuple[str, float, float]:
    return (line.group, line.unit_price, line.quantity)


def _only_dust(expected: list[Line], found: list[LineRecord]) -> bool:
    quantities = [*(line.quantity for line in expected), *(record.quantity for record in found)]
    return all(abs(quantity) <= 10 * DUST for quantity in quantities)


def _check_line(where: str, line: Line, record: LineRecord, checker: Checker) -> None:
    unit = line.unit or UNITS.get(line.term, "nodes")
    checker.equal("ledger", f"{where}.unit_price", record.unit_price, line.unit_price, f"per {unit}")
    checker.equal("ledger", f"{where}.quantity", record.quantity, line.quantity, unit)
    checker.equal("ledger", f"{where}.amount", record.amount, line.amount)
    checker.equal("ledger", f"{where}.npv", record.npv, line.npv)
    checker.same("ledger", f"{where}.unit", record.unit, unit)
    checker.same("ledger", f"{where}.source", record.source, line.source)
    checker.same("ledger", f"{where}.group", record.group, line.group)


def _check_totals(case: Case, lines: list[Line], checker: Checker) -> None:
    cost = case.plan.cost
    size = max((abs(line.npv) for line in lines), default=0.0)
    listed = math.fsum(record.npv for record in case.plan.cost_lines)
    checker.equal("totals", "cost.npv", cost.npv, math.fsum(line.npv for line in lines), case.plan.currency, size)
    checker.equal("totals", "cost.npv", cost.npv, listed, case.plan.currency, size)
    for name, sign in (("capex", 1), ("opex", 1), ("salvage", -1)):
        total = sign * math.fsum(line.amount for line in lines if line.group == name)
        checker.equal("totals", f"cost.{name}", getattr(cost, name), total, case.plan.currency)


def check_budgets(case: Case, lines: list[Line], checker: Checker) -> None:
    """Check the budgets of the problem."""
    limits, currency = case.problem.limits, case.plan.currency
    if limits.capex is not None:
        spent = math.fsum(line.amount for line in lines if line.group == "capex")
        checker.at_most("budget", "limits.capex", spent, limits.capex, currency)
    for number, most in enumerate(limits.capex_by_period or ()):
        bought = math.fsum(line.amount for line in lines if line.group == "capex" and line.period == number)
        if most is not None:
            checker.at_most("budget", f"limits.capex_by_period[{number}]", bought, most, currency)
    if limits.npv is not None:
        checker.at_most("budget", "limits.npv", math.fsum(line.npv for line in lines), limits.npv, currency)
    if limits.opex is not None:
        for number, period in enumerate(case.plan.grid.periods):
            running = math.fsum(line.amount for line in lines if line.group == "opex" and line.period == number)
            where = f"limits.opex in period {number + 1}"
            checker.at_most("budget", where, running / period.months, limits.opex, f"{currency}/month")
