"""Checks of the time grid: periods, slices and blocks against the problem."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from optimizer.audit.calendar import EPSILON_MONTHS, clock_hours, listed_periods, nearly_in, runs_of
from optimizer.audit.document import Answer
from optimizer.audit.hours import check_ends_of_hours, expected_share
from optimizer.audit.report import Checker
from optimizer.estimator.workloads import AnyWorkload, Service
from optimizer.problem.profiles import hourly_profile
from optimizer.problem.schema import Problem

WEEK_HOURS = 48
"""Hours of a representative week: 24 of a weekday (5 of 7 days), 24 of a weekend day."""


def check_grid(answer: Answer, problem: Problem, checker: Checker) -> bool:
    """Check the grid; false where it cannot be used for further checks."""
    before = len(checker.findings)
    checker.equal("grid", "grid.horizon_months", answer.grid.horizon_months, problem.horizon.months, "months")
    _check_periods(answer, problem, checker)
    if problem.slices:
        expected = [
            {"name": s.name, "share_of_hours": s.share_of_hours, "hours_of_week": s.hours_of_week, "starting": None}
            for s in problem.slices
        ]
        checker.same("grid", "grid.slices", [s.model_dump() for s in answer.grid.slices], expected)
    else:
        _check_hours(answer, problem, checker)
    total = math.fsum(s.share_of_hours for s in answer.grid.slices)
    checker.equal("grid", "grid.slices", total, 1.0, "share of all hours")
    _check_blocks(answer, problem, checker)
    return len(checker.findings) == before


def _check_periods(answer: Answer, problem: Problem, checker: Checker) -> None:
    found = [(p.start_month, p.months) for p in answer.grid.periods]
    checker.same("grid", "grid.periods", found, listed_periods(problem.horizon))


def _check_hours(answer: Answer, problem: Problem, checker: Checker) -> None:
    """Slices made of hours: every hour in one slice, with its share, and only hours alike for all workloads."""
    slices = answer.grid.slices
    hours = sorted(h for s in slices if s.starting is None for h in s.hours_of_week or ())
    if not checker.same("grid", "grid.slices.hours_of_week", hours, list(range(WEEK_HOURS))):
        return
    checker.holds("grid", "grid.slices", len({s.name for s in slices}) == len(slices), "two slices have one name")
    for number, slice_ in enumerate(slices):
        where = f"grid.slices[{number}]"
        share = expected_share(answer.grid, problem, slice_)
        checker.equal("grid", f"{where}.share_of_hours", slice_.share_of_hours, share, "share of all hours")
    check_ends_of_hours(answer.grid, problem, checker)
    for workload in problem.workloads:
        pattern = _pattern(workload)
        for number, slice_ in enumerate(slices):
            values = [pattern[h] for h in slice_.hours_of_week or ()]
            alike = max(values) - min(values) <= 1e-9 * max(values)
            message = f"holds hours that differ for {workload.name}"
            checker.holds("grid", f"grid.slices[{number}]", alike, message)


def _pattern(workload: AnyWorkload) -> Sequence[float]:
    """What distinguishes the hours of the week for a workload: its multiplier, or whether it may run."""
    if isinstance(workload, Service):
        return hourly_profile(workload.traffic)
    hours = range(24) if workload.window is None else clock_hours(workload.window.daily)
    return [float(h % 24 in hours) for h in range(WEEK_HOURS)]


def _check_blocks(answer: Answer, problem: Problem, checker: Checker) -> None:
    blocks, horizon = answer.grid.blocks, problem.horizon.months
    checker.equal("grid", "grid.blocks[0].start_month", blocks[0].start_month, 0.0, "months")
    checker.equal("grid", f"grid.blocks[{len(blocks) - 1}].end_month", blocks[-1].end_month, horizon, "months")
    for number, (block, after) in enumerate(pairwise(blocks)):
        checker.equal("grid", f"grid.blocks[{number}].end_month", block.end_month, after.start_month, "months")
    starts = [start for start, _ in listed_periods(problem.horizon)]
    for number, block in enumerate(blocks):
        where = f"grid.blocks[{number}]"
        checker.holds("grid", where, block.end_month > block.start_month, "has no length")
        period = sum(start <= block.start_month + EPSILON_MONTHS for start in starts) - 1
        checker.equal("grid", f"{where}.period", block.period, period)
    cuts = [block.start_month for block in blocks] + [horizon]
    for month, reason in _needed_cuts(answer, problem, starts):
        if -EPSILON_MONTHS <= month <= horizon + EPSILON_MONTHS:
            checker.holds("grid", f"month {month:g}", nearly_in(month, cuts), f"the grid is not cut at {reason}")


def _needed_cuts(answer: Answer, problem: Problem, starts: list[float]) -> Iterator[tuple[float, str]]:
    """Moments at which something may change: period starts, windows, arrivals, ends of terms."""
    yield from ((start, "the start of a period") for start in starts)
    for workload in problem.workloads:
        if not isinstance(workload, Service):
            for name, release, deadline in runs_of(workload, problem.horizon.months):
                yield release, f"the start of {name}"
                yield deadline, f"the deadline of {name}"
    for option in answer.inputs.options:
        if not option.held:
            continue
        arrivals = [0.0] if option.existing_nodes else [start + option.lead_months for start in starts]
        for arrival in arrivals:
            if arrival < problem.horizon.months - EPSILON_MONTHS:
                yield arrival, f"an arrival of {option.option_id}"
                if math.isfinite(option.months_in_service):
                    yield arrival + option.months_in_service, f"an end of term of {option.option_id}"
