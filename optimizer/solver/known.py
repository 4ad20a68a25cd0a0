"""What is known of problems solved already, and what it proves of another one, without a search.

Two models with the same columns are compared in numbers alone. A plan that keeps another model's rows is a plan of it:
its cost there is an upper bound. A model whose rows are all at least as tight as those of a solved one, and whose
prices are all at least λ times its prices, costs at least λ times its least cost: a lower bound; where the solved one
has no plan, neither has it. Where both bounds meet, the plan is proven; else it is one to search from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optimizer.model.build import Milp
from optimizer.model.rows import Columns, Row
from optimizer.solver.arrays import ModelArrays, model_arrays
from optimizer.solver.milp import Solution, relative_gap

FEASIBLE = 1e-7
"""Share of a row's scale by which a plan may pass it: HiGHS's own tolerance of linear programs."""
SAME = 1e-7
"""Relative distance at which two bounds meet: what HiGHS itself leaves open at gap 0."""
NOISE = 1e-12
"""Relative difference of two coefficients that is rounding."""
MOST = 60
"""Solved models remembered; the oldest go first."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Numbers:
    """A model in numbers: its rows by name without the valid inequalities, which follow from them, and its prices."""

    columns: Columns
    rows: tuple[Row, ...]
    names: list[tuple[str, tuple[str, ...]]]
    arrays: ModelArrays
    constant: float

    def cost(self, values: Sequence[float]) -> float:
        """Cost of a plan."""
        return float(self.arrays.price @ np.asarray(values)) + self.constant

    def admits(self, values: Sequence[float]) -> bool:
        """Whether a plan keeps all bounds and rows."""
        x, a = np.asarray(values), self.arrays
        if np.any(x > a.upper + FEASIBLE):
            return False
        if not self.rows:
            return True
        empty = np.diff(a.start) == 0
        sums = np.add.reduceat(np.append(a.value * x[a.index], 0.0), np.minimum(a.start[:-1], len(a.index)))
        sums[empty] = 0.0
        return bool(np.all(sums <= a.row_upper + FEASIBLE) and np.all(sums >= a.row_lower - FEASIBLE))


def numbers(milp: Milp) -> Numbers:
    """A built model in numbers."""
    objective, constant = milp.objective()
    columns = milp.variables.columns
    names = [(row.family, row.index) for row in milp.rows]
    return Numbers(columns, milp.rows, names, model_arrays(columns, milp.rows, objective, 1.0), constant)


@dataclass(frozen=True, slots=True)
class Solved:
    """A solved model: proven `bound` of its cost (None: it has no plan), and a plan if one is known."""

    model: Numbers
    bound: float | None
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a model before any search.

    `solution`: proven least cost, or infeasible; None where a search is needed. `start`: the best plan known.
    """

    solution: Solution | None = None
    start: tuple[float, ...] = ()
    bound: float = -np.inf


@dataclass(slots=True)
class KnownPlans:
    """Solved models and their plans."""

    solved: list[Solved] = field(default_factory=list)

    def add(self, model: Numbers, solution: Solution) -> None:
        """Remember a solution: proven bound, plan, or that there is none."""
        if solution.status == "infeasible":
            self.solved.append(Solved(model, None))
        elif solution.values:
            self.solved.append(Solved(model, solution.bound, solution.values))
        del self.solved[:-MOST]

    def verdict(self, model: Numbers, gap: float) -> Verdict:
        """What the solved models prove of another one, to a relative gap."""
        alike = [one for one in reversed(self.solved) if _same_columns(one.model.columns, model.columns)]
        wider = [one for one in alike if at_least_as_tight(model, one.model)]
        if any(one.bound is None for one in wider):
            return Verdict(Solution("infeasible"))
        bounds = [_bound(model, one.model, one.bound) for one in wider if one.bound is not None]
        bound = max(bounds, default=-np.inf)
        plans = sorted(((model.cost(one.values), one.values) for one in alike if one.values), key=lambda plan: plan[0])
        best = next((plan for plan in plans if model.admits(plan[1])), None)
        if best is None:
            return Verdict(bound=bound)
        cost, values = best
        reached = relative_gap(cost, min(bound, cost))
        if reached > max(gap, SAME):
            return Verdict(None, values, bound)
        return Verdict(Solution("optimal", values, cost, min(bound, cost), reached), values, bound)


def _same_columns(before: Columns, after: Columns) -> bool:
    return before is after or (before.keys == after.keys and before.integer == after.integer)


def at_least_as_tight(tight: Numbers, wide: Numbers) -> bool:
    """Whether every plan of `tight` is one of `wide`: each row of `wide` is there, and at least as tight."""
    if np.any(tight.arrays.upper > wide.arrays.upper):
        return False
    if tight.names == wide.names:
        rows, arrays = tight.rows, tight.arrays
    else:
        by_name = dict(zip(tight.names, tight.rows, strict=True))
        found = [by_name.get(name) for name in wide.names]
        rows = tuple(row for row in found if row is not None)
        if len(rows) < len(found):
            return False
        arrays = model_arrays(tight.columns, rows, {}, 1.0)
    if any(a.sense != b.sense for a, b in zip(rows, wide.rows, strict=True)):
        return False
    return _rows_tighter(arrays, _scales(rows), wide.arrays, _scales(wide.rows))


def _scales(rows: Sequence[Row]) -> Floats:
    return np.fromiter((row.scale for row in rows), np.float64, len(rows))


def _rows_tighter(tight: ModelArrays, scale: Floats, wide: ModelArrays, wide_scale: Floats) -> bool:
    """Row by row, as they are or divided by their scales: larger coefficients under a bound that is no larger."""
    if not (np.array_equal(tight.start, wide.start) and np.array_equal(tight.index, wide.index)):
        return False
    as_solved = _tighter(tight, np.ones_like(scale), wide, np.ones_like(scale))
    return bool(np.all(as_solved | _tighter(tight, scale, wide, wide_scale)))


def _tighter(a: ModelArrays, a_scale: Floats, b: ModelArrays, b_scale: Floats) -> NDArray[np.bool_]:
    """Rows of `a` that imply those of `b`, each times its scale, for variables that are not negative."""
    count = np.diff(a.start)
    left, right = a.value * np.repeat(a_scale, count), b.value * np.repeat(b_scale, count)
    noise = NOISE * np.maximum(np.abs(left), np.abs(right))
    row = np.repeat(np.arange(len(count)), count)
    lower = np.bincount(row, left < right - noise, len(count)) > 0
    higher = np.bincount(row, left > right + noise, len(count)) > 0
    below = np.isinf(b.row_upper) | (~lower & (a.row_upper * a_scale <= b.row_upper * b_scale))
    above = np.isinf(b.row_lower) | (~higher & (a.row_lower * a_scale >= b.row_lower * b_scale))
    return below & above


def _bound(model: Numbers, solved: Numbers, bound: float) -> float:
    """λ × the least cost of the variable part of a solved model, λ the largest with prices ≥ λ × its prices."""
    new, old = model.arrays.price, solved.arrays.price
    if not np.isfinite(bound) or np.any(new[old == 0] < 0):
        return -np.inf
    ratio = new[old != 0] / old[old != 0]
    positive = old[old != 0] > 0
    most = float(np.min(ratio[positive], initial=np.inf))
    least = max(0.0, float(np.max(ratio[~positive], initial=0.0)))
    if most < least:
        return -np.inf
    part = bound - solved.constant
    factor = most if part > 0 else least
    if np.isinf(factor):
        factor = max(1.0, least)
    return factor * part + model.constant
