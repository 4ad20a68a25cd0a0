"""A model built from another one that differs in numbers only: what the change cannot touch is taken over as it is.

Prices stand in the ledger and the budgets, limits in their own families. Whatever else differs (workloads, the grid,
sizes, which offers there are, which variables are needed) is built anew.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from optimizer.model.build import Milp, build, collection_paused
from optimizer.model.constraints import FAMILIES
from optimizer.model.costs import build_ledger
from optimizer.model.entities import Instance
from optimizer.model.families.strengthening import CUTS
from optimizer.model.option import Option
from optimizer.model.rows import Row
from optimizer.model.variables import make_variables

MONEY = (
    "price_per_node_hour",
    "upfront_per_node",
    "capex_per_node",
    "installation_per_node",
    "electricity_per_kwh",
    "hosting_per_kw_month",
    "maintenance_fraction_per_year",
)
"""Prices of an option: they stand in the ledger, and through it in budgets, nowhere else."""
BUDGETS = frozenset(("budget_capex", "budget_opex", "budget_npv"))
LIMITS = BUDGETS | {
    "supply_limit", "provider_limit", "interruptible_share", "minimum_order", "site_power", "site_rack_units",
    "vendor_limit", "vendor_serves",
}  # fmt: skip
"""Families whose rows say what `limits`, `site` and the stock of offers say."""
_FREE: dict[str, Any] = {**dict.fromkeys(MONEY, 0.0), "max_nodes": None, "source": "", "price_date": ""}
_LIMITED_BY = frozenset(("limits", "site"))


def rebuilt(before: Milp, instance: Instance) -> Milp:
    """The model of an instance, its untouched rows those of `before`; equal to `build(instance)` in all numbers."""
    families = touched(before.instance, instance)
    return build(instance) if families is None else _partly(before, instance, families)


def touched(before: Instance, after: Instance) -> frozenset[str] | None:
    """Families of rows that may differ between two instances; None: anything may."""
    same_problem = all(
        getattr(before.problem, name) is getattr(after.problem, name)
        for name in type(after.problem).model_fields
        if name not in _LIMITED_BY
    )
    if not same_problem or before.estimates is not after.estimates or before.grid != after.grid:
        return None
    if not _alike(before.options, after.options):
        return None
    stock = [o.max_nodes for o in before.options] != [o.max_nodes for o in after.options]
    limits = any(getattr(before.problem, n) is not getattr(after.problem, n) for n in _LIMITED_BY)
    return LIMITS if stock or limits else BUDGETS


def _alike(before: Sequence[Option], after: Sequence[Option]) -> bool:
    """Whether options differ in prices, stock and their source at most."""
    if len(before) != len(after):
        return False
    return all(a is b or _bare(a) == _bare(b) for a, b in zip(before, after, strict=True))


def _bare(option: Option) -> Option:
    return replace(option, **_FREE)


@collection_paused()
def _partly(before: Milp, instance: Instance, families: frozenset[str]) -> Milp:
    variables = make_variables(instance)
    mine, its = variables.columns, before.variables.columns
    if mine.keys != its.keys or mine.integer != its.integer:
        return build(instance)
    ledger = build_ledger(instance, variables)
    new = {f.__name__: partial(f, instance, variables, ledger) for f in FAMILIES}
    new_cuts = {f.__name__: partial(f, instance, variables) for f in CUTS}
    rows, tightening = _renewed(before.rows, families, new), _renewed(before.cuts, families, new_cuts)
    return Milp(instance, variables, rows, ledger, tightening)


def _renewed(
    rows: tuple[Row, ...], names: frozenset[str], makers: Mapping[str, Callable[[], Iterator[Row]]]
) -> tuple[Row, ...]:
    """The rows, those of the named families made anew, in the order of all families."""
    kept: dict[str, list[Row]] = {}
    for row in rows:
        kept.setdefault(row.family, []).append(row)
    return tuple(chain.from_iterable(make() if name in names else kept.get(name, ()) for name, make in makers.items()))
