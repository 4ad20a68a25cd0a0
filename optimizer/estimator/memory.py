"""Memory of serving: weights, KV cache, workspace; what is left for sequences. All sizes in bytes."""

from dataclasses import dataclass

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.architecture import embedding_parameters, expert_parameters, looked_up_parameters
from optimizer.estimator.constants import constant
from optimizer.estimator.elementwise import smaller
from optimizer.units import BITS_PER_BYTE

_WHOLE_BITS = {"fp32": 32.0, "bf16": 16.0, "fp16": 16.0, "fp8": 8.0, "int8": 8.0}
_KV_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
_BYTES_16BIT = 2.0


def bits_per_weight(weights: str) -> float:
    """Bits of one weight in a format, scales included (int4: 4.25, fp4: 4.5)."""
    return _WHOLE_BITS[weights] if weights in _WHOLE_BITS else constant(f"{weights}_bits")


def weight_bytes(model: LlmArchitecture, weights: str, mean_bits: float | None = None) -> float:
    """Bytes of all weights: parameters × bits ÷ 8; 4-bit checkpoints leave embeddings and head at 16 bits.

    `mean_bits`, where it is known of a checkpoint, is the mean over all its weights, scales included.
    """
    if mean_bits is not None:
        return model.parameters * mean_bits / BITS_PER_BYTE
    bits = bits_per_weight(weights)
    if bits >= BITS_PER_BYTE:
        return model.parameters * bits / BITS_PER_BYTE
    embeddings = min(embedding_parameters(model), model.parameters)
    return (model.parameters - embeddings) * bits / BITS_PER_BYTE + embeddings * _BYTES_16BIT


def expert_weight_bytes(model: LlmArchitecture, weights: str, mean_bits: float | None = None) -> float:
    """Bytes of the routed experts' weights (0 for a dense model)."""
    return min(expert_parameters(model), model.parameters) * (mean_bits or bits_per_weight(weights)) / BITS_PER_BYTE


def looked_up_bytes(model: LlmArchitecture, weights: str, mean_bits: float | None = None) -> float:
    """Bytes of the input table that no step reads, save for a row per token."""
    bits = mean_bits or bits_per_weight(weights)
    return looked_up_parameters(model) * (bits if mean_bits or bits >= BITS_PER_BYTE else 16.0) / BITS_PER_BYTE


def kv_value_bytes(kv: str) -> float:
    """Bytes of one value in the KV cache."""
    return _KV_BYTES[kv]


def kv_replication(model: LlmArchitecture, tensor_parallel: int) -> float:
    """Copies of the KV cache: 1 while tensor parallelism divides the KV heads, tp ÷ heads beyond (heads repeated).

    A latent cache (MLA) has no heads to divide: every GPU of a replica holds it whole.
    """
    if model.kv_lora_rank:
        return float(tensor_parallel)
    return max(1.0, tensor_parallel / model.kv_heads)


def kv_bytes_per_token(model: LlmArchitecture, kv: str, tensor_parallel: int = 1) -> float:
    """KV bytes of a token over the whole replica: 2 · layers · kv_heads · head_dim · bytes (GQA, arXiv 2305.13245).

    Multi-head latent attention keeps layers · (kv_lora_rank + rope_head_dim) · bytes (arXiv 2405.04434 §2.1.4).
    """
    width = model.kv_lora_rank + model.rope_head_dim if model.kv_lora_rank else 2 * model.kv_heads * model.head_dim
    one_copy = model.layers * width * kv_value_bytes(kv)
    return one_copy * kv_replication(model, tensor_parallel)


def tokens_held(model: LlmArchitecture, tokens: float) -> float:
    """Tokens in the KV cache of a sequence, mean over layers: layers with a sliding window hold no more than it."""
    if model.sliding_window_tokens is None or not model.sliding_window_layers:
        return tokens
    windowed = model.sliding_window_layers / model.layers
    return (1 - windowed) * tokens + windowed * smaller(tokens, model.sliding_window_tokens)


def kv_bytes_per_sequence(model: LlmArchitecture, kv: str, tensor_parallel: int, prompt: float, output: float) -> float:
    """KV bytes of a running sequence: its prompt and 85 % of its output (vLLM's paged cache grows as it writes)."""
    tokens = prompt + constant("kv_occupancy_share") * output
    return kv_bytes_per_token(model, kv, tensor_parallel) * max(tokens_held(model, tokens), 1.0)


@dataclass(frozen=True, slots=True)
class ServingMemory:
    """Where a replica's memory goes, over all its GPUs."""

    usable_bytes: float
    weight_bytes: float
    workspace_bytes: float

    @property
    def free_bytes(self) -> float:
        """Left for the KV cache; negative if the weights alone do not fit."""
        return self.usable_bytes - self.weight_bytes - self.workspace_bytes


def serving_memory(
    gpu: Gpu,
    model: LlmArchitecture,
    weights: str,
    gpus_per_replica: int,
    mean_bits: float | None = None,
    groups: int = 1,
) -> ServingMemory:
    """Memory of a replica on `gpus_per_replica` GPUs, of which an engine fills 93 %.

    Each of `groups` data-parallel groups holds all weights but the routed experts, which they share.
    """
    once = weight_bytes(model, weights, mean_bits)
    repeated = (groups - 1) * max(0.0, once - expert_weight_bytes(model, weights, mean_bits))
    return ServingMemory(
        usable_bytes=constant("serving_memory_share") * gpu.memory_usable_bytes * gpus_per_replica,
        weight_bytes=once + repeated,
        workspace_bytes=constant("serving_workspace_bytes") * gpus_per_replica,
    )


def largest_batch_in_memory(free_bytes: float, sequence_bytes: float) -> int:
    """Whole sequences whose KV cache fits."""
    return max(0, int(free_bytes // sequence_bytes))
