"""Names that may be asked for: the words of the tables, figures without a plan, GPU types that are not considered."""

import json
from typing import Any

import pytest

from catalog import load_catalog
from optimizer.explain.explanation import explain
from optimizer.problem.load import parse_problem
from optimizer.solve import solve
from tests.report.report_cases import STOCK, TINY

CATALOG = load_catalog()


def document_of(text: str) -> dict[str, Any]:
    plan = solve(parse_problem(text, "named", catalog=CATALOG).problem, CATALOG)
    return dict(json.loads(json.dumps(plan.document())))


TINY_PLAN, NO_PLAN = document_of(TINY), document_of(STOCK)


@pytest.mark.parametrize(
    ("asked", "label"),
    [
        ("usage fee", "usage fee"),
        ("Usage Fee", "usage fee"),
        ("usage_fee", "usage fee"),
        ("why usage-fee?", "usage fee"),
        ("salvage value", "salvage value"),
        ("holding fee", "holding fee"),
        ("left out", "left out before solving"),
        ("capex", "capex"),
        ("gpus", "GPUs at most at once"),
    ],
)
def test_the_words_of_the_tables_are_names(asked: str, label: str) -> None:
    """With spaces, underscores or capitals; a term that the plan does not have is 0, not unknown."""
    answer = explain(TINY_PLAN, asked).answer
    assert answer[0].label == label
    if label == "usage fee":
        lines = [line["npv"] for line in TINY_PLAN["cost_lines"] if line["term"] == "usage_fee"]
        assert answer[0].value == pytest.approx(sum(lines))
    if label == "GPUs at most at once":
        assert {node.label: node.value for node in answer[0].children} == TINY_PLAN["gpus"]


@pytest.mark.parametrize("asked", ["capex", "cost.npv", "cost", "gap", "salvage value", "energy", "gpus", "use"])
def test_figures_of_a_plan_that_is_not_there(asked: str) -> None:
    """Without a plan there is no figure: the answer says so and why."""
    answer = explain(NO_PLAN, asked).answer
    assert answer[0].value == "none: there is no plan (status infeasible)"
    assert any("short by" in node.label for node in answer[1:])


def test_a_workload_may_bear_the_name_of_a_term() -> None:
    """What the buyer named goes before terms that the plan does not have."""
    named = document_of(TINY.replace("chat", "hosting"))
    assert explain(named, "hosting").answer[0].label in ("demand of hosting", "hosting")
    assert explain(document_of(TINY.replace("chat", "upfront_fee")), "upfront_fee").answer[0].label.startswith("demand")


def test_a_gpu_type_without_offers_has_no_lines_of_nothing() -> None:
    """Of a GPU type that nobody considered there is one sentence, not counts of 0."""
    found = explain(TINY_PLAN, "H100-80GB-SXM", gpu_name=CATALOG.gpu_candidates)
    assert found.answer[0].label == "why not H100-80GB-SXM"
    assert "0 offers" not in json.dumps(found.document())
