import pytest
from pydantic import TypeAdapter, ValidationError

from catalog import load_catalog
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.inference import RequestShape, operating_point, prefill_time, request_shapes, saturated_seconds
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.ranges import range_of
from optimizer.estimator.roofline import replica_of
from optimizer.estimator.services import THROUGHPUT_RANGE, analytic_services
from optimizer.estimator.workloads import AnyWorkload, Service

CATALOG = load_catalog()
LLAMA = CATALOG.model("llama-3.1-70b")
H100 = CATALOG.gpu("H100-80GB-SXM")


def service(**settings):
    lengths = {"input": 4000, "output": 300}
    return Service(**{"name": "chat", "kind": "service", "weights": "fp8", "tokens": lengths, **settings})


def replica(gpu=H100, tensor=2, pipeline=1, weights="fp8"):
    kernel = kernel_for(gpu, weights)
    assert kernel is not None
    return replica_of(gpu, LLAMA, weights, "fp16", kernel, tensor, pipeline)


def best(**settings):
    found, _ = analytic_services(service(**settings), H100, LLAMA, 8)
    return max(1 / (e.classes[0].replica_seconds_per_request * e.deployment.gpus_per_replica) for e in found)


def test_a_prefix_cache_saves_prefill_but_no_memory():
    """Half of the prompt cached: less than half the time to first token, more requests, the same KV cache."""
    plain, cached = (request_shapes(service(prefix_cache_share=share))[0] for share in (0.0, 0.5))
    copy = replica()
    assert cached.fresh == 2000
    assert prefill_time(copy, 4000, 2000).total < prefill_time(copy, 4000).total
    assert prefill_time(copy, 4000, 2000).total > prefill_time(copy, 2000).total  # the cached half is attended to
    assert operating_point(copy, cached, 32).ttft_s < operating_point(copy, plain, 32).ttft_s
    assert best(prefix_cache_share=0.5) > 1.2 * best()


def test_a_whole_prompt_is_never_cached():
    """The last token of a prompt is always processed, so that there is a first one to answer with."""
    assert request_shapes(service(prefix_cache_share=1.0))[0].fresh == 1


def test_speculation_speeds_up_small_batches_more_than_large_ones():
    """A step checks four tokens more for the same weights; at large batches their products cost what they gain."""
    plain = RequestShape("all", 100, 400)
    drafted = RequestShape("all", 100, 400, drafted=4, accepted=3.0, draft_share=0.1)

    def gain(batch):
        return saturated_seconds(replica(), plain, batch).total / saturated_seconds(replica(), drafted, batch).total

    assert 2.0 < gain(1) < 3.0 / 1.1 + 1e-9
    assert gain(512) < gain(64) < gain(1)


def test_more_tokens_than_were_drafted_cannot_be_gained():
    """The message says what a step can gain at most."""
    with pytest.raises(ValidationError, match="a step gains 4 at most"):
        service(speculation={"draft": 3, "accepted": 5})


def test_pipeline_stages_hold_what_one_card_cannot():
    """Two stages share weights and cache; on cards without peer-to-peer they serve more than two tensor ranks."""
    card = CATALOG.gpu("RTX-4090")
    lengths = RequestShape("all", 500, 200)
    tensor = saturated_seconds(replica(card, 4, 1, "int4"), lengths, 64).total
    pipeline = saturated_seconds(replica(card, 1, 4, "int4"), lengths, 64).total
    assert pipeline < tensor
    assert operating_point(replica(card, 1, 4, "int4"), lengths, 1).end_to_end_s > (
        operating_point(replica(card, 4, 1, "int4"), lengths, 1).end_to_end_s
    )


def test_pipeline_stages_are_a_choice_of_the_buyer():
    """Stages are tried where they are asked for; deployments carry them; what fits no node is refused with its size."""
    found, _ = analytic_services(service(pipeline_parallel=[1, 2], gpus_per_replica=[1, 2]), H100, LLAMA, 8)
    assert {e.deployment.pipeline_parallel for e in found} == {1, 2}
    assert all(e.deployment.gpus_per_replica <= 4 for e in found)
    none, refused = analytic_services(service(pipeline_parallel=4, gpus_per_replica=4), H100, LLAMA, 8)
    assert not none
    assert [(r.resource, r.required, r.available) for r in refused] == [("parallelism", 16, 8)]


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": "service", "weights": "fp8", "tokens": {"input": 4000, "output": 300}},
        {"kind": "batch", "weights": "fp8", "requests": {"count": 1000, "input": 4000, "output": 300}},
        {"kind": "training", "tokens": 1e9},
    ],
    ids=lambda settings: settings["kind"],
)
def test_the_low_end_of_the_range_can_be_planned_for(settings):
    """Rates fall to the low end, whose own range then starts at 1; the assumption is listed."""

    def found(plan_for):
        workload = TypeAdapter(AnyWorkload).validate_python({"name": "w", "plan_for": plan_for, **settings})
        return estimate_all([workload], [H100], {"H100-80GB-SXM": (8,)}, lambda name: LLAMA, [], {})

    settings = {**settings, "model": "llama-3.1-70b"}
    middle, low = found("middle"), found("low")
    for one, other in zip((*middle.services, *middle.jobs), (*low.services, *low.jobs), strict=True):
        assert other.low_factor == 1
        assert other.high_factor == pytest.approx(one.high_factor / one.low_factor)
        if hasattr(one, "classes"):
            times = other.classes[0].replica_seconds_per_request / one.classes[0].replica_seconds_per_request
            assert times == pytest.approx(1 / one.low_factor)
        else:
            assert other.units_per_gpu_hour == pytest.approx(one.units_per_gpu_hour * one.low_factor)
    assert "w: rates planned for" in {assumption.name for assumption in low.assumptions}
    assert "w: rates planned for" not in {assumption.name for assumption in middle.assumptions}


def test_the_low_end_holds_latencies_at_the_high_end_of_their_range():
    """TTFT and TPOT of the plan are the high end of the range, within the targets; batches are no larger."""
    latency = {"p95_ttft": "1200 ms", "p95_tpot": "40 ms"}

    def found(plan_for, **changes):
        workload = service(name="w", plan_for=plan_for, model="llama-3.1-70b", latency={**latency, **changes})
        return estimate_all([workload], [H100], {"H100-80GB-SXM": (8,)}, lambda name: LLAMA, [], {})

    high = {target: range_of(target, seen=False).high_factor for target in ("ttft_ms", "tpot_ms")}
    middle, low = found("middle"), found("low")
    assert low.services
    for estimate in low.services:
        (times,) = estimate.classes
        assert times.ttft_ms <= 1200
        assert times.tpot_ms <= 40
        copy = replica(tensor=estimate.deployment.tensor_parallel)
        point = operating_point(copy, request_shapes(service())[0], int(estimate.deployment.batch))
        assert times.ttft_ms == pytest.approx(1000 * point.ttft_s * high["ttft_ms"])
        assert times.tpot_ms == pytest.approx(1000 * point.tpot_s * high["tpot_ms"])
    by_size = {e.deployment.gpus_per_replica: e for e in middle.services}
    for estimate in low.services:
        rival = by_size.get(estimate.deployment.gpus_per_replica)
        if rival is not None:
            assert estimate.deployment.batch <= rival.deployment.batch
            rates = [e.utilisation_cap / e.classes[0].replica_seconds_per_request for e in (estimate, rival)]
            assert rates[0] <= rates[1] * THROUGHPUT_RANGE.low_factor * (1 + 1e-9)
    assert {a.name for a in low.assumptions} >= {f"w: {t} held against its target ÷ estimate" for t in ("TTFT", "TPOT")}
    refused = found("low", p95_tpot="12 ms").rejections
    assert any("at the high end of its range" in r.reason for r in refused)
    assert found("middle", p95_tpot="12 ms").services
