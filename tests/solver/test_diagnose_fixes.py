"""Least changes of single limits, conflicts and cuts: worked by hand, and held against re-solves of edited files."""

import copy
import math
from typing import Any

import pytest

from optimizer.plan import Plan, Shortfall
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    Data,
    job,
    least_cost,
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
from tests.model.builders import spot as spot_quote

EXACT = SolverSettings(gap=0)


def diagnosed(data: Data) -> Plan:
    plan = solve(parsed(data), the_catalog(), EXACT)
    assert plan.status == "infeasible"
    return plan


def of_kind(data: Data, kind: str) -> dict[str, Shortfall]:
    return {one.change: one for one in diagnosed(data).infeasibility if one.kind == kind}


def edited(data: Data, path: str, value: Any) -> Data:
    """The problem with one key changed; list entries by name."""
    out = copy.deepcopy(data)
    where: Any = out
    *parts, last = path.split("/")
    for part in parts:
        where = next(one for one in where if one["name"] == part) if isinstance(where, list) else where[part]
    where[last] = value
    return out


TRAIN = job("train", 1000.0, deadline="100 h", spread="one-gpu-type")
SLOW = problem([TRAIN], [on_demand("a", max_nodes=8)], [works("train")], months=1)
"""8 GPUs for 100 h do 800 of 1000 units: 125 h are needed, or 10 nodes; 800 units would do."""


def test_an_extended_deadline_is_found_to_the_hour() -> None:
    """1000 units on 8 GPUs of 1 unit per hour take 125 h; 2 nodes more would do as well; all cost 1000."""
    fixes = of_kind(SLOW, "limit")
    assert {k: (round(f.required, 6), round(f.npv or 0, 6)) for k, f in fixes.items()} == {
        "workloads.train.deadline": (125.0, 1000.0),
        "options.quotes.a.max_nodes": (10.0, 1000.0),
    }
    (cut,) = of_kind(SLOW, "cut").values()
    assert (cut.required, cut.attainable, cut.npv) == pytest.approx((1000, 800, 800))


@pytest.mark.parametrize(
    ("data", "path", "key", "enough", "short"),
    [
        (SLOW, "workloads/train/deadline", "workloads.train.deadline", "125 h", "124.99 h"),
        (SLOW, "options/quotes/a/max_nodes", "options.quotes.a.max_nodes", 10, 9),
    ],
)
def test_the_change_found_is_enough_in_the_file_and_no_less_is(
    data: Data, path: str, key: str, enough: Any, short: Any
) -> None:
    """The problem file with the change found has the cost stated, and with a hair less it has no plan."""
    assert least_cost(edited(data, path, enough)) == pytest.approx(of_kind(data, "limit")[key].npv)
    assert least_cost(edited(data, path, short)) == math.inf


def test_a_job_starts_earlier_where_only_the_end_is_fixed() -> None:
    """Released at 50 h and due at 150 h: 25 h earlier is enough, and the deadline stays on its day."""
    data = problem([TRAIN | {"start": "50 h"}], [on_demand("a", max_nodes=8)], [works("train")], months=1)
    fixes = of_kind(data, "limit")
    assert fixes["workloads.train.start"].required == pytest.approx(25.0)
    assert fixes["workloads.train.deadline"].required == pytest.approx(125.0)
    moved = edited(edited(data, "workloads/train/start", "25 h"), "workloads/train/deadline", "125 h")
    assert least_cost(moved) == pytest.approx(fixes["workloads.train.start"].npv)


def test_a_daily_window_opens_by_whole_hours() -> None:
    """8 h a day for 30 days on 10 GPUs do 2,400 of 3,000 units: 10 h a day would do, before or after."""
    night = job("night", 3000.0, window={"daily": "22:00-06:00"}, deadline="30 days", spread="any")
    fixes = of_kind(problem([night], [on_demand("a", max_nodes=10)], [works("night")], months=1), "limit")
    window = fixes["workloads.night.window.daily"]
    assert (window.attainable, window.required, window.unit) == (8.0, 10.0, "hours/day")
    assert fixes["options.quotes.a.max_nodes"].required == 13


def test_fewer_gpus_at_once_are_named_where_the_least_is_the_cause() -> None:
    """At least 16 GPUs at once, 10 there: a job content with 10 fits."""
    data = problem([job("big", 100.0, min_gpus=16)], [on_demand("a", max_nodes=10)], [works("big")], months=1)
    fixes = of_kind(data, "limit")
    assert fixes["workloads.big.min_gpus"].required == 10
    assert fixes["options.quotes.a.max_nodes"].required == 16
    assert least_cost(edited(data, "workloads/big/min_gpus", 10)) == pytest.approx(100.0)
    assert least_cost(edited(data, "workloads/big/min_gpus", 11)) == math.inf


def test_budgets_are_found_from_one_elastic_solve() -> None:
    """5 nodes at 100 upfront each: a capex budget of 500; with 1 node-hour price the running cost is 5 × 730."""
    data = problem([service(rate=5.0)], [reserved("res", upfront=100, term=12)], [serves()], limits={"capex": 420})
    assert of_kind(data, "limit")["limits.capex"].required == pytest.approx(500)
    rented = problem([service(rate=5.0)], [on_demand("a")], [serves()], limits={"opex": "3000 USD/month"})
    fix = of_kind(rented, "limit")["limits.opex"]
    assert (fix.required, fix.short_by, fix.unit) == pytest.approx((3650, 650, "USD/month"))  # type: ignore[comparison-overlap]


def test_power_and_spot_share_give_by_their_own_units() -> None:
    """3 owned nodes of 2 kW need 6 kW; where only spot is there, all of the rate must be allowed on it."""
    data = problem([service(rate=3.0)], [owned("own", power="2 kW")], [serves()], site={"power_limit_it": "5 kW"})
    assert of_kind(data, "limit")["site.power_limit_it"].required == pytest.approx(6.0)
    shared = problem(
        [service(rate=4.0)], [spot_quote(), on_demand("a", max_nodes=1)], [serves()], limits={"spot_share": 0.5}
    )
    fixes = of_kind(shared, "limit")
    assert fixes["limits.spot_share"].required == pytest.approx(0.75)
    assert fixes["options.quotes.a.max_nodes"].required == 2


def test_a_delivery_that_is_too_late_is_named_with_the_month_that_is_early_enough() -> None:
    """The service is there from the first hour, the only nodes arrive in month 2: at once is what is needed."""
    data = problem([service(rate=1.0)], [owned("own", lead_time="2 months")], [serves()], months=6, periods="monthly")
    fix = of_kind(data, "limit")["options.quotes.own.lead_time"]
    assert (fix.attainable, fix.required) == pytest.approx((2.0, 0.0))


def test_a_job_confined_to_one_pool_may_be_let_out() -> None:
    """4 GPUs of each kind in one month do 2,920 units: 4,000 units need both kinds together."""
    data = problem(
        [job("train", 4000.0)],
        [on_demand("a", max_nodes=4), on_demand("b", gpu="B", max_nodes=4)],
        [works("train"), works("train", gpu="B")],
        months=1,
    )
    fixes = of_kind(data, "limit")
    assert fixes["workloads.train.spread"].unit == "choice"
    assert fixes["workloads.train.spread"].npv == pytest.approx(4000.0)
    assert least_cost(edited(data, "workloads/train/spread", "any")) == pytest.approx(4000.0)


def test_data_that_may_not_leave_a_region_are_a_limit_too() -> None:
    """The only nodes stand in us-1 and the data must stay in eu-*: lifting that is the one change that helps."""
    data = problem(
        [service(rate=1.0, data={"regions": ["eu-*"]})], [on_demand("a", region="us-1")], [serves()], months=1
    )
    plan = diagnosed(data)
    assert [one.change for one in plan.infeasibility if one.kind == "limit"] == ["workloads.chat.data.regions"]
    assert plan.infeasibility[0].npv == pytest.approx(730.0)


def test_what_the_problem_leaves_out_may_be_the_cause() -> None:
    """The only offer is on demand, and the file allows spot only: options.purchase is named, with the cost without."""
    data = problem([service(rate=1.0)], [on_demand("a")], [serves()], months=1)
    data["options"]["purchase"] = ["spot"]
    fixes = of_kind(data, "limit")
    assert list(fixes) == ["options.purchase"]
    assert fixes["options.purchase"].npv == pytest.approx(730.0)


TWO = problem(
    [service("s", 2.0, data={"regions": []}), job("j", 100.0, deadline="10 h")],
    [on_demand("a", max_nodes=1), on_demand("b", gpu="B", max_nodes=5)],
    [serves("s"), works("j", gpu="B")],
    months=1,
)
"""A service one node short, and a job 5 GPUs short: no single limit mends both."""


def test_where_no_single_limit_is_enough_the_least_set_is_named_with_its_amounts() -> None:
    """One node more of a, and for the job twice the nodes or twice the time: a set of two, each by its least."""
    plan = diagnosed(TWO)
    together = {one.change: one for one in plan.infeasibility if one.kind == "limit"}
    assert not any(one.alone for one in together.values())
    assert together.pop("options.quotes.a.max_nodes").required == 2
    (other,) = together.values()
    expected = {"options.quotes.b.max_nodes": 10.0, "workloads.j.deadline": 20.0}
    assert other.required == pytest.approx(expected[other.change])
    assert not [one for one in plan.infeasibility if one.kind == "cut"]


def test_limits_in_conflict_are_named_and_none_could_be_left_out() -> None:
    """Deadline and stock of b stand against the job together: with either lifted alone, the other could hold."""
    data = copy.deepcopy(TWO)
    del data["workloads"][0], data["measurements"][0], data["options"]["quotes"][0]
    conflict = of_kind(data, "conflict")
    assert set(conflict) == {"workloads.j.deadline", "options.quotes.b.max_nodes"}
    for path in ("workloads/j/deadline", "options/quotes/b/max_nodes"):
        lifted = edited(data, path, "700 h" if path.endswith("deadline") else 100)
        assert least_cost(lifted) < math.inf


def test_demand_that_nothing_can_serve_is_no_limits_fault() -> None:
    """A workload that no offer can run: no limit is blamed, all of its demand is unmet, and only cutting it helps."""
    data = problem([service("s", 2.0), service("t", 1.0)], [on_demand("a", max_nodes=5)], [serves("s")], months=1)
    plan = diagnosed(data)
    assert {one.kind for one in plan.infeasibility} == {"demand", "cut"}
    (cut,) = [one for one in plan.infeasibility if one.kind == "cut"]
    assert (cut.index, cut.attainable, cut.npv) == (["t"], 0.0, pytest.approx(2 * 730.0))


def test_a_diagnosis_without_time_says_so() -> None:
    """With no time left after the proof, nothing is claimed, and the plan notes that the diagnosis was cut short."""
    from optimizer.model.build import build
    from optimizer.prepare import prepare
    from optimizer.solver.diagnosis.diagnose import diagnose

    prepared = prepare(parsed(SLOW), the_catalog())
    found = diagnose(prepared, build(prepared.instance()), SolverSettings(time_limit_s=5.0), spent_s=6.0)
    assert found.shortfalls == ()
    assert "cut short" in found.notes[0]
