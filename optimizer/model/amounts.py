"""Amounts of a cost by period and price level: what cost terms gather before they become lines of the ledger."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from optimizer.model.entities import Instance, Order
from optimizer.model.options import Option
from optimizer.model.rows import CostLine
from optimizer.model.spans import ALWAYS, priced_hours, spans
from optimizer.model.variables import CellKey, Variables, cell_key
from optimizer.units import HOURS_PER_MONTH

AmountTerm = tuple[int, float, float]
"""(column, quantity, present value)."""
When = tuple[int, float]
"""(period, price level)."""


@dataclass(slots=True)
class Amounts:
    """Terms and constants per period and price level; a quantity is never without its present value."""

    terms: dict[When, list[AmountTerm]] = field(default_factory=lambda: defaultdict(list))
    constants: dict[When, tuple[float, float]] = field(default_factory=dict)

    def add(self, period: int, level: float, column: int, quantity: float, value: float) -> None:
        """Add so much per unit of a variable."""
        self.terms[period, level].append((column, quantity, value))

    def add_constant(self, period: int, level: float, quantity: float, value: float) -> None:
        """Add what is paid whatever is decided."""
        before = self.constants.get((period, level), (0.0, 0.0))
        self.constants[period, level] = (before[0] + quantity, before[1] + value)

    def lines(
        self, term: str, option: Option | None, unit: str, price: float, name: str = "", source: str = ""
    ) -> Iterator[CostLine]:
        """One running cost line per period and price level."""
        option_id, read = ("", source) if option is None else (option.option_id, source or option.source)
        for when in sorted({*self.terms, *self.constants}, key=lambda when: (when[0], abs(when[1] - 1))):
            period, level = when
            terms, fixed = tuple(self.terms.get(when, ())), self.constants.get(when, (0.0, 0.0))
            yield CostLine(term, option_id, period, unit, price * level, read, terms, *fixed, "opex", name)


@dataclass(frozen=True, slots=True)
class Paid:
    """Node-hours paid per unit of a variable, in one period at one price level, and what paying 1 for each is worth."""

    option_id: str
    period: int
    level: float
    column: int
    hours: float
    present_hours: float


def paid_hours(
    instance: Instance, v: Variables, change_per_year: float = 0.0, window: tuple[float, float] = ALWAYS
) -> Iterator[Paid]:
    """All time paid for nodes rented by use, for services and for jobs, inside a window of months."""
    blocks = instance.grid.blocks
    hours = {cell_key(c): priced_hours(instance, c, change_per_year, window) for c in instance.cells()}
    for option_id, key, column, nodes in _paid_as_used(v):
        for part in hours[key]:
            period, present = blocks[key[0]].period, nodes * part.present_hours
            yield Paid(option_id, period, part.level, column, nodes * part.hours, present)
    whole = [(s.option, (s.start_month, s.end_month), HOURS_PER_MONTH * s.share_of_hours, c) for s, c in v.stretches]
    for bill in v.bills:
        start, end = bill.idle_span
        whole.append((bill.option, (start, end), 1 / (end - start), bill.idle))
    for option, (start, end), per_month, column in whole:
        inside = (max(start, window[0]), min(end, window[1]))
        for one in spans(instance, *inside, change_per_year):
            present = one.present_months * per_month
            yield Paid(option.option_id, one.period, one.level, column, one.months * per_month, present)


def _paid_as_used(v: Variables) -> Iterator[tuple[str, CellKey, int, float]]:
    """(option, cell, column, nodes per unit of it) of nodes paid while they are used, for services and for jobs."""
    in_steps = {stretch.option.option_id for stretch, _ in v.stretches}
    for (option_id, key), column in v.rent.items():
        if option_id not in in_steps:
            yield option_id, key, column, 1.0
    for place in v.places:
        if place.nodes is not None:
            yield place.option.option_id, cell_key(place.cell), place.nodes, place.nodes_per_share


def orders_of(instance: Instance, v: Variables, option: Option) -> Iterator[tuple[Order, int]]:
    """Possible orders of an option, with their columns."""
    for order in instance.orders:
        if order.option is option:
            yield order, v.acquire[option.option_id, order.period]


def held_amounts(
    instance: Instance,
    v: Variables,
    option: Option,
    price: float,
    quantity_per_month: float,
    change_per_year: float = 0.0,
    window: tuple[float, float] = ALWAYS,
    *,
    past_horizon: bool = True,
) -> Amounts:
    """Something paid per month while a node is held, inside a window of months.

    What a term binds to past the horizon is paid too, where it cannot be cancelled (unless not `past_horizon`).
    """
    found = Amounts()
    runs_on = past_horizon and option.term_months is not None and not option.cancellable
    last = window[1] if runs_on else min(window[1], instance.grid.horizon_months)
    for order, column in orders_of(instance, v, option):
        stay = (max(order.arrival_month, window[0]), min(order.end_month, last))
        for span in spans(instance, *stay, change_per_year):
            value = span.present_months * quantity_per_month * price * span.level
            found.add(span.period, span.level, column, span.months * quantity_per_month, value)
    if option.existing_nodes:
        quantity = option.existing_nodes * quantity_per_month
        for span in spans(instance, window[0], min(option.held_until(0.0), last), change_per_year):
            value = span.present_months * quantity * price * span.level
            found.add_constant(span.period, span.level, span.months * quantity, value)
    return found
