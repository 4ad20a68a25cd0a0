"""Instance: the problem, its options and its estimates with every index resolved. No solver objects.

Everything that the rows and cost lines need is here as plain numbers, so that both stay short.
"""

import math
from collections.abc import Iterator, Sequence

from optimizer.estimator.types import Estimates, JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import AnyJob, Service
from optimizer.model.billing import billed_by_day
from optimizer.model.entities import Alternative, Instance, Order, RateDemand, Server, VolumeDemand, make_server
from optimizer.model.interruptions import useful_share
from optimizer.model.options import Option, Supply, matches
from optimizer.model.timegrid import (
    SAME_MONTH,
    PeriodSpan,
    Slice,
    TimeGrid,
    cut_blocks,
    list_periods,
    list_slices,
    window_hours,
)
from optimizer.problem.periods import REPEAT_MONTHS
from optimizer.problem.profiles import base_rate, hourly_profile
from optimizer.problem.schema import Problem
from optimizer.units import HOURS_PER_DAY, HOURS_PER_MONTH


def build_instance(problem: Problem, supply: Supply, estimates: Estimates) -> Instance:
    """Resolve time, demands, servers and job alternatives of a problem."""
    periods = list_periods(problem.horizon)
    slices = list_slices(problem, days_apart=billed_by_day(supply.options))
    jobs = [w for w in problem.workloads if w.kind != "service"]
    orders = tuple(_orders(supply.options, periods, problem.horizon.months))
    windows = [(job, span) for job in jobs for span in _windows(job, problem.horizon.months)]
    blocks = cut_blocks(
        periods, _events(orders, supply.options, windows), problem.finance.discount_rate, problem.horizon.months
    )
    grid = TimeGrid(problem.horizon.months, periods, slices, blocks)
    servers = list_servers(problem, supply.options, estimates.services)
    return Instance(
        problem=problem,
        grid=grid,
        options=supply.options,
        orders=orders,
        servers=servers,
        rate_demands=tuple(d for w in problem.workloads if w.kind == "service" for d in _rate_demands(w, grid)),
        volume_demands=tuple(_volume_demands(problem, windows, grid, supply.options, estimates)),
        estimates=estimates,
        left_out=supply.left_out,
    )


def _orders(options: Sequence[Option], periods: Sequence[PeriodSpan], horizon_months: float) -> Iterator[Order]:
    """Every order that could arrive before the horizon ends."""
    for option in options:
        if not option.held or option.existing_nodes:
            continue
        for period in periods:
            arrival = period.start_month + option.lead_months
            if arrival < horizon_months - SAME_MONTH:
                yield Order(option, period.index, period.start_month, arrival, option.held_until(arrival))


def _events(
    orders: Sequence[Order], options: Sequence[Option], windows: Sequence[tuple[AnyJob, tuple[float, float]]]
) -> Iterator[float]:
    for order in orders:
        yield order.arrival_month
        yield order.end_month
    for option in options:
        if option.existing_nodes:
            yield option.held_until(0.0)
    for _, (start, end) in windows:
        yield start
        yield end


def _windows(job: AnyJob, horizon_months: float) -> list[tuple[float, float]]:
    """Release and deadline of every run of a job, in months; runs that end past the horizon are left out."""
    start = job.start / HOURS_PER_MONTH
    length = None if job.deadline is None else job.deadline / HOURS_PER_MONTH
    step = REPEAT_MONTHS.get(job.repeat)
    if step is None:
        return [(start, horizon_months if length is None else start + length)]
    runs = []
    while start + (length or step) <= horizon_months + SAME_MONTH:
        runs.append((start, start + (length or step)))
        start += step
    return runs


# --- services ---------------------------------------------------------------------------------------------------------


def request_class_names(service: Service) -> list[str]:
    """Names of a service's request classes: as given, else `class-1`, …; a service without classes has one, `all`."""
    if not service.classes:
        return ["all"]
    return [c.name or f"class-{i + 1}" for i, c in enumerate(service.classes)]


def class_base_rates(service: Service, slices: Sequence[Slice]) -> list[float]:
    """Requests per second of each class at multiplier 1, without headroom."""
    own_slices = service.traffic.by_slice is not None or any(s.hours_of_day is None for s in slices)
    total = base_rate(service, {s.name: s.share_of_hours for s in slices} if own_slices else None)
    if not service.classes:
        return [total]
    return [
        total * (c.share if c.share is not None else 1.0) if c.requests_per_s is None else c.requests_per_s
        for c in service.classes
    ]


def _rate_demands(service: Service, grid: TimeGrid) -> Iterator[RateDemand]:
    bases = class_base_rates(service, grid.slices)
    for name, base in zip(request_class_names(service), bases, strict=True):
        yield RateDemand(
            service.name,
            name,
            tuple(
                tuple(
                    base * (1 + service.headroom) * _period_multiplier(service, p) * slice_multiplier(service, s)
                    for s in grid.slices
                )
                for p in grid.periods
            ),
        )


def _period_multiplier(service: Service, period: PeriodSpan) -> float:
    """By period as given; growth from month to month, a period carrying its last month."""
    listed = service.traffic.by_period[period.index] if service.traffic.by_period else 1.0
    last_month = max(0, math.ceil(period.end_month - SAME_MONTH) - 1)
    return float(listed * (1 + service.traffic.growth) ** last_month)


def slice_multiplier(service: Service, slice_: Slice) -> float:
    """Rate in a slice ÷ base rate."""
    if service.traffic.by_slice is not None:
        return service.traffic.by_slice.get(slice_.name, 1.0)
    if slice_.hours_of_day is None:
        return 1.0
    return hourly_profile(service.traffic)[slice_.hours_of_day[0]]


def fits(estimate: ServiceEstimate | JobEstimate, option: Option) -> bool:
    """Whether an estimate holds for an option."""
    if estimate.gpu_id != option.gpu_id or estimate.option not in (None, option.option_id):
        return False
    if estimate.gpus_per_node not in (None, option.gpus_per_node):
        return False
    return option.gpus_per_node >= estimate.deployment.least_gpus_per_node


def list_servers(
    problem: Problem, options: Sequence[Option], estimates: Sequence[ServiceEstimate]
) -> tuple[Server, ...]:
    """Deployments × options; a measurement on the very offer bars the generic estimates of its GPU there."""
    found: list[Server] = []
    for workload in problem.workloads:
        if workload.kind != "service":
            continue
        own = [e for e in estimates if e.workload == workload.name]
        for option in options:
            if not _place_allowed(workload.data.regions, option):
                continue
            fitting = [e for e in own if fits(e, option)]
            exact = [e for e in fitting if e.option == option.option_id]
            found += [make_server(len(found) + i, option, e) for i, e in enumerate(exact or fitting)]
    return tuple(found)


def _place_allowed(regions: Sequence[str], option: Option) -> bool:
    """Whether data may go there: the buyer's own site always counts."""
    return not regions or option.purchase_option == "owned" or matches(regions, option.region)


# --- jobs -------------------------------------------------------------------------------------------------------------


def _volume_demands(
    problem: Problem,
    windows: Sequence[tuple[AnyJob, tuple[float, float]]],
    grid: TimeGrid,
    options: Sequence[Option],
    estimates: Estimates,
) -> Iterator[VolumeDemand]:
    runs: dict[str, int] = {}
    for job, (start, end) in windows:
        runs[job.name] = runs.get(job.name, 0) + 1
        name = job.name if job.repeat == "none" else f"{job.name}#{runs[job.name]}"
        yield from _demands_of_run(problem, job, name, (start, end), grid, options, estimates)


def _demands_of_run(
    problem: Problem,
    job: AnyJob,
    name: str,
    window: tuple[float, float],
    grid: TimeGrid,
    options: Sequence[Option],
    estimates: Estimates,
) -> Iterator[VolumeDemand]:
    demand = next(d for d in estimates.demands if d.workload == job.name)
    slices = [s.index for s in grid.slices if _in_window(job, s)]
    blocks = [
        b for b in grid.blocks if b.start_month >= window[0] - SAME_MONTH and b.end_month <= window[1] + SAME_MONTH
    ]
    own = [e for e in estimates.jobs if e.workload == job.name]
    alternatives = tuple(_alternatives(job, options, own, demand.amount or 0.0))
    share = _interruptible_share(problem, job)
    amount = demand.amount or 0.0
    if not demand.per_day:
        cells = tuple(grid.cell(b.index, s) for b in blocks for s in slices)
        yield VolumeDemand(name, job.name, amount, demand.unit, *window, cells, alternatives, share)
        return
    for block in blocks:  # each day's work is done that day: every block on its own
        cells = tuple(grid.cell(block.index, s) for s in slices)
        days = block.months * HOURS_PER_MONTH / HOURS_PER_DAY
        label = f"{name}@{block.start_month:g}"
        span = (block.start_month, block.end_month)
        yield VolumeDemand(label, job.name, amount * days, demand.unit, *span, cells, alternatives, share, days)


def _in_window(job: AnyJob, slice_: Slice) -> bool:
    if job.window is None or slice_.hours_of_day is None:
        return True
    return slice_.hours_of_day[0] % HOURS_PER_DAY in window_hours(job.window.daily)


def _interruptible_share(problem: Problem, job: AnyJob) -> float:
    if not job.interruptible:
        return 0.0
    return spot_share(problem, job.name)


def spot_share(problem: Problem, workload: str) -> float:
    """Most of a workload that interruptible capacity may serve."""
    limit = problem.limits.spot_share
    if limit is None:
        return 1.0
    return limit.get(workload, 1.0) if isinstance(limit, dict) else limit


def _alternatives(
    job: AnyJob, options: Sequence[Option], estimates: Sequence[JobEstimate], amount: float
) -> Iterator[Alternative]:
    """Group the (option, estimate) pairs that may run a job together."""
    groups: dict[tuple[object, ...], list[tuple[Option, JobEstimate]]] = {}
    for option in options:
        if not _place_allowed(job.data.regions, option):
            continue
        if option.interruptible and not job.interruptible:
            continue
        fitting = [e for e in estimates if fits(e, option)]
        exact = [e for e in fitting if e.option == option.option_id]
        for estimate in exact or fitting:
            if useful_share(job, option, estimate, amount) == 0:
                continue
            key = _group_key(job, option, estimate)
            groups.setdefault(key, []).append((option, estimate))
    for members in groups.values():
        first = members[0][1]
        low = max(job.min_gpus, min(e.min_gpus for _, e in members))
        tops = [t for t in (job.max_gpus, first.max_gpus) if t is not None]
        high = min(tops) if tops else None
        if high is not None and high < low:
            continue
        label = f"{members[0][0].gpu_id} {first.deployment.label}".strip()
        shares = tuple(useful_share(job, option, estimate, amount) for option, estimate in members)
        yield Alternative(label, members[0][0].gpu_id, low, high, tuple(members), shares)


def _group_key(job: AnyJob, option: Option, estimate: JobEstimate) -> tuple[object, ...]:
    size = (estimate.min_gpus, estimate.max_gpus, estimate.measured or estimate.deployment)
    if job.spread == "one-pool":
        return (option.pool, size)
    if job.spread == "one-gpu-type":
        return (option.gpu_id, size)
    return ("any", size[:2])
