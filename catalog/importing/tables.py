"""CSV files of others as rows of text: byte-order mark, line ends and separator as found, no types guessed."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import CatalogFileError

_SEPARATORS = (",", ";", "\t")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
LARGEST_FILE_BYTES = 500_000_000

Row = list[str]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A header and the rows under it, each with the line on which it starts. Rows are read once, as they are asked for.

    Iterating raises CatalogFileError where the text stops being CSV. Rows are as long as they are written.
    """

    label: str
    header: tuple[str, ...]
    rows: Iterator[tuple[int, Row]]

    def columns(self, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, int]:
        """Where each column stands. Raises CatalogFileError if one of `required` is missing."""
        places = {name: place for place, name in enumerate(self.header)}
        missing = [name for name in required if name not in places]
        if missing:
            found = ", ".join(self.header[:20]) or "nothing"
            raise CatalogFileError(self.label, 1, None, f"columns: missing {', '.join(missing)}; found {found}")
        return {name: places[name] for name in (*required, *optional) if name in places}


def read_table(data: bytes, label: str) -> TextTable:
    """The CSV text in `data`. Raises CatalogFileError for an encoding, a header or quoting that cannot be read."""
    encoding = "utf-16" if data[:2] in _UTF16_MARKS else "utf-8-sig"
    stream = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, newline="")
    reader = csv.reader(stream, delimiter=_separator(data, encoding), strict=True)
    rows = _rows(reader, label)
    line, header = next(rows, (1, []))
    names = tuple(name.strip() for name in header)
    if not any(names):
        raise CatalogFileError(label, line, None, "no header: the first line must name the columns")
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise CatalogFileError(label, line, None, f"columns: {', '.join(twice)} stands twice")
    return TextTable(label, names, rows)


def read_price_file(path: Path, label: str) -> bytes:
    """The bytes of a price file. Raises CatalogFileError if it cannot be read or is too large."""
    try:
        if path.is_file() and path.stat().st_size > LARGEST_FILE_BYTES:
            raise CatalogFileError(label, 1, None, f"larger than {LARGEST_FILE_BYTES // 1_000_000} MB; split it")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise CatalogFileError(label, 1, None, "no such file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CatalogFileError(label, 1, None, f"cannot be read: {reason}") from error


def _separator(data: bytes, encoding: str) -> str:
    """The one of comma, semicolon and tab that the first line holds most of."""
    first = data[:10_000].decode(encoding, errors="replace").lstrip("\r\n").split("\n", 1)[0]
    return max(_SEPARATORS, key=first.count)


def _rows(reader: Any, label: str) -> Iterator[tuple[int, Row]]:
    """Rows that hold anything, with their first line."""
    line = 1
    try:
        for row in reader:
            if any(row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise CatalogFileError(label, line, None, f"not readable as CSV ({error})") from error
    except UnicodeError as error:
        raise CatalogFileError(label, line, None, "not UTF-8 text; save the file as UTF-8") from error
