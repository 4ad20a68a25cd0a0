"""The best of a few yes-or-no choices with all else in parts: branch and bound on one linear program, kept in HiGHS.

HiGHS's own search spends ten times as long on such a model, before it branches at all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.solver.matrix import Floats, KeptProgram, MatrixModel

MOST_PROGRAMS = 60
WHOLE = 1e-6


@dataclass(frozen=True, slots=True)
class Chosen:
    """Values of all columns, their cost, and what any choice costs at least."""

    values: Floats
    cost: float
    bound: float


def choose(model: MatrixModel, columns: Sequence[int], gap: float) -> Chosen | None:
    """The best values, 0 or 1, of some columns of a relaxed model to the gap asked; None where none was found.

    Depth first, yes before no, on the column that is nearest to yes. After so many linear programs the best so far is
    taken, with the bound of what was left.
    """
    program = KeptProgram(model)
    best: Chosen | None = None
    enough = math.inf
    open_: list[tuple[dict[int, float], float]] = [({}, -math.inf)]
    lowest = math.inf
    for _ in range(MOST_PROGRAMS):
        if not open_:
            break
        fixed, bound = open_.pop()
        if bound >= enough or not program.solve_within(columns, fixed) or program.objective >= enough:
            lowest = min(lowest, max(bound, enough))
            continue
        undecided = _nearest(program.values, columns)
        if undecided is None:
            best = Chosen(program.values, program.objective, program.objective)
            enough = best.cost - gap * abs(best.cost)
        else:
            open_ += [({**fixed, undecided: value}, program.objective) for value in (0.0, 1.0)]
    if best is None:
        return None
    return Chosen(best.values, best.cost, min(best.cost, lowest, *(bound for _, bound in open_)))


def _nearest(values: Floats, columns: Sequence[int]) -> int | None:
    """The column that is nearest to yes of those in between; None where all are decided."""
    between = [c for c in columns if WHOLE < values[c] < 1 - WHOLE]
    return max(between, key=lambda column: float(values[column]), default=None)
