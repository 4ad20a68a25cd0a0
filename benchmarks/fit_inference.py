"""Fit the estimator's serving constants to the open measurements.

    python benchmarks/fit_inference.py            prints the constants and the errors
    python benchmarks/fit_inference.py --write    writes them to optimizer/estimator/constants.csv

Needs scipy (`pip install gpumix[fit]`). Residuals are ln(predicted ÷ measured) of all targets jointly, soft L1 at 0.1,
publications weighted by n^-1/4 per target. Every constant has a prior with the weight of 0.45 of a residual per unit
of ln: what the rows do not settle stays near it. The priors are round figures, set after first fits to the same tables;
docs/accuracy.md says how left-out figures change with a weaker pull.
"""

import argparse
import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog import Catalog, load_catalog
from optimizer.estimator.constants import CONSTANTS, constants_replaced
from optimizer.evaluate.inference import MEASURED_COLUMNS, predicted_targets
from optimizer.evaluate.rows import positive, publication
from optimizer.evaluate.scoring import quantile
from optimizer.evaluate.serving_case import ServingCase, serving_case

ROOT = Path(__file__).parent.parent
MEASUREMENTS = ROOT / "catalog" / "measurements" / "inference.csv"
TABLE = ROOT / "optimizer" / "estimator" / "constants.csv"
LOSS_SCALE = 0.1
PRIOR_WEIGHT = 0.45
SPAN = 3.0  # in ln: a constant may move by a factor of twenty
HIGHEST = {"gemm_bandwidth_share": 0.97, "kv_bandwidth_share": 0.97, "gemm_compute_share": 0.97}

PRIORS = {
    "gemm_bandwidth_share": 0.95,
    "kv_bandwidth_share": 0.8,
    "gemm_compute_share": 0.7,
    "attention_compute_share": 0.45,
    "int8_kernel_share": 0.5,
    "fp4_kernel_share": 0.85,
    "weight_only_kernel_share": 0.6,
    "moe_kernel_share": 0.8,
    "nvlink_share": 0.5,
    "pcie_latency_us": 50.0,
    "pcie_share": 0.6,
    "pipeline_hop_ms": 0.3,
    "step_overhead_ms": 0.8,
    "layer_overhead_us": 60.0,
    "sequence_overhead_us": 8.0,
    "host_layer_us": 100.0,
    "host_layer_us_consumer": 300.0,
    "vector_flop_per_weight": 20.0,
    "vector_flop_per_packed_weight": 6.0,
    "accumulating_compute_share": 0.35,
    "prefill_overlap_share": 0.85,
    "ttft_contention_share": 0.25,
    "ttft_contention_share_sglang": 0.25,
    "ttft_fixed_ms_vllm": 40.0,
    "ttft_fixed_ms_tensorrt_llm": 40.0,
    "ttft_fixed_ms_sglang": 40.0,
    "ttft_open_fixed_ms": 5.0,
    "server_target_share": 0.93,
}


@dataclass(frozen=True, slots=True)
class Point:
    """One measured target of a row."""

    row_id: str
    target: str
    gpu: str
    model: str
    kind: str
    source: str
    measured: float
    case: ServingCase


def scored_points(catalog: Catalog | None = None) -> list[Point]:
    """All measured targets of the rows that are scored."""
    catalog = catalog or load_catalog()
    with MEASUREMENTS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["quality"] == "ok"]
    return [point for row in rows for point in _points(row, catalog)]


def _points(row: Mapping[str, str], catalog: Catalog) -> list[Point]:
    case = serving_case(row, catalog)
    found = []
    for target in predicted_targets(case):
        measured = positive(row, MEASURED_COLUMNS[target])
        if measured is not None:
            place = (row["id"], target, row["gpu"], row["model"], row["kind"], publication(row))
            found.append(Point(*place, measured, case))
    return found


def predictions(points: Sequence[Point], constants: Mapping[str, float]) -> list[float]:
    """Predictions of points with these constants; targets of one row share its run."""
    with constants_replaced(constants):
        runs: dict[str, dict[str, float]] = {}
        for point in points:
            if point.row_id not in runs:
                runs[point.row_id] = predicted_targets(point.case)
        return [runs[point.row_id][point.target] for point in points]


def fit(
    points: Sequence[Point], start: Mapping[str, float], rounds: int, prior_weight: float = PRIOR_WEIGHT
) -> dict[str, float]:
    """Constants that fit `points`, from `start`, in at most `rounds` steps."""
    import numpy as np
    from scipy.optimize import least_squares

    names = list(PRIORS)
    priors = np.log([PRIORS[name] for name in names])
    counts = Counter((point.target, point.source) for point in points)
    weights = np.array([counts[point.target, point.source] ** -0.125 for point in points])  # squared: n^-1/4
    measured = np.log([point.measured for point in points])

    def residuals(logs: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> object:
        values = dict(zip(names, np.exp(logs).tolist(), strict=True))
        errors = np.log(predictions(points, values)) - measured
        return np.concatenate([weights * errors, prior_weight * (logs - priors)])

    highest = np.array([math.log(HIGHEST.get(name, math.inf)) for name in names])
    bounds = (priors - SPAN, np.minimum(priors + SPAN, highest))
    first = np.clip(np.log([start[name] for name in names]), bounds[0] + 1e-6, bounds[1] - 1e-6)
    found = least_squares(residuals, first, loss="soft_l1", f_scale=LOSS_SCALE, max_nfev=rounds, bounds=bounds)
    return dict(zip(names, np.exp(found.x).tolist(), strict=True))


def current_constants() -> dict[str, float]:
    """Values of the fitted constants as they stand in the table."""
    return {name: CONSTANTS[name].value for name in PRIORS}


def errors_by_target(points: Sequence[Point], predicted: Sequence[float]) -> dict[str, tuple[int, float, float]]:
    """Number, median and 90th percentile of |error| in percent, by target."""
    sizes: dict[str, list[float]] = {}
    for point, value in zip(points, predicted, strict=True):
        sizes.setdefault(point.target, []).append(100 * abs(value / point.measured - 1))
    return {target: (len(e), quantile(e, 0.5), quantile(e, 0.9)) for target, e in sorted(sizes.items())}


def write_table(values: Mapping[str, float]) -> None:
    """Put fitted values, to three digits, into the table of constants."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        lines = file.read().splitlines()
    for i, line in enumerate(lines):
        name, _, rest = line.partition(",")
        if name in values:
            lines[i] = f"{name},{values[name]:.3g},{rest.partition(',')[2]}"
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Fit, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    points = scored_points()
    print("before", errors_by_target(points, predictions(points, current_constants())))
    values = fit(points, current_constants(), options.rounds)
    print("after", errors_by_target(points, predictions(points, values)))
    for name, value in values.items():
        print(f"{name:40s} {value:.4g}")
    if options.write:
        write_table(values)


if __name__ == "__main__":
    main()
