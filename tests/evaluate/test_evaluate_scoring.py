import math

import pytest

from optimizer.evaluate.scoring import quantile, score, score_by
from optimizer.evaluate.types import Prediction


def prediction(name, predicted, measured=100.0, low=90.0, high=110.0, **facts):
    known = {"target": "out_tps", "kind": "static", "gpu": "L4", "model": "llama-7b", "source": "a/b@c", "scored": True}
    return Prediction(id=name, predicted=predicted, measured=measured, low=low, high=high, **{**known, **facts})


def test_percentiles_interpolate_linearly():
    """The 90th percentile lies between the order statistics, as in numpy's default."""
    assert quantile([0.1, 0.2, 0.3, 0.4], 0.9) == pytest.approx(0.37)
    assert quantile([5.0], 0.9) == 5.0
    assert quantile([2.0, 1.0], 0.5) == 1.5


def test_score_of_a_group():
    """Error is predicted ÷ measured − 1; median and 90th percentile of its size, bias the median signed error."""
    found = score([prediction("a", 90), prediction("b", 120), prediction("c", 95)])
    assert found is not None
    assert (found.n, found.worst.id) == (3, "b")
    assert found.median_abs_pct == pytest.approx(10)
    assert found.p90_abs_pct == pytest.approx(18)
    assert found.bias_pct == pytest.approx(-5)
    assert found.range_coverage == 1


def test_range_coverage_counts_measurements():
    """A measurement outside its range is not covered, whatever the prediction."""
    found = score([prediction("a", 100, measured=111), prediction("b", 100, measured=90)])
    assert found is not None
    assert found.range_coverage == 0.5


def test_nothing_has_no_score():
    """An empty group has no score instead of a zero."""
    assert score([]) is None
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)


def test_groups_are_disjoint_and_complete():
    """Every prediction is in exactly one group of a grouping."""
    rows = [prediction(str(i), 100, gpu=gpu) for i, gpu in enumerate(["L4", "T4", "L4"])]
    groups = score_by(rows, "gpu")
    assert list(groups) == ["L4", "T4"]
    assert math.fsum(group.n for group in groups.values()) == len(rows)
