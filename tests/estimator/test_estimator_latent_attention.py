"""Multi-head latent attention: parameters and the compressed cache of DeepSeek V2 and V3."""

import pytest

from catalog import load_catalog
from optimizer.estimator.architecture import (
    active_expert_parameters,
    counted_parameters,
    expert_parameters,
)
from optimizer.estimator.memory import kv_bytes_per_token, kv_replication

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [("deepseek-v3", 671.03e9, 37.55e9), ("deepseek-v2", 235.74e9, 21.4e9), ("deepseek-v2-lite", 15.706e9, 2.66e9)],
)
def test_published_sizes_are_counted_from_the_shape(name: str, total: float, active: float) -> None:
    """Compressed queries and keys, dense first layers and shared experts all count."""
    model = CATALOG.model(name)
    assert counted_parameters(model) == pytest.approx(total, rel=1e-4)
    met = counted_parameters(model) - expert_parameters(model) + active_expert_parameters(model)
    assert met == pytest.approx(active, rel=2e-3)


def test_dense_layers_have_no_experts() -> None:
    """58 of the 61 layers of DeepSeek V3 hold 256 experts of 3 · 7168 · 2048 parameters, 8 of them per token."""
    model = CATALOG.model("deepseek-v3")
    assert expert_parameters(model) == 58 * 256 * 3 * 7168 * 2048
    assert active_expert_parameters(model) == 58 * 8 * 3 * 7168 * 2048


def test_the_cache_is_the_latent_one() -> None:
    """DeepSeek V3 keeps 61 · (512 + 64) · 2 = 70 272 bytes per token; 128 full heads would be 57 times as much."""
    model = CATALOG.model("deepseek-v3")
    assert kv_bytes_per_token(model, "bf16") == 70_272
    assert kv_bytes_per_token(model, "fp8") == 35_136


def test_every_gpu_of_a_replica_holds_the_whole_latent_cache() -> None:
    """Tensor parallelism divides heads, and a latent has none; grouped heads are divided first."""
    assert kv_replication(CATALOG.model("deepseek-v3"), 8) == 8
    assert kv_replication(CATALOG.model("llama-3.1-70b"), 8) == 1
    assert kv_bytes_per_token(CATALOG.model("deepseek-v3"), "bf16", 8) == 8 * 70_272
