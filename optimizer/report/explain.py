"""An explanation as sections: one per tree, indented by level."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from optimizer.report.forms import csv_text
from optimizer.report.numbers import money, number, percent
from optimizer.report.sections import Section, columns, without_empty_columns
from optimizer.report.words import counted
from optimizer.trace import TraceNode

MOST_CHILDREN = 12
"""Branches shown of one node; the rest is counted."""
CSV_COLUMNS = ("path", "label", "value", "unit", "formula", "inputs", "source")


class TableOfValues(Protocol):
    """A table of plain values."""

    @property
    def title(self) -> str:
        """What it shows."""
        ...

    @property
    def headings(self) -> tuple[str, ...]:
        """Names of the columns."""
        ...

    @property
    def rows(self) -> tuple[tuple[str | float | None, ...], ...]:
        """Values, a text or a figure each."""
        ...


def explanation_sections(
    problem: str,
    answer: Sequence[TraceNode],
    *,
    depth: int,
    ask_next: Sequence[str] = (),
    plan_file: str = "plan.json",
    tables: Sequence[TableOfValues] = (),
) -> list[Section]:
    """The trees of an answer down to `depth` levels, its tables, and what else can be asked."""
    found = [_table(table) for table in tables] + [_tree(node, depth) for node in answer]
    found = found or [Section(problem)]
    if ask_next:
        lines = tuple(f"`gpumix explain {plan_file} {_quoted(name)}`" for name in ask_next)
        found.append(Section("Ask further", notes=lines))
    return found


def _table(table: TableOfValues) -> Section:
    figures = [any(isinstance(row[i], float | int) for row in table.rows) for i, _ in enumerate(table.headings)]
    headings = columns(*(f"{'>' * right}{name}" for name, right in zip(table.headings, figures, strict=True)))
    shares = [name.startswith("share") for name in table.headings]
    rows = tuple(
        tuple(_cell(value, share=share) for value, share in zip(row, shares, strict=True)) for row in table.rows
    )
    return without_empty_columns(Section(table.title, headings, rows))


def _cell(value: str | float | None, *, share: bool) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return percent(value) if share else number(value)


def table_csv(table: TableOfValues) -> str:
    """A table with all its figures."""
    records = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    return csv_text(records, table.headings)


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _tree(node: TraceNode, depth: int) -> Section:
    rows = list(_rows(node.children, depth - 1, 0)) if depth > 1 else []
    headings = columns("What", ">Value", "How, and from where") if rows else ()
    return Section(_title(node), headings, tuple(rows), tuple(_title_notes(node)))


def _title(node: TraceNode) -> str:
    value = _value(node)
    return f"{node.label}: {value}" if value else node.label


def _title_notes(node: TraceNode) -> Iterable[str]:
    text = _explained(node)
    return [text] if text else []


def _rows(nodes: Sequence[TraceNode], depth: int, level: int) -> Iterator[tuple[str, ...]]:
    for node in nodes[:MOST_CHILDREN]:
        value, text = _value(node), _explained(node)
        if isinstance(node.value, str):  # a text is no figure: it stands where there is room
            value, text = "", " · ".join(part for part in (value, text) if part)
        yield _indented(node.label, level), value, text
        if depth > 1:
            yield from _rows(node.children, depth - 1, level + 1)
    if len(nodes) > MOST_CHILDREN:
        yield _indented("…", level), "", f"{counted(len(nodes) - MOST_CHILDREN, 'more line')} with -o json"


def _indented(label: str, level: int) -> str:
    return f"{'  ' * level}{'└ ' if level else ''}{label}"


def _value(node: TraceNode) -> str:
    if node.value is None:
        return ""
    if isinstance(node.value, str):
        return f"{node.value} {node.unit}".rstrip()
    if node.unit.startswith("share"):
        return percent(node.value) + node.unit.removeprefix("share")
    is_money = len(node.unit) == 3 and node.unit.isupper()
    value = money(node.value) if is_money else number(node.value)
    return f"{value} {node.unit}".removesuffix(" 1").rstrip()


def _explained(node: TraceNode) -> str:
    """Formula, inputs and source on one line."""
    given = ", ".join(f"{name} {number(value)}" for name, value in node.inputs)
    parts = [": ".join(part for part in (node.formula, given) if part)]
    if node.source:
        parts.append(f"[{_short(node.source)}]")
    return " ".join(part for part in parts if part)


_CATALOG_ROW = re.compile(r"(?:\S*/)?((?:offers/)?[^/\s]+\.csv:\d+) \((?:[^()]|\([^()]*\))*?([^,()]+)\)")


def _short(source: str) -> str:
    """`catalog/offers/aws.csv:7 (…, 2026-07-20)` → `offers/aws.csv:7, 2026-07-20`; other sources as they are."""
    return _CATALOG_ROW.sub(lambda row: f"{row[1]}, {row[2].strip()}", source)


def explanation_csv(answer: Sequence[TraceNode]) -> str:
    """Every node of the trees as a line; `path` counts the branches, e.g. 1.2.1."""
    return csv_text([record for i, node in enumerate(answer) for record in _records(node, f"{i + 1}")], CSV_COLUMNS)


def _records(node: TraceNode, path: str) -> Iterator[dict[str, object]]:
    given = "; ".join(f"{name}={value!r}" for name, value in node.inputs)
    yield {
        "path": path,
        "label": node.label,
        "value": node.value,
        "unit": node.unit,
        "formula": node.formula,
        "inputs": given,
        "source": node.source,
    }
    for i, child in enumerate(node.children):
        yield from _records(child, f"{path}.{i + 1}")
