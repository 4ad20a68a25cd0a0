"""The family of billing steps: who uses rented nodes pays whole steps (docs/model.md, "Billing steps").

The docstring of a family is its inequality, then why. Left-hand sides hold variables only, right-hand sides data only.
"""

from collections import defaultdict
from collections.abc import Iterator

from optimizer.model.billing import ALL_DAYS
from optimizer.model.entities import Instance
from optimizer.model.lookup import cell_index, month_label
from optimizer.model.places import Bill
from optimizer.model.rows import CostLine, Row, Term, row
from optimizer.model.variables import Variables, cell_key

FAMILY = "billing_step"


def billing_step(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Nodes there − Σ nodes of the stretches that cover the block and days = 0, for steps longer than an hour.

    Per run and option hired: share of the run on its nodes ≤ Σ node-steps × share that each holds, for longer steps in
    every slice; node-hours paid = used + idle; where several nodes are needed at once, least × moments ≤ node-steps ≤
    most × moments.
    """
    yield from _stretch_rows(instance, v)
    for bill in v.bills:
        place = bill.places[0]
        index = (place.demand.name, place.alternative, bill.option.option_id)
        yield from _bill_rows(instance, index, bill)


def _stretch_rows(instance: Instance, v: Variables) -> Iterator[Row]:
    covering: dict[tuple[str, str, int], list[Term]] = defaultdict(list)
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    for option_id, days, _ in v.there:
        kinds[option_id][days] = None
    for stretch, column in v.stretches:
        for block in range(stretch.first, stretch.last + 1):
            for days in kinds[stretch.option.option_id] if stretch.days == ALL_DAYS else (stretch.days,):
                covering[stretch.option.option_id, days, block].append((column, -1.0))
    for (option_id, days, block), terms in covering.items():
        index = (option_id, month_label(instance.grid.blocks[block].start_month), days)
        yield row(FAMILY, index, [(v.there[option_id, days, block], 1.0), *terms], "=", 0.0, "nodes")


def _bill_rows(instance: Instance, index: tuple[object, ...], bill: Bill) -> Iterator[Row]:
    used: dict[int | None, list[Term]] = defaultdict(list)
    hours: list[Term] = []
    for place in bill.places:
        if place.nodes is not None:
            each = place.nodes_per_share * place.cell.hours
            hours.append((place.nodes, -each))
            slice_ = place.cell.slice if bill.option.long_step else None
            used[slice_].append((place.nodes, each / place.most_node_hours))
    for where, shares in used.items():
        held = [(s.column, -min(1.0, s.shares[where])) for s in bill.steps if where in s.shares]
        name = () if where is None else (instance.grid.slices[where].name,)
        yield row(FAMILY, (*index, *name, "steps"), [*shares, *held], "<=", 0.0, "share")
    paid = [(s.column, s.paid_hours) for s in bill.steps]
    yield row(FAMILY, (*index, "paid"), [*paid, *hours, (bill.idle, -1.0)], "=", 0.0, "node-hours")
    rising = instance.problem.finance.opex_escalation.rent > 0
    for place in bill.places if rising else ():  # else idle time is paid when it is cheapest, and tidied into the bill
        if place.nodes is not None and place.hired is not None:
            where_ = (*index, *cell_index(instance, cell_key(place.cell)), "in-use")
            yield row(FAMILY, where_, [(place.nodes, 1.0), (place.hired, -place.waste)], "<=", 0.0, "share")
    for steps in bill.steps:
        if steps.moments is not None:
            least = [(steps.column, 1.0), (steps.moments, -float(steps.least))]
            yield row(FAMILY, (*index, steps.name, "least"), least, ">=", 0.0, "node-steps")
            most = [(steps.column, 1.0), (steps.moments, -float(steps.most))]
            yield row(FAMILY, (*index, steps.name, "most"), most, "<=", 0.0, "node-steps")
