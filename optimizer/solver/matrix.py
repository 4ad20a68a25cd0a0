"""Models as arrays, handed to HiGHS as one matrix: for the many small models, and the re-solved ones, of a large plan.

The planning model itself goes through PuLP (`solver/milp.py`). Parts of a decomposition are solved thousands of times,
where making expression objects would cost more than solving.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from optimizer.errors import SolverError
from optimizer.model.rows import Row
from optimizer.solver.milp import standard_output_to_nowhere

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
INFINITE = highspy.kHighsInf


@dataclass(slots=True)
class MatrixModel:
    """Columns with prices and bounds, rows as lists of (column, coefficient); grown column by column, row by row."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    rows: list[list[tuple[int, float]]] = field(default_factory=list)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)

    def column(self, cost: float = 0.0, upper: float | None = None, *, integer: bool = False) -> int:
        """Add a variable ≥ 0; returns its number."""
        self.cost.append(cost)
        self.upper.append(INFINITE if upper is None else upper)
        self.lower.append(0.0)
        self.integer.append(integer)
        return len(self.cost) - 1

    def row(self, terms: list[tuple[int, float]], sense: str, rhs: float) -> int:
        """Add a row; returns its number."""
        self.rows.append(terms)
        self.row_lower.append(-INFINITE if sense == "<=" else rhs)
        self.row_upper.append(INFINITE if sense == ">=" else rhs)
        return len(self.rows) - 1

    def fixed(self, values: Mapping[int, float]) -> "MatrixModel":
        """The same with some columns at values."""
        lower, upper = list(self.lower), list(self.upper)
        for column, value in values.items():
            lower[column] = upper[column] = value
        return replace(self, lower=lower, upper=upper)

    def scaled_row(self, row: Row) -> int:
        """Add a row of the planning model, divided by its scale."""
        return self.row([(c, x / row.scale) for c, x in row.terms], row.sense, row.rhs / row.scale)


@dataclass(frozen=True, slots=True)
class MatrixSolution:
    """What HiGHS says: `status` is optimal | feasible | none | infeasible.

    `duals` of the rows and `reduced` costs of the columns, of relaxed models only.
    """

    status: str
    values: Floats
    objective: float
    bound: float
    duals: Floats
    reduced: Floats


def solve_matrix(
    model: MatrixModel,
    *,
    relaxed: bool = False,
    central: bool = False,
    gap: float = 1e-4,
    time_limit_s: float | None = None,
    money: float = 1.0,
    start: Mapping[int, float] | None = None,
    restarts: bool = True,
) -> MatrixSolution:
    """Solve with HiGHS in one thread.

    `relaxed` drops integrality; `central` asks for an interior point (duals in the middle of their face, which is what
    prices for a decomposition should be) and no vertex. `money` divides the objective on its way to HiGHS. `start`:
    values of some columns to begin the search from; HiGHS completes them. Without `restarts` a short search finds
    better plans.

    Raises
    ------
    SolverError
        If HiGHS refuses the model or fails.
    """
    if not model.cost:
        return _without_columns(model)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_rel_gap", gap)
    highs.setOptionValue("mip_allow_restart", restarts)
    if time_limit_s is not None:
        highs.setOptionValue("time_limit", max(0.0, time_limit_s))
    if central:
        highs.setOptionValue("solver", "ipm")
        highs.setOptionValue("run_crossover", "off")
        highs.setOptionValue("ipm_optimality_tolerance", 1e-5)
    if highs.passModel(_lp(model, money, relaxed=relaxed)) == highspy.HighsStatus.kError:
        msg = "HiGHS refused a part of the decomposition (a fault of ours)"
        raise SolverError(msg)
    if start:
        highs.setSolution(len(start), np.fromiter(start, np.int32), np.fromiter(start.values(), np.float64))
    highs.run()
    return _read(highs, money, mip=any(model.integer) and not relaxed)


class KeptProgram:
    """A relaxed model kept in HiGHS and solved again from its last basis with some columns at other values."""

    def __init__(self, model: MatrixModel) -> None:
        """Hand the model over.

        Raises
        ------
        SolverError
            If HiGHS refuses the model.
        """
        self.model, self.highs = model, highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("threads", 1)
        if self.highs.passModel(_lp(model, 1.0, relaxed=True)) == highspy.HighsStatus.kError:
            msg = "HiGHS refused a part of the decomposition (a fault of ours)"
            raise SolverError(msg)
        self.values, self.objective = np.zeros(0), np.inf

    def solve_within(self, columns: Sequence[int], fixed: Mapping[int, float]) -> bool:
        """Solve with some of `columns` at values, the others within their bounds; whether there is a solution."""
        lower = np.array([fixed.get(c, self.model.lower[c]) for c in columns])
        upper = np.array([fixed.get(c, self.model.upper[c]) for c in columns])
        self.highs.changeColsBounds(len(columns), np.array(columns, dtype=np.int32), lower, upper)
        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        self.values = np.array(self.highs.getSolution().col_value)
        self.objective = float(self.highs.getInfo().objective_function_value)
        return True


def start_afresh() -> None:
    """Let this process solve in one thread, whatever it solved in before, and say nothing.

    HiGHS keeps the number of threads of a process's first run, and prints a banner then whatever its options say.
    """
    highspy.Highs.resetGlobalScheduler(True)
    with standard_output_to_nowhere():
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.addVar(0.0, 1.0)
        highs.run()


def _without_columns(model: MatrixModel) -> MatrixSolution:
    """A model in which nothing can be decided: its rows hold as they are, or never."""
    empty = np.zeros(0)
    if all(low <= 1e-9 and high >= -1e-9 for low, high in zip(model.row_lower, model.row_upper, strict=True)):
        return MatrixSolution("optimal", empty, 0.0, 0.0, np.zeros(len(model.rows)), empty)
    return MatrixSolution("infeasible", empty, np.inf, np.inf, empty, empty)


def _lp(model: MatrixModel, money: float, *, relaxed: bool) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.cost), len(model.rows)
    lp.col_cost_ = np.array(model.cost) / money
    lp.col_lower_ = np.array(model.lower)
    lp.col_upper_ = np.array(model.upper)
    lp.row_lower_, lp.row_upper_ = np.array(model.row_lower), np.array(model.row_upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for row in model.rows)])
    lp.a_matrix_.index_ = np.array([column for row in model.rows for column, _ in row], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([value for row in model.rows for _, value in row], dtype=float)
    if not relaxed and any(model.integer):
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[whole] for whole in model.integer]
    return lp


def _read(highs: Any, money: float, *, mip: bool) -> MatrixSolution:
    status, kinds, info = highs.getModelStatus(), highspy.HighsModelStatus, highs.getInfo()
    if status in (kinds.kNotset, kinds.kModelError, kinds.kSolveError):
        msg = f"HiGHS could not solve a part of the decomposition: {highs.modelStatusToString(status)}"
        raise SolverError(msg)
    empty = np.zeros(0)
    if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return MatrixSolution("infeasible", empty, np.inf, np.inf, empty, empty)
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    done = status == kinds.kOptimal
    bound = info.mip_dual_bound * money if mip else (info.objective_function_value * money if done else -np.inf)
    if not found and not (status == kinds.kUnknown and not mip):  # an interior point may be feasible up to a tolerance
        return MatrixSolution("none", empty, np.inf, bound, empty, empty)
    solution = highs.getSolution()
    values, objective = np.array(solution.col_value), info.objective_function_value * money
    duals = empty if mip else np.array(solution.row_dual) * money
    reduced = empty if mip else np.array(solution.col_dual) * money
    return MatrixSolution("optimal" if done else "feasible", values, objective, bound, duals, reduced)
