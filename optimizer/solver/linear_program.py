"""A linear program kept in HiGHS and solved again and again, each time from its last basis."""

from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from optimizer.solver.arrays import Floats

INFINITE = highspy.kHighsInf
OPTIONS = (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex"))
DANTZIG = 1000
"""Columns below which the plainest choice of what leaves the basis is the fastest, by some 10 %."""
Places = NDArray[np.integer[Any]]


class GiveUpError(Exception):
    """The search does not end well: HiGHS shall do it."""


class LinearProgram:
    """min price × x over row_lower ≤ A x ≤ row_upper, 0 ≤ x ≤ upper; nonzeros are listed row by row."""

    def __init__(
        self,
        price: Floats,
        upper: Floats,
        nonzeros: tuple[Places, Places, Floats],
        row_lower: Floats,
        row_upper: Floats,
    ) -> None:
        """`nonzeros`: row (ascending), column and value of each.

        Raises
        ------
        GiveUpError
            If HiGHS refuses the numbers.
        """
        row, column, value = nonzeros
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(price), len(row_lower)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = price, np.zeros(len(price)), upper
        lp.row_lower_, lp.row_upper_ = row_lower, row_upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        counts = np.bincount(row, minlength=len(row_lower))
        lp.a_matrix_.start_ = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        lp.a_matrix_.index_, lp.a_matrix_.value_ = column.astype(np.int32), value
        self.highs = highspy.Highs()
        for name, setting in OPTIONS:
            self.highs.setOptionValue(name, setting)
        if len(price) < DANTZIG:
            self.highs.setOptionValue("simplex_dual_edge_weight_strategy", 0)
        if self.highs.passModel(lp) == highspy.HighsStatus.kError:
            raise GiveUpError

    def within(self, lower: Floats, upper: Floats) -> None:
        """Bound the first columns."""
        self.highs.changeColsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)

    def add_row(self, coefficients: Floats, least: float) -> None:
        """Add coefficients × x ≥ least."""
        used = np.flatnonzero(coefficients).astype(np.int32)
        self.highs.addRow(least, INFINITE, len(used), used, coefficients[used])

    def add_columns(self, upper: Floats, starts: Places, rows: Places, values: Floats) -> None:
        """Add columns that cost nothing; `starts` of each in their `rows` and `values`."""
        number, zeros = len(upper), np.zeros(len(upper))
        starts, rows = starts.astype(np.int32), rows.astype(np.int32)
        self.highs.addCols(number, zeros, zeros, upper, len(rows), starts, rows, values)

    def solve(self) -> bool:
        """Solve; whether there is a solution.

        Raises
        ------
        GiveUpError
            If HiGHS knows neither.
        """
        self.highs.run()
        status = self.highs.getModelStatus()
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible):
            raise GiveUpError
        return bool(status == highspy.HighsModelStatus.kOptimal)

    @property
    def objective(self) -> float:
        """Least cost."""
        return float(self.highs.getInfo().objective_function_value)

    @property
    def values(self) -> Floats:
        """Where the columns are."""
        return np.array(self.highs.getSolution().col_value)

    @property
    def duals(self) -> Floats:
        """Prices of the rows."""
        return np.array(self.highs.getSolution().row_dual)

    @property
    def ray(self) -> Floats:
        """Prices of the rows that prove that there is no solution, up to their sign; none where HiGHS has none."""
        _, there, ray = self.highs.getDualRay()
        return np.array(ray) if there else np.zeros(0)
