"""Time and money of an audit, from the conventions alone (docs/model.md): months, events, windows, present values."""

import math
from collections.abc import Iterable, Iterator, Sequence

from optimizer.estimator.workloads import AnyJob
from optimizer.finance import discount_factor
from optimizer.problem.schema import Horizon

HOURS_PER_MONTH = 730.0
HOURS_PER_DAY = 24.0
EPSILON_MONTHS = 1e-9
"""Two moments closer than this are one."""

_PERIOD_LENGTHS = {"monthly": 1.0, "quarterly": 3.0, "yearly": 12.0}
_REPEAT_HOURS = {"daily": 24.0, "weekly": 168.0, "monthly": 730.0, "quarterly": 2190.0, "yearly": 8760.0}


def listed_periods(horizon: Horizon) -> list[tuple[float, float]]:
    """(start, length) in months of every period at whose start one can order."""
    if not isinstance(horizon.periods, str):
        return [(period.start_month, period.months) for period in horizon.periods]
    length = _PERIOD_LENGTHS.get(horizon.periods, horizon.months)
    periods = []
    start = 0.0
    while start < horizon.months - EPSILON_MONTHS:
        periods.append((start, min(length, horizon.months - start)))
        start = len(periods) * length
    return periods


def runs_of(job: AnyJob, horizon_months: float) -> list[tuple[str, float, float]]:
    """(name, release, deadline) in months of every run of a job; a run that would end past the horizon is none."""
    start = job.start / HOURS_PER_MONTH
    if job.repeat == "none":
        end = horizon_months if job.deadline is None else start + job.deadline / HOURS_PER_MONTH
        return [(job.name, start, end)]
    step = _REPEAT_HOURS[job.repeat] / HOURS_PER_MONTH
    length = step if job.deadline is None else job.deadline / HOURS_PER_MONTH
    runs: list[tuple[str, float, float]] = []
    while start + length <= horizon_months + EPSILON_MONTHS:
        runs.append((f"{job.name}#{len(runs) + 1}", start, start + length))
        start += step
    return runs


def clock_hours(daily: str) -> set[int]:
    """Hours of the day in a window: `22:00-06:00` holds 22, 23, 0, … 5; equal ends mean the whole day."""
    first, last = (int(part.partition(":")[0]) % 24 for part in daily.split("-"))
    hour, hours = first, {first}
    while (hour := (hour + 1) % 24) != last and hour != first:
        hours.add(hour)
    return hours


def overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Months that two stretches have in common."""
    return max(0.0, min(first[1], second[1]) - max(first[0], second[0]))


def monthly_payments(start: float, end: float, horizon_months: float) -> Iterator[tuple[float, float]]:
    """(months, month of payment) for something paid by the month from `start` to `end`.

    Each calendar month is paid at its end; the fraction of a month before the horizon, and the last one, at theirs.
    """
    for month in range(math.floor(start + EPSILON_MONTHS), math.ceil(end - EPSILON_MONTHS)):
        whole = (float(month), month + 1.0)
        before = overlap((start, min(end, horizon_months)), whole)
        if before > 0:
            yield before, min(whole[1], horizon_months)
        after = overlap((max(start, horizon_months), end), whole)
        if after > 0:
            yield after, min(whole[1], end)


def present_months(rate_per_year: float, start: float, end: float, horizon_months: float) -> float:
    """Present value of paying 1 a month from `start` to `end`."""
    return math.fsum(
        months * discount_factor(rate_per_year, paid) for months, paid in monthly_payments(start, end, horizon_months)
    )


def residual_share(age_months: float, points: Sequence[tuple[float, float]], useful_life_months: float) -> float:
    """Share of its price that a node is worth: 1 before it arrives, linear between points, 0 past its life."""
    if age_months < 0:
        return 1.0
    if age_months > useful_life_months:
        return 0.0
    if age_months >= points[-1][0]:
        return points[-1][1]
    after = next(i for i, point in enumerate(points) if age_months <= point[0])
    if after == 0 or points[after][0] == points[after - 1][0]:
        return points[after][1]
    (young, high), (old, low) = points[after - 1], points[after]
    return high + (low - high) * (age_months - young) / (old - young)


def nearly_in(month: float, months: Iterable[float]) -> bool:
    """Whether a moment is one of several."""
    return any(abs(month - other) <= 10 * EPSILON_MONTHS for other in months)
