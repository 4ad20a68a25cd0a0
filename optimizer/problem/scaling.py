"""A problem with more or less to do: rates of services and work of jobs times a factor, however they are stated."""

from collections.abc import Mapping, Sequence
from typing import Any

from optimizer.estimator.workloads import AnyJob, AnyWorkload, RequestClass, Service, Traffic

_RATES = ("requests_per_day", "mean_requests_per_s", "peak_requests_per_s")


def with_demand(workload: AnyWorkload, factor: float) -> AnyWorkload:
    """A workload with its demand times a factor; everything else stays."""
    return with_rate(workload, factor) if isinstance(workload, Service) else with_work(workload, factor)


def with_rate(service: Service, factor: float) -> Service:
    """A service with `factor` times its rate."""
    traffic = service.traffic.model_copy(update=_times(service.traffic, _RATES, factor))
    classes = [one.model_copy(update=_times(one, ("requests_per_s",), factor)) for one in service.classes or ()]
    return service.model_copy(update={"traffic": traffic} | ({"classes": classes} if service.classes else {}))


def with_work(job: AnyJob, factor: float) -> AnyJob:
    """A job with `factor` times its work."""
    changes: dict[str, Any] = _times(job, ("tokens",), factor)
    if job.work is not None:
        changes["work"] = job.work.model_copy(update=_times(job.work, ("amount",), factor))
    if job.kind == "batch":
        if job.requests is not None:
            changes["requests"] = job.requests.model_copy(update=_times(job.requests, ("count", "per_day"), factor))
    elif job.dataset is not None:
        changes["dataset"] = job.dataset.model_copy(update=_times(job.dataset, ("size",), factor))
    return job.model_copy(update=changes)


def with_slices(service: Service, multipliers: Mapping[str, float], rates: Sequence[float]) -> Service:
    """A service with a multiplier for every slice, and its classes (one, `all`, if it names none) at these rates."""
    kept = {"growth": service.traffic.growth, "by_period": service.traffic.by_period, "by_slice": dict(multipliers)}
    listed = service.classes or [RequestClass(name="all")]
    classes = [
        one.model_copy(update={"share": None, "requests_per_s": rate}) for one, rate in zip(listed, rates, strict=True)
    ]
    return service.model_copy(update={"traffic": Traffic().model_copy(update=kept), "classes": classes})


def _times(holder: Any, names: tuple[str, ...], factor: float) -> dict[str, float]:
    given = {name: getattr(holder, name) for name in names}
    return {name: value * factor for name, value in given.items() if value is not None}
