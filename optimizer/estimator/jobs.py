"""Analytic estimates of jobs (training, fine-tuning, offline batch) on a GPU type, or why they cannot run there."""

from dataclasses import dataclass, replace
from math import ceil

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.constants import constant
from optimizer.estimator.demands import OUTPUT_TOKENS, REQUESTS, TOKENS, batch_lengths
from optimizer.estimator.inference import (
    ONLY_CLASS,
    RequestShape,
    batch_limit,
    memory_of,
    saturated_seconds,
    shape_of,
)
from optimizer.estimator.kernels import Kernel, kernel_for
from optimizer.estimator.layouts import Layout as ReplicaLayout
from optimizer.estimator.layouts import legal_tensor_parallel_sizes, replica_layouts
from optimizer.estimator.roofline import replica_of
from optimizer.estimator.search import formats_of
from optimizer.estimator.services import (
    ESTIMATE_SOURCE,
    THROUGHPUT_RANGE,
    deployment_of,
    memory_rejection,
    no_unit_for,
    refused_sizes,
)
from optimizer.estimator.steps import batch_steps, ceiling_steps, memory_steps, training_steps
from optimizer.estimator.training import (
    GPUS_PER_BOARD,
    LARGEST_JOB_GPUS,
    Layout,
    gpu_seconds_per_token,
    largest_micro_batch,
    layout_for,
    mfu_of,
    model_flop_per_token,
    size_ranges,
    tokens_per_gpu_hour_at,
)
from optimizer.estimator.training_memory import TrainingPlan, required_bytes
from optimizer.estimator.types import Demand, Deployment, JobEstimate, Rejection
from optimizer.estimator.workloads import Batch, FineTune, Training, TrainingSettings
from optimizer.trace import Step
from optimizer.units import BYTES_PER_GB, SECONDS_PER_HOUR

_SMALLEST_SENSIBLE_LIMIT = 64
_SENSIBLE_MULTIPLE = 32
_BOARDS = 4


def training_plan(job: Training | FineTune, model: LlmArchitecture) -> TrainingPlan:
    """Settings of a job with its defaults filled in; a LoRA job of unsaid recomputation is taken to recompute."""
    method = job.method if isinstance(job, FineTune) else "full"
    unsaid = "recompute" not in job.model_fields_set
    return TrainingPlan(
        model=model,
        sequence=training_sequence(job, model),
        micro_batch=job.micro_batch,
        precision=job.precision,
        method=method,
        sharding=job.sharding,
        recompute="full" if method != "full" and unsaid else job.recompute,
        optimizer=job.optimizer,
        stack=job.stack,
        lora_rank=job.lora_rank if isinstance(job, FineTune) else 0,
        whole_run=isinstance(job, Training),
        offload=job.offload,
        optimizer_in_backward=job.optimizer_in_backward,
        chunked_loss=job.chunked_loss,
        gradient_accumulation=job.gradient_accumulation,
    )


def training_sequence(job: TrainingSettings, model: LlmArchitecture) -> int:
    """Sequence length: as given, that of a model described in place, else 4,096 or what the model allows."""
    if job.sequence is not None:
        return job.sequence
    if model.family == "custom" and model.max_context_tokens:
        return model.max_context_tokens
    default = int(constant("default_training_sequence"))
    return min(default, model.max_context_tokens or default)


def analytic_training(
    job: Training | FineTune, demand: Demand, gpu: Gpu, model: LlmArchitecture, largest_node: int
) -> tuple[list[JobEstimate], list[Rejection]]:
    """Rates of a training job by range of GPU counts, or the rejection of the GPU type."""
    if job.precision == "int8" or gpu.peak_tflop_per_s(job.precision) is None:
        return [], [no_unit_for(job.name, gpu, job.precision)]
    if demand.unit != TOKENS:
        return [], [_own_unit(job, gpu, demand)]
    plan = training_plan(job, model)
    layout = layout_for(gpu, plan, largest_node, job.global_batch_tokens)
    if layout is None:
        return [], [_training_memory_rejection(job, gpu, plan, largest_node)]
    node = least_node(layout, largest_node)
    if node > largest_node:
        return [], [_node_rejection(job, gpu, layout, node, largest_node)]
    run = TrainingRun(job, demand, gpu, plan, layout, node)
    if job.mfu is not None:
        return run.at_own_mfu(job.mfu)
    return run.by_size()


def least_node(layout: Layout, largest_node: int) -> int:
    """Smallest node for a run: one GPU if it fits one, else a board of up to 8, so that sharding stays on fast links.

    A board of 4 to 7 GPUs will do where there is none larger.
    """
    board = min(GPUS_PER_BOARD, max(layout.least_gpus, layout.tensor_parallel))
    return largest_node if _BOARDS <= largest_node < board else board


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A training job on a GPU type in a layout that fits."""

    job: Training | FineTune
    demand: Demand
    gpu: Gpu
    plan: TrainingPlan
    layout: Layout
    node: int

    @property
    def most_gpus(self) -> int:
        """Most GPUs by the global batch and the buyer."""
        return min(self.layout.most_gpus, self.job.max_gpus or LARGEST_JOB_GPUS)

    @property
    def least_gpus(self) -> int:
        """Least GPUs by memory and the buyer."""
        return max(self.layout.least_gpus, self.job.min_gpus)

    def by_size(self) -> tuple[list[JobEstimate], list[Rejection]]:
        """Rates by range of GPU counts, each taken at its upper end."""
        group = self.layout.tensor_parallel
        ranges = size_ranges(self.least_gpus, self.most_gpus, group, self._sensible_gpus())
        estimates = [self._estimate(low, high) for low, high in ranges]
        return (estimates, []) if estimates else ([], [self._too_few()])

    def at_own_mfu(self, mfu: float) -> tuple[list[JobEstimate], list[Rejection]]:
        """One rate at the buyer's MFU, whatever the size."""
        if self.least_gpus > self.most_gpus:
            return [], [self._too_few()]
        rate = tokens_per_gpu_hour_at(self.gpu, self.plan, mfu)
        most = None if self.most_gpus == LARGEST_JOB_GPUS else self.most_gpus
        flop = model_flop_per_token(self.plan)
        step = Step(
            "y", rate, "tokens/GPU-hour", "3600 · MFU · dense peak ÷ F", (("MFU", mfu), ("F", flop)), "problem file"
        )
        estimate = self._record(self.least_gpus, most, rate, mfu)
        return [replace(estimate, source="buyer's MFU", low_factor=1.0, high_factor=1.0, steps=(step,))], []

    def _estimate(self, low: int, high: int) -> JobEstimate:
        plan, tensor_parallel = self._plan_on(low, high), self.layout.tensor_parallel
        seconds = gpu_seconds_per_token(self.gpu, plan, tensor_parallel, high)
        mfu = mfu_of(self.gpu, plan, seconds)
        rate = SECONDS_PER_HOUR / seconds
        steps = training_steps(self.gpu, plan, replace(self.layout, least_gpus=low), high, rate, mfu)
        return replace(self._record(low, high, rate, mfu), steps=steps)

    def _plan_on(self, low: int, high: int) -> TrainingPlan:
        """Plan with the buyer's micro-batch, else the largest that fits `low` GPUs and the batch of `high`."""
        if "micro_batch" in self.job.model_fields_set:
            return self.plan
        size = self.layout.tensor_parallel
        limit = self.job.global_batch_tokens
        per_rank = None if limit is None else limit / high * low
        return largest_micro_batch(self.gpu, self.plan, size, max(1, low // size), per_rank)

    def _record(self, low: int, high: int | None, rate: float, mfu: float) -> JobEstimate:
        low_factor, high_factor = training_range(self.plan)
        tensor_parallel = self.layout.tensor_parallel
        deployment = Deployment(
            tensor_parallel, tensor_parallel, weights=self.plan.precision, least_gpus_per_node=self.node
        )
        return JobEstimate(
            workload=self.job.name,
            gpu_id=self.gpu.gpu_id,
            deployment=deployment,
            units_per_gpu_hour=rate,
            min_gpus=low,
            max_gpus=high,
            mfu=mfu,
            source=ESTIMATE_SOURCE,
            low_factor=low_factor,
            high_factor=high_factor,
        )

    def _sensible_gpus(self) -> float:
        """GPUs beyond which no range is offered: 32 times what an unbroken run to the deadline takes, at least 64."""
        if self.job.deadline is None or not self.job.deadline or self.demand.amount is None:
            return LARGEST_JOB_GPUS
        seconds = gpu_seconds_per_token(self.gpu, self.plan, self.layout.tensor_parallel, GPUS_PER_BOARD)
        need = self.demand.amount * seconds / (self.job.deadline * SECONDS_PER_HOUR)
        return max(_SMALLEST_SENSIBLE_LIMIT, _SENSIBLE_MULTIPLE * need)

    def _too_few(self) -> Rejection:
        reason = f"needs at least {self.least_gpus} GPUs by memory and settings; at most {self.most_gpus} may run it"
        return Rejection(self.job.name, self.gpu.gpu_id, reason, "parallelism", self.least_gpus, self.most_gpus, "GPUs")


def range_class(plan: TrainingPlan) -> str:
    """Kind of training with a range of its own: moe | dense (16 bit, all weights) | other."""
    if plan.model.experts > 1:
        return "moe"
    return "dense" if plan.method == "full" and plan.precision in {"bf16", "fp16"} else "other"


def training_range(plan: TrainingPlan) -> tuple[float, float]:
    """Lowest and highest factor on the rate that 90 % of measured runs of that kind keep within."""
    kind = range_class(plan)
    return constant(f"training_{kind}_low_factor"), constant(f"training_{kind}_high_factor")


def _own_unit(job: TrainingSettings | Batch, gpu: Gpu, demand: Demand) -> Rejection:
    reason = f'work in "{demand.unit}" can only be measured; there is no measurement on {gpu.gpu_id}'
    return Rejection(job.name, gpu.gpu_id, reason, "measurement", 1, 0, "measurement")


def _training_memory_rejection(job: Training | FineTune, gpu: Gpu, plan: TrainingPlan, largest_node: int) -> Rejection:
    size = max(legal_tensor_parallel_sizes(plan.model, largest_node))
    ranks = LARGEST_JOB_GPUS // size
    if job.global_batch_tokens is not None:
        ranks = max(1, min(ranks, int(job.global_batch_tokens // plan.micro_batch_tokens)))
    required = required_bytes(plan, size, ranks)
    margin = constant("training_memory_margin")
    practice = " in practice" if required / margin <= gpu.memory_usable_bytes else ""
    reason = (
        f"{plan.method} training of {plan.model.model_id} with sharding {plan.sharding} does not fit {gpu.gpu_id}"
        f"{practice}, even over {size * ranks} GPUs (the prediction times {margin:g}, which holds 80 % of measured "
        "runs); try full recompute, a smaller micro-batch, more sharding or offload"
    )
    available = gpu.memory_usable_bytes / BYTES_PER_GB
    label = f"{plan.precision} TP{size}"
    return Rejection(job.name, gpu.gpu_id, reason, "memory", required / BYTES_PER_GB, available, "GB per GPU", label)


def _node_rejection(job: TrainingSettings, gpu: Gpu, layout: Layout, node: int, largest_node: int) -> Rejection:
    reason = (
        f"needs {layout.least_gpus} GPUs by memory, hence nodes of at least {node} on fast links; "
        f"the largest node on offer has {largest_node}"
    )
    return Rejection(job.name, gpu.gpu_id, reason, "interconnect", node, largest_node, "GPUs per node")


def analytic_batch(
    job: Batch, demand: Demand, gpu: Gpu, model: LlmArchitecture, largest_node: int
) -> tuple[list[JobEstimate], list[Rejection]]:
    """Rates of an offline batch: per weight format the sizes that pay, from the smallest up."""
    rejections = refused_sizes(job, gpu, model, largest_node)
    if demand.unit not in {REQUESTS, OUTPUT_TOKENS}:
        return [], [*rejections, _own_unit(job, gpu, demand)]
    prompt, output = batch_lengths(job)
    shape = shape_of(job, ONLY_CLASS, prompt, output)
    units_per_request = output if demand.unit == OUTPUT_TOKENS else 1.0
    estimates: list[JobEstimate] = []
    for weights in formats_of(job):
        kernel = kernel_for(gpu, weights)
        if kernel is None:
            rejections.append(no_unit_for(job.name, gpu, weights))
            continue
        last_rejection: Rejection | None = None
        found: list[JobEstimate] = []
        for layout in replica_layouts(job, model, largest_node):
            tried = _batch_estimate(job, gpu, model, weights, kernel, layout, shape, units_per_request)
            if isinstance(tried, Rejection):
                last_rejection = tried
            else:
                found.append(tried)
        if not found and last_rejection is not None:
            rejections.append(last_rejection)
        estimates.extend(found)
    kept, dropped = paying_sizes(estimates)
    return kept, rejections + dropped


def paying_sizes(estimates: list[JobEstimate]) -> tuple[list[JobEstimate], list[Rejection]]:
    """Keep sizes whose yield per GPU beats that of every smaller one; the others are dominated."""
    kept: list[JobEstimate] = []
    dropped: list[Rejection] = []
    for estimate in sorted(estimates, key=lambda e: (e.deployment.gpus_per_replica, -e.units_per_gpu_hour)):
        rival = max(kept, key=lambda e: e.units_per_gpu_hour, default=None)
        if rival is None or estimate.units_per_gpu_hour > rival.units_per_gpu_hour:
            kept.append(estimate)
            continue
        dropped.append(
            Rejection(
                estimate.workload,
                estimate.gpu_id,
                f"dominated by {rival.deployment.label}",
                "dominated",
                rival.units_per_gpu_hour,
                estimate.units_per_gpu_hour,
                "units per GPU-hour",
                estimate.deployment.label,
            )
        )
    return kept, dropped


def _batch_estimate(
    job: Batch,
    gpu: Gpu,
    model: LlmArchitecture,
    weights: str,
    kernel: Kernel,
    layout: ReplicaLayout,
    shape: RequestShape,
    units_per_request: float,
) -> JobEstimate | Rejection:
    replica = replica_of(gpu, model, weights, job.kv, kernel, *layout)
    memory, size = memory_of(gpu, replica), replica.gpus
    batch = batch_limit(gpu, job, memory, replica, shape)
    if batch < 1:
        return memory_rejection(job, gpu, replica, shape)
    seconds = saturated_seconds(replica, shape, batch)
    rate = units_per_request * SECONDS_PER_HOUR / (seconds.total * size)
    last = batch_steps(shape, batch, seconds, size, rate)
    return JobEstimate(
        workload=job.name,
        gpu_id=gpu.gpu_id,
        deployment=deployment_of(replica, batch),
        units_per_gpu_hour=rate,
        min_gpus=ceil(max(job.min_gpus, size) / size) * size,
        max_gpus=job.max_gpus,
        source=ESTIMATE_SOURCE,
        low_factor=THROUGHPUT_RANGE.low_factor,
        high_factor=THROUGHPUT_RANGE.high_factor,
        steps=(*memory_steps(replica, memory), *ceiling_steps(replica), *last),
    )
