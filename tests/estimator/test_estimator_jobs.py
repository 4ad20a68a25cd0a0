"""Training, fine-tuning and offline batches: rates, sizes, memory, rejections."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from catalog.schema import Gpu
from optimizer.errors import ProblemFileError
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.training_memory import TrainingPlan, training_memory
from optimizer.estimator.types import Estimates
from optimizer.estimator.workloads import AnyWorkload, Batch, FineTune, Training
from tests.estimator.builders import A100, H100, LLAMA_70B, RTX_4090, resolve


def training(**changes: Any) -> Training:
    fields: dict[str, Any] = {"name": "pretrain", "kind": "training", "model": "llama-33b", "tokens": 11.6e9}
    return Training.model_validate(fields | changes)


def finetune(**changes: Any) -> FineTune:
    fields: dict[str, Any] = {"name": "adapt", "kind": "finetune", "model": "llama-3.1-8b", "tokens": 100e6}
    return FineTune.model_validate(fields | changes)


def batch(**changes: Any) -> Batch:
    fields: dict[str, Any] = {
        "name": "nightly", "kind": "batch", "model": "llama-3.1-8b",
        "requests": {"per_day": 200_000, "input": 2000, "output": 200},
    }  # fmt: skip
    return Batch.model_validate(fields | changes)


def estimates(job: AnyWorkload, *gpus: Gpu, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> Estimates:
    return estimate_all([job], gpus, {gpu.gpu_id: sizes for gpu in gpus}, resolve, [], {})


def amount(found: Estimates) -> float:
    value = found.demands[0].amount
    assert value is not None
    return value


def test_llama_33b_on_50_gb_in_five_days_takes_some_35_to_60_a100() -> None:
    """The default method on the article's job, with the bytes per token that it assumed."""
    job = training(tokens=None, dataset={"size": "50 GB"}, deadline="5 days")
    found = estimates(job, A100, sizes=(8,))
    assert amount(found) == pytest.approx(50e9 / 4.3)
    fitting = [
        need
        for estimate in found.jobs
        if estimate.min_gpus
        <= (need := amount(found) / (estimate.units_per_gpu_hour * 120))
        <= (estimate.max_gpus or 0)
    ]
    assert len(fitting) == 1
    assert 35 <= fitting[0] <= 60
    assumed = next(a for a in found.assumptions if a.name == "pretrain: bytes per token")
    assert (assumed.value, assumed.kind) == (4.3, "default")


def test_ranges_of_sizes_are_seamless_and_slow_down() -> None:
    """Ranges follow one another without a gap, and each GPU yields less in a larger run."""
    found = estimates(training(model="llama-7b", micro_batch=1), A100).jobs
    assert len(found) >= 4
    for smaller, larger in pairwise(found):
        assert larger.min_gpus == (smaller.max_gpus or 0) + 1
        assert larger.units_per_gpu_hour < smaller.units_per_gpu_hour
    assert all(0 < (estimate.mfu or 0) <= 1 for estimate in found)


def test_an_unsaid_micro_batch_is_the_largest_that_fits() -> None:
    """More sharding leaves room for larger micro-batches, which spread the launch cost; one GPU never gains by it."""
    chosen = estimates(training(model="llama-7b"), A100).jobs
    sizes = [dict((s.symbol, s.value) for s in estimate.steps)["b"] for estimate in chosen]
    assert sizes == sorted(sizes)
    assert 1 <= sizes[0] < sizes[-1] <= 16_384 / 2048
    single = estimates(training(model="llama-7b", micro_batch=1), A100).jobs
    for best, one in zip(chosen, single, strict=True):
        assert best.units_per_gpu_hour >= one.units_per_gpu_hour


def test_the_fewest_gpus_hold_the_sharded_states() -> None:
    """33e9 parameters at 16 B are over 6 cards of 80 GB by state alone; a run asks for whole boards of 8."""
    smallest = estimates(training(), A100).jobs[0]
    assert 33e9 * 16 / 86e9 < smallest.min_gpus <= 16
    assert smallest.deployment.least_gpus_per_node == 8


def test_a_sharded_run_is_refused_where_only_single_cards_are_on_offer() -> None:
    """Sharding needs fast links within a node: the rejection says which node would do."""
    found = estimates(training(), A100, sizes=(1,))
    assert not found.jobs
    (rejection,) = found.rejections
    assert (rejection.resource, rejection.required, rejection.available) == ("interconnect", 8, 1)


def test_unsharded_states_that_fit_no_card_are_rejected_by_memory() -> None:
    """Without sharding 33e9 parameters need over 60 GB per card even at TP4: 24 GB are short, and both are said."""
    found = estimates(training(sharding="none"), RTX_4090)
    assert not found.jobs
    (rejection,) = found.rejections
    assert (rejection.resource, rejection.unit) == ("memory", "GB per GPU")
    assert rejection.required > rejection.available == pytest.approx(24_564 * 2**20 / 1e9)


def test_the_global_batch_limits_the_gpus() -> None:
    """Four million tokens per step at 4,096 per sequence feed at most 1,024 ranks."""
    found = estimates(training(model="llama-7b", sequence=4096, global_batch_tokens=4096 * 1024), A100).jobs
    assert max(estimate.max_gpus or 0 for estimate in found) == 1024


def test_the_buyers_mfu_wins() -> None:
    """One rate at the given MFU of the dense peak: 0.4 · 312e12 · 3600 ÷ F tokens per GPU-hour."""
    found = estimates(training(model="llama-7b", sequence=4096, mfu=0.4), A100)
    (estimate,) = found.jobs
    flop = 6 * 6_738_415_616 + 12 * 32 * 4096 * 4096
    assert estimate.units_per_gpu_hour == pytest.approx(0.4 * 312e12 * 3600 / flop)
    assert (estimate.mfu, estimate.source) == (0.4, "buyer's MFU")
    assert next(a for a in found.assumptions if a.name == "pretrain: MFU").kind == "user"


def test_levers_act_as_in_practice() -> None:
    """fp8 speeds up; full recomputation slows down; a tuned stack is faster than a naive one; fp32 is far slower."""

    def rate(**changes: Any) -> float:
        return estimates(training(model="llama-7b", micro_batch=2, **changes), H100).jobs[-1].units_per_gpu_hour

    base = rate()
    assert 1.05 < rate(precision="fp8") / base < 2**0.74
    assert 0.66 < rate(recompute="full") / base < 0.85
    assert rate(stack="tuned") > base > rate(stack="naive")
    assert rate(precision="fp32") < base / 5


def test_formats_without_a_unit_are_rejected_for_training() -> None:
    """A100 has no fp8 unit, and nobody trains in int8."""
    for precision in ("fp8", "int8"):
        found = estimates(training(precision=precision), A100)
        assert [r.resource for r in found.rejections] == ["precision"]


def test_lora_and_qlora_fit_where_full_tuning_does_not() -> None:
    """8B on one card of 24 GB: QLoRA fits, full tuning needs sharding over several; LoRA takes less work per token."""
    qlora = estimates(finetune(method="qlora", sequence=2048), RTX_4090).jobs
    full = estimates(finetune(method="full", sequence=2048), RTX_4090).jobs
    assert min(e.min_gpus for e in qlora) == 1
    assert min(e.min_gpus for e in full) > 4
    on_a100 = {m: estimates(finetune(method=m, recompute="none", micro_batch=1), A100).jobs for m in ("lora", "full")}
    assert on_a100["lora"][-1].units_per_gpu_hour > on_a100["full"][-1].units_per_gpu_hour


def test_every_memory_term_is_named() -> None:
    """Weights, gradients, optimizer, activations, logits, workspaces, context: each positive."""
    plan = TrainingPlan(LLAMA_70B, 4096, 1, "bf16", "full", "zero3", "none", "adamw", "typical")
    terms = training_memory(plan, 8, 8)
    assert set(terms) == {
        "weights", "gradients", "optimizer", "gathered layer", "activations", "logits", "fragmentation", "workspace",
        "context",
    }  # fmt: skip
    assert all(size > 0 for size in terms.values())
    assert terms["optimizer"] == pytest.approx(12 * 70_553_706_496 / 64)


def test_a_batch_is_counted_in_requests_or_output_tokens() -> None:
    """Requests per day stay per day; tokens count output; headroom multiplies."""
    daily = estimates(batch(headroom=0.5), A100).demands[0]
    assert (daily.unit, daily.amount, daily.per_day) == ("requests", 300_000, True)
    tokens = estimates(batch(requests={"input": 2000, "output": 200}, tokens=2e6), A100)
    assert (tokens.demands[0].unit, tokens.demands[0].per_day) == ("output tokens", False)
    requests = estimates(batch(), A100)
    assert tokens.jobs[0].units_per_gpu_hour == pytest.approx(200 * requests.jobs[0].units_per_gpu_hour)


def test_batches_keep_the_sizes_that_pay() -> None:
    """One GPU per replica beats larger ones per GPU; those are dropped as dominated."""
    found = estimates(batch(), A100)
    assert [e.deployment.gpus_per_replica for e in found.jobs] == [1]
    assert {r.resource for r in found.rejections} == {"dominated"}


def test_work_in_an_own_unit_needs_a_measurement() -> None:
    """The estimator cannot know what a unit of the buyer's takes, and says so."""
    found = estimates(training(tokens=None, work={"amount": 10.0, "unit": "epochs"}), A100)
    assert not found.jobs
    assert "epochs" in found.rejections[0].reason


def test_a_job_without_an_amount_says_what_to_write() -> None:
    """The message names the workload and an example."""
    with pytest.raises(ProblemFileError, match=r'"pretrain" does not say how much.*tokens: 10e9'):
        estimates(training(tokens=None), A100)


def test_a_card_without_16_bit_brain_floats_refuses_them() -> None:
    """V100 and T4 train in fp16, not bf16."""
    old = replace(A100, bf16_dense_tflop_per_s=None)
    assert [r.resource for r in estimates(training(), old).rejections] == ["precision"]
    assert estimates(training(precision="fp16"), old).jobs
