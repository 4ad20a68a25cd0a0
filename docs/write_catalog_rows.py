"""Counts the catalog's rows and how far to trust them, into docs/catalog.md: `python docs/write_catalog_rows.py`."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "catalog.md"
BEGIN, END = "<!-- rows: begin -->", "<!-- rows: end -->"
READ = ("cross-checked", "single source", "sources disagree", "read", "secondary")
# What the notes of gpus.csv call a column, where it is not how the column begins.
OTHER_NAMES = {
    "mem_bw_gbs": "memory_bandwidth_gb_per_s",
    "interconnect_gbs_total_bidir": "link_gb_per_s",
    "interconnect": "link_kind",
    "pcie_gen": "pcie_gb_per_s",
    "pcie_gbs_bidir": "pcie_gb_per_s",
    "memory_type": "",
}
TABLES = (
    ("GPUs", ("gpus.csv",)),
    ("models", ("models.csv",)),
    ("offers", ("offers/*.csv",)),
    ("servers", ("servers.csv",)),
    ("reference prices", ("site_costs.csv",)),
    ("estimates", ("typical_discounts.csv", "resale_values.csv")),
)


def rows_of(patterns: Iterable[str]) -> list[dict[str, str]]:
    """All rows of the catalog's files of these names."""
    found: list[dict[str, str]] = []
    for path in sorted(path for pattern in patterns for path in (ROOT / "catalog").glob(pattern)):
        with path.open(encoding="utf-8", newline="") as file:
            found += csv.DictReader(file)
    return found


def origins(row: Mapping[str, str]) -> Counter[str]:
    """Figures of a row by where they are from: read, derived or recalled."""
    figures = [name for name, text in row.items() if re.fullmatch(r"-?\d+(\.\d+)?(e\d+)?", text)]
    confidence = row["confidence"]
    if confidence in ("derived", "estimate", "recalled"):
        return Counter({"recalled" if confidence == "recalled" else "derived": len(figures)})
    said = re.search(r"recalled: ([^;]*)", row.get("notes", ""))
    names = [name.strip() for name in said[1].split(",")] if said else []
    recalled = sum(any(_is(figure, name) for name in names) for figure in figures)
    if confidence == "part recalled" and not recalled:
        recalled = len(figures)
    return Counter({"recalled": recalled, "read": len(figures) - recalled})


def _is(column: str, name: str) -> bool:
    known = OTHER_NAMES.get(re.sub(r"\(.*\)", "", name), name)
    stem = re.sub(r"_(tflops|tops|gbs)$", "", known)
    return bool(stem) and column.startswith(stem)


def table() -> str:
    """Rows, share of figures and words of confidence by table, as Markdown."""
    heads = ("table", "rows", "figures read", "derived or estimated", "recalled", "words of the rows")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    total: Counter[str] = Counter()
    for title, patterns in TABLES:
        rows = rows_of(patterns)
        shares = sum((origins(row) for row in rows), Counter[str]())
        total += shares
        words = ", ".join(f"{count} {word}" for word, count in Counter(row["confidence"] for row in rows).most_common())
        lines.append(f"| {title} | {len(rows)} | {_shares(shares)} | {words} |")
    return "\n".join([*lines, f"| all | | {_shares(total)} | |"])


def _shares(counts: Mapping[str, int]) -> str:
    whole = sum(counts.values())
    return " | ".join(f"{100 * counts.get(name, 0) / whole:.0f} %" for name in ("read", "derived", "recalled"))


def page_with_current_rows(page: str) -> str:
    """The page with the table of today between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page_with_current_rows(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
