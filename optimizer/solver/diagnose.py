"""Why a problem has no plan: elastic re-solves that name what falls short, by how much, and the cheapest single change.

Two questions are asked, each with its own answer. *Limits*: if all demand must be met, which limits would have to give,
and by how little? *Demand*: if all limits stand, how much demand stays unmet?
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from optimizer.model.build import Milp
from optimizer.model.rows import Columns, Row
from optimizer.plan import Shortfall
from optimizer.solver.milp import LinearModel, SolverSettings, solve_model

LIMIT_FAMILIES = (
    "supply_limit",
    "provider_limit",
    "budget_capex",
    "budget_opex",
    "budget_npv",
    "interruptible_share",
    "site_power",
)
DEMAND_FAMILIES = ("demand_coverage", "deadline")
MOST_SINGLE_FIXES = 12
"""Limits tried one by one for the cheapest single change."""
TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A limit that may give: its rows, and how much one unit of giving changes each."""

    family: str
    label: str
    rows: tuple[tuple[int, float], ...]
    limit: float
    unit: str
    whole: bool

    @property
    def size(self) -> float:
        """What counts as giving by 100 %."""
        return max(abs(self.limit), 1.0)


def diagnose(milp: Milp, settings: SolverSettings) -> tuple[Shortfall, ...]:
    """All that falls short, limits first."""
    quick = replace(settings, gap=max(settings.gap, 1e-6))
    return (*_limits_short(milp, quick), *_demand_short(milp, quick))


def _relaxations(milp: Milp) -> list[Relaxation]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, row in enumerate(milp.rows):
        if row.family in LIMIT_FAMILIES:
            label = "" if row.family in ("budget_npv", "budget_capex", "budget_opex", "site_power") else row.index[0]
            groups[row.family, label].append(number)
    found = []
    for (family, label), numbers in groups.items():
        rows = [milp.rows[n] for n in numbers]
        weights = [_weight(row) for row in rows]
        limit = _limit_shown(rows[0], weights[0])
        unit = "share" if family == "interruptible_share" else rows[0].unit
        whole = unit in ("nodes", "GPUs")
        found.append(Relaxation(family, label, tuple(zip(numbers, weights, strict=True)), limit, unit, whole))
    return found


def _weight(row: Row) -> float:
    """Change of a row's right-hand side per unit of its limit: the rate or the work for a share, else 1."""
    if row.family != "interruptible_share":
        return 1.0
    return max(abs(c) for _, c in row.terms)


def _limit_shown(row: Row, weight: float) -> float:
    return row.rhs / weight


def _unbounded(columns: Columns) -> Columns:
    """A copy without the stock limits that also stand as bounds of variables (shares and choices keep theirs)."""
    free = columns.copy()
    free.upper = [
        None if key[0] in ("acquire", "rent") else bound for key, bound in zip(columns.keys, columns.upper, strict=True)
    ]
    return free


def _elastic(
    milp: Milp, free: Sequence[Relaxation], fixed: dict[int, float] | None = None
) -> tuple[LinearModel, list[int]]:
    """The model with one slack per relaxation; its objective is their normalised sum, or the cost at `fixed` slacks."""
    columns = _unbounded(milp.variables.columns)
    rows = [*milp.rows, *milp.cuts]
    slacks = []
    for i, relaxation in enumerate(free):
        upper = None if fixed is None else fixed[i]
        column = columns.add("slack", (relaxation.family, relaxation.label), upper=upper, integer=relaxation.whole)
        slacks.append(column)
        for number, weight in relaxation.rows:
            row = rows[number]
            sign = -1.0 if row.sense == "<=" else 1.0
            rows[number] = replace(row, terms=(*row.terms, (column, sign * weight)))
    if fixed is None:
        objective = {column: 1.0 / r.size for column, r in zip(slacks, free, strict=True)}
        return LinearModel(columns, rows, objective), slacks
    cost, constant = milp.objective()
    return LinearModel(columns, rows, cost, constant, objective_scale=objective_scale(cost)), slacks


def objective_scale(objective: dict[int, float]) -> float:
    """A power of ten that brings the largest price near 1e3, so that the solver's absolute tolerances mean little."""
    largest = max((abs(v) for v in objective.values()), default=0.0)
    return 1.0 if largest == 0 else float(10.0 ** round(math.log10(largest) - 3))


def _limits_short(milp: Milp, settings: SolverSettings) -> list[Shortfall]:
    """Which limits must give if all demand is met: each that is enough alone, cheapest first; else a least set."""
    relaxations = _relaxations(milp)
    if not relaxations:
        return []
    model, slacks = _elastic(milp, relaxations)
    solution = solve_model(model, settings)
    if not solution.values:
        return []
    giving = [(r, solution.values[c]) for r, c in zip(relaxations, slacks, strict=True)]
    needed = [(r, by) for r, by in giving if by > TOLERANCE * r.size]
    spared = [r for r, by in giving if by <= TOLERANCE * r.size]
    fixes = _single_fixes(milp, settings, [*(r for r, _ in needed), *spared])
    if not fixes:
        return [_shortfall(r, by, None) for r, by in needed]
    cheapest = _fix(*fixes[0])
    return [_shortfall(r, by, cheapest, npv) for r, by, npv in fixes]


def _shortfall(relaxation: Relaxation, by: float, fix: dict[str, Any] | None, npv: float | None = None) -> Shortfall:
    index, limit = [relaxation.label] if relaxation.label else [], relaxation.limit
    alone = npv is not None
    return Shortfall("limit", relaxation.family, index, limit + by, limit, by, relaxation.unit, fix, alone, npv)


def _single_fixes(
    milp: Milp, settings: SolverSettings, candidates: Sequence[Relaxation]
) -> list[tuple[Relaxation, float, float]]:
    """(limit, least change, least cost then) of every limit that is enough alone, the cheapest first."""
    fixes = []
    for relaxation in candidates[:MOST_SINGLE_FIXES]:
        model, slacks = _elastic(milp, [relaxation])
        least = solve_model(model, settings)
        if not least.values:
            continue
        by = least.values[slacks[0]]
        model, _ = _elastic(milp, [relaxation], {0: by * (1 + 1e-9)})
        cheapest = solve_model(model, settings)
        if cheapest.values:
            fixes.append((relaxation, by, cheapest.objective))
    return sorted(fixes, key=lambda fix: fix[2])


def _fix(relaxation: Relaxation, by: float, npv: float) -> dict[str, Any]:
    label = f" {relaxation.label}" if relaxation.label else ""
    return {
        "change": f"{relaxation.family}{label}",
        "from": relaxation.limit,
        "to": relaxation.limit + by,
        "by": by,
        "unit": relaxation.unit,
        "npv": npv,
    }


def _demand_short(milp: Milp, settings: SolverSettings) -> list[Shortfall]:
    """How much demand stays unmet if all limits stand: the worst row of each class and each job."""
    columns = milp.variables.columns.copy()
    rows = list(milp.rows)
    unmet: list[tuple[Row, int]] = []
    objective: dict[int, float] = {}
    for number, row in enumerate(milp.rows):
        if row.family in DEMAND_FAMILIES and row.rhs > 0:
            column = columns.add("unmet", row.index, upper=1.0)
            rows[number] = replace(row, terms=(*row.terms, (column, row.rhs)))
            objective[column] = 1.0
            unmet.append((row, column))
    solution = solve_model(LinearModel(columns, rows, objective), settings)
    if not solution.values:
        return []
    worst: dict[tuple[str, ...], Shortfall] = {}
    for row, column in unmet:
        share = solution.values[column]
        key = (row.family, *row.index[:2]) if row.family == "demand_coverage" else (row.family, *row.index)
        known = worst.get(key)
        if share > TOLERANCE and (known is None or share * row.rhs > known.short_by):
            short = share * row.rhs
            worst[key] = Shortfall(
                "demand", row.family, list(row.index), row.rhs, row.rhs - short, short, row.unit, None
            )
    return list(worst.values())
