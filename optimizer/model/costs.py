"""Cost terms: one function each, listed in COST_TERMS. The ledger they yield is both the objective and the report.

Capex, installation and upfront fees are paid at the order; running costs of a calendar month at its end; salvage is
received at the end of the horizon (docs/model.md §Money).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from optimizer.finance import calendar_parts, discount_factor, residual_fraction, running_factor
from optimizer.model.entities import Instance, Order
from optimizer.model.options import Option
from optimizer.model.rows import CostLine
from optimizer.model.timegrid import SAME_MONTH
from optimizer.model.variables import Variables, cell_key
from optimizer.units import HOURS_PER_MONTH, MONTHS_PER_YEAR

AmountTerm = tuple[int, float, float]
"""(column, quantity, present value)."""


def usage_fee(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Node-hours rented, for services and for jobs, × price per hour: all hours are paid, productive or not."""
    terms: dict[tuple[str, int], list[AmountTerm]] = defaultdict(list)
    prices = {o.option_id: o.price_per_node_hour for o in instance.rented_options}
    cells = {cell_key(c): c for c in instance.cells()}
    rented = [(option, key, column, 1.0) for (option, key), column in v.rent.items()]
    hired = [
        (p.option.option_id, cell_key(p.cell), p.nodes, p.nodes_per_share) for p in v.places if p.nodes is not None
    ]
    for option_id, key, column, nodes in [*rented, *hired]:
        cell = cells[key]
        period = instance.grid.blocks[cell.block].period
        value = nodes * cell.present_value_hours * prices[option_id]
        terms[option_id, period].append((column, nodes * cell.hours, value))
    yield from _lines(instance, "usage_fee", "node-hours", terms, lambda o: o.price_per_node_hour)


def holding_fee(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Node-hours of the whole term × price per hour, used or not.

    A term that runs past the horizon is charged to the horizon if it can be cancelled there, else in full, each
    remaining month at its own date.
    """
    for option in instance.held_options:
        if option.price_per_node_hour > 0:
            yield from _held_lines(instance, v, "holding_fee", option, option.price_per_node_hour, "node-hours", 730.0)


def upfront_fee(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Nodes ordered × upfront fee, paid at the order and not refunded."""
    yield from _order_lines(instance, v, "upfront_fee", lambda o: o.upfront_per_node)


def capex(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Nodes bought × price, paid at the order."""
    yield from _order_lines(instance, v, "capex", lambda o: o.capex_per_node)


def installation(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Nodes bought × installation, paid at the order."""
    yield from _order_lines(instance, v, "installation", lambda o: o.installation_per_node)


def energy(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """(idle kW while held + (load − idle) kW × busy share) × PUE × hours × price of a kWh, for owned nodes.

    Busy share of a service = served ÷ throughput at its operating point, of a job = GPUs working ÷ GPUs of the node.
    """
    for option in instance.held_options:
        if option.electricity_per_kwh <= 0 or max(option.idle_kw, option.load_kw) <= 0:
            continue
        idle = option.idle_kw * option.pue * HOURS_PER_MONTH
        idle_lines = _held_lines(instance, v, "energy", option, option.electricity_per_kwh, "kWh", idle)
        busy = _busy_terms(instance, v, option)
        yield from _merged(instance, "energy", option, option.electricity_per_kwh, "kWh", idle_lines, busy)


def hosting(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Nameplate kW × months held × fee per kW and month."""
    for option in instance.held_options:
        if option.hosting_per_kw_month > 0 and option.nameplate_kw > 0:
            fee = option.hosting_per_kw_month
            yield from _held_lines(instance, v, "hosting", option, fee, "kW-months", option.nameplate_kw)


def maintenance(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Purchase price (without installation) × yearly share ÷ 12, per month held."""
    for option in instance.held_options:
        monthly = option.capex_per_node * option.maintenance_fraction_per_year / MONTHS_PER_YEAR
        if monthly > 0:
            yield from _held_lines(instance, v, "maintenance", option, monthly, "node-months", 1.0)


def salvage_value(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """− price × residual share at the age reached at the end of the horizon, received then."""
    horizon = instance.grid.horizon_months
    factor = discount_factor(instance.rate_per_year, horizon)
    last = len(instance.grid.periods) - 1
    for order in instance.orders:
        share = _residual(order.option, horizon - order.arrival_month)
        if order.option.capex_per_node > 0 and share > 0:
            worth = -order.option.capex_per_node * share
            column = v.acquire[order.option.option_id, order.period]
            terms = ((column, 1.0, worth * factor),)
            yield CostLine("salvage_value", order.option.option_id, last, "nodes", worth, order.option.source, terms)
    for option in instance.held_options:
        share = _residual(option, option.age_months + horizon)
        if option.existing_nodes and option.capex_per_node * share > 0:
            worth, nodes = -option.capex_per_node * share, float(option.existing_nodes)
            total = nodes * worth * factor
            yield CostLine("salvage_value", option.option_id, last, "nodes", worth, option.source, (), nodes, total)


def _residual(option: Option, age_months: float) -> float:
    return residual_fraction(age_months, option.residual_points, option.useful_life_months)


def _order_lines(instance: Instance, v: Variables, term: str, price: Callable[[Option], float]) -> Iterator[CostLine]:
    """One line per order of an option with a price, paid at the order."""
    for order in instance.orders:
        amount = price(order.option)
        if amount > 0:
            column = v.acquire[order.option.option_id, order.period]
            value = amount * discount_factor(instance.rate_per_year, order.order_month)
            terms = ((column, 1.0, value),)
            yield CostLine(term, order.option.option_id, order.period, "nodes", amount, order.option.source, terms)


def _held_spans(
    instance: Instance, option: Option, start_month: float, end_month: float
) -> dict[int, tuple[float, float]]:
    """Months charged in each period, and their present value, for a node in service from start to end.

    Months past the horizon count under the number after the last period, where the term cannot be cancelled.
    """
    horizon = instance.grid.horizon_months
    runs_on = option.term_months is not None and not option.cancellable
    stop = end_month if runs_on else min(end_month, horizon)
    spans: dict[int, tuple[float, float]] = {}
    for period in instance.grid.periods:
        begin, end = max(start_month, period.start_month), min(stop, period.end_month)
        if end > begin + SAME_MONTH:
            value = running_factor(instance.rate_per_year, begin, end, horizon)
            spans[period.index] = (end - begin, value)
    if stop > horizon + SAME_MONTH:
        parts = list(calendar_parts(max(horizon, start_month), stop, horizon))
        value = sum(length * discount_factor(instance.rate_per_year, pay) for length, pay in parts)
        spans[len(instance.grid.periods)] = (sum(length for length, _ in parts), value)
    return spans


def _held_lines(
    instance: Instance, v: Variables, term: str, option: Option, price: float, unit: str, quantity_per_month: float
) -> Iterator[CostLine]:
    """Lines per period of something paid per month while a node is held."""
    terms: dict[int, list[AmountTerm]] = defaultdict(list)
    fixed: dict[int, tuple[float, float]] = {}
    for order, column in _orders_of(instance, v, option):
        for period, (months, value) in _held_spans(instance, option, order.arrival_month, order.end_month).items():
            quantity = months * quantity_per_month
            terms[period].append((column, quantity, value * quantity_per_month * price))
    if option.existing_nodes:
        for period, (months, value) in _held_spans(instance, option, 0.0, option.held_until(0.0)).items():
            quantity = option.existing_nodes * quantity_per_month
            fixed[period] = (months * quantity, value * quantity * price)
    for period in sorted({*terms, *fixed}):
        constant = fixed.get(period, (0.0, 0.0))
        yield CostLine(
            term, option.option_id, period, unit, price, option.source, tuple(terms[period]), constant[0], constant[1]
        )


def _orders_of(instance: Instance, v: Variables, option: Option) -> Iterator[tuple[Order, int]]:
    for order in instance.orders:
        if order.option is option:
            yield order, v.acquire[option.option_id, order.period]


def _busy_terms(instance: Instance, v: Variables, option: Option) -> dict[int, list[AmountTerm]]:
    """Extra kWh per unit of `serve` and `work` when a node of the option is busy, per period."""
    extra_kw = (option.load_kw - option.idle_kw) * option.pue
    cells = {cell_key(c): c for c in instance.cells()}
    rates = {(d.workload, d.request_class): d.rate_per_s for d in instance.rate_demands}
    found: dict[int, list[AmountTerm]] = defaultdict(list)

    def add(column: int, busy_nodes: float, key: tuple[int, int]) -> None:
        cell, period = cells[key], instance.grid.blocks[key[0]].period
        kw = busy_nodes * extra_kw
        found[period].append((column, kw * cell.hours, kw * cell.present_value_hours * option.electricity_per_kwh))

    for (index, name, key), column in v.serve.items():
        server = instance.servers[index]
        if server.option is option:
            rate = rates[server.workload, name][instance.grid.blocks[key[0]].period][key[1]]
            seconds = next(c for c in server.estimate.classes if c.request_class == name).replica_seconds_per_request
            share_of_node = server.occupied_gpus / option.gpus_per_node
            add(column, rate * seconds * share_of_node, key)
    for place in v.places:
        if place.option is option and place.free is not None:
            add(place.free, place.gpus_per_share / option.gpus_per_node, cell_key(place.cell))
    return found


def _merged(
    instance: Instance,
    term: str,
    option: Option,
    price: float,
    unit: str,
    lines: Iterable[CostLine],
    extra: dict[int, list[AmountTerm]],
) -> Iterator[CostLine]:
    """One line per period: what is held plus what is busy."""
    by_period = {line.period: line for line in lines}
    for period in range(len(instance.grid.periods)):
        held = by_period.get(period)
        terms = (*(held.terms if held else ()), *extra.get(period, ()))
        constants = (held.constant_quantity, held.constant_npv) if held else (0.0, 0.0)
        if terms or constants[0]:
            yield CostLine(term, option.option_id, period, unit, price, option.source, terms, *constants)


def _lines(
    instance: Instance,
    term: str,
    unit: str,
    terms: dict[tuple[str, int], list[AmountTerm]],
    price: Callable[[Option], float],
) -> Iterator[CostLine]:
    options = {o.option_id: o for o in instance.options}
    for (option_id, period), found in terms.items():
        option = options[option_id]
        yield CostLine(term, option_id, period, unit, price(option), option.source, tuple(found))


CostTerm = Callable[[Instance, Variables], Iterator[CostLine]]
COST_TERMS: tuple[CostTerm, ...] = (
    usage_fee,
    holding_fee,
    upfront_fee,
    capex,
    installation,
    energy,
    hosting,
    maintenance,
    salvage_value,
)


def build_ledger(instance: Instance, v: Variables) -> tuple[CostLine, ...]:
    """All cost lines, term by term."""
    return tuple(line for term in COST_TERMS for line in term(instance, v))
