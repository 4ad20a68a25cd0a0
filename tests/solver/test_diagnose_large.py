"""Problems too large for one model that have no plan: a part answers for the whole, and says no less than it needs."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from optimizer.audit import audit_plan
from optimizer.plan import Plan, Shortfall
from optimizer.prepare import prepare
from optimizer.solve import solve
from optimizer.solver.diagnosis.part import Extent, PartResolver, has_parts, part
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    Data,
    at_most,
    classes_service,
    job,
    least_cost,
    on_demand,
    owned,
    parsed,
    problem,
    serves,
    service,
    the_catalog,
    works,
)
from tests.model.strategies import problems

EXTENTS = (Extent(0, jobs=True), Extent(12, jobs=False), Extent(16, jobs=True), Extent(10**6, jobs=True))
EXACT = SolverSettings(gap=0.0)
HOURS = [{"name": f"h{i}", "share_of_hours": 0.25} for i in range(4)]
PROFILE = {"by_slice": {"h0": 0.4, "h1": 0.8, "h2": 1.9, "h3": 0.9}, "growth": "3 %/month"}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems())
def test_what_has_a_plan_has_a_plan_in_every_part(data: Data) -> None:
    """A part of a problem with a plan has one, at no more than its least cost: a part without a plan is a proof."""
    prepared = prepare(parsed(data), the_catalog())
    if not has_parts(prepared.instance()):
        return
    least = least_cost(data)
    for extent in EXTENTS if least < math.inf else ():
        found = PartResolver(EXACT).least_cost(part(prepared, extent))
        assert found is not None, extent
        assert at_most(found.npv, least), (extent, found.npv, least)


BUDGET = problem(
    [service("chat", 40.0, traffic=PROFILE)],
    [owned("own", "A", 4, 50_000.0, lead_time="3 months"), on_demand("od", "A", 4, 20.0, max_nodes=22)],
    [serves("chat", 1.0)],
    periods="quarterly",
    slices=HOURS,
    limits={"capex": 100_000.0},
)
STOCK = problem(
    [classes_service("chat", {"a": 8.0, "b": 4.0}, traffic=PROFILE), service("other", 3.0)],
    [on_demand("od", "A", 4, 20.0, max_nodes=5), on_demand("b", "B", 2, 20.0, max_nodes=1)],
    [serves("chat", 1.0, **{"class": "a"}), serves("chat", 1.0, **{"class": "b"}), serves("other", 1.0, "B")],
    periods="quarterly",
    slices=HOURS,
)
DEADLINE = problem(
    [service("chat", 4.0, traffic=PROFILE), job("train", 4000.0, start="720 h", deadline="100 h", max_gpus=16)],
    [on_demand("od", "A", 4, 20.0, max_nodes=20)],
    [serves("chat", 1.0), works("train", 1.0)],
    periods="quarterly",
    slices=HOURS,
)
PLACES = problem(
    [service("chat", 4.0, traffic=PROFILE, data={"regions": ["eu-*"]})],
    [on_demand("od", "A", 4, 20.0, region="us-1")],
    [serves("chat", 1.0)],
    periods="quarterly",
    slices=HOURS,
)
OPEX = BUDGET | {"limits": {"opex": "90_000/month"}}
CASES = {"budget": BUDGET, "stock": STOCK, "deadline": DEADLINE, "places": PLACES, "opex": OPEX}


def answered(data: Data, **more: Any) -> Plan:
    return solve(parsed(data), the_catalog(), replace(EXACT, time_limit_s=30.0, **more))


def changes(plan: Plan) -> dict[str, Shortfall]:
    return {s.change: s for s in plan.infeasibility if s.kind == "limit" and s.alone}


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def answers(request: pytest.FixtureRequest) -> tuple[Plan, Plan]:
    """The answer of a part of the problem, and that of the whole."""
    data = CASES[request.param]
    extent = Extent(0 if request.param == "deadline" else 20, jobs=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optimizer.solver.diagnosis.large.EXTENTS", (extent,))
        return answered(data, method="decomposed"), answered(data)


def test_a_part_says_no_where_the_whole_does(answers: tuple[Plan, Plan]) -> None:
    """The same verdict, the same single limits that could give, none of them by more than the whole needs."""
    of_part, of_whole = answers
    assert of_part.status == of_whole.status == "infeasible"
    found, exact = changes(of_part), changes(of_whole)
    assert any(s.kind == "limit" for s in of_part.infeasibility)
    assert found.keys() >= exact.keys()
    for key, whole in exact.items():
        assert found[key].short_by <= whole.short_by * (1 + 1e-6), key
        assert found[key].attainable == whole.attainable
        assert found[key].at_least
        assert found[key].npv is None


def test_what_a_part_says_is_told_as_the_least(answers: tuple[Plan, Plan]) -> None:
    """The plan file says that a part was asked, and passes the audit but for having no plan."""
    of_part, _ = answers
    assert any("a part that every plan must meet" in note for note in of_part.notes)
    document = json.loads(json.dumps(of_part.document()))
    audit = audit_plan(document, catalog=the_catalog())
    assert {finding.check for finding in audit.errors} == {"plan"}
    told = next(entry for entry in document["infeasibility"] if entry["at_least"])
    told["npv"] = 1.0
    assert "infeasibility" in {finding.check for finding in audit_plan(document, catalog=the_catalog()).errors}


@pytest.mark.parametrize(("budget", "status"), [(0.5, "infeasible"), (0.999, "no_plan"), (1.5, "feasible")])
def test_a_budget_of_everything_is_held_against_plan_and_bound(budget: float, status: str) -> None:
    """Below the bound there is no plan, and the bound is the least budget; between bound and plan nothing is proven."""
    data = BUDGET | {"limits": {}}
    base = answered(data, method="decomposed")
    assert base.cost is not None
    least = base.cost.bound if status == "infeasible" else base.cost.npv
    limited = data | {"limits": {"npv": budget * least}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optimizer.solver.decomposition.run.LARGEST_DIRECT", 0)
        patch.setattr("optimizer.solver.diagnosis.large.EXTENTS", ())
        plan = answered(limited)
    assert plan.status in ({"feasible", "optimal"} if status == "feasible" else {status})
    if status == "infeasible":
        [short] = plan.infeasibility
        assert short.change == "limits.npv"
        assert at_most(short.required, answered(data).cost.npv)  # type: ignore[union-attr]
    if status == "feasible":
        assert audit_plan(json.loads(json.dumps(plan.document())), catalog=the_catalog()).findings == ()
        assert any(row.family == "budget_npv" for row in plan.constraints)
