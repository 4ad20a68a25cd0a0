"""The one adapter to PuLP (3.3 and 4) and HiGHS: plain rows in, plain numbers out.

HiGHS runs embedded and gets the model as arrays; PuLP configures it, and can hold the same model for LP files. Status,
bound and gap are read from HiGHS itself, never guessed from values, and what HiGHS holds is counted before it runs: it
drops rows that it cannot represent (a right-hand side of 1e20 or more counts as infinite) and reports "optimal" for
what is left.
"""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import highspy
import numpy as np
import pulp

from optimizer.errors import SolverError
from optimizer.model.rows import Columns, Row
from optimizer.solver.arrays import ModelArrays, model_arrays

WHOLE = 1e-5
"""Integer variables come back this close to a whole number, or something is wrong."""
UNBOUNDED = "the model is unbounded: a cost line must be missing (a fault of ours)"
SAME_COST = 1e-6
"""Gap up to which a cost is proven whatever was asked: HiGHS's own tolerances leave that much."""
PULP_4 = hasattr(pulp.LpAffineExpression, "from_list")


Method = Literal["auto", "direct", "decomposed"]


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """How hard to try. `gap` is relative; 0 asks for proof to the solver's own tolerance. `threads`: 1 by default.

    `method`: one model of everything, cells priced apart (`decomposed`), or whichever fits the size.
    """

    gap: float = 1e-4
    time_limit_s: float | None = None
    threads: int | None = None
    seed: int = 0
    method: Method = "auto"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known while solving; `best` and `gap` are None before the first plan."""

    seconds: float
    best: float | None
    bound: float | None
    gap: float | None
    nodes: int = 0
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Solution:
    """What HiGHS says. `status` is optimal | feasible | infeasible | unbounded | no_solution | interrupted.

    `feasible`: stopped by the limit (or by the user: `interrupted`) with a solution whose gap is larger than asked.
    `values` is empty without a solution; integers are whole in it.
    """

    status: str
    values: tuple[float, ...] = ()
    objective: float = math.nan
    bound: float = math.nan
    gap: float = math.inf
    seconds: float = 0.0
    interrupted: bool = False


ProgressHook = Callable[[Progress], None]
IncumbentHook = Callable[[Sequence[float], float], None]


@dataclass(slots=True)
class LinearModel:
    """A model ready for PuLP: columns, rows, and the objective to minimise."""

    columns: Columns
    rows: Sequence[Row]
    objective: dict[int, float]
    constant: float = 0.0
    name: str = "gpumix"
    relaxed: bool = False
    objective_scale: float = field(default=1.0)
    start: Sequence[float] = ()
    """Values of a plan that is known, to search from; none by default."""
    options: dict[str, Any] = field(default_factory=dict)  # of HiGHS, for this model

    def arrays(self) -> ModelArrays:
        """All numbers as HiGHS gets them.

        Raises
        ------
        SolverError
            If a scaled coefficient, bound or price is not finite or leaves the safe range.
        """
        return model_arrays(self.columns, self.rows, self.objective, self.objective_scale)

    def to_pulp(self) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
        """The same model as a PuLP problem, with its variables in column order, named by number and family.

        For LP and MPS files and other solvers; `solve_model` hands HiGHS the arrays, which costs a tenth of the time.
        """
        problem = pulp.LpProblem(self.name, pulp.LpMinimize)
        columns = self.columns
        variables = [
            _variable(problem, f"x{i}_{key[0]}", columns.upper[i], integer=columns.integer[i] and not self.relaxed)
            for i, key in enumerate(columns.keys)
        ]
        # Every column stands in the objective, at 0 where it costs nothing: PuLP drops variables that are nowhere.
        costs = [(v, self.objective.get(c, 0.0) / self.objective_scale) for c, v in enumerate(variables)]
        problem.setObjective(_expression(costs))
        for number, row in enumerate(self.rows):
            terms = [(variables[c], v / row.scale) for c, v in row.terms]
            _add_row(problem, terms, row.sense, row.rhs / row.scale, f"r{number}_{row.family}")
        return problem, variables


def _variable(problem: pulp.LpProblem, name: str, upper: float | None, *, integer: bool) -> pulp.LpVariable:
    return problem.add_variable(name, 0, upper, pulp.LpInteger if integer else pulp.LpContinuous)


def _expression(terms: list[tuple[pulp.LpVariable, float]]) -> pulp.LpAffineExpression:
    return pulp.LpAffineExpression.from_list(terms) if PULP_4 else pulp.LpAffineExpression(terms)


def _add_row(
    problem: pulp.LpProblem, terms: list[tuple[pulp.LpVariable, float]], sense: str, rhs: float, name: str
) -> None:
    left = _expression(terms)
    row = left <= rhs if sense == "<=" else left >= rhs if sense == ">=" else left == rhs
    problem.addConstraint(row, name)


def solve_model(
    model: LinearModel,
    settings: SolverSettings,
    *,
    on_progress: ProgressHook | None = None,
    on_incumbent: IncumbentHook | None = None,
) -> Solution:
    """Solve with HiGHS through PuLP.

    Ctrl-C stops the search and returns the best solution so far, marked `interrupted`.

    Raises
    ------
    SolverError
        If the model leaves the safe range, HiGHS refuses it, or an integer does not come back whole.
    """
    arrays = model.arrays()
    if not len(model.columns):
        return _without_variables(model)
    started = time.monotonic()
    highs = load(model, arrays, settings)
    # The constant counts in HiGHS's own objective too, so that the gap asked is one of the whole cost.
    highs.changeObjectiveOffset(model.constant / model.objective_scale)
    if model.start:
        start = highspy.HighsSolution()
        start.col_value = list(model.start)
        highs.setSolution(start)
    watch = _Watch(model, highs, started, settings.time_limit_s, on_progress, on_incumbent)
    searching = time.monotonic()
    with _interruptible(watch):
        highs.HandleUserInterrupt = False
        run_status = highs.run()
    highs.setCallback(None, None)  # HiGHS and its callback hold each other where no garbage collector sees it
    if highs.getModelStatus() == highspy.HighsModelStatus.kUnboundedOrInfeasible:
        _tell_unbounded(highs)
    return _read(model, highs, watch, run_status, time.monotonic() - searching, settings.gap)


def _tell_unbounded(highs: Any) -> None:
    """Settle "unbounded or infeasible": without prices only an infeasible model fails.

    Raises
    ------
    SolverError
        If the model is unbounded.
    """
    for column in range(highs.getNumCol()):
        highs.changeColCost(column, 0.0)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kInfeasible:
        raise SolverError(UNBOUNDED)


def _without_variables(model: LinearModel) -> Solution:
    """A model in which nothing can be decided: its rows hold as they are, or never."""
    holds = {"<=": lambda r: r >= -1e-9, ">=": lambda r: r <= 1e-9, "=": lambda r: abs(r) <= 1e-9}
    if all(holds[row.sense](row.rhs) for row in model.rows):
        return Solution("optimal", (), model.constant, model.constant, 0.0)
    return Solution("infeasible")


def load(model: LinearModel, arrays: ModelArrays, settings: SolverSettings) -> Any:
    """HiGHS, configured through PuLP, with the model in it; its columns and rows are in our order.

    Raises
    ------
    SolverError
        If HiGHS does not hold exactly the rows, columns and coefficients that were given.
    """
    options: dict[str, Any] = {"random_seed": settings.seed, "output_flag": False, **model.options}
    solver = pulp.HiGHS(
        msg=False,
        gapRel=settings.gap,
        gapAbs=0.0 if settings.gap == 0 else None,
        timeLimit=settings.time_limit_s,
        threads=settings.threads or 1,  # HiGHS's search gains next to nothing from more
        **options,
    )
    highspy.Highs.resetGlobalScheduler(True)  # else a process keeps the number of threads of its first solve
    problem = pulp.LpProblem(model.name, pulp.LpMinimize)
    with standard_output_to_nowhere():  # the first HiGHS of a process prints a banner whatever its options say
        solver.createAndConfigureSolver(problem)
    highs = problem.solverModel
    status = highs.passModel(_matrix(model, arrays))
    held, given = (highs.getNumRow(), highs.getNumCol()), (len(model.rows), len(model.columns))
    if status == highspy.HighsStatus.kError or held != given:
        msg = f"HiGHS holds {held[0]} of {given[0]} rows and {held[1]} of {given[1]} columns"
        raise SolverError(msg)
    return highs


def _matrix(model: LinearModel, arrays: ModelArrays) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(arrays.price), len(arrays.row_lower)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = arrays.price, np.zeros(len(arrays.price)), arrays.upper
    lp.row_lower_, lp.row_upper_ = arrays.row_lower, arrays.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = arrays.start, arrays.index, arrays.value
    if any(model.columns.integer) and not model.relaxed:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[whole] for whole in model.columns.integer]
    return lp


@contextmanager
def standard_output_to_nowhere() -> Iterator[None]:
    """Say nothing on standard output for a while (HiGHS prints past Python)."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(nowhere)
        os.close(kept)


class _Watch:
    """Callbacks of a running solve: progress, improving solutions, and the wish to stop."""

    def __init__(
        self,
        model: LinearModel,
        highs: Any,
        started: float,
        time_limit_s: float | None,
        on_progress: ProgressHook | None,
        on_incumbent: IncumbentHook | None,
    ) -> None:
        self.model, self.highs, self.started = model, highs, started
        self.on_progress, self.on_incumbent = on_progress, on_incumbent
        self.deadline = math.inf if time_limit_s is None else started + time_limit_s
        self.stop = False
        self.failure: BaseException | None = None
        kinds = highspy.cb.HighsCallbackType
        if on_progress:  # HiGHS reports progress only where it may log; nothing goes to the console
            highs.setOptionValue("log_to_console", False)
            highs.setOptionValue("output_flag", True)
        highs.setCallback(self._called, None)
        wanted = [kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt]
        wanted += [kinds.kCallbackMipLogging] if on_progress else []
        wanted += [kinds.kCallbackMipImprovingSolution] if on_incumbent else []
        for kind in wanted:
            highs.startCallback(kind)

    def _called(self, kind: Any, _message: str, data_out: Any, data_in: Any, _user: Any) -> None:
        kinds = highspy.cb.HighsCallbackType
        try:
            if kind == kinds.kCallbackMipLogging and self.on_progress:
                self.on_progress(self._progress(data_out))
            elif kind == kinds.kCallbackMipImprovingSolution and self.on_incumbent:
                values = [float(value) for value in data_out.mip_solution]
                self.on_incumbent(values, self._money(data_out.objective_function_value))
            elif data_in is not None and (self.stop or time.monotonic() > self.deadline):
                data_in.user_interrupt = True
        except Exception as error:  # an exception must not unwind through the solver
            self.failure, self.stop = error, True

    def _money(self, value: float) -> float:
        return float(value * self.model.objective_scale)

    def _progress(self, data: Any) -> Progress:
        best, bound = data.mip_primal_bound, data.mip_dual_bound
        known = math.isfinite(best) and abs(best) < 1e29
        bounded = math.isfinite(bound) and abs(bound) < 1e29
        money_best = self._money(best) if known else None
        money_bound = self._money(bound) if bounded else None
        gap = None
        if money_best is not None and money_bound is not None:
            gap = relative_gap(money_best, money_bound)
        seconds = time.monotonic() - self.started
        return Progress(seconds, money_best, money_bound, gap, int(data.mip_node_count))


@contextmanager
def _interruptible(watch: _Watch) -> Iterator[None]:
    """Turn Ctrl-C into a wish to stop while HiGHS runs (only the main thread receives signals)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: object) -> None:
        watch.stop = True

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def relative_gap(objective: float, bound: float) -> float:
    """(cost − bound) ÷ |cost|, 0 where both are equal."""
    difference = abs(objective - bound)
    return 0.0 if difference <= 1e-9 * max(1.0, abs(objective)) else difference / max(abs(objective), 1e-12)


def _read(
    model: LinearModel,
    highs: Any,
    watch: _Watch,
    run_status: Any,
    seconds: float,
    asked: float,
) -> Solution:
    if watch.failure is not None:
        raise watch.failure
    status = highs.getModelStatus()
    kinds = highspy.HighsModelStatus
    if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return Solution("infeasible", seconds=seconds)
    if status == kinds.kUnbounded:
        raise SolverError(UNBOUNDED)
    stopped = status in (kinds.kTimeLimit, kinds.kInterrupt, kinds.kIterationLimit, kinds.kSolutionLimit)
    if status != kinds.kOptimal and not stopped:
        msg = f"HiGHS returned {highs.modelStatusToString(status)} ({run_status})"
        raise SolverError(msg)
    info = highs.getInfo()
    interrupted = watch.stop
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Solution("no_solution", seconds=seconds, interrupted=interrupted)
    values = _whole(model, list(highs.getSolution().col_value))
    is_mip = any(model.columns.integer) and not model.relaxed
    objective = sum(c * values[j] for j, c in model.objective.items()) + model.constant
    bound = info.mip_dual_bound * model.objective_scale if is_mip else objective
    bound = min(bound, objective)
    gap = relative_gap(objective, bound)
    proven = status == kinds.kOptimal and gap <= max(asked, SAME_COST)
    name = "optimal" if proven else "feasible"
    return Solution(name, tuple(values), objective, bound, gap, seconds, interrupted)


def _whole(model: LinearModel, values: list[float]) -> list[float]:
    """Round integers once, here; clean the dust off the rest.

    Raises
    ------
    SolverError
        If an integer variable is not within tolerance of a whole number.
    """
    cleaned = []
    for i, value in enumerate(values):
        if model.columns.integer[i] and not model.relaxed:
            nearest = float(round(value))
            if abs(value - nearest) > WHOLE * max(1.0, abs(value)):
                msg = f"{model.columns.name(i)} came back as {value}, not a whole number"
                raise SolverError(msg)
            cleaned.append(nearest + 0.0)
        else:
            cleaned.append(max(0.0, value) if abs(value) > 1e-11 else 0.0)
    return cleaned
