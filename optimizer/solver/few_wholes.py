"""Models that buy few whole numbers and leave the rest free: read as prices on those, and rows on all.

Many request classes on some GPU types make such models: whole nodes cost money, shares of classes do not. A whole
number that costs nothing and is held by one priced number alone (replicas on their nodes) may as well be all that it
allows, so it is replaced by that.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optimizer.model.families.strengthening import SHARES
from optimizer.solver.arrays import Floats, ModelArrays, Whole, model_arrays
from optimizer.solver.milp import LinearModel

MOST = 40
"""Whole numbers; with more, branching on them one by one is no way to search."""
RATIO = 1e-9
LARGEST_DENOMINATOR = 10**6
EXACT = 1e-15
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FewWholes:
    """min Σ price × y, y whole in [0, upper], over rows on (y, x), x in [0, rest_upper] free of charge.

    Columns 0 … n − 1 are y, the others x; `index`, `value`, `row` list the nonzeros. `wholes` and `rest` are the
    columns of the model they stand for; `tied` are those replaced: (column, which y, how many of it per y). `unit`
    divides every cost of a plan (0 if none is known). Prices are scaled as in the solver.
    """

    price: Floats
    upper: Floats
    rest_upper: Floats
    index: Whole
    value: Floats
    row: Whole
    row_lower: Floats
    row_upper: Floats
    wholes: Whole
    rest: Whole
    tied: tuple[tuple[int, int, float], ...]
    unit: float
    columns: int

    def values(self, y: Floats, x: Floats) -> tuple[float, ...]:
        """A plan in the columns of the model."""
        values = np.zeros(self.columns)
        values[self.wholes], values[self.rest] = y, np.clip(x, 0.0, self.rest_upper)
        for column, owner, ratio in self.tied:
            values[column] = ratio * y[owner]
        return tuple(values.tolist())

    def misses(self, y: Floats, x: Floats) -> float:
        """By how much a point passes the row it passes most."""
        point = np.concatenate((y, np.clip(x, 0.0, self.rest_upper)))
        sums = np.bincount(self.row, weights=self.value * point[self.index], minlength=len(self.row_lower))
        return float(np.max(np.maximum(sums - self.row_upper, self.row_lower - sums), initial=0.0))


def read_few_wholes(model: LinearModel) -> FewWholes | None:
    """The model so read; None where it is of another kind."""
    integer = np.array(model.columns.integer, dtype=bool)
    if model.relaxed or not 0 < integer.sum() <= MOST:
        return None
    rows = [row for row in model.rows if row.family not in SHARES]
    arrays = model_arrays(model.columns, rows, model.objective, model.objective_scale)
    priced = arrays.price != 0
    bounded = np.all(np.isfinite(arrays.upper[~integer]))
    if not priced.any() or np.any(arrays.price < 0) or np.any(priced & ~integer) or not bounded:
        return None
    row_of = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(arrays.start))
    tied = _tied(arrays, row_of, np.flatnonzero(integer & ~priced), integer & priced)
    return None if tied is None else _read(model, arrays, row_of, np.flatnonzero(priced), tied)


def _tied(
    arrays: ModelArrays, row_of: Whole, costless: NDArray[np.intp], owners: Marks
) -> dict[int, tuple[int, float, int]] | None:
    """Every costless whole number → the priced one that alone holds it, how many per one, and the row of that."""
    found: dict[int, tuple[int, float, int]] = {}
    for column in costless.tolist():
        tie = _tie(arrays, row_of, column, owners)
        if tie is None:
            return None
        found[column] = tie
    return found


def _tie(arrays: ModelArrays, row_of: Whole, column: int, owners: Marks) -> tuple[int, float, int] | None:
    """Column ≤ ratio × owner, where only this row keeps the column from growing and the ratio is whole."""
    here = arrays.index == column
    rows, values = row_of[here], arrays.value[here]
    held = ((values > 0) & np.isfinite(arrays.row_upper[rows])) | ((values < 0) & np.isfinite(arrays.row_lower[rows]))
    if held.sum() != 1 or np.isfinite(arrays.upper[column]):
        return None
    row, own = int(rows[held][0]), float(values[held][0])
    first, last = arrays.start[row], arrays.start[row + 1]
    if last - first != 2 or own < 0 or arrays.row_upper[row] != 0 or np.isfinite(arrays.row_lower[row]):
        return None
    place = first if arrays.index[first] != column else first + 1
    owner, ratio = int(arrays.index[place]), -float(arrays.value[place]) / own
    fits = owners[owner] and round(ratio) >= 1 and abs(ratio - round(ratio)) <= RATIO * ratio
    return (owner, float(round(ratio)), row) if fits else None


def _read(
    model: LinearModel,
    arrays: ModelArrays,
    row_of: Whole,
    wholes: NDArray[np.intp],
    tied: dict[int, tuple[int, float, int]],
) -> FewWholes:
    integer = np.array(model.columns.integer, dtype=bool)
    rest = np.flatnonzero(~integer)
    place = np.zeros(len(integer), dtype=np.int32)
    place[wholes], place[rest] = np.arange(len(wholes)), len(wholes) + np.arange(len(rest))
    factor = np.ones(len(integer))
    for column, (owner, ratio, _) in tied.items():
        place[column], factor[column] = place[owner], ratio
    kept = ~np.isin(row_of, [row for _, _, row in tied.values()])
    return FewWholes(
        arrays.price[wholes],
        arrays.upper[wholes],
        arrays.upper[rest],
        place[arrays.index[kept]],
        (arrays.value * factor[arrays.index])[kept],
        row_of[kept],
        np.where(_dropped(len(arrays.row_lower), tied), -np.inf, arrays.row_lower),
        np.where(_dropped(len(arrays.row_lower), tied), np.inf, arrays.row_upper),
        wholes.astype(np.int32),
        rest.astype(np.int32),
        tuple((column, int(place[owner]), ratio) for column, (owner, ratio, _) in tied.items()),
        common_unit([model.objective[j] for j in wholes.tolist()]) / model.objective_scale,
        len(integer),
    )


def _dropped(rows: int, tied: dict[int, tuple[int, float, int]]) -> Marks:
    return np.isin(np.arange(rows), [row for _, _, row in tied.values()])


def common_unit(prices: list[float]) -> float:
    """The largest number of which all prices are whole multiples, if they are decimals or simple fractions; or 0."""
    parts = [Fraction(price).limit_denominator(LARGEST_DENOMINATOR) for price in prices]
    if any(abs(float(part) - price) > EXACT * abs(price) for part, price in zip(parts, prices, strict=True)):
        return 0.0
    common = math.lcm(*(part.denominator for part in parts))
    return math.gcd(*(int(part * common) for part in parts)) / common
