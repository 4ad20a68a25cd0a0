"""Errors of predictions against measurements, in all and by target, GPU, kind, model and publication."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from optimizer.evaluate.types import Prediction

PERCENT = 100.0
GROUPINGS: dict[str, Callable[[Prediction], str]] = {
    "target": lambda p: p.target,
    "gpu": lambda p: p.gpu,
    "kind": lambda p: p.kind,
    "model": lambda p: p.model,
    "source": lambda p: p.source,
}


@dataclass(frozen=True, slots=True)
class Score:
    """How far a group of predictions is off, in percent; `worst` is the one furthest from its measurement."""

    n: int
    median_abs_pct: float
    p90_abs_pct: float
    bias_pct: float
    range_coverage: float
    worst: Prediction


def quantile(values: Sequence[float], share: float) -> float:
    """Quantile of `values` by linear interpolation between the order statistics (type 7 of Hyndman and Fan 1996).

    Raises
    ------
    ValueError
        If there are no values.
    """
    if not values:
        msg = "no values to take a quantile of"
        raise ValueError(msg)
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def score(predictions: Sequence[Prediction]) -> Score | None:
    """Score of a group, None if it is empty.

    The median and the 90th percentile are of |error|, the bias is the median of the signed error.
    """
    if not predictions:
        return None
    sizes = [abs(p.error) for p in predictions]
    return Score(
        n=len(predictions),
        median_abs_pct=PERCENT * statistics.median(sizes),
        p90_abs_pct=PERCENT * quantile(sizes, 0.9),
        bias_pct=PERCENT * statistics.median(p.error for p in predictions),
        range_coverage=sum(p.in_range for p in predictions) / len(predictions),
        worst=max(predictions, key=lambda p: abs(p.error)),
    )


def score_by(predictions: Iterable[Prediction], grouping: str) -> dict[str, Score]:
    """Scores by `target`, `gpu`, `kind`, `model` or `source`, in the order of their names."""
    name = GROUPINGS[grouping]
    groups: dict[str, list[Prediction]] = {}
    for prediction in predictions:
        groups.setdefault(name(prediction), []).append(prediction)
    scores = {group: score(members) for group, members in sorted(groups.items())}
    return {group: found for group, found in scores.items() if found is not None}
