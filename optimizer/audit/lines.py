"""Lines of the ledger as the audit derives them, and how long nodes are paid for."""

from collections import defaultdict
from dataclasses import dataclass

from optimizer.audit.case import Case
from optimizer.audit.document import OptionRecord
from optimizer.audit.report import DUST
from optimizer.audit.stretches import FROM_START, When, months_charged

CAPEX = ("capex", "installation", "upfront_fee")


@dataclass(slots=True)
class Line:
    """A line: quantity × unit price, its present value, and the part that is paid whatever is decided.

    `name` and `unit` are of the buyer's further costs; `said` is where these are from.
    """

    term: str
    option: OptionRecord | None
    period: int
    unit_price: float
    quantity: float = 0.0
    npv: float = 0.0
    fixed_quantity: float = 0.0
    fixed_npv: float = 0.0
    group: str = ""
    name: str = ""
    unit: str = ""
    said: str | None = None

    def __post_init__(self) -> None:
        """The group follows from the term, unless it is a further cost."""
        if not self.group:
            self.group = "capex" if self.term in CAPEX else "salvage" if self.term == "salvage_value" else "opex"

    @property
    def option_id(self) -> str:
        """Its option; none for what is paid whatever is chosen."""
        return "" if self.option is None else self.option.option_id

    @property
    def source(self) -> str:
        """Where its price is from."""
        if self.said is not None:
            return self.said
        return "" if self.option is None else self.option.source

    @property
    def amount(self) -> float:
        """Undiscounted amount."""
        return self.quantity * self.unit_price

    @property
    def fixed_amount(self) -> float:
        """Undiscounted amount of the fixed part."""
        return self.fixed_quantity * self.unit_price


@dataclass(slots=True)
class Stay:
    """Node-months charged and their present value, at price level 1; the same of existing nodes only."""

    months: float = 0.0
    present: float = 0.0
    fixed_months: float = 0.0
    fixed_present: float = 0.0


def stays_charged(
    case: Case,
    option: OptionRecord,
    change: float,
    window: tuple[float, float] = FROM_START,
    *,
    whole_term: bool = True,
) -> dict[When, Stay]:
    """Node-months of an option, held from arrival to the end of its term inside a window.

    A term that cannot be cancelled is charged past the horizon (where `whole_term`), everything else up to it.
    """
    found: dict[When, Stay] = defaultdict(Stay)
    binding = whole_term and option.term_months is not None and not option.cancellable
    last = window[1] if binding else min(window[1], case.horizon)
    stays = [(order.nodes, order.arrival_month, order.leave_month, False) for order in case.orders_of(option)]
    stays.append((option.existing_nodes, 0.0, option.months_in_service, True))
    for nodes, arrival, leave, existing in stays:
        begin, stop = max(arrival, window[0]), min(leave, last)
        for when, (months, present) in months_charged(case, begin, stop, change).items() if nodes else ():
            if months <= DUST:
                continue
            stay = found[when]
            stay.months += nodes * months
            stay.present += nodes * present
            if existing:
                stay.fixed_months += nodes * months
                stay.fixed_present += nodes * present
    return found
