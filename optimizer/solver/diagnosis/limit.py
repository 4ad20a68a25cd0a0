"""A limit of a problem as a buyer may change it: its key in the problem file, its unit, and its edits.

A limit is edited in the prepared problem (options and estimates at hand) and the model is built anew, so that a moved
deadline cuts the grid where it must. What decides on the supply or the estimates (`again`) needs new preparation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from optimizer.prepare import Prepared
from optimizer.solver.resolve import Again

CHOICE = "choice"
"""Unit of limits that hold or do not: 0 as it is, 1 lifted."""
ESTIMATES, SUPPLY = "estimates", "supply"


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """A limit that may give.

    `key` is its place in the problem file, `family` and `index` the rows of the model that it bounds; `direction` is
    +1 where giving raises its value; `furthest` is the value at which it no longer limits anything (None: no end).
    `step` is what "one unit more" means; `workload` names the job that a deadline or size is about. `again` says what
    must be prepared anew: estimates (they depend on a training job's sizes and time), or the supply as well.
    """

    key: str
    family: str
    index: tuple[str, ...]
    value: float
    unit: str
    put: Callable[[Prepared, float], Prepared]
    lift: Callable[[Prepared], Prepared]
    direction: int = 1
    whole: bool = False
    furthest: float | None = None
    step: float = 1.0
    workload: str = ""
    again: str = ""

    def within(self, value: float) -> float:
        """`value`, or the furthest that the limit can be."""
        if self.furthest is None:
            return value
        return min(value, self.furthest) if self.direction > 0 else max(value, self.furthest)


def changed(prepared: Prepared, values: Mapping[Limit, float | None], again: Again | None = None) -> Prepared:
    """The problem with limits at other values, or lifted (None); what needs new preparation comes first."""
    anew = [limit for limit in values if limit.again]
    for limit in anew:
        prepared = _edited(prepared, limit, values[limit])
    if anew and again is not None:
        fresh = again(prepared.problem)
        of_estimates = all(limit.again == ESTIMATES for limit in anew)
        prepared = replace(prepared, estimates=fresh.estimates) if of_estimates else fresh
    for limit, value in values.items():
        if not limit.again:
            prepared = _edited(prepared, limit, value)
    return prepared


def _edited(prepared: Prepared, limit: Limit, value: float | None) -> Prepared:
    return limit.lift(prepared) if value is None else limit.put(prepared, value)
