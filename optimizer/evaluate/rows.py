"""Reading a CSV file of measurements by the names of its columns; unusable cells are named with their place."""

import csv
import io
import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path

from catalog.errors import AmbiguousNameError, UnknownNameError
from catalog.load import Catalog
from catalog.schema import Gpu, LlmArchitecture
from optimizer.errors import Finding, ProblemFileError
from optimizer.evaluate.types import NotPredictableError, UnreadableCellError
from optimizer.evaluate.words import is_blank, is_unsaid, plain_number

_NONE_IS_A_WORD = ("act_ckpt", "sharding")
_SEPARATORS = (",", ";", "\t")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One line of the file: its number (the header is line 1), its cells, stripped, and what bars reading it."""

    line: int
    cells: Mapping[str, str]
    fault: str = ""


def read_rows(file: str, required: Iterable[str]) -> list[MeasuredRow]:
    """Rows of the CSV file `file` (`-` is standard input).

    Raises
    ------
    ProblemFileError
        If it cannot be read, is empty, or lacks a column of `required`.
    """
    text = _read_text(file)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    try:
        header = [re.sub(r"[\s\-]+", "_", name.strip().casefold()) for name in next(reader, [])]
        _check_header(file, header, list(required))
        rows = [_row(reader.line_num, header, cells) for cells in reader if any(cells)]
    except csv.Error as error:
        raise ProblemFileError([Finding(f"not a CSV file: {error}", file, reader.line_num)]) from error
    if not rows:
        raise ProblemFileError([Finding("no rows below the header", file, 1, hint="one measurement per line")])
    return rows


def _read_text(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-16" if raw[:2] in _UTF16_MARKS else "utf-8-sig")
    except OSError as error:
        raise ProblemFileError([Finding(f"cannot read the file: {error.strerror or error}", file)]) from error
    except UnicodeDecodeError as error:
        message = f"not {error.encoding.upper()} text: byte {error.start} is 0x{error.object[error.start]:02x}"
        raise ProblemFileError([Finding(message, file, hint="save the table as CSV in UTF-8")]) from error


def _separator(text: str) -> str:
    """The one of comma, semicolon and tab that the header holds most of."""
    header = text.lstrip("\r\n").split("\n", 1)[0]
    return max(_SEPARATORS, key=header.count)


def _check_header(file: str, header: list[str], required: list[str]) -> None:
    findings = []
    for name in required:
        if name not in header:
            near = get_close_matches(name, header, n=1)
            hint = f"{near[0]!r} is there; is it meant?" if near else f"columns needed: {', '.join(required)}"
            findings.append(Finding(f"no column {name!r}", file, 1, hint=hint))
    twice = sorted({name for name in header if name and header.count(name) > 1})
    findings.extend(Finding(f"column {name!r} occurs twice", file, 1, hint="keep one") for name in twice)
    if findings:
        raise ProblemFileError(findings)


def _row(line: int, header: list[str], cells: list[str]) -> MeasuredRow:
    given = zip_longest(header, cells[: len(header)], fillvalue="")
    found = {name: _cell(name, cell.strip()) for name, cell in given}
    found["id"] = found.get("id") or f"line {line}"
    if len(cells) > len(header):
        fault = f"{len(cells)} cells, but the header has {len(header)}; put text with commas in double quotes"
        return MeasuredRow(line, found, fault)
    return MeasuredRow(line, found)


def _cell(column: str, cell: str) -> str:
    """A cell, empty where it says nothing; `none` says something of a column that tells what a run does not do."""
    says = not is_blank(cell) or (column in _NONE_IS_A_WORD and cell.casefold() == "none")
    return cell if says else ""


def text(row: Mapping[str, str], column: str) -> str:
    """Cell of a column, empty if the file has no such column."""
    return row.get(column, "")


def word(row: Mapping[str, str], column: str) -> str:
    """Cell of a column whose words are the same in any case, in small letters."""
    return text(row, column).casefold()


def number(row: Mapping[str, str], column: str) -> float | None:
    """Number of a column, None if the cell is empty or says that it is not known.

    Raises
    ------
    UnreadableCellError
        If the cell holds anything but a finite number.
    """
    cell = text(row, column)
    if is_unsaid(cell):
        return None
    try:
        value = float(plain_number(cell))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        msg = f"column {column}: found {cell!r}, write a number"
        raise UnreadableCellError(msg)
    return value


def positive(row: Mapping[str, str], column: str) -> float | None:
    """Number above 0 of a column, None if the cell is empty.

    Raises
    ------
    UnreadableCellError
        If the cell holds anything else.
    """
    value = number(row, column)
    if value is not None and value <= 0:
        msg = f"column {column}: found {text(row, column)!r}, write a number above 0"
        raise UnreadableCellError(msg)
    return value


def required_positive(row: Mapping[str, str], column: str) -> float:
    """Number above 0 of a column that the prediction cannot do without.

    Raises
    ------
    UnreadableCellError
        If the cell holds anything else.
    NotPredictableError
        If it is empty.
    """
    value = positive(row, column)
    if value is None:
        msg = f"column {column} is empty"
        raise NotPredictableError(msg)
    return value


def gpu_of(row: Mapping[str, str], catalog: Catalog) -> Gpu:
    """GPU that the column `gpu` names, by the catalog's names and aliases.

    Raises
    ------
    NotPredictableError
        If the catalog does not know it, if it may mean several, or if the estimator has no model of it (TPU).
    """
    try:
        return predictable(catalog.gpu(text(row, "gpu")))
    except UnknownNameError as error:
        msg = f"GPU not in the catalog: {error}"
        raise NotPredictableError(msg) from error
    except AmbiguousNameError as error:
        msg = f"GPU name is ambiguous: {error}"
        raise NotPredictableError(msg) from error


def predictable(gpu: Gpu) -> Gpu:
    """The GPU itself. Raises NotPredictableError if the estimator has no model of its kind."""
    if gpu.is_tpu:
        msg = f"no analytic model for {gpu.gpu_id}"
        raise NotPredictableError(msg)
    return gpu


def catalog_model(row: Mapping[str, str], catalog: Catalog) -> LlmArchitecture | None:
    """Model that the column `model` names, None where the catalog does not know it (or knows several)."""
    candidates = catalog.model_candidates(text(row, "model"))
    return catalog.model(candidates[0]) if len(candidates) == 1 else None


def publication(row: Mapping[str, str]) -> str:
    """Publication that a row comes from: the first word of its source (repository and commit, or address)."""
    words = text(row, "source").split()
    return words[0].rstrip(",;") if words else "not stated"
