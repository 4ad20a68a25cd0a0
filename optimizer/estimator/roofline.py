"""Time of one engine step of a replica: an additive roofline with collectives and overhead.

Sums, not the maximum of its terms: on published measurements the sum predicts better than the classic roofline
(Williams et al. 2009), because kernels of a step run one after the other. Notation: `M` tokens in a step (one per
running sequence plus the prompt tokens that share it), `n` = tensor × pipeline parallel GPUs.
"""

from dataclasses import dataclass
from math import log, sqrt

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.architecture import active_expert_parameters, looked_up_parameters
from optimizer.estimator.constants import constant
from optimizer.estimator.elementwise import larger, smaller
from optimizer.estimator.engines import Engine, default_engine
from optimizer.estimator.kernels import Kernel, Link, half_precision_flop_per_s, link_of
from optimizer.estimator.layouts import Layout
from optimizer.estimator.memory import (
    bits_per_weight,
    expert_weight_bytes,
    kv_bytes_per_token,
    looked_up_bytes,
    tokens_held,
    weight_bytes,
)
from optimizer.units import BITS_PER_BYTE, BYTES_PER_GB, FLOP_PER_TFLOP, MS_PER_S

_BYTES_ACTIVATION = 2
_US_PER_S = 1e6


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a model on `tensor_parallel × pipeline_parallel` GPUs: its sizes and sustained ceilings.

    `dense_weight_bytes` are read by every step (once per data-parallel group); the input table is not among them.
    `mean_bits`: mean bits of a weight, where a checkpoint's are known. `expert_spread` = √(2 ln ep): how far the
    busiest of `expert_parallel` GPUs lies above the mean, in standard deviations (largest of ep normal figures).
    Numbers may be arrays of the same length for all formulas of this module.
    """

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
    engine: Engine
    host_s_per_step: float
    vector_s_per_step: float
    mean_bits: float | None = None
    data_parallel: int = 1
    expert_parallel: int = 1
    expert_spread: float = 0.0
    spreads_experts: bool = False

    @property
    def gpus(self) -> int:
        """GPUs that hold the copy."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    @property
    def layout(self) -> Layout:
        """Its parallel sizes."""
        return Layout(self.tensor_parallel, self.pipeline_parallel, self.data_parallel, self.expert_parallel)


def replica_of(
    gpu: Gpu,
    model: LlmArchitecture,
    weights: str,
    kv: str,
    kernel: Kernel,
    tensor_parallel: int,
    pipeline_parallel: int = 1,
    data_parallel: int = 1,
    expert_parallel: int = 1,
    *,
    engine: Engine | None = None,
    mean_bits: float | None = None,
) -> Replica:
    """Sizes and ceilings of a replica; the engine is vLLM where none is given."""
    engine = engine or default_engine()
    gpus = tensor_parallel * pipeline_parallel * data_parallel
    experts = expert_weight_bytes(model, weights, mean_bits)
    expert_flop = 2 * active_expert_parameters(model)
    multiplied = model.active_parameters - looked_up_parameters(model)
    table = looked_up_bytes(model, weights, mean_bits)
    bandwidth = gpus * gpu.memory_bandwidth_gb_per_s * BYTES_PER_GB
    return Replica(
        model=model,
        weights=weights,
        kv=kv,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        dense_weight_bytes=data_parallel * max(0.0, weight_bytes(model, weights, mean_bits) - experts - table),
        expert_weight_bytes=experts,
        dense_flop_per_token=max(0.0, 2 * multiplied - expert_flop),
        expert_flop_per_token=expert_flop,
        kv_bytes_per_token=kv_bytes_per_token(model, kv, tensor_parallel),
        gemm_flop_per_s=gpus * _gemm_flop_per_s(gpu, model, kernel, engine),
        attention_flop_per_s=gpus * half_precision_flop_per_s(gpu) * constant("attention_compute_share"),
        weight_bytes_per_s=bandwidth * constant("gemm_bandwidth_share"),
        kv_bytes_per_s=bandwidth * constant("kv_bandwidth_share"),
        link=link_of(gpu),
        kernel=kernel,
        engine=engine,
        host_s_per_step=_host_s_per_layer(gpu, engine) * model.layers / pipeline_parallel,
        vector_s_per_step=_vector_seconds(gpu, model, mean_bits or bits_per_weight(weights), engine) / gpus,
        mean_bits=mean_bits,
        data_parallel=data_parallel,
        expert_parallel=expert_parallel,
        expert_spread=sqrt(2 * log(expert_parallel)),
        spreads_experts=expert_parallel > 1,
    )


def _gemm_flop_per_s(gpu: Gpu, model: LlmArchitecture, kernel: Kernel, engine: Engine) -> float:
    """Sustained rate of matrix products on one GPU.

    Engines with 16-bit accumulation run on that peak (GeForce cards have twice the other there).
    """
    moe = constant("moe_kernel_share") if model.experts > 1 else 1.0
    if engine.fp16_accumulation:
        peak = gpu.fp16_fp16acc_dense_tflop_per_s or gpu.fp16_dense_tflop_per_s or 0.0
        return (peak * FLOP_PER_TFLOP or kernel.peak_flop_per_s) * constant("accumulating_compute_share") * moe
    return kernel.peak_flop_per_s * constant("gemm_compute_share") * kernel.share * moe


def _host_s_per_layer(gpu: Gpu, engine: Engine) -> float:
    """Least time per layer that the host takes to launch a step, where a Python loop does it.

    Consumer cards stand in desktop hosts, which are five times slower. With each model left out of the fit in turn,
    the median error of the time per token on such cards is 13 %; without a figure of their own it would be 24 %. All
    of these rows are from one publication.
    """
    if not engine.host_loop:
        return 0.0
    return constant("host_layer_us_consumer" if gpu.consumer else "host_layer_us") / _US_PER_S


def _vector_seconds(gpu: Gpu, model: LlmArchitecture, bits: float, engine: Engine) -> float:
    """Time on the FP32 units in which a single-stream engine multiplies its vector by the weights.

    Matrix-vector kernels unpack and accumulate outside the tensor cores, so cards with few FP32 units for their
    bandwidth (A100, H100 PCIe) fall short of it. With the GPU left out of the fit the median error is 8 %, with the
    publication left out 9 % (docs/accuracy.md); without this term it was 16 %.
    """
    if not engine.single_stream or not gpu.fp32_tflop_per_s:
        return 0.0
    packed = bits < BITS_PER_BYTE
    operations = constant("vector_flop_per_packed_weight" if packed else "vector_flop_per_weight")
    return operations * model.active_parameters / (gpu.fp32_tflop_per_s * FLOP_PER_TFLOP)


def share_of_experts_touched(model: LlmArchitecture, tokens: float) -> float:
    """Expected share of distinct experts that `tokens` tokens reach: 1 − (1 − k/E)^M (uniform routing)."""
    if model.experts <= 1:
        return 1.0
    missed: float = (1 - model.experts_per_token / model.experts) ** tokens
    return 1 - missed


def share_touched_in_step(model: LlmArchitecture, sequences: float, prompt_tokens: float, prompt: float) -> float:
    """Mean share of experts that a step reaches when `prompt_tokens` per step come in bursts.

    Prompts arrive whole or in pieces of up to 2,048 tokens, so most steps only decode and reach few experts.
    """
    if model.experts <= 1:
        return 1.0
    burst = larger(prompt_tokens, smaller(prompt, constant("prompt_burst_tokens")))
    with_prompt = prompt_tokens / larger(burst, 1.0)
    alone, together = (share_of_experts_touched(model, tokens) for tokens in (sequences, sequences + burst))
    return (1 - with_prompt) * alone + with_prompt * together


def touched_weight_bytes(replica: Replica, sequences: float, prompt_tokens: float = 0.0, prompt: float = 0.0) -> float:
    """Weight bytes that a step of `sequences` running sequences and `prompt_tokens` prompt tokens reads."""
    share = share_touched_in_step(replica.model, sequences, prompt_tokens, prompt)
    return weight_bytes_read(replica, share, prompt_tokens)


def weight_bytes_read(replica: Replica, share: float, prompt_tokens: float) -> float:
    """Weight bytes of a step that reaches a `share` of the experts, read again for every piece of a long prompt."""
    busiest = busiest_share_read(replica, share)
    once = replica.dense_weight_bytes + replica.expert_weight_bytes * busiest
    piece = replica.engine.prompt_chunk_tokens
    return once if piece is None else once * larger(prompt_tokens / piece, 1.0)


def busiest_share_read(replica: Replica, share: float) -> float:
    """Share of its experts that the busiest GPU reads where all read `share` of theirs on average.

    Of m = E/ep experts on a GPU, those touched are binomial: mean m·q, variance m·q·(1−q).
    """
    if not replica.spreads_experts:
        return share
    experts_per_gpu = replica.model.experts / replica.expert_parallel
    deviation = (larger(share * (1 - share), 0.0) / experts_per_gpu) ** 0.5
    return smaller(1.0, share + replica.expert_spread * deviation)


def busiest_token_factor(replica: Replica, tokens: float) -> float:
    """Tokens of the busiest GPU of an expert-parallel stage ÷ mean: chance (Poisson), and popular experts.

    A GPU gets M·k/ep tokens on average, and no more than all M·k.
    """
    if not replica.spreads_experts:
        return 1.0
    ep = replica.expert_parallel
    mean = larger(tokens * replica.model.experts_per_token / ep, 1e-9)
    chance = smaller(1 + replica.expert_spread / mean**0.5, 1.0 * ep)
    return 1 + (ep > 1) * (chance * constant("expert_popularity_factor") - 1)


def gemm_flop(replica: Replica, tokens: float, share: float) -> float:
    """FLOP of a step's matrix products: 2 per active parameter and token, the `share` of experts touched padded."""
    model = replica.model
    if model.experts <= 1:
        return (replica.dense_flop_per_token + replica.expert_flop_per_token) * tokens
    experts_hit = model.experts * share
    padded = tokens + constant("expert_tile_padding_tokens") * experts_hit / model.experts_per_token
    routed = replica.expert_flop_per_token * padded * busiest_token_factor(replica, tokens)
    return replica.dense_flop_per_token * tokens + routed


def attention_flop(model: LlmArchitecture, prompt_tokens: float, prompt: float) -> float:
    """FLOP of prompt attention: QKᵀ and AV of `prompt_tokens` tokens over half of their prompt (causal)."""
    return prompt_tokens * 2 * model.layers * model.attention_heads * model.head_dim * prompt


def collective_seconds(replica: Replica, tokens: float) -> float:
    """Time of a stage's all-reduces: two per layer, ring over the tensor-parallel GPUs (Megatron-LM, 1909.08053).

    Where data-parallel groups share experts, tokens go to the experts and back instead of the second all-reduce of
    those layers; a single group has its tokens on all GPUs and sums up as ever.
    """
    tp, groups = replica.tensor_parallel, replica.data_parallel
    message = tokens / groups * replica.model.hidden_size * _BYTES_ACTIVATION
    one = (tp > 1) * replica.link.latency_s + 2 * (tp - 1) / tp * message / replica.link.bytes_per_s
    if not replica.spreads_experts:
        return 2 * replica.model.layers / replica.pipeline_parallel * one
    routed = (groups > 1) * (replica.model.layers - replica.model.dense_layers)
    reduced = (2 * replica.model.layers - routed) * one
    return (reduced + 2 * routed * all_to_all_seconds(replica, tokens)) / replica.pipeline_parallel


def all_to_all_seconds(replica: Replica, tokens: float) -> float:
    """Time in which every GPU of an expert-parallel stage sends its tokens to the GPUs that hold their experts.

    A GPU starts with M/ep tokens; k experts lie on (ep−1)·(1 − (1−1/ep)^k) other GPUs on average; each copy is h
    numbers of 16 bits (GShard, arXiv 2006.16668 §3.3). The busiest receiver sets the time.
    """
    ep, chosen = replica.expert_parallel, replica.model.experts_per_token
    receivers = (ep - 1) * (1 - (1 - 1 / ep) ** chosen)
    sent = tokens / ep * receivers * replica.model.hidden_size * _BYTES_ACTIVATION
    busiest = sent * busiest_token_factor(replica, tokens)
    return (ep > 1) * replica.link.latency_s + busiest / replica.link.bytes_per_s


def overhead_seconds(replica: Replica, sequences: float) -> float:
    """Time of a stage's step that no resource explains: engine loop, launches per layer, work per sequence.

    Single-stream engines have no loop to speak of; between pipeline stages activations are handed over.
    """
    stages = replica.pipeline_parallel
    loop_ms = 0.0 if replica.engine.single_stream else constant("step_overhead_ms") / stages
    hop_ms = (stages > 1) * constant("pipeline_hop_ms")
    return (
        (loop_ms + hop_ms) / MS_PER_S
        + constant("layer_overhead_us") / _US_PER_S * replica.model.layers / stages
        + constant("sequence_overhead_us") / _US_PER_S * sequences / replica.data_parallel
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


def step_time(
    replica: Replica, sequences: float, prompt_tokens: float, context: float, prompt: float, drafted: float = 0.0
) -> StepTime:
    """Time in which each of `sequences` sequences (per stage) gets a token while `prompt_tokens` are processed too.

    `context` is the mean length of the running sequences, `prompt` the length of the prompts in the step. `drafted`
    more tokens per sequence are checked in the same pass over weights and cache. The GPUs wait for the host where its
    launches take longer; a prompt alone is long enough to hide them.
    """
    decoded = sequences * (1 + drafted)
    tokens = decoded + prompt_tokens
    crowded = larger(sequences, replica.data_parallel * smaller(sequences, 1.0))  # a lone one has one group's GPUs
    kv_bytes = crowded * tokens_held(replica.model, context) * replica.kv_bytes_per_token
    share = share_touched_in_step(replica.model, decoded, prompt_tokens, prompt)
    compute = gemm_flop(replica, tokens, share) / replica.gemm_flop_per_s
    compute += attention_flop(replica.model, prompt_tokens, prompt) / replica.attention_flop_per_s
    compute += (prompt_tokens == 0) * replica.vector_s_per_step
    memory = weight_bytes_read(replica, share, prompt_tokens) / replica.weight_bytes_per_s
    memory += kv_bytes / replica.kv_bytes_per_s
    interconnect = collective_seconds(replica, tokens)
    overhead = overhead_seconds(replica, sequences)
    worked = compute + memory + interconnect + overhead
    waiting = larger((sequences > 0) * replica.host_s_per_step - worked, 0.0)
    return StepTime(compute, memory, interconnect, overhead + waiting).scaled(replica.pipeline_parallel)
