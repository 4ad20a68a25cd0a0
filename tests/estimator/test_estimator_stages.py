"""Prompts and outputs apart: what a stage takes, holds and needs, and which deployments come of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from optimizer.estimator.constants import constant
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.inference import RequestShape, operating_point, request_shapes
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.memory import kv_bytes_per_token
from optimizer.estimator.roofline import Replica, replica_of, step_time
from optimizer.estimator.stages import decode_point, prefill_point, targets_of, transfer_seconds
from optimizer.estimator.types import Estimates, ServiceEstimate
from optimizer.estimator.workloads import Measurement, Service
from tests.estimator.builders import A100, H100, LLAMA_8B, LLAMA_70B, RTX_4090, resolve

NETWORK = 10e9
CLASSES = [{"input": 400, "output": 300}, {"input": 6000, "output": 100}, {"input": 300, "output": 1}]


def service(**changes: Any) -> Service:
    """A chat service that may be split."""
    fields: dict[str, Any] = {
        "name": "chat", "kind": "service", "model": "llama-3.1-8b", "tokens": {"input": 2000, "output": 250},
        "disaggregated": "allowed",
    }  # fmt: skip
    return Service.model_validate(fields | changes)


def found(workload: Service, *measurements: Measurement) -> Estimates:
    """Estimates on three cards."""
    cards = (A100, H100, RTX_4090)
    return estimate_all([workload], cards, {g.gpu_id: (1, 2, 4, 8) for g in cards}, resolve, measurements, {})


def of_stage(estimates: Estimates, stage: str) -> list[ServiceEstimate]:
    """Services of a stage."""
    return [e for e in estimates.services if e.deployment.stage == stage]


def copy(tensor_parallel: int = 1) -> Replica:
    """LLaMA 3.1 70B in fp8 on H100."""
    kernel = kernel_for(H100, "fp8")
    assert kernel is not None
    return replica_of(H100, LLAMA_70B, "fp8", "fp16", kernel, tensor_parallel)


def test_stages_are_tried_as_the_file_says() -> None:
    """never: whole deployments; allowed: both; required: stages alone, whatever was measured."""
    stages = {
        wish: {e.deployment.stage for e in found(service(disaggregated=wish)).services}
        for wish in ("never", "allowed", "required")
    }
    assert stages == {"never": {""}, "allowed": {"", "prefill", "decode"}, "required": {"prefill", "decode"}}
    measured = Measurement(workload="chat", gpu="A100-80GB-SXM", requests_per_s=5)
    assert not any(e.measured for e in found(service(disaggregated="required"), measured).services)
    assert any(e.measured for e in found(service(), measured).services)


def test_a_stage_says_what_it_is() -> None:
    """Label, latencies and chain of a stage: a prefill stage has a TTFT, a decode stage a TPOT."""
    estimates = found(service())
    for stage in ("prefill", "decode"):
        for estimate in of_stage(estimates, stage):
            assert estimate.deployment.label.startswith(f"{stage} bf16 TP")
            shown = estimate.classes[0]
            assert (shown.ttft_ms is None) == (stage == "decode")
            assert (shown.tpot_ms is None) == (stage == "prefill")
            symbols = {step.symbol for step in estimate.steps}
            assert ("TTFT[all]" in symbols, "TPOT[all]" in symbols) == (stage == "prefill", stage == "decode")


def test_prefill_by_hand() -> None:
    """One prompt alone: a step without sequences, its cache over the network, handling; no faster than the network."""
    shape, replica = RequestShape("all", 3000, 200), copy(2)
    cache = 3000 * kv_bytes_per_token(LLAMA_70B, "fp16", 2)
    assert transfer_seconds(replica, shape, NETWORK) == pytest.approx(cache / (2 * NETWORK))
    step = step_time(replica, 0.0, 3000, 0.0, 3000).total
    point = prefill_point(replica, shape, 1, NETWORK)
    assert point.ttft_s == pytest.approx(step + cache / (2 * NETWORK) + constant("ttft_fixed_ms_vllm") / 1000)
    assert point.seconds.total == pytest.approx(step)
    slow = prefill_point(replica, shape, 1, NETWORK / 100)
    assert slow.seconds.total == pytest.approx(cache / (2 * NETWORK / 100))
    assert slow.seconds.interconnect > point.seconds.interconnect


def test_decode_by_hand() -> None:
    """All tokens but the first at the step of a batch without prompts, after the cache has come."""
    shape, replica = RequestShape("all", 3000, 201), copy(4)
    step = step_time(replica, 32, 0.0, 3000 + 201 / 2, 3000).total
    point = decode_point(replica, shape, 32, NETWORK)
    sending = 3000 * kv_bytes_per_token(LLAMA_70B, "fp16", 4) / (4 * NETWORK)
    assert point.tpot_s == pytest.approx(step)
    assert point.seconds.total == pytest.approx((sending + 200 * step) / 32)


def test_generating_alone_is_steadier_than_beside_prompts() -> None:
    """Without prompts in its steps a replica generates faster at the same batch, and more so the longer the prompts."""
    gains = []
    for prompt in (500, 4000):
        shape = RequestShape("all", prompt, 200)
        whole, alone = operating_point(copy(4), shape, 32).tpot_s, decode_point(copy(4), shape, 32, NETWORK).tpot_s
        assert whole is not None
        assert alone is not None
        gains.append(whole / alone)
    assert 1 < gains[0] < gains[1]


def test_parts_and_needs_of_stages() -> None:
    """Parts add up to the replica time; a full replica stays within its FLOP/s, bytes/s and memory."""
    for weights in ("bf16", "int4"):
        estimates = found(service(tokens=None, classes=CLASSES, weights=weights, kv_transfer="20 GB/s"))
        for stage in ("prefill", "decode"):
            assert of_stage(estimates, stage)
            for e in of_stage(estimates, stage):
                assert {c.request_class for c in e.classes} <= {"class-1", "class-2"}, "an answer of one token"
                for c in e.classes:
                    parts = c.compute_seconds + c.memory_bandwidth_seconds + c.interconnect_seconds + c.overhead_seconds
                    assert parts == pytest.approx(c.replica_seconds_per_request)
                    rate = 1 / c.replica_seconds_per_request
                    assert c.flop_per_request * rate <= e.effective_flop_per_s * (1 + 1e-9)
                    assert c.moved_bytes_per_request * rate <= e.effective_bytes_per_s * (1 + 1e-9)
                    assert c.kv_bytes_per_sequence * c.residence_s * rate <= e.free_memory_bytes * (1 + 1e-9)


def test_the_two_stages_need_no_less_than_a_whole_request() -> None:
    """FLOP of a prompt and of all later tokens: those of the whole request, less the first token of the output."""
    (shape,) = request_shapes(service())
    estimates = found(service(gpus_per_replica=1))
    flop = {s: next(e for e in of_stage(estimates, s) if e.gpu_id == H100.gpu_id).classes[0].flop_per_request
            for s in ("", "prefill", "decode")}  # fmt: skip
    first = 2 * (LLAMA_8B.active_parameters - LLAMA_8B.vocabulary_size * LLAMA_8B.hidden_size)
    assert shape.output == 250
    assert flop["prefill"] + flop["decode"] == pytest.approx(flop[""] - first)


@pytest.mark.parametrize(
    ("latency", "prefill", "decode", "late"),
    [
        ({}, None, None, 0.05),
        ({"p95_ttft": "2 s", "p95_tpot": "50 ms"}, 2000, 249 * 50, 0.05),
        ({"p95_ttft": "2 s", "p95_end_to_end": "10 s"}, 2000, 8000, 0.025),
        ({"p95_end_to_end": "10 s"}, 2500, 7500, 0.025),
        ({"p95_end_to_end": "20 s", "p95_tpot": "50 ms"}, 5000, 249 * 50, 0.025),
    ],
)
def test_targets_are_split(latency: Any, prefill: float | None, decode: float | None, late: float) -> None:
    """TTFT is the prompts', TPOT the outputs' (waiting included); an end-to-end target is shared, lateness too."""
    workload = service(latency=latency)
    (shape,) = request_shapes(workload)
    first, second = targets_of(workload, shape, "prefill"), targets_of(workload, shape, "decode")
    assert first.latency.p95_ttft == prefill
    assert second.latency.p95_end_to_end == decode
    assert first.tail == second.tail == pytest.approx(late)
    assert second.latency.p95_ttft is first.latency.p95_tpot is first.latency.p95_end_to_end is None


def test_any_two_stages_meet_an_end_to_end_target_together() -> None:
    """Whatever prefill stage feeds whatever decode stage: their times at the operating point stay within the target."""
    latency = {"p95_end_to_end": "9 s", "p95_ttft": "1500 ms"}
    estimates = found(service(latency=latency, plan_for="low"))
    firsts = [c.ttft_ms or 0.0 for e in of_stage(estimates, "prefill") for c in e.classes]
    rests = [c.end_to_end_ms or 0.0 for e in of_stage(estimates, "decode") for c in e.classes]
    assert firsts
    assert rests
    assert max(firsts) <= 1500
    assert max(firsts) + max(rests) <= 9000


def test_a_faster_network_never_costs_more() -> None:
    """Replica time per request at its cap falls, or stays, as the network gets faster."""
    settings = {"gpus_per_replica": 1, "latency": {"p95_ttft": "1 s"}}
    cost = [
        [sum(c.replica_seconds_per_request for c in e.classes) / e.utilisation_cap
         for e in of_stage(found(service(kv_transfer=f"{rate} GB/s", **settings)), stage)]
        for stage in ("prefill", "decode") for rate in (0.5, 2, 50)
    ]  # fmt: skip
    for slow, middle, fast in (cost[:3], cost[3:]):
        assert len(slow) == len(middle) == len(fast) > 1
        assert all(a >= b >= c for a, b, c in zip(slow, middle, fast, strict=True))
        assert slow != fast


def test_stages_are_no_subject_of_measurements() -> None:
    """A measured size replaces the whole deployment of that size; stages of that size stay; ratios leave them out."""
    plain = found(service(gpus_per_replica=[1, 2], weights="fp8"))
    measured = Measurement(workload="chat", gpu="H100-80GB-SXM", requests_per_s=5, gpus_per_replica=1)
    mixed = found(service(gpus_per_replica=[1, 2], weights="fp8"), measured)
    for stage in ("prefill", "decode"):
        assert of_stage(mixed, stage) == of_stage(plain, stage)
    cards = ("A100-80GB-SXM", "H100-80GB-SXM", "RTX-4090")
    rates = {e.gpu_id: 1 / e.classes[0].replica_seconds_per_request * e.utilisation_cap
             for e in found(service(gpus_per_replica=1, disaggregated="never", weights="fp8")).services}  # fmt: skip
    three = [Measurement(workload="chat", gpu=g, requests_per_s=0.8 * rates[g], gpus_per_replica=1) for g in cards]
    calibrated = found(service(gpus_per_replica=1, weights="fp8"), *three)
    for stage in ("prefill", "decode"):
        before, after = of_stage(found(service(gpus_per_replica=1, weights="fp8")), stage), of_stage(calibrated, stage)
        for one, other in zip(before, after, strict=True):
            times = other.classes[0].replica_seconds_per_request / one.classes[0].replica_seconds_per_request
            assert times == pytest.approx(1 / 0.8)


@pytest.mark.parametrize(
    "fields",
    [{"disaggregated": "never", "kv_transfer": "5 GB/s"}, {"estimate_by": "rule-of-thumb"}, {"disaggregated": "maybe"}],
    ids=str,
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    """A network rate without stages, stages by the rule of thumb, an unknown word."""
    with pytest.raises(ValidationError):
        service(**fields)


def test_a_missed_target_names_the_stage() -> None:
    """A prompt that takes too long is a prefill stage's miss; the whole deployment's TPOT is no concern of it."""
    slow = found(service(tokens={"input": 100_000, "output": 100}, latency={"p95_ttft": "300 ms"}))
    labels = {r.deployment.split()[0] for r in slow.rejections if r.resource == "latency"}
    assert labels == {"bf16", "prefill"}
    big = service(model="llama-3.1-70b", gpus_per_replica=1)
    assert {r.deployment.split()[0] for r in found(big).rejections if r.resource == "memory"} >= {"prefill", "decode"}


def test_an_answer_of_one_token_cannot_be_done_apart() -> None:
    """Where stages are required, a class that they cannot serve is named; where they are allowed, it runs whole."""
    short = {"tokens": {"input": 2000, "output": 1}}
    refused = found(service(disaggregated="required", **short))
    assert refused.services == ()
    assert {r.resource for r in refused.rejections} == {"stage"}
    assert {e.deployment.stage for e in found(service(**short)).services} == {""}
