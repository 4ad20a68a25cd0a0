"""The recipe: instance → variables → ledger → rows. Read this to know what the model is."""

from dataclasses import dataclass

from optimizer.model.constraints import FAMILIES
from optimizer.model.costs import build_ledger
from optimizer.model.instance import Instance
from optimizer.model.rows import CostLine, Row
from optimizer.model.variables import Variables, make_variables


@dataclass(frozen=True, slots=True)
class Milp:
    """A built model: plain data that the solver adapter turns into PuLP, and that a solution is read against."""

    instance: Instance
    variables: Variables
    rows: tuple[Row, ...]
    ledger: tuple[CostLine, ...]

    def objective(self) -> tuple[dict[int, float], float]:
        """Present value per column, and the constant part."""
        total: dict[int, float] = {}
        for line in self.ledger:
            for column, _, value in line.terms:
                total[column] = total.get(column, 0.0) + value
        return total, sum(line.constant_npv for line in self.ledger)


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
    names = {row.name for row in rows}
    if len(names) != len(rows):
        seen: set[str] = set()
        twice = next(row.name for row in rows if row.name in seen or seen.add(row.name))  # type: ignore[func-returns-value]
        msg = f"two rows are named {twice}"
        raise ValueError(msg)
    return Milp(instance, variables, rows, ledger)
