"""Experts spread over GPUs: legal layouts, memory, the busiest GPU, traffic by link, what it is good for."""

from math import log, sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog import load_catalog
from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.constants import constant
from optimizer.estimator.demands import demand_of
from optimizer.estimator.inference import batch_limit, decode_step, memory_of, prefill_time, request_shapes
from optimizer.estimator.jobs import analytic_batch
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.layouts import Layout, replica_layouts
from optimizer.estimator.memory import expert_weight_bytes, weight_bytes
from optimizer.estimator.roofline import (
    Replica,
    all_to_all_seconds,
    busiest_share_read,
    busiest_token_factor,
    collective_seconds,
    replica_of,
    step_time,
)
from optimizer.estimator.services import analytic_services
from optimizer.estimator.workloads import Batch, Service
from tests.estimator.builders import A100, H100, LLAMA_8B, MIXTRAL, RTX_4090

CATALOG = load_catalog()
DEEPSEEK = CATALOG.model("deepseek-v3")
B200 = CATALOG.gpu("B200-SXM")


def service(**settings: Any) -> Service:
    """A service of one class."""
    return Service.model_validate(
        {"name": "s", "kind": "service", "weights": "fp8", "tokens": {"input": 1000, "output": 500}, **settings}
    )


def copy(layout: Layout, gpu: Gpu = H100, model: LlmArchitecture = MIXTRAL, weights: str = "fp8") -> Replica:
    """A replica in a layout."""
    kernel = kernel_for(gpu, weights)
    assert kernel is not None
    return replica_of(gpu, model, weights, "fp16", kernel, *layout)


@settings(max_examples=60)
@given(
    st.sampled_from([MIXTRAL, LLAMA_8B, DEEPSEEK]),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.integers(1, 16), min_size=1, max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=2),
    st.one_of(st.none(), st.lists(st.integers(1, 16), min_size=1, max_size=4)),
)
def test_e07_every_layout_is_legal(
    model: LlmArchitecture, node: int, experts: list[int], stages: list[int], sizes: list[int] | None
) -> None:
    """Heads % tp = 0; KV heads divide or repeat; experts % ep = 0 and ep = tp · dp; a stage is a layer; fits a node."""
    wanted = service(expert_parallel=experts, pipeline_parallel=stages, gpus_per_replica=sizes)
    layouts = replica_layouts(wanted, model, node)
    assert len(layouts) == len(set(layouts))
    for layout in layouts:
        assert model.attention_heads % layout.tensor == 0
        assert model.kv_heads % layout.tensor == 0 or layout.tensor % model.kv_heads == 0
        assert layout.pipeline in stages
        assert layout.pipeline <= model.layers
        assert layout.gpus == layout.tensor * layout.data * layout.pipeline <= node
        assert layout.experts in experts
        assert sizes is None or layout.tensor * layout.data in sizes
        if layout.experts == 1:
            assert layout.data == 1
        else:
            assert model.experts > 1
            assert model.experts % layout.experts == 0
            assert layout.tensor * layout.data == layout.experts
    if 1 in experts and 1 in stages and (sizes is None or 1 in sizes):
        assert Layout() in layouts


def test_memory_of_groups() -> None:
    """Groups hold all but the experts once each, and share these; one group holds what tensor parallelism holds."""
    total, routed = weight_bytes(DEEPSEEK, "fp8"), expert_weight_bytes(DEEPSEEK, "fp8")
    held = {layout: memory_of(B200, copy(layout, B200, DEEPSEEK)).weight_bytes
            for layout in (Layout(8), Layout(8, 1, 1, 8), Layout(2, 1, 4, 8), Layout(1, 1, 8, 8))}  # fmt: skip
    assert list(held.values()) == pytest.approx(
        [total, total, routed + 4 * (total - routed), routed + 8 * (total - routed)]
    )


def test_a_latent_cache_is_not_repeated_by_groups() -> None:
    """Every GPU of a tensor-parallel group holds the latent cache whole: groups of one GPU have room for far more."""
    wanted = service()
    (shape,) = request_shapes(wanted)
    limits = []
    for layout in (Layout(8), Layout(1, 1, 8, 8)):
        replica = copy(layout, B200, DEEPSEEK)
        limits.append(batch_limit(B200, service(max_batch=10**6), memory_of(B200, replica), replica, shape))
    assert limits[1] > 4 * limits[0] > 0


@given(st.sampled_from([2, 4, 8]), st.floats(1, 1e5), st.floats(0, 1))
def test_the_busiest_gpu(ep: int, tokens: float, share: float) -> None:
    """It has no less than the mean and no more than all; chance evens out with the tokens, popularity does not."""
    replica = copy(Layout(1, 1, ep, ep))
    read = busiest_share_read(replica, share)
    assert share - 1e-12 <= read <= 1 + 1e-12
    popular = constant("expert_popularity_factor")
    factor = busiest_token_factor(replica, tokens)
    assert popular <= factor <= popular * ep * (1 + 1e-12)
    assert busiest_token_factor(replica, 2 * tokens) <= factor * (1 + 1e-12)
    assert busiest_token_factor(copy(Layout(ep)), tokens) == 1
    assert busiest_share_read(copy(Layout(ep)), share) == share


def test_the_busiest_gpu_by_simulation() -> None:
    """Random routing of 64 tokens to 2 of 8 experts on 4 GPUs: the mean of the largest load is met within 10 %."""
    import numpy as np

    generator = np.random.default_rng(7)
    tokens, ep = 64, 4
    largest = []
    for _ in range(4000):
        chosen = np.argsort(generator.random((tokens, 8)), axis=1)[:, :2]
        largest.append(np.bincount(chosen.ravel() // 2, minlength=ep).max() / (tokens * 2 / ep))
    chance = busiest_token_factor(copy(Layout(1, 1, ep, ep)), tokens) / constant("expert_popularity_factor")
    assert chance == pytest.approx(1 + sqrt(2 * log(ep)) / sqrt(tokens * 2 / ep))
    assert float(np.mean(largest)) <= chance <= 1.15 * float(np.mean(largest))


def test_traffic_to_experts_by_link() -> None:
    """Bytes per GPU by hand over NVLink; the same bytes take longer over PCIe and through host memory."""
    layout, tokens = Layout(1, 1, 8, 8), 512
    times = [all_to_all_seconds(copy(layout, gpu), tokens) for gpu in (H100, RTX_4090)]
    receivers = 7 * (1 - (1 - 1 / 8) ** 2)
    busiest = constant("expert_popularity_factor") * (1 + sqrt(2 * log(8)) / sqrt(512 * 2 / 8))
    by_hand = 5e-6 + 512 / 8 * receivers * 4096 * 2 * busiest / (450e9 * constant("nvlink_share"))
    assert times[0] == pytest.approx(by_hand)
    assert times[1] > 10 * times[0]
    stage = collective_seconds(copy(layout), tokens)
    assert stage == pytest.approx(32 * 2 * by_hand)


def test_one_group_sums_up_as_ever() -> None:
    """One tensor-parallel group has its tokens on all GPUs: two all-reduces per layer, experts spread or not."""
    assert collective_seconds(copy(Layout(8, 1, 1, 8)), 512) == collective_seconds(copy(Layout(8)), 512)


def test_a_lone_prompt_has_one_group() -> None:
    """Groups do not help each other with one prompt: it takes longer than where all GPUs share it."""
    apart, together = copy(Layout(1, 1, 8, 8)), copy(Layout(8))
    assert prefill_time(apart, 4000).compute > 3 * prefill_time(together, 4000).compute


@pytest.mark.parametrize("model", [MIXTRAL, DEEPSEEK], ids=lambda model: model.model_id)
def test_spread_experts_cost_at_a_small_batch_and_pay_at_a_large_one(model: LlmArchitecture) -> None:
    """Few tokens touch experts of few GPUs; many save the second all-reduce and (latent) caches held eight times."""
    (shape,) = request_shapes(service())
    step = {(layout, b): decode_step(copy(layout, B200, model), shape, b, 1.0).total
            for layout in (Layout(8), Layout(1, 1, 8, 8)) for b in (8, 1024)}  # fmt: skip
    slower = step[Layout(1, 1, 8, 8), 8] / step[Layout(8), 8]
    assert slower > step[Layout(1, 1, 8, 8), 1024] / step[Layout(8), 1024]
    assert slower > 1


def test_layouts_with_spread_experts_compete_and_the_dominated_are_named() -> None:
    """On B200, DeepSeek-V3 goes with a group per GPU; what is dropped says by whom it is beaten."""
    found, rejected = analytic_services(service(expert_parallel=[1, 8]), B200, DEEPSEEK, 8)
    assert "fp8 TP1 DP8 EP8" in {" ".join(e.deployment.label.split()[:4]) for e in found}
    dropped = [r for r in rejected if r.resource == "dominated"]
    assert any("EP8" in r.deployment for r in dropped)
    assert all(r.reason.startswith(("dominated by fp8", "not among")) for r in dropped)
    alone, _ = analytic_services(service(), B200, DEEPSEEK, 8)
    assert all(e.deployment.expert_parallel == e.deployment.data_parallel == 1 for e in alone)


@pytest.mark.parametrize(
    ("model", "settings_", "node", "words"),
    [
        (LLAMA_8B, {"expert_parallel": 4}, 8, "no experts to spread over 4 GPUs"),
        (MIXTRAL, {"expert_parallel": 3}, 8, "3 GPUs do not divide the 8 experts"),
        (MIXTRAL, {"expert_parallel": 8}, 4, "need a node of 8; the largest on offer has 4"),
        (MIXTRAL, {"expert_parallel": 4, "gpus_per_replica": 2}, 8, "need gpus_per_replica: 4"),
    ],
)
def test_sizes_that_cannot_be_are_refused_with_the_reason(
    model: LlmArchitecture, settings_: dict[str, Any], node: int, words: str
) -> None:
    """A dense model, a size that does not divide the experts, too small a node, sizes that contradict each other."""
    found, rejected = analytic_services(service(**settings_), H100, model, node)
    assert found == []
    assert any(words in r.reason and r.resource == "parallelism" for r in rejected)


def test_batches_may_spread_experts_too() -> None:
    """An offline batch with spread experts yields more per GPU where groups save repeated caches."""
    fields = {"name": "b", "kind": "batch", "weights": "fp8", "requests": {"count": 1e6, "input": 1000, "output": 500}}
    yields = []
    for spread in (1, [1, 8]):
        job = Batch.model_validate({**fields, "expert_parallel": spread})
        estimates, _ = analytic_batch(job, demand_of(job, None), B200, DEEPSEEK, 8)
        yields.append(max(e.units_per_gpu_hour for e in estimates))
    assert yields[1] > yields[0]


@given(st.floats(1, 2000), st.floats(0, 4000))
def test_dense_models_and_split_experts_know_no_groups(sequences: float, prompts: float) -> None:
    """Layouts without groups give what they gave: no factor for the busiest, no traffic to experts."""
    for model in (LLAMA_8B, MIXTRAL):
        plain = step_time(copy(Layout(4), A100, model, "fp16"), sequences, prompts, 1000, 2000)
        assert all(part >= 0 for part in (plain.compute, plain.memory_bandwidth, plain.interconnect, plain.overhead))
        assert plain.interconnect == pytest.approx(
            2 * 32 * (5e-6 + 2 * 3 / 4 * (sequences + prompts) * 4096 * 2 / (300e9 * constant("nvlink_share")))
        )
