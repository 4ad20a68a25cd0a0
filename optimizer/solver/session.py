"""A problem that is solved again and again with other prices, limits or demand.

What is read, estimated and built once is kept. Of a changed problem the rows that the change can touch are built
anew; what the problems solved so far prove of it is not searched for (`known`). Answers equal those from scratch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from catalog import Catalog
from optimizer.model.build import Milp
from optimizer.model.rebuild import touched
from optimizer.prepare import Prepared, prepare
from optimizer.problem.schema import Problem
from optimizer.solver.changes import ChangeError as ChangeError
from optimizer.solver.changes import Demands, EverythingKept, Limits, Prices, with_changes
from optimizer.solver.changes import Price as Price
from optimizer.solver.milp import Solution, SolverSettings
from optimizer.solver.resolve import Memory, Resolver

EVERYTHING = "everything"


@dataclass(frozen=True, slots=True)
class Answer:
    """The least cost of a changed problem.

    `status` is optimal (proven to the gap asked) | feasible (the time limit came first) | infeasible; `npv` is infinite
    without a plan. `rebuilt` names the families of rows built anew, or `everything`. `searched` is false where earlier
    answers proved this one. `values` are those of the columns of `milp`.
    """

    status: str
    npv: float
    bound: float
    gap: float
    values: Sequence[float]
    milp: Milp
    rebuilt: tuple[str, ...]
    searched: bool


@dataclass(slots=True)
class Session:
    """Re-solves of one problem; its names are canonical (`problem.names.canonical_names`).

    `settings.time_limit_s` counts for each answer.
    """

    problem: Problem
    catalog: Catalog
    settings: SolverSettings = field(default_factory=SolverSettings)
    memory: Memory = field(default_factory=Memory)
    prepared: Prepared = field(init=False)

    def __post_init__(self) -> None:
        self.prepared = self._again(self.problem)

    def _again(self, problem: Problem) -> Prepared:
        return prepare(problem, self.catalog, keep=EverythingKept())

    def solve(
        self, *, prices: Prices | None = None, limits: Limits | None = None, demand: Demands | None = None
    ) -> Answer:
        """The least cost with these changes of the problem as it was given; those of earlier calls are not kept.

        `prices`: option name or pattern → factor on its price (hour, signing fee, purchase), or a `Price`; nodes held
        already keep theirs unless named in full. `limits`: key of the problem file (`limits.capex`,
        `limits.spot_share.chat`, `options.quotes.NAME.max_nodes`) → value, or None to lift it. `demand`: workload →
        factor, or a factor for each of some slices.

        Raises
        ------
        ChangeError
            If a name is not in the problem, or a number has no sense.
        OutOfTimeError
            If the time limit passes before there is any plan.
        """
        changed = with_changes(self.prepared, self._again, prices or {}, limits or {}, demand or {})
        first = self.memory.first
        resolver = Resolver(self.settings, self._again, memory=self.memory)
        found = resolver.answer(changed)
        families = None if first is None else touched(first.instance, found.milp.instance)
        names = (EVERYTHING,) if families is None else tuple(sorted(families))
        return _answer(found.milp, found.solution, names, searched=found.searched)

    def prepared_for(
        self, *, prices: Prices | None = None, limits: Limits | None = None, demand: Demands | None = None
    ) -> Prepared:
        """The changed problem itself, to be modelled or solved by other means."""
        return with_changes(self.prepared, self._again, prices or {}, limits or {}, demand or {})


def _answer(milp: Milp, solution: Solution, rebuilt: tuple[str, ...], *, searched: bool) -> Answer:
    if solution.status == "infeasible":
        return Answer("infeasible", math.inf, math.inf, 0.0, (), milp, rebuilt, searched)
    return Answer(
        solution.status, solution.objective, solution.bound, solution.gap, solution.values, milp, rebuilt, searched
    )
