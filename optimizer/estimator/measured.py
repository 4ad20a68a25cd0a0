"""The buyer's measurements, turned into estimates that replace the analytic ones for their point.

A measured rate is the rate at the operating point: utilisation cap 1, no resource figures, no range.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from optimizer.errors import Finding, ProblemFileError
from optimizer.estimator.demands import OUTPUT_TOKENS, REQUESTS, TOKENS, batch_lengths
from optimizer.estimator.inference import request_shapes
from optimizer.estimator.types import ClassEstimate, Deployment, JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import AnyJob, Batch, Measurement, Service
from optimizer.trace import Step
from optimizer.units import SECONDS_PER_HOUR

PER_GPU_RATES = ("per_gpu_hour", "tokens_per_s_per_gpu", "mfu")


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured: GPU type, offer, node size, replica size, weight format."""

    gpu_id: str
    option: str | None
    gpus_per_node: int | None
    gpus_per_replica: int
    weights: str

    def replaces(self, measurement: Measurement, deployment: Deployment) -> bool:
        """Whether an analytic deployment is the measured one; what a measurement leaves open covers all."""
        if self.option is not None or deployment.stage:
            return False
        same_weights = measurement.weights is None or measurement.weights == deployment.weights
        size = measurement.gpus_per_replica
        return same_weights and (size is None or size == deployment.gpus_per_replica)


def point_of(measurement: Measurement, option_gpus: Mapping[str, tuple[str, int]]) -> Point:
    """Point that a measurement holds for; a rate per GPU has one GPU behind it, another the whole node of a quote.

    Raises
    ------
    ProblemFileError
        If it names an offer that is not there.
    """
    per_gpu = any(getattr(measurement, name) is not None for name in PER_GPU_RATES)
    weights = measurement.weights or ""
    if measurement.option is None:
        size = measurement.gpus_per_replica or (1 if per_gpu else measurement.gpus_per_node or 1)
        return Point(str(measurement.gpu), None, measurement.gpus_per_node, size, weights)
    if measurement.option not in option_gpus:
        known = ", ".join(sorted(option_gpus)) or "none"
        raise _refused(measurement, f'unknown option "{measurement.option}"', f"write the name of a quote: {known}")
    gpu_id, gpus_per_node = option_gpus[measurement.option]
    size = measurement.gpus_per_replica or (1 if per_gpu else gpus_per_node)
    return Point(gpu_id, measurement.option, gpus_per_node, size, weights)


def measured_services(
    service: Service, measurements: Sequence[Measurement], option_gpus: Mapping[str, tuple[str, int]]
) -> list[ServiceEstimate]:
    """One estimate per measured point; classes that were not measured are absent."""
    points: dict[Point, list[Measurement]] = {}
    for measurement in measurements:
        points.setdefault(point_of(measurement, option_gpus), []).append(measurement)
    return [_measured_service(service, point, found) for point, found in points.items()]


def _measured_service(service: Service, point: Point, measurements: Sequence[Measurement]) -> ServiceEstimate:
    shapes = {shape.name: shape.output for shape in request_shapes(service)}
    for measurement in measurements:
        if measurement.request_class is not None and measurement.request_class not in shapes:
            message = f'unknown class "{measurement.request_class}" of workload "{service.name}"'
            raise _refused(measurement, message, f"write one of: {', '.join(shapes)}")
    general = [m for m in measurements if m.request_class is None]
    # A measurement of one class beats one of all classes.
    by_class = {name: m for m in general for name in shapes}
    by_class |= {m.request_class: m for m in measurements if m.request_class is not None}
    classes = tuple(_measured_class(name, by_class[name], shapes[name]) for name in shapes if name in by_class)
    return ServiceEstimate(
        workload=service.name,
        gpu_id=point.gpu_id,
        deployment=_deployment(point),
        classes=classes,
        measured=True,
        option=point.option,
        gpus_per_node=point.gpus_per_node,
        source=measurements[0].source,
        steps=tuple(_class_step(c, by_class[c.request_class]) for c in classes),
    )


def _deployment(point: Point) -> Deployment:
    size = point.gpus_per_replica
    return Deployment(size, size, weights=point.weights, least_gpus_per_node=size)


def _measured_class(name: str, measurement: Measurement, output: float) -> ClassEstimate:
    rate = measurement.requests_per_s
    if measurement.tokens_per_s is not None:
        if output <= 0:
            message = f"tokens_per_s of class {name} needs its output tokens"
            raise _refused(measurement, message, "give tokens: {output: …}, or requests_per_s")
        rate = measurement.tokens_per_s / output
    if rate is None:
        raise _refused(measurement, "a service is measured in requests_per_s or tokens_per_s", "write one of them")
    return ClassEstimate(name, 1 / rate, ttft_ms=measurement.p95_ttft, tpot_ms=measurement.p95_tpot)


def _class_step(estimate: ClassEstimate, measurement: Measurement) -> Step:
    given = measurement.requests_per_s or measurement.tokens_per_s or 0.0
    unit = "requests/s" if measurement.requests_per_s else "tokens/s"
    return Step(
        f"r[{estimate.request_class}]",
        estimate.replica_seconds_per_request,
        "s",
        "1 ÷ measured requests/s" if measurement.requests_per_s else "output tokens ÷ measured tokens/s",
        ((unit, given),),
        measurement.source,
    )


def measured_jobs(
    job: AnyJob,
    unit: str,
    measurements: Sequence[Measurement],
    option_gpus: Mapping[str, tuple[str, int]],
    tokens_per_hour_at_mfu: Callable[[str, float], float | None],
) -> list[JobEstimate]:
    """One estimate per measurement of a job; the last one of a point counts."""
    found = {point_of(m, option_gpus): m for m in measurements}
    return [_measured_job(job, unit, p, m, tokens_per_hour_at_mfu) for p, m in found.items()]


def _measured_job(
    job: AnyJob,
    unit: str,
    point: Point,
    measurement: Measurement,
    tokens_per_hour_at_mfu: Callable[[str, float], float | None],
) -> JobEstimate:
    rate = units_per_gpu_hour(job, unit, point, measurement, tokens_per_hour_at_mfu)
    size = point.gpus_per_replica
    whole_replica = size if isinstance(job, Batch) else 1
    step = Step("y", rate, f"{unit} per GPU-hour", "measured", _given(measurement), measurement.source)
    return JobEstimate(
        workload=job.name,
        gpu_id=point.gpu_id,
        deployment=Deployment(size, size, weights=point.weights, least_gpus_per_node=whole_replica),
        units_per_gpu_hour=rate,
        min_gpus=max(job.min_gpus, size),
        max_gpus=job.max_gpus,
        mfu=measurement.mfu,
        measured=True,
        option=point.option,
        gpus_per_node=point.gpus_per_node,
        source=measurement.source,
        steps=(step,),
    )


def units_per_gpu_hour(
    job: AnyJob,
    unit: str,
    point: Point,
    measurement: Measurement,
    tokens_per_hour_at_mfu: Callable[[str, float], float | None],
) -> float:
    """Units of the job's demand that one GPU does per hour, from whichever rate was measured.

    Raises
    ------
    ProblemFileError
        If the rate cannot be turned into the demand's unit.
    """
    if measurement.per_gpu_hour is not None:
        return measurement.per_gpu_hour
    if isinstance(job, Batch):
        return _batch_units(job, unit, point, measurement)
    if unit == TOKENS:
        per_gpu = measurement.tokens_per_s_per_gpu
        if per_gpu is None and measurement.tokens_per_s is not None:
            per_gpu = measurement.tokens_per_s / point.gpus_per_replica
        if per_gpu is not None:
            return per_gpu * SECONDS_PER_HOUR
        if measurement.mfu is not None:
            rate = tokens_per_hour_at_mfu(point.gpu_id, measurement.mfu)
            if rate is not None:
                return rate
            raise _refused(measurement, "an MFU needs the model and the GPU's peak", "give tokens_per_s_per_gpu")
    raise _unit_mismatch(measurement, job, unit)


def _batch_units(job: Batch, unit: str, point: Point, measurement: Measurement) -> float:
    per_gpu = SECONDS_PER_HOUR / point.gpus_per_replica
    output = batch_lengths(job)[1]
    tokens = measurement.tokens_per_s
    if tokens is None and measurement.tokens_per_s_per_gpu is not None:
        tokens = measurement.tokens_per_s_per_gpu * point.gpus_per_replica
    requests = measurement.requests_per_s
    if unit in {TOKENS, OUTPUT_TOKENS}:
        if tokens is not None:
            return tokens * per_gpu
        if requests is not None:
            return requests * output * per_gpu
    if unit == REQUESTS:
        if requests is not None:
            return requests * per_gpu
        if tokens is not None and output > 0:
            return tokens / output * per_gpu
    raise _unit_mismatch(measurement, job, unit)


def _given(measurement: Measurement) -> tuple[tuple[str, float], ...]:
    names = ("requests_per_s", "tokens_per_s", "tokens_per_s_per_gpu", "per_gpu_hour", "mfu")
    return tuple((name, value) for name in names if (value := getattr(measurement, name)) is not None)


def _unit_mismatch(measurement: Measurement, job: AnyJob, unit: str) -> ProblemFileError:
    name = _given(measurement)[0][0]
    message = f'{name} cannot be turned into "{unit}", the unit of workload "{job.name}"'
    return _refused(measurement, message, f"give per_gpu_hour, in {unit} per GPU and hour")


def _refused(measurement: Measurement, message: str, hint: str) -> ProblemFileError:
    place = measurement.gpu or measurement.option
    return ProblemFileError([Finding(message, path=f"measurements ({measurement.workload} on {place})", hint=hint)])
