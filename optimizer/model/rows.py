"""Rows and cost lines as plain data: what a constraint family and a cost term yield.

Columns are numbers handed out by `Columns`; only the solver adapter knows PuLP. A row is kept in the buyer's units and
divided by `scale` on its way to the solver, so that no coefficient or right-hand side leaves HiGHS's safe range.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

LARGE = 1e3
"""Rows without a right-hand side are scaled when their largest coefficient is above this, or below one over it."""
WIDEST = 1e6
"""A right-hand side smaller than the largest coefficient by more than this does not set the scale of its row."""


@dataclass(slots=True)
class Columns:
    """The decision variables, in the order in which they were made; `keys` are (family, index...)."""

    keys: list[tuple[object, ...]] = field(default_factory=list)
    upper: list[float | None] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)

    def add(self, family: str, index: Iterable[object], *, upper: float | None = None, integer: bool = False) -> int:
        """Make a variable ≥ 0 and return its column number."""
        self.keys.append((family, *index))
        self.upper.append(upper)
        self.integer.append(integer)
        return len(self.keys) - 1

    def name(self, column: int) -> str:
        """`family__a__b`."""
        return "__".join(map(str, self.keys[column]))

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [self.name(column) for column in range(len(self.keys))]

    def copy(self) -> "Columns":
        """Columns that can be added to without changing these."""
        return Columns(list(self.keys), list(self.upper), list(self.integer))

    def __len__(self) -> int:
        """Number of columns."""
        return len(self.keys)


Term = tuple[int, float]
"""(column, coefficient)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One constraint: Σ coefficient × variable (<=, >=, =) rhs, in `unit`.

    It is kept in the buyer's units; `scale` divides it on its way to the solver.
    """

    family: str
    index: tuple[str, ...]
    terms: tuple[Term, ...]
    sense: str
    rhs: float
    unit: str
    scale: float = 1.0

    @property
    def name(self) -> str:
        """`family__a__b`."""
        return "__".join((self.family, *self.index))

    def lhs(self, values: Sequence[float]) -> float:
        """Left-hand side at a point."""
        return sum(coefficient * values[column] for column, coefficient in self.terms)

    def holds(self, values: Sequence[float], tolerance: float = 1e-6) -> bool:
        """Whether it holds at a point, up to a share of its scale or of its largest figure."""
        size = max(self.scale, max((abs(c * values[j]) for j, c in self.terms), default=0.0))
        left = (self.rhs - self.lhs(values)) / size
        return {"<=": left >= -tolerance, ">=": left <= tolerance, "=": abs(left) <= tolerance}[self.sense]


def row(
    family: str,
    index: Iterable[object],
    terms: Iterable[Term],
    sense: str,
    rhs: float,
    unit: str,
) -> Row:
    """Make a row scaled by its right-hand side, or by its largest coefficient where there is none (or next to none).

    Raises
    ------
    ValueError
        If a variable stands in it twice (a fault of ours).
    """
    kept = tuple([(column, float(c)) for column, c in terms if c != 0])
    if len(dict(kept)) < len(kept):
        msg = f"a row of {family} names a variable twice"
        raise ValueError(msg)
    largest = max([abs(c) for _, c in kept], default=0.0)
    if rhs != 0:
        scale = max(abs(rhs), largest / WIDEST)
    else:
        scale = 1.0 if largest == 0 or 1 / LARGE <= largest <= LARGE else largest
    return Row(family, tuple(map(str, index)), kept, sense, float(rhs), unit, scale)


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line of the ledger: quantity × unit price, linear in the variables.

    `terms` are (column, quantity per unit of the variable, present value of that quantity's cost); `constant_*` cover
    what is paid whatever is decided. `period` is the listed period in which it is paid, or their number for "after the
    horizon". `group` (`capex`, `opex`, `salvage`) says which limit it counts against, `name` which of the buyer's
    further costs it is. The objective is Σ present value over all lines, and the report is the same lines at the
    solution.
    """

    term: str
    option_id: str
    period: int
    unit: str
    unit_price: float
    source: str
    terms: tuple[tuple[int, float, float], ...]
    constant_quantity: float = 0.0
    constant_npv: float = 0.0
    group: str = "opex"
    name: str = ""

    def quantity(self, values: Sequence[float]) -> float:
        """Quantity at a point."""
        return self.constant_quantity + sum(q * values[column] for column, q, _ in self.terms)

    def amount(self, values: Sequence[float]) -> float:
        """Undiscounted amount at a point."""
        return self.unit_price * self.quantity(values)

    def npv(self, values: Sequence[float]) -> float:
        """Present value at a point."""
        return self.constant_npv + sum(v * values[column] for column, _, v in self.terms)
