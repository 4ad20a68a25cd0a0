"""Ranges of serving estimates: measured ÷ predicted, 5th to 95th percentile, by target. Read from `ranges.csv`.

Cases whose GPU, model and engine are all among the open measurements have the spread found with the GPU left out of
the fit; others that with the whole source left out (benchmarks/cross_validate.py).
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Range:
    """Measured ÷ predicted lies between `low_factor` and `high_factor` in 90 % of cases."""

    low_factor: float
    high_factor: float
    source: str
    date: str


@cache
def ranges() -> dict[tuple[str, bool], Range]:
    """Range by target and by whether GPU, model and engine were seen."""
    text = files("optimizer.estimator").joinpath("ranges.csv").read_text(encoding="utf-8")
    return {
        (row["target"], row["seen"] == "yes"): Range(
            float(row["low_factor"]), float(row["high_factor"]), row["source"], row["date"]
        )
        for row in csv.DictReader(text.splitlines())
    }


def range_of(target: str, *, seen: bool) -> Range:
    """Range of a target."""
    return ranges()[target, seen]
