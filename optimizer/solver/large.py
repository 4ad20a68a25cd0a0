"""Problems too large for one model: a plan by prices and cells, or why there is none.

A part of the problem is asked first, in seconds: where it has no plan, the whole has none. The least cost is sought
without regard to `limits.npv`, which is held against the plan and the bound afterwards.
"""

import time
from dataclasses import dataclass, replace

from optimizer.model.build import Milp, build
from optimizer.model.entities import Instance
from optimizer.plan import Shortfall
from optimizer.prepare import Prepared
from optimizer.solver.decomposition import run as decomposition
from optimizer.solver.diagnosis.diagnose import Diagnosis
from optimizer.solver.diagnosis.large import diagnose_large, impossible_part
from optimizer.solver.diagnosis.part import has_parts, service_variables
from optimizer.solver.milp import ProgressHook, Solution, SolverSettings
from optimizer.solver.resolve import Again

NOTHING_FOUND = (
    "no plan was found by prices and cells: a limit may forbid any, or the time was too short; "
    "try a longer --time-limit, fewer options, or --method direct (which needs memory for one model of everything)"
)
PART_HAS_PLANS = (
    "the hours in which services peak, and the jobs, do have plans if nodes may be in parts: no limit forbids these"
)
OVER_BUDGET = "limits.npv: the cheapest plan found costs {cost:,.2f} {currency}, and none costs less than {bound:,.2f}"
SAME_COST = 1e-9
"""Costs this close to a limit keep it, relative."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A solution with the model that it is read by, or why there is none."""

    milp: Milp
    solution: Solution
    diagnosis: Diagnosis


def is_large(instance: Instance) -> bool:
    """Whether one model of everything would be too large, and the problem can be decomposed or has parts."""
    apart = has_parts(instance) or decomposition.can_decompose(instance)
    return service_variables(instance) > decomposition.LARGEST_DIRECT and apart


def solve_large(
    prepared: Prepared,
    instance: Instance,
    settings: SolverSettings,
    *,
    again: Again,
    on_progress: ProgressHook | None = None,
) -> Outcome | None:
    """Plan a large problem; None where it cannot be decomposed, or is small enough to be asked again as one model.

    Raises
    ------
    SolverError
        If the solver fails.
    """
    settings = replace(settings, time_limit_s=settings.time_limit_s or decomposition.DEFAULT_TIME_LIMIT_S)
    began = time.monotonic()
    asked = has_parts(instance)
    small = impossible_part(prepared, settings) if asked else None
    if small is not None:
        diagnosis = diagnose_large(prepared, small, _left(settings, began), again=again)
        return Outcome(_emptied(instance), Solution("infeasible", seconds=time.monotonic() - began), diagnosis)
    found = decomposition.decompose(_without_npv(instance), _left(settings, began), on_progress)
    if found is None:
        nothing = Diagnosis((), (NOTHING_FOUND, PART_HAS_PLANS) if asked else (NOTHING_FOUND,))
        large = is_large(instance)
        return Outcome(_emptied(instance), Solution("no_solution"), nothing) if large else None
    limit = instance.problem.limits.npv
    if limit is not None and found.plan.cost > limit * (1 + SAME_COST):
        return _over_budget(instance, limit, found)
    plan = found.plan
    milp = plan.milp if limit is None else build(replace(plan.milp.instance, problem=instance.problem))
    status = "optimal" if found.gap <= settings.gap else "feasible"
    solution = Solution(status, plan.values, plan.cost, found.bound, found.gap, found.seconds, found.interrupted)
    return Outcome(milp, solution, Diagnosis(()))


def _left(settings: SolverSettings, since: float) -> SolverSettings:
    return replace(settings, time_limit_s=max(1.0, (settings.time_limit_s or 0.0) - (time.monotonic() - since)))


def _without_npv(instance: Instance) -> Instance:
    problem = instance.problem
    if problem.limits.npv is None:
        return instance
    limits = problem.limits.model_copy(update={"npv": None})
    return replace(instance, problem=problem.model_copy(update={"limits": limits}))


def _emptied(instance: Instance) -> Milp:
    """A model of the grid and the orders alone, for a plan file without a plan."""
    return build(replace(instance, placements={}, volume_demands=()))


def _over_budget(instance: Instance, limit: float, found: decomposition.Decomposed) -> Outcome:
    """No plan within `limits.npv` was found; there is none if the bound on all of them is above it."""
    note = OVER_BUDGET.format(cost=found.plan.cost, bound=found.bound, currency=instance.problem.currency)
    if found.bound <= limit * (1 + SAME_COST):
        return Outcome(_emptied(instance), Solution("no_solution", seconds=found.seconds), Diagnosis((), (note,)))
    currency = instance.problem.currency
    short = Shortfall(
        "limit", "budget_npv", [], found.bound, limit, found.bound - limit, currency, None,
        alone=True, change="limits.npv", at_least=True,
    )  # fmt: skip
    return Outcome(_emptied(instance), Solution("infeasible", seconds=found.seconds), Diagnosis((short,), (note,)))
