"""The three rules of thumb, exact to their printed arithmetic, as functions and through a workload."""

import doctest

import pytest

from optimizer.estimator import rules_of_thumb
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.sizing import whole_gpus
from optimizer.estimator.workloads import Batch, Measurement, Service, Training
from tests.estimator.builders import A100, RTX_4090, no_model


def test_printed_figures_are_those_of_the_docstrings() -> None:
    """4,352.64 GPUs, 270,336,000 operations, 72,132 requests/s and 2.22 cards."""
    result = doctest.testmod(rules_of_thumb)
    assert result.attempted >= 6
    assert result.failed == 0


def test_the_training_rule_asks_for_4352_gpus() -> None:
    """33e9 parameters on 50 GB in 5 days at 19.5 TFLOP/s: 4,352.64 GPUs, whole 4,353."""
    job = Training.model_validate(
        {
            "name": "pretrain",
            "kind": "training",
            "model": {"architecture": {"layers": 60, "hidden": 6656, "heads": 52, "parameters": 33e9}},
            "dataset": {"size": "50 GB"},
            "deadline": "5 days",
            "estimate_by": "rule-of-thumb",
        }
    )
    found = estimate_all([job], [A100], {"A100-80GB-SXM": (8,)}, no_model, [], {})
    amount = found.demands[0].amount
    assert amount is not None
    need = amount / (found.jobs[0].units_per_gpu_hour * 120)
    assert need == pytest.approx(4352.64, abs=0.005)
    assert whole_gpus(need) == 4353


def test_the_service_rule_says_72132_requests_per_second() -> None:
    """2,200 tokens × 1280 × 96 at 19.5 TFLOP/s: 270,336,000 operations, 72,132 requests/s."""
    service = Service.model_validate(
        {
            "name": "api",
            "kind": "service",
            "model": {"architecture": {"layers": 96, "hidden": 1280, "heads": 20}},
            "tokens": {"input": 200, "output": 2000},
            "estimate_by": "rule-of-thumb",
        }
    )
    found = estimate_all([service], [A100], {"A100-80GB-SXM": (8,)}, no_model, [], {})
    assert 1 / found.services[0].classes[0].replica_seconds_per_request == pytest.approx(72_132, abs=0.5)
    assert dict(found.services[0].steps[0].inputs)["operations"] == 270_336_000


def test_the_batch_rule_takes_three_cards_from_a_measured_rate() -> None:
    """2e6 tokens in 10 h at a measured 25 tokens/s per card: 2.22, so 3 cards."""
    job = Batch.model_validate(
        {"name": "batch", "kind": "batch", "tokens": 2e6, "deadline": "10 h", "estimate_by": "rule-of-thumb"}
    )
    measured = Measurement(workload="batch", gpu="RTX-4090", tokens_per_s=25.0)
    found = estimate_all([job], [RTX_4090], {"RTX-4090": (1,)}, no_model, [measured], {})
    need = 2e6 / (found.jobs[0].units_per_gpu_hour * 10)
    assert need == pytest.approx(2.22, abs=0.005)
    assert whole_gpus(need) == 3


def test_the_batch_rule_without_a_measurement_is_refused() -> None:
    """The rule has no throughput of its own, and says so."""
    job = Batch.model_validate(
        {
            "name": "batch",
            "kind": "batch",
            "model": {"architecture": {"layers": 4, "hidden": 512, "heads": 8}},
            "tokens": 2e6,
            "estimate_by": "rule-of-thumb",
        }
    )
    found = estimate_all([job], [RTX_4090], {"RTX-4090": (1,)}, no_model, [], {})
    assert not found.jobs
    assert "measured tokens/s" in found.rejections[0].reason
