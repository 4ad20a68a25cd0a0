"""Cost terms: one function each, listed in COST_TERMS. The ledger they yield is both the objective and the report.

Capex, installation and upfront fees are paid at the order; running costs of a calendar month at its end; salvage is
received at the end of the horizon (docs/model.md §Money).
"""

from collections.abc import Callable, Iterator

from optimizer.finance import discount_factor, residual_fraction
from optimizer.model.amounts import Amounts, held_amounts, paid_hours
from optimizer.model.carbon import carbon_fee
from optimizer.model.energy import energy_amounts
from optimizer.model.entities import Instance
from optimizer.model.further_costs import costs_of_traffic, costs_per_order, costs_while_held, fixed_costs, percentages
from optimizer.model.options import Option
from optimizer.model.rows import CostLine
from optimizer.model.variables import Variables
from optimizer.units import HOURS_PER_MONTH, MONTHS_PER_YEAR


def usage_fee(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Node-hours rented, for services and for jobs, × price per hour: all hours are paid, productive or not.

    Where an offer is billed in steps, whole steps are paid.
    """
    amounts = {option.option_id: Amounts() for option in instance.rented_options}
    prices = {option.option_id: option.price_per_node_hour for option in instance.rented_options}
    for paid in paid_hours(instance, v, instance.problem.finance.opex_escalation.rent):
        value = paid.present_hours * prices[paid.option_id] * paid.level
        amounts[paid.option_id].add(paid.period, paid.level, paid.column, paid.hours, value)
    for option in instance.rented_options:
        yield from amounts[option.option_id].lines("usage_fee", option, "node-hours", option.price_per_node_hour)


def holding_fee(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Node-hours of the whole term × price per hour, used or not.

    A term that runs past the horizon is charged to the horizon if it can be cancelled there, else in full, each
    remaining month at its own date.
    """
    for option in instance.held_options:
        if option.price_per_node_hour > 0:
            price = option.price_per_node_hour
            paid = held_amounts(instance, v, option, price, HOURS_PER_MONTH)
            yield from paid.lines("holding_fee", option, "node-hours", price)


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
    change = instance.problem.finance.opex_escalation.electricity
    for option in instance.held_options:
        if option.electricity_per_kwh > 0 and max(option.idle_kw, option.load_kw) > 0:
            amounts = energy_amounts(instance, v, option, option.electricity_per_kwh, change)
            yield from amounts.lines("energy", option, "kWh", option.electricity_per_kwh)


def hosting(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Nameplate kW × months held × fee per kW and month."""
    change = instance.problem.finance.opex_escalation.hosting
    for option in instance.held_options:
        if option.hosting_per_kw_month > 0 and option.nameplate_kw > 0:
            fee = option.hosting_per_kw_month
            amounts = held_amounts(instance, v, option, fee, option.nameplate_kw, change)
            yield from amounts.lines("hosting", option, "kW-months", fee)


def maintenance(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Purchase price (without installation) × yearly share ÷ 12, per month held."""
    change = instance.problem.finance.opex_escalation.maintenance
    for option in instance.held_options:
        monthly = option.capex_per_node * option.maintenance_fraction_per_year / MONTHS_PER_YEAR
        if monthly > 0:
            amounts = held_amounts(instance, v, option, monthly, 1.0, change)
            yield from amounts.lines("maintenance", option, "node-months", monthly)


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
            source = order.option.source
            yield CostLine(
                "salvage_value", order.option.option_id, last, "nodes", worth, source, terms, group="salvage"
            )
    for option in instance.held_options:
        share = _residual(option, option.age_months + horizon)
        if option.existing_nodes and option.capex_per_node * share > 0:
            worth, nodes = -option.capex_per_node * share, float(option.existing_nodes)
            total = nodes * worth * factor
            yield CostLine(
                "salvage_value", option.option_id, last, "nodes", worth, option.source, (), nodes, total, "salvage"
            )


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
            source = order.option.source
            yield CostLine(term, order.option.option_id, order.period, "nodes", amount, source, terms, group="capex")


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
    fixed_costs,
    costs_per_order,
    costs_while_held,
    costs_of_traffic,
    carbon_fee,
)


def build_ledger(instance: Instance, v: Variables) -> tuple[CostLine, ...]:
    """All cost lines, term by term, and what is a share of them."""
    lines = [line for term in COST_TERMS for line in term(instance, v)]
    return (*lines, *percentages(instance, lines))
