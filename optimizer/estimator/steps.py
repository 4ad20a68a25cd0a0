"""The chain of an estimate, figure by figure, as `explain` prints it."""

from collections.abc import Sequence

from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.estimator.inference import MIDDLE, OperatingPoint, Pessimism, RequestShape
from optimizer.estimator.kernels import half_precision_flop_per_s
from optimizer.estimator.memory import (
    ServingMemory,
    expert_weight_bytes,
    kv_replication,
    kv_value_bytes,
    weight_bytes,
)
from optimizer.estimator.roofline import Replica, StepTime
from optimizer.estimator.training import (
    Layout,
    compute_seconds_per_token,
    launch_seconds_per_token,
    model_flop_per_token,
    offload_seconds_per_token,
    precision_speedup,
    recompute_flop_per_token,
    sustained_peak_flop_per_s,
    sustained_share,
    whole_run_share,
)
from optimizer.estimator.training_memory import TrainingPlan, required_bytes
from optimizer.estimator.types import ServiceEstimate, Stage
from optimizer.trace import Step
from optimizer.units import BITS_PER_BYTE, BYTES_PER_GB, FLOP_PER_TFLOP, MS_PER_S, SECONDS_PER_HOUR

_DOCS = "docs/estimator.md"
Inputs = tuple[tuple[str, float], ...]


def memory_steps(replica: Replica, memory: ServingMemory) -> tuple[Step, ...]:
    """Weights, KV bytes per token and free memory of a replica."""
    weights, usable = memory.weight_bytes / BYTES_PER_GB, memory.usable_bytes / BYTES_PER_GB
    return (
        _weights_step(replica, weights),
        _kv_step(replica),
        Step(
            "free",
            memory.free_bytes / BYTES_PER_GB,
            "GB",
            f"usable ({constant('serving_memory_share'):g} of the memory of all GPUs) − W − workspace",
            (("usable", usable), ("W", weights), ("workspace", memory.workspace_bytes / BYTES_PER_GB)),
            _DOCS,
        ),
    )


def _weights_step(replica: Replica, weights_gb: float) -> Step:
    """Weights of the replica; data-parallel groups hold all but the routed experts once each."""
    model = replica.model
    once = weight_bytes(model, replica.weights, replica.mean_bits)
    inputs: Inputs = (("parameters", model.parameters), ("bits", once * BITS_PER_BYTE / model.parameters))
    if replica.data_parallel == 1:
        return Step("W", weights_gb, "GB", "parameters · bits ÷ 8", inputs, str(model.ref))
    dense = (once - expert_weight_bytes(model, replica.weights, replica.mean_bits)) / BYTES_PER_GB
    inputs = (*inputs, ("DP", replica.data_parallel), ("dense", dense))
    return Step("W", weights_gb, "GB", "parameters · bits ÷ 8 + (DP − 1) · dense", inputs, str(model.ref))


def _kv_step(replica: Replica) -> Step:
    model = replica.model
    if model.kv_lora_rank:
        formula = "layers · (kv_lora_rank + rope_head_dim) · bytes · copies"
        width = (("kv_lora_rank", model.kv_lora_rank), ("rope_head_dim", model.rope_head_dim))
    else:
        formula = "2 · layers · kv_heads · head_dim · bytes · copies"
        width = (("kv_heads", model.kv_heads), ("head_dim", model.head_dim))
    copies = (("bytes", kv_value_bytes(replica.kv)), ("copies", kv_replication(model, replica.tensor_parallel)))
    inputs = (("layers", model.layers), *width, *copies)
    return Step("k", replica.kv_bytes_per_token, "bytes/token", formula, inputs, str(model.ref))


def ceiling_steps(replica: Replica) -> tuple[Step, ...]:
    """Sustained compute and bandwidth of a replica; mixtures of experts compute slower."""
    moe = constant("moe_kernel_share") if replica.model.experts > 1 else 1.0
    bandwidth = replica.weight_bytes_per_s / (replica.gpus * constant("gemm_bandwidth_share"))
    return (
        Step(
            "C",
            replica.gemm_flop_per_s,
            "FLOP/s",
            f"GPUs · dense peak · share · kernel share ({replica.kernel.label}) · experts",
            (
                ("GPUs", replica.gpus),
                ("peak", replica.kernel.peak_flop_per_s),
                ("share", constant("gemm_compute_share")),
                ("kernel_share", replica.kernel.share),
                ("experts", moe),
            ),
            _DOCS,
        ),
        Step(
            "BW",
            replica.weight_bytes_per_s,
            "bytes/s",
            "GPUs · bandwidth · share",
            (("GPUs", replica.gpus), ("bandwidth", bandwidth), ("share", constant("gemm_bandwidth_share"))),
            _DOCS,
        ),
    )


_TIMES: dict[Stage, tuple[str, str, str]] = {
    "": (
        "prefill · (1 + φ(B−1)/2) + 0.2·TPOT + fixed",
        "one step at batch B",
        "max(residence ÷ B, output · step ÷ B) = compute + bandwidth + interconnect + overhead",
    ),
    "prefill": (
        "pass of B prompts + sending the KV cache + fixed",
        "",
        "max(pass ÷ B, sending) = compute + bandwidth + interconnect + overhead",
    ),
    "decode": (
        "",
        "one step at batch B without prompts",
        "max((sending + (output − 1) · step) ÷ B, sending) = compute + bandwidth + interconnect + overhead",
    ),
}
"""Formulas of TTFT, TPOT and replica time, by stage."""


def class_steps(
    shape: RequestShape, point: OperatingPoint, stage: Stage = "", pessimism: Pessimism = MIDDLE
) -> tuple[Step, ...]:
    """Batch, latency and replica time of a class; latencies are those held against the targets."""
    name, seconds = shape.name, point.seconds
    lengths = (("prompt", shape.prompt), ("output", shape.output))
    first, later, taken = _TIMES[stage]
    steps = [
        Step(f"B[{name}]", point.batch, "sequences", "largest within memory, engine cap and targets", lengths, _DOCS),
    ]
    if first:
        ttft = point.ttft_s * MS_PER_S
        steps.append(Step(f"TTFT[{name}]", ttft, "ms", *_at_high_end(first, lengths, pessimism.ttft), _DOCS))
    if later and point.tpot_s is not None:
        tpot = point.tpot_s * MS_PER_S
        steps.append(Step(f"TPOT[{name}]", tpot, "ms", *_at_high_end(later, (), pessimism.tpot), _DOCS))
    steps.append(Step(f"r[{name}]", seconds.total, "replica-seconds/request", taken, _parts(seconds), _DOCS))
    residence = seconds.total * point.batch * pessimism.residence
    steps.append(
        Step(
            f"cap[{name}]",
            point.utilisation_cap,
            "1",
            "largest ρ ≤ 0.95 with W(ρ) ≤ slack, W = S/(B(1−ρ)) · ln(ρ^(√(2(B+1))−1) ÷ late share)",
            (("B", point.batch), ("S", residence)),
            "Sakasegawa 1977; docs/estimator.md",
        )
    )
    return tuple(steps)


def batch_steps(
    shape: RequestShape, batch: float, seconds: StepTime, gpus: int, units_per_gpu_hour: float
) -> tuple[Step, ...]:
    """Batch, replica time of a request and yield of an offline batch; it has no latency targets."""
    name = shape.name
    lengths = (("prompt", shape.prompt), ("output", shape.output))
    taken = _SATURATED if shape.output else "a prompt alone = compute + bandwidth + interconnect + overhead"
    units = units_per_gpu_hour * seconds.total * gpus / SECONDS_PER_HOUR
    rate = (("units_per_request", units), ("GPUs", gpus))
    return (
        Step(f"B[{name}]", batch, "sequences", "largest within memory and engine cap", lengths, _DOCS),
        Step(f"r[{name}]", seconds.total, "replica-seconds/request", taken, _parts(seconds), _DOCS),
        Step("y", units_per_gpu_hour, "units/GPU-hour", "3600 · units per request ÷ (r · GPUs)", rate, _DOCS),
    )


_SATURATED = "output · step with B · prompt ÷ output prompt tokens ÷ B = compute + bandwidth + interconnect + overhead"


def _parts(seconds: StepTime) -> Inputs:
    return (
        ("compute", seconds.compute),
        ("memory_bandwidth", seconds.memory_bandwidth),
        ("interconnect", seconds.interconnect),
        ("overhead", seconds.overhead),
    )


def _at_high_end(formula: str, inputs: Inputs, factor: float) -> tuple[str, Inputs]:
    """A latency's formula, and the factor of its range where it is held against targets at the high end."""
    return (
        (formula, inputs)
        if factor == 1
        else (f"({formula}) · high end of the range", (*inputs, ("high_factor", factor)))
    )


def service_steps(
    replica: Replica,
    memory: ServingMemory,
    points: Sequence[tuple[RequestShape, OperatingPoint]],
    estimate: ServiceEstimate,
    pessimism: Pessimism = MIDDLE,
) -> tuple[Step, ...]:
    """Chain of a service estimate."""
    steps = [*memory_steps(replica, memory), *ceiling_steps(replica)]
    for shape, point in points:
        steps.extend(class_steps(shape, point, estimate.deployment.stage, pessimism))
    steps.append(
        Step("cap", estimate.utilisation_cap, "1", "largest cap of its classes; others are stretched", (), _DOCS)
    )
    return tuple(steps)


def training_steps(
    gpu: Gpu, plan: TrainingPlan, layout: Layout, gpus: int, tokens_per_hour: float, mfu: float
) -> tuple[Step, ...]:
    """Chain of a training estimate."""
    data_parallel = max(1, layout.least_gpus // layout.tensor_parallel)
    needed = required_bytes(plan, layout.tensor_parallel, data_parallel) / BYTES_PER_GB
    margin = (("margin", constant("training_memory_margin")), ("GPUs", layout.least_gpus))
    peak = (gpu.peak_tflop_per_s(plan.precision) or 0.0) * FLOP_PER_TFLOP
    per_token = (("time", SECONDS_PER_HOUR / tokens_per_hour), ("peak", peak), ("GPUs", gpus))
    return (
        *_flop_steps(plan),
        *_speed_steps(gpu, plan, layout),
        Step("memory", needed, "GB/GPU", "margin · prediction at the least GPUs", margin, _DOCS),
        Step("MFU", mfu, "1", "F ÷ time per token ÷ dense peak of the precision", per_token, str(gpu.ref)),
        _training_rate_step(gpu, plan, layout, gpus, tokens_per_hour),
    )


def _flop_steps(plan: TrainingPlan) -> tuple[Step, ...]:
    """FLOP per token, micro-batch and repeated FLOP; h is the width of the attention, heads times their width."""
    model, source = plan.model, str(plan.model.ref)
    formula = "6·N + 12·L·h·s" if plan.method == "full" else "4·N + 9.6·L·h·s"
    shape = (
        ("N", model.active_parameters),
        ("L", model.layers),
        ("h", model.attention_heads * model.head_dim),
        ("s", plan.sequence),
    )
    repeated = recompute_flop_per_token(plan)
    recompute = (("c", constant("recompute_share")), *shape) if repeated else ()
    again = "c · (2N + 4·L·h·s)" if repeated else "nothing is recomputed"
    return (
        Step("F", model_flop_per_token(plan), "FLOP/token", formula, shape, source),
        Step("b", plan.micro_batch, "sequences", "micro-batch: as given, else the largest that fits", (), _DOCS),
        Step("R", repeated, "FLOP/token", again, recompute, _DOCS),
    )


def _speed_steps(gpu: Gpu, plan: TrainingPlan, layout: Layout) -> tuple[Step, ...]:
    """Sustained peak, the share of it that is reached, the gain of the precision, the share of time that counts."""
    fed = (
        ("peak16", half_precision_flop_per_s(gpu)),
        ("bandwidth", gpu.memory_bandwidth_gb_per_s * BYTES_PER_GB),
        ("c", constant("training_flop_per_byte")),
    )
    width = (
        ("h", plan.model.hidden_size),
        ("tp", layout.tensor_parallel),
        ("e", constant("training_compute_share")),
        ("w", constant("training_width_half")),
        ("stack", constant(f"stack_{plan.stack}_share")),
        ("experts", constant("training_moe_share") if plan.model.experts > 1 else 1.0),
    )
    peak, share = sustained_peak_flop_per_s(gpu), sustained_share(plan, layout.tensor_parallel)
    return (
        Step("peak", peak, "FLOP/s", "min(16-bit dense peak, bandwidth · c)", fed, str(gpu.ref)),
        Step("eff", share, "1", "e · (h/tp)/(h/tp + w) · stack · experts", width, _DOCS),
        Step("S", precision_speedup(gpu, plan), "1", "speed of weight products relative to 16 bit", (), _DOCS),
        Step("run", whole_run_share(plan), "1", "productive share of a whole run (restarts, evaluation)", (), _DOCS),
    )


def _training_rate_step(gpu: Gpu, plan: TrainingPlan, layout: Layout, gpus: int, tokens_per_hour: float) -> Step:
    """Yield from seconds per token: products, launches and what goes to host memory, at the size of the run."""
    copies = max(1.0, gpus / layout.tensor_parallel)
    parts = (
        ("products", compute_seconds_per_token(gpu, plan, layout.tensor_parallel) / whole_run_share(plan)),
        ("launch", launch_seconds_per_token(plan, tensor_parallel=layout.tensor_parallel)),
        ("offload", offload_seconds_per_token(gpu, plan, layout.tensor_parallel, copies)),
        ("GPUs", gpus),
        ("a", constant("training_attention_share")),
        ("x", constant("scale_exponent")),
    )
    formula = (
        "3600 ÷ ((products + launch + offload) · (GPUs/8)^x), products = (weights ÷ S + attention ÷ a)/(peak·eff·run)"
    )
    return Step("y", tokens_per_hour, "tokens/GPU-hour", formula, parts, _DOCS)
