import pytest
from pydantic import TypeAdapter

from catalog import load_catalog
from optimizer.estimator.calibration import calibration_of
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.workloads import AnyWorkload, Measurement

CATALOG = load_catalog()
CARDS = [CATALOG.gpu(name) for name in ("H100-80GB-SXM", "A100-80GB-SXM", "L40S", "H200-SXM", "B200-SXM")]
MEASURED = CARDS[:3]
CHAT = {
    "name": "w", "kind": "service", "model": "llama-3.1-8b", "weights": "bf16", "gpus_per_replica": 1,
    "tokens": {"input": 500, "output": 200},
}  # fmt: skip
NIGHTLY = {
    "name": "w", "kind": "batch", "model": "llama-3.1-8b", "weights": "bf16", "gpus_per_replica": 1,
    "requests": {"count": 1e6, "input": 500, "output": 200},
}  # fmt: skip


def found(workload, measurements=()):
    parsed = TypeAdapter(AnyWorkload).validate_python(workload)
    sizes = {card.gpu_id: (8,) for card in CARDS}
    return estimate_all([parsed], CARDS, sizes, CATALOG.model, list(measurements), {})


def rates(estimates):
    """Requests per second of a replica at its cap, or per GPU-hour, by GPU."""
    services = {e.gpu_id: e.utilisation_cap / e.classes[0].replica_seconds_per_request for e in estimates.services}
    return services | {e.gpu_id: e.units_per_gpu_hour / 3600 for e in estimates.jobs}


def measurements(plain, factors):
    return [
        Measurement(workload="w", gpu=card.gpu_id, requests_per_s=plain[card.gpu_id] * factor)
        for card, factor in zip(MEASURED, factors, strict=False)
    ]


@pytest.mark.parametrize("workload", [CHAT, NIGHTLY], ids=["service", "batch"])
def test_three_measurements_calibrate_what_was_not_measured(workload):
    """Other GPU types run at the median of measured ÷ estimated; the measured ones as measured; it is listed."""
    plain = rates(found(workload))
    estimates = found(workload, measurements(plain, (0.9, 0.8, 0.5)))
    calibrated = rates(estimates)
    for card in CARDS[3:]:
        assert calibrated[card.gpu_id] == pytest.approx(0.8 * plain[card.gpu_id])
    assert calibrated["L40S"] == pytest.approx(0.5 * plain["L40S"])
    listed = [a for a in estimates.assumptions if "median of 3 measured" in a.name]
    assert [a.value for a in listed] == [pytest.approx(0.8)]
    others = [e for e in (*estimates.services, *estimates.jobs) if not e.measured]
    assert all(any(step.symbol == "calibration" for step in e.steps) for e in others)


def test_two_measurements_do_not():
    """One or two rates carry their own noise: estimates stay as they are."""
    plain = rates(found(CHAT))
    estimates = found(CHAT, measurements(plain, (0.5, 0.5)))
    assert rates(estimates)["B200-SXM"] == pytest.approx(plain["B200-SXM"])
    assert not any("measured ÷ estimated" in a.name for a in estimates.assumptions)


def test_a_calibration_is_a_median():
    """An outlier does not move it."""
    calibration = calibration_of([0.9, 1.0, 30.0])
    assert calibration is not None
    assert calibration.factor == 1.0
    assert calibration_of([0.5, 0.5]) is None
