"""How the serving estimator does on what was left out of its fit: by source, GPU and model.

    python benchmarks/cross_validate.py            prints the errors, writes benchmarks/cross_validation.json
    python benchmarks/cross_validate.py --write-ranges    also writes optimizer/estimator/ranges.csv

For every source (publication), GPU type or model, all constants are fitted anew without its rows (from the full fit,
a few steps), then its rows are predicted. Needs scipy; takes some minutes.
"""

import argparse
import csv
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fit_inference import (
    PRIOR_WEIGHT,
    ROOT,
    Point,
    current_constants,
    errors_by_target,
    fit,
    predictions,
    scored_points,
)

from optimizer.evaluate.scoring import quantile

RECORD = ROOT / "benchmarks" / "cross_validation.json"
RANGES = ROOT / "optimizer" / "estimator" / "ranges.csv"
DATE = "2026-12-01"
GROUPINGS: dict[str, Callable[[Point], str]] = {
    "source": lambda p: p.source,
    "gpu": lambda p: p.gpu,
    "model": lambda p: p.model,
}
WORDS = {"gpu": "GPU", "source": "source"}
SEEN_BY = {"yes": "gpu", "no": "source"}
TAIL = 0.05
WEAK = 0.1


def left_out(points: Sequence[Point], grouping: str, rounds: int, prior_weight: float = PRIOR_WEIGHT) -> list[float]:
    """Prediction of every point by constants fitted without its group."""
    group = GROUPINGS[grouping]
    start = current_constants()
    found: dict[int, float] = {}
    for name in sorted({group(point) for point in points}):
        inside = [i for i, point in enumerate(points) if group(point) == name]
        values = fit([point for point in points if group(point) != name], start, rounds, prior_weight)
        found.update(zip(inside, predictions([points[i] for i in inside], values), strict=True))
    return [found[i] for i in range(len(points))]


def summary(points: Sequence[Point], predicted: Sequence[float]) -> dict[str, dict[str, float]]:
    """Number, median, 90th percentile and bias of the error in percent, by target."""
    record = {}
    for target, (n, median, p90) in errors_by_target(points, predicted).items():
        signed = [v / p.measured - 1 for p, v in zip(points, predicted, strict=True) if p.target == target]
        record[target] = {
            "n": n,
            "median_abs_pct": round(median, 2),
            "p90_abs_pct": round(p90, 2),
            "bias_pct": round(100 * statistics.median(signed), 2),
        }
    return record


def ratios(points: Sequence[Point], predicted: Sequence[float], target: str) -> list[float]:
    """Measured ÷ predicted of a target."""
    return [p.measured / v for p, v in zip(points, predicted, strict=True) if p.target == target]


def write_ranges(points: Sequence[Point], by_grouping: Mapping[str, Sequence[float]], path: Path) -> None:
    """Write the 5th and 95th percentile of measured ÷ predicted: GPU left out (seen), source left out (not seen)."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["target", "seen", "low_factor", "high_factor", "source", "date"])
        for target in sorted({point.target for point in points}):
            widest = (1.0, 1.0)
            for seen, grouping in SEEN_BY.items():
                spread = ratios(points, by_grouping[grouping], target)
                low, high = quantile(spread, TAIL), quantile(spread, 1 - TAIL)
                widest = (min(widest[0], low), max(widest[1], high))  # what was not seen is never surer
                text = f"open measurements with the {WORDS[grouping]} left out of the fit"
                writer.writerow([target, seen, f"{widest[0]:.2f}", f"{widest[1]:.2f}", text, DATE])


def main() -> None:
    """Cross-validate, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--write-ranges", action="store_true")
    options = parser.parse_args()
    points = scored_points()
    predicted = {grouping: left_out(points, grouping, options.rounds) for grouping in GROUPINGS}
    record = {"in_sample": summary(points, predictions(points, current_constants()))}
    record |= {f"{grouping}_left_out": summary(points, values) for grouping, values in predicted.items()}
    record["source_left_out_weak_priors"] = summary(points, left_out(points, "source", options.rounds, WEAK))
    for name, by_target in record.items():
        for target, figures in by_target.items():
            print(name, target, figures)
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if options.write_ranges:
        write_ranges(points, predicted, RANGES)


if __name__ == "__main__":
    main()
