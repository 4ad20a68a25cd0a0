"""Why a problem too large for one model has no plan: asked of a part of it, and tried on the whole if time allows."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace

from optimizer.model.build import build
from optimizer.model.entities import Instance
from optimizer.plan import Shortfall
from optimizer.prepare import Prepared
from optimizer.solver.decomposition.run import LEAST_JOBS_S, decompose
from optimizer.solver.diagnosis.diagnose import Diagnosis, Findings
from optimizer.solver.diagnosis.limit import CHOICE, changed
from optimizer.solver.diagnosis.part import EXTENTS, Part, PartResolver, part
from optimizer.solver.diagnosis.search import Fix
from optimizer.solver.milp import SolverSettings
from optimizer.solver.resolve import Again, OutOfTimeError

LOOKING_SHARE, ASKING_SHARE, TRIAL_SHARE = 0.1, 0.5, 0.5
"""Shares of the time: a first look at a part, questions to it, and of what is left a change tried on the whole."""
SHORTEST_TRIAL_S = 20.0
BEYOND = 0.1
"""Share of a change by which a trial on the whole goes further: whole nodes take more than parts of nodes."""
ON_A_PART = (
    "What one model would be too large for (or --method decomposed does not ask of it) was asked of a part that every "
    "plan must meet, nodes in parts: {part}. It has no plan, so the whole has none; what it needs is the least, and "
    "the whole may need more."
)
FOUND = "With {change} a plan of the whole was found, at {npv:,.2f} {currency} (NPV)."
IN_VAIN = "With {change} no plan of the whole was found in the time left: more may be needed."


def impossible_part(prepared: Prepared, settings: SolverSettings) -> Part | None:
    """A part of a problem that has no plan, so that the whole has none; None where none was found in time."""
    for extent in EXTENTS:
        limit = LOOKING_SHARE * (settings.time_limit_s or 0.0)
        resolver = PartResolver(replace(settings, gap=0.0, time_limit_s=limit))
        small = part(prepared, extent)
        try:
            if not resolver.has_plan(small):
                return small
        except OutOfTimeError:
            return None
    return None


def diagnose_large(prepared: Prepared, small: Part, settings: SolverSettings, *, again: Again) -> Diagnosis:
    """Why a problem has no plan of which `small` is a part that has none, within the time limit of `settings`."""
    limit_s = settings.time_limit_s or 0.0
    stops_at = time.monotonic() + limit_s
    asking = replace(settings, gap=0.0, time_limit_s=ASKING_SHARE * limit_s)
    resolver = PartResolver(asking, lambda problem: part(again(problem), small.extent), settings.gap)
    found = Findings(small, resolver)
    instance = small.instance()
    found.look(build(instance))
    said = ON_A_PART.format(part=_part_words(instance, len(prepared.instance().cells())))
    trial = _trial(prepared, found, replace(settings, time_limit_s=stops_at - time.monotonic()), again)
    notes = (said, *dict.fromkeys(found.notes), *trial)
    return Diagnosis(tuple(_at_least(s) for s in found.shortfalls()), notes)


def _trial(prepared: Prepared, found: Findings, settings: SolverSettings, again: Again) -> Iterator[str]:
    """Whether the whole has a plan with the change of a limit that costs the part least, if there is time to see."""
    best = min(found.fixes, key=lambda fix: fix.npv, default=None)
    left = (settings.time_limit_s or 0.0) - 2 * LEAST_JOBS_S
    if best is None or left < SHORTEST_TRIAL_S:
        return
    limit, value = best.limit, _further(best)
    whole = changed(prepared, {limit: value}, again)
    tried = decompose(whole.instance(), replace(settings, time_limit_s=TRIAL_SHARE * left))
    change = f"{limit.key} lifted" if limit.unit == CHOICE else f"{limit.key} at {value:.10g} {limit.unit}"
    if tried is None:
        yield IN_VAIN.format(change=change)
    else:
        yield FOUND.format(change=change, npv=tried.plan.cost, currency=prepared.problem.currency)


def _further(fix: Fix) -> float:
    """A value somewhat beyond the least that a part needs; whole where the limit is."""
    limit = fix.limit
    value = fix.to + limit.direction * BEYOND * fix.by
    if limit.whole:
        value = math.ceil(value) if limit.direction > 0 else math.floor(value)
    return limit.within(value)


def _part_words(instance: Instance, of_cells: int) -> str:
    """What belongs to a part."""
    rates = [d.rate_per_s for d in instance.rate_demands]
    cells = sum(any(rate[instance.grid.blocks[c.block].period][c.slice] for rate in rates) for c in instance.cells())
    services = [f"services in {cells} of {of_cells} cells of the grid"] if cells else []
    return " and ".join([*services, *(["all jobs"] if instance.volume_demands else [])])


def _at_least(shortfall: Shortfall) -> Shortfall:
    """A shortfall of the part as one of the whole: no less is needed, and what it would cost is not known."""
    return replace(shortfall, npv=None, cheapest_fix=None, at_least=shortfall.kind != "conflict")
