"""The estimator's constants, read from `constants.csv` (value, unit, meaning, source and date of each).

`serving fit`, `training fit` and `training-memory fit` are robust fits (soft L1 on log ratios, sources weighted by
n^-1/4) to published measurements: 822 serving rows, 756 training rows, 116 memory rows (docs/estimator.md).
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Constant:
    """One figure with its unit, meaning and source."""

    name: str
    value: float
    unit: str
    meaning: str
    source: str
    date: str


def load_constants() -> dict[str, Constant]:
    """Read the table.

    Raises
    ------
    ValueError
        If a name occurs twice.
    """
    text = files("optimizer.estimator").joinpath("constants.csv").read_text(encoding="utf-8")
    table: dict[str, Constant] = {}
    for row in csv.DictReader(text.splitlines()):
        if row["name"] in table:
            msg = f"constants.csv names {row['name']} twice"
            raise ValueError(msg)
        table[row["name"]] = Constant(
            row["name"], float(row["value"]), row["unit"], row["meaning"], row["source"], row["date"]
        )
    return table


CONSTANTS = load_constants()


def constant(name: str) -> float:
    """Value of the constant `name`."""
    return CONSTANTS[name].value


@contextmanager
def constants_replaced(values: Mapping[str, float]) -> Iterator[None]:
    """Let the estimator work with other values for a while (fits and sensitivities).

    Raises
    ------
    KeyError
        If a name is not in the table.
    """
    before = {name: CONSTANTS[name] for name in values}
    CONSTANTS.update({name: replace(before[name], value=value) for name, value in values.items()})
    try:
        yield
    finally:
        CONSTANTS.update(before)
