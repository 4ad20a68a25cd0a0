"""Public bug reports of sizing tools turned into problems: each with the answer that is right (ids of the case log)."""

import itertools
import math

import pytest

from optimizer.errors import ProblemFileError
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    Data,
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

YEAR = float(HOURS_PER_YEAR)
COUNTED = {"price": 0.0, "upfront": 1.0, "term": 12}
"""A reservation whose cost is the number of its nodes."""


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e-18, 1 / 3600e12], ids=["FLOP", "TFLOP", "EFLOP", "peak TFLOP-hours"])
def test_case_01_training_in_raw_flop(unit: float) -> None:
    """B079: 4.2e23 FLOP at 3.6928e20 per GPU within the deadline: 1,138 GPUs, whatever the unit of work."""
    train = job(amount=4.2e23 * unit, deadline="1000 h")
    data = problem([train], [reserved(**COUNTED)], [works(rate=3.6928e20 / 1000 * unit)])
    assert least_cost(data) == 1138.0


@pytest.mark.parametrize(
    ("gpus", "cost"), [(10, 20.60), (7, 15.70), (8, 16.00), (9, 18.30), (16, 32.00), (17, 34.30), (4, 8.80)]
)
def test_case_05_whole_instances(gpus: int, cost: float) -> None:
    """Nodes of 8, 1 and 4 GPUs at prices per node: no fractions, no price per GPU."""
    offers = [on_demand("a", nodes_of=8, price=16.0), on_demand("b", price=2.3), on_demand("c", nodes_of=4, price=8.8)]
    data = problem([service(rate=gpus)], offers, [serves(gpus_per_replica=1)])
    assert close(least_cost(data), cost * YEAR)


def test_case_05_islands_of_eight() -> None:
    """Replicas of 8 GPUs: two nodes of 8 for 10 GPUs' worth of load, and the smaller nodes are of no use."""
    offers = [on_demand("a", nodes_of=8, price=16.0), on_demand("b", price=2.3), on_demand("c", nodes_of=4, price=8.8)]
    data = problem([service(rate=10 / 8)], offers, [serves(gpus_per_replica=8)])
    assert close(least_cost(data), 32.0 * YEAR)


def test_b013_prices_per_gpu_of_a_bundle() -> None:
    """A 16-GPU machine at 2.00 per GPU-hour is 32.00 per hour, also for a need of 4 GPUs."""
    bundle = on_demand(nodes_of=16, price=2.0) | {"per": "gpu"}
    assert close(least_cost(problem([service(rate=4)], [bundle], [serves(gpus_per_replica=1)])), 32.0 * YEAR)


@pytest.mark.parametrize(("stock", "cost"), [(None, 9.10), (2, 9.40), (1, 9.70), (0, 10.00)])
def test_case_07_stock_limits(stock: int | None, cost: float) -> None:
    """B078: ten units on small cards at 1.00 and cards of three units at 2.70, as many as there are."""
    large = on_demand("large", "L20", price=2.7) | ({} if stock is None else {"max_nodes": stock})
    data = problem([service(rate=10)], [on_demand("small", "A10", price=1.0, max_nodes=12), large], MIXED)
    assert close(least_cost(data), cost * YEAR)


MIXED = [serves(gpu="A10"), serves(rate=3.0, gpu="L20")]


def test_case_07_short_by_one_unit() -> None:
    """Six small and one large card serve nine of ten: short by one unit, and one more card of either type would do."""
    offers = [on_demand("small", "A10", price=1.0, max_nodes=6), on_demand("large", "L20", price=2.7, max_nodes=1)]
    plan = solve(parsed(problem([service(rate=10)], offers, MIXED)), the_catalog(), SolverSettings(gap=0))
    assert plan.status == "infeasible"
    unmet = next(one for one in plan.infeasibility if one.kind == "demand")
    assert (unmet.required, unmet.attainable, unmet.short_by) == (
        pytest.approx(10), pytest.approx(9), pytest.approx(1),
    )  # fmt: skip
    limit = next(one for one in plan.infeasibility if one.kind == "limit")
    assert limit.short_by == pytest.approx(1)
    assert limit.cheapest_fix is not None
    assert (limit.cheapest_fix["to"], limit.cheapest_fix["npv"]) == (pytest.approx(2), pytest.approx(9.4 * YEAR))


@pytest.mark.parametrize("order", [1, -1])
def test_case_09_spot_dearer_than_on_demand(order: int) -> None:
    """B014, I34: 100 h on demand at 0.44 cost 44.00, although spot (0.49) is admissible; a stale 0.28 is no price."""
    offers = [on_demand(price=0.44), spot(price=0.49, interruptions_per_hour=0.05, hours_lost="1 h")][::order]
    assert close(least_cost(problem([job(amount=100)], offers, [works()])), 44.0)


def test_b016_the_tier_that_is_out_of_stock_is_not_replaced_by_a_dearer_one() -> None:
    """Two tiers of one GPU: with the cheap one sold out, only a purchase within the budget would do."""
    tiers = [on_demand("community", price=0.98, max_nodes=0), on_demand("secure", price=1.52)]
    data = problem([service()], tiers, [serves()])
    assert close(least_cost(data), 1.52 * YEAR)
    assert least_cost(data | {"limits": {"opex": 1.0 * HOURS_PER_MONTH}}) == math.inf


@pytest.mark.parametrize(("regions", "price"), [(None, 2.90), (["a"], 3.06)])
def test_b018_cheapest_of_the_allowed_regions(regions: list[str] | None, price: float) -> None:
    """The cheapest region that is allowed, not a default one."""
    offers = [on_demand("in-a", price=3.06, region="a"), on_demand("in-b", price=2.90, region="b")]
    data = problem([service()], offers, [serves()])
    data["options"] |= {} if regions is None else {"regions": regions}
    assert close(least_cost(data), price * YEAR)


def test_b007_a_larger_node_may_be_the_cheaper_one() -> None:
    """8 GPUs at 4.00 below 4 GPUs at 7.00: the need for 4 is met by the 8."""
    offers = [on_demand("eight", nodes_of=8, price=4.0), on_demand("four", nodes_of=4, price=7.0)]
    assert close(least_cost(problem([service(rate=4)], offers, [serves(gpus_per_replica=1)])), 4.0 * YEAR)


FLOP_PER_S = [(2e15, 90, 350), (2e15, 150, 210), (312e12, 90, 2241), (312e12, 150, 1345), (989.5e12, 90, 707)]


@pytest.mark.parametrize(("peak", "days", "gpus"), FLOP_PER_S)
def test_case_15_gpus_are_rounded_up(peak: float, days: int, gpus: int) -> None:
    """B047: 3e24 FLOP at MFU 0.552: one GPU fewer misses the deadline."""
    train = job(amount=3e24, deadline=f"{days} days")
    data = problem([train], [reserved(**COUNTED)], [works(rate=peak * 0.552 * 3600)])
    assert least_cost(data) == gpus
    short = data | {"limits": {"gpus": {"A": gpus - 1}}}
    assert least_cost(short) == math.inf


@pytest.mark.parametrize(("days", "nodes"), [(90, 89), (150, 53)])
def test_case_15_in_nodes_of_eight(days: int, nodes: int) -> None:
    """707 GPUs are 89 nodes of 8 (712), 424 are 53."""
    train = job(amount=3e24, deadline=f"{days} days")
    offers = [reserved(**COUNTED, nodes_of=8)]
    data = problem([train], offers, [works(rate=989.5e12 * 0.552 * 3600, gpus_per_replica=1)])
    assert least_cost(data) == nodes


@pytest.mark.parametrize(("hours", "cost"), [(580, 1450.0), (584, 1460.0), (600, 1460.0)])
def test_case_21_break_even_of_a_monthly_reservation(hours: int, cost: float) -> None:
    """B024: 2.50 per hour against 1,460 per month flat: even at 584 of 730 hours."""
    offers = [on_demand(price=2.5), reserved(term=1) | {"price": "1460/month"}]
    assert close(least_cost(problem([job(amount=hours)], offers, [works()], months=1)), cost)


def test_case_21_a_year_has_8760_hours() -> None:
    """B025, I30: a year on demand is 21,900.00, reserved by the month 17,520.00; 2.50 per hour is 1,825 a month."""
    assert close(least_cost(problem([service()], [on_demand(price=2.5)], [serves()])), 21_900.0)
    assert close(least_cost(problem([service()], [reserved(term=1) | {"price": "1460/month"}], [serves()])), 17_520.0)
    assert close(least_cost(problem([service()], [on_demand(price=2.5)], [serves()], months=1)), 1_825.0)
    prices = ("2/h", "48/day", "1460/month", "17520/year")
    costs = [least_cost(problem([service()], [on_demand() | {"price": price}], [serves()])) for price in prices]
    assert costs == pytest.approx([17_520.0] * 4)


@pytest.mark.parametrize(
    ("need", "gives", "gpus"), [(2.1, 0.7, 3), (4.2, 0.7, 6), (0.1 + 0.2, 0.1, 3), (2.1001, 0.7, 4)]
)
def test_case_29_quotients_of_floats_are_not_rounded_up(need: float, gives: float, gpus: int) -> None:
    """2.1 ÷ 0.7 is 3, not the 4 of ceil(3.0000000000000004)."""
    assert close(least_cost(problem([service(rate=need)], [on_demand()], [serves(rate=gives)])), gpus * YEAR)
    held = problem([job(amount=need * 8760)], [reserved(**COUNTED)], [works(rate=gives)])
    assert least_cost(held) == gpus


@pytest.mark.parametrize("prices", list(itertools.permutations((".nan/h", "2/h", "1/h"))))
def test_case_29_an_unknown_price_is_refused(prices: tuple[str, ...]) -> None:
    """B113, B089: NaN is no price, in whatever order the offers stand."""
    offers = [on_demand(f"o{i}") | {"price": price} for i, price in enumerate(prices)]
    with pytest.raises(ProblemFileError, match="price"):
        least_cost(problem([service()], offers, [serves()]))


def test_b003_a_missing_price_is_not_free() -> None:
    """An offer without a price is refused; a price of 0 that was written is free."""
    offer = on_demand("unpriced")
    del offer["price"]
    data: Data = problem([service()], [offer, on_demand("priced", price=0.10)], [serves()])
    with pytest.raises(ProblemFileError, match='"unpriced" has no price'):
        least_cost(data)
    offer["price"] = 0
    assert least_cost(data) == 0.0


def test_b119_running_costs_of_all_days_count() -> None:
    """100 a day and 1,000 a year: 37,500 a year, in the report as in the objective."""
    mine = owned("mine", price=1_000.0, useful_life="12 months", power="1 kW", hosting=0.0, electricity=100 / 24)
    plan = solve(parsed(problem([service()], [mine], [serves()])), the_catalog(), SolverSettings(gap=0))
    assert plan.cost is not None
    assert plan.cost.npv == pytest.approx(37_500.0)
    assert math.fsum(line.npv for line in plan.cost_lines) == pytest.approx(37_500.0)


def test_b121_purchase_is_counted_once() -> None:
    """100 units at 1,000 for 20 years with 100 a year each: 15,000 a year at 0 %, not 30,000."""
    mine = owned("mine", price=1_000.0, useful_life="20 years", maintenance=0.1)
    cost = least_cost(problem([service(rate=100)], [mine], [serves()], months=240, periods="once"))
    assert cost / 20 == pytest.approx(15_000.0)


def test_b126_asked_available_and_the_change_that_helps() -> None:
    """Four GPUs at once where one is in stock: what is asked, what there is, the smallest change that helps."""
    offer = on_demand("single", price=2.0, max_nodes=1)
    plan = solve(
        parsed(problem([job(amount=40, min_gpus=4)], [offer], [works()])), the_catalog(), SolverSettings(gap=0)
    )
    limit = next(one for one in plan.infeasibility if one.kind == "limit")
    assert (limit.family, limit.index, limit.unit) == ("supply_limit", ["single"], "nodes")
    assert (limit.required, limit.attainable, limit.short_by) == (4.0, 1.0, 3.0)
    assert limit.cheapest_fix is not None
    assert (limit.cheapest_fix["from"], limit.cheapest_fix["to"], limit.cheapest_fix["npv"]) == (1.0, 4.0, 80.0)


def test_b128_the_binding_budget_and_the_least_that_works() -> None:
    """Two jobs, a budget too small for both: the budget is named, with the least one that works; that one does."""
    jobs = [job("first"), job("second")]
    data = problem(jobs, [on_demand()], [works("first"), works("second")], limits={"npv": 150.0})
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    budget = next(one for one in plan.infeasibility if one.kind == "limit")
    assert (budget.family, budget.required, budget.attainable) == ("budget_npv", pytest.approx(200), 150.0)
    assert budget.cheapest_fix is not None
    assert close(least_cost(data | {"limits": {"npv": budget.cheapest_fix["to"] * (1 + 1e-6)}}), 200.0)


def test_case_25_the_cause_is_named_not_another_wish() -> None:
    """B124: where one limit is the cause, relaxing the others is not what the answer proposes."""
    offers = [on_demand(max_nodes=2)]
    limits = {"npv": 1e9, "capex": 1e9, "opex": 1e9, "providers": {"od": {"max_nodes": 100}}, "spot_share": 0.5}
    data = problem([service(rate=3)], offers, [serves()], limits=limits)
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    assert {one.family for one in plan.infeasibility if one.kind == "limit"} == {"supply_limit"}
