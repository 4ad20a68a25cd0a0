"""Typed rows from CSV files: exact types, line numbers in errors, nothing parsed before it is asked for.

A file's columns are the fields of its record type, plus `source` and a date column that together become `ref`.
"""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.resources.abc import Traversable
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from catalog.errors import CatalogFileError
from catalog.schema import SourceRef

Record = TypeVar("Record")
Rule = Callable[[Any], tuple[str, str] | None]
"""Looks at a record; gives the column at fault and what is wrong, or None."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_MAY_BE_EMPTY = frozenset({"notes", "region"})


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as text, with the line on which it starts. `row[column]` is a cell."""

    line: int
    texts: tuple[str, ...]
    places: Mapping[str, int]

    def __getitem__(self, column: str) -> str:
        return self.texts[self.places[column]]


@dataclass(frozen=True, slots=True)
class Layout(Generic[Record]):
    """How a file becomes records: the record type, its id column, its date column and the rules each row must hold."""

    record: type[Record]
    id_column: str
    date_column: str
    rules: tuple[Rule, ...] = ()


class Table(Generic[Record]):
    """One CSV file. Rows are parsed one by one, when asked for, and kept."""

    def __init__(self, path: Traversable, label: str, layout: Layout[Record]) -> None:
        self._path = path
        self._label = label
        self._layout = layout
        self._parsed: dict[str, Record] = {}

    @cached_property
    def rows(self) -> dict[str, RawRow]:
        """Raw rows by id. Raises CatalogFileError for a missing file, a wrong header, an empty or a repeated id."""
        by_id: dict[str, RawRow] = {}
        id_column = self._layout.id_column
        for row in read_raw_rows(self._path, self._label, self._columns):
            row_id = row[id_column]
            if not row_id:
                raise self._error(row.line, id_column, "empty; every row needs an id")
            if row_id in by_id:
                raise self._error(row.line, id_column, f"{row_id!r} is already on line {by_id[row_id].line}")
            by_id[row_id] = row
        return by_id

    def get(self, row_id: str) -> Record:
        """The record with that id (KeyError if there is none)."""
        if row_id not in self._parsed:
            self._parsed[row_id] = self._parse(self.rows[row_id])
        return self._parsed[row_id]

    def where(self, column: str, values: Collection[str] | None = None) -> tuple[Record, ...]:
        """Records whose raw `column` is one of `values` (all records for None), in the order of the file."""
        return tuple(self.get(row_id) for row_id, row in self.rows.items() if values is None or row[column] in values)

    def scan(self) -> Iterator[Record | CatalogFileError]:
        """Every row as a record or as the error it gives, repeated ids too; after a broken header nothing more."""
        seen: dict[str, int] = {}
        id_column = self._layout.id_column
        try:
            for row in read_raw_rows(self._path, self._label, self._columns):
                first = seen.setdefault(row[id_column], row.line)
                again = self._error(row.line, id_column, f"{row[id_column]!r} is already on line {first}")
                yield again if first != row.line else self._parsed_or_error(row)
        except CatalogFileError as error:
            yield error

    def _parsed_or_error(self, row: RawRow) -> Record | CatalogFileError:
        try:
            return self._parse(row)
        except CatalogFileError as error:
            return error

    def mentions(self, texts: Collection[str]) -> bool:
        """Whether one of `texts` stands anywhere in the file: where none does, its rows need not be read."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return True
        return any(text.encode() in data for text in texts)

    @property
    def _columns(self) -> list[str]:
        return [*self._types, "source", self._layout.date_column]

    @cached_property
    def _types(self) -> dict[str, Any]:
        hints = get_type_hints(self._layout.record)
        return {name: hint for name, hint in hints.items() if name != "ref"}

    def _parse(self, row: RawRow) -> Record:
        values = {name: self._cell(row, name, hint) for name, hint in self._types.items()}
        make: Callable[..., Record] = self._layout.record
        record = make(**values, ref=self._source(row))
        for rule in self._layout.rules:
            if fault := rule(record):
                raise self._error(row.line, *fault)
        return record

    def _cell(self, row: RawRow, column: str, hint: Any) -> Any:
        try:
            return parse_cell(row[column], hint, may_be_empty=column in _MAY_BE_EMPTY)
        except ValueError as error:
            raise self._error(row.line, column, str(error)) from error

    def _source(self, row: RawRow) -> SourceRef:
        source = self._cell(row, "source", str)
        day = self._cell(row, self._layout.date_column, date | None)
        return SourceRef(self._label, row.line, source, day)

    def _error(self, line: int, column: str | None, message: str) -> CatalogFileError:
        return CatalogFileError(self._label, line, column, message)


def read_raw_rows(path: Traversable, label: str, columns: Sequence[str]) -> Iterator[RawRow]:
    """Rows of a CSV file with exactly these columns, in any order. Raises CatalogFileError."""
    reader = csv.reader(io.StringIO(_read_text(path, label), newline=""), strict=True)
    same: dict[str, str] = {}
    try:
        header = next(reader, [])
        _check_header(label, header, columns)
        places = {name: place for place, name in enumerate(header)}
        line = reader.line_num + 1
        for texts in reader:
            if texts and len(texts) != len(header):
                message = f"needs {len(columns)} cells, one for each column"
                raise CatalogFileError(label, reader.line_num, None, message)
            if texts:
                yield RawRow(line, tuple(same.setdefault(text, text) for text in map(str.strip, texts)), places)
            line = reader.line_num + 1
    except csv.Error as error:
        raise CatalogFileError(label, reader.line_num, None, f"not readable as CSV ({error})") from error


def parse_cell(text: str, hint: Any, *, may_be_empty: bool = False) -> Any:
    """The value of a cell as `hint` (str, int, float, bool, date or one of these or None).

    Raises ValueError saying what was found and what to write. A missing number is never 0, and text stays text
    ("NA", "no").
    """
    options = get_args(hint)
    if NoneType in options:
        if not text:
            return None
        hint = next(option for option in options if option is not NoneType)
    if not text and not (hint is str and may_be_empty):
        msg = f"empty; write {_WANTED[hint]}"
        raise ValueError(msg)
    return _PARSERS[hint](text)


def _read_text(path: Traversable, label: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise CatalogFileError(label, 1, None, "no such file") from error
    except UnicodeDecodeError as error:
        raise CatalogFileError(label, 1, None, "not UTF-8 text; save the file as UTF-8") from error


def _check_header(label: str, header: Sequence[str], columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in header]
    unknown = [name for name in header if name not in columns]
    faults = [f"{word} {', '.join(names)}" for word, names in (("missing", missing), ("unknown", unknown)) if names]
    if faults:
        raise CatalogFileError(label, 1, None, f"columns: {'; '.join(faults)}")


def _parse_float(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        msg = f"{text!r} is not a number; write e.g. 12.5"
        raise ValueError(msg)
    return float(text)


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        msg = f"{text!r} is not a whole number"
        raise ValueError(msg)
    return int(text)


def _parse_bool(text: str) -> bool:
    if text not in ("true", "false"):
        msg = f"{text!r} is neither true nor false"
        raise ValueError(msg)
    return text == "true"


def _parse_date(text: str) -> date:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        msg = f"{text!r} is not a date; write YYYY-MM-DD, or leave it empty if unknown"
        raise ValueError(msg)
    return date.fromisoformat(text)


_PARSERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: _parse_int,
    float: _parse_float,
    bool: _parse_bool,
    date: _parse_date,
}
_WANTED = {str: "text", int: "a whole number", float: "a number", bool: "true or false", date: "YYYY-MM-DD"}
