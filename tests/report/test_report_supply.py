"""Infeasible pages that say why nothing can be chosen, or nothing in time; figures with their units."""

from typing import Any

import pytest

from catalog import load_catalog
from optimizer.problem.load import parse_problem
from optimizer.report.infeasible import infeasible_sections, shortfall_line
from optimizer.report.sections import markdown
from optimizer.report.words import counted, limit_words, quantity
from optimizer.solve import solve

CATALOG = load_catalog()
SERVICE = """
name: shop
horizon: {months: 12, periods: once}
workloads:
  - {name: chat, kind: service, model: llama-3.1-8b, traffic: {mean_requests_per_s: 5}, tokens: {input: 500, output: 9}}
options:
  OPTIONS
"""
QUOTED = """
name: shop
horizon: {months: 12, periods: monthly}
workloads:
  - WORKLOAD
gpus: {A: {}}
measurements:
  - MEASUREMENT
options:
  catalog: false
  quotes:
    - {name: own A, gpu: A, purchase: owned, price: 9000 USD, power: 1 kW, lead_time: 2 months,
       electricity: 0.1 USD/kWh}
"""
CHAT = QUOTED.replace("WORKLOAD", "{name: chat, kind: service, traffic: {mean_requests_per_s: 5}}").replace(
    "MEASUREMENT", "{workload: chat, gpu: A, requests_per_s: 10, gpus_per_replica: 1}"
)
BATCH = QUOTED.replace(
    "WORKLOAD", "{name: fill, kind: batch, work: {amount: 10, unit: pages}, deadline: 1 month}"
).replace("MEASUREMENT", "{workload: fill, gpu: A, per_gpu_hour: 10}")
RENTED = "\n    - {name: rent A, gpu: A, purchase: on-demand, price: 1 USD/h, max_nodes: 0}"


def infeasible(text: str) -> dict[str, Any]:
    plan = solve(parse_problem(text, "shop", catalog=CATALOG).problem, CATALOG)
    assert plan.status == "infeasible"
    return plan.document()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            "purchase: [owned]",
            ["purchase option spot is not in options.purchase × ", "add site:"],
        ),
        ('providers: {deny: ["*"]}', ["provider is in options.providers.deny × ", "widen options.providers"]),
        ('regions: ["nowhere*"]', ["region is not in options.regions × ", "patterns such as"]),
        ("price_age_limit: 0 days", ["is past price_age_limit × ", "a longer options.price_age_limit"]),
    ],
)
def test_offers_that_the_problem_keeps_out_are_counted_by_reason(options: str, words: list[str]) -> None:
    """With nothing to choose from, the page says so, why, how many for each reason, and what would help."""
    document = infeasible(SERVICE.replace("OPTIONS", options))
    page = markdown(infeasible_sections(document))
    for part in ("There is no offer to choose from.", *words):
        assert part in page, page
    assert "cannot run on any GPU" not in page
    assert "No change of a single limit" not in page
    assert shortfall_line(document).startswith("infeasible: no offer to choose from")
    left_out = document["left_out"]
    assert f"{counted(len(left_out), 'offer')} left out" in page or not left_out


@pytest.mark.parametrize(
    ("text", "month"), [(CHAT, "demand of chat is there at month 0"), (BATCH, "demand of fill is there at month 1")]
)
def test_hardware_that_comes_too_late_is_named(text: str, month: str) -> None:
    """The first delivery and the month of the demand, for services and for jobs with a deadline."""
    page = markdown(infeasible_sections(infeasible(text)))
    assert "Hardware arrives at month 2 at the earliest (own A)" in page
    assert month in page


def test_late_hardware_beside_a_stock_that_is_short() -> None:
    """Offers in time whose stock is limited are counted; deliveries in time are no cause."""
    assert "; only 1 offer of limited stock in time" in markdown(infeasible_sections(infeasible(CHAT + RENTED[1:])))
    prompt = CHAT.replace("lead_time: 2 months", "max_nodes: 0")
    assert "arrives" not in markdown(infeasible_sections(infeasible(prompt)))


def test_figures_agree_with_their_units() -> None:
    """One node, two nodes; the GPU type is not followed by GPUs twice; huge figures are powers."""
    assert [quantity(v, "nodes") for v in (1, 2, 0.5)] == ["1 node", "2 nodes", "0.5 nodes"]
    assert [quantity(1, u) for u in ("months", "requests/s", "GPU-hours", "USD", "")] == [
        "1 month",
        "1 request/s",
        "1 GPU-hour",
        "1 USD",
        "1",
    ]
    assert [counted(n, "query") for n in (1, 2)] == ["1 query", "2 queries"]
    assert quantity(20132659305676797902848.0, "GB") == "2.013e+22 GB"
    assert limit_words("supply_limit", ["H100 GPUs"], "GPUs") == "GPUs of H100 (limits.gpus)"


def test_weights_beyond_measure_are_a_power() -> None:
    """A rejection of a model of absurd size is readable."""
    sizes = "layers: 80, hidden: 8192, heads: 64, kv_heads: 8, head_dim: 128, ffn: 28672, vocabulary: 128256"
    huge = SERVICE.replace("llama-3.1-8b", f"{{architecture: {{{sizes}, parameters: 1e20}}}}")
    problem = parse_problem(huge.replace("OPTIONS", "gpus: [H100-80GB-SXM]"), "shop", catalog=CATALOG).problem
    reasons = [r["reason"] for r in solve(problem, CATALOG).rejections if r["resource"] == "memory"]
    assert reasons
    assert all("e+" in reason and len(reason) < 200 for reason in reasons)
