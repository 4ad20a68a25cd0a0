"""Energy of owned nodes: kWh while held, and more while busy. What is counted per kWh: its price, its emissions."""

from collections.abc import Iterator

from optimizer.model.amounts import Amounts, held_amounts
from optimizer.model.entities import Instance
from optimizer.model.option import Option
from optimizer.model.spans import priced_hours
from optimizer.model.variables import CellKey, Variables, cell_key
from optimizer.units import HOURS_PER_MONTH


def energy_amounts(
    instance: Instance, v: Variables, option: Option, price: float, change_per_year: float = 0.0, per_kwh: float = 1.0
) -> Amounts:
    """`per_kwh` × (idle kW while held + (load − idle) kW × busy share) × PUE × hours, at `price` for each.

    Busy share of a service = served ÷ throughput at its operating point, of a job = GPUs working ÷ GPUs of the node.
    """
    idle = option.idle_kw * option.pue * HOURS_PER_MONTH * per_kwh
    amounts = held_amounts(instance, v, option, price, idle, change_per_year)
    extra = (option.load_kw - option.idle_kw) * option.pue * per_kwh
    hours = {cell_key(c): priced_hours(instance, c, change_per_year) for c in instance.cells()}
    for column, busy_nodes, key in _busy_nodes(instance, v, option):
        per_hour, period = busy_nodes * extra, instance.grid.blocks[key[0]].period
        for part in hours[key]:
            value = per_hour * part.present_hours * price * part.level
            amounts.add(period, part.level, column, per_hour * part.hours, value)
    return amounts


def _busy_nodes(instance: Instance, v: Variables, option: Option) -> Iterator[tuple[int, float, CellKey]]:
    """(column, nodes busy per unit of it, cell) of all that keeps nodes of the option busy."""
    rates = {(d.workload, d.request_class): d.rate_per_s for d in instance.rate_demands}
    for (index, name, key), column in v.serve.items():
        server = instance.servers[index]
        if server.option is option:
            rate = rates[server.workload, name][instance.grid.blocks[key[0]].period][key[1]]
            seconds = next(c for c in server.estimate.classes if c.request_class == name).replica_seconds_per_request
            yield column, rate * seconds * (server.occupied_gpus / option.gpus_per_node), key
    for place in v.places:
        if place.option is option and place.free is not None:
            yield place.free, place.gpus_per_share / option.gpus_per_node, cell_key(place.cell)
