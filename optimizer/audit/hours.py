"""Hours of the representative week: the slices that hold them, and those cut off their ends for start-up."""

import math
from itertools import pairwise

from optimizer.audit.document import GridRecord, SliceRecord
from optimizer.audit.report import Checker
from optimizer.estimator.workloads import Service
from optimizer.problem.schema import Problem

DIGITS = 9
_DAY, _WEEK = 24, 48


def weight(hour: int) -> float:
    """Share of all hours of an hour of the representative week."""
    return (5 if hour < _DAY else 2) / 7 / _DAY


def _following(hour: int) -> list[int]:
    """Hours that may come after an hour: the next of the day, or the first of a weekday and of a weekend day."""
    return [0, _DAY] if hour in (_DAY - 1, _WEEK - 1) else [hour + 1]


def _owners(grid: GridRecord) -> dict[int, int]:
    """Slice that holds each hour, or all but its end."""
    return {h: i for i, s in enumerate(grid.slices) if s.starting is None for h in s.hours_of_week or ()}


def _neighbours(grid: GridRecord, hour: int) -> frozenset[int]:
    """Other slices that may follow an hour."""
    owners = _owners(grid)
    return frozenset(owners[h] for h in _following(hour)) - {owners[hour]}


def expected_share(grid: GridRecord, problem: Problem, slice_: SliceRecord) -> float:
    """Share of all hours that a slice of hours stands for."""
    hours = slice_.hours_of_week or ()
    if slice_.starting is not None:
        return (slice_.starting[1] - slice_.starting[0]) * math.fsum(map(weight, hours))
    longest = max((w.startup for w in problem.workloads if isinstance(w, Service)), default=0.0)
    return math.fsum(weight(h) * (1 - longest if _neighbours(grid, h) else 1) for h in hours)


def check_ends_of_hours(grid: GridRecord, problem: Problem, checker: Checker) -> None:
    """Every hour that another slice follows is cut at each start-up time before its end, and no other hour is."""
    times = sorted({w.startup for w in problem.workloads if isinstance(w, Service) and w.startup > 0}, reverse=True)
    edges = [round(1 - time, DIGITS) for time in times] + [1.0]
    parts = list(pairwise(edges))
    expected = sorted((h, *part) for h in range(_WEEK) if _neighbours(grid, h) for part in parts)
    ends = [s for s in grid.slices if s.starting is not None]
    found = sorted((h, *(round(p, DIGITS) for p in s.starting or ())) for s in ends for h in s.hours_of_week or ())
    checker.same("grid", "grid.slices.starting", found, expected)
    owners = _owners(grid)
    for one in ends:
        kinds = {(owners[h], _neighbours(grid, h)) for h in one.hours_of_week or ()}
        checker.holds("grid", f"slice {one.name}", len(kinds) == 1, "holds ends of hours that differ")


def started_for(grid: GridRecord, service: Service, key: tuple[int, int]) -> list[tuple[int, int]]:
    """Cells whose replicas must run, or be starting, in a cell: of the hour itself, then of the hours that follow."""
    slice_, startup = grid.slices[key[1]], service.startup
    if slice_.starting is None or startup <= 0 or round(1 - startup - slice_.starting[0], DIGITS) > 0:
        return []
    hour = (slice_.hours_of_week or (0,))[0]
    return [(key[0], s) for s in (_owners(grid)[hour], *sorted(_neighbours(grid, hour)))]
