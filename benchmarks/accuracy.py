"""Write the accuracy page from the open measurements: docs/accuracy.md, its plots, and the README's summary.

    python benchmarks/accuracy.py             writes the page, the plots and the README's table
    python benchmarks/accuracy.py --record    also records the figures that tests compare with

Figures with sources left out come from benchmarks/cross_validation*.json (benchmarks/cross_validate.py for serving,
benchmarks/fit_training.py --record for training and memory).
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from article_claims import claims_table
from scatter import scatter_svg

from catalog import load_catalog
from optimizer.estimator.ranges import ranges
from optimizer.evaluate.document import evaluation_document
from optimizer.evaluate.run import Evaluation, Kind, evaluate_file

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
PLOTS = ROOT / "docs" / "accuracy"
README = ROOT / "README.md"
RECORD = ROOT / "tests" / "evaluate" / "recorded.json"
RECORD_OF_TRAINING = ROOT / "tests" / "evaluate" / "recorded_training.json"
CROSS_VALIDATION = ("cross_validation.json", "cross_validation_training.json")
START, END = "<!-- accuracy:start -->", "<!-- accuracy:end -->"
KINDS: tuple[Kind, ...] = ("inference", "training", "memory")
TARGETS = {
    "out_tps": "serving throughput (tokens/s of a replica)",
    "tpot_ms": "time per output token",
    "ttft_prefill_ms": "prompt alone, time to first token",
    "ttft_ms": "time to first token under load",
    "out_tps_single": "one stream (tokens/s)",
    "tok_s_gpu": "training tokens/s per GPU",
    "mem_per_gpu": "training memory per GPU",
}
GROUPINGS = {"kind": "kind of run", "gpu": "GPU", "model": "model", "source": "publication"}
WORST_ROWS = 12


def evaluations() -> dict[Kind, Evaluation]:
    """Evaluation of every open table that is there."""
    found: dict[Kind, Evaluation] = {}
    for kind in KINDS:
        path = ROOT / "catalog" / "measurements" / f"{kind}.csv"
        if path.exists():
            found[kind] = evaluate_file(kind, str(path), load_catalog())
    return found


def cross_validation() -> dict[str, dict[str, Any]]:
    """Figures with groups left out of the fit, by group and target."""
    found: dict[str, dict[str, Any]] = {}
    for path in (ROOT / "benchmarks" / name for name in CROSS_VALIDATION):
        if path.exists():
            for group, targets in json.loads(path.read_text(encoding="utf-8")).items():
                found.setdefault(group, {}).update(targets)
    return found


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown table; headings that start with > stand right."""
    rule = ["---:" if heading.startswith(">") else "---" for heading in headings]
    lines = [[heading.removeprefix(">") for heading in headings], rule, *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def percents(record: Mapping[str, float] | None) -> str:
    """Median / 90th percentile of a record."""
    return "–" if record is None else f"{record['median_abs_pct']:.1f} / {record['p90_abs_pct']:.0f}"


def summary_table(documents: Mapping[Kind, Mapping[str, Any]], validation: Mapping[str, Any]) -> str:
    """A line per target: rows, errors on all rows, with GPU and with source left out of the fit, range coverage."""
    rows = []
    for document in documents.values():
        for target, score in document["summary"]["by_target"].items():
            left_out = [percents(validation.get(f"{name}_left_out", {}).get(target)) for name in ("gpu", "source")]
            coverage = f"{100 * score['range_coverage']:.0f} %"
            rows.append([TARGETS.get(target, target), str(score["n"]), percents(score), *left_out, coverage])
    headings = [
        "target", ">rows", ">error (%), median / 90th percentile", ">GPU left out of the fit",
        ">source left out of the fit", ">in the 90 % range",
    ]  # fmt: skip
    return table(headings, rows)


def group_tables(document: Mapping[str, Any]) -> list[str]:
    """Tables by kind, GPU, model and publication."""
    parts = []
    for grouping, heading in GROUPINGS.items():
        rows = [
            [name, str(s["n"]), percents(s), f"{s['bias_pct']:+.1f}", f"{s['worst']['error_pct']:+.0f}"]
            for name, s in document["summary"][f"by_{grouping}"].items()
        ]
        headings = [heading, ">targets", ">median / 90th percentile (%)", ">bias (%)", ">worst (%)"]
        parts.append(table(headings, rows))
    return parts


def worst_table(document: Mapping[str, Any]) -> str:
    """Scored rows that are furthest off."""
    scored = [row for row in document["rows"] if row["scored"]]
    worst = sorted(scored, key=lambda row: -abs(row["error"]))[:WORST_ROWS]
    rows = [
        [r["id"], r["target"], r["kind"], r["gpu"], r["model"], f"{r['measured']:.4g}", f"{r['predicted']:.4g}",
         f"{100 * r['error']:+.0f}"]
        for r in worst
    ]  # fmt: skip
    return table(["row", "target", "kind", "GPU", "model", ">measured", ">predicted", ">error (%)"], rows)


def weak_priors(validation: Mapping[str, Any]) -> str:
    """How the left-out figures of serving depend on the priors of the fit."""
    weak = validation.get("source_left_out_weak_priors", {})
    figures = ", ".join(f"{TARGETS[target]} {percents(found)} %" for target, found in weak.items())
    return (
        "The serving fit pulls its constants towards round priors, which were set after first fits to the same tables, "
        f"so the figures with the source left out are somewhat flattered. With priors a quarter as strong: {figures}."
    )


def range_table() -> str:
    """Ranges of serving estimates."""
    rows = [
        [TARGETS[target], "seen" if seen else "not all seen", f"{r.low_factor:.2f} – {r.high_factor:.2f}", r.source]
        for (target, seen), r in ranges().items()
    ]
    return table(["target", "GPU, model, engine", ">measured ÷ predicted, 5th – 95th percentile", "from"], rows)


def write_plots(documents: Mapping[Kind, Mapping[str, Any]]) -> dict[str, str]:
    """Write a scatter plot per target; return its file name by target."""
    PLOTS.mkdir(exist_ok=True)
    names = {}
    for document in documents.values():
        by_target: dict[str, list[tuple[float, float]]] = {}
        for row in document["rows"]:
            if row["scored"]:
                by_target.setdefault(row["target"], []).append((row["measured"], row["predicted"]))
        for target, points in by_target.items():
            names[target] = f"{target}.svg"
            (PLOTS / names[target]).write_text(scatter_svg(TARGETS.get(target, target), points), encoding="utf-8")
    return names


def page(documents: Mapping[Kind, Mapping[str, Any]], summary: str, plots: Mapping[str, str]) -> str:
    """Text of docs/accuracy.md."""
    parts = [
        "# How accurate the estimates are",
        "Written by `python benchmarks/accuracy.py` from `catalog/measurements/*.csv`; the same figures come from "
        "`gpumix evaluate inference|training|memory FILE.csv`. Error = predicted ÷ measured − 1; medians and 90th "
        "percentiles are of its size, bias is the median with its sign. Rows that their table marks as unsound are "
        "predicted, but not counted here. *Left out of the fit*: all constants are fitted anew without the rows of "
        "that GPU, or of that whole publication, and then predict them (`python benchmarks/cross_validate.py`, "
        "`python benchmarks/fit_training.py`). The "
        "form of the formulas was chosen with all open rows in view; expect a point or two more on new ones.",
        "## Summary",
        summary,
        weak_priors(cross_validation()),
        *(f"![{TARGETS.get(target, target)}](accuracy/{name})" for target, name in plots.items()),
        "## Ranges of serving estimates",
        "The stated range of an estimate holds the measurement in 90 % of cases.",
        range_table(),
        "## The article's claims",
        claims_table(table),
    ]
    for kind, document in documents.items():
        parts += [f"## {kind.capitalize()}", *group_tables(document), "Furthest off:", worst_table(document)]
        missing = document["not_predicted"]
        if missing:
            rows = [[row["id"], row["reason"]] for row in missing]
            count = f"Not predicted ({len(missing)} of {document['counts']['rows']} rows):"
            parts += [count, table(["row", "why"], rows)]
    return "\n\n".join(parts) + "\n"


def write_readme(summary: str) -> None:
    """Put the summary between the README's marks, if it has them."""
    text = README.read_text(encoding="utf-8")
    if START in text and END in text:
        before, _, rest = text.partition(START)
        after = rest.partition(END)[2]
        README.write_text(f"{before}{START}\n{summary}\n{END}{after}", encoding="utf-8")


def record(documents: Mapping[Kind, Mapping[str, Any]]) -> None:
    """Record the figures that tests compare with."""
    figures = ("n", "median_abs_pct", "p90_abs_pct", "bias_pct")
    recorded = {
        kind: {
            "by_target": {
                target: {name: round(score[name], 2) for name in figures}
                for target, score in document["summary"]["by_target"].items()
            }
        }
        for kind, document in documents.items()
        if kind == "inference"
    }
    RECORD.write_text(json.dumps(recorded, indent=2) + "\n", encoding="utf-8")
    runs = {
        kind: {name: round(document["summary"]["all"][name], 2) for name in figures}
        | {"range_coverage": round(document["range_coverage"], 4)}
        for kind, document in documents.items()
        if kind != "inference"
    }
    RECORD_OF_TRAINING.write_text(json.dumps(runs, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    documents = {kind: evaluation_document(found) for kind, found in evaluations().items()}
    validation = cross_validation()
    summary = summary_table(documents, validation)
    PAGE.write_text(page(documents, summary, write_plots(documents)), encoding="utf-8")
    write_readme(summary)
    if options.record:
        record(documents)
    print(summary)


if __name__ == "__main__":
    main()
