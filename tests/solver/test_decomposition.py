"""Plans by prices and cells, held against the one model of everything on problems that are small enough for both."""

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings

from optimizer.audit import audit_plan
from optimizer.prepare import prepare
from optimizer.solve import solve
from optimizer.solver.decomposition.run import Decomposed, can_decompose, decompose
from optimizer.solver.milp import Solution, SolverSettings
from tests.model.builders import (
    Data,
    at_most,
    check_solution,
    close,
    job,
    least_cost,
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
from tests.model.strategies import problems

QUICK = SolverSettings(gap=1e-4, time_limit_s=10)


def decomposed(data: Data) -> Decomposed | None:
    """The plan by prices and cells, its rows and ledger checked; None where the problem is not of that kind."""
    instance = prepare(parsed(data), the_catalog()).instance()
    if not can_decompose(instance):
        return None
    found = decompose(instance, QUICK)
    if found is not None:
        plan = found.plan
        check_solution(plan.milp, Solution("feasible", plan.values, plan.cost))
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems())
def test_bound_below_and_plan_above_the_least_cost(data: Data) -> None:
    """On any problem the bound is no more than the least cost, and the plan, which holds every row, no less."""
    found = decomposed(data)
    if found is not None:
        least = least_cost(data)
        assert at_most(found.bound, least), (found.bound, least)
        assert at_most(least, found.plan.cost), (least, found.plan.cost)


def day_and_night(**more: object) -> Data:
    """A service with a day and a night, four ways of paying for one GPU, over a year in quarters."""
    slices = [{"name": "day", "share_of_hours": 0.5}, {"name": "night", "share_of_hours": 0.5}]
    chat = service("chat", 60.0, traffic={"by_slice": {"day": 1.5, "night": 0.5}, "growth": "2 %/month"})
    quotes = [
        on_demand("od", "A", 4, 10.0, provider="cloud"),
        spot("spot", "A", 4, 5.0, provider="cloud"),
        reserved("res", "A", 4, 6.0, term=12, provider="cloud"),
        owned("own", "A", 4, 60_000.0, power="3 kW", electricity=0.1, lead_time="3 months"),
    ]
    return problem([chat], quotes, [serves("chat", 1.0)], periods="quarterly", slices=slices, **more)


def test_a_problem_of_every_way_of_paying() -> None:
    """With few nodes at stake the plan is within 3 % of the least cost, and the relaxed bound within its rounding."""
    data = day_and_night(limits={"spot_share": 0.3})
    found, least = decomposed(data), least_cost(data)
    assert found is not None
    assert at_most(found.bound, least)
    assert least <= found.plan.cost * (1 + 1e-9) <= least * 1.03
    assert found.bound >= 0.92 * least


def test_whole_loads_are_planned_exactly() -> None:
    """Where every load fills whole nodes, nothing is lost to rounding: plan, bound and least cost are one."""
    data = day_and_night()
    data["workloads"][0]["traffic"]["growth"] = "0 %/month"
    data["workloads"][0]["traffic"]["mean_requests_per_s"] = 64.0
    found, least = decomposed(data), least_cost(data)
    assert found is not None
    assert close(found.plan.cost, least)
    assert math.isclose(found.bound, least, rel_tol=1e-3)


def test_jobs_fill_what_services_leave() -> None:
    """A job that fits into the nights of a fleet that is there costs nothing more."""
    data = day_and_night()
    free = decomposed(data)
    data["workloads"].append(job("train", 1000.0))
    data["measurements"].append(works("train", 1.0))
    with_job = decomposed(data)
    assert free is not None
    assert with_job is not None
    assert with_job.plan.cost <= free.plan.cost * 1.001


@pytest.mark.parametrize("limits", [{"capex": 100_000.0}, {"opex": "20_000/month"}])
def test_budgets_hold(limits: Data) -> None:
    """A budget on orders, or on running costs, holds in the plan and in the bound."""
    data = day_and_night(limits=limits)
    found, least = decomposed(data), least_cost(data)
    if found is not None:
        assert at_most(found.bound, least)
        assert at_most(least, found.plan.cost)


def test_relaxed_rents() -> None:
    """With rents and replicas in parts the bound is proven within 1 % of the cost of a fleet in whole nodes."""
    plan = decomposed(day_and_night())
    assert plan is not None
    found = plan.relaxed
    assert found.bound <= found.cost * (1 + 1e-9)
    assert found.cost - found.bound <= 0.01 * found.cost


def test_a_decomposed_plan_passes_the_audit() -> None:
    """The plan file of a problem solved by prices and cells says what one of the whole model says, and audits clean."""
    data = day_and_night(limits={"spot_share": 0.3})
    data["workloads"].append(job("train", 5000.0, deadline="60 days"))
    data["measurements"].append(works("train", 1.0))
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0.05, time_limit_s=20, method="decomposed"))
    assert plan.cost is not None
    assert plan.cost.bound <= plan.cost.npv
    assert audit_plan(json.loads(json.dumps(plan.document())), catalog=the_catalog()).findings == ()


@pytest.mark.parametrize("most", [1, 8])
@pytest.mark.parametrize("prices", [(3.0, 1.0, 2.0), (1.0, 2.0, 3.0)])
def test_ways_of_a_job_keep_their_numbers(monkeypatch: pytest.MonkeyPatch, prices: list[float], most: int) -> None:
    """Whichever ways of running a job are tried, and in which order, rows name them as the whole model does."""
    monkeypatch.setattr("optimizer.solver.decomposition.run.MOST_ALTERNATIVES", most)
    quotes = [on_demand(f"rent-{gpu}", gpu, price=price) for gpu, price in zip("ABC", prices, strict=True)]
    work = [serves("chat", 1.0), *(works("train", 1.0, gpu) for gpu in "ABC")]
    data = problem([service("chat", 2.0), job("train", 100.0, deadline="20 days")], quotes, work, months=1)
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0.05, time_limit_s=20, method="decomposed"))
    assert plan.cost is not None
    assert close(plan.cost.npv, 2 * 730 * prices[0] + 100 * min(prices))
    assert audit_plan(json.loads(json.dumps(plan.document())), catalog=the_catalog()).findings == ()


def test_held_nodes_on_which_nothing_stands_pass_the_audit() -> None:
    """Two reservations of one node each, of which nights need one: rows of the other one are not asked for."""
    quotes = [reserved(f"held-{i}", price=0.5, max_nodes=1, term=1) for i in (1, 2)]
    chat = service("chat", traffic={"profile": [0.5] * 12 + [1.5] * 12})
    data = problem([chat], [*quotes, on_demand(price=9.0)], [serves("chat", 1.0)], months=1)
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0.05, time_limit_s=20, method="decomposed"))
    assert plan.cost is not None
    assert close(plan.cost.npv, 730.0)
    pools = {tuple(c.index) for c in plan.constraints if c.family == "pool_capacity"}
    assert len(pools) < 4, "a row for each reservation, by day and by night"
    assert audit_plan(json.loads(json.dumps(plan.document())), catalog=the_catalog()).findings == ()


def test_a_large_problem_without_a_plan_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large problem of which neither a plan nor an impossible part is found is answered so, and never built whole."""
    monkeypatch.setattr("optimizer.solver.decomposition.run.LARGEST_DIRECT", 0)
    monkeypatch.setattr("optimizer.solver.diagnosis.large.EXTENTS", ())
    data = day_and_night(limits={"capex": 0.0, "gpus": {"A": 4}})
    plan = solve(parsed(data), the_catalog(), SolverSettings(time_limit_s=5))
    assert plan.status == "no_plan"
    assert plan.cost is None
    assert any("--time-limit" in note for note in plan.notes)


@pytest.mark.parametrize("counted", [{"finance": {"carbon_price": 400.0}}, {"limits": {"carbon": "900 t"}}])
def test_emissions_count_in_the_bound_and_the_plan(counted: Data) -> None:
    """With a price of emissions (or a limit with room) the bound is below the least cost, the plan near it."""
    data = day_and_night(site={"carbon": "300 g/kWh"}, carbon={"regions": {"*": "500 g/kWh"}}, **counted)
    data |= {"gpus": {"A": {"tdp": "500 W"}}}
    found, least = decomposed(data), least_cost(data)
    assert found is not None
    assert at_most(found.bound, least)
    assert least <= found.plan.cost * (1 + 1e-9) <= least * 1.03


@pytest.mark.parametrize("workloads", [[job("train", 100.0)], [service("chat", 2.0), service("mute", 1.0)]])
def test_what_cannot_be_decomposed_is_planned_as_one_model(workloads: list[Data]) -> None:
    """Jobs alone, and a service that nothing serves, are answered as by the one model, though asked for by hand."""
    data = problem(workloads, [on_demand()], [serves("chat", 1.0), works("train", 1.0)])
    data["measurements"] = [m for m in data["measurements"] if m["workload"] in {w["name"] for w in workloads}]
    plans = [solve(parsed(data), the_catalog(), SolverSettings(method=how)) for how in ("direct", "decomposed")]
    assert plans[0].status == plans[1].status
    assert plans[0].cost == plans[1].cost
