"""Rules between the fields of a problem that the schema alone cannot hold. One function per rule; all are gathered."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from optimizer.estimator.workloads import (
    Architecture,
    Batch,
    FineTune,
    InlineModel,
    Job,
    RequestClass,
    Service,
    Training,
    TrainingSettings,
)
from optimizer.problem.messages import suggestion
from optimizer.problem.periods import REPEAT_MONTHS, order_periods
from optimizer.problem.positions import Path
from optimizer.problem.profiles import FLAT, hourly_profile
from optimizer.problem.schema import Problem
from optimizer.problem.wording import counted, duration, plural
from optimizer.units import HOURS_PER_DAY, HOURS_PER_MONTH

SHARE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Case:
    """A problem, the plain data it was read from, and whether these were dumped (numbers in canonical units)."""

    problem: Problem
    data: Mapping[str, Any]
    normalised: bool = False
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    """Prices cannot be from later days."""

    def services(self) -> Iterator[tuple[Path, Service]]:
        """Services and their paths."""
        for index, workload in enumerate(self.problem.workloads):
            if isinstance(workload, Service):
                yield ("workloads", index), workload

    def jobs(self) -> Iterator[tuple[Path, Training | FineTune | Batch]]:
        """Jobs and their paths."""
        for index, workload in enumerate(self.problem.workloads):
            if not isinstance(workload, Service):
                yield ("workloads", index), workload


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a rule found: where, what is wrong, what to write."""

    path: Path
    message: str
    hint: str = ""
    at_key: bool = False


Complaints = Iterator[Complaint]


def complaints(case: Case) -> Complaints:
    """What all the rules have to say about a problem."""
    from optimizer.problem.checks_bounds import BOUND_RULES
    from optimizer.problem.checks_carbon import CARBON_RULES
    from optimizer.problem.checks_costs import COST_RULES
    from optimizer.problem.checks_supply import SUPPLY_RULES

    for rule in (*RULES, *SUPPLY_RULES, *COST_RULES, *CARBON_RULES, *BOUND_RULES):
        yield from rule(case)


def repeated(named: Iterable[tuple[Path, str | None]], what: str) -> Complaints:
    """Complain of every name that was there before."""
    seen: dict[str, Path] = {}
    for path, name in named:
        if name is not None and name in seen:
            yield Complaint(path, f'{what} name "{name}" is used twice', "names must differ")
        elif name is not None:
            seen[name] = path


def no_such(path: Path, name: str, known: Sequence[str], what: str, *, at_key: bool = False) -> Complaint:
    """A name that nothing bears."""
    return Complaint(path, f'unknown {what} "{name}"', suggestion(name, known, plural(what)), at_key)


def exactly_one(path: Path, given: Mapping[str, Any], why: str) -> Complaints:
    """Complain unless exactly one of the keys is given."""
    found = [key for key, value in given.items() if value is not None]
    if len(found) != 1:
        message = f"expected exactly one of {', '.join(given)}; found {' and '.join(found) or 'none'}"
        yield Complaint(path, message, why, at_key=True)


def names_differ(case: Case) -> Complaints:
    """Workloads, slices and the classes of a service can be told apart by name."""
    problem = case.problem
    yield from repeated(((("workloads", i, "name"), one.name) for i, one in enumerate(problem.workloads)), "workload")
    yield from repeated(((("slices", i, "name"), one.name) for i, one in enumerate(problem.slices or ())), "slice")
    for path, service in case.services():
        classes = service.classes or ()
        yield from repeated((((*path, "classes", i, "name"), one.name) for i, one in enumerate(classes)), "class")


def lists_hold_something(case: Case) -> Complaints:
    """An empty list of what is allowed would forbid everything."""
    options = case.problem.options
    for key in ("gpus", "purchase", "regions"):
        if getattr(options, key) == []:
            yield Complaint(("options", key), "an empty list allows nothing", "leave the key out to allow all")
    for index, workload in enumerate(case.problem.workloads):
        for key in ("gpus", "classes", "weights", "gpus_per_replica"):
            if getattr(workload, key, None) == []:
                path: Path = ("workloads", index, key)
                yield Complaint(path, "an empty list allows nothing", "leave the key out for the default")


def shares_of_slices(case: Case) -> Complaints:
    """The slices make up all hours."""
    slices = case.problem.slices
    if slices is None:
        return
    total = math.fsum(one.share_of_hours for one in slices)
    if abs(total - 1) > SHARE_TOLERANCE:
        message = f"the shares of hours add up to {total:.10g}"
        yield Complaint(("slices",), message, "they must add up to 1", at_key=True)


def periods_fill_the_horizon(case: Case) -> Complaints:
    """Listed periods follow one another from month 0 to the horizon."""
    horizon = case.problem.horizon
    if isinstance(horizon.periods, str):
        return
    month = 0.0
    for index, period in enumerate(horizon.periods):
        if not math.isclose(period.start_month, month, abs_tol=SHARE_TOLERANCE):
            message = f"this period starts at month {period.start_month:g}, the one before ends at {month:g}"
            hint = f"write start_month: {month:g}" if index else "the first starts at month 0"
            yield Complaint(("horizon", "periods", index, "start_month"), message, hint)
        month = period.start_month + period.months
    if not math.isclose(month, horizon.months):
        message = f"the periods end at month {month:g}, the horizon at {horizon.months:g}"
        yield Complaint(("horizon", "periods"), message, "they must end together", at_key=True)


def traffic_is_given_once(case: Case) -> Complaints:
    """A service has one rate: of the service, or of each class."""
    for path, service in case.services():
        traffic = service.traffic
        rates = {
            "requests_per_day": traffic.requests_per_day,
            "mean_requests_per_s": traffic.mean_requests_per_s,
            "peak_requests_per_s": traffic.peak_requests_per_s,
        }
        place: Path = (*path, "traffic")
        if not any(one.requests_per_s is not None for one in service.classes or ()):
            yield from exactly_one(place, rates, "or requests_per_s for every class")
            continue
        for key, value in rates.items():
            if value is not None:
                yield Complaint((*place, key), "the classes have rates already", "give one or the other", at_key=True)


def shares_of_classes(case: Case) -> Complaints:
    """The classes of a service all have rates, or shares that make up the whole."""
    for path, service in case.services():
        if service.classes:
            yield from _class_shares((*path, "classes"), service.classes)
        if service.classes and service.tokens:
            hint = "write input and output in the classes"
            yield Complaint((*path, "tokens"), "tokens and classes both give lengths", hint, at_key=True)


def _class_shares(path: Path, classes: Sequence[RequestClass]) -> Complaints:
    shares = [one.share for one in classes if one.share is not None]
    rates = [one.requests_per_s for one in classes if one.requests_per_s is not None]
    if len(classes) == 1 and not shares and not rates:
        return
    if sorted((len(shares), len(rates))) != [0, len(classes)]:
        hint = "give share for all classes, or requests_per_s for all"
        given = f"{counted(len(shares), 'share')} and {counted(len(rates), 'rate')}"
        message = f"{given} for {counted(len(classes), 'class')}"
        yield Complaint(path, message, hint, at_key=True)
    elif shares and abs(math.fsum(shares) - 1) > SHARE_TOLERANCE:
        total = math.fsum(shares)
        yield Complaint(path, f"the shares add up to {total:.10g}", "they must add up to 1 (100 %)", at_key=True)


def profiles_can_be_used(case: Case) -> Complaints:
    """The hourly profile exists, has 24 or 48 numbers, and reaches the asked peak."""
    for path, service in case.services():
        traffic = service.traffic
        place: Path = (*path, "traffic", "profile")
        if case.problem.slices is not None:
            yield from _profile_with_slices(path, service)
            continue
        try:
            hourly_profile(traffic)
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            of_peak = message.startswith("peak_to_mean")
            yield Complaint((*path, "traffic", "peak_to_mean") if of_peak else place, message, hint)


def _profile_with_slices(path: Path, service: Service) -> Complaints:
    if service.traffic.profile != FLAT:
        hint = "write by_slice, or leave slices out"
        message = "the problem lists its own slices, which an hourly profile does not know"
        yield Complaint((*path, "traffic", "profile"), message, hint)
    if service.traffic.peak_to_mean is not None:
        hint = "leave it out: by_slice says it"
        yield Complaint((*path, "traffic", "peak_to_mean"), "a peak needs an hourly profile", hint, at_key=True)


def multipliers_by_slice(case: Case) -> Complaints:
    """Multipliers name slices of the problem, and leave some traffic."""
    names = [one.name for one in case.problem.slices or ()]
    for path, service in case.services():
        by_slice = service.traffic.by_slice or {}
        place: Path = (*path, "traffic", "by_slice")
        if by_slice and not names:
            yield Complaint(place, "the problem lists no slices", "add slices: [{name: …, share_of_hours: …}]", True)
            continue
        for name in by_slice:
            if name not in names:
                yield no_such((*place, name), name, names, "slice", at_key=True)
        if names and by_slice and not any(by_slice.get(name, 1.0) for name in names):
            yield Complaint(place, "no slice has any requests", "give at least one a multiplier above 0", True)


def multipliers_by_period(case: Case) -> Complaints:
    """There is one multiplier per period."""
    periods = len(order_periods(case.problem.horizon))
    for path, service in case.services():
        given = service.traffic.by_period
        if given is not None and len(given) != periods:
            message = f"{counted(len(given), 'multiplier')} for {counted(periods, 'period')}"
            yield Complaint((*path, "traffic", "by_period"), message, "write one per period, in order")


def jobs_fit_the_horizon(case: Case) -> Complaints:
    """A job starts before the horizon ends, has time, and is due before it ends."""
    end = case.problem.horizon.months * HOURS_PER_MONTH
    for path, job in case.jobs():
        due = end if job.deadline is None else job.start + job.deadline
        if job.start >= end:
            message = f"starts at {duration(job.start)}, when the horizon ({duration(end)}) is over"
            yield Complaint((*path, "start"), message, "start earlier, or lengthen horizon: {months: …}")
        elif job.deadline == 0:
            yield Complaint((*path, "deadline"), "no time to run in", "write the time allowed after the start")
        elif due > end * (1 + SHARE_TOLERANCE):
            parts = f"start {duration(job.start)} + {duration(job.deadline or 0.0)}"
            message = f"due at {duration(due)} ({parts}), after the horizon ({duration(end)})"
            yield Complaint((*path, "deadline"), message, "shorten it, or lengthen horizon: {months: …}")
        elif job.repeat != "none" and due - end > -SHARE_TOLERANCE * end and job.deadline is None:
            length = REPEAT_MONTHS[job.repeat] * HOURS_PER_MONTH
            if job.start + length > end * (1 + SHARE_TOLERANCE):
                message = f"no {job.repeat} run of {duration(length)} ends before the horizon does ({duration(end)})"
                yield Complaint((*path, "repeat"), message, "give a shorter deadline, or start earlier")


def windows_are_hours(case: Case) -> Complaints:
    """Daily windows run between two different whole hours of the clock."""
    for path, job in case.jobs():
        if job.window is None:
            continue
        start, end = (tuple(map(int, clock.split(":"))) for clock in job.window.daily.split("-"))
        hint = 'write whole hours from 0:00 to 24:00, e.g. "22:00-06:00"'
        place: Path = (*path, "window", "daily")
        if any(minute or hour > HOURS_PER_DAY for hour, minute in (start, end)):
            yield Complaint(place, f'cannot use "{job.window.daily}" as a window', hint)
        elif start[0] % HOURS_PER_DAY == end[0] % HOURS_PER_DAY and end[0] - start[0] != HOURS_PER_DAY:
            hint = 'write "00:00-24:00" for the whole day, or leave window out'
            yield Complaint(place, f'"{job.window.daily}" runs from an hour to itself', hint)
        elif any(one.hours_of_week is None for one in case.problem.slices or ()):
            message = "the problem's own slices do not say which hours they are"
            yield Complaint(place, message, "give every slice its hours_of_week, or leave slices out")


def work_is_given_once(case: Case) -> Complaints:
    """The amount of work of a job is said in exactly one way."""
    for path, job in case.jobs():
        ways: dict[str, Any]
        if isinstance(job, TrainingSettings):
            ways = {"tokens": job.tokens, "dataset": job.dataset, "work": job.work}
        else:
            ways = {"requests": job.requests, "tokens": job.tokens, "work": job.work}
        yield from exactly_one(path, ways, "the amount of work")
        if isinstance(job, Batch) and job.requests is not None:
            place: Path = (*path, "requests")
            counts = {"count": job.requests.count, "per_day": job.requests.per_day}
            yield from exactly_one(place, counts, "once in all, or each day")
            if job.requests.per_day is not None and job.repeat != "none":
                yield Complaint((*path, "repeat"), "per_day repeats the batch already", "write count, or no repeat")


def gpus_at_once(case: Case) -> Complaints:
    """The least GPUs of a job are not more than its most."""
    for path, job in case.jobs():
        if job.max_gpus is not None and job.min_gpus > job.max_gpus:
            message = f"min_gpus {job.min_gpus} is more than max_gpus {job.max_gpus}"
            yield Complaint((*path, "min_gpus"), message, "lower one or raise the other")


def architectures_hold_together(case: Case) -> Complaints:
    """Heads divide the width and key-value heads the heads; no token visits more experts than there are."""
    for index, workload in enumerate(case.problem.workloads):
        if not isinstance(workload.model, InlineModel):
            continue
        shape = workload.model.architecture
        path: Path = ("workloads", index, "model", "architecture")
        if shape.head_dim is None and shape.hidden % shape.heads:
            message = f"hidden {shape.hidden} is not a multiple of heads {shape.heads}"
            yield Complaint((*path, "heads"), message, "write head_dim")
        if shape.kv_heads is not None and shape.heads % shape.kv_heads:
            message = f"heads {shape.heads} is not a multiple of kv_heads {shape.kv_heads}"
            yield Complaint((*path, "kv_heads"), message, "each key-value head serves the same number of heads")
        if shape.experts_per_token > shape.experts:
            message = f"experts_per_token {shape.experts_per_token} of {shape.experts} experts"
            yield Complaint((*path, "experts_per_token"), message, "write experts: the number of routed experts")
        for key, most, what in _parts_of(shape):
            if getattr(shape, key) > most:
                yield Complaint((*path, key), f"{key} {getattr(shape, key)} of {most} {what}", "lower it")


def _parts_of(shape: Architecture) -> tuple[tuple[str, int, str], ...]:
    """What cannot be more than the whole: key, most, and of what."""
    width = shape.head_dim or shape.hidden // shape.heads
    layers = [(key, shape.layers, "layers") for key in ("dense_layers", "sliding_window_layers")]
    return (*layers, ("rope_head_dim", width, "(head_dim)"))


_RATES_OF_KIND = {
    "service": ("requests_per_s", "tokens_per_s"),
    "batch": ("requests_per_s", "tokens_per_s", "per_gpu_hour"),
    "training": ("tokens_per_s_per_gpu", "mfu", "per_gpu_hour"),
    "finetune": ("tokens_per_s_per_gpu", "mfu", "per_gpu_hour"),
}


def measurements_fit_their_workload(case: Case) -> Complaints:
    """A measurement names a workload, a class of it, and a rate of its kind."""
    workloads = {workload.name: workload for workload in case.problem.workloads}
    classes = {name: {c.name for c in getattr(one, "classes", None) or ()} for name, one in workloads.items()}
    for index, measurement in enumerate(case.problem.measurements):
        path: Path = ("measurements", index)
        workload = workloads.get(measurement.workload)
        if workload is None:
            yield no_such((*path, "workload"), measurement.workload, list(workloads), "workload")
            continue
        allowed = _RATES_OF_KIND[workload.kind]
        if isinstance(workload, Job) and workload.work is not None:
            allowed = ("per_gpu_hour",)
        for key in {rate for rates in _RATES_OF_KIND.values() for rate in rates}.difference(allowed):
            if getattr(measurement, key) is not None:
                message = f'{key} does not say how fast the {workload.kind} "{workload.name}" runs'
                yield Complaint((*path, key), message, f"write {' or '.join(allowed)}", at_key=True)
        name = measurement.request_class
        if name is not None and name not in classes[workload.name]:
            known = [one.name for one in getattr(workload, "classes", None) or () if one.name]
            yield no_such((*path, "class"), name, known, "class")


def measured_latencies_meet_the_targets(case: Case) -> Complaints:
    """A rate is measured at the latency target: one whose own latency is above it serves nobody in time."""
    targets = {workload.name: workload.latency for workload in case.problem.workloads if isinstance(workload, Service)}
    for index, measurement in enumerate(case.problem.measurements):
        latency = targets.get(measurement.workload)
        for key in ("p95_ttft", "p95_tpot"):
            found, target = getattr(measurement, key), getattr(latency, key, None)
            if found is not None and target is not None and found > target:
                message = f"measured {key} {found:g} ms is above the target of {target:g} ms"
                yield Complaint(("measurements", index, key), message, "give the rate at which the target is met")


RULES: tuple[Callable[[Case], Complaints], ...] = (
    names_differ,
    lists_hold_something,
    shares_of_slices,
    periods_fill_the_horizon,
    traffic_is_given_once,
    shares_of_classes,
    profiles_can_be_used,
    multipliers_by_slice,
    multipliers_by_period,
    jobs_fit_the_horizon,
    windows_are_hours,
    work_is_given_once,
    gpus_at_once,
    architectures_hold_together,
    measurements_fit_their_workload,
    measured_latencies_meet_the_targets,
)
