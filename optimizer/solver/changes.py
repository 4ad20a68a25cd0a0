"""Changes of a problem that leave its options and estimates standing: prices, limits, demand."""

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from optimizer.errors import OptimizerError
from optimizer.estimator.types import Demand
from optimizer.estimator.workloads import AnyWorkload, Service
from optimizer.model.billing import billed_by_day
from optimizer.model.dominance import drop_outclassed
from optimizer.model.instance import class_base_rates, slice_multiplier
from optimizer.model.option import Option
from optimizer.model.options import drop_dominated
from optimizer.model.timegrid import list_slices
from optimizer.prepare import Prepared
from optimizer.problem.scaling import with_demand, with_slices
from optimizer.problem.schema import Problem, TimeSlice
from optimizer.solver.diagnosis.limit import changed
from optimizer.solver.diagnosis.limits import list_limits
from optimizer.solver.resolve import Again

NEW_LIMITS = ("capex", "opex", "npv")
"""Limits that a problem without them can be given."""


class ChangeError(OptimizerError):
    """A change that names nothing in the problem, or has no sense."""


class EverythingKept(Container[str]):
    """For `prepare(keep=…)`: no offer is left out for being beaten, as another price may turn that round."""

    def __contains__(self, _: object) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class Price:
    """A price in place of an option's own: of a node bought, of a node-hour, or the fee for signing it."""

    per_node: float


Prices = Mapping[str, float | Price]
Limits = Mapping[str, float | None]
Demands = Mapping[str, float | Mapping[str, float]]


def with_changes(prepared: Prepared, again: Again, prices: Prices, limits: Limits, demand: Demands) -> Prepared:
    """A problem with changes, offers that others beat after them left out.

    Raises
    ------
    ChangeError
        If a name is not in the problem, or a number has no sense.
    """
    prepared = _with_demands(prepared, again, demand)
    prepared = _with_limits(prepared, again, limits)
    return without_beaten(_with_prices(prepared, prices))


def without_beaten(prepared: Prepared) -> Prepared:
    """The problem without offers that another one beats at the prices and limits that hold now."""
    kept, dominated = drop_dominated(prepared.supply.options, prepared.problem)
    supply = replace(prepared.supply, options=tuple(kept), left_out=(*prepared.supply.left_out, *dominated))
    return replace(prepared, supply=drop_outclassed(prepared.problem, supply, prepared.estimates))


# --- prices -----------------------------------------------------------------------------------------------------------


def _with_prices(prepared: Prepared, prices: Prices) -> Prepared:
    if not prices:
        return prepared
    options = prepared.supply.options
    for pattern, price in prices.items():
        if not any(_named(pattern, option) for option in options):
            msg = f'no option is named "{pattern}"; there are: {", ".join(o.option_id for o in options)}'
            raise ChangeError(msg)
        _check_number(f"price of {pattern}", price.per_node if isinstance(price, Price) else price, 0.0)
        options = tuple(_priced(o, price) if _named(pattern, o) else o for o in options)
    return replace(prepared, supply=replace(prepared.supply, options=options))


def _named(pattern: str, option: Option) -> bool:
    """Nodes that are held already have their price, unless named in full."""
    if option.existing_nodes:
        return pattern == option.option_id
    return fnmatchcase(option.option_id.lower(), pattern.lower())


def _priced(option: Option, price: float | Price) -> Option:
    if isinstance(price, Price):
        name = "capex_per_node" if option.capex_per_node > 0 else "price_per_node_hour"
        if not getattr(option, name) and option.upfront_per_node > 0:
            name = "upfront_per_node"
        changes: dict[str, Any] = {name: price.per_node}
        return replace(option, **changes)
    return replace(
        option,
        price_per_node_hour=option.price_per_node_hour * price,
        upfront_per_node=option.upfront_per_node * price,
        capex_per_node=option.capex_per_node * price,
    )


# --- limits -----------------------------------------------------------------------------------------------------------


def _with_limits(prepared: Prepared, again: Again, limits: Limits) -> Prepared:
    listed = {limit.key: limit for limit in list_limits(prepared, again)} if limits else {}
    for key, value in limits.items():
        _check_number(key, 0.0 if value is None else value, 0.0)
        group, _, field = key.partition(".")
        if key in listed:
            prepared = changed(prepared, {listed[key]: value}, again)
        elif group == "limits" and field in NEW_LIMITS:
            holder = prepared.problem.limits.model_copy(update={field: value})
            prepared = replace(prepared, problem=prepared.problem.model_copy(update={"limits": holder}))
        else:
            msg = f'the problem has no limit "{key}"; there are: {", ".join(listed) or "none"}'
            raise ChangeError(msg)
    return prepared


# --- demand -----------------------------------------------------------------------------------------------------------


def _with_demands(prepared: Prepared, again: Again, demand: Demands) -> Prepared:
    for name, factor in demand.items():
        workload = next((w for w in prepared.problem.workloads if w.name == name), None)
        if workload is None:
            there = ", ".join(w.name for w in prepared.problem.workloads)
            msg = f'no workload is named "{name}"; there are: {there}'
            raise ChangeError(msg)
        if isinstance(factor, Mapping):
            apart = billed_by_day(prepared.supply.options)
            prepared = replace(prepared, problem=_by_slice(prepared.problem, workload, factor, days_apart=apart))
        else:
            _check_number(f"demand of {name}", factor, math.ulp(0.0))
            prepared = _scaled(prepared, again, workload, factor)
    return prepared


def _scaled(prepared: Prepared, again: Again, workload: AnyWorkload, factor: float) -> Prepared:
    problem = _with_workload(prepared.problem, name=workload.name, edit=partial(with_demand, factor=factor))
    if workload.kind not in ("service", "batch"):  # how a model is best trained depends on how much there is to do
        return replace(prepared, problem=problem, estimates=again(problem).estimates)
    demands = tuple(_times(d, factor) if d.workload == workload.name else d for d in prepared.estimates.demands)
    estimates = prepared.estimates
    if workload.kind == "batch":
        estimates = replace(estimates, demands=demands)
    return replace(prepared, problem=problem, estimates=estimates)


def _times(demand: Demand, factor: float) -> Demand:
    return demand if demand.amount is None else replace(demand, amount=demand.amount * factor)


def _by_slice(problem: Problem, workload: AnyWorkload, factors: Mapping[str, float], *, days_apart: bool) -> Problem:
    """A service's rate times a factor in each slice named; all services then have their multipliers by slice."""
    slices = list_slices(problem, days_apart=days_apart)
    unknown = [name for name in factors if name not in {one.name for one in slices}]
    if not isinstance(workload, Service) or unknown:
        wrong = f'no slice is named "{unknown[0]}"' if unknown else f"{workload.name} is no service"
        msg = f"{wrong}; slices: {', '.join(one.name for one in slices)}"
        raise ChangeError(msg)
    for name, factor in factors.items():
        _check_number(f"demand of {workload.name} in {name}", factor, 0.0)

    def edit(service: AnyWorkload) -> AnyWorkload:
        if not isinstance(service, Service):
            return service
        own = factors if service.name == workload.name else {}
        rates = class_base_rates(service, slices)
        multipliers = {one.name: slice_multiplier(service, one) * own.get(one.name, 1.0) for one in slices}
        return with_slices(service, multipliers, rates)

    listed = [
        TimeSlice(name=one.name, share_of_hours=one.share_of_hours, hours_of_week=_hours(one.hours_of_day))
        for one in slices
    ]
    return _with_workload(problem.model_copy(update={"slices": listed}), None, edit)


def _hours(hours: tuple[int, ...] | None) -> list[int] | None:
    return None if hours is None else list(hours)


def _with_workload(problem: Problem, name: str | None, edit: Callable[[AnyWorkload], AnyWorkload]) -> Problem:
    """The problem with one workload (None: each of them) edited."""
    workloads = [edit(w) if name in (None, w.name) else w for w in problem.workloads]
    return problem.model_copy(update={"workloads": workloads})


def _check_number(name: str, value: float, least: float) -> None:
    if not (math.isfinite(value) and value >= least):
        msg = f"{name}: {value!r} is no number {'above' if least > 0 else 'from'} 0 up"
        raise ChangeError(msg)
