"""Estimates at the low end of their range: the rate that 95 % of measured cases reach (`plan_for: low`)."""

from dataclasses import replace

from optimizer.estimator.types import ClassEstimate, JobEstimate, ServiceEstimate
from optimizer.trace import Step

_FORMULA = "rate · low end of the range"


def _step(low_factor: float) -> Step:
    return Step("low", low_factor, "1", _FORMULA, (("low_factor", low_factor),), "problem file: plan_for")


def service_at_low_end(estimate: ServiceEstimate) -> ServiceEstimate:
    """Every class takes 1 ÷ low_factor times its replica time; its latencies already are those of the high end."""
    low = estimate.low_factor
    classes = tuple(slower(c, 1 / low) for c in estimate.classes)
    steps = (*estimate.steps, _step(low))
    return replace(estimate, classes=classes, low_factor=1.0, high_factor=estimate.high_factor / low, steps=steps)


def slower(found: ClassEstimate, times: float) -> ClassEstimate:
    """A class that takes `times` its replica time, in all its parts."""
    return replace(
        found,
        replica_seconds_per_request=found.replica_seconds_per_request * times,
        compute_seconds=found.compute_seconds * times,
        memory_bandwidth_seconds=found.memory_bandwidth_seconds * times,
        interconnect_seconds=found.interconnect_seconds * times,
        overhead_seconds=found.overhead_seconds * times,
        residence_s=found.residence_s * times,
    )


def job_at_low_end(estimate: JobEstimate) -> JobEstimate:
    """The yield, and with it the MFU, is that of the low end."""
    low = estimate.low_factor
    return replace(
        estimate,
        units_per_gpu_hour=estimate.units_per_gpu_hour * low,
        mfu=None if estimate.mfu is None else estimate.mfu * low,
        low_factor=1.0,
        high_factor=estimate.high_factor / low,
        steps=(*estimate.steps, _step(low)),
    )
