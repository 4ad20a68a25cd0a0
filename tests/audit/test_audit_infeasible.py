"""Plans that say "no": every figure that follows from the problem is derived again, and a changed one is found."""

import copy
import json
from typing import Any

import pytest

from optimizer.audit import audit_plan
from optimizer.audit.document import Answer
from optimizer.audit.infeasibility import limit_value
from optimizer.prepare import prepare
from optimizer.solve import solve
from optimizer.solver.diagnosis.limits import list_limits
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    Data,
    classes_service,
    job,
    on_demand,
    owned,
    parsed,
    problem,
    reserved,
    serves,
    service,
    spot,
    the_catalog,
    works,
)

JOB = problem(
    [job("train", 1000.0, start="24 h", deadline="100 h", max_gpus=8, spread="one-gpu-type")],
    [on_demand("a", max_nodes=12), on_demand("b", gpu="B", max_nodes=2)],
    [works("train"), works("train", gpu="B")],
    months=1,
)
CLASSES = problem(
    [
        classes_service("chat", {"x": 2.0, "y": 1.0}, traffic={"growth": "5 %/month"}, headroom=0.1),
        service("other", 1.0),
    ],
    [owned("own", lead_time="3 months", power="2 kW"), on_demand("a", max_nodes=2), spot(max_nodes=1)],
    [serves("chat", **{"class": "x"}), serves("chat", **{"class": "y"}), serves("other")],
    months=9,
    periods="quarterly",
    limits={"capex": 2000.0, "spot_share": 0.2, "providers": {"a": {"max_nodes": 2}}, "stock": {"a": 2}},
    site={"power_limit_it": "3 kW"},
)
DAILY = problem(
    [job("night", 3000.0, window={"daily": "22:00-06:00"}, deadline="30 days", min_gpus=2)],
    [on_demand("a", max_nodes=10, provider="p")],
    [works("night")],
    months=1,
    limits={"npv": 500.0, "gpus": {"A": 10}},
)
SITE = problem(
    [service(rate=4.0, redundancy=1)],
    [
        owned("own", price=1000.0, power="2 kW", rack_units=4, provider="maker"),
        reserved("r", gpu="B", upfront=500, provider="other", max_nodes=1),
    ],
    [serves(), serves(gpu="B")],
    months=12,
    periods="quarterly",
    limits={"capex_by_period": [3000.0, None, None, None], "capex_by_year": [3500.0], "vendors": {"max": 1}},
    site={"power_limit_facility": "9 kW", "rack_units_limit": 10.0, "pue": 1.5},
)
FIGURES = ("required", "attainable", "short_by")


def answered(data: Data) -> dict[str, Any]:
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    assert plan.status == "infeasible"
    document: dict[str, Any] = json.loads(json.dumps(plan.document()))
    return document


def failed(document: dict[str, Any]) -> set[str]:
    return {finding.check for finding in audit_plan(document, catalog=the_catalog()).errors}


@pytest.fixture(scope="module", params=[JOB, CLASSES, DAILY, SITE], ids=["job", "classes", "daily", "site"])
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    return answered(request.param)


def test_an_honest_no_has_no_finding_but_that_there_is_no_plan(document: dict[str, Any]) -> None:
    """Limits and demands are what the problem says, sums hold, and the cheapest fix is the cheapest."""
    assert failed(document) == {"plan"}
    assert {one["kind"] for one in document["infeasibility"]} >= {"demand"}


def test_every_figure_changed_is_found(document: dict[str, Any]) -> None:
    """Required, there, short by: each of every shortfall changed alone, and all three scaled together, is found."""
    for number, entry in enumerate(document["infeasibility"]):
        for key in FIGURES:
            changed = copy.deepcopy(document)
            changed["infeasibility"][number][key] = entry[key] * 1.01 + 1.0
            assert "infeasibility" in failed(changed), (entry, key)
        if entry["unit"] != "choice":
            changed = copy.deepcopy(document)
            for key in FIGURES:
                changed["infeasibility"][number][key] = entry[key] * 1.01
            assert "infeasibility" in failed(changed), entry


def test_a_cheapest_fix_that_is_not_the_cheapest_is_found(document: dict[str, Any]) -> None:
    """Its figures are those of the change with the least cost."""
    for number, entry in enumerate(document["infeasibility"]):
        for key in ("from", "to", "by", "npv") if entry["cheapest_fix"] else ():
            changed = copy.deepcopy(document)
            changed["infeasibility"][number]["cheapest_fix"][key] += 1.0
            assert "infeasibility" in failed(changed)


def test_a_limit_that_the_problem_does_not_have_is_found() -> None:
    """A change of a key that is not there is no fix."""
    document = answered(JOB)
    document["infeasibility"][0]["change"] = "limits.opex"
    assert "infeasibility" in failed(document)


def test_every_limit_of_a_problem_is_looked_up_by_the_key_that_the_diagnosis_gives_it() -> None:
    """All limits of all kinds here: the audit's value is the diagnosis's, so that no key goes unchecked."""
    for data in (JOB, CLASSES, DAILY, SITE):
        prepared = prepare(parsed(data), the_catalog())
        answer = Answer.model_validate_json(json.dumps(answered(data)))
        for limit in list_limits(prepared):
            if limit.unit != "choice":
                assert limit_value(answer, prepared.problem, limit.key) == limit.value, limit.key
