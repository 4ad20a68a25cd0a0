"""The outcome of `gpumix evaluate` as sections and CSV."""

from collections.abc import Mapping
from typing import Any

from optimizer.evaluate.document import ROW_KEYS
from optimizer.report.forms import csv_text
from optimizer.report.numbers import number, percent
from optimizer.report.sections import Section, columns

GROUPS = {"target": "target", "kind": "kind", "gpu": "GPU", "model": "model", "source": "publication"}
FEW_REASONS = 10
_HEADINGS = (
    ">rows",
    ">median error (%)",
    ">90th percentile (%)",
    ">bias (%)",
    ">in range",
    "worst row",
    ">its error (%)",
)


def evaluation_sections(document: Mapping[str, Any], *, everything: bool = False) -> list[Section]:
    """A table per grouping of the scored rows, the others, and what was not predicted (ten lines, or all)."""
    counts = document["counts"]
    title = f"Estimator against measurements: {document['kind']}"
    facts = (
        ("rows", number(counts["rows"])),
        ("predictions of scored rows", number(counts["scored"])),
        ("predictions of other rows", number(counts["predictions"] - counts["scored"])),
        ("rows not predicted", f"{number(counts['not_predicted'])} ({number(counts['unreadable'])} unreadable)"),
        ("measurements within their 90 % range", percent(document["range_coverage"])),
    )
    sections = [Section(title, rows=facts, notes=tuple(document["notes"]))]
    for key, heading in GROUPS.items():
        sections.extend(_scores(f"Scored rows by {heading}", heading, document["summary"][f"by_{key}"]))
    sections.extend(_scores("Rows that are not scored, by target", "target", document["summary_unscored"]["by_target"]))
    return [*sections, *_missing(document["not_predicted"], everything)]


def _scores(title: str, heading: str, scores: Mapping[str, Any]) -> list[Section]:
    if not scores:
        return []
    rows = tuple((name, *_cells(score)) for name, score in scores.items())
    return [Section(title, columns(heading, *_HEADINGS), rows)]


def _cells(score: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        number(score["n"]),
        f"{score['median_abs_pct']:.1f}",
        f"{score['p90_abs_pct']:.1f}",
        f"{score['bias_pct']:+.1f}",
        percent(score["range_coverage"]),
        score["worst"]["id"],
        f"{score['worst']['error_pct']:+.0f}",
    )


def _missing(rows: list[dict[str, str]], everything: bool) -> list[Section]:
    if not rows:
        return []
    shown = rows if everything else rows[:FEW_REASONS]
    more = len(rows) - len(shown)
    notes = (f"{more} more; -v lists all.",) if more else ()
    lines = tuple((row["id"], row["reason"]) for row in shown)
    return [Section("Not predicted", columns("row", "reason"), lines, notes)]


def evaluation_csv(document: Mapping[str, Any]) -> str:
    """All predictions, a line each."""
    return csv_text(document["rows"], ROW_KEYS)
