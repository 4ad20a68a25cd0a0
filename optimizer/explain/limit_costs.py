"""What limits cost: the least cost with one unit more of each, and without each, by re-solves (not by duals)."""

from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.prepare import Prepared
from optimizer.solver.diagnosis.limit import CHOICE, Limit, changed
from optimizer.solver.diagnosis.limits import list_limits
from optimizer.solver.resolve import OutOfTimeError, Resolver

SAME = 1e-7
"""Costs that differ by less than this share are the same."""


@dataclass(frozen=True, slots=True)
class LimitCost:
    """A limit that costs something: least costs with one unit (`step`) more, and without it; savings against `here`."""

    limit: Limit
    here: float
    npv_without: float
    step: float
    npv_with_more: float | None

    @property
    def saved_without(self) -> float:
        """What lifting the limit saves."""
        return self.here - self.npv_without

    @property
    def saved_by_more(self) -> float | None:
        """What one unit more saves; None for limits that hold or do not."""
        return None if self.npv_with_more is None else max(0.0, self.here - self.npv_with_more)


@dataclass(frozen=True, slots=True)
class LimitCosts:
    """Limits that cost something, dearest first; how many cost nothing, and how many there was no time for."""

    here: float
    costly: tuple[LimitCost, ...]
    free: int
    unknown: int


def limit_costs(prepared: Prepared, resolver: Resolver, first: Sequence[str] = ()) -> LimitCosts | None:
    """What every limit of a problem costs, those whose key or family is in `first` before others; None without a plan.

    Raises
    ------
    OutOfTimeError
        If time ends before the least cost itself is known.
    """
    here = resolver.least_cost(prepared)
    if here is None:
        return None
    limits = list_limits(prepared, resolver.again)
    limits.sort(key=lambda limit: limit.family not in first)
    found: list[LimitCost] = []
    known = 0
    try:
        for limit in limits:
            cost = _limit_cost(prepared, limit, here.npv, resolver)
            known += 1
            if cost is not None:
                found.append(cost)
    except OutOfTimeError:
        pass
    costly = tuple(sorted(found, key=lambda cost: -cost.saved_without))
    return LimitCosts(here.npv, costly, known - len(costly), len(limits) - known)


def _limit_cost(prepared: Prepared, limit: Limit, here: float, resolver: Resolver) -> LimitCost | None:
    lifted = resolver.least_cost(changed(prepared, {limit: None}, resolver.again))
    if lifted is None or lifted.npv >= here - max(SAME, 2 * resolver.settings.gap) * max(1.0, abs(here)):
        return None
    if limit.unit == CHOICE:
        return LimitCost(limit, here, lifted.npv, 1.0, None)
    value = limit.within(limit.value + limit.direction * limit.step)
    more = resolver.least_cost(changed(prepared, {limit: value}, resolver.again))
    return LimitCost(limit, here, lifted.npv, abs(value - limit.value), None if more is None else more.npv)
