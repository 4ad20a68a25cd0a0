"""Problem → plan: prepare, build, solve, read back, and diagnose where there is no plan."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import optimizer
from catalog import Catalog
from catalog.doubts import prices_worth_a_look
from optimizer.model.build import Milp, build
from optimizer.plan import Plan, named_record
from optimizer.prepare import Prepared, prepare
from optimizer.problem.schema import Problem
from optimizer.solver import readback
from optimizer.solver.diagnosis.diagnose import Diagnosis, diagnose
from optimizer.solver.large import is_large, solve_large
from optimizer.solver.milp import IncumbentHook, ProgressHook, Solution, SolverSettings
from optimizer.solver.readback_steps import with_least_hires
from optimizer.solver.resolve import linear_model as linear_model
from optimizer.solver.spare_start import solve_from_spares
from optimizer.solver.tidy import served_by_replicas, without_idle_choices

PlanHook = Callable[[Plan], None]
PLAN_INTERVAL_S = 1.0
"""Least time between two plans handed out while searching."""


def solve(
    problem: Problem,
    catalog: Catalog,
    settings: SolverSettings | None = None,
    *,
    sources: dict[str, str] | None = None,
    read_s: float = 0.0,
    on_progress: ProgressHook | None = None,
    on_plan: PlanHook | None = None,
) -> Plan:
    """Find the least-cost plan of a problem, with its proof; an infeasible problem gives a plan that says why.

    `sources` are SHA-256 hashes of the files read; `on_plan` receives better plans while the search goes on, one per
    second at most (the last one survives a crash). Names in `problem` are canonical.

    Raises
    ------
    ProblemFileError
        If the problem cannot be prepared.
    SolverError
        If the solver fails.
    """
    settings = settings or SolverSettings()
    clock = _Clock(read_s)
    prepared = prepare(problem, catalog)
    clock.lap("estimate_s")
    instance = prepared.instance()
    again = functools.partial(prepare, catalog=catalog)
    if settings.method == "decomposed" or (settings.method == "auto" and is_large(instance)):
        found = solve_large(prepared, instance, settings, again=again, on_progress=on_progress)
        if found is not None:
            clock.lap("solve_s")
            used = dataclasses.replace(settings, method="decomposed")
            large = _Answer(prepared, found.milp, catalog, used, sources or {}, clock)
            return large.final(found.solution, found.diagnosis)
    milp = build(instance)
    clock.lap("build_s")
    answer = _Answer(prepared, milp, catalog, settings, sources or {}, clock)
    hook = None if on_plan is None else _throttled(answer, on_plan)
    solution = solve_from_spares(milp, linear_model(milp), settings, on_progress=on_progress, on_incumbent=hook)
    diagnosis = Diagnosis(())
    if solution.status == "infeasible":
        diagnosis = diagnose(prepared, milp, settings, again=again, spent_s=solution.seconds)
    clock.lap("solve_s")
    return answer.final(solution, diagnosis)


def _throttled(answer: "_Answer", on_plan: PlanHook) -> IncumbentHook:
    """Reads a solution back into a plan only where the last one is old enough."""
    last = -math.inf

    def hook(values: Sequence[float], cost: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PLAN_INTERVAL_S:
            last = now
            on_plan(answer.while_searching(values, cost))

    return hook


class _Clock:
    """Seconds per stage."""

    def __init__(self, read_s: float) -> None:
        self.stages = {"read_s": read_s}
        self._last = time.monotonic()

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.stages[stage] = now - self._last
        self._last = now


@dataclasses.dataclass(frozen=True, slots=True)
class _Answer:
    """Everything a plan is made from but the solution."""

    prepared: Prepared
    milp: Milp
    catalog: Catalog
    settings: SolverSettings
    sources: dict[str, str]
    clock: _Clock

    def while_searching(self, values: Any, cost: float) -> Plan:
        solution = Solution("feasible", tuple(values), cost)
        return self._plan(solution, Diagnosis(()), _solution_parts(self.milp, solution))

    def final(self, solution: Solution, diagnosis: Diagnosis) -> Plan:
        """The plan at a solution, or the answer that there is none."""
        parts = _solution_parts(self.milp, solution) if solution.values or solution.status == "optimal" else {}
        self.clock.lap("report_s")
        return self._plan(solution, diagnosis, parts)

    def _plan(self, solution: Solution, diagnosis: Diagnosis, parts: dict[str, Any]) -> Plan:
        problem = self.prepared.problem
        return Plan(
            problem=problem.name,
            currency=problem.currency,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            gpumix_version=optimizer.__version__,
            catalog_version=self.catalog.version,
            status="no_plan" if solution.status == "no_solution" else solution.status,
            rejections=tuple(named_record(r) for r in self.prepared.estimates.rejections),
            left_out=tuple(named_record(o) for o in self.prepared.supply.left_out),
            infeasibility=diagnosis.shortfalls,
            assumptions=self.prepared.assumptions,
            timing=dict(self.clock.stages),
            model=_sizes(self.milp),
            grid=readback.grid_document(self.milp),
            inputs=self._inputs(),
            notes=(*_price_notes(parts, self.catalog), *diagnosis.notes),
            interrupted=solution.interrupted and solution.status != "optimal",
            **{**_NO_SOLUTION, **parts},
        )

    def _inputs(self) -> dict[str, Any]:
        """What the answer was made from, for audit and explain."""
        estimates = dataclasses.asdict(self.prepared.estimates)
        return {
            "problem": self.prepared.problem.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "options": [dataclasses.asdict(option) for option in self.prepared.supply.options],
            "estimates": {key: estimates[key] for key in ("demands", "services", "jobs")},
            "sources": self.sources,
            "settings": dataclasses.asdict(self.settings),
        }


_NO_SOLUTION: dict[str, Any] = {
    "cost": None,
    "gpus": {},
    "acquisitions": (),
    "rentals": (),
    "assignments": (),
    "cost_lines": (),
    "constraints": (),
    "schedule": {},
}


def _solution_parts(milp: Milp, solution: Solution) -> dict[str, Any]:
    rows = milp.reported_rows()
    served = served_by_replicas(rows, solution.values)
    tidy = without_idle_choices(rows, readback.without_idle_replicas(rows, served))
    values = with_least_hires(milp, rows, tidy)
    return {
        "cost": readback.total_cost(milp, values, solution.bound, solution.gap),
        "gpus": readback.gpus_at_once(milp, values),
        "acquisitions": readback.acquisitions(milp, values),
        "rentals": readback.rentals(milp, values),
        "assignments": readback.assignments(milp, values),
        "cost_lines": readback.priced_lines(milp, values),
        "constraints": readback.checked_rows(rows, values),
        "schedule": readback.schedule_document(milp, values),
    }


def _price_notes(parts: dict[str, Any], catalog: Catalog) -> tuple[str, ...]:
    """A line for every price in the plan that the catalog's own check doubts."""
    used = {entry.option: entry.gpu for key in ("acquisitions", "rentals") for entry in parts.get(key, ())}
    doubts = prices_worth_a_look(catalog, used, datetime.now(UTC).date()) if used else ()
    return tuple(f"price of {name}: {doubt.message} (see `gpumix catalog check`)" for name, doubt in doubts)


def _sizes(milp: Milp) -> dict[str, int]:
    rows = milp.solved_rows()
    return {
        "variables": len(milp.variables.columns),
        "integers": sum(milp.variables.columns.integer),
        "rows": len(rows),
        "nonzeros": sum(len(row.terms) for row in rows),
    }
