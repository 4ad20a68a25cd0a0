"""Explaining a plan: sums and sources of costs, quantities down to estimates, why not a GPU, errors."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from catalog.load import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.explain.explanation import Explanation, explain
from optimizer.explain.forced import force_with
from optimizer.explain.gpus import Forced
from optimizer.explain.reading import PlanReader
from optimizer.problem.load import parse_problem
from optimizer.report.explain import explanation_csv, explanation_sections
from optimizer.report.sections import markdown
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from optimizer.trace import TraceNode
from tests.audit.plans import BURDENED, document

EXACT = SolverSettings(gap=0.0)
MIXED = """
name: mixed
horizon: {months: 24, periods: yearly}
finance: {discount_rate: 8 %}
site: {electricity: 0.2 USD/kWh, pue: 1.5, hosting: 100 USD/kW/month}
workloads:
  - {name: chat, kind: service, traffic: {mean_requests_per_s: 15}, headroom: 20 %}
  - {name: index, kind: batch, work: {amount: 1000, unit: pages}, start: month 2, deadline: 100 h, gpus: [A, B]}
gpus: {A: {}, B: {}, C: {}}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 10, gpus_per_replica: 1}
  - {workload: chat, gpu: B, requests_per_s: 5, gpus_per_replica: 1}
  - {workload: index, gpu: A, per_gpu_hour: 10}
  - {workload: index, gpu: B, per_gpu_hour: 10}
options:
  catalog: false
  quotes:
    - {name: rent A, gpu: A, purchase: on-demand, price: 2 USD/h, date: 2026-11-01, source: offer 17}
    - {name: own A, gpu: A, purchase: owned, price: 9000 USD, installation: 100 USD, power: 1 kW, maintenance: 4 %/year}
    - {name: rent B, gpu: B, purchase: on-demand, price: 4 USD/h}
    - {name: rent C, gpu: C, purchase: on-demand, price: 1 USD/h}
limits: {capex: 10_000 USD}
"""
MODELS = """
name: large model
horizon: {months: 1, periods: once}
workloads:
  - name: chat
    kind: service
    model: llama-3.1-70b
    weights: fp8
    traffic: {mean_requests_per_s: 2}
    tokens: {input: 500, output: 100}
    latency: {p95_ttft: 2 s, p95_tpot: 100 ms}
    gpus_per_replica: [1, 2]
options:
  gpus: [H100-80GB-SXM, A100-80GB-SXM, L4]
  purchase: [on-demand]
  quotes:
    - {name: small, gpu: L4, purchase: on-demand, price: 0.1 USD/h}
"""


def planned(text: str) -> dict[str, Any]:
    plan = solve(parse_problem(text, catalog=load_catalog()).problem, load_catalog(), EXACT)
    document: dict[str, Any] = json.loads(json.dumps(plan.document()))
    return document


@pytest.fixture(scope="module")
def mixed() -> dict[str, Any]:
    return planned(MIXED)


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return planned(MODELS)


def walk(node: TraceNode) -> Iterator[TraceNode]:
    yield node
    for child in node.children:
        yield from walk(child)


def everything(found: Explanation) -> list[TraceNode]:
    return [node for tree in found.answer for node in walk(tree)]


def text_of(found: Explanation) -> str:
    return markdown(explanation_sections(found.problem, found.answer, depth=found.depth, ask_next=found.ask_next))


# --- costs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cost.npv", "cost.capex", "cost.opex", "cost.salvage"])
def test_the_tree_of_a_total_adds_up(mixed: dict[str, Any], name: str) -> None:
    """A total equals the plan's figure, and every node with children in money is their sum."""
    (total,) = explain(mixed, name).answer
    assert total.value == pytest.approx(mixed["cost"][name.removeprefix("cost.")], rel=1e-9)
    sign = -1.0 if name == "cost.salvage" else 1.0
    assert math.fsum(float(child.value or 0) for child in total.children) == pytest.approx(sign * float(total.value))
    for node in walk(total):
        if node is not total and node.children:
            assert math.fsum(float(child.value or 0) for child in node.children) == pytest.approx(node.value)


def test_every_cost_line_is_traced_to_its_source(mixed: dict[str, Any]) -> None:
    """Leaves are the plan's cost lines, one each: quantity × unit price × discount factor, with the quote's source."""
    (total,) = explain(mixed, "cost").answer
    leaves = [node for node in walk(total) if not node.children]
    assert len(leaves) == len(mixed["cost_lines"])
    for leaf in leaves:
        given = dict(leaf.inputs)
        assert given["quantity"] * given["unit price"] * given["discount factor"] == pytest.approx(leaf.value)
        assert leaf.source
    assert any("offer 17" in leaf.source for leaf in leaves)


def test_prices_of_the_site_are_named_beside_the_node(mixed: dict[str, Any]) -> None:
    """Energy is priced by the site, not by the offer: the source says both."""
    (energy,) = explain(mixed, "energy").answer
    assert all("problem file (site" in option.source for option in energy.children)


def test_bound_and_gap_say_what_they_are(mixed: dict[str, Any]) -> None:
    """The proof is explained by its own figures."""
    (gap,) = explain(mixed, "cost.gap").answer
    assert dict(gap.inputs)["npv"] == mixed["cost"]["npv"]
    assert "no plan" in explain(mixed, "bound").answer[0].formula


# --- quantities -------------------------------------------------------------------------------------------------------


def test_a_workload_leads_to_its_demand_rows_and_estimates(models: dict[str, Any]) -> None:
    """Peak demand, what carries it, and the estimate's steps down to the model's row of the catalog."""
    found = everything(explain(models, "chat"))
    peak = next(node for node in found if node.label.startswith("peak of"))
    assert peak.value == pytest.approx(2.0)
    assert any("models.csv" in node.source for node in found)
    assert any(node.label.startswith("rate of one replica") for node in found)


def test_a_budget_that_binds_is_in_words(mixed: dict[str, Any]) -> None:
    """One node of 9,100 is bought within 10,000; what binds is said with its meaning, rows of unused offers are not."""
    labels = {node.label: node.formula for node in everything(explain(mixed, "bindings"))}
    assert any("pool_capacity" in label and "own A" in label for label in labels)
    assert not any("rent C" in label or "rent B" in label for label in labels)
    assert all("(" in formula for label, formula in labels.items() if ":" in label)


def test_use_of_owned_nodes_counts_what_runs_on_them(mixed: dict[str, Any]) -> None:
    """18 requests/s on A: the owned node is full or nearly so, its use is a share between 0 and 1."""
    plan = PlanReader(mixed)
    for key, there in plan.gpus_there.items():
        assert plan.gpus_busy.get(key, 0.0) <= there + 1e-6
        assert plan.gpus_occupied.get(key, 0.0) <= there + 1e-6
    paid = math.fsum(there * plan.hours(key[1], key[2]) for key, there in plan.gpus_there.items() if key[0] == "own A")
    assert paid == pytest.approx(24 * 730)


def test_an_offer_shows_terms_costs_and_what_it_does(mixed: dict[str, Any]) -> None:
    """An owned option: its price, the order, its cost lines; one not used says so."""
    text = text_of(explain(mixed, "own a"))
    assert "owned, 9,000.00 USD per node" in text
    assert "order in month 0" in text
    assert "not used" in text_of(explain(mixed, "rent C"))


def test_assumptions_are_listed_by_kind(mixed: dict[str, Any]) -> None:
    """Every assumption of the plan file is there."""
    (tree,) = explain(mixed, "assumptions").answer
    assert sum(len(kind.children) for kind in tree.children) == len(mixed["assumptions"])


# --- GPUs -------------------------------------------------------------------------------------------------------------


def test_a_gpu_in_the_plan_says_what_it_does(mixed: dict[str, Any]) -> None:
    """A carries everything: all of the cost, with what it serves."""
    found = explain(mixed, "why A?")
    assert "100 % of the plan's cost" in text_of(found)
    assert any(node.label.startswith("chat on") for node in everything(found))


def test_a_dearer_gpu_is_priced_by_solving_again(mixed: dict[str, Any]) -> None:
    """B alone: 4 nodes × 24 months × 4 USD/h and 100 h of the batch at 4 USD/h; the difference is in the answer."""
    found = explain(mixed, "why not B", force=force_with(mixed, load_catalog(), EXACT))
    verdict = found.answer[0]
    given = dict(verdict.inputs)
    assert given["npv with it"] > given["npv of the plan"]
    assert given["npv of the plan"] == mixed["cost"]["npv"]
    assert f"{given['npv with it'] - given['npv of the plan']:,.0f} USD" in str(verdict.value)
    assert str(verdict.value).endswith("dearer")
    assert "chat, index restricted to B" in verdict.formula
    undiscounted = 4 * 24 * 730 * 4 + 100 * 4
    assert 0.85 * undiscounted < given["npv with it"] < undiscounted


def test_forcing_only_restricts_what_the_gpu_can_run(mixed: dict[str, Any]) -> None:
    """The hook is told the workloads with an estimate on the GPU, and its result is passed on in words."""
    asked: list[tuple[str, list[str]]] = []

    def force(gpu: str, workloads: list[str]) -> Forced:
        asked.append((gpu, workloads))
        return Forced("infeasible", short="stock of rent B falls short by 2 nodes")

    text = text_of(explain(mixed, "gpu:B", force=force))
    assert asked == [("B", ["chat", "index"])]
    assert "stock of rent B falls short" in text


def test_without_solving_again_only_the_fact_is_stated(mixed: dict[str, Any]) -> None:
    """`--no-resolve`: it could run, at no stated price."""
    verdict = explain(mixed, "B").answer[0]
    assert "--no-resolve" in str(verdict.value)
    assert verdict.inputs == ()


def test_a_gpu_without_any_rate_is_no_way_to_run(mixed: dict[str, Any]) -> None:
    """C has offers, but no workload can run on it."""
    assert "no workload of this problem can run on it" in text_of(explain(mixed, "why not C"))


def test_a_rejected_gpu_shows_what_was_required_and_there(models: dict[str, Any]) -> None:
    """70 GB of weights do not fit one L4: the rejection with both figures, in their resource."""
    found = explain(models, "why not L4")
    rejected = [node for node in everything(found) if node.formula.startswith("memory")]
    assert rejected
    given = dict(rejected[0].inputs)
    assert given["required"] > given["there"]
    assert "chat: rejected" in text_of(found)


def test_dominated_offers_are_grouped_with_their_reason(models: dict[str, Any]) -> None:
    """Dearer offers of the same node were left out before solving: counted under one reason."""
    (tree,) = explain(models, "left_out").answer
    reasons = [child.label for child in tree.children]
    assert "same node, not cheaper than another" in reasons
    assert len(reasons) == len(set(reasons))
    some = next(entry for entry in models["left_out"] if "not cheaper than" in entry["reason"])
    assert some["reason"] == explain(models, some["option"]).answer[0].formula


def test_a_gpu_that_the_problem_does_not_list_says_where_to_add_it(models: dict[str, Any]) -> None:
    """Names go through the catalog's aliases; a GPU outside options.gpus is no mystery."""
    found = explain(models, "why not L40S", gpu_name=load_catalog().gpu_candidates)
    assert "options.gpus" in str(found.answer[0].value)


# --- no plan, names, forms --------------------------------------------------------------------------------------------


def test_an_infeasible_plan_explains_its_shortfalls() -> None:
    """No plan: every shortfall with what is needed and there is, and the cheapest change."""
    document = planned(MIXED.replace("capex: 10_000 USD", "gpus: {A: 1, B: 1}"))
    assert document["status"] == "infeasible"
    found = everything(explain(document))
    told = [node for node in found if "short by" in node.label or "in conflict" in node.label]
    assert len(told) == len(document["infeasibility"])
    assert {"enough alone, if it gives so much", "so much demand stays unmet if limits stand"} & {
        n.formula for n in told
    }


def test_unknown_names_give_near_ones(mixed: dict[str, Any]) -> None:
    """A slip of the pen is an error with the name that was meant."""
    with pytest.raises(ProblemFileError, match=r'plan.json: error: nothing .* "energi" .*did you mean "energy"'):
        explain(mixed, "energi")
    with pytest.raises(ProblemFileError, match="H200-SXM"):
        explain(mixed, "H200", gpu_name=load_catalog().gpu_candidates)


def test_the_overview_names_what_can_be_asked(mixed: dict[str, Any]) -> None:
    """Without a question: costs, what binds, use, rejections, left-out offers, and questions that have an answer."""
    found = explain(mixed)
    text = text_of(found)
    for part in ("cost (NPV)", "what binds", "use of what is there", "rejected", "left out", "Ask further"):
        assert part in text
    for question in found.ask_next:
        answered = explain(mixed, question)
        assert answered.answer or answered.tables


def test_the_document_is_plain_and_whole(mixed: dict[str, Any]) -> None:
    """JSON holds every node; CSV one line per node."""
    found = explain(mixed, "cost.npv")
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    assert document["answer"][0]["value"] == mixed["cost"]["npv"]
    assert len(explanation_csv(found.answer).splitlines()) == 1 + len(everything(found))


def test_long_lists_are_cut_in_text_only() -> None:
    """Text shows a dozen branches and counts the rest."""
    node = TraceNode("all", children=tuple(TraceNode(f"n{i}", float(i)) for i in range(20)))
    found = replace(Explanation("p", "q", (node,)), depth=2)
    assert "8 more lines" in text_of(found)
    assert "n19" not in text_of(found)


@pytest.mark.parametrize("name", ["npv", "capex", "opex"])
def test_parts_of_a_total_add_up_where_one_kind_counts_in_two(name: str) -> None:
    """A tax is capex on purchases and opex on rent: each total holds its own lines only."""
    plan = document(BURDENED)
    (total,) = explain(plan, name).answer
    assert total.value == pytest.approx(plan["cost"][name])
    for node in walk(total):
        if node.children:
            assert math.fsum(float(child.value or 0) for child in node.children) == pytest.approx(node.value)
