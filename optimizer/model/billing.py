"""Whole billing steps of nodes rented by use (docs/model.md, "Billing steps"): what is paid of the time they are used.

Steps up to an hour are ignored for services. Nodes rented for services in longer steps are there for whole steps, and
what is left of them is there for jobs too. Nodes hired for one run of a job are rounded up once.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from optimizer.model.entities import Instance, VolumeDemand
from optimizer.model.option import Option
from optimizer.model.timegrid import TimeGrid
from optimizer.units import HOURS_PER_DAY, HOURS_PER_MONTH

ALL_DAYS = "all"
EPSILON_HOURS = 1e-6
DAYS_PER_WEEK = 7
MOST_STEPS = 1e6
"""Runs of more node-steps than this are paid as they are used: rounding is less than a millionth of them."""


# --- steps longer than an hour ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """Nodes rented from the start of a block to the end of the same or a later one, on some days, in whole steps.

    `share_of_hours` is that of the days paid; paid is what it has of the time from `start_month` to `end_month`.
    """

    option: Option
    days: str
    share_of_hours: float
    first: int
    last: int
    start_month: float
    end_month: float

    def covers(self, block: int) -> bool:
        """Whether the nodes are there in a block."""
        return self.first <= block <= self.last


def days_of_slices(grid: TimeGrid, option: Option) -> dict[int, str]:
    """Days whose steps pay for each slice: `weekday` or `weekend` for steps of a day, else `all`.

    Where a slice is not tied to the clock, or has hours of both, its nodes are paid on all days.
    """
    kinds: list[set[bool]] = [{h < HOURS_PER_DAY for h in s.hours_of_day or ()} for s in grid.slices]
    if option.billing_step_hours == HOURS_PER_DAY and all(len(found) == 1 for found in kinds):
        return {s.index: "weekday" if True in found else "weekend" for s, found in zip(grid.slices, kinds, strict=True)}
    return {s.index: ALL_DAYS for s in grid.slices}


def share_of_days(grid: TimeGrid, days: dict[int, str], named: str) -> float:
    """Share of all hours that some days have."""
    return math.fsum(s.share_of_hours for s in grid.slices if days[s.index] == named)


def stretches(grid: TimeGrid, option: Option) -> Iterator[Stretch]:
    """Every stretch that nodes of an option may be rented for.

    None of all days goes on beyond a block that ends with a step: there the next one begins at the same cost.
    """
    days = days_of_slices(grid, option)
    for named in dict.fromkeys((*days.values(), ALL_DAYS)):
        share = 1.0 if named == ALL_DAYS else share_of_days(grid, days, named)
        for first in grid.blocks:
            for last in grid.blocks[first.index :]:
                start, end, whole = _paid_months(option, first.start_month, last.end_month)
                paid = share if named == ALL_DAYS else _whole_days(share, end - start)
                yield Stretch(option, named, paid, first.index, last.index, start, end)
                if whole and named == ALL_DAYS:
                    break


def _whole_days(share: float, months: float) -> float:
    """Share of whole days that days of one kind pay for: within a week whole ones, of weeks and more their share."""
    days = months * HOURS_PER_MONTH / HOURS_PER_DAY
    return share if days >= DAYS_PER_WEEK - EPSILON_HOURS else math.ceil(share * days - EPSILON_HOURS) / days


def _paid_months(option: Option, start_month: float, end_month: float) -> tuple[float, float, bool]:
    """Months paid for use from one to another, and whether the use ends with a step."""
    step = (option.billing_step_hours or 0.0) / HOURS_PER_MONTH
    near = EPSILON_HOURS / (step * HOURS_PER_MONTH)
    if option.billed_by_clock:
        first, last = math.floor(start_month / step + near), math.ceil(end_month / step - near)
        return first * step, last * step, last - end_month / step <= near
    steps = math.ceil((end_month - start_month) / step - near)
    return start_month, start_month + steps * step, steps - (end_month - start_month) / step <= near


# --- runs of jobs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """Steps of which a window holds so many hours each: whole ones, or the parts of two that its ends cut.

    `count` is how many there are one after another; None: as many as the run could ever use.
    """

    name: str
    hours: float
    count: int | None


def pieces(option: Option, demand: VolumeDemand, node_hours: float, most_nodes: float) -> tuple[Piece, ...]:
    """The steps in which a run of at most so many node-hours, on at most so many nodes at once, may hire nodes.

    They begin with the window, or with the clock. Cut ones are there only where whole ones may not be enough.
    """
    step = option.billing_step_hours or 0.0
    if demand.days is not None:
        return (Piece("whole", step, None),)
    start, end = demand.start_month * HOURS_PER_MONTH, demand.end_month * HOURS_PER_MONTH
    origin = 0.0 if option.billed_by_clock else start
    first = math.ceil((start - origin - EPSILON_HOURS) / step)
    last = math.floor((end - origin + EPSILON_HOURS) / step)
    if last < first:
        return (Piece("head", end - start, 1),)
    if last > first and most_nodes * (last - first) * step >= node_hours:
        return (Piece("whole", step, last - first),)
    found = (
        Piece("head", origin + first * step - start, 1),
        Piece("whole", step, last - first),
        Piece("tail", end - origin - last * step, 1),
    )
    return tuple(piece for piece in found if piece.count and piece.hours > EPSILON_HOURS)


def hires_in_steps(option: Option, demand: VolumeDemand, node_hours: float) -> bool:
    """Whether a run that would hire so many node-hours in all is paid in whole steps."""
    step = option.billing_step_hours
    return step is not None and node_hours <= MOST_STEPS * step * (demand.days or 1.0)


def may_hire(option: Option, demand: VolumeDemand) -> bool:
    """Whether nodes may be rented for a run alone.

    Not for each day's work, where a step is longer than a day: there nodes are rented for whoever uses them.
    """
    each_day = demand.days is not None
    return not option.held and not (each_day and (option.billing_step_hours or 0.0) > HOURS_PER_DAY)


def may_fill(grid: TimeGrid, option: Option, demand: VolumeDemand) -> bool:
    """Whether a run may work on nodes that are rented for others too.

    Each day's work may not where weekdays and weekends are paid apart, as it could do all of it on a few of the days.
    """
    return demand.days is None or not option.long_step or ALL_DAYS in days_of_slices(grid, option).values()


def billed_by_day(options: Iterable[Option]) -> bool:
    """Whether nodes of an option are paid by the day, so that the kinds of days must be told apart."""
    return any(o.billing_step_hours == HOURS_PER_DAY for o in options if not o.held)


def used_options(instance: Instance) -> set[str]:
    """Ids of options that some workload may use."""
    members = (m for d in instance.volume_demands for a in d.alternatives for m in a.members)
    return {s.option.option_id for s in instance.servers} | {option.option_id for option, _ in members}
