"""The chain of an estimate, figure by figure, as `explain` prints it."""

from collections.abc import Sequence

from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.estimator.inference import MIDDLE, OperatingPoint, Pessimism, RequestShape
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
from optimizer.estimator.types import ServiceEstimate, Stage
from optimizer.trace import Step
from optimizer.units import BYTES_PER_GB, MS_PER_S

_DOCS = "docs/estimator.md"
Inputs = tuple[tuple[str, float], ...]


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
    parts = (
        ("compute", seconds.compute),
        ("memory_bandwidth", seconds.memory_bandwidth),
        ("interconnect", seconds.interconnect),
        ("overhead", seconds.overhead),
    )
    steps.append(Step(f"r[{name}]", seconds.total, "replica-seconds/request", taken, parts, _DOCS))
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
