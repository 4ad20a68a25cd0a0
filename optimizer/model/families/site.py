"""Families of the site where owned nodes stand: power and rack units.

The docstring of a family is its inequality, then why. Left-hand sides hold variables only, right-hand sides data only,
both in the buyer's units.
"""

from collections.abc import Callable, Iterator

from optimizer.model.entities import Instance
from optimizer.model.lookup import month_label
from optimizer.model.option import Option
from optimizer.model.rows import CostLine, Row, row
from optimizer.model.variables import Variables


def site_power(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ nameplate kW × owned nodes ≤ site.power_limit_it; Σ nameplate kW × PUE × nodes ≤ site.power_limit_facility.

    In every block, for the nodes in service.
    """
    site = instance.problem.site
    if site is not None and site.power_limit_it is not None:
        yield from _owned(instance, v, "site_power", (), lambda o: o.nameplate_kw, site.power_limit_it, "kW")
    if site is not None and site.power_limit_facility is not None:
        at_meter = ("facility",)
        limit = site.power_limit_facility
        yield from _owned(instance, v, "site_power", at_meter, lambda o: o.nameplate_kw * o.pue, limit, "kW")


def site_rack_units(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ rack units × owned nodes in service ≤ site.rack_units_limit, in every block."""
    limit = instance.problem.site.rack_units_limit if instance.problem.site else None
    if limit is not None:
        yield from _owned(instance, v, "site_rack_units", (), lambda o: o.rack_units or 0.0, limit, "U")


def _owned(
    instance: Instance,
    v: Variables,
    family: str,
    label: tuple[str, ...],
    weight: Callable[[Option], float],
    limit: float,
    unit: str,
) -> Iterator[Row]:
    for block in instance.grid.blocks:
        terms = [
            (v.stock[o.option_id, block.index], weight(o))
            for o in instance.held_options
            if o.purchase_option == "owned" and (o.option_id, block.index) in v.stock
        ]
        if terms:
            yield row(family, (month_label(block.start_month), *label), terms, "<=", limit, unit)
