"""Stretches of time at one price: what is paid by the month or the hour, cut at periods and where prices step.

A price that changes by c per year is p × (1 + c)^y in year y, counted from 0: it steps after 12 months, 24 months …
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from optimizer.finance import running_factor
from optimizer.model.entities import Instance
from optimizer.model.timegrid import SAME_MONTH, Cell
from optimizer.units import HOURS_PER_MONTH, MONTHS_PER_YEAR

ALWAYS = (0.0, math.inf)


@dataclass(frozen=True, slots=True)
class Span:
    """Months inside one period at one price level, and the present value of paying 1 per month in them.

    `period` after the last one means past the horizon; `level` is the factor on the price.
    """

    period: int
    level: float
    months: float
    present_months: float


def spans(instance: Instance, start_month: float, end_month: float, change_per_year: float = 0.0) -> Iterator[Span]:
    """The stretches from start to end; what lies past the horizon counts under the number after the last period."""
    horizon = instance.grid.horizon_months
    stretches = [(p.index, p.start_month, p.end_month) for p in instance.grid.periods]
    stretches.append((len(stretches), horizon, math.inf))
    for period, first, last in stretches:
        begin, end = max(start_month, first), min(end_month, last)
        if end <= begin + SAME_MONTH:
            continue
        for year, cuts in _years(begin, end) if change_per_year else [(0, (begin, end))]:
            value = running_factor(instance.rate_per_year, *cuts, horizon)
            yield Span(period, (1.0 + change_per_year) ** year, cuts[1] - cuts[0], value)


def _years(begin: float, end: float) -> list[tuple[int, tuple[float, float]]]:
    """[begin, end) cut at whole years, with the number of each year."""
    first = math.floor(begin / MONTHS_PER_YEAR + SAME_MONTH)
    last = math.ceil(end / MONTHS_PER_YEAR - SAME_MONTH)
    inner = [float(year * MONTHS_PER_YEAR) for year in range(first + 1, last)]
    return list(enumerate(pairwise([begin, *inner, end]), start=first))


@dataclass(frozen=True, slots=True)
class PricedHours:
    """Hours of a cell at one price level, and the present value of paying 1 per hour in them."""

    level: float
    hours: float
    present_hours: float


def priced_hours(
    instance: Instance, cell: Cell, change_per_year: float = 0.0, window: tuple[float, float] = ALWAYS
) -> tuple[PricedHours, ...]:
    """A cell's hours inside a window of months, by price level: each stretch of time holds all slices in proportion."""
    block = instance.grid.blocks[cell.block]
    if (
        not change_per_year
        and window[0] <= block.start_month + SAME_MONTH
        and window[1] >= block.end_month - SAME_MONTH
    ):
        return (PricedHours(1.0, cell.hours, cell.present_value_hours),)
    share = HOURS_PER_MONTH * instance.grid.slices[cell.slice].share_of_hours
    start, end = max(block.start_month, window[0]), min(block.end_month, window[1])
    found = spans(instance, start, end, change_per_year)
    return tuple(PricedHours(s.level, s.months * share, s.present_months * share) for s in found)
