"""The least change of one limit that makes a problem feasible, found by re-solves and verified by one.

Where the limit stands in right-hand sides only, one elastic solve gives the least change exactly. Whole limits (nodes,
GPUs, hours of the clock) are searched by doubling and halving, the rest (deadlines, deliveries) between a value that is
too little and one that is enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.model.build import Milp, build
from optimizer.model.lookup import work_columns
from optimizer.model.rows import Columns, Row
from optimizer.prepare import Prepared
from optimizer.solver.diagnosis.limit import CHOICE, SUPPLY, Limit, changed
from optimizer.solver.milp import LinearModel
from optimizer.solver.resolve import OutOfTimeError, Resolved, Resolver

PRECISION = 1e-7
"""Relative width at which a search between two values ends."""
MARGINS = (0.0, 1e-9, 1e-8, 1e-7, 1e-6)
"""Shares by which a value may be passed, so that the solver's own tolerance does not decide."""
HAIR = 1e-5
"""Relative distance below a value at which it must not be enough: more than the solver's tolerance could hide."""
DUST = 1e-7
"""Values up to which a variable is not used."""
DIGITS = 9
"""Significant digits of a value found."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of one limit that is enough: its value then, and the proven least cost."""

    limit: Limit
    to: float
    npv: float
    lets_in: tuple[str, ...] = ()
    """What the least-cost plan would then use that was not considered before."""

    @property
    def by(self) -> float:
        """How much it gives."""
        return abs(self.to - self.limit.value)


@dataclass(slots=True)
class Search:
    """Searches on one prepared problem, with other limits as `others` say (None: lifted)."""

    prepared: Prepared
    resolver: Resolver
    others: dict[Limit, float | None]

    def at(self, limit: Limit, value: float | None) -> Prepared:
        """The problem with the limit at a value (None: without it)."""
        return changed(self.prepared, {**self.others, limit: value}, self.resolver.again)

    def enough(self, limit: Limit, value: float | None) -> bool:
        """Whether there is a plan with the limit at a value."""
        return self.resolver.has_plan(self.at(limit, value))

    def least(self, limit: Limit) -> float | None:
        """The value nearest to the limit's own that is enough; None if it is not enough alone.

        Raises
        ------
        OutOfTimeError
            If time ends first.
        """
        if not self.enough(limit, None):
            return None
        if limit.unit == CHOICE:
            return limit.furthest
        if limit.whole:
            return self._whole(limit)
        found = self._elastic(limit)
        return self._between(limit) if found is None else found

    def fix(self, limit: Limit) -> Fix | None:
        """The least change that is enough, with the least cost then; None if the limit is not enough alone."""
        value = self.least(limit)
        if value is None:
            return None
        found = least_cost_at(self.prepared, [*_settled(self.others), (limit, value)], self.resolver)
        if found is None:
            return None
        return Fix(limit, value, found.npv, _lets_in(limit, self.prepared, found))

    # --- whole limits ---------------------------------------------------------------------------------------------

    def _whole(self, limit: Limit) -> float:
        """Doubling steps to a value that is enough, then halving between it and the last one that is not."""
        short, step = limit.value, 1.0
        while not self.enough(limit, limit.within(limit.value + limit.direction * step)):
            short = limit.value + limit.direction * step
            step *= 2
        good = limit.within(limit.value + limit.direction * step)
        while abs(good - short) > 1:
            middle = float(round((good + short) / 2))
            good, short = (middle, short) if self.enough(limit, middle) else (good, middle)
        return good

    # --- limits in right-hand sides -------------------------------------------------------------------------------

    def _elastic(self, limit: Limit) -> float | None:
        """The least change from one solve, where the limit only moves right-hand sides; None if it does more.

        The value is checked by a model built anew, and so is one that gives a hundredth of the change less.
        """
        here = build(self.at(limit, limit.value).instance())
        further = limit.within(limit.value + limit.direction * max(1.0, abs(limit.value)))
        weights = _moved_rows(here, build(self.at(limit, further).instance()), further - limit.value)
        if weights is None:
            return None
        by = _least_slack(here, weights, limit, self.resolver)
        if by is None:
            return None
        value = rounded(limit.value + limit.direction * by)
        near = limit.value + limit.direction * by * 0.99
        holds = self._nearly_enough(limit, value) and not self.enough(limit, near)
        return value if holds else None

    def _nearly_enough(self, limit: Limit, value: float) -> bool:
        return any(self.enough(limit, _passed(limit, value, margin)) for margin in MARGINS)

    # --- the rest -------------------------------------------------------------------------------------------------

    def _between(self, limit: Limit) -> float:
        """Halving between the limit's value and one that is enough, after a guess from the work left undone."""
        short, good = limit.value, self._first_enough(limit)
        guess = self._guess(limit)
        if guess is not None and min(short, good) < guess < max(short, good):
            if not self._nearly_enough(limit, guess):
                short = guess
            elif not self.enough(limit, guess - limit.direction * HAIR * max(abs(guess), abs(guess - limit.value))):
                return rounded(guess)
            else:
                good = guess
        while abs(good - short) > 10 * PRECISION * max(abs(good), abs(limit.value)):
            middle = (good + short) / 2
            good, short = (middle, short) if self.enough(limit, middle) else (good, middle)
        return self._neat(limit, good)

    def _first_enough(self, limit: Limit) -> float:
        if limit.furthest is not None:
            return limit.furthest
        step = max(1.0, abs(limit.value))
        while not self.enough(limit, limit.value + limit.direction * step):
            step *= 2
        return limit.value + limit.direction * step

    def _guess(self, limit: Limit) -> float | None:
        """The deadline by which the work of a job would be done, if what it gets per hour stayed."""
        if limit.family != "deadline":
            return None
        undone = least_undone(build(self.at(limit, limit.value).instance()), limit.workload, self.resolver)
        if undone is None or undone >= 1:
            return None
        return limit.value / (1 - undone)

    def _neat(self, limit: Limit, good: float) -> float:
        """A value of few digits inside the last bracket, where there is one."""
        if limit.furthest is not None and abs(good - limit.furthest) <= 10 * PRECISION * abs(limit.value):
            return limit.furthest
        for digits in range(2, DIGITS):
            value = rounded(good, digits)
            if abs(value - good) <= 100 * PRECISION * abs(good) and self._nearly_enough(limit, value):
                return value
        return rounded(good)


def _settled(others: Mapping[Limit, float | None]) -> list[tuple[Limit, float]]:
    return [(limit, value) for limit, value in others.items() if value is not None]


_NEW = {
    "options.gpus": "gpu_id",
    "options.regions": "region",
    "options.purchase": "purchase_option",
    "options.providers": "provider",
}
"""What a key keeps out, by the field of an offer; offers themselves where it is none of these."""


def _lets_in(limit: Limit, before: Prepared, found: Resolved) -> tuple[str, ...]:
    """Names that a lifted list lets in, as far as the least-cost plan uses them."""
    if limit.again != SUPPLY:
        return ()
    known = {option.option_id for option in before.supply.options}
    v, values = found.milp.variables, found.solution.values
    columns = [(name, c) for (name, _), c in (*v.acquire.items(), *v.rent.items())]
    columns += [(place.option.option_id, c) for place in v.places for c in work_columns(place)]
    used = {name for name, column in columns if values[column] > DUST} - known
    field = _NEW.get(limit.key, "option_id")
    new = (str(getattr(o, field)) for o in found.milp.instance.options if o.option_id in used)
    return tuple(dict.fromkeys(new))


def least_cost_at(prepared: Prepared, values: Sequence[tuple[Limit, float]], resolver: Resolver) -> Resolved | None:
    """The least cost with limits at values, passed by what the solver's tolerance may hide; None without a plan."""
    for margin in MARGINS:
        passed = {limit: _passed(limit, value, margin) for limit, value in values}
        found = resolver.least_cost(changed(prepared, passed, resolver.again))
        if found is not None:
            return found
    return None


def _passed(limit: Limit, value: float, margin: float) -> float:
    return limit.within(value + limit.direction * margin * max(abs(value), 1e-9))


def rounded(value: float, digits: int = DIGITS) -> float:
    """A value to so many significant digits."""
    return float(f"{value:.{digits}g}")


def _moved_rows(here: Milp, there: Milp, by: float) -> dict[int, float] | None:
    """Change of each right-hand side per unit of the limit; None if anything else differs."""
    if len(here.rows) != len(there.rows) or len(here.cuts) != len(there.cuts) or by == 0:
        return None
    if here.variables.columns.upper != there.variables.columns.upper:
        return None
    weights: dict[int, float] = {}
    for number, (a, b) in enumerate(zip(here.solved_rows(), there.solved_rows(), strict=True)):
        if (a.family, a.index, a.sense, a.terms) != (b.family, b.index, b.sense, b.terms):
            return None
        if a.rhs != b.rhs:
            weights[number] = (b.rhs - a.rhs) / by
    return weights


def _least_slack(milp: Milp, weights: dict[int, float], limit: Limit, resolver: Resolver) -> float | None:
    """Least change of a limit whose rows' right-hand sides move by `weights` per unit; None if none is enough."""
    size = max(1.0, abs(limit.value))
    columns = milp.variables.columns.copy()
    slack = columns.add("slack", ())
    rows = milp.solved_rows()
    for number, weight in weights.items():
        gives = -limit.direction * weight * size
        rows[number] = replace(rows[number], terms=(*rows[number].terms, (slack, gives)))
    found = _slack_value(resolver, columns, rows, slack)
    return None if found is None else found * size


def _slack_value(resolver: Resolver, columns: Columns, rows: list[Row], slack: int) -> float | None:
    solution = resolver.run(LinearModel(columns, rows, {slack: 1.0}), gap=0.0)
    if solution.status == "feasible":  # some change that is enough, but maybe not the least
        raise OutOfTimeError
    return solution.values[slack] if solution.values else None


def least_undone(milp: Milp, workload: str, resolver: Resolver) -> float | None:
    """Least share of a workload that must be left undone, the same in all its rows; None if that is not enough."""
    columns = milp.variables.columns.copy()
    slack = columns.add("unmet", (workload,), upper=1.0)
    runs = {d.name for d in milp.instance.volume_demands if d.workload == workload}
    rows = list(milp.rows)  # without the cuts, which suppose that all demand is met
    for number, row in enumerate(rows):
        served = row.family in ("demand_coverage", "spare_capacity") and row.index[0] == workload
        if (served or (row.family == "deadline" and row.index[0] in runs)) and row.rhs > 0:
            rows[number] = replace(row, terms=(*row.terms, (slack, row.rhs)))
    return _slack_value(resolver, columns, rows, slack)
