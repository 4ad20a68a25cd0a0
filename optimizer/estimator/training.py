"""Training and fine-tuning on a GPU type: time per token, MFU, least and most GPUs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.estimator.kernels import half_precision_flop_per_s
from optimizer.estimator.layouts import legal_tensor_parallel_sizes
from optimizer.estimator.training_memory import TrainingPlan, activation_bytes, required_bytes, trained_parameters
from optimizer.units import BYTES_PER_GB, FLOP_PER_TFLOP, MS_PER_S, SECONDS_PER_HOUR

LARGEST_JOB_GPUS = 32_768
GPUS_PER_BOARD = 8
SIZE_STEPS = (1, 8, 64, 512, 4_096, LARGEST_JOB_GPUS)
_HALF_PRECISION = ("bf16", "fp16")
_LOW_PRECISION = ("fp8", "fp4")
_FULL_PRECISION = ("fp32", "tf32")
_STEP_BYTES = 4.0
_PASSES_BYTES = 4.0
_LORA_SHARE = {"full": (6.0, 12.0), "lora": (4.0, 9.6), "qlora": (4.0, 9.6)}


def attention_width(plan: TrainingPlan) -> float:
    """Layers × width of the attention, the L·h of the attention term."""
    return plan.model.layers * plan.model.attention_heads * plan.model.head_dim


def matrix_flop_per_token(plan: TrainingPlan) -> float:
    """FLOP of the weights per trained token: 6N forward and backward, 4N where adapters leave them as they are.

    N counts the parameters a token passes through (Kaplan et al. 2020, arXiv 2001.08361, §2.1).
    """
    return _LORA_SHARE[plan.method][0] * plan.model.active_parameters


def attention_flop_per_token(plan: TrainingPlan) -> float:
    """FLOP of the attention per trained token: 12·L·h·s (9.6·L·h·s with adapters), the causal half not taken off."""
    return _LORA_SHARE[plan.method][1] * attention_width(plan) * plan.sequence


def model_flop_per_token(plan: TrainingPlan) -> float:
    """FLOP per trained token: 6N + 12·L·h·s (Narayanan et al. 2021, arXiv 2104.04473, Appendix); LoRA 4N + 9.6·L·h·s.

    s is the sequence; LoRA needs no weight gradients.
    """
    return matrix_flop_per_token(plan) + attention_flop_per_token(plan)


def recompute_flop_per_token(plan: TrainingPlan) -> float:
    """FLOP of repeating the forward pass under full recomputation: 1.27 · (2N + 4·L·h·s)."""
    return sum(_recomputed(plan))


def _recomputed(plan: TrainingPlan) -> tuple[float, float]:
    """Repeated FLOP of the weights and of the attention."""
    if plan.recompute != "full":
        return 0.0, 0.0
    share = constant("recompute_share")
    return share * 2 * plan.model.active_parameters, share * 4 * attention_width(plan) * plan.sequence


def sustained_peak_flop_per_s(gpu: Gpu) -> float:
    """16-bit dense peak, or what the memory bandwidth keeps fed if that is less: 312 FLOP per byte.

    Cards with less than 3.2 bytes/s per kFLOP/s (L40S, RTX 6000 Ada, L4, H100 PCIe) do not reach their sheet in
    matrix products; the rule is the same for all GPUs and holds for GPUs left out of the fit (docs/estimator.md).
    """
    fed = constant("training_flop_per_byte") * gpu.memory_bandwidth_gb_per_s * BYTES_PER_GB
    return min(half_precision_flop_per_s(gpu), fed)


def precision_speedup(gpu: Gpu, plan: TrainingPlan) -> float:
    """Speed of matrix products relative to 16 bits: (peak ÷ 16-bit peak)^0.78 for fp8 and fp4, by peaks for tf32, fp32.

    Mixtures of experts gain nothing from fp8 and fp4 (their grouped products wait for routing and for memory); QLoRA
    unpacks its weights for every product, at 0.68 of the speed.
    """
    if plan.method == "qlora":
        return constant("qlora_kernel_share")
    if plan.precision in _HALF_PRECISION or (plan.precision in _LOW_PRECISION and plan.model.experts > 1):
        return 1.0
    peak = (gpu.peak_tflop_per_s(plan.precision) or 0.0) * FLOP_PER_TFLOP
    ratio = peak / half_precision_flop_per_s(gpu)
    return ratio ** constant("low_precision_exponent") if plan.precision in _LOW_PRECISION else ratio


def sustained_share(plan: TrainingPlan, tensor_parallel: int) -> float:
    """Share of the sustained peak that a steady step reaches: by width per rank, experts and software stack."""
    width = plan.model.hidden_size / tensor_parallel
    share = constant("training_compute_share") * width / (width + constant("training_width_half"))
    if plan.model.experts > 1:
        share *= constant("training_moe_share")
    return share * constant(f"stack_{plan.stack}_share")


def whole_run_share(plan: TrainingPlan) -> float:
    """Productive share of the run: restarts, evaluation and checkpoints of a whole pre-training run, else 1."""
    return constant("real_run_share") if plan.whole_run else 1.0


def launch_seconds_per_token(plan: TrainingPlan, pipeline_parallel: int = 1, tensor_parallel: int = 1) -> float:
    """GPU-seconds of launches and synchronisation per token: 3.8 ms per layer and micro-batch, on each of its ranks."""
    tuned = constant("launch_tuned_share") if plan.stack == "tuned" else 1.0
    per_layer = constant("launch_ms_per_layer") / MS_PER_S
    tokens = plan.micro_batch_tokens / plan.context_parallel
    return per_layer * tuned * plan.model.layers * tensor_parallel / (pipeline_parallel * tokens)


def bubble_factor(pipeline_parallel: int, micro_batches: float) -> float:
    """Pipeline bubble: 1 + 0.58 · (pp − 1)/m (GPipe's (pp−1)/m, arXiv 1811.06965, part of it hidden)."""
    return 1 + constant("bubble_share") * (pipeline_parallel - 1) / micro_batches


def scale_factor(gpus: float) -> float:
    """Growth of the time per token with size: (GPUs ÷ 8)^0.065."""
    return float((gpus / GPUS_PER_BOARD) ** constant("scale_exponent"))


def compute_seconds_per_token(gpu: Gpu, plan: TrainingPlan, tensor_parallel: int) -> float:
    """Seconds of one GPU for the products of a token: weights at the precision's speed, attention slower in 16 bits."""
    repeated_matrix, repeated_attention = _recomputed(plan)
    speedup = precision_speedup(gpu, plan)
    attention_speed = speedup if plan.precision in _FULL_PRECISION else 1.0
    matrix = (matrix_flop_per_token(plan) + repeated_matrix) / speedup
    attention = (attention_flop_per_token(plan) + repeated_attention) / attention_speed
    work = matrix + attention / constant("training_attention_share")
    return work / (sustained_peak_flop_per_s(gpu) * sustained_share(plan, tensor_parallel))


def offload_seconds_per_token(gpu: Gpu, plan: TrainingPlan, tensor_parallel: int, copies: float) -> float:
    """Time per token over PCIe of what is kept in host memory (ZeRO-Offload, arXiv 2101.06840, §4: nothing hidden).

    Gradients out and weights back once per optimizer step (2 + 2 B per trained parameter); with all states also the
    weights for each pass (2 B, twice per micro-batch); activations out and back.
    """
    if plan.offload == "none":
        return 0.0
    rate = gpu.host_gb_per_s * BYTES_PER_GB
    if plan.offload == "activations":
        moved = 2 * activation_bytes(replace(plan, offload="none"), tensor_parallel)
        return moved / rate / plan.micro_batch_tokens
    ranks = tensor_parallel * (copies if plan.sharding != "none" else 1)
    moved = _STEP_BYTES * trained_parameters(plan) / plan.gradient_accumulation
    if plan.offload == "states":
        moved += _PASSES_BYTES * plan.model.parameters
    return moved / ranks / rate / plan.micro_batch_tokens


def gpu_seconds_per_token(
    gpu: Gpu,
    plan: TrainingPlan,
    tensor_parallel: int,
    gpus: float,
    pipeline_parallel: int = 1,
    micro_batches: float = 1.0,
) -> float:
    """Seconds of one GPU per trained token in a run on `gpus` GPUs.

    `micro_batches` pass through the pipeline in a step.
    """
    compute = compute_seconds_per_token(gpu, plan, tensor_parallel) / whole_run_share(plan)
    step = compute + launch_seconds_per_token(plan, pipeline_parallel, tensor_parallel)
    step += offload_seconds_per_token(gpu, plan, tensor_parallel, max(1.0, gpus / tensor_parallel / pipeline_parallel))
    return step * bubble_factor(pipeline_parallel, micro_batches) * scale_factor(gpus)


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
    """Most GPUs: at least the micro-batches of a step (gradient accumulation) per data-parallel rank."""
    if global_batch_tokens is None:
        return LARGEST_JOB_GPUS
    ranks = max(1, int(global_batch_tokens // (plan.micro_batch_tokens * plan.gradient_accumulation)))
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
