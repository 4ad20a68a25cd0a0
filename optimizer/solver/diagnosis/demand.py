"""Demand that cannot be met while all limits stand: where it stays unmet, and the least cut that is enough."""

from dataclasses import dataclass, replace

from optimizer.estimator.types import Demand
from optimizer.estimator.workloads import AnyWorkload
from optimizer.model.build import Milp, build
from optimizer.model.instance import build_instance
from optimizer.model.rows import Row
from optimizer.prepare import Prepared
from optimizer.solver.diagnosis.part import of_means
from optimizer.solver.diagnosis.search import MARGINS, PRECISION, least_undone, rounded
from optimizer.solver.milp import LinearModel
from optimizer.solver.resolve import OutOfTimeError, Resolver

DEMAND_FAMILIES = ("demand_coverage", "deadline", "spare_capacity")
_NAMED = {"demand_coverage": 2, "spare_capacity": 1}
"""Parts of an index that name a demand; the rest says where it is."""
CLOSE = 1e-2
"""Gap up to which a shortfall found in part of the time is told."""
TOLERANCE = 1e-7
"""Unmet shares below this are the solver's dust."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """The worst row of a request class or of a job's run: `short` of `needed` stays undone."""

    family: str
    index: tuple[str, ...]
    needed: float
    short: float
    unit: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut of one workload that is enough: peak rate (or amount of work) asked and kept, and the least cost then."""

    workload: str
    asked: float
    kept: float
    unit: str
    npv: float


def unmet_demand(milp: Milp, resolver: Resolver) -> list[Unmet]:
    """How much demand stays unmet if all limits stand: the worst row of each class and each job."""
    columns = milp.variables.columns.copy()
    rows = list(milp.rows)  # without the cuts, which suppose that all demand is met
    added: list[tuple[Row, int]] = []
    for number, row in enumerate(milp.rows):
        if row.family in DEMAND_FAMILIES and row.rhs > 0:
            column = columns.add("unmet", row.index, upper=1.0)
            rows[number] = replace(row, terms=(*row.terms, (column, row.rhs)))
            added.append((row, column))
    solution = resolver.run(LinearModel(columns, rows, {column: 1.0 for _, column in added}), gap=1e-6)
    if solution.status == "feasible" and solution.gap > CLOSE:
        raise OutOfTimeError
    worst: dict[tuple[str, ...], Unmet] = {}
    for row, column in added if solution.values else ():
        share = solution.values[column]
        key = (row.family, *row.index[: _NAMED.get(row.family, len(row.index))])
        known = worst.get(key)
        if share > TOLERANCE and not of_means(row) and (known is None or share * row.rhs > known.short):
            worst[key] = Unmet(row.family, row.index, row.rhs, share * row.rhs, row.unit)
    return list(worst.values())


def least_cut(prepared: Prepared, workload: AnyWorkload, resolver: Resolver) -> Cut | None:
    """The least cut of one workload, the same share of all its demand, that is enough; None if no cut of it is.

    Raises
    ------
    OutOfTimeError
        If time ends first.
    """
    name = workload.name
    milp = build(prepared.instance())
    undone = least_undone(milp, name, resolver)
    if undone is None:
        return None
    asked, unit = _asked(prepared, name)
    kept = 0.0 if undone > 1 - TOLERANCE else rounded(asked * (1 - undone)) / asked
    share = _verified(prepared, name, kept, resolver)
    if share is None:
        return None
    found = resolver.least_cost(scaled(prepared, name, share))
    if found is None:
        return None
    return Cut(name, asked, rounded(asked * (kept if abs(kept - share) < 1e-5 else share)), unit, found.npv)


def _verified(prepared: Prepared, name: str, kept: float, resolver: Resolver) -> float | None:
    """A share with which there is a plan: `kept`, or the most below it that halving finds."""
    for margin in MARGINS:
        if resolver.has_plan(scaled(prepared, name, kept * (1 - margin))):
            return kept * (1 - margin)
    good, bad = 0.0, kept
    if not resolver.has_plan(scaled(prepared, name, good)):
        return None
    while bad - good > 10 * PRECISION * bad:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if resolver.has_plan(scaled(prepared, name, middle)) else (good, middle)
    return good


def _asked(prepared: Prepared, name: str) -> tuple[float, str]:
    """A job's work in one run; the peak rate of a service over its classes, headroom included."""
    instance = build_instance(prepared.problem, prepared.supply, prepared.estimates)
    volumes = [d for d in instance.volume_demands if d.workload == name]
    if volumes:
        return volumes[0].amount, volumes[0].unit
    rates = [d.rate_per_s for d in instance.rate_demands if d.workload == name]
    by_class = [[rate for period in periods for rate in period] for periods in rates]
    return max((sum(cell) for cell in zip(*by_class, strict=True)), default=0.0), "requests/s"


def scaled(prepared: Prepared, name: str, share: float) -> Prepared:
    """The problem with a share of one workload's demand; with nothing of it at 0."""
    problem = prepared.problem
    if share <= 0:
        kept = [w for w in problem.workloads if w.name != name]
        return replace(prepared, problem=problem.model_copy(update={"workloads": kept}))
    workloads = [_with_share(w, share) if w.name == name else w for w in problem.workloads]
    demands = tuple(_demand_with_share(d, share) if d.workload == name else d for d in prepared.estimates.demands)
    estimates = replace(prepared.estimates, demands=demands)
    return replace(prepared, problem=problem.model_copy(update={"workloads": workloads}), estimates=estimates)


def _demand_with_share(demand: Demand, share: float) -> Demand:
    return demand if demand.amount is None else replace(demand, amount=demand.amount * share)


RATES = ("requests_per_day", "mean_requests_per_s", "peak_requests_per_s")


def _with_share(workload: AnyWorkload, share: float) -> AnyWorkload:
    """A service with a share of its rates; jobs keep their amount in the estimates."""
    if workload.kind != "service":
        return workload
    traffic = workload.traffic
    rates = {field: getattr(traffic, field) for field in RATES}
    given = {field: rate * share for field, rate in rates.items() if rate is not None}
    classes = workload.classes and [
        c if c.requests_per_s is None else c.model_copy(update={"requests_per_s": c.requests_per_s * share})
        for c in workload.classes
    ]
    return workload.model_copy(update={"traffic": traffic.model_copy(update=given), "classes": classes})
