"""Where owning overtakes renting: the share of hours in use, and the month, found by re-solving both.

Costs move in steps (whole nodes, whole periods), so the answer is a bracket, not a point: on one side renting is
cheaper, on the other owning, and both costs are given there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from optimizer.decision.runner import OutOfTimeError, Runner
from optimizer.decision.variants import cut_at, ends_at, with_duty
from optimizer.estimator.workloads import AnyWorkload
from optimizer.model.timegrid import SAME_MONTH, list_periods
from optimizer.problem.schema import Problem

LEAST_SHARE = 0.01
"""Smallest share of hours that is looked at."""
SHARE_WIDTH = 0.01
"""The bracket of the share is narrowed to this width."""
MOST_PROBES = 5
"""Shares tried between the least and all hours; each costs two solves."""
MOST_CURVE_POINTS = 4
"""Ends of periods inside the horizon at which both costs are computed; each costs two solves."""

CROSSING, NEVER, ALWAYS, UNDEFINED, STOPPED = "crossing", "never", "always", "not defined", "stopped"


@dataclass(frozen=True, slots=True)
class Point:
    """Least costs (NPV) of both ways at a share of hours or a month; None where a way has no plan."""

    at: float
    owned_only: float | None
    cloud_only: float | None

    @property
    def owned_minus_cloud(self) -> float:
        """Owning is dearer by this much: infinite where only one way has a plan, NaN where none has."""
        if self.owned_only is None:
            return math.nan if self.cloud_only is None else math.inf
        return -math.inf if self.cloud_only is None else self.owned_only - self.cloud_only

    @property
    def owning_pays(self) -> bool:
        """Whether owning costs no more than renting."""
        return self.owned_minus_cloud <= 0


@dataclass(frozen=True, slots=True)
class Ways:
    """The two problems that are weighed against each other; renting sells what is owned now, at the start."""

    owned_only: Problem
    cloud_only: Problem
    sold_at_start: float = 0.0

    @property
    def workloads(self) -> Sequence[AnyWorkload]:
        """What both have to carry."""
        return self.cloud_only.workloads

    def costs(self, at: float, change: Callable[[Problem], Problem | None], runner: Runner, label: str) -> Point:
        """Both least costs after the same change of both problems (None: nothing is left to carry)."""
        owned, cloud = change(self.owned_only), change(self.cloud_only)
        if owned is None or cloud is None:
            return Point(at, None, None)
        cost_owned = runner.least_cost(owned, f"{label}, owned-only")
        cost_cloud = runner.least_cost(cloud, f"{label}, cloud-only")
        return Point(at, cost_owned, None if cost_cloud is None else cost_cloud - self.sold_at_start)


Evaluate = Callable[[float], Point]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where owning and renting cost the same.

    `status` is crossing | never | always | not defined | stopped (by the time limit or Ctrl-C). At a crossing, `below`
    and `above` are the two ends of the bracket, `estimate` lies between them where the difference, taken as a straight
    line, is 0, and `cheaper_above` names the way that is cheaper from `above` on. `points` are all that was computed.
    """

    definition: str
    method: str
    unit: str
    status: str
    below: Point | None = None
    above: Point | None = None
    points: tuple[Point, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def estimate(self) -> float | None:
        """Between the ends of the bracket, on a straight line."""
        if self.status != CROSSING or self.below is None or self.above is None:
            return None
        left, right = self.below.owned_minus_cloud, self.above.owned_minus_cloud
        if not (math.isfinite(left) and math.isfinite(right)) or left == right:
            return self.above.at
        return self.below.at + (self.above.at - self.below.at) * left / (left - right)

    @property
    def cheaper_above(self) -> str | None:
        """The way that is cheaper from the upper end of the bracket on."""
        if self.status != CROSSING or self.above is None:
            return None
        return "owned-only" if self.above.owning_pays else "cloud-only"


UTILISATION_DEFINITION = (
    "The share of all hours in which the workloads run at all, at which owned-only and cloud-only cost the same (NPV). "
    "Services have their demand unchanged in that share of the hours of every time slice and none in the rest; jobs "
    "keep their windows and do that share of their work."
)
MONTH_DEFINITION = (
    "The shortest horizon, in whole months up to the problem's, from which on owned-only costs no more than cloud-only "
    "(NPV, hardware at its resale value at that month). Jobs count from the month of their deadline on."
)
UTILISATION_METHOD = "both re-solved at each share; interpolation and bisection until the bracket is 1 % wide"
MONTH_METHOD = (
    "both re-solved at the first month and up to 4 ends of periods (a scan), then bisection by whole months in the "
    "last stretch in which the cheaper way changes"
)


# --- utilisation ------------------------------------------------------------------------------------------------------


def break_even_utilisation(ways: Ways, runner: Runner, at_full: Point) -> BreakEven:
    """The share of hours at which owning and renting cost the same.

    `at_full` holds both costs with the workloads running in all hours; each is re-solved at other shares.
    """
    notes = _utilisation_notes(ways)

    def result(status: str, points: Sequence[Point], bracket: tuple[Point | None, Point | None]) -> BreakEven:
        ordered = tuple(sorted(points, key=lambda point: point.at))
        return BreakEven(UTILISATION_DEFINITION, UTILISATION_METHOD, "share of hours", status, *bracket, ordered, notes)

    if not math.isfinite(at_full.owned_minus_cloud):
        return result(UNDEFINED, [at_full], (None, None))
    points = [at_full]
    try:
        least = _at_share(ways, runner, LEAST_SHARE)
        points.append(least)
        if least.owning_pays == at_full.owning_pays:
            return result(ALWAYS if least.owning_pays else NEVER, points, (None, None))
        low, high = _narrowed(least, at_full, lambda share: _at_share(ways, runner, share), points)
    except OutOfTimeError:
        return result(STOPPED, points, _last_bracket(points))
    return result(CROSSING, points, (low, high))


def _utilisation_notes(ways: Ways) -> tuple[str, ...]:
    if all(workload.kind != "service" for workload in ways.workloads):
        return ("Only jobs: the share is that of their work.",)
    return ()


def _at_share(ways: Ways, runner: Runner, share: float) -> Point:
    label = f"break-even utilisation: {share:.1%} of hours"
    return ways.costs(share, lambda problem: with_duty(problem, share), runner, label)


def _narrowed(low: Point, high: Point, evaluate: Evaluate, points: list[Point]) -> tuple[Point, Point]:
    """Narrow a bracket in which the cheaper way changes.

    Probes take turns: where a straight line between the ends is 0; one width beside it; the middle. The costs are
    nearly straight lines, so that the first two mostly suffice.
    """
    for probe in range(MOST_PROBES):
        if high.at - low.at <= SHARE_WIDTH * (1 + 1e-9):
            break
        last = points[-1].at if probe else None
        found = evaluate(_probe(probe, low, high, last))
        points.append(found)
        low, high = (found, high) if found.owning_pays == low.owning_pays else (low, found)
    return low, high


def _probe(number: int, low: Point, high: Point, last: float | None) -> float:
    middle = (low.at + high.at) / 2
    if number % 3 == 1 and last == low.at:
        return min(low.at + SHARE_WIDTH, middle)
    if number % 3 == 1 and last == high.at:
        return max(high.at - SHARE_WIDTH, middle)
    left, right = low.owned_minus_cloud, high.owned_minus_cloud
    if number % 3 == 2 or not (math.isfinite(left) and math.isfinite(right)) or left == right:
        return middle
    root = low.at + (high.at - low.at) * left / (left - right)
    edge = min(SHARE_WIDTH / 2, (high.at - low.at) / 4)
    return min(max(root, low.at + edge), high.at - edge)


def _last_bracket(points: Sequence[Point]) -> tuple[Point | None, Point | None]:
    """The last two neighbours between which the cheaper way changes; points at which no way has a plan say nothing."""
    known = [point for point in points if not math.isnan(point.owned_minus_cloud)]
    ordered = sorted(known, key=lambda point: point.at)
    for low, high in reversed(list(pairwise(ordered))):
        if low.owning_pays != high.owning_pays:
            return low, high
    return None, None


# --- month ------------------------------------------------------------------------------------------------------------


def break_even_month(ways: Ways, runner: Runner, at_end: Point) -> BreakEven:
    """The month from which on owning costs no more than renting, and both cost curves at the ends of periods.

    `at_end` holds both costs over the whole horizon.
    """
    problem = ways.cloud_only
    notes = _month_notes(problem)

    def result(status: str, points: Sequence[Point], bracket: tuple[Point | None, Point | None]) -> BreakEven:
        ordered = tuple(sorted(points, key=lambda point: point.at))
        return BreakEven(MONTH_DEFINITION, MONTH_METHOD, "month", status, *bracket, ordered, notes)

    first = _first_month(problem)
    if not math.isfinite(at_end.owned_minus_cloud) or first >= problem.horizon.months - SAME_MONTH:
        return result(UNDEFINED, [at_end], (None, None))
    points = [at_end]
    try:
        for month in _curve_months(problem, first):
            points.append(_at_month(ways, runner, month))
        low, high = _last_bracket(points)
        if low is None or high is None:
            return result(ALWAYS if at_end.owning_pays else NEVER, points, (None, None))
        low, high = _narrowed_months(low, high, lambda month: _at_month(ways, runner, month), points)
    except OutOfTimeError:
        return result(STOPPED, points, _last_bracket(points))
    return result(CROSSING, points, (low, high))


def _month_notes(problem: Problem) -> tuple[str, ...]:
    late = [(w.name, ends_at(w, problem)) for w in problem.workloads if ends_at(w, problem) > 1]
    if not late:
        return ()
    listed = ", ".join(f"{name} from month {month:.4g}" for name, month in late)
    return (f"Jobs are left out of horizons that end before they do: {listed}.",)


def _first_month(problem: Problem) -> int:
    """The shortest horizon in whole months that holds a workload."""
    return max(1, math.ceil(min(ends_at(w, problem) for w in problem.workloads) - SAME_MONTH))


def _curve_months(problem: Problem, first: int) -> list[int]:
    """The first month and evenly chosen ends of periods before the horizon's."""
    months = problem.horizon.months
    ends = {round(period.end_month) for period in list_periods(problem.horizon)}
    inside = sorted(end for end in ends if first < end < months - SAME_MONTH)
    count = min(len(inside), MOST_CURVE_POINTS)
    chosen = [inside[(i + 1) * (len(inside) + 1) // (count + 1) - 1] for i in range(count)]
    return [first, *chosen]


def _at_month(ways: Ways, runner: Runner, month: float) -> Point:
    label = f"break-even month: horizon of {month:g} months"
    return ways.costs(month, lambda problem: cut_at(problem, month), runner, label)


def _narrowed_months(low: Point, high: Point, evaluate: Evaluate, points: list[Point]) -> tuple[Point, Point]:
    """Bisect to neighbouring whole months (the end of the horizon may be a fraction)."""
    while math.ceil(high.at) - low.at > 1 + SAME_MONTH:
        found = evaluate(float((math.ceil(high.at) + low.at) // 2))
        points.append(found)
        low, high = (found, high) if found.owning_pays == low.owning_pays else (low, found)
    return low, high
