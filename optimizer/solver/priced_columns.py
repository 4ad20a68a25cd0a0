"""The linear program of a model with few whole numbers, in the columns that matter (Gilmore and Gomory, 1961).

Of thousands of shares that cost nothing only some are worth something at the prices of the rows. HiGHS gets those; the
others are priced after each run, and come in where they would lower the cost. A linear program of a tenth of the
columns takes a tenth of the time to start from its last basis.
"""

import math

import numpy as np

from optimizer.solver.arrays import Floats
from optimizer.solver.few_wholes import FewWholes, Marks
from optimizer.solver.linear_program import GiveUpError, LinearProgram, Places

FIRST = 0.15
"""Share of the columns kept from the first run: those of the lowest reduced costs."""
FEWEST = 300
"""Columns from which leaving some out pays."""
WORTH = 1e-9
"""Reduced cost, as a share of the largest price, below which a column would lower the cost."""
SAFE = 1e-9
"""Relative slack of learnt rows, above all rounding of floats."""


class PricedColumns:
    """The linear relaxation of a model, to be solved within other bounds of its whole numbers again and again.

    `point` is where the last run ended, `row` the row learnt from it (`learnt_row`), all in the order of `FewWholes`.
    """

    def __init__(self, few: FewWholes) -> None:
        self.few, self.size = few, len(few.price)
        self.costs = np.concatenate((few.price, np.zeros(len(few.rest))))
        self.upper = np.concatenate((few.upper, few.rest_upper))
        self.columns = np.arange(len(self.costs))
        self.program = program(few, self.columns, np.ones(len(few.row_lower), dtype=bool))
        self.order = np.argsort(few.index, kind="stable")
        self.starts = np.searchsorted(few.index[self.order], np.arange(len(self.costs) + 1))
        self.point = np.zeros(len(self.costs))
        self.row: tuple[Floats, float] = (np.zeros(self.size), 0.0)
        self.narrowed = False
        self.reduced = np.zeros(len(few.rest))

    def solve(self, lower: Floats, upper: Floats, enough: float) -> bool:
        """Solve within bounds; whether there is a solution. Stops early where the learnt row proves a cost of `enough`.

        Raises
        ------
        GiveUpError
            If HiGHS does not solve it.
        """
        self.program.within(lower, upper)
        while True:
            there = self.program.solve()
            missing = self._missing(self.program.duals if there else self._ray(lower, upper))
            proven = there and math.isfinite(enough) and self.bound(lower, upper) >= enough
            if proven or not len(missing):
                break
            self._add(missing)
        if there:
            self._ended()
        return there

    def _missing(self, duals: Floats) -> Places:
        """Learn the row of some duals; the columns left out that are worth something at them."""
        g, side, sums = learnt_row(self.few, duals)
        self.row = (g, side)
        self.reduced = -sums[self.size :]
        worth = sums > WORTH * float(np.max(self.few.price))
        worth[self.columns] = False
        return np.flatnonzero(worth)

    def _ray(self, lower: Floats, upper: Floats) -> Floats:
        """Duals that prove that the columns there are do not keep the rows within these bounds.

        Raises
        ------
        GiveUpError
            If HiGHS has none that do.
        """
        ray = self.program.ray
        for sign in (1.0, -1.0) if len(ray) else ():
            g, side, sums = learnt_row(self.few, sign * ray)
            active = sums[self.columns[self.size :]]
            side += float(np.maximum(sums[self.size :], 0.0) @ self.few.rest_upper)
            side -= float(np.maximum(active, 0.0) @ self.upper[self.columns[self.size :]])
            if np.maximum(g * lower, g * upper).sum() < side:
                return sign * ray
        raise GiveUpError

    def _ended(self) -> None:
        self.point[:] = 0.0
        self.point[self.columns] = self.program.values
        if not self.narrowed:
            self.narrowed = True
            self._keep_the_cheapest()

    def bound(self, lower: Floats, upper: Floats) -> float:
        """Least cost within bounds by the row learnt last: price × y = row + (price − coefficients) × y."""
        g, side = self.row
        spare = self.few.price - g
        return float(side + np.minimum(spare * lower, spare * upper).sum())

    def _keep_the_cheapest(self) -> None:
        """Leave out the columns of high reduced cost."""
        rest = len(self.costs) - self.size
        if rest < FEWEST:
            return
        used = self.point[self.size :] > 0
        most = np.partition(self.reduced, int(FIRST * rest))[int(FIRST * rest)]
        kept = np.flatnonzero(used | (self.reduced <= most))
        self.columns = np.concatenate((np.arange(self.size), self.size + kept))
        self.program = program(self.few, self.columns, np.ones(len(self.few.row_lower), dtype=bool))

    def _add(self, columns: Places) -> None:
        places = np.concatenate([self.order[self.starts[c] : self.starts[c + 1]] for c in columns.tolist()])
        counts = self.starts[columns + 1] - self.starts[columns]
        values = self.few.value[places]
        self.program.add_columns(self.upper[columns], np.cumsum(counts) - counts, self.few.row[places], values)
        self.columns = np.concatenate((self.columns, columns))


def learnt_row(few: FewWholes, duals: Floats) -> tuple[Floats, float, Floats]:
    """Coefficients g and side r of a row g × y ≥ r that every plan keeps, from any duals; and uᵀA of all columns.

    For u ≥ 0 (≤ 0 where the row is "at most"): Σ (uᵀA)_y y ≥ uᵀb − Σ max(0, (uᵀA)_x) × upper_x (Benders, 1962). A dual
    of the wrong sign counts as 0, so that nothing depends on how well the linear program was solved.
    """
    at_least, at_most = np.isfinite(few.row_lower), np.isfinite(few.row_upper)
    u = np.where((duals > 0) & at_least | (duals < 0) & at_most, duals, 0.0)
    columns = len(few.price) + len(few.rest)
    sums: Floats = np.bincount(few.index, weights=few.value * u[few.row], minlength=columns).astype(np.float64)
    used = np.flatnonzero(u)
    side = float(np.where(u > 0, few.row_lower, few.row_upper)[used] @ u[used])
    side -= float(np.maximum(sums[len(few.price) :], 0.0) @ few.rest_upper)
    return sums[: len(few.price)], side - SAFE * max(1.0, abs(side)), sums


def program(few: FewWholes, columns: Places, rows: Marks) -> LinearProgram:
    """The linear program of some columns and rows.

    Raises
    ------
    GiveUpError
        If HiGHS refuses it.
    """
    place = np.full(len(few.price) + len(few.rest), -1)
    place[columns] = np.arange(len(columns))
    number = np.cumsum(rows) - 1
    here = rows[few.row] & (place[few.index] >= 0)
    price = np.concatenate((few.price, np.zeros(len(few.rest))))[columns]
    upper = np.concatenate((few.upper, few.rest_upper))[columns]
    nonzeros = (number[few.row[here]], place[few.index[here]], few.value[here])
    return LinearProgram(price, upper, nonzeros, few.row_lower[rows], few.row_upper[rows])
