"""Sections on a terminal or as plain text, by rich."""

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from optimizer.report.sections import Section

PLAIN_WIDTH = 100
"""Columns of a table that goes to a file or a pipe."""
GAP = 2
"""Blanks between columns."""
LEAST_TEXT_WIDTH = 10
"""Text is not made narrower than this while numbers can give way."""
LEAST_WIDTH = 5
"""Columns are not made narrower than this."""


def renderables(sections: Iterable[Section]) -> list[RenderableType]:
    """Sections as rich renderables, a blank line between them."""
    parts: list[RenderableType] = []
    for section in sections:
        if parts:
            parts.append(Text(""))
        parts.extend(_section_parts(section))
    return parts


def plain_text(sections: Iterable[Section], *, width: int = PLAIN_WIDTH, encoding: str = "utf-8") -> str:
    """Sections as text without any escape codes; in ASCII lines where `encoding` has no others."""
    buffer = _Buffer(encoding)
    console = Console(file=buffer, width=width, color_system=None, force_terminal=False, highlight=False)
    for part in renderables(sections):
        console.print(part)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


class _Buffer(io.StringIO):
    """Text in memory that says which encoding it is meant for: rich chooses its lines by that."""

    encoding: str = "utf-8"

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self.encoding = encoding


def _section_parts(section: Section) -> Iterable[RenderableType]:
    yield Text(section.title, style="bold")
    if section.rows:
        yield SectionTable(section) if section.columns else _facts(section.rows)
    for note in section.notes:
        yield Padding(Text(note), (0, 0, 0, 2))


def _facts(rows: Sequence[tuple[str, ...]]) -> Table:
    """Label and value, without lines."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(Text(f"  {label}"), Text(value))
    return table


@dataclass(frozen=True, slots=True)
class SectionTable:
    """The table of a section, in columns whose widths suit the place it is printed in."""

    section: Section

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table at the width on offer."""
        yield _table(self.section, column_widths(self.section, options.max_width))


def _table(section: Section, widths: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column, width in zip(section.columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(Text(column.heading), justify=justify, overflow="fold", width=width)
    first_total = len(section.rows) - section.totals
    for number, row in enumerate(section.rows):
        if number == first_total and section.totals:
            table.add_section()
        table.add_row(*(Text(cell) for cell in row), style="bold" if number >= first_total else None)
    return table


def column_widths(section: Section, available: int) -> list[int]:
    """Widths of the columns: cells in one line and headings folded where that fits, else the widest columns give way.

    Text gives way before numbers. What is left over unfolds headings, from left to right.
    """
    room = available - GAP * (len(section.columns) - 1)
    headings = [max(map(len, column.heading.split()), default=1) for column in section.columns]
    longest = [max((len(row[i]) for row in section.rows), default=0) for i, _ in enumerate(section.columns)]
    widths = [max(pair) for pair in zip(headings, longest, strict=True)]
    texts = [i for i, column in enumerate(section.columns) if not column.right]
    _narrow(widths, texts, room, LEAST_TEXT_WIDTH)
    _narrow(widths, range(len(widths)), room, LEAST_WIDTH)
    spare = room - sum(widths)
    for i, column in enumerate(section.columns):
        more = max(0, min(spare, len(column.heading) - widths[i]))
        widths[i] += more
        spare -= more
    return widths


def _narrow(widths: list[int], places: Iterable[int], room: int, least: int) -> None:
    """Take from the widest of `places`, down to `least`, until all widths fit the room."""
    places = list(places)
    while places and (excess := sum(widths) - room) > 0:
        widest = max(widths[i] for i in places)
        if widest <= least:
            return
        at = [i for i in places if widths[i] == widest]
        second = max((widths[i] for i in places if widths[i] < widest), default=least)
        cut = min(widest - max(second, least), math.ceil(excess / len(at)))
        for i in at:
            widths[i] -= cut
