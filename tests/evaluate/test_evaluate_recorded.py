import json
from functools import cache
from pathlib import Path

import pytest

from catalog import load_catalog
from optimizer.evaluate.document import evaluation_document
from optimizer.evaluate.run import evaluate_file

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
TOLERANCE_PCT = 0.3
LEAST_PREDICTED = {"inference": 0.95, "training": 0.85, "memory": 0.90}


@cache
def document(kind):
    path = ROOT / "catalog" / "measurements" / f"{kind}.csv"
    return evaluation_document(evaluate_file(kind, str(path), load_catalog()))


@pytest.mark.parametrize("kind", sorted(RECORDED))
def test_errors_on_the_open_measurements_are_as_recorded(kind):
    """A drift of the estimator, better or worse, must be meant: benchmarks/accuracy.py --record writes the figures."""
    found = document(kind)["summary"]["by_target"]
    assert set(found) == set(RECORDED[kind]["by_target"])
    for target, recorded in RECORDED[kind]["by_target"].items():
        assert found[target]["n"] == recorded["n"]
        for figure in ("median_abs_pct", "p90_abs_pct", "bias_pct"):
            assert found[target][figure] == pytest.approx(recorded[figure], abs=TOLERANCE_PCT), (target, figure)


@pytest.mark.parametrize("kind", sorted(RECORDED))
def test_nearly_all_rows_are_predicted_and_most_lie_in_their_range(kind):
    """Rows without a prediction are few, and measurements lie in their 90 % range as often as recorded."""
    found = document(kind)
    assert found["counts"]["unreadable"] == 0
    assert len(found["not_predicted"]) <= (1 - LEAST_PREDICTED[kind]) * found["counts"]["rows"]
    assert found["range_coverage"] >= 0.88


LIMITS = {
    "out_tps": (9, 30),
    "tpot_ms": (9, 36),
    "ttft_prefill_ms": (18, 55),
    "ttft_ms": (28, 85),
    "out_tps_single": (12, 58),
}
"""Median and 90th percentile of the error in percent that the serving estimator was built to stay below."""


@pytest.mark.parametrize("target", sorted(LIMITS))
def test_serving_errors_stay_below_their_limits(target):
    """The figures promised in docs/accuracy.md hold on the open rows."""
    median, p90 = LIMITS[target]
    found = document("inference")["summary"]["by_target"][target]
    assert found["median_abs_pct"] <= median
    assert found["p90_abs_pct"] <= p90
