"""Counting a transformer's parameters from its shape: total, per token, embeddings, experts."""

from catalog.schema import LlmArchitecture, SourceRef
from optimizer.estimator.workloads import Architecture, InlineModel

FFN_MULTIPLE = 256


def attention_parameters(model: LlmArchitecture) -> float:
    """Parameters of one layer's attention: query and output (h·a·d each), key and value (h·k·d each), biases."""
    if model.kv_lora_rank:
        return _latent_attention_parameters(model)
    query = model.attention_heads * model.head_dim
    key_value = model.kv_heads * model.head_dim
    bias = query + 2 * key_value if model.qkv_bias else 0
    return 2 * model.hidden_size * query + 2 * model.hidden_size * key_value + bias


def _latent_attention_parameters(model: LlmArchitecture) -> float:
    """Parameters of one layer's multi-head latent attention (arXiv 2405.04434 §2.1; norms of the latents included).

    Queries h·r_q + r_q·a·d (h·a·d uncompressed), latent h·(r + d_rope), keys and values r·a·(d - d_rope + d_v),
    output a·d_v·h.
    """
    hidden, heads, latent = model.hidden_size, model.attention_heads, model.kv_lora_rank
    value = model.value_head_dim or model.head_dim
    query = heads * model.head_dim
    queries = model.q_lora_rank * (hidden + query + 1) if model.q_lora_rank else hidden * query
    keys_and_values = hidden * (latent + model.rope_head_dim) + latent
    keys_and_values += latent * heads * (model.head_dim - model.rope_head_dim + value)
    return queries + keys_and_values + heads * value * hidden


def feed_forward_parameters(model: LlmArchitecture, width: int) -> float:
    """Parameters of a feed-forward block of `width`: three matrices if gated (SwiGLU, arXiv 2002.05202), else two."""
    return (3 if model.gated_ffn else 2) * model.hidden_size * width


def expert_parameters(model: LlmArchitecture) -> float:
    """Parameters of all routed experts of all layers; 0 for a dense model."""
    if model.experts <= 1:
        return 0.0
    width = model.expert_ffn_size or model.ffn_size
    return (model.layers - model.dense_layers) * model.experts * feed_forward_parameters(model, width)


def embedding_parameters(model: LlmArchitecture) -> float:
    """Parameters of the token table and of the output head (one and the same if tied)."""
    return model.vocabulary_size * model.hidden_size * (1 if model.tied_embeddings else 2)


def counted_parameters(model: LlmArchitecture) -> float:
    """Total parameters by shape: L·(attention + feed-forward + 2h) + h + V·h (twice if untied) + P·h of positions.

    Mixture of experts: E feed-forward blocks, shared ones, and a router of h·E per layer, save in dense layers.
    """
    dense_layers = model.layers if model.experts <= 1 else model.dense_layers
    blocks = dense_layers * feed_forward_parameters(model, model.ffn_size)
    blocks += (model.layers - dense_layers) * _expert_layer_parameters(model)
    layers = model.layers * (attention_parameters(model) + 2 * model.hidden_size)
    positions = model.learned_positions * model.hidden_size
    return layers + blocks + model.hidden_size + embedding_parameters(model) + positions


def _expert_layer_parameters(model: LlmArchitecture) -> float:
    width = model.expert_ffn_size or model.ffn_size
    router = model.hidden_size * model.experts
    return (model.experts + model.shared_experts) * feed_forward_parameters(model, width) + router


def active_expert_parameters(model: LlmArchitecture) -> float:
    """Parameters of the routed experts that one token passes through."""
    return expert_parameters(model) * model.experts_per_token / max(model.experts, 1)


def looked_up_parameters(model: LlmArchitecture) -> float:
    """Parameters of the input table where it is not the head too: rows are looked up, not read or multiplied."""
    return 0.0 if model.tied_embeddings else float(model.vocabulary_size * model.hidden_size)


def default_ffn(hidden: int) -> int:
    """Width of a gated block with the parameters of a plain one of 4h: 8/3·h, to a multiple of 256 (LLaMA)."""
    return -(-8 * hidden // 3 // FFN_MULTIPLE) * FFN_MULTIPLE


def architecture_of(model: InlineModel) -> LlmArchitecture:
    """Record of a model that a problem file describes in place; parameters are counted where they are not given."""
    shape = model.architecture
    shaped = _from_shape(model.name, shape, 0.0, 0.0)
    total = shape.parameters or counted_parameters(shaped)
    active = shape.active_parameters or (
        total if shape.experts == 1 else total - expert_parameters(shaped) + active_expert_parameters(shaped)
    )
    return _from_shape(model.name, shape, total, min(max(active, 1.0), total))


def _from_shape(name: str, shape: Architecture, total: float, active: float) -> LlmArchitecture:
    ffn = shape.ffn or default_ffn(shape.hidden)
    windowed = shape.sliding_window_layers or shape.layers
    return LlmArchitecture(
        model_id=name,
        family="custom",
        parameters=total,
        active_parameters=active,
        layers=shape.layers,
        hidden_size=shape.hidden,
        attention_heads=shape.heads,
        kv_heads=shape.kv_heads or shape.heads,
        head_dim=shape.head_dim or shape.hidden // shape.heads,
        ffn_size=ffn,
        gated_ffn=shape.gated_ffn,
        vocabulary_size=shape.vocabulary,
        tied_embeddings=shape.tied_embeddings,
        qkv_bias=shape.qkv_bias,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        expert_ffn_size=(shape.expert_ffn or ffn) if shape.experts > 1 else 0,
        shared_experts=shape.shared_experts,
        sliding_window_tokens=shape.sliding_window,
        sliding_window_layers=windowed if shape.sliding_window else 0,
        max_context_tokens=shape.sequence,
        dense_layers=shape.dense_layers,
        learned_positions=shape.learned_positions,
        kv_lora_rank=shape.kv_lora_rank,
        q_lora_rank=shape.q_lora_rank,
        rope_head_dim=shape.rope_head_dim,
        value_head_dim=shape.value_head_dim,
        confidence="user",
        notes="",
        ref=SourceRef("problem file", 0, "buyer's description", None),
    )
