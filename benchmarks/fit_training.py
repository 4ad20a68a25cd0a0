"""Fit of the training constants to published measurements, and how they do on what was left out of the fit.

    python benchmarks/fit_training.py training                        constants fitted to all scored rows
    python benchmarks/fit_training.py training --leave-out source     every publication predicted without it
    python benchmarks/fit_training.py memory --leave-out gpu          the same for memory, by GPU

Robust least squares (soft L1) on log(predicted ÷ measured), a publication's n rows weighing n^-1/4 each, with a prior
around the constants in use, so that one which a fold says nothing of stays where it is (a factor of 2; for memory 10 %,
as its terms are counted, not fitted). Needs scipy (the `fit` extra). Values go by hand to
optimizer/estimator/constants.csv, rounded.
"""

import argparse
import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from catalog.load import load_catalog
from optimizer.estimator.constants import CONSTANTS
from optimizer.estimator.jobs import range_class
from optimizer.evaluate import memory, training
from optimizer.evaluate.rows import required_positive, text
from optimizer.evaluate.scoring import quantile
from optimizer.evaluate.shapes import measured_model

ERROR_SCALE = 0.2
RECORD = Path(__file__).parent / "cross_validation_training.json"
TARGETS = {"training": training.TARGET, "memory": memory.TARGET}
PRIOR_LOG_WIDTH = {"training": math.log(2), "memory": math.log(1.1)}
FITTED = {
    "training": (
        "training_compute_share", "training_width_half", "training_attention_share", "training_moe_share",
        "real_run_share", "low_precision_exponent", "qlora_kernel_share", "recompute_share", "launch_ms_per_layer",
        "bubble_share", "scale_exponent",
    ),
    "memory": ("activation_share", "logits_bytes", "training_memory_slack_share"),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A measured row, ready to be predicted under any constants."""

    id: str
    source: str
    gpu: str
    kind: str
    measured: float
    predict: Callable[[], float]


def source_of(row: dict[str, str]) -> str:
    """Publisher: owner and repository without version, paper, or site."""
    address = text(row, "source").split()[0].rstrip(",;")
    repository = re.match(r"https?://github\.com/([^/]+/[^/]+)", address)
    if repository:
        return re.sub(r"_v[\d.]+$", "", repository[1])
    parts = address.removeprefix("https://").split("/")
    return "/".join(parts[:3]) if "arxiv" in parts[0] else parts[0]


def rows_of(kind: str) -> list[Row]:
    """Scored rows of the published measurements."""
    catalog = load_catalog()
    table = files("catalog").joinpath("measurements", f"{kind}.csv").read_text(encoding="utf-8")
    found = []
    for cells in csv.DictReader(table.splitlines()):
        scored = text(cells, "eval_use") == "yes" if kind == "training" else memory.is_scored(cells)
        if not scored:
            continue
        if kind == "training":
            model = measured_model(cells, catalog, mixture=cells["kind"] == "pretrain_moe")
            gpu = training.training_gpu(cells, catalog)
            run = training.run_of(cells, gpu, training.plan_of(cells, model, gpu))
            measured, predict, group = required_positive(cells, training.TARGET), _rate(run), range_class(run.plan)
        else:
            run_memory = memory.run_of(cells, catalog)
            measured, predict, group = memory.measured_bytes(cells), _bytes(run_memory), run_memory.plan.method
        found.append(Row(cells["id"], source_of(cells), cells["gpu"], group, measured, predict))
    return found


def _rate(run: training.MeasuredRun) -> Callable[[], float]:
    return lambda: run.tokens_per_s_per_gpu


def _bytes(run: memory.MeasuredMemory) -> Callable[[], float]:
    return lambda: run.bytes_in_scope


def set_constants(names: Sequence[str], logs: Sequence[float]) -> None:
    """Put exp(logs) in place of the constants in use."""
    for name, log in zip(names, logs, strict=True):
        value = float(math.exp(log))
        if name == "training_memory_slack_share":
            name, value = "training_memory_slack", 1 + value
        CONSTANTS[name] = replace(CONSTANTS[name], value=value)


def start_of(names: Sequence[str]) -> list[float]:
    """Logarithms of the constants in use."""
    slack = CONSTANTS["training_memory_slack"].value - 1
    return [math.log(slack if name == "training_memory_slack_share" else CONSTANTS[name].value) for name in names]


def fit(rows: Sequence[Row], names: Sequence[str], start: Sequence[float], prior_width: float) -> list[float]:
    """Logarithms of the constants that fit the rows best."""
    count = Counter(row.source for row in rows)
    weight = np.array([count[row.source] ** -0.125 for row in rows])
    measured = np.log([row.measured for row in rows])

    def residuals(logs: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        set_constants(names, logs)
        predicted = np.log([row.predict() for row in rows])
        prior = (np.asarray(logs) - start) / prior_width * ERROR_SCALE
        return np.concatenate([(predicted - measured) * weight, prior])

    scale = ERROR_SCALE * float(np.median(weight))
    return [float(v) for v in least_squares(residuals, start, loss="soft_l1", f_scale=scale, max_nfev=30).x]


def report(title: str, ratios: Sequence[float]) -> None:
    """Median and 90th percentile of |predicted ÷ measured − 1|, and the band of measured ÷ predicted."""
    errors = [abs(ratio - 1) for ratio in ratios]
    band = ", ".join(f"{quantile([1 / r for r in ratios], q):.2f}" for q in (0.05, 0.8, 0.9, 0.95))
    middle, tail = 100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9)
    print(f"{title:38} n {len(ratios):4}  median {middle:5.1f} %  p90 {tail:5.1f} %", end="")
    print(f"  measured/predicted at 5, 80, 90, 95 %: {band}")


def left_out(rows: Sequence[Row], names: Sequence[str], by: str, start: Sequence[float], width: float) -> list[float]:
    """Predicted ÷ measured of every row by constants fitted without its `source` or `gpu`."""
    found: dict[str, float] = {}
    for group in sorted({getattr(row, by) for row in rows}):
        set_constants(names, fit([r for r in rows if getattr(r, by) != group], names, start, width))
        ratios = {r.id: r.predict() / r.measured for r in rows if getattr(r, by) == group}
        report(f"without {group}", list(ratios.values()))
        found |= ratios
    for kind in sorted({row.kind for row in rows}):
        report(f"{kind}, each {by} left out", [found[row.id] for row in rows if row.kind == kind])
    report(f"each {by} left out", list(found.values()))
    return [found[row.id] for row in rows]


def summary(ratios: Sequence[float]) -> dict[str, float]:
    """Number, median, 90th percentile and bias of the error in percent."""
    sizes, signed = [100 * abs(r - 1) for r in ratios], [100 * (r - 1) for r in ratios]
    median, tail, bias = quantile(sizes, 0.5), quantile(sizes, 0.9), quantile(signed, 0.5)
    return {
        "n": len(ratios),
        "median_abs_pct": round(median, 2),
        "p90_abs_pct": round(tail, 2),
        "bias_pct": round(bias, 2),
    }


def record(kind: str, figures: dict[str, dict[str, float]]) -> None:
    """Put the figures of a kind into benchmarks/cross_validation_training.json."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for group, found in figures.items():
        recorded.setdefault(group, {})[TARGETS[kind]] = found
    RECORD.write_text(json.dumps(recorded, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(FITTED))
    parser.add_argument("--leave-out", choices=("source", "gpu"), action="append", default=[])
    parser.add_argument("--record", action="store_true", help="write both to benchmarks/cross_validation_training.json")
    asked = parser.parse_args()
    rows, names, width = rows_of(asked.kind), FITTED[asked.kind], PRIOR_LOG_WIDTH[asked.kind]
    in_use = start_of(names)
    figures = {"in_sample": [row.predict() / row.measured for row in rows]}
    report("constants in use", figures["in_sample"])
    best = fit(rows, names, in_use, width)
    set_constants(names, best)
    for name, log in zip(names, best, strict=True):
        print(f"  {name:32} {math.exp(log):.4g}")
    report("fitted to all rows", [row.predict() / row.measured for row in rows])
    for by in ("source", "gpu") if asked.record else asked.leave_out:
        figures[f"{by}_left_out"] = left_out(rows, names, by, best, width)
    if asked.record:
        record(asked.kind, {group: summary(ratios) for group, ratios in figures.items()})


if __name__ == "__main__":
    main()
