"""Model shapes: the parameters that a shape implies are the parameters that are published."""

import pytest

from catalog import LlmArchitecture, load_catalog

CATALOG = load_catalog()


def parameters_of_shape(model: LlmArchitecture, *, tied: bool | None = None) -> int:
    """L(attention + feed-forward + 2h) + h + Vh (twice unless tied) + Ph; written apart from the estimator's count."""
    hidden, blocks = model.hidden_size, 3 if model.gated_ffn else 2
    dense = blocks * hidden * model.ffn_size
    expert = blocks * hidden * (model.expert_ffn_size or model.ffn_size)
    sparse = (model.experts + model.shared_experts) * expert + hidden * model.experts
    sparse_layers = model.layers - model.dense_layers if model.experts > 1 else 0
    feed_forward = sparse_layers * sparse + (model.layers - sparse_layers) * dense
    is_tied = model.tied_embeddings if tied is None else tied
    tables = model.vocabulary_size * (1 if is_tied else 2) + model.learned_positions
    return model.layers * (attention(model) + 2 * hidden) + feed_forward + hidden + tables * hidden


def attention(model: LlmArchitecture) -> int:
    """Matrices of one layer: of queries, keys, values and output, or of latent attention (arXiv 2405.04434)."""
    hidden, heads, width = model.hidden_size, model.attention_heads, model.head_dim
    if not model.kv_lora_rank:
        bias = (heads + 2 * model.kv_heads) * width if model.qkv_bias else 0
        return 2 * hidden * heads * width + 2 * hidden * model.kv_heads * width + bias
    without_position = width - model.rope_head_dim
    down = hidden * (model.kv_lora_rank + model.rope_head_dim) + model.kv_lora_rank
    up = model.kv_lora_rank * heads * (without_position + model.value_head_dim)
    queries = hidden * heads * width
    if model.q_lora_rank:
        queries = hidden * model.q_lora_rank + model.q_lora_rank + model.q_lora_rank * heads * width
    return queries + down + up + heads * model.value_head_dim * hidden


@pytest.mark.parametrize("model", CATALOG.models(), ids=lambda model: model.model_id)
def test_shape_gives_the_published_parameters(model: LlmArchitecture) -> None:
    """Within 0.1 % for every model, gated, plain or with experts (which add their router)."""
    assert parameters_of_shape(model) == pytest.approx(model.parameters, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("llama-2-7b", 6_738_415_616), ("qwen-72b", 72_287_920_128), ("llama-3.2-1b", 1_235_814_400)],
)
def test_gated_blocks_count_three_matrices(name: str, parameters: int) -> None:
    """Published counts to the digit; two matrices would give 5 033 164 800 for the first."""
    model = CATALOG.model(name)
    assert model.parameters == parameters == parameters_of_shape(model)


def test_tied_embeddings_count_once() -> None:
    """Llama 3.2 1B untied would have 1 498 482 688 parameters."""
    model = CATALOG.model("llama-3.2-1b")
    assert model.tied_embeddings
    assert parameters_of_shape(model, tied=False) == 1_498_482_688


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("mixtral-8x7b", 12.88e9),
        ("mixtral-8x22b", 39.15e9),
        ("qwen3-30b-a3b", 3.35e9),
        ("gpt-oss-120b", 5.13e9),
        ("deepseek-v3", 37.55e9),
        ("deepseek-v2", 21.4e9),
        ("qwen3-coder-480b-a35b", 35.47e9),
        ("llama-4-maverick", 17.2e9),
        ("dbrx", 36.5e9),
    ],
)
def test_active_parameters_are_those_of_the_chosen_experts(name: str, active: float) -> None:
    """Published active counts of mixture-of-experts models."""
    assert CATALOG.model(name).active_parameters == pytest.approx(active, rel=0.003)


def test_dense_models_use_all_parameters() -> None:
    """Active equals total exactly where there is one expert."""
    for model in CATALOG.models():
        assert (model.active_parameters == model.parameters) is (model.experts == 1), model.model_id


def test_llama_3_keeps_kv_cache_small() -> None:
    """8 key-value heads of 128: 131 072 bytes per token in bf16 for 32 layers, not 524 288 of all 32 heads."""
    model = CATALOG.model("llama-3-8b")
    assert 2 * model.layers * model.kv_heads * model.head_dim * 2 == 131_072


def test_head_width_is_not_always_hidden_over_heads() -> None:
    """Qwen3 32B: 64 heads of 128 on a hidden size of 5120."""
    model = CATALOG.model("qwen3-32b")
    assert model.attention_heads * model.head_dim != model.hidden_size


def test_windows_name_the_layers_they_cover() -> None:
    """gpt-oss alternates windowed and full layers; Mistral 7B v0.1 windows every layer, v0.2 none."""
    oss = CATALOG.model("gpt-oss-120b")
    assert (oss.sliding_window_tokens, oss.sliding_window_layers, oss.layers) == (128, 18, 36)
    assert CATALOG.model("mistral-7b-v0.1").sliding_window_layers == 32
    assert CATALOG.model("mistral-7b").sliding_window_tokens is None
    for model in CATALOG.models():
        assert bool(model.sliding_window_tokens) is bool(model.sliding_window_layers), model.model_id


def test_there_are_models_of_every_kind() -> None:
    """At least 50, among them mixtures of experts, latent attention, sliding windows and tied embeddings."""
    models = CATALOG.models()
    assert len(models) >= 50
    assert sum(model.experts > 1 for model in models) >= 10
    assert sum(model.kv_lora_rank > 0 for model in models) >= 4
    assert sum(model.sliding_window_layers > 0 for model in models) >= 8
    assert sum(model.tied_embeddings for model in models) >= 20


def test_deepseek_v3_is_its_published_size_to_the_digit() -> None:
    """671 026 404 352 of matrices and norms; the published 671 026 419 200 add the router's correction biases."""
    model = CATALOG.model("deepseek-ai/DeepSeek-V3")
    assert parameters_of_shape(model) == 671_026_404_352
    assert model.parameters - parameters_of_shape(model) == 58 * 256


def test_latent_attention_is_told_by_its_rank_alone() -> None:
    """Rotary part and value width come with it, and the heads are not grouped."""
    for model in CATALOG.models():
        latent = (model.kv_lora_rank, model.rope_head_dim, model.value_head_dim)
        assert all(latent) or not any(latent), model.model_id
        assert not model.kv_lora_rank or model.kv_heads == model.attention_heads
        assert not model.dense_layers or model.experts > 1
