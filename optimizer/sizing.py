"""Sizing without the solver: what each workload needs, what each GPU type yields, and a quick count of GPUs."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

from catalog import Catalog
from optimizer.estimator.types import ClassEstimate, Demand, JobEstimate, ServiceEstimate
from optimizer.model.entities import Instance, RateDemand, VolumeDemand
from optimizer.plan import named_record
from optimizer.prepare import prepare
from optimizer.problem.schema import Problem

SCHEMA_VERSION = 1
WHOLE = 1e-9
"""A count this close above a whole number is that number."""


def size_problem(problem: Problem, catalog: Catalog) -> dict[str, Any]:
    """Needs, yields, rejections and assumptions of a problem as plain data (the JSON of `gpumix estimate`).

    Counts of GPUs are for one deployment alone at the peak, on nodes that never fail; `solve` mixes, shares and prices.

    Raises
    ------
    ProblemFileError
        If the problem cannot be prepared.
    """
    prepared = prepare(problem, catalog)
    instance = prepared.instance()
    estimates = prepared.estimates
    return {
        "schema_version": SCHEMA_VERSION,
        "problem": problem.name,
        "currency": problem.currency,
        "catalog_version": catalog.version,
        "demands": [_demand(demand, instance) for demand in estimates.demands],
        "services": [_service(estimate, instance) for estimate in estimates.services],
        "jobs": [_job(estimate, instance) for estimate in estimates.jobs],
        "rejections": [named_record(rejection) for rejection in estimates.rejections],
        "assumptions": [dataclasses.asdict(a) for a in prepared.assumptions],
    }


def _demand(demand: Demand, instance: Instance) -> dict[str, Any]:
    rates = [d for d in instance.rate_demands if d.workload == demand.workload]
    runs = [d for d in instance.volume_demands if d.workload == demand.workload]
    return {
        "workload": demand.workload,
        "unit": demand.unit,
        "amount": demand.amount,
        "per_day": demand.per_day,
        "classes": [{"class": d.request_class, **_rates(d, instance)} for d in rates],
        "runs": len(runs),
        "hours_per_run": _hours(runs[0]) if runs else None,
        "steps": [dataclasses.asdict(step) for step in demand.steps],
    }


def _rates(demand: RateDemand, instance: Instance) -> dict[str, float]:
    """Peak over all periods and slices, and the mean of the first period."""
    shares = [s.share_of_hours for s in instance.grid.slices]
    first = math.fsum(rate * share for rate, share in zip(demand.rate_per_s[0], shares, strict=True))
    return {"peak_requests_per_s": max(map(max, demand.rate_per_s)), "first_mean_requests_per_s": first}


def _hours(run: VolumeDemand) -> float:
    """Hours in which a run may work."""
    return math.fsum(cell.hours for cell in run.cells)


def _common(estimate: ServiceEstimate | JobEstimate) -> dict[str, Any]:
    deployment = estimate.deployment
    return {
        "workload": estimate.workload,
        "gpu": estimate.gpu_id,
        "deployment": deployment.label,
        "stage": deployment.stage or None,
        "gpus_per_replica": deployment.gpus_per_replica,
        "batch": deployment.batch or None,
        "measured": estimate.measured,
        "option": estimate.option,
        "gpus_per_node": estimate.gpus_per_node,
        "low_factor": estimate.low_factor,
        "high_factor": estimate.high_factor,
        "source": estimate.source,
    }


def _service(estimate: ServiceEstimate, instance: Instance) -> dict[str, Any]:
    demands = [d for d in instance.rate_demands if d.workload == estimate.workload]
    able = {c.request_class for c in estimate.classes}
    replicas = _replicas_at_peak(estimate, demands)
    return {
        **_common(estimate),
        "utilisation_cap": estimate.utilisation_cap,
        "free_memory_bytes": estimate.free_memory_bytes or None,
        "classes": [_class(c, estimate) for c in estimate.classes],
        "classes_not_served": [d.request_class for d in demands if d.request_class not in able],
        "gpus_needed": replicas * estimate.deployment.gpus_per_replica,
        "gpus_at_peak": _whole(replicas) * estimate.deployment.gpus_per_replica,
        "steps": [dataclasses.asdict(step) for step in estimate.steps],
    }


def _class(found: ClassEstimate, estimate: ServiceEstimate) -> dict[str, Any]:
    rate = 1.0 / found.replica_seconds_per_request if found.replica_seconds_per_request > 0 else None
    return {
        "class": found.request_class,
        "requests_per_s_per_replica": rate,
        "low": None if rate is None else rate * estimate.low_factor,
        "high": None if rate is None else rate * estimate.high_factor,
        "ttft_ms": found.ttft_ms,
        "tpot_ms": found.tpot_ms,
        "end_to_end_ms": found.end_to_end_ms,
        "bottleneck": "measured rate" if estimate.measured else _slowest(found),
        "flop_per_request": found.flop_per_request or None,
        "moved_bytes_per_request": found.moved_bytes_per_request or None,
        "kv_bytes_per_sequence": found.kv_bytes_per_sequence or None,
    }


def _slowest(found: ClassEstimate) -> str:
    seconds = {
        "compute": found.compute_seconds,
        "memory_bandwidth": found.memory_bandwidth_seconds,
        "interconnect": found.interconnect_seconds,
        "overhead": found.overhead_seconds,
    }
    return max(seconds, key=lambda name: seconds[name])


def _replicas_at_peak(estimate: ServiceEstimate, demands: Sequence[RateDemand]) -> float:
    """Σ over classes of rate ÷ (rate of a replica × utilisation cap), in the period and slice where that is most."""
    seconds = {c.request_class: c.replica_seconds_per_request / estimate.utilisation_cap for c in estimate.classes}
    served = [d for d in demands if d.request_class in seconds]
    if not served:
        return 0.0
    places = [(p, s) for p, rates in enumerate(served[0].rate_per_s) for s in range(len(rates))]
    return max(math.fsum(d.rate_per_s[p][s] * seconds[d.request_class] for d in served) for p, s in places)


def _job(estimate: JobEstimate, instance: Instance) -> dict[str, Any]:
    needed = max(_gpus_of_runs(estimate, instance), default=None)
    group = estimate.deployment.gpus_per_replica
    count = None if needed is None else max(_whole(needed / group) * group, estimate.min_gpus)
    demand = next(d for d in instance.estimates.demands if d.workload == estimate.workload)
    return {
        **_common(estimate),
        "unit": demand.unit,
        "units_per_gpu_hour": estimate.units_per_gpu_hour,
        "low": estimate.units_per_gpu_hour * estimate.low_factor,
        "high": estimate.units_per_gpu_hour * estimate.high_factor,
        "mfu": estimate.mfu,
        "min_gpus": estimate.min_gpus,
        "max_gpus": estimate.max_gpus,
        "gpus_needed": needed,
        "gpus_at_peak": count,
        "in_time": count is not None and (estimate.max_gpus is None or count <= estimate.max_gpus),
        "steps": [dataclasses.asdict(step) for step in estimate.steps],
    }


def _gpus_of_runs(estimate: JobEstimate, instance: Instance) -> Iterator[float]:
    """Amount ÷ (yield × hours) of every run that has hours."""
    for run in instance.volume_demands:
        hours = _hours(run)
        if run.workload == estimate.workload and hours > 0:
            yield run.amount / (estimate.units_per_gpu_hour * hours)


def _whole(count: float) -> int:
    return math.ceil(count - WHOLE)
