"""The estimator's one entry: workloads and GPU types in, demands, estimates, rejections and assumptions out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.architecture import architecture_of
from optimizer.estimator.assumptions import assumptions_of
from optimizer.estimator.calibration import (
    LEAST_MEASUREMENTS,
    Calibration,
    calibration_of,
    job_ratios,
    service_ratios,
)
from optimizer.estimator.demands import TFLOP, demand_of
from optimizer.estimator.inference import request_shapes
from optimizer.estimator.jobs import analytic_batch, analytic_training, training_plan
from optimizer.estimator.low_end import job_at_low_end, service_at_low_end
from optimizer.estimator.measured import PER_GPU_RATES, Point, measured_jobs, measured_services, point_of
from optimizer.estimator.rules_of_thumb import service_operations
from optimizer.estimator.search import Found, best_batches
from optimizer.estimator.services import analytic_services
from optimizer.estimator.training import tokens_per_gpu_hour_at
from optimizer.estimator.types import (
    ClassEstimate,
    Demand,
    Deployment,
    Estimates,
    JobEstimate,
    Rejection,
    ServiceEstimate,
)
from optimizer.estimator.workloads import (
    AnyWorkload,
    Batch,
    FineTune,
    InlineModel,
    Measurement,
    Service,
    Training,
)
from optimizer.trace import Step
from optimizer.units import FLOP_PER_TFLOP, SECONDS_PER_HOUR

RULE_SOURCE = "rule of thumb (docs/estimator.md)"
AnEstimate = TypeVar("AnEstimate", ServiceEstimate, JobEstimate)
Result = tuple[list[ServiceEstimate], list[JobEstimate], list[Rejection]]


def estimate_all(
    workloads: Sequence[AnyWorkload],
    gpus: Sequence[Gpu],
    node_sizes: Mapping[str, tuple[int, ...]],
    resolve_model: Callable[[str], LlmArchitecture],
    measurements: Sequence[Measurement],
    option_gpus: Mapping[str, tuple[str, int]],
) -> Estimates:
    """Estimate every workload on every GPU type.

    `node_sizes` gives the GPUs per node on offer by GPU type and may name types without a record in `gpus` (no
    figures): those need measurements. `option_gpus` gives type and GPUs per node of the quotes measured.

    Raises
    ------
    ProblemFileError
        If a job has no amount, or a measurement cannot be used.
    CatalogLookupError
        If a model is needed that the catalog does not know (raised by `resolve_model`).
    """
    field = GpuField({gpu.gpu_id: gpu for gpu in gpus}, node_sizes, resolve_model, option_gpus)
    parts = [
        WorkloadEstimator(workload, [m for m in measurements if m.workload == workload.name], field).run()
        for workload in workloads
    ]
    return Estimates(
        demands=tuple(d for part in parts for d in part.demands),
        services=tuple(s for part in parts for s in part.services),
        jobs=tuple(j for part in parts for j in part.jobs),
        rejections=tuple(r for part in parts for r in part.rejections),
        assumptions=tuple({a.name: a for part in parts for a in part.assumptions}.values()),
    )


@dataclass(frozen=True, slots=True)
class GpuField:
    """The GPU types of a problem, and where models come from."""

    gpus: Mapping[str, Gpu]
    node_sizes: Mapping[str, tuple[int, ...]]
    resolve_model: Callable[[str], LlmArchitecture]
    option_gpus: Mapping[str, tuple[str, int]]

    def names(self) -> list[str]:
        """All types, with figures or without, in a stable order."""
        return list(dict.fromkeys((*self.gpus, *self.node_sizes)))

    def sizes(self, gpu: Gpu) -> tuple[int, ...]:
        """Node sizes on offer; what the GPU allows where nothing is on offer."""
        return self.node_sizes.get(gpu.gpu_id) or (gpu.max_gpus_per_node,)


class WorkloadEstimator:
    """One workload against all its GPU types."""

    def __init__(self, workload: AnyWorkload, measurements: Sequence[Measurement], field: GpuField) -> None:
        self.workload = workload
        whole = not isinstance(workload, Service) or workload.disaggregated != "required"
        self.measurements = measurements if whole else ()  # measured rates are those of whole deployments
        self.field = field
        self._model: LlmArchitecture | None = None
        self._demand: Demand | None = None
        self._found: Found | None = None
        self._calibration: Calibration | None = None

    def run(self) -> Estimates:
        """Measured estimates first; analytic ones wherever a measurement does not stand for them."""
        allowed = self.workload.gpus
        names = [name for name in self.field.names() if allowed is None or name in allowed]
        missing = [name for name in allowed or [] if name not in names]
        services, jobs = self._measured(names)
        self._calibration = self._calibrated_by(services, jobs)
        rejections = [self._nothing_known(name) for name in missing]
        for name in names:
            own_services, own_jobs, own_rejections = self._analytic(name)
            services += own_services
            jobs += own_jobs
            rejections += own_rejections
        found = (tuple(services), tuple(jobs))
        assumptions = list(assumptions_of(self.workload, self._model, *found))
        if self._calibration is not None and not all(estimate.measured for part in found for estimate in part):
            assumptions.append(self._calibration.assumption(self.workload.name))
        return Estimates((self.demand(),), *found, tuple(rejections), tuple(assumptions))

    def model(self) -> LlmArchitecture | None:
        """Architecture of the workload's model, looked up when it is first needed."""
        if self._model is None and self.workload.model is not None:
            named = self.workload.model
            self._model = architecture_of(named) if isinstance(named, InlineModel) else self.field.resolve_model(named)
        return self._model

    def demand(self) -> Demand:
        """How much there is to do."""
        if self._demand is None:
            by_rule = self.workload.estimate_by == "rule-of-thumb" and isinstance(self.workload, Training | FineTune)
            model = self.model() if by_rule else None
            self._demand = demand_of(self.workload, model.parameters if model else None)
        return self._demand

    def _measured(self, names: Sequence[str]) -> tuple[list[ServiceEstimate], list[JobEstimate]]:
        usable = [m for m in self.measurements if point_of(m, self.field.option_gpus).gpu_id in names]
        if isinstance(self.workload, Service):
            return measured_services(self.workload, usable, self.field.option_gpus), []
        unit = self.demand().unit
        return [], measured_jobs(self.workload, unit, usable, self.field.option_gpus, self._tokens_per_hour_at)

    def _tokens_per_hour_at(self, gpu_id: str, mfu: float) -> float | None:
        model, gpu = self.model(), self.field.gpus.get(gpu_id)
        if model is None or gpu is None or not isinstance(self.workload, Training | FineTune):
            return None
        return tokens_per_gpu_hour_at(gpu, training_plan(self.workload, model), mfu) or None

    def _analytic(self, name: str) -> Result:
        near = [m for m in self.measurements if m.option is not None or m.gpu == name]
        points = [(m, point_of(m, self.field.option_gpus)) for m in near]
        here = [(m, p) for m, p in points if p.gpu_id == name]
        everywhere = [(m, p) for m, p in here if p.option is None]
        if any(_covers_all(m) for m, _ in everywhere):
            return [], [], []
        gpu = self.field.gpus.get(name)
        if gpu is None or self.workload.model is None or gpu.is_tpu:
            return [], [], [] if here else [self._nothing_known(name)]
        services, jobs, rejections = self._estimate_on(gpu)
        if self._calibration is not None:
            services = [self._calibration.service(s) for s in services]
            jobs = [self._calibration.job(j) for j in jobs]
        if self.workload.plan_for == "low":
            services, jobs = [service_at_low_end(s) for s in services], [job_at_low_end(j) for j in jobs]
        sizes = self.field.sizes(gpu)
        return _left_of(services, everywhere, sizes), _left_of(jobs, everywhere, sizes), rejections

    def _calibrated_by(self, services: Sequence[ServiceEstimate], jobs: Sequence[JobEstimate]) -> Calibration | None:
        """Calibration by three or more measured rates on GPU types with figures; None without them."""
        if len(self.measurements) < LEAST_MEASUREMENTS or self.workload.estimate_by == "rule-of-thumb":
            return None
        analytic: dict[str, Result] = {}
        middle = self
        if self.workload.plan_for != "middle":
            middle = WorkloadEstimator(self.workload.model_copy(update={"plan_for": "middle"}), (), self.field)

        def on(name: str) -> Result:
            gpu = self.field.gpus.get(name)
            if name not in analytic:
                analytic[name] = middle._estimate_on(gpu) if gpu and self.workload.model is not None else ([], [], [])
            return analytic[name]

        of_services = service_ratios(services, lambda name: on(name)[0])
        return calibration_of([*of_services, *job_ratios(jobs, lambda name: on(name)[1])])

    def _nothing_known(self, name: str) -> Rejection:
        if name not in self.field.gpus:
            lacks = f"no figures of {name} (memory, bandwidth and bf16 are all needed)"
            reason, resource = f"{lacks} and no measurement of {self.workload.name} on it", "figures"
        elif self.field.gpus[name].is_tpu:
            reason, resource = (
                f"no analytic model for {name}; give a measurement of {self.workload.name}",
                "measurement",
            )
        else:
            reason, resource = f"{self.workload.name} names no model and is not measured on {name}", "model"
        return Rejection(self.workload.name, name, reason, resource, 1, 0, resource)

    def _estimate_on(self, gpu: Gpu) -> Result:
        workload, model = self.workload, self.model()
        if model is None or gpu.is_tpu:
            return [], [], [self._nothing_known(gpu.gpu_id)]
        largest = max(self.field.sizes(gpu))
        if workload.estimate_by == "rule-of-thumb":
            return self._by_rule(gpu, model)
        if isinstance(workload, Service):
            services, rejections = analytic_services(workload, gpu, model, largest, self._batches(workload, model))
            return services, [], rejections
        if isinstance(workload, Batch):
            jobs, rejections = analytic_batch(workload, self.demand(), gpu, model, largest)
            return [], jobs, rejections
        jobs, rejections = analytic_training(workload, self.demand(), gpu, model, largest)
        return [], jobs, rejections

    def _batches(self, service: Service, model: LlmArchitecture) -> Found:
        """Operating batches on all GPU types that the service may use, searched together when first asked for."""
        if self._found is None:
            allowed = service.gpus
            gpus = [gpu for name, gpu in self.field.gpus.items() if allowed is None or name in allowed]
            gpus = [gpu for gpu in gpus if not gpu.is_tpu]
            self._found = best_batches(service, model, [(gpu, max(self.field.sizes(gpu))) for gpu in gpus])
        return self._found

    def _by_rule(self, gpu: Gpu, model: LlmArchitecture) -> Result:
        peak = gpu.peak_tflop_per_s("fp32")
        if isinstance(self.workload, Batch):
            reason = f"the rule of thumb for batches plans from measured tokens/s; there is none on {gpu.gpu_id}"
            return [], [], [Rejection(self.workload.name, gpu.gpu_id, reason, "measurement", 1, 0, "measurement")]
        if peak is None:
            reason = f"the FP32 peak of {gpu.gpu_id}, which the rule divides by, is not known"
            return [], [], [Rejection(self.workload.name, gpu.gpu_id, reason, "figures", 1, 0, "FP32 peak")]
        if isinstance(self.workload, Service):
            return [rule_service(self.workload, gpu, model, peak)], [], []
        return [], [rule_training(self.workload, gpu, peak)], []


def rule_service(service: Service, gpu: Gpu, model: LlmArchitecture, peak_tflop_per_s: float) -> ServiceEstimate:
    """Service by the rule of thumb: tokens · width · depth operations at the FP32 peak, one GPU per replica."""
    classes, steps = [], []
    for shape in request_shapes(service):
        operations = service_operations(shape.prompt + shape.output, model.hidden_size, model.layers)
        seconds = operations / (peak_tflop_per_s * FLOP_PER_TFLOP)
        classes.append(ClassEstimate(shape.name, seconds, compute_seconds=seconds))
        inputs = (("operations", operations), ("peak", peak_tflop_per_s * FLOP_PER_TFLOP))
        steps.append(Step(f"r[{shape.name}]", seconds, "s", "operations ÷ FP32 peak", inputs, RULE_SOURCE))
    return ServiceEstimate(
        workload=service.name,
        gpu_id=gpu.gpu_id,
        deployment=Deployment(1, 1),
        classes=tuple(classes),
        utilisation_cap=service.utilisation_cap or 1.0,
        source=RULE_SOURCE,
        steps=tuple(steps),
    )


def rule_training(job: Training | FineTune, gpu: Gpu, peak_tflop_per_s: float) -> JobEstimate:
    """Training by the rule of thumb: the FP32 peak, fully used, on any number of GPUs."""
    rate = peak_tflop_per_s * SECONDS_PER_HOUR
    step = Step("y", rate, f"{TFLOP}/GPU-hour", "FP32 peak · 3600", (("peak", peak_tflop_per_s),), RULE_SOURCE)
    return JobEstimate(
        workload=job.name,
        gpu_id=gpu.gpu_id,
        deployment=Deployment(1, 1, weights="fp32"),
        units_per_gpu_hour=rate,
        min_gpus=job.min_gpus,
        max_gpus=job.max_gpus,
        source=RULE_SOURCE,
        steps=(step,),
    )


def _covers_all(measurement: Measurement) -> bool:
    """Whether a measurement leaves format, replica size and node size open: then it stands for the GPU type."""
    per_gpu = any(getattr(measurement, name) is not None for name in PER_GPU_RATES)
    open_size = measurement.gpus_per_replica is None or per_gpu
    return measurement.weights is None and open_size and measurement.gpus_per_node is None


def _left_of(
    estimates: Iterable[AnEstimate], measured: Sequence[tuple[Measurement, Point]], sizes: Sequence[int]
) -> list[AnEstimate]:
    """Analytic estimates that no measurement replaces; one made on nodes of a size leaves the other sizes."""
    left: list[AnEstimate] = []
    for estimate in estimates:
        replacing = [m for m, point in measured if point.replaces(m, estimate.deployment)]
        if not replacing:
            left.append(estimate)
            continue
        if any(m.gpus_per_node is None for m in replacing):
            continue
        taken = {m.gpus_per_node for m in replacing}
        others = [n for n in sizes if n not in taken and n >= estimate.deployment.least_gpus_per_node]
        left.extend(replace(estimate, gpus_per_node=n) for n in others)
    return left
