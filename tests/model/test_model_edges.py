"""Edges of time, size and price, where averages, tolerances and rounding would give a wrong plan unnoticed."""

import gc
import math
from typing import Any

import pytest

from optimizer.model.build import collection_paused
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    Data,
    classes_service,
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
    solved,
    spot,
    the_catalog,
    works,
)

YEAR = float(HOURS_PER_YEAR)
ONE_GPU = {"gpus_per_replica": 1}


def plan_of(data: Data) -> Any:
    """The plan at gap 0."""
    return solve(parsed(data), the_catalog(), SolverSettings(gap=0))


def paid_monthly(rate: float, end: float) -> float:
    """Worth of 1 per month to a month that may be a fraction, each at its end."""
    whole = int(end)
    total = sum((1 + rate) ** (-(m + 1) / 12) for m in range(whole))
    return total + (end - whole) * (1 + rate) ** (-end / 12)


# --- small and large --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [1.0, 1e-3, 1e-6, 1e-9])
def test_tiny_job_is_paid_for(hours: float) -> None:
    """A job of seconds inside three years costs its seconds, not nothing."""
    data = problem([job(amount=hours)], [on_demand(price=2.0)], [works()], months=36)
    assert plan_of(data).cost.npv == pytest.approx(2.0 * hours, rel=1e-6)


@pytest.mark.parametrize("hours", [10.0, 1e-2, 1e-6, 1e-9])
def test_tiny_job_on_owned_nodes_buys_one(hours: float) -> None:
    """However little a job does on owned nodes, it needs one."""
    assert close(
        least_cost(problem([job(amount=hours)], [owned(price=1000.0, useful_life="12 months")], [works()])), 1000.0
    )


@pytest.mark.parametrize("rate", [0.5, 1e-3, 1e-9, 1e-15])
def test_tiny_rate_needs_a_machine(rate: float) -> None:
    """However small a rate, something must be there to serve it."""
    assert close(least_cost(problem([service(rate=rate)], [on_demand()], [serves()])), YEAR)
    assert close(
        least_cost(problem([service(rate=rate)], [owned(price=1000.0, useful_life="12 months")], [serves()])), 1000.0
    )


@pytest.mark.parametrize(("rate", "nodes"), [(1e6, 125_000), (1e6 + 1, 125_001), (999_999.5, 125_000), (8e6, 10**6)])
def test_millions_of_replicas(rate: float, nodes: int) -> None:
    """Large fleets are whole nodes too."""
    data = problem([service(rate=rate)], [on_demand(nodes_of=8, price=8.0)], [serves(**ONE_GPU)])
    assert close(least_cost(data), nodes * 8.0 * YEAR)


def test_a_tiny_and_a_large_class_share_a_node() -> None:
    """The tiny class neither disappears nor takes a machine of its own where there is room."""
    workload = classes_service("chat", {"large": 7.5, "tiny": 1e-9})
    assert close(least_cost(problem([workload], [on_demand()], [serves()])), 8 * YEAR)


def test_many_offers() -> None:
    """300 offers with a stock of one each: the eleven cheapest."""
    offers = [on_demand(f"offer-{i}", price=2 - 0.001 * i, max_nodes=1) for i in range(300)]
    expected = YEAR * sum(2 - 0.001 * i for i in range(289, 300))
    assert close(least_cost(problem([service(rate=10.5)], offers, [serves()])), expected)


# --- nothing ----------------------------------------------------------------------------------------------------------


def test_i24_zero_demand_costs_nothing() -> None:
    """Nothing asked, nothing bought: cost 0, an empty plan, proven."""
    plan = plan_of(problem([service(rate=0.0)], [on_demand(), owned()], [serves()]))
    assert (plan.status, plan.cost.npv, plan.acquisitions, plan.rentals, plan.assignments) == (
        "optimal",
        0.0,
        (),
        (),
        (),
    )


def test_zero_demand_with_hardware_costs_what_cannot_be_avoided() -> None:
    """Existing nodes draw idle power whatever is asked."""
    existing = [{"gpu": "A", "nodes": 2, "power": "1 kW", "idle_power": "0.5 kW", "electricity": 0.1}]
    data = problem([service(rate=0.0)], [on_demand()], [serves()], existing=existing)
    assert close(least_cost(data), 2 * 0.5 * YEAR * 0.1)


@pytest.mark.parametrize("lonely", [service("lonely"), job("lonely")], ids=["service", "job"])
def test_i23_a_workload_that_nothing_can_run_is_infeasible(lonely: Data) -> None:
    """No deployment anywhere: infeasible with the workload named, never cost 0."""
    for others in ([], [service()]):
        plan = plan_of(
            problem([*others, lonely], [on_demand()], [serves()] if others else [works("lonely", gpu="A")][:0])
        )
        assert (plan.status, plan.cost) == ("infeasible", None)
        assert any("lonely" in short.index for short in plan.infeasibility)


def test_an_idle_workload_needs_no_deployment() -> None:
    """A service without traffic may be one that nothing can serve."""
    assert close(solved(problem([service(), service("idle", 0.0)], [on_demand()], [serves()])).cost, YEAR)


@pytest.mark.parametrize("offer", [on_demand(price=0.0), owned(price=0.0), reserved(price=0.0)])
def test_free_offers_cost_nothing(offer: Data) -> None:
    """A price of 0 that was written is a price."""
    plan = plan_of(problem([service(rate=3.0)], [offer, on_demand("dear", price=1.0)], [serves()]))
    assert plan.cost.npv == 0.0
    assert plan.gpus == {"A": 3}


# --- nodes and replicas -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "node", "rate", "nodes"),
    [(3, 8, 5, 3), (3, 8, 4, 2), (5, 8, 3, 3), (8, 8, 2, 2), (2, 8, 9, 3), (6, 8, 1, 1), (16, 16, 1, 1)],
)
def test_replicas_do_not_straddle_nodes(size: int, node: int, rate: int, nodes: int) -> None:
    """A node of 8 holds two replicas of 3, one of 5."""
    data = problem([service(rate=rate)], [on_demand(nodes_of=node, price=10.0)], [serves(gpus_per_replica=size)])
    assert close(least_cost(data), nodes * 10.0 * YEAR)


def test_a_replica_larger_than_a_node_is_infeasible() -> None:
    """16 GPUs behind a measured replica do not fit nodes of 8."""
    data = problem([service()], [on_demand(nodes_of=8)], [serves(gpus_per_replica=16)])
    assert solved(data).cost == math.inf


@pytest.mark.parametrize("offer", [on_demand(nodes_of=8, max_nodes=3), owned(nodes_of=8, max_nodes=3)])
def test_a_job_larger_than_any_stock_is_infeasible(offer: Data) -> None:
    """64 GPUs at once are not to be had from three nodes of 8, though the hours would do."""
    assert least_cost(problem([job(min_gpus=64)], [offer], [works(**ONE_GPU)])) == math.inf


@pytest.mark.parametrize(
    ("least", "most", "hours"), [(12, 12, 20.0), (9, 12, 20.0), (5, 6, 20.0), (1, 12, 15.0), (8, 9, 15.0)]
)
def test_a_job_pays_for_the_nodes_that_its_size_holds(least: int, most: int, hours: float) -> None:
    """12 GPUs at once hold two nodes of 8: 120 GPU-hours are 20 node-hours, unless a size of 8 is allowed."""
    train = job(amount=120.0, min_gpus=least, max_gpus=most)
    data = problem([train], [on_demand(nodes_of=8, price=8.0)], [works(**ONE_GPU)])
    assert close(least_cost(data), 8.0 * hours)


@pytest.mark.parametrize("most", [{}, {"max_gpus": 64}])
@pytest.mark.parametrize(
    "limit", [{"gpus": {"A": 15}}, {"providers": {"north": {"max_nodes": 1}}}, {"stock": {"a": 1}}]
)
def test_least_size_binds_at_once_under_limits(limit: Data, most: Data) -> None:
    """16 GPUs at once pass a limit of one node, though the average does not."""
    offers = [on_demand("a", "A", 8, 1.0, provider="north"), on_demand("b", "B", 8, 10.0, provider="south")]
    measured = [works(**ONE_GPU), works(gpu="B", **ONE_GPU)]
    data = problem([job(amount=160.0, min_gpus=16, **most)], offers, measured, limits=limit)
    assert close(least_cost(data), 10.0 * 20)


@pytest.mark.parametrize(("stock", "together"), [(3, False), (4, True)])
@pytest.mark.parametrize("limit", ["stock", "provider", "gpus"])
def test_jobs_that_do_not_fit_together_take_turns(limit: str, stock: int, together: bool) -> None:
    """Two jobs of exactly 2 GPUs for 75 of 100 hours need 4 nodes: with 3 one of them goes elsewhere."""
    jobs = [job(f"job-{i}", 150.0, min_gpus=2, max_gpus=2, deadline="100 h") for i in (0, 1)]
    offers = [on_demand("a", "A", provider="north"), on_demand("b", "B", price=10.0)]
    measured = [works(f"job-{i}", gpu=gpu) for i in (0, 1) for gpu in ("A", "B")]
    limits = {"stock": {"stock": {"a": stock}}, "provider": {"providers": {"north": {"max_nodes": stock}}}}
    limits["gpus"] = {"gpus": {"A": stock}}
    data = problem(jobs, offers, measured, months=1, limits=limits[limit])
    assert close(least_cost(data), 300.0 if together else 1650.0)


def test_two_offers_of_one_pool_under_one_limit() -> None:
    """A job that may use two offers of a provider, each in nodes of its least size, under the provider's limit."""
    offers = [on_demand(f"offer-{i}", "A", 2, 1.0 + i, provider="north", max_nodes=4 - i) for i in (0, 1)]
    limits = {"gpus": {"A": 8}, "providers": {"north": {"max_nodes": 4}}}
    data = problem([job(amount=80.0, min_gpus=4)], offers, [works(**ONE_GPU)], limits=limits)
    assert close(least_cost(data), 40.0)


def test_least_size_binds_beside_a_service_on_the_same_stock() -> None:
    """Of two nodes in stock a service keeps one: a job that needs two at once goes elsewhere."""
    offers = [on_demand("a", "A", 8, 8.0, max_nodes=2), on_demand("b", "B", 8, 100.0)]
    measured = [serves(gpus_per_replica=8), works(**ONE_GPU), works(gpu="B", **ONE_GPU)]
    data = problem([service(), job(min_gpus=16)], offers, measured)
    assert close(least_cost(data), 8 * YEAR + 100.0 * 100 / 8)


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("periods", ["once", "monthly", "quarterly", "yearly"])
@pytest.mark.parametrize("months", [0.5, 1.0, 10.5, 13.0])
def test_horizons_and_periods_that_do_not_divide(months: float, periods: str) -> None:
    """Rent is paid at the end of every calendar month, the last part at its end, whatever the periods."""
    data = problem([service()], [on_demand()], [serves()], months=months, periods=periods)
    data["finance"] = {"discount_rate": 0.1}
    assert close(least_cost(data), HOURS_PER_MONTH * paid_monthly(0.1, months))


def test_growth_is_that_of_the_last_month_of_a_period() -> None:
    """Doubling monthly over 5 months by quarters: 4 machines, then 16."""
    data = problem(
        [service(traffic={"growth": "100 %/month"})], [on_demand()], [serves()], months=5, periods="quarterly"
    )
    assert close(least_cost(data), HOURS_PER_MONTH * (3 * 4 + 2 * 16))


@pytest.mark.parametrize(("lead", "bridged"), [(0.0, 0.0), (1.5, 1.5), (4.0, 4.0)])
def test_lead_times_off_the_grid_are_bridged(lead: float, bridged: float) -> None:
    """Owned from arrival, rented until then, to the hour."""
    offers = [owned(price=1000.0, lead_time=f"{lead} months"), on_demand()]
    data = problem([service()], offers, [serves()], periods="quarterly")
    worth = 1000.0 * (1 - (12 - lead) / 60)
    assert close(least_cost(data), 1000.0 - worth + bridged * HOURS_PER_MONTH)


def test_a_lead_time_past_the_horizon_is_no_offer() -> None:
    """What arrives too late is not bought."""
    data = problem([service()], [owned(price=1.0, lead_time="12 months"), on_demand()], [serves()])
    assert close(least_cost(data), YEAR)


def test_terms_that_end_inside_a_period() -> None:
    """Five-month terms by quarters: month 0 to 5, then 6 to 11, with one month and the last rented in between."""
    data = problem([service()], [reserved(price=0.5, term=5), on_demand()], [serves()], periods="quarterly")
    assert close(least_cost(data), HOURS_PER_MONTH * (10 * 0.5 + 2))


@pytest.mark.parametrize(("cancellable", "expected"), [(True, 0.5 * 2), (False, 0.5 * 3 + 0.1)])
def test_a_term_past_the_horizon(cancellable: bool, expected: float) -> None:
    """Charged to the horizon if it can be cancelled there, else in full."""
    offers = [
        reserved(price=0.5 + (0 if cancellable else 0.1 / 3), term=3, cancellable=cancellable),
        on_demand(price=3.0),
    ]
    data = problem([service()], offers, [serves()], months=2)
    assert close(least_cost(data), HOURS_PER_MONTH * expected)


def test_deadlines_a_second_apart_at_the_end_of_ten_years() -> None:
    """Two events that print alike are two events."""
    jobs = [job(f"job-{i}", 1.0, deadline=f"{73_000 + i / 3600!r} h") for i in range(3)]
    data = problem(jobs, [on_demand()], [works(f"job-{i}") for i in range(3)], months=120)
    assert close(least_cost(data), 3.0)


def test_job_in_a_daily_window() -> None:
    """Eight hours a night: 12 months of nights hold 2,920 hours, so twice the work needs two GPUs at once."""
    nights = job(amount=2 * 365 * 8.0, window={"daily": "22:00-06:00"})
    data = problem([service(), nights], [on_demand()], [serves(), works()])
    assert close(least_cost(data), YEAR + 2 * 2920)
    capped = problem([nights | {"max_gpus": 1}], [on_demand()], [works()])
    assert least_cost(capped) == math.inf


def test_job_in_the_night_trough_of_owned_nodes() -> None:
    """Nodes that a service leaves at night run a nightly job for nothing."""
    by_hour = [0.0] * 8 + [1.5] * 16
    nights = job(amount=2 * 365 * 6.0, window={"daily": "00:00-06:00"})
    data = problem([service(traffic={"profile": by_hour}), nights], [owned(price=600.0)], [serves(rate=1.0), works()])
    assert close(least_cost(data), 2 * (600.0 - 600.0 * (1 - 12 / 60)))


@pytest.mark.parametrize(("repeat", "runs"), [("monthly", 12), ("quarterly", 4), ("yearly", 1), ("weekly", 52)])
def test_repeated_jobs(repeat: str, runs: int) -> None:
    """Every run that fits the horizon is done."""
    data = problem([job(amount=10.0, repeat=repeat, deadline="2 days")], [on_demand()], [works()])
    assert close(least_cost(data), 10.0 * runs)


def test_work_is_done_once() -> None:
    """Capacity that is free for three months does not do a job of one month twice."""
    data = problem([job(amount=25.0)], [on_demand()], [works()], months=3, periods="monthly")
    data["options"]["existing"] = [{"name": "old", "gpu": "A", "nodes": 1}]
    work = plan_of(data).schedule["work"]
    assert math.fsum(one["amount"] for one in work) == pytest.approx(25.0)


def test_daily_requests() -> None:
    """Each day's requests are done that day: 100 a day at 100 per GPU-hour from month 6 on are 182.5 GPU-hours."""
    daily = {"name": "batch", "kind": "batch", "requests": {"per_day": 100}, "start": "month 6"}
    data = problem([daily], [on_demand()], [serves("batch", 100 / 3600)])
    assert close(least_cost(data), 182.5)


# --- supply -----------------------------------------------------------------------------------------------------------


def test_existing_nodes_serve_to_the_end_of_their_term() -> None:
    """A signed reservation is paid to its end and used; then the rest is rented."""
    existing = [{"name": "signed", "gpu": "A", "nodes": 1, "term": "6 months", "fee": "0.5/h"}]
    data = problem([service()], [on_demand()], [serves()], existing=existing)
    assert close(least_cost(data), HOURS_PER_MONTH * 6 * 1.5)


def test_existing_nodes_serve_until_they_retire() -> None:
    """A node of 57 months that retires at 60 serves three months."""
    existing = [{"name": "old", "gpu": "A", "nodes": 1, "age": "57 months", "retire": "60 months"}]
    data = problem([service()], [on_demand()], [serves()], existing=existing)
    assert close(least_cost(data), HOURS_PER_MONTH * 9)


def test_availability_and_interruptions_lower_what_a_node_does() -> None:
    """0.9 of the hours, half of them lost to interruptions: 100 units take 222.2 paid hours."""
    offer = spot(price=1.0, availability=0.9, interruptions_per_hour=1.0, hours_lost="1 h")
    assert close(least_cost(problem([job()], [offer], [works()])), 100 / 0.45)
    assert close(least_cost(problem([service(rate=9)], [on_demand(availability=0.9)], [serves()])), 10 * YEAR)


def test_a_dearer_offer_that_completes_a_pool_is_kept() -> None:
    """Half on spot and half on demand in one place beats the cheapest on-demand offer elsewhere."""
    offers = [
        on_demand("elsewhere", price=2.0, provider="x"),
        on_demand("here", price=2.1, provider="y"),
        spot("here-spot", price=0.5, provider="y"),
    ]
    data = problem([job()], offers, [works()], limits={"spot_share": 0.5})
    assert close(least_cost(data), 50 * 2.1 + 50 * 0.5)


def test_an_interruptible_offer_does_not_stand_in_for_a_safe_one() -> None:
    """A cheaper node that may be taken away leaves the safe one in the choice."""
    offers = [on_demand("shaky", price=2.0, interruptible=True), on_demand("safe", price=2.1)]
    data = problem([service()], offers, [serves()], limits={"spot_share": 0.0})
    assert close(least_cost(data), 2.1 * YEAR)


def test_an_offer_named_as_its_gpu_type() -> None:
    """Limits on an offer and on a GPU type of the same name are told apart."""
    data = problem([service(rate=3.0)], [on_demand("A", max_nodes=9)], [serves()], limits={"gpus": {"A": 4}})
    assert close(least_cost(data), 3 * YEAR)
    assert least_cost(data | {"limits": {"gpus": {"A": 2}}}) == math.inf


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.5])
def test_spot_share_of_tiny_work(share: float) -> None:
    """A share of a millionth of a unit is a share."""
    data = problem([job(amount=1e-6)], [spot(price=1.0), on_demand(price=3.0)], [works(rate=1e-6)])
    data["limits"] = {"spot_share": share}
    data["workloads"][0]["spread"] = "any"
    assert close(least_cost(data), 3.0 - 2.0 * share)


def test_rates_by_slice_keep_the_mean() -> None:
    """A mean rate stays the mean when slices share it unevenly."""
    slices = [{"name": "day", "share_of_hours": 0.5}, {"name": "night", "share_of_hours": 0.5}]
    workload = service(rate=10.0, traffic={"by_slice": {"day": 1.0, "night": 0.25}})
    assert close(least_cost(problem([workload], [on_demand()], [serves()], slices=slices)), YEAR / 2 * (16 + 4))


def test_building_leaves_the_garbage_collector_as_it_was() -> None:
    """It pauses while a model is built, also one that fails, and stays off where it was off."""

    @collection_paused()
    def failing() -> None:
        assert not gc.isenabled()
        msg = "wrong"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="wrong"):
        failing()
    assert gc.isenabled()
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
