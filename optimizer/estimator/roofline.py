"""Time of one engine step of a replica: an additive roofline with collectives and overhead.

Sums, not the maximum of its terms: on published measurements the sum predicts better than the classic roofline
(Williams et al. 2009), because kernels of a step run one after the other. Notation: `M` tokens in a step (one per
running sequence plus the prompt tokens that share it), `n` = tensor × pipeline parallel GPUs.
"""

from dataclasses import dataclass

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.architecture import active_expert_parameters, matrix_parameters
from optimizer.estimator.constants import constant
from optimizer.estimator.memory import expert_weight_bytes, kv_bytes_per_token, tokens_held, weight_bytes
from optimizer.units import BYTES_PER_GB, FLOP_PER_TFLOP, MS_PER_S

_BYTES_ACTIVATION = 2
_US_PER_S = 1e6
_SWITCHED = ("nvlink", "infinity-fabric", "roce")
_BRIDGED_CARDS = 2


def half_precision_flop_per_s(gpu: Gpu) -> float:
    """Dense peak at 16 bits: bf16, or fp16 on cards without it (V100, T4)."""
    return (gpu.bf16_dense_tflop_per_s or gpu.fp16_dense_tflop_per_s or 0.0) * FLOP_PER_TFLOP


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a GPU multiplies weights of a format: the dense peak it is bound by and the share it keeps of it."""

    peak_flop_per_s: float
    share: float
    label: str


def kernel_for(gpu: Gpu, weights: str) -> Kernel | None:
    """Kernel for a weight format; None if the GPU has no unit for it.

    4-bit integers are unpacked to 16 bits (W4A16), and so are fp8 and fp4 where the GPU lacks them (Marlin kernels).
    """
    native = {"fp4": constant("fp4_kernel_share"), "int8": constant("int8_kernel_share")}
    peak = None if weights == "int4" else gpu.peak_tflop_per_s(weights)
    if peak is not None:
        return Kernel(peak * FLOP_PER_TFLOP, native.get(weights, 1.0), weights)
    if weights in {"int4", "fp8", "fp4"}:
        share = constant("weight_only_kernel_share")
        return Kernel(half_precision_flop_per_s(gpu), share, "weight-only, 16-bit products")
    return None


@dataclass(frozen=True, slots=True)
class Link:
    """What an all-reduce costs: a fixed time and a sustained rate, one way and per GPU."""

    kind: str
    latency_s: float
    bytes_per_s: float


def link_of(gpu: Gpu, tensor_parallel: int) -> Link:
    """Link between the GPUs of a replica; a bridge joins two cards, more of them meet over PCIe."""
    if gpu.link_kind in _SWITCHED or (gpu.link_kind == "nvlink-bridge" and tensor_parallel <= _BRIDGED_CARDS):
        return _link("nvlink", gpu.link_kind, gpu.link_gb_per_s)
    if gpu.link_kind == "none":
        return _link("staged", "pcie without peer-to-peer", gpu.link_gb_per_s or gpu.pcie_gb_per_s / 2)
    bridged = gpu.link_kind == "nvlink-bridge"
    return _link("pcie", "pcie", gpu.pcie_gb_per_s if bridged else gpu.link_gb_per_s or gpu.pcie_gb_per_s)


def _link(name: str, kind: str, gb_per_s: float) -> Link:
    sustained = gb_per_s * constant(f"{name}_share") * BYTES_PER_GB
    return Link(kind, constant(f"{name}_latency_us") / _US_PER_S, sustained)


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a model on `tensor_parallel × pipeline_parallel` GPUs: its sizes and sustained ceilings."""

    model: LlmArchitecture
    weights: str
    kv: str
    tensor_parallel: int
    pipeline_parallel: int
    dense_weight_bytes: float
    expert_weight_bytes: float
    dense_flop_per_token: float
    expert_flop_per_token: float
    kv_bytes_per_token: float
    gemm_flop_per_s: float
    attention_flop_per_s: float
    weight_bytes_per_s: float
    kv_bytes_per_s: float
    link: Link
    kernel: Kernel

    @property
    def gpus(self) -> int:
        """GPUs that hold the copy."""
        return self.tensor_parallel * self.pipeline_parallel


def replica_of(
    gpu: Gpu,
    model: LlmArchitecture,
    weights: str,
    kv: str,
    kernel: Kernel,
    tensor_parallel: int,
    pipeline_parallel: int = 1,
) -> Replica:
    """Sizes and ceilings of a replica."""
    gpus = tensor_parallel * pipeline_parallel
    experts = expert_weight_bytes(model, weights)
    expert_flop = 2 * active_expert_parameters(model)
    moe = constant("moe_kernel_share") if model.experts > 1 else 1.0
    bandwidth = gpus * gpu.memory_bandwidth_gb_per_s * BYTES_PER_GB
    return Replica(
        model=model,
        weights=weights,
        kv=kv,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        dense_weight_bytes=weight_bytes(model, weights) - experts,
        expert_weight_bytes=experts,
        dense_flop_per_token=max(0.0, 2 * matrix_parameters(model) - expert_flop),
        expert_flop_per_token=expert_flop,
        kv_bytes_per_token=kv_bytes_per_token(model, kv, tensor_parallel),
        gemm_flop_per_s=gpus * kernel.peak_flop_per_s * constant("gemm_compute_share") * kernel.share * moe,
        attention_flop_per_s=gpus * half_precision_flop_per_s(gpu) * constant("attention_compute_share"),
        weight_bytes_per_s=bandwidth * constant("gemm_bandwidth_share"),
        kv_bytes_per_s=bandwidth * constant("kv_bandwidth_share"),
        link=link_of(gpu, tensor_parallel),
        kernel=kernel,
    )


def share_of_experts_touched(model: LlmArchitecture, tokens: float) -> float:
    """Expected share of distinct experts that `tokens` tokens reach: 1 − (1 − k/E)^M (uniform routing)."""
    if model.experts <= 1:
        return 1.0
    return float(1 - (1 - model.experts_per_token / model.experts) ** tokens)


def touched_weight_bytes(replica: Replica, tokens: float) -> float:
    """Weight bytes that a step of `tokens` tokens reads."""
    return replica.dense_weight_bytes + replica.expert_weight_bytes * share_of_experts_touched(replica.model, tokens)


def gemm_flop(replica: Replica, tokens: float) -> float:
    """FLOP of a step's matrix products: 2 per active parameter and token, experts padded to whole tiles."""
    model = replica.model
    if model.experts <= 1:
        return (replica.dense_flop_per_token + replica.expert_flop_per_token) * tokens
    experts_hit = model.experts * share_of_experts_touched(model, tokens)
    padded = tokens + constant("expert_tile_padding_tokens") * experts_hit / model.experts_per_token
    return replica.dense_flop_per_token * tokens + replica.expert_flop_per_token * padded


def attention_flop(model: LlmArchitecture, prompt_tokens: float, prompt: float) -> float:
    """FLOP of prompt attention: QKᵀ and AV of `prompt_tokens` tokens over half of their prompt (causal)."""
    return prompt_tokens * 2 * model.layers * model.attention_heads * model.head_dim * prompt


def collective_seconds(replica: Replica, tokens: float) -> float:
    """Time of a stage's all-reduces: two per layer, ring over the tensor-parallel GPUs (Megatron-LM, 1909.08053)."""
    tp = replica.tensor_parallel
    if tp == 1:
        return 0.0
    message = tokens * replica.model.hidden_size * _BYTES_ACTIVATION
    one = replica.link.latency_s + 2 * (tp - 1) / tp * message / replica.link.bytes_per_s
    return 2 * replica.model.layers / replica.pipeline_parallel * one


def overhead_seconds(replica: Replica, sequences: float) -> float:
    """Time of a stage's step that no resource explains: engine loop, launches per layer, work per sequence."""
    stages = replica.pipeline_parallel
    return (
        constant("step_overhead_ms") / MS_PER_S / stages
        + constant("layer_overhead_us") / _US_PER_S * replica.model.layers / stages
        + constant("sequence_overhead_us") / _US_PER_S * sequences
    )


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step by the resource that sets the pace."""

    compute: float
    memory_bandwidth: float
    interconnect: float
    overhead: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.compute + self.memory_bandwidth + self.interconnect + self.overhead

    def scaled(self, factor: float) -> "StepTime":
        """All terms times `factor`."""
        return StepTime(
            self.compute * factor, self.memory_bandwidth * factor, self.interconnect * factor, self.overhead * factor
        )


def step_time(replica: Replica, sequences: float, prompt_tokens: float, context: float, prompt: float) -> StepTime:
    """Time in which each of `sequences` sequences (per stage) gets a token while `prompt_tokens` are processed too.

    `context` is the mean length of the running sequences, `prompt` the length of the prompts in the step.
    """
    tokens = sequences + prompt_tokens
    kv_bytes = sequences * tokens_held(replica.model, context) * replica.kv_bytes_per_token
    step = StepTime(
        compute=gemm_flop(replica, tokens) / replica.gemm_flop_per_s
        + attention_flop(replica.model, prompt_tokens, prompt) / replica.attention_flop_per_s,
        memory_bandwidth=touched_weight_bytes(replica, tokens) / replica.weight_bytes_per_s
        + kv_bytes / replica.kv_bytes_per_s,
        interconnect=collective_seconds(replica, tokens),
        overhead=overhead_seconds(replica, sequences),
    )
    return step.scaled(replica.pipeline_parallel)
