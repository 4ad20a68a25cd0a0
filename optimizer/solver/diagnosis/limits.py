"""All limits of a problem: of the whole, of the site, of offers, of workloads, and of what is considered at all."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from optimizer.model.option import Option
from optimizer.prepare import Prepared
from optimizer.problem.schema import AllowDeny, Problem, VendorLimit
from optimizer.solver.diagnosis.limit import CHOICE, SUPPLY, Limit
from optimizer.solver.diagnosis.workload_limits import limits_of_workloads
from optimizer.solver.resolve import Again


def list_limits(prepared: Prepared, again: Again | None = None) -> list[Limit]:
    """Every limit of a problem; those that need new preparation only where `again` is given."""
    found = [limit for kind in LIMIT_KINDS for limit in kind(prepared)]
    return [limit for limit in found if again is not None or not limit.again]


# --- limits.* and site.* ----------------------------------------------------------------------------------------------

_FAMILIES = {
    "capex": ("budget_capex", "{currency}"),
    "opex": ("budget_opex", "{currency}/month"),
    "npv": ("budget_npv", "{currency}"),
    "spot_share": ("interruptible_share", "share"),
    "providers": ("provider_limit", "nodes"),
    "gpus": ("supply_limit", "GPUs"),
    "power_limit_it": ("site_power", "kW"),
    "power_limit_facility": ("site_power", "kW"),
    "rack_units_limit": ("site_rack_units", "U"),
    "vendors": ("vendor_limit", "providers"),
    "carbon": ("carbon_limit", "t CO2e"),
    "capex_by_period": ("budget_capex", "{currency}"),
    "capex_by_year": ("budget_capex", "{currency}"),
}
"""Rows and unit of each key; a key that is not here is a family of its own name."""
_MONEY_STEP = 0.01
"""One unit more of money: so much of the limit."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _group_limits(prepared: Prepared, group: str, wanted: Callable[[str], bool]) -> Iterator[Limit]:
    """Every number and every number by name in a group of keys of the problem."""
    holder = getattr(prepared.problem, group)
    for field in type(holder).model_fields if holder is not None else ():
        value = getattr(holder, field)
        if not wanted(field) or value is None:
            continue
        if _number(value):
            yield _field_limit(prepared.problem, group, field, None, float(value))
        elif isinstance(value, list):
            for number, entry in enumerate(value, start=1):
                if _number(entry):
                    yield _field_limit(prepared.problem, group, field, str(number), float(entry))
        elif isinstance(value, VendorLimit):
            yield _field_limit(prepared.problem, group, field, "max", float(value.max))
        elif isinstance(value, dict):
            for name, entry in value.items():
                inner = next(iter(entry.model_dump().values())) if hasattr(entry, "model_dump") else entry
                if _number(inner):
                    yield _field_limit(prepared.problem, group, field, name, float(inner))


def _field_limit(problem: Problem, group: str, field: str, name: str | None, value: float) -> Limit:
    family, unit = _FAMILIES.get(field, (field, ""))
    unit = unit.format(currency=problem.currency)
    share = unit == "share"
    index = _index(field, name)
    return Limit(
        key=".".join(part for part in (group, field, name) if part),
        family=family,
        index=index,
        value=value,
        unit=unit,
        put=lambda p, v: _with_field(p, group, field, name, v),
        lift=lambda p: _with_field(p, group, field, name, None),
        whole=unit in ("nodes", "GPUs", "providers"),
        furthest=1.0 if share else None,
        step=0.01 if share else _MONEY_STEP * abs(value) if unit.startswith(problem.currency) else 1.0,
    )


def _index(field: str, name: str | None) -> tuple[str, ...]:
    """Part of the index of a limit's rows that names it."""
    if field == "power_limit_facility":
        return ("facility",)
    if name is None or field == "vendors":
        return ()
    of_list = {"gpus": f"{name} GPUs", "capex_by_period": f"period-{name}", "capex_by_year": f"year-{name}"}
    return (of_list.get(field, name),)


def _with_field(prepared: Prepared, group: str, field: str, name: str | None, value: float | None) -> Prepared:
    """A problem with one number of a group changed, or left out."""
    holder = getattr(prepared.problem, group)
    old = getattr(holder, field)
    new: Any = value
    if isinstance(old, list) and name is not None:
        new = [value if str(number) == name else kept for number, kept in enumerate(old, start=1)]
    elif isinstance(old, VendorLimit) and name is not None:
        new = None if value is None else VendorLimit(max=round(value))
    elif name is not None:
        entry = old[name]
        if hasattr(entry, "model_copy"):
            inner = next(iter(type(entry).model_fields))
            value_of = None if value is None else entry.model_copy(update={inner: value})
        else:
            value_of = value
        new = {key: kept for key, kept in old.items() if key != name}
        if value_of is not None:
            new[name] = value_of
    problem = prepared.problem.model_copy(update={group: holder.model_copy(update={field: new})})
    return replace(prepared, problem=problem)


def limits_of_the_whole(prepared: Prepared) -> Iterator[Limit]:
    """Budgets, spot shares, providers, GPUs: every number under `limits` but the stock of offers."""
    return _group_limits(prepared, "limits", lambda field: field != "stock")


def limits_of_the_site(prepared: Prepared) -> Iterator[Limit]:
    """Power and whatever else is limited at the site."""
    return _group_limits(prepared, "site", lambda field: "limit" in field)


# --- offers -----------------------------------------------------------------------------------------------------------


def _with_option(prepared: Prepared, option_id: str, **changes: Any) -> Prepared:
    options = tuple(replace(o, **changes) if o.option_id == option_id else o for o in prepared.supply.options)
    return replace(prepared, supply=replace(prepared.supply, options=options))


def limits_of_offers(prepared: Prepared) -> Iterator[Limit]:
    """Stock, least order and delivery of every offer."""
    for option in prepared.supply.options:
        if option.existing_nodes:
            continue
        if option.max_nodes is not None:
            yield _offer_limit(prepared, option, "max_nodes", "supply_limit", "nodes", None)
        if option.held and option.min_nodes > 1:
            yield _offer_limit(prepared, option, "min_nodes", "minimum_order", "nodes", 1)
        if option.held and option.lead_months > 0:
            yield _offer_limit(prepared, option, "lead_months", "lead_time", "months", 0.0)


def _offer_limit(
    prepared: Prepared, option: Option, field: str, family: str, unit: str, furthest: float | None
) -> Limit:
    name = option.option_id
    in_limits = field == "max_nodes" and name in prepared.problem.limits.stock
    quoted = {"max_nodes": "max_nodes", "min_nodes": "min_nodes", "lead_months": "lead_time"}[field]
    whole = unit == "nodes"
    return Limit(
        key=f"limits.stock.{name}" if in_limits else f"options.quotes.{name}.{quoted}",
        family=family,
        index=(name,),
        value=float(getattr(option, field)),
        unit=unit,
        put=lambda p, v: _with_option(p, name, **{field: round(v) if whole else v}),
        lift=lambda p: _with_option(p, name, **{field: furthest}),
        direction=1 if furthest is None else -1,
        whole=whole,
        furthest=furthest,
    )


# --- what is considered at all ----------------------------------------------------------------------------------------


def limits_of_what_is_considered(prepared: Prepared) -> Iterator[Limit]:
    """Lists under `options`, licence terms: lifting one lets in what it keeps out."""
    problem, options = prepared.problem, prepared.problem.options
    if options.gpus is not None:
        yield _considered_limit("options", "gpus", None)
    if options.purchase is not None:
        yield _considered_limit("options", "purchase", None)
    if options.regions:
        yield _considered_limit("options", "regions", None)
    if options.price_age_limit is not None:
        yield _considered_limit("options", "price_age_limit", None)
    if options.providers.allow or options.providers.deny:
        yield _considered_limit("options", "providers", AllowDeny())
    if problem.site is not None and not problem.site.consumer_gpus_allowed:
        yield _considered_limit("site", "consumer_gpus_allowed", True)


def _considered_limit(group: str, field: str, value: Any) -> Limit:
    def lift(prepared: Prepared) -> Prepared:
        holder = getattr(prepared.problem, group).model_copy(update={field: value})
        return replace(prepared, problem=prepared.problem.model_copy(update={group: holder}))

    key = f"{group}.{field}"
    return Limit(
        key, "considered", (key,), 0.0, CHOICE, lambda p, v: lift(p) if v else p, lift, 1, True, 1.0, again=SUPPLY
    )


LIMIT_KINDS: tuple[Callable[[Prepared], Iterator[Limit]], ...] = (
    limits_of_the_whole,
    limits_of_the_site,
    limits_of_offers,
    limits_of_workloads,
    limits_of_what_is_considered,
)
