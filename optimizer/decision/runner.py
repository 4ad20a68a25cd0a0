"""Re-solving under one time limit: many problems, one deadline, one count."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from catalog import Catalog
from optimizer.model.build import build
from optimizer.plan import Plan
from optimizer.prepare import prepare
from optimizer.problem.schema import Problem
from optimizer.solve import linear_model, solve
from optimizer.solver.milp import SolverSettings
from optimizer.solver.spare_start import solve_from_spares

LEAST_TIME_S = 1.0
"""A solve gets at least this long, however late it is."""
SayHook = Callable[[str], None]


class OutOfTimeError(Exception):
    """The time limit has passed, or the person has asked to stop: no further re-solve is started."""


@dataclass(slots=True)
class Runner:
    """Solves problems one after the other and shares the time limit of `settings` among them.

    `expected` is the number of solves still to come: each may take its equal part of the time that is left.
    """

    catalog: Catalog
    settings: SolverSettings
    say: SayHook = lambda _: None
    expected: int = 1
    solves: int = 0
    interrupted: bool = False
    unproven: int = 0
    """Costs that are no proven optimum, because the limit stopped their solve."""
    _started: float = field(default_factory=time.monotonic)

    def plan(self, problem: Problem, label: str) -> Plan:
        """The plan of a problem.

        Raises
        ------
        OutOfTimeError
            If no time is left.
        """
        settings = self._next(label)
        plan = solve(problem, self.catalog, settings)
        self.interrupted |= plan.interrupted
        return plan

    def least_cost(self, problem: Problem, label: str) -> float | None:
        """The least cost of a problem alone; None where it has no plan.

        Raises
        ------
        OutOfTimeError
            If no time is left, or none was enough to find a plan.
        """
        settings = self._next(label)
        milp = build(prepare(problem, self.catalog).instance())
        solution = solve_from_spares(milp, linear_model(milp), settings)
        self.interrupted |= solution.interrupted
        if solution.interrupted or solution.status == "no_solution":
            raise OutOfTimeError
        self.unproven += solution.status == "feasible"
        return None if solution.status == "infeasible" else solution.objective

    def _next(self, label: str) -> SolverSettings:
        if self.interrupted:
            raise OutOfTimeError
        self.say(label)
        self.solves += 1
        limit = self.settings.time_limit_s
        if limit is None:
            return self.settings
        left = limit - (time.monotonic() - self._started)
        if left <= 0 and self.solves > 1:
            raise OutOfTimeError
        part = max(LEAST_TIME_S, left / max(1, self.expected))
        self.expected -= 1
        return replace(self.settings, time_limit_s=min(part, max(left, LEAST_TIME_S)))
