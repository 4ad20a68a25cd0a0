"""Cases with a known right answer, each from a mistake that somebody's tool made."""

import pytest

from catalog.load import load_catalog
from optimizer.estimator.architecture import architecture_of, counted_parameters, expert_parameters
from optimizer.estimator.inference import RequestShape, decode_step, prefill_time
from optimizer.estimator.kernels import kernel_for, link_of
from optimizer.estimator.layouts import legal_tensor_parallel_sizes
from optimizer.estimator.memory import kv_bytes_per_token, largest_batch_in_memory, serving_memory, weight_bytes
from optimizer.estimator.roofline import replica_of
from optimizer.estimator.sizing import gpus_for, whole_gpus
from optimizer.estimator.training import gpu_seconds_per_token, mfu_of, model_flop_per_token
from optimizer.estimator.training_memory import TrainingPlan, state_recipe, training_memory
from optimizer.estimator.workloads import InlineModel
from optimizer.model.entities import occupied_gpus
from tests.estimator.builders import A100, H100, H200, LLAMA_7B, LLAMA_70B, MIXTRAL, RTX_4090, gpu, model


def plan(**changes: object) -> TrainingPlan:
    settings: dict[str, object] = {
        "model": LLAMA_7B, "sequence": 4096, "micro_batch": 1, "precision": "bf16", "method": "full",
        "sharding": "zero3", "recompute": "none", "optimizer": "adamw", "stack": "typical",
    }  # fmt: skip
    return TrainingPlan(**(settings | changes))  # type: ignore[arg-type]


def test_kv_bytes_count_kv_heads_only() -> None:
    """28 layers, 4 KV heads of 128, 16-bit: 57,344 B per token, 0.164 GiB for 3,072 tokens (measured 0.16 GB)."""
    qwen = model(layers=28, hidden_size=3584, attention_heads=28, kv_heads=4)
    assert kv_bytes_per_token(qwen, "bf16") == 57_344
    assert kv_bytes_per_token(qwen, "bf16") * 3072 == 176_160_768


def test_kv_bytes_use_the_head_width_of_the_model_not_hidden_over_heads() -> None:
    """A model of hidden 2560, 32 heads of 128 and 8 KV heads holds 147,456 B per token, not 92,160."""
    assert kv_bytes_per_token(model(layers=36, hidden_size=2560, kv_heads=8), "fp16") == 147_456


def test_kv_heads_are_repeated_beyond_their_number() -> None:
    """80 layers, 8 KV heads at TP16 hold 40,960 B per token and GPU, not 20,480."""
    assert kv_bytes_per_token(LLAMA_70B, "bf16", 16) / 16 == 40_960


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        ({"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11_008, "vocabulary": 32_000}, 6_738_415_616),
        (
            {"layers": 80, "hidden": 8192, "heads": 64, "ffn": 24_576, "vocabulary": 152_064, "qkv_bias": True},
            72_287_920_128,
        ),
        (
            {
                "layers": 16, "hidden": 2048, "heads": 32, "kv_heads": 8, "ffn": 8192, "vocabulary": 128_256,
                "tied_embeddings": True,
            },
            1_235_814_400,
        ),
    ],
)  # fmt: skip
def test_parameters_of_a_gated_model_match_its_checkpoint(shape: dict[str, object], parameters: int) -> None:
    """Three feed-forward matrices, KV width by KV heads, tied tables once: exact to the parameter."""
    described = InlineModel.model_validate({"architecture": shape})
    assert architecture_of(described).parameters == parameters


def test_parameters_of_a_mixture_of_experts_match_its_checkpoint() -> None:
    """Mixtral 8x7B by shape: 46.7 billion in all, 12.9 per token."""
    shape = {
        "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14_336, "vocabulary": 32_000,
        "experts": 8, "experts_per_token": 2,
    }  # fmt: skip
    found = architecture_of(InlineModel.model_validate({"architecture": shape}))
    assert found.parameters == 46_702_792_704
    assert found.active_parameters == pytest.approx(12.88e9, rel=1e-3)
    assert counted_parameters(MIXTRAL) == MIXTRAL.parameters


@pytest.mark.parametrize(
    ("peak", "days", "gpus"),
    [(2e15, 90, 350), (2e15, 150, 210), (312e12, 90, 2241), (312e12, 150, 1345), (989.5e12, 90, 707)],
)
def test_gpu_counts_are_rounded_up_never_to_nearest(peak: float, days: float, gpus: int) -> None:
    """3e24 FLOP at MFU 0.552: rounding to nearest would miss the deadline."""
    assert gpus_for(3e24, peak * 0.552 * 3600, days * 24) == gpus


def test_gpu_counts_come_in_whole_nodes() -> None:
    """707 GPUs are 712 in nodes of 8."""
    assert gpus_for(3e24, 989.5e12 * 0.552 * 3600, 90 * 24, group=8) == 712


@pytest.mark.parametrize(("need", "each", "gpus"), [(2.1, 0.7, 3), (4.2, 0.7, 6), (0.1 + 0.2, 0.1, 3)])
def test_rounding_up_forgives_floating_point(need: float, each: float, gpus: int) -> None:
    """2.1 ÷ 0.7 is three GPUs, although the quotient is 3.0000000000000004."""
    assert whole_gpus(need / each) == gpus


def test_mfu_is_against_the_dense_peak() -> None:
    """7B, sequence 4096, 9,600 tokens/s per H100: 45.5 % of 989 TFLOP/s, not 22.8 % of the sparse figure."""
    assert model_flop_per_token(plan()) == pytest.approx(4.68729e10, rel=1e-5)
    assert mfu_of(H100, plan(), 1 / 9600) == pytest.approx(0.455, abs=5e-4)


def test_equal_dense_peaks_train_equally_fast() -> None:
    """H100 and H200 have one dense peak, so a compute-bound job takes the same time on both."""
    assert gpu_seconds_per_token(H100, plan(), 1, 8) == gpu_seconds_per_token(H200, plan(), 1, 8)


def test_sixteen_bytes_per_parameter_of_mixed_precision_adam() -> None:
    """70e9 parameters are 1,120e9 B of state: 14 GPUs of 80e9 B by state alone, 16 in nodes of 8."""
    state = 70e9 * state_recipe("bf16", "adamw").total
    assert state == 1120e9
    assert whole_gpus(state / 80e9) == 14
    assert whole_gpus(state / 80e9, group=8) == 16
    assert 6.7e9 * state_recipe("bf16", "adamw").total == pytest.approx(107.2e9)


def test_a_mixture_of_experts_is_held_by_its_total() -> None:
    """Mixtral in 16 bits is 93.4e9 B and does not fit 80e9 B, whatever is active per token."""
    assert weight_bytes(MIXTRAL, "bf16") == pytest.approx(93.4e9, rel=1e-3)
    assert serving_memory(gpu(memory_usable_bytes=80_000_000_000), MIXTRAL, "bf16", 1).free_bytes < 0


@pytest.mark.parametrize(
    ("heads", "kv_heads", "largest", "sizes"),
    [(40, 40, 6, (1, 2, 4, 5)), (40, 8, 6, (1, 2, 4)), (28, 4, 8, (1, 2, 4)), (32, 32, 3, (1, 2))],
)
def test_tensor_parallel_sizes_divide_the_heads(heads: int, kv_heads: int, largest: int, sizes: tuple[int]) -> None:
    """Engines refuse other sizes: 6 GPUs do not share 40 heads, 8 do not share 28, 3 do not share 32."""
    assert legal_tensor_parallel_sizes(model(attention_heads=heads, kv_heads=kv_heads), largest) == sizes


def test_one_stream_is_bound_by_bandwidth_over_weights() -> None:
    """70B in 16 bits on 4 × 3.35e12 B/s: one stream stays below 13.4e12 ÷ 141.1e9 = 94.96 tokens/s."""
    kernel = kernel_for(H100, "bf16")
    assert kernel is not None
    replica = replica_of(H100, LLAMA_70B, "bf16", "fp16", kernel, 4)
    assert 1 / decode_step(replica, RequestShape("all", 100, 100), 1, 0.0).total < 94.96


def test_four_bit_weights_of_70b_do_not_fit_one_24_gb_card() -> None:
    """70B at 4.25 bits with 16-bit embeddings is some 40 GB: two cards of 24 GB at least."""
    assert 35e9 < weight_bytes(LLAMA_70B, "int4") < 43e9


def test_an_encoder_request_costs_its_prefill() -> None:
    """A prompt's time covers at least 2 FLOP per parameter and token at the peak."""
    kernel = kernel_for(A100, "bf16")
    assert kernel is not None
    replica = replica_of(A100, LLAMA_7B, "bf16", "fp16", kernel, 1)
    assert prefill_time(replica, 2048).total > 2 * 6.738e9 * 2048 / 312e12


def test_e14_counted_parameters_match_the_published_totals() -> None:
    """Every model of the catalog: the count of its shape is within 0.1 % of the total that its publisher gives."""
    models = load_catalog().models()
    assert len(models) > 20
    for shape in models:
        assert counted_parameters(shape) == pytest.approx(shape.parameters, rel=1e-3), shape.model_id


def test_collectives_run_over_the_link_that_joins_the_cards() -> None:
    """NVLink where a switch joins all, PCIe alone or where a bridge could be, host memory without peer-to-peer."""
    bridged = gpu(link_kind="nvlink-bridge")
    assert [link_of(card).kind for card in (A100, bridged)] == ["nvlink", "pcie"]
    assert link_of(RTX_4090).kind == "pcie without peer-to-peer"
    own = gpu(link_kind="pcie", link_gb_per_s=50.0)
    assert link_of(own).bytes_per_s == 2 * link_of(bridged).bytes_per_s
    assert link_of(A100).bytes_per_s > link_of(own).bytes_per_s > link_of(RTX_4090).bytes_per_s


def test_a_tied_table_is_counted_once() -> None:
    """15 million parameters of a tied model, not the 24.4 million of a checkpoint that holds the table twice."""
    shape = {"layers": 6, "hidden": 288, "heads": 6, "ffn": 768, "vocabulary": 32_000, "tied_embeddings": True}
    found = architecture_of(InlineModel.model_validate({"architecture": shape}))
    assert found.parameters == 15_191_712 == 24_407_712 - 32_000 * 288


def test_mfu_of_a_published_rate_is_not_halved() -> None:
    """420 TFLOP/s on a card of 989.5 dense are 42.45 %, not the 21 % of the sparse peak."""
    card = gpu(bf16_dense_tflop_per_s=989.5)
    assert mfu_of(card, plan(), model_flop_per_token(plan()) / 420e12) == pytest.approx(0.4245, abs=5e-5)


@pytest.mark.parametrize(
    ("weights", "by_weights", "legal"), [(405_853_388_800, 6, 8), (700e9, 9, 16), (671e9, 9, 16), (80e9, 1, 1)]
)
def test_weights_need_whole_legal_groups_of_cards(weights: float, by_weights: int, legal: int) -> None:
    """405B at a byte each needs six cards of 80e9 B by weights, eight by powers of two; 700e9 B do not fit eight."""
    held = model(parameters=weights, attention_heads=128, kv_heads=128, hidden_size=16_384)
    assert weight_bytes(held, "fp8") == weights
    assert whole_gpus(weights / 80e9) == by_weights
    assert min(n for n in legal_tensor_parallel_sizes(held, 16) if n >= by_weights) == legal


def test_whole_requests_are_counted_down() -> None:
    """127,626 blocks of 16 tokens hold 997 requests of 2,048, not 997.08."""
    tokens = 127_626 * 16
    assert tokens == 2_042_016
    assert largest_batch_in_memory(tokens * 57_344, 2_048 * 57_344) == 997


@pytest.mark.parametrize(
    ("heads", "kv_heads", "gpus", "size", "replicas"), [(40, 8, 6, 2, 3), (28, 4, 8, 4, 2), (32, 32, 3, 2, 1)]
)
def test_gpus_that_no_group_may_use_together_hold_several_replicas(
    heads: int, kv_heads: int, gpus: int, size: int, replicas: int
) -> None:
    """B067, B068, B070: six GPUs share 40 heads as three pairs, eight share 28 as two fours, three keep one."""
    legal = legal_tensor_parallel_sizes(model(attention_heads=heads, kv_heads=kv_heads), gpus)
    assert size in legal
    assert gpus not in legal
    assert gpus // size == replicas
    assert occupied_gpus(size, gpus) == gpus / replicas


def test_tokens_in_ten_gibibytes() -> None:
    """B052: 147,456 B per token leave 72,817 tokens in 10 GiB, not 116,508."""
    wide = model(layers=36, hidden_size=2560, kv_heads=8)
    assert largest_batch_in_memory(10 * 2**30, kv_bytes_per_token(wide, "fp16")) == 72_817


def test_weights_are_no_faster_than_the_memory_that_holds_them() -> None:
    """B074: tokens/s of one stream ≤ bandwidth ÷ bytes read; experts that are not touched are not read."""
    kernel = kernel_for(A100, "bf16")
    assert kernel is not None
    replica = replica_of(A100, MIXTRAL, "bf16", "fp16", kernel, 2)
    read = replica.dense_weight_bytes + replica.expert_weight_bytes * 2 / 8
    rate = 1 / decode_step(replica, RequestShape("all", 100, 100), 1, 0.0).total
    assert rate < 2 * 2039e9 / read < 2 * 2039e9 / replica.dense_weight_bytes


def test_throughput_of_many_streams_is_no_multiple_of_one() -> None:
    """B076: 64 streams of 70B on four H100 give many times one stream's tokens/s, and less than 64 times."""
    kernel = kernel_for(H100, "bf16")
    assert kernel is not None
    replica = replica_of(H100, LLAMA_70B, "bf16", "fp16", kernel, 4)
    one, many = (b / decode_step(replica, RequestShape("all", 500, 200), b, 0.0).total for b in (1, 64))
    assert 20 * one < many < 64 * one


def test_experts_divide_by_expert_parallelism_and_the_rest_by_tensor_parallelism() -> None:
    """B064: 80e9 of experts at EP 4 and 10e9 else at TP 8 are 21.25e9 parameters per GPU, not 11.25e9."""
    found = InlineModel.model_validate({"architecture": {
        "layers": 10, "hidden": 1000, "heads": 8, "ffn": 1000, "vocabulary": 1000, "experts": 8,
        "expert_ffn": 333_333, "parameters": 90e9,
    }})  # fmt: skip
    shape = architecture_of(found)
    routed = expert_parameters(shape)
    assert routed == pytest.approx(80e9, rel=1e-5)
    held = training_memory(plan(model=shape, sharding="none", expert_parallel=4), 8, 1)["weights"] / 2
    assert held == pytest.approx((90e9 - routed) / 8 + routed / 4)
    assert held == pytest.approx(21.25e9, rel=1e-5)
