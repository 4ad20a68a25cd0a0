"""Time: periods in which one can order, blocks cut at every event, slices inside every block.

The grid is cut at every job's release and deadline, every possible arrival and every end of a term, so that a 5-day
job on a 3-year horizon is exact. Every stretch of time holds each slice in its proportion.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from optimizer.finance import running_factor
from optimizer.problem.periods import order_periods
from optimizer.problem.profiles import hourly_profile
from optimizer.problem.schema import Horizon, Problem, TimeSlice
from optimizer.units import HOURS_PER_DAY, HOURS_PER_MONTH

SAME_MONTH = 1e-9
"""Two grid points closer than this (months) are one."""
SAME_PART = 1e-9
"""Parts of an hour closer than this are one."""
WEEKDAY_SHARE, WEEKEND_SHARE = 5 / 7, 2 / 7


@dataclass(frozen=True, slots=True)
class PeriodSpan:
    """A listed period: orders may be placed at its start."""

    index: int
    start_month: float
    months: float

    @property
    def end_month(self) -> float:
        """Month at which the period ends."""
        return self.start_month + self.months


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of every stretch of time; `hours_of_day` are the clock hours it holds (None: not tied to the clock)."""

    index: int
    name: str
    share_of_hours: float
    hours_of_day: tuple[int, ...] | None = None
    starting: tuple[float, float] | None = None
    """Which part of each of its hours it is, where replicas for the next hour are starting in it (`with_start_up`)."""
    hour_slice: int = -1
    """Where `starting`: the slice that holds the rest of its hours."""
    next_slices: tuple[int, ...] = ()
    """Where `starting`: the slices of the hours that follow."""

    def starts(self, startup_hours: float) -> bool:
        """Whether replicas that take so long to start are starting in it."""
        return self.starting is not None and startup_hours > 0 and self.starting[0] >= 1 - startup_hours - SAME_PART


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of time without events inside; `present_value_months` discounts a monthly payment over it."""

    index: int
    start_month: float
    end_month: float
    period: int
    present_value_months: float

    @property
    def months(self) -> float:
        """Length in months."""
        return self.end_month - self.start_month


@dataclass(frozen=True, slots=True)
class Cell:
    """One slice of one block: the finest piece of time in which decisions may differ."""

    block: int
    slice: int
    hours: float
    present_value_hours: float
    """Present value of paying 1 per hour throughout the cell."""


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Periods, slices and blocks of a problem."""

    horizon_months: float
    periods: tuple[PeriodSpan, ...]
    slices: tuple[Slice, ...]
    blocks: tuple[Block, ...]

    def cell(self, block: int, slice_: int) -> Cell:
        """The cell of a block and a slice."""
        span, share = self.blocks[block], self.slices[slice_].share_of_hours
        return Cell(
            block,
            slice_,
            span.months * HOURS_PER_MONTH * share,
            span.present_value_months * HOURS_PER_MONTH * share,
        )

    def cells(self) -> list[Cell]:
        """All cells, block by block."""
        return [self.cell(b.index, s.index) for b in self.blocks for s in self.slices]


def list_periods(horizon: Horizon) -> tuple[PeriodSpan, ...]:
    """The periods of a horizon, numbered."""
    return tuple(PeriodSpan(i, p.start_month, p.months) for i, p in enumerate(order_periods(horizon)))


def list_slices(problem: Problem, *, days_apart: bool = False) -> tuple[Slice, ...]:
    """The problem's own slices, or the hours of a representative week with hours alike in every profile merged.

    Hours merge only where all services have exactly the same multiplier and no daily window separates them (nor, where
    `days_apart`, the kind of day), so merging never hides a peak.
    """
    if problem.slices:
        return tuple(_own_slice(i, one) for i, one in enumerate(problem.slices))
    services = [w for w in problem.workloads if w.kind == "service"]
    profiles = [hourly_profile(service.traffic) for service in services]
    windows = [window_hours(w.window.daily) for w in problem.workloads if w.kind != "service" and w.window]
    groups: dict[tuple[object, ...], list[int]] = {}
    for hour in range(2 * HOURS_PER_DAY):
        clock = hour % HOURS_PER_DAY
        key = (*(round(p[hour], 12) for p in profiles), *(clock in hours for hours in windows))
        key = (*key, days_apart and hour < HOURS_PER_DAY)
        groups.setdefault(key, []).append(hour)
    plain = [_merged_slice(i, hours) for i, hours in enumerate(groups.values())]
    return with_start_up(plain, [service.startup for service in services])


def with_start_up(plain: Sequence[Slice], startups: Iterable[float]) -> tuple[Slice, ...]:
    """Slices of hours, and the last minutes of hours in which replicas for other hours start, cut off as slices.

    An hour is cut wherever the next one is of another slice, at each start-up time (in hours, below 1) before its end.
    After the last hour of a day either day may follow, so that both count.
    """
    cuts = sorted({1 - startup for startup in startups if startup > 0})
    slice_of = {hour: one.index for one in plain for hour in one.hours_of_day or ()}
    groups: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for hour, own in slice_of.items():
        after = tuple(sorted({slice_of[n] for n in next_hours(hour)} - {own}))
        if after and cuts:
            groups.setdefault((own, after), []).append(hour)
    cut_off = {hour for hours in groups.values() for hour in hours}
    found = [_shortened(one, cut_off, cuts[0]) if cuts else one for one in plain]
    for (own, after), hours in groups.items():
        for part in pairwise([*cuts, 1.0]):
            name = f"{_hours_name(hours)}:{60 * part[0]:.6g}..{60 * part[1]:.6g}"
            share = (part[1] - part[0]) * _share_of_hours(hours)
            found.append(Slice(len(found), name, share, tuple(hours), part, own, after))
    return tuple(found)


def next_hours(hour: int) -> tuple[int, ...]:
    """Hours of the representative week that may follow one: after a day's last hour comes a weekday or a weekend."""
    return (0, HOURS_PER_DAY) if hour % HOURS_PER_DAY == HOURS_PER_DAY - 1 else (hour + 1,)


def _shortened(one: Slice, cut_off: set[int], part: float) -> Slice:
    """A slice with no more than the first part of the hours whose end is cut off."""
    hours = one.hours_of_day or ()
    whole, cut = [h for h in hours if h not in cut_off], [h for h in hours if h in cut_off]
    return replace(one, share_of_hours=_share_of_hours(whole) + part * _share_of_hours(cut)) if cut else one


def _share_of_hours(hours: Sequence[int]) -> float:
    weekday = sum(h < HOURS_PER_DAY for h in hours)
    return (weekday * WEEKDAY_SHARE + (len(hours) - weekday) * WEEKEND_SHARE) / HOURS_PER_DAY


def _own_slice(index: int, given: TimeSlice) -> Slice:
    hours = None if given.hours_of_week is None else tuple(given.hours_of_week)
    return Slice(index, given.name, given.share_of_hours, hours)


def _merged_slice(index: int, hours: Sequence[int]) -> Slice:
    name = "all" if len(hours) == 2 * HOURS_PER_DAY else _hours_name(hours)
    return Slice(index, name, _share_of_hours(hours), tuple(hours))


def _hours_name(hours: Sequence[int]) -> str:
    """`weekday-09..11+14`, `weekend-00..23`, or both joined by `,`."""
    parts = []
    for label, first in (("weekday", 0), ("weekend", HOURS_PER_DAY)):
        own = [h - first for h in hours if first <= h < first + HOURS_PER_DAY]
        if own:
            parts.append(f"{label}-{'+'.join(_runs(own))}")
    return ",".join(parts)


def _runs(hours: Sequence[int]) -> list[str]:
    runs: list[list[int]] = []
    for hour in hours:
        if runs and hour == runs[-1][-1] + 1:
            runs[-1].append(hour)
        else:
            runs.append([hour])
    return [f"{r[0]:02d}" if len(r) == 1 else f"{r[0]:02d}..{r[-1]:02d}" for r in runs]


def window_hours(daily: str) -> frozenset[int]:
    """Clock hours of a daily window: `22:00-06:00` holds 22, 23, 0 … 5."""
    start, end = (int(text.split(":")[0]) % HOURS_PER_DAY for text in daily.split("-"))
    length = (end - start) % HOURS_PER_DAY or HOURS_PER_DAY
    return frozenset((start + i) % HOURS_PER_DAY for i in range(length))


def cut_blocks(
    periods: Sequence[PeriodSpan], event_months: Iterable[float], rate_per_year: float, horizon_months: float
) -> tuple[Block, ...]:
    """Blocks between consecutive events and period starts; events outside the horizon are ignored."""
    points = sorted({*(p.start_month for p in periods), horizon_months, *event_months})
    inside = [m for m in points if -SAME_MONTH <= m <= horizon_months + SAME_MONTH]
    merged = [inside[0]]
    for month in inside[1:]:
        if month - merged[-1] > SAME_MONTH:
            merged.append(month)
    blocks: list[Block] = []
    for start, end in pairwise(merged):
        period = max(p.index for p in periods if p.start_month <= start + SAME_MONTH)
        value = running_factor(rate_per_year, start, end, horizon_months)
        blocks.append(Block(len(blocks), start, end, period, value))
    return tuple(blocks)
