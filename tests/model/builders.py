"""Small problem files as plain data, and their plans: by the public path with an audit, or the model with its rows."""

import json
import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

from catalog import Catalog, load_catalog
from optimizer import solve as solving
from optimizer.audit import audit_plan
from optimizer.model.build import Milp, build
from optimizer.plan import Plan
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.problem.names import canonical_names
from optimizer.problem.schema import Problem
from optimizer.solve import linear_model, solve
from optimizer.solver.milp import Solution, SolverSettings, solve_model

Data = dict[str, Any]
HOURS_PER_MONTH = 730
HOURS_PER_YEAR = 8_760
RELATIVE = 1e-6


@cache
def the_catalog() -> Catalog:
    """The shipped catalog, read once."""
    return load_catalog()


def on_demand(name: str = "od", gpu: str = "A", nodes_of: int = 1, price: float = 1.0, **more: Any) -> Data:
    """A quote paid by the hour, price per node and hour."""
    node = {"name": name, "gpu": gpu, "gpus_per_node": nodes_of}
    return node | {"purchase": "on-demand", "price": f"{price!r}/h"} | more


def spot(name: str = "spot", gpu: str = "A", nodes_of: int = 1, price: float = 0.5, **more: Any) -> Data:
    """Interruptible nodes paid by the hour."""
    return on_demand(name, gpu, nodes_of, price, **more) | {"purchase": "spot"}


def reserved(
    name: str = "res", gpu: str = "A", nodes_of: int = 1, price: float = 0.6, term: float = 12, **more: Any
) -> Data:
    """Nodes held for a term in months."""
    return on_demand(name, gpu, nodes_of, price, **more) | {"purchase": "reserved", "term": f"{term!r} months"}


def owned(name: str = "own", gpu: str = "A", nodes_of: int = 1, price: float = 1000.0, **more: Any) -> Data:
    """Nodes that are bought; worth nothing at the end of a life of 60 months unless said otherwise."""
    base = {"name": name, "gpu": gpu, "gpus_per_node": nodes_of, "purchase": "owned", "price": price}
    return base | {"useful_life": "60 months", "residual": 0.0} | more


def service(name: str = "chat", rate: float = 1.0, **more: Any) -> Data:
    """A service of one class with a mean rate per second."""
    traffic = {"mean_requests_per_s": rate} | more.pop("traffic", {})
    return {"name": name, "kind": "service", "traffic": traffic} | more


def classes_service(name: str, rates: dict[str, float], **more: Any) -> Data:
    """A service whose classes have rates of their own."""
    listed = [{"name": one, "requests_per_s": rate} for one, rate in rates.items()]
    return {"name": name, "kind": "service", "classes": listed} | more


def job(name: str = "train", amount: float = 100.0, **more: Any) -> Data:
    """A job with work in a unit of its own."""
    return {"name": name, "kind": "batch", "work": {"amount": amount, "unit": "units"}} | more


def serves(workload: str = "chat", rate: float = 1.0, gpu: str | None = None, **more: Any) -> Data:
    """A measured rate of one replica, on a GPU type or (`option=`) an offer."""
    where = {} if "option" in more else {"gpu": gpu or "A"}
    return {"workload": workload, "requests_per_s": rate} | where | more


def works(workload: str = "train", rate: float = 1.0, gpu: str | None = None, **more: Any) -> Data:
    """A measured yield per GPU-hour."""
    where = {} if "option" in more else {"gpu": gpu or "A"}
    return {"workload": workload, "per_gpu_hour": rate} | where | more


def problem(
    workloads: list[Data], quotes: list[Data], measurements: list[Data], *, months: float = 12, **more: Any
) -> Data:
    """A problem without the catalog, ordered once unless `horizon` says otherwise."""
    existing = more.pop("existing", [])
    gpus = dict.fromkeys(one["gpu"] for one in [*quotes, *existing])
    return {
        "name": "test",
        "horizon": {"months": months, "periods": more.pop("periods", "once")},
        "workloads": workloads,
        "measurements": measurements,
        "gpus": {gpu: {} for gpu in gpus},
        "options": {"catalog": False, "quotes": quotes, "existing": existing},
    } | more


def parsed(data: Data) -> Problem:
    """The problem of a file with this content, one that `check` finds no sense in (a GPU nobody measured) too."""
    text = json.dumps(data, ensure_ascii=False)  # JSON is YAML, and quotes names such as 1e3 and no
    return canonical_names(parse_problem(text).problem, the_catalog())


def built(data: Data) -> Milp:
    """The planning model of a problem."""
    return build(prepare(parsed(data), the_catalog()).instance())


@dataclass(frozen=True)
class Solved:
    """A model with its checked solution."""

    milp: Milp
    solution: Solution

    @property
    def cost(self) -> float:
        """Least cost; infinite if there is no plan."""
        return self.solution.objective if self.solution.values or self.solution.status == "optimal" else math.inf


def solved(data: Data, settings: SolverSettings | None = None, *, relaxed: bool = False) -> Solved:
    """Solve at gap 0 (unless told otherwise) and check the solution against the rows and the ledger."""
    milp = built(data)
    model = linear_model(milp)
    model.relaxed = relaxed
    solution = solve_model(model, settings or SolverSettings(gap=0))
    if solution.status != "infeasible":
        check_solution(milp, solution, relaxed=relaxed)
    return Solved(milp, solution)


def planned(data: Data, *, why: bool = True, checked: bool = True) -> Plan:
    """The plan of a problem at gap 0 by the public path: `check` accepts the file, and the audit finds nothing.

    `why`: an infeasible problem is asked for the reason, which takes many more solves. `checked`: `check` sees sense in
    every line; else a measurement may be one that nothing uses.
    """
    text = json.dumps(data, ensure_ascii=False)
    problem = parse_problem(text, catalog=the_catalog()).problem if checked else parsed(data)
    with nullcontext() if why else patch.object(solving, "diagnose", lambda *_, **__: solving.Diagnosis(())):
        plan = solve(problem, the_catalog(), SolverSettings(gap=0))
    document = json.loads(json.dumps(plan.document()))
    if plan.cost is None:
        assert plan.status == "infeasible"
        assert plan.infeasibility or not why
    else:
        assert plan.status == "optimal"
        report = audit_plan(document, catalog=the_catalog())
        assert report.ok, report.findings[:5]
    return plan


def least_cost(data: Data) -> float:
    """Proven least cost of an audited plan; infinite if infeasible."""
    plan = planned(data, why=False, checked=False)
    return math.inf if plan.cost is None else plan.cost.npv


def check_solution(milp: Milp, solution: Solution, *, relaxed: bool = False) -> None:
    """Every row holds, integers are whole, bounds hold, and the ledger adds up to the objective."""
    values, columns = solution.values, milp.variables.columns
    for row in milp.rows:
        lhs = math.fsum(coefficient * values[column] for column, coefficient in row.terms)
        largest = max((abs(coefficient * values[column]) for column, coefficient in row.terms), default=0.0)
        off = {"<=": lhs - row.rhs, ">=": row.rhs - lhs, "=": abs(lhs - row.rhs)}[row.sense]
        assert off <= RELATIVE * max(abs(row.rhs), largest, row.scale), (row.name, lhs, row.sense, row.rhs)
    for name, upper, integer, value in zip(columns.names, columns.upper, columns.integer, values, strict=True):
        assert value >= 0, name
        assert upper is None or value <= upper * (1 + RELATIVE), name
        assert relaxed or not integer or value == round(value), name
    total = math.fsum(line.npv(values) for line in milp.ledger)
    size = math.fsum(abs(line.npv(values)) for line in milp.ledger)
    assert abs(total - solution.objective) <= 1e-9 * max(size, 1e-9)


def close(cost: float, expected: float) -> bool:
    """Equal to 1e-6 relative (both infinite counts)."""
    return cost == expected or abs(cost - expected) <= RELATIVE * max(abs(cost), abs(expected)) + 1e-9


def at_most(cost: float, limit: float) -> bool:
    """Not above, to 1e-6 relative."""
    return cost <= limit or close(cost, limit)
