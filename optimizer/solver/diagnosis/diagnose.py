"""Why a problem has no plan: what falls short, by how much, and the least changes that mend it, all by re-solves.

Asked in this order, so that the first answers are there when time ends: how much demand stays unmet if all limits
stand; which limits cannot hold together; which change of a single limit is enough, at what cost; which cut of a single
workload's demand is; what letting in more offers would do; and, where no single limit is enough, which have to give
together, and by how much.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from optimizer.errors import SolverError
from optimizer.model.build import Milp
from optimizer.plan import Shortfall
from optimizer.prepare import Prepared
from optimizer.solver.diagnosis.conflict import irreducible_conflict, least_to_give
from optimizer.solver.diagnosis.demand import Cut, Unmet, least_cut, unmet_demand
from optimizer.solver.diagnosis.limit import SUPPLY, Limit, changed
from optimizer.solver.diagnosis.limits import list_limits
from optimizer.solver.diagnosis.search import Fix, Search, least_cost_at
from optimizer.solver.milp import SolverSettings
from optimizer.solver.resolve import Again, OutOfTimeError, Resolver

LONGEST_S = 60.0
"""Seconds that a diagnosis takes at most, where no time limit was asked for."""
CUT_SHORT = "The diagnosis was cut short by the time limit: other or smaller changes may be enough, too."


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that falls short, limits first, and whether there was time to look for everything."""

    shortfalls: tuple[Shortfall, ...]
    notes: tuple[str, ...] = ()


def diagnose(
    prepared: Prepared, milp: Milp, settings: SolverSettings, *, again: Again | None = None, spent_s: float = 0.0
) -> Diagnosis:
    """Why a problem has no plan, in what the time limit leaves after `spent_s`.

    Least costs are proven at gap 0, or (where time ends first) to the gap asked.
    """
    limit = LONGEST_S if settings.time_limit_s is None else max(0.0, settings.time_limit_s - spent_s)
    found = Findings(prepared, Resolver(replace(settings, gap=0.0, time_limit_s=limit), again, settings.gap))
    found.look(milp)
    return Diagnosis(found.shortfalls(), tuple(dict.fromkeys(found.notes)))


@dataclass(slots=True)
class Findings:
    """What is known so far, and the questions that find more."""

    prepared: Prepared
    resolver: Resolver
    unmet: list[Unmet] = field(default_factory=list)
    conflict: list[Limit] = field(default_factory=list)
    fixes: list[Fix] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    together: list[tuple[Limit, float]] = field(default_factory=list)
    npv_together: float | None = None
    notes: list[str] = field(default_factory=list)

    def look(self, milp: Milp) -> None:
        """Ask everything, the quickest and most telling first.

        What `options` leaves out is asked last, one by one: letting it in makes a much larger model. Only where no
        other limit is to blame is it lifted together with them.
        """
        with self._asking():
            self.unmet = unmet_demand(milp, self.resolver.part(4))
        with self._asking():
            every = list_limits(self.prepared, self.resolver.again)
            limits = [limit for limit in every if limit.again != SUPPLY]
            liftable = bool(limits) and self._hold(limits, [])
            if liftable:
                self.conflict = irreducible_conflict(limits, lambda held: self._hold(limits, held))
                self._single_fixes(self.conflict)
            self._cuts()
            self._single_fixes([limit for limit in every if limit.again == SUPPLY])
            if not self.fixes:
                self._together(limits if liftable else every)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """A question that may end without an answer; the plan's notes say so."""
        try:
            yield
        except OutOfTimeError:
            self.notes.append(CUT_SHORT)
        except SolverError as error:
            self.notes.append(f"The diagnosis was cut short by the solver: {error}.")

    def _hold(self, limits: Sequence[Limit], held: Sequence[Limit]) -> bool:
        gone: dict[Limit, float | None] = {limit: None for limit in limits if limit not in held}
        return self.resolver.has_plan(changed(self.prepared, gone, self.resolver.again))

    def _single_fixes(self, limits: Sequence[Limit]) -> None:
        """A limit that is enough alone stands in every conflict, so only those of one conflict are tried."""
        for number, limit in enumerate(limits):
            with self._asking():
                resolver = self.resolver.part(len(limits) - number + 1)
                if (fix := Search(self.prepared, resolver, {}).fix(limit)) is not None:
                    self.fixes.append(fix)

    def _cuts(self) -> None:
        workloads = self.prepared.problem.workloads
        for number, workload in enumerate(workloads):
            with self._asking():
                resolver = self.resolver.part(len(workloads) - number + 1)
                if (cut := least_cut(self.prepared, workload, resolver)) is not None:
                    self.cuts.append(cut)

    def _together(self, limits: list[Limit]) -> None:
        """The limits that give, and their least changes one after the other: those not settled yet are lifted."""
        if not limits or not self._hold(limits, []):
            return
        ordered = [limit for limit in limits if limit not in self.conflict] + self.conflict
        gives = least_to_give(ordered, lambda held: self._hold(limits, held))
        values: dict[Limit, float | None] = dict.fromkeys(gives)
        for limit in gives:
            others = {one: value for one, value in values.items() if one is not limit}
            value = Search(self.prepared, self.resolver, others).least(limit)
            if value is None:
                return
            values[limit] = value
        self.together = [(limit, value) for limit, value in values.items() if value is not None]
        found = least_cost_at(self.prepared, self.together, self.resolver)
        self.npv_together = None if found is None else found.npv

    # --- as the plan says it --------------------------------------------------------------------------------------

    def shortfalls(self) -> tuple[Shortfall, ...]:
        """Limits that are enough alone, cheapest first; else a set; the conflict; demand unmet; cuts of demand."""
        fixes = sorted(self.fixes, key=lambda fix: fix.npv)
        cheapest = _fix_record(fixes[0]) if fixes else None
        alone = [_alone(fix, cheapest) for fix in fixes]
        together = [_limit(limit, value, "limit", npv=self.npv_together) for limit, value in self.together]
        against = self.conflict if len(self.conflict) > 1 else []
        conflict = [_limit(limit, limit.value, "conflict") for limit in against]
        return (*alone, *together, *conflict, *map(_unmet, self.unmet), *map(_cut, self.cuts))


def _alone(fix: Fix, cheapest: dict[str, object] | None) -> Shortfall:
    found = _limit(fix.limit, fix.to, "limit", cheapest, alone=True, npv=fix.npv)
    return replace(found, index=[*found.index, ", ".join(fix.lets_in)]) if fix.lets_in else found


def _limit(
    limit: Limit,
    to: float,
    kind: str,
    fix: dict[str, object] | None = None,
    *,
    alone: bool = False,
    npv: float | None = None,
) -> Shortfall:
    by = abs(to - limit.value)
    index = list(limit.index)
    return Shortfall(kind, limit.family, index, to, limit.value, by, limit.unit, fix, alone, npv, change=limit.key)


def _fix_record(fix: Fix) -> dict[str, object]:
    limit = fix.limit
    return {
        "change": limit.key,
        "from": limit.value,
        "to": fix.to,
        "by": fix.by,
        "unit": limit.unit,
        "npv": fix.npv,
    }


def _unmet(found: Unmet) -> Shortfall:
    there = found.needed - found.short
    return Shortfall("demand", found.family, list(found.index), found.needed, there, found.short, found.unit, None)


def _cut(found: Cut) -> Shortfall:
    family = "demand_coverage" if found.unit == "requests/s" else "deadline"
    by = found.asked - found.kept
    key = f"workloads.{found.workload}"
    return Shortfall(
        "cut", family, [found.workload], found.asked, found.kept, by, found.unit, None, True, found.npv, change=key
    )
