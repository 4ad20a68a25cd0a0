"""The problem of a plan file, ready to be changed and solved again."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from catalog import Catalog
from optimizer.estimator.types import Estimates
from optimizer.explain.reading import Record
from optimizer.model.option import Option
from optimizer.model.options import LeftOut, Supply
from optimizer.prepare import Prepared, prepare
from optimizer.problem.load import problem_from_json
from optimizer.problem.schema import Problem
from optimizer.solver.milp import SolverSettings
from optimizer.solver.resolve import Resolver

FINEST_GAP, FINEST_UP_TO_VARIABLES = 1e-9, 5_000
"""Differences of costs ask for more than the plan's own gap, where the model is small enough."""
LONGEST_S = 60.0
"""Seconds that an answer takes at most, where no time limit was asked for."""
_OPTIONS = TypeAdapter(tuple[Option, ...])
_ESTIMATES = TypeAdapter(Estimates)


@dataclass(slots=True)
class Resolves:
    """The problem of a plan, ready to be changed and solved again.

    `catalog` is needed where the change lets in what the plan left out; None refuses such changes.
    """

    document: Record
    settings: SolverSettings
    catalog: Catalog | None = None
    prepared: Prepared = field(init=False)

    def __post_init__(self) -> None:
        self.prepared = prepared_of(self.document)

    @property
    def gap(self) -> float:
        """Relative gap of the re-solves."""
        small = self.document["model"].get("variables", 0) <= FINEST_UP_TO_VARIABLES
        asked = self.settings.gap
        return min(asked, FINEST_GAP) if small else asked

    def resolver(self) -> Resolver:
        """A resolver with the whole time allowed."""
        again = None if self.catalog is None else self._again
        limit = LONGEST_S if self.settings.time_limit_s is None else self.settings.time_limit_s
        return Resolver(replace(self.settings, gap=self.gap, time_limit_s=limit), again)

    def _again(self, problem: Problem) -> Prepared:
        if self.catalog is None:
            msg = "no catalog at hand"
            raise ValueError(msg)
        return prepare(problem, self.catalog)

    def with_offers(self, names: Iterable[str]) -> Prepared:
        """The problem with offers let in that were left out because another one beats them."""
        kept = frozenset(names)
        if not kept or self.catalog is None:
            return self.prepared
        return prepare(self.prepared.problem, self.catalog, keep=kept)


def prepared_of(document: Record) -> Prepared:
    """The problem, options and estimates that a plan file embeds."""
    inputs = document["inputs"]
    left_out = tuple(LeftOut(e["option"], e["gpu"], e["reason"]) for e in document["left_out"])
    supply = Supply(_OPTIONS.validate_python(inputs["options"]), left_out)
    estimates: Estimates = _ESTIMATES.validate_python(inputs["estimates"])
    return Prepared(problem_from_json(inputs["problem"]), (), supply, estimates, ())
