"""A model that the problem describes itself: the shape of a transformer."""

from optimizer.quantities import Count, CountOrZero, Model, Positive


class Architecture(Model):
    """Shape of a transformer, where the model catalog does not know the model."""

    layers: Count
    hidden: Count
    heads: Count
    """Attention (query) heads."""
    kv_heads: Count | None = None
    """Key-value heads (grouped-query attention); as many as heads by default."""
    head_dim: Count | None = None
    """Width of a head; hidden ÷ heads by default."""
    ffn: Count | None = None
    """Feed-forward width; a gated block of 8/3 × hidden (to a multiple of 256) by default."""
    gated_ffn: bool = True
    vocabulary: Count = 32_000
    tied_embeddings: bool = False
    qkv_bias: bool = False
    experts: Count = 1
    """Routed experts per layer; 1 is a dense model."""
    experts_per_token: Count = 1
    expert_ffn: Count | None = None
    """Feed-forward width of one expert; `ffn` by default."""
    shared_experts: CountOrZero = 0
    """Experts of that width that every token visits, beside the routed ones."""
    dense_layers: CountOrZero = 0
    """Layers without experts, in a model that has them; their block is `ffn` wide."""
    kv_lora_rank: CountOrZero = 0
    """Width of the compressed key-value cache (multi-head latent attention, as in DeepSeek V2); 0 without it.

    `head_dim` is then the width of queries and keys, its rotary part included.
    """
    q_lora_rank: CountOrZero = 0
    """Width of the compressed queries (latent attention)."""
    rope_head_dim: CountOrZero = 0
    """Rotary part of queries and keys, shared by the heads (latent attention)."""
    value_head_dim: CountOrZero = 0
    """Width of a value head, where it is not `head_dim` (latent attention)."""
    sliding_window: Count | None = None
    """Tokens that a layer with a sliding window sees."""
    sliding_window_layers: CountOrZero = 0
    """Layers with a sliding window; all of them where `sliding_window` is given and this is not."""
    learned_positions: CountOrZero = 0
    """Rows of a learned position table (GPT-2, OPT)."""
    sequence: Count | None = None
    """Training sequence length, where the job does not give one."""
    parameters: Positive | None = None
    """Total parameters where the shape does not give them (e.g. 33e9)."""
    active_parameters: Positive | None = None


class InlineModel(Model):
    """A model described in place."""

    architecture: Architecture
    name: str = "custom"
