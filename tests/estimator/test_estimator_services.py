"""Online services: operating point, targets, queueing, dominated deployments, rejections."""

from dataclasses import replace
from math import factorial
from typing import Any

import pytest

from catalog.schema import Gpu
from optimizer.estimator.constants import CONSTANTS
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.queueing import utilisation_cap, waiting_percentile_s, waiting_probability
from optimizer.estimator.services import THROUGHPUT_RANGE
from optimizer.estimator.types import Estimates, Rejection
from optimizer.estimator.workloads import Service
from tests.estimator.builders import A100, H100, H200, RTX_4090, resolve


def service(**changes: Any) -> Service:
    fields: dict[str, Any] = {
        "name": "chat", "kind": "service", "model": "llama-3.1-8b", "tokens": {"input": 1000, "output": 250},
    }  # fmt: skip
    return Service.model_validate(fields | changes)


def estimates(workload: Service, *gpus: Gpu, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> Estimates:
    return estimate_all([workload], gpus, {gpu.gpu_id: sizes for gpu in gpus}, resolve, [], {})


def rejections(found: Estimates, resource: str) -> list[Rejection]:
    return [r for r in found.rejections if r.resource == resource]


def test_the_parts_of_a_request_sum_to_its_replica_time() -> None:
    """Compute, bandwidth, interconnect and overhead seconds are the whole of the replica's time."""
    for estimate in estimates(service(latency={"p95_ttft": "500 ms"}), A100, H100, RTX_4090).services:
        for c in estimate.classes:
            parts = c.compute_seconds + c.memory_bandwidth_seconds + c.interconnect_seconds + c.overhead_seconds
            assert parts == pytest.approx(c.replica_seconds_per_request, rel=1e-12)


def test_resource_rows_never_bind_before_the_replica_time() -> None:
    """A fully busy replica stays within its FLOP/s, bytes/s and memory: those rows are necessary, not tighter."""
    classes = [{"input": 400, "output": 300}, {"input": 6000, "output": 100}, {"input": 300, "output": 0}]
    for weights in ("bf16", "int8", "int4"):
        found = estimates(service(tokens=None, classes=classes, weights=weights), A100, RTX_4090)
        assert found.services
        for estimate in found.services:
            for c in estimate.classes:
                rate = 1 / c.replica_seconds_per_request
                assert c.flop_per_request * rate <= estimate.effective_flop_per_s * (1 + 1e-9)
                assert c.moved_bytes_per_request * rate <= estimate.effective_bytes_per_s * (1 + 1e-9)
                held = c.kv_bytes_per_sequence * c.residence_s * rate
                assert held <= estimate.free_memory_bytes * (1 + 1e-9)


def test_latency_targets_hold_at_the_operating_point() -> None:
    """Times at the operating point leave room for waiting below each target."""
    found = estimates(
        service(latency={"p95_ttft": "400 ms", "p95_tpot": "30 ms", "p95_end_to_end": "6 s"}), A100, H100, RTX_4090
    )
    assert {e.gpu_id for e in found.services} == {"A100-80GB-SXM", "H100-80GB-SXM", "RTX-4090"}
    for estimate in found.services:
        c = estimate.classes[0]
        assert c.ttft_ms is not None
        assert c.tpot_ms is not None
        assert c.end_to_end_ms is not None
        assert c.ttft_ms <= 400
        assert c.tpot_ms <= 30
        assert c.end_to_end_ms <= 6000
        assert 0 < estimate.utilisation_cap <= 0.95


def test_a_looser_target_never_costs_more_gpu_time() -> None:
    """Relaxing the time to first token lowers (or keeps) the GPU-seconds of the best deployment."""

    def best(target: str) -> float:
        found = estimates(service(latency={"p95_ttft": target}), H100).services
        return min(
            e.classes[0].replica_seconds_per_request * e.deployment.gpus_per_replica / e.utilisation_cap for e in found
        )

    costs = [best(target) for target in ("150 ms", "300 ms", "1 s", "10 s")]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]


def test_without_targets_the_cap_is_the_stated_default_and_the_buyers_wins() -> None:
    """0.95 without a target; the buyer's own figure is taken as it is."""
    assert estimates(service(), H100).services[0].utilisation_cap == 0.95
    own = estimates(service(utilisation_cap=0.6, latency={"p95_ttft": "1 s"}), H100)
    assert {e.utilisation_cap for e in own.services} == {0.6}


def test_waiting_agrees_with_the_exact_queue() -> None:
    """One server: P(wait) = ρ. More servers: within 0.06 of Erlang's formula. Waiting grows with utilisation."""
    assert waiting_probability(0.6, 1) == pytest.approx(0.6)
    for servers in (2, 8, 32):
        for utilisation in (0.5, 0.7, 0.9):
            load = servers * utilisation
            tail = load**servers / factorial(servers) / (1 - utilisation)
            erlang = tail / (sum(load**k / factorial(k) for k in range(servers)) + tail)
            assert waiting_probability(utilisation, servers) == pytest.approx(erlang, abs=0.06)
    waits = [waiting_percentile_s(u, 16, 2.0) for u in (0.3, 0.6, 0.8, 0.9, 0.95)]
    assert waits == sorted(waits)


def test_the_utilisation_cap_is_the_largest_within_the_slack() -> None:
    """At the cap 95 % wait no longer than the slack; a little above it, they wait longer."""
    cap = utilisation_cap(8, 2.0, 0.1)
    assert waiting_percentile_s(cap, 8, 2.0) <= 0.1 < waiting_percentile_s(cap + 1e-3, 8, 2.0)
    assert utilisation_cap(8, 2.0, None) == CONSTANTS["highest_utilisation"].value


def test_weights_that_do_not_fit_are_rejected_with_both_figures() -> None:
    """671e9 B of fp8 weights on two cards of 141 GB: short by 389e9 B and more, and eight would do."""
    huge = {"layers": 60, "hidden": 7168, "heads": 128, "parameters": 671e9, "ffn": 18_432, "kv_heads": 8}
    wanted = service(model={"architecture": huge}, weights="fp8", gpus_per_replica=2, latency={"p95_ttft": "600 ms"})
    found = estimates(wanted, H200)
    assert not found.services
    (rejection,) = found.rejections
    assert (rejection.resource, rejection.unit, rejection.deployment) == ("memory", "GB", "fp8 TP2")
    assert rejection.required > 671
    assert rejection.required - rejection.available > 389
    assert "8 GPUs per replica would do" in rejection.reason


def test_70b_in_four_bits_needs_two_cards_of_24_gb() -> None:
    """One RTX 4090 is rejected for memory; two hold it."""
    chat = service(model="llama-3.1-70b", weights="int4")
    alone = estimates(chat, RTX_4090, sizes=(1,))
    assert not alone.services
    (rejection,) = alone.rejections
    assert rejection.resource == "memory"
    assert rejection.available == pytest.approx(24_564 * 2**20 * 0.93 / 1e9)
    assert "2 GPUs per replica would do" in rejection.reason
    pair = estimates(chat, RTX_4090, sizes=(2,))
    assert [e.deployment.gpus_per_replica for e in pair.services] == [2]
    assert pair.services[0].deployment.least_gpus_per_node == 2


def test_a_target_that_even_a_lone_request_misses_is_named() -> None:
    """The rejection says which target, what was asked and what the best deployment gives."""
    found = estimates(service(latency={"p95_tpot": "2 ms"}), RTX_4090)
    assert not found.services
    (rejection,) = found.rejections
    assert (rejection.resource, rejection.required, rejection.unit) == ("latency", 2.0, "ms")
    assert rejection.available > 2.0
    assert "p95_tpot" in rejection.reason


def test_a_class_that_cannot_be_served_is_absent_and_explained() -> None:
    """The short class is served; the long one misses its first token and says so."""
    classes = [{"name": "short", "input": 100, "output": 100}, {"name": "long", "input": 100_000, "output": 100}]
    found = estimates(service(tokens=None, classes=classes, latency={"p95_ttft": "300 ms"}), H100)
    assert {c.request_class for e in found.services for c in e.classes} == {"short"}
    assert any("class long" in r.reason and r.available > 300 for r in rejections(found, "latency"))


def test_formats_without_a_unit_are_rejected() -> None:
    """An fp32-less card refuses fp32; A100 takes fp8 as weight-only, so it is estimated."""
    card = replace(A100, int8_dense_tops=None)
    found = estimates(service(weights="int8"), card)
    assert [(r.resource, r.unit) for r in found.rejections] == [("precision", "int8 unit")]
    assert estimates(service(weights="fp8"), A100).services


def test_sizes_that_do_not_divide_the_heads_are_refused() -> None:
    """Three GPUs do not share 32 heads; 16 do not fit a node of 8."""
    found = estimates(service(gpus_per_replica=[3, 16]), A100)
    assert not found.services
    assert [(r.resource, r.required) for r in found.rejections] == [("parallelism", 3), ("parallelism", 16)]
    assert found.rejections[1].available == 8


def test_dominated_deployments_are_dropped_with_their_rival() -> None:
    """Without targets the smallest replica is the most efficient, and larger ones say by what they lose."""
    found = estimates(service(), A100)
    assert [e.deployment.gpus_per_replica for e in found.services] == [1]
    dropped = rejections(found, "dominated")
    assert {r.deployment.split()[1] for r in dropped} == {"TP2", "TP4", "TP8"}
    assert all(r.required > r.available and "dominated by bf16 TP1" in r.reason for r in dropped)


def test_few_deployments_are_kept() -> None:
    """At most four per service and GPU, whatever the choice of formats."""
    chat = service(weights=["bf16", "fp8", "int8", "int4"], latency={"p95_ttft": "150 ms", "p95_tpot": "12 ms"})
    found = estimates(chat, H100, A100)
    for card in ("H100-80GB-SXM", "A100-80GB-SXM"):
        assert 1 <= sum(e.gpu_id == card for e in found.services) <= 4


def test_every_estimate_carries_its_chain_and_range() -> None:
    """Steps name symbol, formula and source; the range comes from engines left out of the fit."""
    estimate = estimates(service(), H100).services[0]
    symbols = [step.symbol for step in estimate.steps]
    assert symbols[:3] == ["W", "k", "free"]
    assert {"B[all]", "TTFT[all]", "TPOT[all]", "r[all]", "cap[all]"} <= set(symbols)
    assert all(step.formula and step.source for step in estimate.steps)
    assert 0 < estimate.low_factor < 1 < estimate.high_factor


def test_defaults_are_listed_as_assumptions() -> None:
    """KV format and cap by default, weights as the user said, the range as an estimate."""
    listed = {a.name: a for a in estimates(service(weights="fp8"), H100).assumptions}
    assert listed["chat: weights"].kind == "user"
    assert listed["chat: KV cache"].kind == "default"
    assert listed["chat: throughput ÷ estimate"].low == THROUGHPUT_RANGE.low_factor


def test_golden_figures_of_one_deployment() -> None:
    """Llama-3.1-8B in bf16 on one H100, 1,000 + 250 tokens: a change of these figures must be meant."""
    estimate = estimates(service(max_batch=64), H100).services[0]
    c = estimate.classes[0]
    assert estimate.deployment.batch == 64
    assert estimate.free_memory_bytes == pytest.approx(62.475e9, rel=1e-3)
    assert c.kv_bytes_per_sequence == 131_072 * (1000 + 0.85 * 250)
    assert c.tpot_ms == pytest.approx(17.54, rel=0.001)
    assert 1 / c.replica_seconds_per_request == pytest.approx(13.96, rel=0.001)
