"""Searching from a plan that is known.

HiGHS 1.16.0 may misread such a plan: presolve moves it to a cheaper point that is no plan, at whose cost the search is
cut off, and the first plan comes back before time is up, unproven. Then the search is done again without it.
"""

import math
import time
from dataclasses import replace

from optimizer.solver.branch_few import search_few
from optimizer.solver.milp import (
    IncumbentHook,
    LinearModel,
    ProgressHook,
    Solution,
    SolverSettings,
    relative_gap,
    solve_model,
)

SAME = 1e-6
"""Costs this close to one another are the same, relative: a start may pass a row by as much as HiGHS tolerates."""
SHORTEST_S = 0.1


def solve_from_start(
    model: LinearModel,
    settings: SolverSettings,
    *,
    on_progress: ProgressHook | None = None,
    on_incumbent: IncumbentHook | None = None,
) -> Solution:
    """Solve a model: by branching where whole numbers are few, else by HiGHS's search.

    That one begins from the start of the model, if it has one, and is done again without it where HiGHS misread it.
    """
    searching = time.monotonic()
    few = search_few(model, settings)
    if few is not None and few.status == "optimal":
        return few
    if few is not None and not model.start:
        model = replace(model, start=few.values)
    found = solve_model(model, settings, on_progress=on_progress, on_incumbent=on_incumbent)
    time_left = _time_left(settings, searching)
    wide = found.gap > settings.gap + SAME and not found.interrupted and time_left != SHORTEST_S
    if not model.start or not (found.status == "infeasible" or wide):
        return found
    left = replace(settings, time_limit_s=time_left)
    again = solve_model(replace(model, start=()), left, on_progress=on_progress, on_incumbent=on_incumbent)
    return again if found.status == "infeasible" else _better(found, again)


def _time_left(settings: SolverSettings, since: float) -> float | None:
    limit = settings.time_limit_s
    return None if limit is None else max(SHORTEST_S, limit - (time.monotonic() - since))


def _better(unproven: Solution, again: Solution) -> Solution:
    """The solution of a search without a start, or the first plan, unproven, where that search found none as good."""
    if again.values and again.objective <= unproven.objective + SAME * abs(unproven.objective):
        return again
    bound = unproven.bound if math.isnan(again.bound) else max(unproven.bound, again.bound)
    bound = min(bound, unproven.objective)
    gap = relative_gap(unproven.objective, bound)
    return replace(unproven, status="feasible", bound=bound, gap=gap, interrupted=again.interrupted)
