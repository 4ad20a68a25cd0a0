"""Limits of workloads: sizes, deadlines, daily windows of jobs, and places where data may go."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from optimizer.estimator.types import JobEstimate
from optimizer.estimator.workloads import AnyJob, Service
from optimizer.prepare import Prepared
from optimizer.problem.periods import REPEAT_MONTHS
from optimizer.problem.schema import Problem
from optimizer.solver.diagnosis.limit import CHOICE, ESTIMATES, Limit
from optimizer.units import HOURS_PER_DAY, HOURS_PER_MONTH


def with_workload(prepared: Prepared, name: str, **changes: Any) -> Prepared:
    """A problem with keys of one workload changed."""
    workloads = [w.model_copy(update=changes) if w.name == name else w for w in prepared.problem.workloads]
    return replace(prepared, problem=prepared.problem.model_copy(update={"workloads": workloads}))


def limits_of_workloads(prepared: Prepared) -> Iterator[Limit]:
    """Windows and sizes of jobs, spare nodes of services, places where data may go."""
    every_day = {d.workload for d in prepared.estimates.demands if d.per_day}
    for workload in prepared.problem.workloads:
        if workload.kind != "service":
            yield from _sizes(prepared, workload)
            if workload.name not in every_day:
                yield from _spans(prepared, workload)
            yield from _daily_window(prepared.problem, workload)
        else:
            if workload.redundancy:
                yield _at_least(workload, "redundancy", "spare_capacity", "nodes")
            if workload.min_replicas:
                yield _at_least(workload, "min_replicas", "replica_floor", "replicas")
            if workload.startup:
                yield _choice(f"workloads.{workload.name}.startup", "start_up", workload.name, startup=0.0)
        if workload.data.regions:
            name = workload.name
            data = workload.data.model_copy(update={"regions": []})
            yield _choice(f"workloads.{name}.data.regions", "residency", name, data=data)


def _choice(key: str, family: str, workload: str, **changes: Any) -> Limit:
    def lift(prepared: Prepared) -> Prepared:
        return with_workload(prepared, workload, **changes)

    return Limit(
        key, family, (workload,), 0.0, CHOICE, lambda p, v: lift(p) if v else p, lift, 1, True, 1.0, 1.0, workload
    )


def _at_least(service: Service, field: str, family: str, unit: str) -> Limit:
    """Fewer nodes that may be lost at a time, or fewer replicas at least."""
    name = service.name

    def put(prepared: Prepared, number: float) -> Prepared:
        return with_workload(prepared, name, **{field: round(number)})

    key, value = f"workloads.{name}.{field}", float(getattr(service, field))
    lift = lambda p: put(p, 0.0)  # noqa: E731
    return Limit(key, family, (name,), value, unit, put, lift, -1, True, 0.0, 1.0, name)


def _sizes(prepared: Prepared, job: AnyJob) -> Iterator[Limit]:
    again = _of_estimates(prepared, job)
    if job.max_gpus is not None:
        yield _size_limit(job, "max_gpus", None, again)
    if job.min_gpus > 1:
        yield _size_limit(job, "min_gpus", 1, again)
    if job.spread != "any":
        yield _choice(f"workloads.{job.name}.spread", "single_gpu_type", job.name, spread="any")


def _of_estimates(prepared: Prepared, job: AnyJob) -> str:
    """Whether a job's estimates depend on its sizes and its deadline: those made for a training run do."""
    own = [e for e in prepared.estimates.jobs if e.workload == job.name]
    return ESTIMATES if job.kind != "batch" and not all(e.measured for e in own) else ""


def _size_limit(job: AnyJob, field: str, furthest: float | None, again: str) -> Limit:
    name, value = job.name, float(getattr(job, field))

    def put(prepared: Prepared, size: float | None) -> Prepared:
        whole = None if size is None else round(size)
        prepared = with_workload(prepared, name, **{field: whole})
        resized = (
            _resized(e, field, round(value), whole) if e.workload == name else e for e in prepared.estimates.jobs
        )
        return replace(prepared, estimates=replace(prepared.estimates, jobs=tuple(resized)))

    direction = 1 if furthest is None else -1
    lift = lambda p: put(p, furthest)  # noqa: E731
    key = f"workloads.{name}.{field}"
    return Limit(
        key, "scaling_limit", (name, field), value, "GPUs", put, lift, direction, True, furthest, 1.0, name, again
    )


def _resized(estimate: JobEstimate, field: str, old: int, new: int | None) -> JobEstimate:
    """An estimate that carries the job's own bound on its size carries the new one."""
    if field == "max_gpus":
        return replace(estimate, max_gpus=new) if estimate.max_gpus == old else estimate
    group = estimate.deployment.gpus_per_replica
    if new is None or estimate.min_gpus > max(old, group) + group:
        return estimate
    least = max(new, group)
    return replace(estimate, min_gpus=least if estimate.measured else math.ceil(least / group) * group)


def _spans(prepared: Prepared, job: AnyJob) -> Iterator[Limit]:
    """Deadline and release: runs keep their number, so that no demand is lost."""
    horizon = prepared.problem.horizon.months * HOURS_PER_MONTH
    again = _of_estimates(prepared, job)
    if job.deadline is not None:
        latest = _longest_span(job, horizon)
        if latest > job.deadline * (1 + 1e-9):
            yield _deadline(job, latest, again)
    if job.start > 0 and job.repeat == "none":
        yield _release(job, again)


def _deadline(job: AnyJob, latest: float, again: str) -> Limit:
    name, value = job.name, job.deadline or 0.0

    def put(prepared: Prepared, hours: float) -> Prepared:
        return with_workload(prepared, name, deadline=hours)

    key = f"workloads.{name}.deadline"
    lift = lambda p: put(p, latest)  # noqa: E731
    return Limit(key, "deadline", (name,), value, "hours", put, lift, 1, False, latest, 1.0, name, again)


def _longest_span(job: AnyJob, horizon_hours: float) -> float:
    """Longest time for each run, with as many runs as there are."""
    step_months = REPEAT_MONTHS.get(job.repeat)
    if step_months is None or job.deadline is None:
        return horizon_hours - job.start
    step = step_months * HOURS_PER_MONTH
    runs = int((horizon_hours - job.start - job.deadline) / step + 1e-9)
    return min(step, horizon_hours - job.start - runs * step)


def _release(job: AnyJob, again: str) -> Limit:
    """An earlier start; the deadline stays on its day."""
    name, start, deadline = job.name, job.start, job.deadline

    def put(prepared: Prepared, value: float) -> Prepared:
        longer = None if deadline is None else deadline + (start - value)
        return with_workload(prepared, name, start=value, deadline=longer)

    key = f"workloads.{name}.start"
    return Limit(key, "release", (name,), start, "hours", put, lambda p: put(p, 0.0), -1, furthest=0.0, again=again)


def _daily_window(problem: Problem, job: AnyJob) -> Iterator[Limit]:
    if job.window is None:
        return
    name, daily = job.name, job.window
    key = f"workloads.{name}.window.daily"
    if problem.slices:  # the buyer's own slices are not cut at other hours
        yield _choice(key, "daily_window", name, window=None)
        return
    start, end = (int(clock.split(":")[0]) % HOURS_PER_DAY for clock in daily.daily.split("-"))
    length = (end - start) % HOURS_PER_DAY or HOURS_PER_DAY
    if length == HOURS_PER_DAY:
        return

    def text(hours: float, *, earlier: bool) -> str:
        first = (end - round(hours)) % HOURS_PER_DAY if earlier else start
        last = end if earlier else (start + round(hours)) % HOURS_PER_DAY
        return "00:00-24:00" if hours >= HOURS_PER_DAY else f"{first:02d}:00-{last:02d}:00"

    for earlier in (False, True):

        def put(prepared: Prepared, hours: float, earlier: bool = earlier) -> Prepared:
            window = daily.model_copy(update={"daily": text(hours, earlier=earlier)})
            return with_workload(prepared, name, window=window)

        side = "open earlier" if earlier else "open later"
        yield Limit(
            key, "daily_window", (name, side), float(length), "hours/day", put,
            lambda p: with_workload(p, name, window=None), 1, True, float(HOURS_PER_DAY), 1.0, name,
        )  # fmt: skip
