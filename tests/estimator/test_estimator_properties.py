"""Properties that hold for any model and GPU (invariants of estimators), on generated cases."""

import itertools
from dataclasses import dataclass, replace
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.schema import Gpu, LlmArchitecture
from optimizer.estimator.architecture import counted_parameters, expert_parameters, looked_up_parameters
from optimizer.estimator.constants import constant
from optimizer.estimator.inference import (
    OperatingPoint,
    RequestShape,
    batch_limit,
    decode_step,
    flop_per_request,
    operating_point,
    saturated_seconds,
)
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.layouts import legal_tensor_parallel_sizes
from optimizer.estimator.memory import (
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    largest_batch_in_memory,
    serving_memory,
    tokens_held,
    weight_bytes,
)
from optimizer.estimator.queueing import waiting_percentile_s
from optimizer.estimator.roofline import Replica, replica_of
from optimizer.estimator.sizing import gpus_for
from optimizer.estimator.stages import prefill_point
from optimizer.estimator.training import gpu_seconds_per_token, mfu_of, model_flop_per_token
from optimizer.estimator.training_memory import TrainingPlan, training_memory
from optimizer.quantities import BYTES
from tests.estimator.builders import A100, H100, H200, MIXTRAL, RTX_4090, model


@dataclass(frozen=True)
class Asked:
    """A workload that leaves the batch to the engine, or says it."""

    max_batch: int | None


few = settings(max_examples=30, deadline=None)

HEADS = st.sampled_from([(8, 8), (16, 4), (32, 8), (40, 8), (64, 8), (28, 4), (12, 2)])
CARDS = st.sampled_from([A100, H100, H200, RTX_4090])
FORMATS = st.sampled_from(["bf16", "fp8", "int8", "int4"])


@st.composite
def models(draw: st.DrawFn) -> LlmArchitecture:
    """A dense model or a mixture of experts whose parameters are counted from its shape."""
    heads, kv_heads = draw(HEADS)
    hidden = heads * 128
    shape = model(
        layers=draw(st.integers(4, 80)),
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=kv_heads,
        ffn_size=draw(st.sampled_from([2, 3, 4])) * hidden,
        vocabulary_size=draw(st.integers(1000, 150_000)),
    )
    if draw(st.booleans()):
        shape = replace(shape, experts=8, experts_per_token=2, expert_ffn_size=shape.ffn_size)
    total = counted_parameters(shape)
    active = total - expert_parameters(shape) * (1 - shape.experts_per_token / shape.experts)
    return replace(shape, parameters=total, active_parameters=active)


LENGTHS = st.builds(RequestShape, st.just("all"), st.integers(1, 8000), st.integers(1, 2000))


def plan_of(shape: LlmArchitecture, **changes: object) -> TrainingPlan:
    plan = TrainingPlan(shape, 2048, 1, "bf16", "full", "zero3", "none", "adamw", "typical")
    return replace(plan, **changes)  # type: ignore[arg-type]


def on(card: Gpu, shape: LlmArchitecture, weights: str = "bf16", size: int = 1) -> Replica:
    kernel = kernel_for(card, weights)
    assert kernel is not None
    return replica_of(card, shape, weights, "fp16", kernel, size)


@few
@given(models(), st.integers(1, 10), st.sampled_from([512, 4096, 32_768]))
def test_e01_training_flop_grow_with_active_parameters(shape: LlmArchitecture, times: int, sequence: int) -> None:
    """FLOP per token do not depend on the number of tokens, and grow with the active parameters."""
    plan = plan_of(shape, sequence=sequence)
    larger = plan_of(replace(shape, active_parameters=shape.active_parameters * (1 + times)), sequence=sequence)
    assert model_flop_per_token(larger) > model_flop_per_token(plan) >= 6 * shape.active_parameters


@few
@given(models())
def test_e02_halving_the_bits_halves_the_weights(shape: LlmArchitecture) -> None:
    """16 → 8 bits halves exactly; 4-bit formats keep scales and 16-bit embeddings, so they stay above a quarter."""
    assert weight_bytes(shape, "fp8") * 2 == weight_bytes(shape, "bf16") == shape.parameters * 2
    assert weight_bytes(shape, "bf16") / 4 < weight_bytes(shape, "int4") < weight_bytes(shape, "bf16")


@few
@given(models(), FORMATS)
def test_e03_weight_formats_leave_the_kv_cache_alone(shape: LlmArchitecture, weights: str) -> None:
    """KV bytes depend on the KV format only."""
    assert on(H100, shape, weights).kv_bytes_per_token == on(H100, shape).kv_bytes_per_token


@few
@given(models(), st.integers(2, 5))
def test_e04_kv_bytes_are_linear(shape: LlmArchitecture, times: int) -> None:
    """KV bytes scale with layers, KV heads, head width and bytes."""
    one = kv_bytes_per_token(shape, "fp16")
    assert kv_bytes_per_token(replace(shape, layers=shape.layers * times), "fp16") == one * times
    assert kv_bytes_per_token(replace(shape, kv_heads=shape.kv_heads * times), "fp16") == one * times
    assert kv_bytes_per_token(replace(shape, head_dim=shape.head_dim * times), "fp16") == one * times
    assert kv_bytes_per_token(shape, "fp8") * 2 == one


@few
@given(models(), st.integers(1, 100_000))
def test_e04_a_sliding_window_caps_what_its_layers_hold(shape: LlmArchitecture, tokens: int) -> None:
    """Layers with a window hold no more than it; without one, all tokens are held."""
    windowed = replace(shape, sliding_window_tokens=1024, sliding_window_layers=shape.layers)
    assert tokens_held(windowed, tokens) == min(tokens, 1024)
    assert tokens_held(shape, tokens) == tokens


def serving_bytes_per_gpu(
    model: LlmArchitecture, weights: str, kv: str, tensor_parallel: int, batch: float, context: float
) -> float:
    """Memory that one GPU of a replica fills with `batch` sequences of `context` tokens."""
    cache = kv_bytes_per_token(model, kv, tensor_parallel) * batch * tokens_held(model, context)
    return (weight_bytes(model, weights) + cache) / tensor_parallel + constant("serving_workspace_bytes")


@few
@given(models(), st.integers(1, 200), st.integers(1, 8000), st.sampled_from([1, 2, 4]))
def test_e05_serving_memory_grows_with_batch_and_context(
    shape: LlmArchitecture, batch: int, context: int, size: int
) -> None:
    """More sequences, longer ones or more parameters never need less memory."""
    base = serving_bytes_per_gpu(shape, "bf16", "fp16", size, batch, context)
    assert serving_bytes_per_gpu(shape, "bf16", "fp16", size, batch + 1, context) >= base
    assert serving_bytes_per_gpu(shape, "bf16", "fp16", size, batch, context + 1) >= base
    bigger = replace(shape, parameters=shape.parameters * 1.5)
    assert serving_bytes_per_gpu(bigger, "bf16", "fp16", size, batch, context) >= base


@few
@given(models(), st.integers(1, 8), st.sampled_from(["none", "zero1", "zero2", "zero3"]))
def test_e05_training_memory_grows_with_batch_and_shrinks_with_sharding(
    shape: LlmArchitecture, micro_batch: int, sharding: str
) -> None:
    """A larger micro-batch never needs less; more data-parallel ranks never need more per GPU."""
    plan = plan_of(shape, micro_batch=micro_batch, sharding=sharding)
    base = sum(training_memory(plan, 1, 4).values())
    assert sum(training_memory(replace(plan, micro_batch=micro_batch + 1), 1, 4).values()) > base
    assert sum(training_memory(plan, 1, 8).values()) <= base
    assert sum(training_memory(replace(plan, sharding="zero3"), 1, 4).values()) <= base


@few
@given(models(), st.integers(1, 100), st.integers(1, 4000))
def test_e06_tensor_parallelism_spreads_memory_and_repeats_some(
    shape: LlmArchitecture, batch: int, context: int
) -> None:
    """Per GPU memory does not grow with the size, the total over the GPUs does not shrink."""
    sizes = legal_tensor_parallel_sizes(shape, 16)
    per_gpu = [serving_bytes_per_gpu(shape, "bf16", "fp16", size, batch, context) for size in sizes]
    total = [size * each for size, each in zip(sizes, per_gpu, strict=True)]
    assert all(a >= b * (1 - 1e-12) for a, b in itertools.pairwise(per_gpu))
    assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(total))


@few
@given(models(), st.integers(1, 16))
def test_e07_legal_sizes_divide_the_heads(shape: LlmArchitecture, largest: int) -> None:
    """Every size offered divides the heads and shares or repeats KV heads evenly; one GPU is always legal."""
    sizes = legal_tensor_parallel_sizes(shape, largest)
    assert sizes[0] == 1
    for size in sizes:
        assert shape.attention_heads % size == 0
        assert shape.kv_heads % size == 0 or size % shape.kv_heads == 0


@few
@given(models(), CARDS, LENGTHS, st.integers(1, 256), st.sampled_from([1, 2, 4]))
def test_e08_throughput_stays_under_the_roofline(
    shape: LlmArchitecture, card: Gpu, lengths: RequestShape, batch: int, size: int
) -> None:
    """Neither compute nor bandwidth is exceeded, saturated or under load."""
    replica = on(card, shape, "bf16", size)
    saturated = saturated_seconds(replica, lengths, batch).total
    loaded = operating_point(replica, lengths, batch).seconds.total
    peak = size * (card.bf16_dense_tflop_per_s or 0.0) * 1e12
    tokens = lengths.prompt + lengths.output
    assert loaded >= saturated * (1 - 1e-12)
    assert saturated >= 2 * shape.active_parameters * tokens / peak
    dense_bytes = replica.dense_weight_bytes
    bandwidth = size * card.memory_bandwidth_gb_per_s * 1e9
    assert saturated >= dense_bytes * lengths.output / batch / bandwidth
    # The model's compute row is necessary, never tighter than the replica's time.
    ceiling = max(replica.gemm_flop_per_s, replica.attention_flop_per_s)
    assert flop_per_request(replica, lengths) / ceiling <= saturated * (1 + 1e-9)


@few
@given(models(), CARDS, LENGTHS, st.integers(1, 256), st.floats(1.0, 4.0))
def test_e09_a_faster_card_is_never_slower(
    shape: LlmArchitecture, card: Gpu, lengths: RequestShape, batch: int, times: float
) -> None:
    """More bandwidth or a higher peak, other things equal, never lowers throughput."""
    base = saturated_seconds(on(card, shape), lengths, batch).total * (1 + 1e-12)  # the host may set the pace of both
    wider = replace(card, memory_bandwidth_gb_per_s=card.memory_bandwidth_gb_per_s * times)
    quicker = replace(card, bf16_dense_tflop_per_s=(card.bf16_dense_tflop_per_s or 0.0) * times)
    assert saturated_seconds(on(wider, shape), lengths, batch).total <= base
    assert saturated_seconds(on(quicker, shape), lengths, batch).total <= base


@few
@given(models(), CARDS, LENGTHS, st.integers(1, 512))
def test_e10_a_larger_batch_serves_more_but_each_request_slower(
    shape: LlmArchitecture, card: Gpu, lengths: RequestShape, batch: int
) -> None:
    """Throughput does not fall with the batch, and the time per token does not either."""
    replica = on(card, shape)
    steps = [decode_step(replica, lengths, b, 0.0).total for b in (batch, batch + 1)]
    assert (batch + 1) / steps[1] >= batch / steps[0] * (1 - 1e-9)
    assert steps[1] >= steps[0]
    points: list[OperatingPoint] = [operating_point(replica, lengths, b) for b in (batch, batch + 1)]
    assert points[1].end_to_end_s >= points[0].end_to_end_s


@few
@given(models(), CARDS, st.integers(1, 4096), st.sampled_from([1, 2, 4]))
def test_e11_e17_no_job_beats_its_peak(shape: LlmArchitecture, card: Gpu, gpus: int, size: int) -> None:
    """Work is conserved: MFU lies in (0, 1], and more GPUs never raise the rate of each."""
    plan = plan_of(shape)
    seconds = gpu_seconds_per_token(card, plan, size, gpus)
    assert 0 < mfu_of(card, plan, seconds) <= 1
    assert gpu_seconds_per_token(card, plan, size, gpus * 2) >= seconds


@few
@given(st.floats(1.0, 1e6), st.floats(0.01, 100.0), st.floats(1.0, 1000.0), st.sampled_from([1, 2, 8]))
def test_e12_the_gpu_count_is_the_least_that_is_in_time(work: float, rate: float, hours: float, group: int) -> None:
    """The count meets the deadline, one group less does not."""
    gpus = gpus_for(work, rate, hours, group)
    assert gpus * rate * hours >= work * (1 - 1e-8)
    assert (gpus - group) * rate * hours < work


def multiplied_parameters(model: LlmArchitecture) -> float:
    """Parameters that multiply per token: all active ones but a table that is only looked up."""
    return model.active_parameters - looked_up_parameters(model)


@few
@given(models())
def test_e13_memory_by_total_flop_by_active(shape: LlmArchitecture) -> None:
    """Active parameters never exceed the total, and equal it for a dense model."""
    assert shape.active_parameters <= shape.parameters
    assert (shape.experts == 1) == isclose(shape.active_parameters, shape.parameters)
    lighter = replace(shape, active_parameters=shape.active_parameters / 2)
    assert weight_bytes(lighter, "bf16") == weight_bytes(shape, "bf16")
    assert multiplied_parameters(lighter) < multiplied_parameters(shape)


@few
@given(models())
def test_e15_tied_embeddings_save_memory_not_work(shape: LlmArchitecture) -> None:
    """A tied table is one V·h smaller in parameters; the head still multiplies."""
    untied = counted_parameters(replace(shape, tied_embeddings=False))
    tied_total = counted_parameters(replace(shape, tied_embeddings=True))
    table = shape.vocabulary_size * shape.hidden_size
    assert untied - tied_total == table
    tied = replace(shape, tied_embeddings=True, active_parameters=shape.active_parameters - table)
    assert isclose(multiplied_parameters(tied), multiplied_parameters(shape))


@few
@given(models(), st.sampled_from(["none", "full"]))
def test_e16_training_needs_more_than_serving_and_full_more_than_lora(shape: LlmArchitecture, recompute: str) -> None:
    """Optimizer states come on top of the weights; LoRA trains few of them, QLoRA also shrinks the frozen ones."""
    full, lora, qlora = (
        sum(training_memory(plan_of(shape, method=m, recompute=recompute), 1, 1).values())
        for m in ("full", "lora", "qlora")
    )
    assert full > lora > qlora
    assert full > weight_bytes(shape, "bf16")


@few
@given(models(), st.integers(1, 8), st.floats(1.0, 2.0))
def test_e18_more_memory_never_unfits(shape: LlmArchitecture, size: int, times: float) -> None:
    """What fits a card fits one with more memory."""
    larger = replace(A100, memory_usable_bytes=int(A100.memory_usable_bytes * times))
    assert (
        serving_memory(larger, shape, "bf16", size).free_bytes >= serving_memory(A100, shape, "bf16", size).free_bytes
    )


@few
@given(st.floats(1.0, 4000.0))
def test_e08_experts_touched_never_exceed_all(tokens: float) -> None:
    """A step of a mixture of experts reads at most all experts, and at least those of one token."""
    replica = on(H100, MIXTRAL)
    one, many = (decode_step(replica, RequestShape("all", 1, 1), batch, 0.0).memory_bandwidth for batch in (1, tokens))
    assert one <= many
    assert (replica.dense_weight_bytes + replica.expert_weight_bytes / 4) / replica.weight_bytes_per_s <= one


@few
@given(models(), st.integers(1, 10**12))
def test_e19_gigabytes_and_gibibytes_are_one_size(shape: LlmArchitecture, size: int) -> None:
    """A memory written in GB, GiB, MiB or bytes gives one number of bytes, hence one decision."""
    written = [BYTES.parse(text) for text in (f"{size / 1e9:.15g} GB", f"{size / 2**30:.17g} GiB", f"{size} B")]
    assert all(isclose(value, size, rel_tol=1e-12) for value in written)
    card = [replace(A100, memory_usable_bytes=round(value)) for value in written]
    fits = {serving_memory(one, shape, "bf16", 1).free_bytes > 0 for one in card}
    assert len(fits) == 1


@few
@given(models(), CARDS, st.integers(1, 8000), st.integers(1, 2000), st.floats(0.0, 1e12))
def test_e20_whole_sequences_are_counted_down(
    shape: LlmArchitecture, card: Gpu, prompt: int, output: int, free: float
) -> None:
    """The batch in memory is the floor of free memory ÷ KV cache: that many fit, one more does not."""
    sequence = kv_bytes_per_sequence(shape, "fp16", 1, prompt, output)
    held = largest_batch_in_memory(free, sequence)
    assert held * sequence <= free * (1 + 1e-12) < (held + 1) * sequence * (1 + 1e-9)
    replica, memory = on(card, shape), serving_memory(card, shape, "bf16", 1)
    lengths = RequestShape("all", prompt, output)
    limit = batch_limit(card, Asked(None), memory, replica, lengths)
    assert limit * sequence <= max(memory.free_bytes, 0.0) * (1 + 1e-12)


@few
@given(models(), CARDS, LENGTHS, st.integers(1, 4000), st.integers(1, 128), st.floats(0.01, 0.9), st.floats(0.0, 0.05))
def test_e21_latency_grows_with_the_prompt_and_with_utilisation(
    shape: LlmArchitecture, card: Gpu, lengths: RequestShape, more: int, batch: int, busy: float, busier: float
) -> None:
    """A longer prompt never comes sooner, in whole deployments or stages; a fuller replica never waits less."""
    longer, replica = replace(lengths, prompt=lengths.prompt + more), on(card, shape)
    points = [operating_point(replica, one, batch) for one in (lengths, longer)]
    assert points[0].ttft_s <= points[1].ttft_s
    assert points[0].end_to_end_s <= points[1].end_to_end_s
    stages = [prefill_point(replica, one, batch, 1e10).ttft_s for one in (lengths, longer)]
    assert stages[0] <= stages[1]
    residence = points[0].seconds.total * batch
    waits = [waiting_percentile_s(share, batch, residence) for share in (busy, busy + busier)]
    assert waits[0] <= waits[1]
