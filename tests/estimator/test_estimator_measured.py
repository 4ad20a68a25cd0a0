"""Measurements of the buyer: they replace the estimate for their point and are marked so."""

from typing import Any

import pytest

from optimizer.errors import ProblemFileError
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.types import Estimates
from optimizer.estimator.workloads import AnyWorkload, Batch, Measurement, Service, Training
from tests.estimator.builders import A100, H100, RTX_4090, no_model, resolve


def service(**changes: Any) -> Service:
    fields: dict[str, Any] = {"name": "bot", "kind": "service", "tokens": {"input": 300, "output": 50}}
    return Service.model_validate(fields | changes)


def measure(**fields: Any) -> Measurement:
    return Measurement.model_validate({"workload": "bot"} | fields)


def run(workload: AnyWorkload, *measurements: Measurement, **options: tuple[str, int]) -> Estimates:
    sizes = {"RTX-4090": (1, 2, 8), "mine": (8,)}
    return estimate_all([workload], [RTX_4090], sizes, resolve, list(measurements), options)


def test_a_measured_rate_needs_no_model_and_no_figures() -> None:
    """An own GPU without figures: rate as given, utilisation cap 1, no resource figures, no range."""
    found = estimate_all([service()], [], {"mine": (8,)}, no_model, [measure(gpu="mine", requests_per_s=4.0)], {})
    (estimate,) = found.services
    assert estimate.measured
    assert (estimate.utilisation_cap, estimate.free_memory_bytes, estimate.effective_flop_per_s) == (1.0, 0.0, 0.0)
    assert (estimate.low_factor, estimate.high_factor) == (1.0, 1.0)
    assert estimate.classes[0].replica_seconds_per_request == 0.25
    assert estimate.deployment.gpus_per_replica == 1
    assert found.rejections == ()
    assert [a.kind for a in found.assumptions] == ["measured"]


def test_tokens_per_second_are_divided_by_the_output() -> None:
    """150 tokens/s per card at 50 tokens an answer are 3 requests/s: 11.57 cards at 34.72 requests/s."""
    found = run(service(), measure(gpu="RTX-4090", tokens_per_s=150.0))
    rate = 1 / found.services[0].classes[0].replica_seconds_per_request
    assert rate == pytest.approx(3.0)
    assert 1e6 * 3 / 86_400 / rate == pytest.approx(11.57, abs=0.005)


def test_a_gpu_without_figures_and_without_measurement_is_rejected() -> None:
    """The rejection names the GPU and the workload."""
    found = run(service(), measure(gpu="RTX-4090", requests_per_s=1.0))
    assert [(r.gpu_id, r.resource) for r in found.rejections] == [("mine", "figures")]
    assert "no measurement" in found.rejections[0].reason


def test_a_measurement_replaces_all_estimates_it_leaves_open() -> None:
    """Format and replica size unsaid: it stands for the GPU type; said: for that point only."""
    chat = service(model="llama-3.1-8b", weights=["fp8", "int4"], gpus=["RTX-4090"])
    open_ended = run(chat, measure(gpu="RTX-4090", requests_per_s=1.0))
    assert [e.measured for e in open_ended.services] == [True]
    analytic = run(chat)
    label = {(e.deployment.weights, e.deployment.gpus_per_replica) for e in analytic.services}
    weights, size = sorted(label)[0]
    point = run(chat, measure(gpu="RTX-4090", requests_per_s=1.0, weights=weights, gpus_per_replica=size))
    left = {(e.deployment.weights, e.deployment.gpus_per_replica) for e in point.services if not e.measured}
    assert left == label - {(weights, size)}
    assert sum(e.measured for e in point.services) == 1


def test_classes_that_were_not_measured_are_absent() -> None:
    """A measurement of one class serves that class only; one of all classes gives way to one of the class."""
    classes = [{"name": "a", "input": 10, "output": 10}, {"name": "b", "input": 10, "output": 20}]
    two = service(tokens=None, classes=classes)
    only = run(two, measure(gpu="mine", requests_per_s=2.0, **{"class": "a"})).services[0]
    assert [c.request_class for c in only.classes] == ["a"]
    both = run(
        two, measure(gpu="mine", tokens_per_s=40.0), measure(gpu="mine", requests_per_s=5.0, **{"class": "a"})
    ).services[0]
    assert [(c.request_class, 1 / c.replica_seconds_per_request) for c in both.classes] == [("a", 5.0), ("b", 2.0)]


def test_a_measurement_on_a_quote_holds_for_that_quote() -> None:
    """It carries the offer, its node size, and the whole node as the replica."""
    found = run(service(), measure(option="vendor-A", requests_per_s=30.0), **{"vendor-A": ("mine", 8)})
    (estimate,) = found.services
    assert (estimate.option, estimate.gpu_id, estimate.gpus_per_node) == ("vendor-A", "mine", 8)
    assert (estimate.deployment.gpus_per_replica, estimate.deployment.least_gpus_per_node) == (8, 8)


def test_a_measurement_on_a_node_size_leaves_the_others_to_the_estimate() -> None:
    """Measured on nodes of 8: nodes of 1 and 2 keep their analytic estimate."""
    chat = service(model="llama-3.1-8b", weights="fp8", gpus=["RTX-4090"])
    found = run(chat, measure(gpu="RTX-4090", gpus_per_node=8, gpus_per_replica=1, requests_per_s=9.0))
    assert {(e.measured, e.gpus_per_node) for e in found.services} == {(True, 8), (False, 1), (False, 2)}


def test_an_unknown_offer_or_class_says_what_is_there() -> None:
    """The message lists the names that may be written."""
    with pytest.raises(ProblemFileError, match="unknown option"):
        run(service(), measure(option="vendor-B", requests_per_s=1.0), **{"vendor-A": ("mine", 8)})
    with pytest.raises(ProblemFileError, match=r'unknown class "x".*write one of: all'):
        run(service(), measure(gpu="mine", requests_per_s=1.0, **{"class": "x"}))


def test_tokens_per_second_without_output_tokens_are_refused() -> None:
    """A rate in tokens cannot become requests without their length."""
    with pytest.raises(ProblemFileError, match="needs its output tokens"):
        run(service(tokens=None), measure(gpu="mine", tokens_per_s=100.0))


def training(**changes: Any) -> Training:
    fields: dict[str, Any] = {"name": "bot", "kind": "training", "tokens": 1e9, "model": "llama-7b", "sequence": 4096}
    return Training.model_validate(fields | changes)


def test_training_is_measured_in_tokens_or_mfu() -> None:
    """9,600 tokens/s per GPU, or the MFU that says the same, give one rate per GPU-hour."""
    flop = 6 * 6_738_415_616 + 12 * 32 * 4096 * 4096
    mfu = 9600 * flop / 989e12
    sizes = {"H100-80GB-SXM": (8,)}
    for fields in ({"tokens_per_s_per_gpu": 9600.0}, {"mfu": mfu}):
        measured = measure(gpu="H100-80GB-SXM", **fields)
        (estimate,) = estimate_all([training()], [H100], sizes, resolve, [measured], {}).jobs
        assert estimate.units_per_gpu_hour == pytest.approx(9600 * 3600)
        assert estimate.measured
        assert estimate.min_gpus == 1


def test_own_units_take_a_yield_per_gpu_hour() -> None:
    """Work in a unit of one's own needs no model and no tokens; the least number of GPUs is the job's."""
    job = training(tokens=None, model=None, work={"amount": 4200.0, "unit": "EFLOP"}, min_gpus=40, headroom=0.1)
    measured = measure(option="box", per_gpu_hour=1.5)
    found = estimate_all([job], [], {"mine": (8,)}, no_model, [measured], {"box": ("mine", 8)})
    (estimate,) = found.jobs
    assert (estimate.units_per_gpu_hour, estimate.min_gpus, estimate.option) == (1.5, 40, "box")
    assert estimate.deployment.gpus_per_replica == 1
    assert found.demands[0].unit == "EFLOP"
    assert found.demands[0].amount == pytest.approx(4620.0)


def test_rates_that_do_not_match_the_demand_are_refused() -> None:
    """Tokens per second say nothing of EFLOP; the message says what to give."""
    job = training(tokens=None, work={"amount": 1.0, "unit": "EFLOP"})
    with pytest.raises(ProblemFileError, match=r'cannot be turned into "EFLOP".*per_gpu_hour'):
        run(job, measure(gpu="RTX-4090", tokens_per_s_per_gpu=100.0))


def test_batches_take_tokens_or_requests_of_a_replica() -> None:
    """100 output tokens/s of 2 GPUs at 200 tokens a request are 900 requests per GPU-hour."""
    job = Batch.model_validate(
        {"name": "bot", "kind": "batch", "requests": {"count": 1000, "input": 10, "output": 200}}
    )
    for fields in ({"tokens_per_s": 100.0}, {"requests_per_s": 0.5}):
        (estimate,) = run(job, measure(gpu="mine", gpus_per_replica=2, **fields)).jobs
        assert estimate.units_per_gpu_hour == pytest.approx(900)
        assert estimate.deployment.gpus_per_replica == 2


def test_measurements_outside_the_workloads_gpus_are_left_out() -> None:
    """A workload kept to one GPU type does not use a rate measured on another."""
    found = estimate_all(
        [service(gpus=["A100-80GB-SXM"], model="llama-3.1-8b")],
        [A100, RTX_4090],
        {"A100-80GB-SXM": (1,), "RTX-4090": (1,)},
        resolve,
        [measure(gpu="RTX-4090", requests_per_s=1.0)],
        {},
    )
    assert {e.gpu_id for e in found.services} == {"A100-80GB-SXM"}
