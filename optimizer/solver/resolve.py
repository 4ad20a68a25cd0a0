"""Re-solving a prepared problem after a change: one clock for all re-solves of a question, and one memory.

The one place that diagnoses, explanations and sessions solve through. With a memory (sessions), only the rows that a
change can touch are built anew, and what solved problems prove is not searched for again. Diagnoses and explanations
have none: their many small models cost more to compare than to solve.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from optimizer.errors import SolverError
from optimizer.model.build import Milp, build
from optimizer.model.rebuild import rebuilt
from optimizer.prepare import Prepared
from optimizer.problem.schema import Problem
from optimizer.solver.known import KnownPlans, numbers
from optimizer.solver.known_start import solve_from_start
from optimizer.solver.milp import LinearModel, Solution, SolverSettings, relative_gap

Again = Callable[[Problem], Prepared]
"""Prepares a changed problem anew (options and estimates included)."""

NEAR_A_PLAN = {
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""Where the best plan of a like problem is the start, only the heuristic that looks around it is worth its time."""


class OutOfTimeError(Exception):
    """The time allowed is used up, or the user stopped the search; what was found so far stands."""


def objective_scale(objective: dict[int, float]) -> float:
    """A power of ten that brings the largest price near 1e3, so that the solver's absolute tolerances mean little."""
    largest = max((abs(v) for v in objective.values()), default=0.0)
    return 1.0 if largest == 0 else float(10.0 ** round(math.log10(largest) - 3))


def linear_model(milp: Milp) -> LinearModel:
    """The built model as the solver adapter takes it."""
    objective, constant = milp.objective()
    return LinearModel(
        milp.variables.columns, milp.solved_rows(), objective, constant, objective_scale=objective_scale(objective)
    )


@dataclass(frozen=True, slots=True)
class Resolved:
    """A re-solve: its model and solution, at a proven least cost; `searched`: earlier ones did not prove it."""

    milp: Milp
    solution: Solution
    searched: bool = True

    @property
    def npv(self) -> float:
        """Least cost."""
        return self.solution.objective


@dataclass(slots=True)
class Memory:
    """What the re-solves of a question share: the model built first, and what is known of those solved."""

    first: Milp | None = None
    known: KnownPlans = field(default_factory=KnownPlans)

    def built(self, prepared: Prepared) -> Milp:
        """The model of a problem; rows that cannot differ from those of the first one are taken from there."""
        if self.first is None:
            self.first = build(prepared.instance())
            return self.first
        return rebuilt(self.first, prepared.instance())


@dataclass(slots=True)
class Resolver:
    """Re-solves within `settings.time_limit_s` in all; `again` prepares anew where a change needs it.

    A least cost that is not proven to `settings.gap` in time counts if its gap is at most `enough_gap`.
    """

    settings: SolverSettings
    again: Again | None = None
    enough_gap: float = 0.0
    solves: int = 0
    memory: Memory | None = None
    stops_at: float = field(init=False)

    def __post_init__(self) -> None:
        limit = self.settings.time_limit_s
        self.stops_at = math.inf if limit is None else time.monotonic() + limit

    def part(self, questions: int) -> "Resolver":
        """A resolver for one of so many questions left, each with its part of the time left."""
        left = max(0.0, self.stops_at - time.monotonic())
        part = None if math.isinf(left) else left / max(1, questions)
        return Resolver(replace(self.settings, time_limit_s=part), self.again, self.enough_gap, 0, self.memory)

    def run(self, model: LinearModel, *, gap: float | None = None) -> Solution:
        """Solve a model in what is left of the time; `infeasible` or with values.

        Raises
        ------
        OutOfTimeError
            If time ends before either is known.
        """
        left = self.stops_at - time.monotonic()
        if left <= 0:
            raise OutOfTimeError
        self.solves += 1
        limit = None if math.isinf(left) else left
        asked = self.settings.gap if gap is None else gap
        solution = solve_from_start(model, replace(self.settings, time_limit_s=limit, gap=asked))
        if solution.interrupted:
            self.stops_at = -math.inf
        if solution.status not in ("optimal", "infeasible", "feasible"):
            raise OutOfTimeError
        return solution

    def least_cost(self, prepared: Prepared) -> Resolved | None:
        """The least cost of a problem, proven to the gap asked; None if it has no plan.

        Raises
        ------
        OutOfTimeError
            If time ends before the proof.
        """
        found = self.answer(prepared)
        solution = found.solution
        if solution.status == "infeasible":
            return None
        if solution.status != "optimal" and solution.gap > max(self.settings.gap, self.enough_gap):
            raise OutOfTimeError
        return found

    def answer(self, prepared: Prepared) -> Resolved:
        """What is found of a problem in time: least cost, infeasible, or (`feasible`) the best plan found.

        Raises
        ------
        OutOfTimeError
            If time ends before there is any answer.
        """
        if self.memory is None:
            built = build(prepared.instance())
            return Resolved(built, self._run_or_relaxed(linear_model(built)))
        milp = self.memory.built(prepared)
        model = linear_model(milp)
        new = numbers(milp)
        verdict = self.memory.known.verdict(new, self.settings.gap)
        if verdict.solution is not None:
            return Resolved(milp, verdict.solution, searched=False)
        options = NEAR_A_PLAN if verdict.start else {}
        solution = self._run_or_relaxed(replace(model, start=verdict.start, options=options))
        if solution.values and verdict.bound > solution.bound:
            bound = min(verdict.bound, solution.objective)
            solution = replace(solution, bound=bound, gap=relative_gap(solution.objective, bound))
        self.memory.known.add(new, solution)
        return Resolved(milp, solution)

    def has_plan(self, prepared: Prepared) -> bool:
        """Whether a problem has any plan.

        Raises
        ------
        OutOfTimeError
            If time ends before that is known.
        """
        # With the cost as its objective the search knows where to look; any plan at all is within a gap of 1.
        return self._run_or_relaxed(linear_model(build(prepared.instance())), gap=1.0).status != "infeasible"

    def _run_or_relaxed(self, model: LinearModel, gap: float | None = None) -> Solution:
        """Solve a model; where HiGHS gives up (it may, a hair from feasible), its relaxation may still be infeasible.

        Raises
        ------
        SolverError
            If HiGHS gives up and the relaxation has a solution.
        """
        try:
            return self.run(model, gap=gap)
        except SolverError:
            relaxed = self.run(replace(model, relaxed=True, start=()))
            if relaxed.status == "infeasible":
                return relaxed
            raise
