"""What limits cost and at which price an offer enters: the proven figures, and hand-worked ones."""

import csv
import io
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest

from optimizer.explain.entry import at_factor, entry
from optimizer.explain.explanation import Explanation, explain
from optimizer.explain.limit_costs import LimitCosts, limit_costs
from optimizer.explain.resolves import Resolves
from optimizer.explain.tables import bought_for, resource_needs
from optimizer.report.explain import explanation_sections, table_csv
from optimizer.report.sections import markdown
from optimizer.solve import solve
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
    the_catalog,
    works,
)
from tests.oracle.test_oracle import CASES, LIMITS, WHOLE_GPUS
from tests.oracle_to_problem import problem_from_facts

EXACT = SolverSettings(gap=0)


def resolves(data: Data) -> Resolves:
    document: dict[str, Any] = json.loads(json.dumps(solve(parsed(data), the_catalog(), EXACT).document()))
    return Resolves(document, EXACT, the_catalog())


def costs(data: Data) -> LimitCosts:
    here = resolves(data)
    found = limit_costs(here.prepared, here.resolver())
    assert found is not None
    return found


def key_of(limit: str) -> str:
    """The key in the problem file of a limit as the answers name it."""
    kind, _, name = limit.partition(":")
    keys = {
        "max_nodes": f"options.quotes.{name}.max_nodes",
        "spare_nodes": "workloads.*.redundancy",
        "single_gpu_type": f"workloads.{name}.spread",
        "min_gpus": f"workloads.{name}.min_gpus",
        "capex_total_max": "limits.capex",
        "interruptible_share_of_rate_max": "limits.spot_share.*",
        "provider_max_nodes": "limits.providers.*",
    }
    return keys[kind]


@pytest.mark.parametrize("name", sorted({name for name, _ in LIMITS}))
def test_every_binding_limit_is_worth_what_was_proven(name: str) -> None:
    """The least cost without each limit is the proven one, read from the plan file; 36 by whole GPUs for jobs."""
    found = costs(problem_from_facts(CASES[name]["facts"], name))
    assert found.here == pytest.approx(CASES[name]["answer"]["npv_cost"], rel=1e-6)
    without = {cost.limit.key: cost.npv_without for cost in found.costly}
    proven = {
        key_of(limit): WHOLE_GPUS.get((name, limit), value)
        for limit, value in CASES[name]["answer"]["npv_cost_without"].items()
    }
    for key, value in proven.items():
        (cost,) = [cost for found_key, cost in without.items() if fnmatchcase(found_key, key)]
        assert cost == pytest.approx(value, rel=1e-6)


STOCK = problem(
    [service(rate=5.0)],
    [on_demand("a", max_nodes=3), on_demand("b", gpu="B", price=3.0)],
    [serves(), serves(gpu="B")],
    months=1,
)
"""5 nodes of 1 per hour, but 3: two of b at 3 per hour; one more of a saves 2 × 730, without the limit 4 × 730."""


def test_one_unit_more_and_none_at_all() -> None:
    """One node more of the cheap offer replaces a dear one; without the limit both are replaced."""
    (cost,) = costs(STOCK).costly
    assert (cost.limit.key, cost.step) == ("options.quotes.a.max_nodes", 1.0)
    assert (cost.saved_by_more, cost.saved_without) == pytest.approx((2 * 730, 4 * 730))


def test_a_limit_that_saves_nothing_by_one_unit_may_still_cost() -> None:
    """Nodes of b hold 4: one node more of a replaces none of them, four more do."""
    data = problem(
        [service(rate=6.0)],
        [on_demand("a", max_nodes=2), on_demand("b", gpu="B", price=9.0)],
        [serves(), serves(rate=4.0, gpu="B")],
        months=1,
    )
    (cost,) = costs(data).costly
    assert cost.saved_by_more == 0.0
    assert cost.saved_without == pytest.approx((2 + 9 - 6) * 730)


# --- entry prices -----------------------------------------------------------------------------------------------------

TRIPLE = problem(
    [service(rate=2.5)],
    [on_demand("a"), on_demand("b", gpu="B", price=3.5)],
    [serves(), serves(rate=4.0, gpu="B")],
    months=1,
)
"""3 nodes of a at 1 per hour, or one of b: b enters below 3 per hour, and a stays up to 3.5 ÷ 3."""


def factor(data: Data, names: Sequence[str]) -> float | None:
    here = resolves(data)
    found = entry(here.prepared, names, here.resolver())
    assert found is not None
    return found.factor


def test_the_price_at_which_an_offer_enters_is_where_it_breaks_even() -> None:
    """b enters at 3 ÷ 3.5 of its price; forced, it costs 0.5 per hour more; a stays up to 3.5 ÷ 3 of its own."""
    here = resolves(TRIPLE)
    found = entry(here.prepared, ["b"], here.resolver())
    assert found is not None
    assert (found.forced, found.without) == pytest.approx((3.5 * 730, 3 * 730))
    assert found.factor == pytest.approx(3 / 3.5, rel=1e-9)
    assert factor(TRIPLE, ["a"]) == pytest.approx(3.5 / 3, rel=1e-9)


OWN = problem(
    [service(rate=1.0)],
    [on_demand("a"), owned("own", price=20_000.0)],
    [serves()],
    months=12,
)
ONE_JOB = problem(
    [job("train", 800.0, max_gpus=16)],
    [on_demand("a"), on_demand("b", gpu="B", nodes_of=8, price=12.0)],
    [works("train"), works("train", gpu="B")],
    months=1,
)


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (OWN, "own", 8_760 / (20_000 * 0.2)),  # a year at 1 per hour; after a year of five, 80 % is left
        (ONE_JOB, "b", 8 / 12),  # 8 GPUs at 1 per GPU-hour
        (problem([service(rate=1.0)], [on_demand("a"), reserved("r", price=2.0)], [serves()]), "r", 1 / 2),
    ],
)
def test_entry_prices_of_every_way_of_paying(data: Data, name: str, expected: float) -> None:
    """Bought, hired for a job, reserved: each enters where it costs as much as the hours that it replaces."""
    assert factor(data, [name]) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("data", "name"), [(TRIPLE, "b"), (OWN, "own"), (ONE_JOB, "b")])
def test_just_below_the_entry_price_it_is_used_and_just_above_it_is_not(data: Data, name: str) -> None:
    """Re-solved a little below and above the price found, the least cost falls, or stays as without the offer."""
    here = resolves(data)
    found = entry(here.prepared, [name], here.resolver())
    assert found is not None
    assert found.factor is not None
    below, above = (
        here.resolver().least_cost(at_factor(here.prepared, [name], found.factor * (1 + d))) for d in (-1e-4, 1e-4)
    )
    assert below is not None
    assert above is not None
    assert below.npv < found.without * (1 - 1e-6)  # type: ignore[operator]
    assert above.npv == pytest.approx(found.without, rel=1e-9)


def test_a_budget_that_depends_on_the_price_bounds_the_entry_price() -> None:
    """Owning pays up to 43,800, but the budget for purchases is 5,000: it enters there, and not above."""
    assert factor({**OWN, "limits": {"capex": 5_000}}, ["own"]) == pytest.approx(5_000 / 20_000, rel=1e-5)


def test_an_offer_that_helps_at_no_price_has_no_entry_price() -> None:
    """A node that can hold no replica would not be used if it were free."""
    data = problem([service(rate=1.0)], [on_demand("a"), on_demand("b", gpu="B")], [serves()], months=1)
    here = resolves(data)
    found = entry(here.prepared, ["b"], here.resolver())
    assert found is not None
    assert (found.forced, found.factor) == (None, None)


def test_an_offer_without_which_there_is_no_plan_has_no_price_to_leave_at() -> None:
    """The only offer stays at any price."""
    here = resolves(problem([service(rate=1.0)], [on_demand("a")], [serves()], months=1))
    found = entry(here.prepared, ["a"], here.resolver())
    assert found is not None
    assert (found.without, found.factor) == (None, None)


# --- as answers -------------------------------------------------------------------------------------------------------


def asked(data: Data, what: str) -> Explanation:
    here = resolves(data)
    return explain(here.document, what, resolves=here)


def page(found: Explanation) -> str:
    return markdown(explanation_sections(found.problem, found.answer, depth=found.depth, tables=found.tables))


def test_limits_are_answered_with_both_savings_and_their_key() -> None:
    """The page names the limit, what it costs and what one node more saves; the JSON has the figures."""
    found = asked(STOCK, "limits")
    text = page(found)
    assert "1 limit cost something" in text.replace("limits", "limit")
    assert "1 node more saves 1,460.00 USD" in text
    (node,) = found.answer[0].children
    assert dict(node.inputs)["saved by one unit"] == pytest.approx(1460)
    assert node.source == "options.quotes.a.max_nodes"


def test_limits_without_re_solves_say_what_is_missing() -> None:
    """--no-resolve leaves limits without figures, and says so instead of guessing."""
    here = resolves(STOCK)
    (node,) = explain(here.document, "limits").answer
    assert "--no-resolve" in str(node.value)


def test_why_not_an_offer_names_the_difference_and_the_price() -> None:
    """b would cost 365.00 more; below 3.00 per node and hour it is used."""
    text = page(asked(TRIPLE, "why not b"))
    assert "with at least one node of b: 365.00 USD" in text
    assert "price at which b enters: 3.00 USD per node and hour" in text
    assert "14.3 % below its price of 3.50" in text


def test_an_offer_in_the_plan_says_up_to_which_price_it_stays() -> None:
    """a is used up to 3.5 ÷ 3 per hour."""
    assert "price up to which a stays: 1.17 USD per node and hour" in page(asked(TRIPLE, "a")).replace(
        "1.166667", "1.17"
    )


def test_an_offer_that_another_one_beats_is_let_in_to_be_priced() -> None:
    """Two offers of one GPU type, the dearer one left out before solving: it enters where they cost the same."""
    data = problem(
        [service(rate=1.0)],
        [on_demand("cheap", provider="p"), on_demand("dear", price=1.5, provider="q")],
        [serves()],
        months=1,
    )
    document = resolves(data).document
    assert [entry["option"] for entry in document["left_out"]] == ["dear"]
    text = page(asked(data, "why not dear"))
    assert "price at which dear enters: 1.00 USD per node and hour" in text
    assert "price up to which cheap stays: 1.50 USD per node and hour" in page(asked(data, "cheap"))


def test_a_gpu_type_enters_at_a_share_of_all_its_prices() -> None:
    """Two offers of B at 3.5 and 4 per node of 4: at 3 ÷ 3.5 of both prices the first one is worth it."""
    data = problem(
        [service(rate=2.5)],
        [on_demand("one"), on_demand("four", gpu="B", price=3.5), reserved("r", gpu="B", price=4.0, term=1)],
        [serves(), serves(rate=4.0, gpu="B")],
        months=1,
    )
    text = page(asked(data, "why not B"))
    assert "price at which B enters: 85.7 %" in text
    assert "of the prices of its 2 offers" in text


TWO_CLASSES = problem(
    [classes_service("s", {"x": 1.0, "y": 2.0}), job("j", 365.0)],
    [on_demand("a", nodes_of=4, price=4.0)],
    [
        serves("s", 1.0, **{"class": "x"}, gpus_per_replica=1),
        serves("s", 1.0, **{"class": "y"}, gpus_per_replica=1),
        works("j"),
    ],
    months=1,
)
"""3 GPUs of one node for two classes; the job needs half of the fourth."""


def test_use_is_a_table_by_pool_and_slice() -> None:
    """One node of 4 GPUs: 3 for the service, half a GPU on average for the job, 7 ÷ 8 kept, all of it busy."""
    (table,) = asked(TWO_CLASSES, "use").tables
    (row,) = table.document()["rows"]
    figures = ("nodes at most", "GPUs there", "GPUs of services", "GPUs of jobs", "share kept", "share busy")
    assert [row[name] for name in figures] == pytest.approx([1, 4, 3, 0.5, 0.875, 0.875])
    assert (row["pool"], row["slice"]) == ("a", "all")
    assert "87.5 %" in page(asked(TWO_CLASSES, "use"))


def test_bottlenecks_are_named_per_class_and_together() -> None:
    """Measured rates know replica time only: 1 and 2 replicas, 3 together, and 3 are there."""
    (table,) = asked(TWO_CLASSES, "bottlenecks").tables
    rows = {row["class"]: row for row in table.document()["rows"]}
    assert {name: row["by replica time"] for name, row in rows.items()} == pytest.approx(
        {"x": 1, "y": 2, "together": 3}
    )
    assert rows["together"]["replicas"] == 3
    assert rows["x"]["bought for"] == "replica time (measured)"


def test_the_bottleneck_of_an_estimate_is_the_resource_that_asks_for_most() -> None:
    """By hand: 100 FLOP/s and 10 B/s ceilings, 20 FLOP and 5 B a request, 40 B in memory for 2 s of 100 B free."""
    estimate = {
        "measured": False,
        "utilisation_cap": 0.5,
        "effective_flop_per_s": 100.0,
        "effective_bytes_per_s": 10.0,
        "free_memory_bytes": 100.0,
    }
    request = {
        "replica_seconds_per_request": 0.3,
        "flop_per_request": 20.0,
        "moved_bytes_per_request": 5.0,
        "kv_bytes_per_sequence": 40.0,
        "residence_s": 2.0,
        "compute_seconds": 0.1,
        "memory_bandwidth_seconds": 0.2,
        "interconnect_seconds": 0.0,
        "overhead_seconds": 0.0,
    }
    needs = resource_needs(estimate, request)
    assert needs == pytest.approx({"replica_time": 0.6, "compute": 0.2, "memory_bandwidth": 0.5, "memory": 0.8})
    assert bought_for(needs, request) == "memory"
    assert bought_for({**needs, "memory": 0.1}, request) == "replica time, its pace set by memory bandwidth"


def test_a_table_asked_for_as_csv_has_all_its_figures() -> None:
    """One line per row under the table's headings, figures in full."""
    (table,) = asked(TWO_CLASSES, "use").tables
    lines = list(csv.DictReader(io.StringIO(table_csv(table))))
    assert float(lines[0]["share busy"]) == 0.875
