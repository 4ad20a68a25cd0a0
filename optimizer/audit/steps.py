"""Billing steps derived anew from the conventions (docs/model.md, "Billing steps"), from options and runs alone."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from optimizer.audit.calendar import HOURS_PER_MONTH
from optimizer.audit.document import OptionRecord, SliceRecord
from optimizer.audit.fitting import Member, Way, kept_per_gpu

NEAR_HOURS = 1e-6
"""Hours by which a use may pass a step and not begin another."""
MOST_STEPS = 1e6
"""Node-steps of a run from which on it is paid as it is used."""
_DAY = 24


class RunLike(Protocol):
    """What is needed of a run: its work and window, and its days where each day's work is done that day."""

    @property
    def amount(self) -> float: ...  # noqa: D102
    @property
    def start_month(self) -> float: ...  # noqa: D102
    @property
    def end_month(self) -> float: ...  # noqa: D102
    @property
    def days(self) -> float | None: ...  # noqa: D102


# --- steps longer than an hour ----------------------------------------------------------------------------------------


def days_paid(option: OptionRecord, slices: Sequence[SliceRecord]) -> list[str]:
    """For each slice the days on which its nodes are paid: one kind of day where steps of a day can tell it apart."""
    found = []
    for one in slices:
        hours = one.hours_of_week or ()
        kinds = {"weekend" if hour >= _DAY else "weekday" for hour in hours}
        found.append(kinds.pop() if len(kinds) == 1 else "all")
    return ["all"] * len(slices) if option.billing_step_hours != _DAY or "all" in found else found


def months_paid(option: OptionRecord, start_month: float, end_month: float) -> tuple[float, float]:
    """From when to when whole steps are paid for use from one month to another."""
    step = option.billing_step_hours or math.inf
    start, end = start_month * HOURS_PER_MONTH, end_month * HOURS_PER_MONTH
    origin = math.floor((start + NEAR_HOURS) / step) * step if option.billed_by_clock else start
    steps = math.ceil((end - origin - NEAR_HOURS) / step)
    return origin / HOURS_PER_MONTH, (origin + steps * step) / HOURS_PER_MONTH


def days_charged(span: tuple[float, float], share: float) -> float:
    """Hours charged per month of a span for days that have a share of all hours.

    What is paid for less than a week has whole days of a kind, however few of them a mean of weeks gives.
    """
    months = span[1] - span[0]
    hours = share * months * HOURS_PER_MONTH
    if months * HOURS_PER_MONTH < 7 * _DAY - NEAR_HOURS:
        hours = math.ceil((hours - NEAR_HOURS) / _DAY) * _DAY
    return hours / months


# --- runs of jobs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Billing:
    """How hired nodes of a run on an offer are paid: the node-hours of the whole run, and nodes at once.

    `days` are those paid for each slice, `shares` the slices' shares of all hours.
    """

    option: OptionRecord
    whole_node_hours: float
    least_nodes: int
    most_nodes: float
    window: tuple[float, float]
    times: float | None
    days: Sequence[str]
    shares: Sequence[float]

    @property
    def step_hours(self) -> float:
        """Hours of a step."""
        return self.option.billing_step_hours or 0.0

    @property
    def idle_span(self) -> tuple[float, float]:
        """Months in which time paid and not used is paid: the window's last hour, or all of it if done each day."""
        start, end = self.window
        return (start if self.times is not None else max(start, end - 1 / HOURS_PER_MONTH), end)

    @property
    def repeats(self) -> float:
        """How often the run is done: once, or each day."""
        return 1.0 if self.times is None else self.times

    def share_of(self, days: str) -> float:
        """Share of all hours that some days have; nothing is told apart for steps up to an hour."""
        if not self.option.long_step:
            return 1.0
        return math.fsum(share for share, named in zip(self.shares, self.days, strict=True) if named == days)

    def paid_hours(self, steps: int) -> float:
        """Node-hours paid for so many node-steps."""
        return steps * self.step_hours * self.repeats

    def held(self, days: str, piece: str, slice_: int | None) -> float:
        """Node-hours that a node-step holds (0 if there are none of that kind), in one slice or (None) in all."""
        hours, _ = self.lengths().get(piece, (0.0, 0.0))
        if slice_ is None:
            return hours * self.repeats
        there = self.shares[slice_] / self.share_of(days) if self.days[slice_] == days else 0.0
        return hours * self.repeats * there

    def lengths(self) -> dict[str, tuple[float, float]]:
        """Hours that a step of each kind holds in the run's window, and how many there are one after another."""
        if self.times is not None:
            return {"whole": (self.step_hours, math.inf)}
        start, end = (month * HOURS_PER_MONTH for month in self.window)
        origin = 0.0 if self.option.billed_by_clock else start
        before = origin + math.ceil((start - origin - NEAR_HOURS) / self.step_hours) * self.step_hours
        after = origin + math.floor((end - origin + NEAR_HOURS) / self.step_hours) * self.step_hours
        if after < before - NEAR_HOURS:
            return {"head": (end - start, 1)}
        found = {"whole": (self.step_hours, round((after - before) / self.step_hours))}
        found |= {"head": (before - start, 1), "tail": (end - after, 1)}
        return {name: (hours, count) for name, (hours, count) in found.items() if hours > NEAR_HOURS and count}

    def may_be(self, steps: int, count: float) -> bool:
        """Whether so many node-steps can be had with a number of nodes at once between least and most."""
        return math.ceil(steps / self.most_nodes) <= min(count, steps // max(1, self.least_nodes))


def may_hire(option: OptionRecord, run: RunLike) -> bool:
    """Whether nodes may be rented for a run alone: not each day, where a step is longer than that."""
    return not option.held and (run.days is None or (option.billing_step_hours or 0.0) <= _DAY)


def may_fill(option: OptionRecord, run: RunLike, slices: Sequence[SliceRecord]) -> bool:
    """Whether a run may use nodes rented for others: not each day's work where kinds of days are paid apart."""
    return run.days is None or not option.long_step or "all" in days_paid(option, slices)


def billed_runs(
    runs: Iterable[tuple[str, RunLike, Sequence[Way]]], slices: Sequence[SliceRecord]
) -> Mapping[tuple[str, str, int], Billing]:
    """By run, option and number of the estimate: the runs whose hired nodes are paid in whole steps."""
    found: dict[tuple[str, str, int], Billing] = {}
    for name, run, ways in runs:
        for way in ways:
            for member in way.members:
                billing = _billing(run, way, member, slices) if may_hire(member.option, run) else None
                if billing is not None:
                    found[name, member.option.option_id, member.number] = billing
    return found


def _billing(run: RunLike, way: Way, member: Member, slices: Sequence[SliceRecord]) -> Billing | None:
    option, step = member.option, member.option.billing_step_hours
    if step is None:
        return None
    gpu_hours = run.amount / (member.estimate.units_per_gpu_hour * member.useful_share)
    kept = kept_per_gpu(option, member.estimate)
    node_hours, most = gpu_hours * kept / option.gpus_per_node, math.inf
    if way.most_gpus is not None:
        most = math.ceil(way.most_gpus * kept / option.gpus_per_node - 1e-9)
        node_hours *= most * option.gpus_per_node / (way.most_gpus * kept)
    if node_hours > MOST_STEPS * step * (1.0 if run.days is None else run.days):
        return None
    days = ["all"] * len(slices)
    shares = [one.share_of_hours for one in slices]
    window = (run.start_month, run.end_month)
    return Billing(option, node_hours, way.least_nodes(member), most, window, run.days, days, shares)
