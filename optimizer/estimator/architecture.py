"""Counting a transformer's parameters from its shape: total, per token, embeddings, experts."""

from catalog.schema import LlmArchitecture, SourceRef
from optimizer.estimator.workloads import Architecture, InlineModel

FFN_MULTIPLE = 256


def attention_parameters(model: LlmArchitecture) -> float:
    """Parameters of one layer's attention: query and output (h·a·d each), key and value (h·k·d each), biases."""
    query = model.attention_heads * model.head_dim
    key_value = model.kv_heads * model.head_dim
    bias = query + 2 * key_value if model.qkv_bias else 0
    return 2 * model.hidden_size * query + 2 * model.hidden_size * key_value + bias


def feed_forward_parameters(model: LlmArchitecture, width: int) -> float:
    """Parameters of a feed-forward block of `width`: three matrices if gated (SwiGLU, arXiv 2002.05202), else two."""
    return (3 if model.gated_ffn else 2) * model.hidden_size * width


def expert_parameters(model: LlmArchitecture) -> float:
    """Parameters of all routed experts of all layers; 0 for a dense model."""
    if model.experts <= 1:
        return 0.0
    return model.layers * model.experts * feed_forward_parameters(model, model.expert_ffn_size or model.ffn_size)


def embedding_parameters(model: LlmArchitecture) -> float:
    """Parameters of the token table and of the output head (one and the same if tied)."""
    return model.vocabulary_size * model.hidden_size * (1 if model.tied_embeddings else 2)


def counted_parameters(model: LlmArchitecture) -> float:
    """Total parameters by shape: L·(attention + feed-forward + 2h) + h + V·h (twice if untied).

    Mixture of experts: E feed-forward blocks, shared ones, and a router of h·E per layer.
    """
    if model.experts > 1:
        width = model.expert_ffn_size or model.ffn_size
        blocks = model.experts + model.shared_experts
        feed_forward = blocks * feed_forward_parameters(model, width) + model.hidden_size * model.experts
    else:
        feed_forward = feed_forward_parameters(model, model.ffn_size)
    layer = attention_parameters(model) + feed_forward + 2 * model.hidden_size
    return model.layers * layer + model.hidden_size + embedding_parameters(model)


def active_expert_parameters(model: LlmArchitecture) -> float:
    """Parameters of the routed experts that one token passes through."""
    return expert_parameters(model) * model.experts_per_token / max(model.experts, 1)


def counted_active_parameters(model: LlmArchitecture) -> float:
    """Parameters that one token passes through, by shape."""
    return counted_parameters(model) - expert_parameters(model) + active_expert_parameters(model)


def matrix_parameters(model: LlmArchitecture) -> float:
    """Parameters that multiply per token (2 FLOP each): the active ones, a tied table also as head."""
    tied = model.vocabulary_size * model.hidden_size if model.tied_embeddings else 0
    return model.active_parameters + tied


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
        expert_ffn_size=ffn if shape.experts > 1 else 0,
        shared_experts=0,
        sliding_window_tokens=None,
        max_context_tokens=shape.sequence,
        confidence="user",
        notes="",
        ref=SourceRef("problem file", 0, "buyer's description", None),
    )
