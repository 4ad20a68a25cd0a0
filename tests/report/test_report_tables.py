import pytest

from optimizer.report.sections import Section, columns, markdown, without_empty_columns
from optimizer.report.tables import column_widths, plain_text

LONG = "provider/region/instance-type-with-a-long-name/on-demand"
TABLE = Section("T", columns("Offer", ">Price (USD)", "Note"), ((LONG, "12,345.67", "n" * 40), ("b", "1", "")))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_columns_share_the_width(width):
    """Columns fill no more than the width, and numbers stay in one line while text gives way."""
    widths = column_widths(TABLE, width)
    assert sum(widths) + 2 * 2 <= width
    assert widths[1] >= len("12,345.67")


@pytest.mark.parametrize("width", [60, 100])
def test_nothing_is_cut_off(width):
    """Cells that do not fit are folded: all their characters are printed."""
    printed = plain_text([TABLE], width=width)
    assert printed.count("n") >= 40 + LONG.count("n")
    assert max(map(len, printed.splitlines())) <= width


def test_ascii_terminals():
    """Where the encoding has no lines, rules are plain ASCII."""
    printed = plain_text([Section("T", columns("A"), (("1",),))], encoding="ascii")
    assert printed.isascii()


def test_empty_columns_go():
    """A column in which no row says anything is left out, with its heading."""
    section = without_empty_columns(Section("T", columns("A", "B"), (("1", "–"), ("2", ""))))
    assert [column.heading for column in section.columns] == ["A"]
    assert section.rows == (("1",), ("2",))


def test_square_brackets_are_text():
    """Names with brackets are printed as they are, not read as rich's markup."""
    section = Section("a [b] c", columns("H [x]"), (("[red]name[/red]",),), ("note [1]",))
    printed = plain_text([section])
    for words in ("a [b] c", "H [x]", "[red]name[/red]", "note [1]"):
        assert words in printed


def test_markdown_escapes():
    """Bars, stars and angle brackets of names do not break the table."""
    text = markdown([Section("T", columns("A", ">B"), (("a|b*<c>", "1"),))])
    assert "| a\\|b\\*&lt;c> | 1 |" in text
    assert "| --- | ---: |" in text
