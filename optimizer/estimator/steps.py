"""The chain of an estimate, figure by figure, as `explain` prints it."""

from collections.abc import Sequence

from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.estimator.inference import OperatingPoint, RequestShape
from optimizer.estimator.memory import ServingMemory
from optimizer.estimator.roofline import Replica
from optimizer.estimator.training import (
    Layout,
    model_flop_per_token,
    precision_speedup,
    recompute_flop_per_token,
    sustained_peak_flop_per_s,
    sustained_share,
    whole_run_share,
)
from optimizer.estimator.training_memory import TrainingPlan, required_bytes
from optimizer.estimator.types import ServiceEstimate
from optimizer.trace import Step
from optimizer.units import BYTES_PER_GB, MS_PER_S

_DOCS = "docs/estimator.md"


def memory_steps(replica: Replica, memory: ServingMemory) -> tuple[Step, ...]:
    """Weights, KV bytes per token and free memory of a replica."""
    model = replica.model
    weights, usable = memory.weight_bytes / BYTES_PER_GB, memory.usable_bytes / BYTES_PER_GB
    return (
        Step("W", weights, "GB", "parameters · bits ÷ 8", (("parameters", model.parameters),), str(model.ref)),
        _kv_step(replica),
        Step(
            "free",
            memory.free_bytes / BYTES_PER_GB,
            "GB",
            "0.93 · memory · GPUs − W − workspace",
            (("usable", usable), ("W", weights), ("workspace", memory.workspace_bytes / BYTES_PER_GB)),
            _DOCS,
        ),
    )


def _kv_step(replica: Replica) -> Step:
    model = replica.model
    if model.kv_lora_rank:
        formula = "layers · (kv_lora_rank + rope_head_dim) · bytes · copies"
        width = (("kv_lora_rank", model.kv_lora_rank), ("rope_head_dim", model.rope_head_dim))
    else:
        formula = "2 · layers · kv_heads · head_dim · bytes · copies"
        width = (("kv_heads", model.kv_heads), ("head_dim", model.head_dim))
    inputs = (("layers", model.layers), *width, ("tensor_parallel", replica.tensor_parallel))
    return Step("k", replica.kv_bytes_per_token, "bytes/token", formula, inputs, str(model.ref))


def ceiling_steps(replica: Replica) -> tuple[Step, ...]:
    """Sustained compute and bandwidth of a replica."""
    return (
        Step(
            "C",
            replica.gemm_flop_per_s,
            "FLOP/s",
            f"GPUs · dense peak · {constant('gemm_compute_share'):g} · kernel share ({replica.kernel.label})",
            (
                ("GPUs", replica.gpus),
                ("peak", replica.kernel.peak_flop_per_s),
                ("kernel_share", replica.kernel.share),
            ),
            _DOCS,
        ),
        Step(
            "BW",
            replica.weight_bytes_per_s,
            "bytes/s",
            f"GPUs · bandwidth · {constant('gemm_bandwidth_share'):g}",
            (("GPUs", replica.gpus), ("share", constant("gemm_bandwidth_share"))),
            _DOCS,
        ),
    )


def class_steps(shape: RequestShape, point: OperatingPoint) -> tuple[Step, ...]:
    """Batch, latency and replica time of a class."""
    name, seconds = shape.name, point.seconds
    lengths = (("prompt", shape.prompt), ("output", shape.output))
    steps = [
        Step(f"B[{name}]", point.batch, "sequences", "largest within memory, engine cap and targets", lengths, _DOCS),
        Step(
            f"TTFT[{name}]",
            point.ttft_s * MS_PER_S,
            "ms",
            "prefill · (1 + φ(B−1)/2) + 0.2·TPOT + fixed",
            lengths,
            _DOCS,
        ),
    ]
    if point.tpot_s is not None:
        steps.append(Step(f"TPOT[{name}]", point.tpot_s * MS_PER_S, "ms", "one step at batch B", (), _DOCS))
    steps.append(
        Step(
            f"r[{name}]",
            seconds.total,
            "replica-seconds/request",
            "max(residence ÷ B, output · step ÷ B) = compute + bandwidth + interconnect + overhead",
            (
                ("compute", seconds.compute),
                ("memory_bandwidth", seconds.memory_bandwidth),
                ("interconnect", seconds.interconnect),
                ("overhead", seconds.overhead),
            ),
            _DOCS,
        )
    )
    steps.append(
        Step(
            f"cap[{name}]",
            point.utilisation_cap,
            "1",
            "largest ρ ≤ 0.95 with W95(ρ) ≤ slack, W95 = S/(B(1−ρ)) · ln(ρ^(√(2(B+1))−1) ÷ 0.05)",
            (("B", point.batch), ("S", seconds.total * point.batch)),
            "Sakasegawa 1977; docs/estimator.md",
        )
    )
    return tuple(steps)


def service_steps(
    replica: Replica,
    memory: ServingMemory,
    points: Sequence[tuple[RequestShape, OperatingPoint]],
    estimate: ServiceEstimate,
) -> tuple[Step, ...]:
    """Chain of a service estimate."""
    steps = [*memory_steps(replica, memory), *ceiling_steps(replica)]
    for shape, point in points:
        steps.extend(class_steps(shape, point))
    steps.append(
        Step("cap", estimate.utilisation_cap, "1", "largest cap of its classes; others are stretched", (), _DOCS)
    )
    return tuple(steps)


def training_steps(
    gpu: Gpu, plan: TrainingPlan, layout: Layout, gpus: int, tokens_per_hour: float, mfu: float
) -> tuple[Step, ...]:
    """Chain of a training estimate."""
    flop = model_flop_per_token(plan)
    share = sustained_share(plan, layout.tensor_parallel)
    data_parallel = max(1, layout.least_gpus // layout.tensor_parallel)
    needed = required_bytes(plan, layout.tensor_parallel, data_parallel) / BYTES_PER_GB
    recompute = (("c", constant("recompute_share")),)
    fed = (("c", constant("training_flop_per_byte")),)
    margin = (("margin", constant("training_memory_margin")), ("GPUs", layout.least_gpus))
    width = (
        ("tp", layout.tensor_parallel),
        ("e", constant("training_compute_share")),
        ("w", constant("training_width_half")),
    )
    return (
        Step(
            "F",
            flop,
            "FLOP/token",
            "6·N + 12·L·h·s" if plan.method == "full" else "4·N + 9.6·L·h·s",
            (
                ("N", plan.model.active_parameters),
                ("L", plan.model.layers),
                ("h", plan.model.hidden_size),
                ("s", plan.sequence),
            ),
            str(plan.model.ref),
        ),
        Step("b", plan.micro_batch, "sequences", "micro-batch: as given, else the largest that fits", (), _DOCS),
        Step("R", recompute_flop_per_token(plan), "FLOP/token", "c · (2N + 4·L·h·s) if recomputed", recompute, _DOCS),
        Step(
            "peak", sustained_peak_flop_per_s(gpu), "FLOP/s", "min(16-bit dense peak, bandwidth · c)", fed, str(gpu.ref)
        ),
        Step("eff", share, "1", "e · (h/tp)/(h/tp + w) · stack · experts", width, _DOCS),
        Step("S", precision_speedup(gpu, plan), "1", "speed of weight products relative to 16 bit", (), _DOCS),
        Step("run", whole_run_share(plan), "1", "productive share of a whole run (restarts, evaluation)", (), _DOCS),
        Step("memory", needed, "GB/GPU", "margin · prediction at the least GPUs", margin, _DOCS),
        Step("MFU", mfu, "1", "F ÷ time per token ÷ dense peak", (("GPUs", gpus),), str(gpu.ref)),
        Step(
            "y",
            tokens_per_hour,
            "tokens/GPU-hour",
            "3600 ÷ (((weights ÷ S + attention ÷ a)/(peak·eff·run) + launch + offload) · (GPUs/8)^x)",
            (("a", constant("training_attention_share")), ("x", constant("scale_exponent"))),
            _DOCS,
        ),
    )
