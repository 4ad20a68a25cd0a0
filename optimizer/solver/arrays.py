"""A linear model as arrays, as HiGHS takes it, and the refusal of numbers that HiGHS would drop or bend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from optimizer.errors import SolverError
from optimizer.model.rows import Columns, Row

SAFE_MAGNITUDE = 1e15
"""HiGHS rejects matrix values above this and reads row bounds of 1e20 as infinite; a model must stay far below."""

Floats = NDArray[np.float64]
Whole = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ModelArrays:
    """Prices by column; rows one after the other (`start` of each in `index` and `value`) with their bounds, scaled."""

    price: Floats
    upper: Floats
    start: Whole
    index: Whole
    value: Floats
    row_lower: Floats
    row_upper: Floats


def model_arrays(
    columns: Columns, rows: Sequence[Row], objective: Mapping[int, float], objective_scale: float
) -> ModelArrays:
    """All numbers of a model as the solver gets them.

    Raises
    ------
    SolverError
        If a scaled coefficient, bound or price is not finite or leaves the safe range.
    """
    counts = np.fromiter((len(row.terms) for row in rows), np.int32, len(rows))
    start = np.concatenate((np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)))
    pairs = chain.from_iterable(chain.from_iterable(row.terms for row in rows))
    flat = np.fromiter(pairs, np.float64, 2 * int(start[-1]))  # column numbers are exact in floats
    scale = np.fromiter((row.scale for row in rows), np.float64, len(rows))
    price = np.zeros(len(columns))
    price[np.fromiter(objective, np.int32, len(objective))] = np.fromiter(objective.values(), np.float64)
    with np.errstate(all="ignore"):  # what is not finite is refused below
        value = flat[1::2] / np.repeat(scale, counts)
        bound = np.fromiter((row.rhs for row in rows), np.float64, len(rows)) / scale
        price = price / objective_scale
    _refuse_unsafe(columns, rows, start, value, bound, price)
    senses = np.array([row.sense for row in rows], dtype="U2")
    return ModelArrays(
        price,
        np.array([np.inf if most is None else most for most in columns.upper], dtype=np.float64),
        start,
        flat[0::2].astype(np.int32),
        value,
        np.where(senses == "<=", -np.inf, bound),
        np.where(senses == ">=", np.inf, bound),
    )


def _refuse_unsafe(
    columns: Columns, rows: Sequence[Row], start: Whole, value: Floats, bound: Floats, price: Floats
) -> None:
    numbers = ((value, "right"), (bound, ""))
    for array, side in numbers:
        for place in _unsafe(array):
            number = int(np.searchsorted(start, place, side="right")) - 1 if side else place
            msg = f"row {rows[number].name} has a number outside the solver's safe range: {array[place]:g}"
            raise SolverError(msg)
    for column in _unsafe(price):
        msg = f"the price of {columns.name(column)} is outside the solver's safe range: {price[column]:g}"
        raise SolverError(msg)


def _unsafe(array: Floats) -> list[int]:
    """Places of numbers outside the safe range; NaN is unsafe too."""
    return [int(place) for place in np.flatnonzero(~(np.abs(array) < SAFE_MAGNITUDE))]
