"""Training and fine-tuning on a GPU type: time per token, MFU, least and most GPUs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.schema import Gpu
from optimizer.estimator.architecture import matrix_parameters
from optimizer.estimator.constants import constant
from optimizer.estimator.deployments import legal_tensor_parallel_sizes
from optimizer.estimator.roofline import half_precision_flop_per_s
from optimizer.estimator.training_memory import TrainingPlan, required_bytes
from optimizer.units import FLOP_PER_TFLOP, MS_PER_S, SECONDS_PER_HOUR

LARGEST_JOB_GPUS = 32_768
GPUS_PER_BOARD = 8
SIZE_STEPS = (1, 8, 64, 512, 4_096, LARGEST_JOB_GPUS)
_HALF_PRECISION = ("bf16", "fp16")
_LORA_SHARE = {"full": (6.0, 12.0), "lora": (4.0, 9.6), "qlora": (4.0, 9.6)}


def attention_width(plan: TrainingPlan) -> float:
    """Layers × width of the attention, the L·h of the attention term."""
    return plan.model.layers * plan.model.attention_heads * plan.model.head_dim


def model_flop_per_token(plan: TrainingPlan) -> float:
    """FLOP per trained token: 6N + 12·L·h·s (Narayanan et al. 2021, Appendix); LoRA needs no weight gradients: 4N.

    N counts the parameters a token passes through, s the sequence; causal attention is counted in full, as is usual.
    """
    weights, attention = _LORA_SHARE[plan.method]
    return weights * matrix_parameters(plan.model) + attention * attention_width(plan) * plan.sequence


def recompute_flop_per_token(plan: TrainingPlan) -> float:
    """FLOP of repeating the forward pass under full recomputation: 1.1 · (2N + 4·L·h·s)."""
    if plan.recompute != "full":
        return 0.0
    forward = 2 * matrix_parameters(plan.model) + 4 * attention_width(plan) * plan.sequence
    return constant("recompute_share") * forward


def precision_speedup(gpu: Gpu, plan: TrainingPlan) -> float:
    """Speed relative to 16 bits: measured factors for fp8 and fp4, the ratio of peaks for tf32 and fp32.

    Attention stays at 16 bits, so the gain obeys Amdahl's law: 1 ÷ ((1−g) + g/s), g the share of 6N.
    """
    if plan.precision in _HALF_PRECISION:
        return 1.0
    if plan.precision in {"fp32", "tf32"}:
        return (gpu.peak_tflop_per_s(plan.precision) or 0.0) * FLOP_PER_TFLOP / half_precision_flop_per_s(gpu)
    blackwell = "blackwell" in gpu.architecture.lower()
    name = "fp4_speedup" if plan.precision == "fp4" else "fp8_blackwell_speedup" if blackwell else "fp8_speedup"
    weights = _LORA_SHARE[plan.method][0] * matrix_parameters(plan.model)
    gemm = weights / model_flop_per_token(plan)
    return 1 / ((1 - gemm) + gemm / constant(name))


def sustained_share(plan: TrainingPlan, tensor_parallel: int) -> float:
    """Share of the 16-bit dense peak that is sustained: by width per rank, experts, stack and kind of run."""
    width = plan.model.hidden_size / tensor_parallel
    share = constant("training_compute_share") * width / (width + constant("training_width_half"))
    if plan.model.experts > 1:
        share *= constant("training_moe_share")
        if plan.precision in {"fp8", "fp4"}:
            share *= constant("training_moe_low_precision_share")
    share *= constant(f"stack_{plan.stack}_share")
    return share * (constant("real_run_share") if plan.whole_run else 1.0)


def launch_seconds_per_token(plan: TrainingPlan, pipeline_parallel: int = 1) -> float:
    """Launch and synchronisation time per token: 4.1 ms per layer and micro-batch."""
    tuned = constant("launch_tuned_share") if plan.stack == "tuned" else 1.0
    per_layer = constant("launch_ms_per_layer") / MS_PER_S
    return per_layer * tuned * plan.model.layers / (pipeline_parallel * plan.micro_batch_tokens)


def bubble_factor(pipeline_parallel: int, micro_batches: float) -> float:
    """Pipeline bubble: 1 + 0.455 · (pp − 1)/m (GPipe's (pp−1)/m, part of it hidden)."""
    return 1 + constant("bubble_share") * (pipeline_parallel - 1) / micro_batches


def scale_factor(gpus: float) -> float:
    """Growth of the time per token with size: (GPUs ÷ 8)^0.067."""
    return float((gpus / GPUS_PER_BOARD) ** constant("scale_exponent"))


def gpu_seconds_per_token(gpu: Gpu, plan: TrainingPlan, tensor_parallel: int, gpus: float) -> float:
    """Seconds of one GPU per trained token in a run on `gpus` GPUs."""
    flop = model_flop_per_token(plan) + recompute_flop_per_token(plan)
    sustained = half_precision_flop_per_s(gpu) * sustained_share(plan, tensor_parallel)
    compute = flop / (sustained * precision_speedup(gpu, plan))
    return (compute + launch_seconds_per_token(plan)) * bubble_factor(1, 1) * scale_factor(gpus)


def mfu_of(gpu: Gpu, plan: TrainingPlan, seconds_per_token: float) -> float:
    """Model FLOP utilisation: model FLOP ÷ time ÷ dense peak of the precision (PaLM, arXiv 2204.02311)."""
    peak = (gpu.peak_tflop_per_s(plan.precision) or 0.0) * FLOP_PER_TFLOP
    return model_flop_per_token(plan) / seconds_per_token / peak


def tokens_per_gpu_hour_at(gpu: Gpu, plan: TrainingPlan, mfu: float) -> float:
    """Tokens per GPU and hour at a given MFU."""
    peak = (gpu.peak_tflop_per_s(plan.precision) or 0.0) * FLOP_PER_TFLOP
    return mfu * peak / model_flop_per_token(plan) * SECONDS_PER_HOUR


def least_gpus_by_memory(gpu: Gpu, plan: TrainingPlan, tensor_parallel: int) -> int | None:
    """Fewest GPUs whose memory holds the run; None if sharding over any number does not help."""
    available = gpu.memory_usable_bytes
    low, high = 0, LARGEST_JOB_GPUS // tensor_parallel
    if required_bytes(plan, tensor_parallel, high) > available:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if required_bytes(plan, tensor_parallel, middle) > available:
            low = middle
        else:
            high = middle
    return high * tensor_parallel


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to spread a training run: tensor-parallel size, least and most GPUs."""

    tensor_parallel: int
    least_gpus: int
    most_gpus: int


def layout_for(gpu: Gpu, plan: TrainingPlan, largest_node: int, global_batch_tokens: float | None) -> Layout | None:
    """Smallest tensor-parallel size that fits in memory within the global batch (wider ranks compute faster)."""
    for tensor_parallel in legal_tensor_parallel_sizes(plan.model, largest_node):
        least = least_gpus_by_memory(gpu, plan, tensor_parallel)
        most = most_gpus_by_batch(plan, tensor_parallel, global_batch_tokens)
        if least is not None and least <= most:
            return Layout(tensor_parallel, least, most)
    return None


def largest_micro_batch(
    gpu: Gpu, plan: TrainingPlan, tensor_parallel: int, ranks: int, global_batch_tokens: float | None
) -> TrainingPlan:
    """Plan with the largest micro-batch (doubling) that fits in memory on `ranks` ranks and in the global batch."""
    most = constant("largest_micro_batch_tokens")
    if global_batch_tokens is not None:
        most = min(most, global_batch_tokens / ranks)
    best = plan
    while best.micro_batch_tokens * 2 <= most:
        larger = replace(best, micro_batch=best.micro_batch * 2)
        if required_bytes(larger, tensor_parallel, ranks) > gpu.memory_usable_bytes:
            break
        best = larger
    return best


def most_gpus_by_batch(plan: TrainingPlan, tensor_parallel: int, global_batch_tokens: float | None) -> int:
    """Most GPUs: one micro-batch per data-parallel rank and step."""
    if global_batch_tokens is None:
        return LARGEST_JOB_GPUS
    ranks = max(1, int(global_batch_tokens // plan.micro_batch_tokens))
    return min(LARGEST_JOB_GPUS, ranks * tensor_parallel)


def size_ranges(least: int, most: int, group: int, sensible: float) -> Iterator[tuple[int, int]]:
    """Ranges of GPU counts with one rate each, from `least` to `most` in multiples of `group`.

    Ranges that start beyond `sensible` GPUs are left out.
    """
    low = -(-least // group) * group
    for step in SIZE_STEPS:
        high = min(step, most) // group * group
        if high >= low:
            yield low, high
            low = high + group
        if low > most or low > sensible:
            return
