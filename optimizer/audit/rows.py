"""A constraint as derived from the plan's decisions, and what the modules that derive them share."""

from collections.abc import Iterable
from dataclasses import dataclass

SMALL_LOAD = 1e-3
"""Loads below this many replicas have a row of their own: anything served needs one whole replica."""


@dataclass(frozen=True, slots=True)
class DerivedRow:
    """Left-hand side, sense and right-hand side in `unit`; `size` is the largest figure on the left."""

    family: str
    index: tuple[str, ...]
    lhs: float
    sense: str
    rhs: float
    unit: str
    size: float

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """What the row is called."""
        return (self.family, self.index)


def derived_row(
    family: str, index: Iterable[object], parts: Iterable[float], sense: str, rhs: float, unit: str
) -> DerivedRow:
    """A row whose left-hand side is the sum of `parts`."""
    figures = [float(part) for part in parts]
    size = max((abs(figure) for figure in figures), default=0.0)
    return DerivedRow(family, tuple(map(str, index)), sum(figures), sense, float(rhs), unit, size)
