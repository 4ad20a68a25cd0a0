"""Search over few whole numbers: branch and bound on linear programs, with rows learnt from their duals.

HiGHS solves the linear programs. Each gives a row on the whole numbers alone (`priced_columns.learnt_row`). From that
row, in plain arithmetic, comes the bound of a node; and a small program of such rows, solved first, spares many large
ones. Costs that are multiples of one unit let bounds be rounded up to it. Where few whole points are left in a node,
they are listed and tried, the cheapest first. HiGHS needs ten times as long for such models, most of it for cuts and
heuristics.
"""

import heapq
import itertools
import math
import time
from dataclasses import dataclass, field

import numpy as np

from optimizer.solver.arrays import Floats
from optimizer.solver.few_wholes import FewWholes, read_few_wholes
from optimizer.solver.linear_program import GiveUpError, LinearProgram
from optimizer.solver.milp import LinearModel, Solution, SolverSettings, relative_gap
from optimizer.solver.priced_columns import SAFE, PricedColumns, program

MOST_PROGRAMS = 600
"""Linear programs; a model that needs more is left to HiGHS."""
MOST_SECONDS = 2.0
MOST_POINTS = 20_000
"""Whole points of a node that are listed rather than branched on."""
UNHEARD_OF = 1e7
"""More nodes of an offer than any plan has, until a plan is known that says how many it may have at most."""
WHOLE = 1e-7
TINY = 1e-300
ROUNDING = 1e-6
"""Share of the unit of costs by which a bound may be above a multiple of it for want of precision."""
FEASIBLE = 1e-7
"""Most that a plan may pass a (scaled) row by: HiGHS's own tolerance of linear programs."""


def search_few(model: LinearModel, settings: SolverSettings) -> Solution | None:
    """The least cost of a model with few whole numbers, proven to the gap asked.

    `feasible`, without a bound: only a plan was found. None: nothing, or the model is of another kind.
    """
    began = time.monotonic()
    few = read_few_wholes(model)
    if few is None:
        return None
    limit = MOST_SECONDS if settings.time_limit_s is None else min(MOST_SECONDS, settings.time_limit_s / 2)
    tree = _Tree(few, settings.gap, model.constant / model.objective_scale, began + limit)
    try:
        tree.search()
    except GiveUpError:
        tree.proven = -math.inf
    if math.isinf(tree.best):
        return None
    values = few.values(tree.best_y, tree.best_x)
    objective = sum(c * values[j] for j, c in model.objective.items()) + model.constant
    bound = min(objective, tree.proven * model.objective_scale + model.constant)
    status = "feasible" if math.isinf(bound) else "optimal"
    return Solution(status, values, objective, bound, relative_gap(objective, bound), time.monotonic() - began)


@dataclass(order=True, slots=True)
class _Node:
    """Whole numbers within [lower, upper]; `bound` of their cost, and where the linear program put them.

    Nodes whose bounds round up to the same cost are taken from the deepest on, which finds plans sooner.
    """

    rounded: float
    height: int
    bound: float
    number: int
    lower: Floats = field(compare=False)
    upper: Floats = field(compare=False)
    at: Floats = field(compare=False)


class _Tree:
    """The nodes still open, the rows learnt, and the best plan."""

    def __init__(self, few: FewWholes, gap: float, constant: float, stops_at: float) -> None:
        self.few, self.gap, self.constant, self.stops_at = few, gap, constant, stops_at
        self.size = len(few.price)
        self.learnt, self.sides = np.zeros((0, self.size)), np.zeros(0)
        self.whole = PricedColumns(few)
        self.upper = np.minimum(few.upper, UNHEARD_OF)
        self.best, self.best_y, self.best_x = math.inf, np.zeros(0), np.zeros(0)
        self.proven = math.inf
        self.programs = 0
        self.small: LinearProgram | None = None
        self.known = 0
        self.numbers = itertools.count()
        self.open: list[_Node] = []

    def search(self) -> None:
        """Close all nodes.

        Raises
        ------
        GiveUpError
            If there is no plan to start from, or no end in sight.
        """
        few = self.few
        at = self._solve_whole(np.zeros(self.size), self.upper)
        if at is None or math.isinf(self.best):
            raise GiveUpError
        self.upper = np.minimum(self.upper, np.floor(self.best / few.price + WHOLE))
        self._keep(np.zeros(self.size), self.upper, at, 0)
        while self.open:
            node = heapq.heappop(self.open)
            box = None if self._closed(node.bound) else self._narrowed(node.lower, node.upper)
            if box is not None and not self._listed(*box, node.bound):
                for low, high in _halves(*box, node.at):
                    self._branch(low, high, 1 - node.height)
        self.proven = min(self.proven, self.best)

    def _narrowed(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats] | None:
        """Bounds without what costs too much by any row learnt (its reduced costs); None where nothing is left."""
        spare = self.few.price - self.learnt
        room = self._enough() - self.sides - np.minimum(spare * lower, spare * upper).sum(axis=1)
        if np.any(room < 0):
            return None
        reach = room[:, None] / np.maximum(np.abs(spare), TINY)
        high = np.floor(lower + np.where(spare > 0, reach, math.inf).min(axis=0) + WHOLE)
        low = np.ceil(upper - np.where(spare < 0, reach, math.inf).min(axis=0) - WHOLE)
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        return None if np.any(lower > upper) else (lower, upper)

    def _branch(self, lower: Floats, upper: Floats, depth: int) -> None:
        box = None if np.any(lower > upper) else self._narrowed(lower, upper)
        if box is None:
            return
        lower, upper = box
        bound = self._bound_of_learnt(lower, upper)
        if self._closed(bound):
            return
        at = self._solve_whole(lower, upper, self._enough())
        if at is not None:
            self._keep(lower, upper, at, depth)

    def _keep(self, lower: Floats, upper: Floats, at: Floats, depth: int) -> None:
        """A node for later, unless its bound closes it already."""
        bound = self.whole.bound(lower, upper)
        if not self._closed(bound):
            node = _Node(self._rounded(bound), -depth, bound, next(self.numbers), lower, upper, at)
            heapq.heappush(self.open, node)

    def _closed(self, bound: float) -> bool:
        """Whether nothing below a bound is worth a search; the least of what is left for the gap's sake is noted."""
        if self._rounded(bound) >= self.best - SAFE * abs(self.best):
            return True
        if self._rounded(bound) >= self.best - self.gap * abs(self.best + self.constant):
            self.proven = min(self.proven, self._rounded(bound))
            return True
        return False

    def _enough(self) -> float:
        """A bound that is high enough to close a node."""
        return self.best - self.few.unit * (1.0 - 2.0 * ROUNDING)

    def _rounded(self, bound: float) -> float:
        unit = self.few.unit
        if math.isinf(bound) or unit < ROUNDING * abs(self.best):
            return bound
        return math.ceil(bound / unit - ROUNDING) * unit

    def _bound_of_learnt(self, lower: Floats, upper: Floats) -> float:
        """Least cost by all rows learnt and those without shares; infinite where they cannot be kept."""
        small = self.small = self.small or _small_program(self.few)
        for coefficients, side in zip(self.learnt[self.known :], self.sides[self.known :], strict=True):
            small.add_row(coefficients, side)
        self.known = len(self.sides)
        small.within(lower, upper)
        return small.objective if small.solve() else math.inf

    def _solve_whole(self, lower: Floats, upper: Floats, enough: float = math.inf) -> Floats | None:
        """The linear program within bounds: learn its row, try its plan made whole; None if it has none."""
        self.programs += 1
        if self.programs > MOST_PROGRAMS or time.monotonic() > self.stops_at:
            raise GiveUpError
        there = self.whole.solve(lower, upper, enough)
        self._learn(*self.whole.row)
        if not there:
            return None
        y, x = self.whole.point[: self.size], self.whole.point[self.size :]
        self._try(np.ceil(y - WHOLE), x)
        return y.copy()

    def _try(self, y: Floats, x: Floats) -> None:
        cost = float(self.few.price @ y)
        if cost < self.best and np.all(y <= self.few.upper) and self.few.misses(y, x) <= FEASIBLE:
            self.best, self.best_y, self.best_x = cost, y, x.copy()

    def _learn(self, coefficients: Floats, side: float) -> None:
        self.learnt, self.sides = np.vstack((self.learnt, coefficients)), np.append(self.sides, side)

    def _listed(self, lower: Floats, upper: Floats, bound: float) -> bool:
        """Try all points within bounds, the cheapest first; False where there are too many."""
        points = _points(lower, upper, self.few.price, bound, self.best)
        if points is None:
            return False
        costs = points @ self.few.price
        seen = 0
        while True:
            kept = np.all(points @ self.learnt[seen:].T >= self.sides[seen:], axis=1)
            kept &= costs < self.best - SAFE * abs(self.best)
            points, costs, seen = points[kept], costs[kept], len(self.sides)
            if not len(points):
                return True
            cheapest = int(np.argmin(costs))
            if self._is_plan(points[cheapest], float(costs[cheapest])):
                return True

    def _is_plan(self, y: Floats, cost: float) -> bool:
        """Whether a whole point is a plan (and now the best); if not, a row is learnt that it does not keep.

        Raises
        ------
        GiveUpError
            If neither is clear.
        """
        known = len(self.sides)
        self._solve_whole(y, self.upper)
        if self.best <= cost:
            return True
        if len(self.sides) == known or self.learnt[-1] @ y >= self.sides[-1]:
            raise GiveUpError
        return False


def _halves(lower: Floats, upper: Floats, at: Floats) -> list[tuple[Floats, Floats]]:
    """Two nodes in which the whole number farthest from whole is less, or more."""
    parts = at - np.floor(at + WHOLE)
    column = int(np.argmax(np.minimum(parts, 1.0 - parts)))
    low, high = lower.copy(), upper.copy()
    high[column] = min(high[column], math.floor(at[column] + WHOLE))
    low[column] = max(low[column], math.floor(at[column] + WHOLE) + 1.0)
    return [(lower, high), (low, upper)]


def _points(lower: Floats, upper: Floats, price: Floats, bound: float, best: float) -> Floats | None:
    """Whole points within bounds of a cost from `bound` up to `best`; None if there may be too many."""
    room = best - float(price @ lower)
    widths = np.minimum(upper - lower, np.floor(room / price + WHOLE))
    if np.any(widths < 0):
        return np.zeros((0, len(price)))
    last = int(np.argmax(widths))
    others = np.flatnonzero(np.arange(len(price)) != last)
    if np.prod(widths[others] + 1.0) > MOST_POINTS:
        return None
    axes = np.meshgrid(*(np.arange(width + 1) for width in widths[others]), indexing="ij")
    grid = np.array([axis.ravel() for axis in axes]).reshape(len(others), -1 if len(others) else 1)
    left = room - price[others] @ grid
    most = np.minimum(widths[last], np.floor(left / price[last] + WHOLE))
    least = np.maximum(0.0, np.ceil((left - (best - bound)) / price[last] - 2 * WHOLE))
    counts = np.maximum(0.0, most - least + 1.0).astype(int)
    if counts.sum() > MOST_POINTS:
        return None
    points = np.empty((counts.sum(), len(price)))
    points[:, others] = np.repeat(grid, counts, axis=1).T
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    points[:, last] = np.repeat(least, counts) + np.arange(counts.sum()) - starts
    return points + lower


def _small_program(few: FewWholes) -> LinearProgram:
    """The rows on whole numbers alone."""
    mixed = np.zeros(len(few.row_lower), dtype=bool)
    mixed[few.row[few.index >= len(few.price)]] = True
    return program(few, np.arange(len(few.price)), ~mixed)
