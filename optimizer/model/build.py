"""The recipe: instance → variables → ledger → rows. Read this to know what the model is."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from optimizer.model.constraints import FAMILIES
from optimizer.model.costs import build_ledger
from optimizer.model.entities import Instance
from optimizer.model.families.services import implied_rows
from optimizer.model.families.strengthening import cuts
from optimizer.model.rows import CostLine, Row
from optimizer.model.variables import Variables, make_variables


@dataclass(frozen=True, slots=True)
class Milp:
    """A built model: plain data that the solver adapter turns into PuLP, and that a solution is read against."""

    instance: Instance
    variables: Variables
    rows: tuple[Row, ...]
    ledger: tuple[CostLine, ...]
    cuts: tuple[Row, ...] = ()

    def solved_rows(self) -> list[Row]:
        """Rows for the solver: the constraints and the valid inequalities."""
        return [*self.rows, *self.cuts]

    def reported_rows(self) -> list[Row]:
        """Rows for the report: the constraints and those that follow from them."""
        return [*self.rows, *implied_rows(self.instance, self.variables)]

    def objective(self) -> tuple[dict[int, float], float]:
        """Present value per column, and the constant part."""
        total: dict[int, float] = {}
        for line in self.ledger:
            for column, _, value in line.terms:
                total[column] = total.get(column, 0.0) + value
        return total, sum(line.constant_npv for line in self.ledger)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No search for garbage meanwhile: a model is many small records, none of them garbage, and none in a cycle."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


@collection_paused()
def build(instance: Instance) -> Milp:
    """Build every variable, cost line and row of an instance.

    Raises
    ------
    ValueError
        If two rows have one name (a fault of ours).
    """
    variables = make_variables(instance)
    ledger = build_ledger(instance, variables)
    rows = tuple(row for family in FAMILIES for row in family(instance, variables, ledger))
    counts = Counter((row.family, row.index) for row in rows)
    twice = next((key for key, count in counts.items() if count > 1), None)
    if twice is not None:
        msg = f"two rows of {twice[0]} are named {', '.join(twice[1])}"
        raise ValueError(msg)
    return Milp(instance, variables, rows, ledger, tuple(cuts(instance, variables)))
