"""The middle form of every answer: titled sections of a table, with notes. Terminal and Markdown are drawn from it."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from optimizer.report.numbers import NOTHING


@dataclass(frozen=True, slots=True)
class Column:
    """Heading of a column, with its unit; numbers stand right."""

    heading: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A title, a table (without columns: label and value; without rows: none), and notes below it.

    The last `totals` rows are sums.
    """

    title: str
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    totals: int = 0


def columns(*headings: str) -> tuple[Column, ...]:
    """Columns by their headings; a leading `>` puts the column to the right."""
    return tuple(Column(heading.removeprefix(">"), heading.startswith(">")) for heading in headings)


def without_empty_columns(section: Section, empty: Container[str] = ("", NOTHING)) -> Section:
    """The section without the columns in which no row says anything."""
    kept = [i for i, _ in enumerate(section.columns) if any(row[i] not in empty for row in section.rows)]
    rows = tuple(tuple(row[i] for i in kept) for row in section.rows)
    return replace(section, columns=tuple(section.columns[i] for i in kept), rows=rows)


def markdown(sections: Iterable[Section]) -> str:
    """Sections as Markdown."""
    return "\n\n".join(_markdown_section(section, level) for level, section in enumerate(sections)) + "\n"


def _markdown_section(section: Section, position: int) -> str:
    parts = [f"{'#' if position == 0 else '##'} {_escaped(section.title)}"]
    if section.rows and section.columns:
        rule = ["---:" if column.right else "---" for column in section.columns]
        table = [[column.heading for column in section.columns], rule, *section.rows]
        parts.append("\n".join(_markdown_row(row, rule=row is rule) for row in table))
    elif section.rows:
        parts.append("\n".join(f"- {_escaped(label)}: {_escaped(value)}" for label, value in section.rows))
    parts.extend(_escaped(note) for note in section.notes)
    return "\n\n".join(parts)


def _markdown_row(cells: Sequence[str], *, rule: bool) -> str:
    return f"| {' | '.join(cell if rule else _escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is; what stands in backquotes is left alone."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("\n", " ")
