"""What nodes emit, by offer, and the price of it.

Owned nodes emit by the kWh that they use (`energy`); rented ones by an estimate: kW at the meter × paid hours.
"""

from collections.abc import Iterator

from optimizer.model.amounts import Amounts, held_amounts, paid_hours
from optimizer.model.energy import energy_amounts
from optimizer.model.entities import Instance
from optimizer.model.option import Option
from optimizer.model.rows import CostLine
from optimizer.model.variables import Variables
from optimizer.units import GRAMS_PER_TONNE, HOURS_PER_MONTH

CARBON_PRICE = "finance.carbon_price"
"""Source of the price."""


def emissions(instance: Instance, v: Variables) -> Iterator[tuple[Option, Amounts]]:
    """Tonnes of CO2e of each option inside the horizon, with the present value of their price."""
    price = instance.problem.finance.carbon_price or 0.0
    rented = _rented(instance, v, price)
    for option in instance.options:
        grams = option.carbon_g_per_kwh
        if grams is None:
            msg = f"the emissions of {option.option_id} are not known"
            raise ValueError(msg)
        if option.purchase_option == "owned":
            yield option, energy_amounts(instance, v, option, price, per_kwh=grams / GRAMS_PER_TONNE)
        elif option.held:
            monthly = _tonnes_per_node_hour(option) * HOURS_PER_MONTH
            yield option, held_amounts(instance, v, option, price, monthly, past_horizon=False)
        else:
            yield option, rented[option.option_id]


def _tonnes_per_node_hour(option: Option) -> float:
    return (option.metered_kw or 0.0) * (option.carbon_g_per_kwh or 0.0) / GRAMS_PER_TONNE


def _rented(instance: Instance, v: Variables, price: float) -> dict[str, Amounts]:
    """Tonnes of nodes rented by the hour: all paid hours, at full power."""
    found = {option.option_id: Amounts() for option in instance.rented_options}
    tonnes = {option.option_id: _tonnes_per_node_hour(option) for option in instance.rented_options}
    for paid in paid_hours(instance, v, window=(0.0, instance.grid.horizon_months)):
        per_hour = tonnes[paid.option_id]
        value = per_hour * paid.present_hours * price
        found[paid.option_id].add(paid.period, 1.0, paid.column, per_hour * paid.hours, value)
    return found


def carbon_fee(instance: Instance, v: Variables) -> Iterator[CostLine]:
    """Tonnes of CO2e inside the horizon × finance.carbon_price, a running cost."""
    price = instance.problem.finance.carbon_price
    for option, amounts in emissions(instance, v) if price else ():
        yield from amounts.lines("carbon_fee", option, "t CO2e", price or 0.0, source=CARBON_PRICE)
