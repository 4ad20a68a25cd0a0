"""A whole file of measurements: every row predicted or listed with the reason why not."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from catalog.load import Catalog
from optimizer.evaluate.rows import MeasuredRow, read_rows
from optimizer.evaluate.types import (
    NotPredictableError,
    NotPredicted,
    Prediction,
    Predictor,
    UnreadableCellError,
)

Kind = Literal["training", "inference", "memory"]
REQUIRED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "inference": ("id", "kind", "model", "gpu", "input_len", "output_len", "weight_precision"),
    "training": ("id", "kind", "model", "gpu", "n_gpus", "precision", "tok_s_gpu"),
    "memory": ("id", "kind", "model", "gpu", "method", "mem_per_gpu", "unit", "scope"),
}


MARK_COLUMNS: Mapping[str, str] = {"inference": "quality", "training": "eval_use", "memory": "measured"}
"""Column whose marks tell comparable rows from others."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Outcome for a file. `unreadable` rows are among `not_predicted`; their reasons name the cell at fault."""

    kind: str
    rows: int
    predictions: tuple[Prediction, ...]
    not_predicted: tuple[NotPredicted, ...]
    unreadable: int
    missing_mark: str = ""
    """Column that would tell which rows are comparable, if the file lacks it: all rows are scored then."""

    @property
    def scored(self) -> tuple[Prediction, ...]:
        """Predictions of rows that are comparable."""
        return tuple(p for p in self.predictions if p.scored)

    @property
    def unscored(self) -> tuple[Prediction, ...]:
        """Predictions of rows that are not comparable by their own mark."""
        return tuple(p for p in self.predictions if not p.scored)


def predictor_of(kind: str) -> Predictor:
    """Function that predicts a row of `kind`."""
    predictor: Predictor = import_module(f"optimizer.evaluate.{kind}").predict
    return predictor


def evaluate_file(kind: Kind, file: str, catalog: Catalog) -> Evaluation:
    """Predict every row of the CSV file `file`.

    Raises
    ------
    ProblemFileError
        If the file cannot be read or lacks a column.
    """
    return evaluate_rows(kind, read_rows(file, REQUIRED_COLUMNS[kind]), catalog)


def evaluate_rows(kind: Kind, rows: list[MeasuredRow], catalog: Catalog) -> Evaluation:
    """Predict rows that are already read."""
    predict = predictor_of(kind)
    predictions: list[Prediction] = []
    missing: list[NotPredicted] = []
    unreadable = 0
    for row in rows:
        name = row.cells.get("id") or f"line {row.line}"
        try:
            found = predict(_sound(row).cells, catalog)
        except UnreadableCellError as error:
            unreadable += 1
            found = NotPredicted(name, f"line {row.line}, {error}")
        except NotPredictableError as error:
            found = NotPredicted(name, str(error))
        if isinstance(found, NotPredicted):
            missing.append(found)
        else:
            predictions.extend(found)
    mark = MARK_COLUMNS[kind]
    lacks_mark = bool(rows) and not any(mark in row.cells for row in rows)
    return Evaluation(
        kind, len(rows), tuple(predictions), tuple(missing), unreadable, missing_mark=mark if lacks_mark else ""
    )


def _sound(row: MeasuredRow) -> MeasuredRow:
    if row.fault:
        raise UnreadableCellError(row.fault)
    return row
