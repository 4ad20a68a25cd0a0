"""Further costs of a buyer and rising prices, each line worked out by hand: amount, month of payment, total."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.audit import audit_plan
from optimizer.plan import Plan, PricedLine
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
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
    solved,
    the_catalog,
    works,
)
from tests.model.changes import scaled_money
from tests.model.strategies import problems

RATE = 0.10
SECONDS_PER_YEAR = 8_760 * 3_600


def planned(data: Data, *costs: Data, rate: float = RATE, **escalation: float) -> Plan:
    """The least-cost plan with these further costs; its audit finds nothing."""
    finance = {"discount_rate": rate, "opex_escalation": escalation}
    plan = solve(parsed(data | {"costs": list(costs), "finance": finance}), the_catalog(), SolverSettings(gap=0))
    assert plan.cost is not None
    assert audit_plan(plan.document(), catalog=the_catalog()).findings == ()
    return plan


def lines(plan: Plan, term: str) -> list[PricedLine]:
    return [line for line in plan.cost_lines if line.term == term]


def total(plan: Plan, term: str) -> tuple[float, float]:
    """Amount and present value of all lines of a term."""
    found = lines(plan, term)
    return math.fsum(line.amount for line in found), math.fsum(line.npv for line in found)


def monthly(amount: float, first: int, last: int, rate: float = RATE) -> float:
    """Present value of an amount paid at the end of each month from `first` (counted from 0) to before `last`."""
    return sum(amount * (1 + rate) ** (-(m + 1) / 12) for m in range(first, last))


RENTED = problem([service(rate=3.0)], [on_demand(nodes_of=2, price=2.0)], [serves()])
"""Two nodes of two GPUs at 2 an hour, all year."""
OWNED = problem([service(rate=3.0)], [owned("mine", price=1_000.0, power="2 kW")], [serves()])
"""Three nodes of 2 kW."""


def test_a_monthly_amount_is_paid_at_the_end_of_each_month() -> None:
    """12,000 a month from month 2 to month 5: three payments, running cost, no offer."""
    cost = {"kind": "staff", "name": "platform team", "monthly": "12_000 USD/month", "start_month": 2, "end_month": 5}
    plan = planned(RENTED, cost)
    assert total(plan, "staff") == pytest.approx((36_000.0, monthly(12_000.0, 2, 5)))
    (line,) = lines(plan, "staff")
    assert (line.option, line.name, line.unit, line.group, line.period) == ("", "platform team", "months", "opex", 1)
    assert plan.cost is not None
    assert plan.cost.opex == pytest.approx(2 * 2.0 * 8_760 + 36_000)


def test_an_amount_paid_once_is_capex_at_its_month() -> None:
    """5,000 at month 3."""
    plan = planned(RENTED, {"kind": "other", "once": 5_000.0, "start_month": 3})
    assert total(plan, "other") == pytest.approx((5_000.0, 5_000.0 * 1.1 ** (-3 / 12)))
    assert plan.cost is not None
    assert plan.cost.capex == pytest.approx(5_000.0)


def test_an_amount_per_node_ordered_is_paid_with_the_order() -> None:
    """3,500 for each of three nodes bought; nodes rented by the hour have no order."""
    cost = {"kind": "network", "once": 3_500.0, "per": "node"}
    assert total(planned(OWNED, cost), "network") == pytest.approx((10_500.0, 10_500.0))
    assert lines(planned(RENTED, cost), "network") == []


def test_amounts_per_gpu_and_month_of_rented_nodes_follow_their_hours() -> None:
    """Two nodes of two GPUs rented all year at 30 a GPU and month: 4 × 12 × 30."""
    plan = planned(RENTED, {"kind": "support", "monthly": 30.0, "per": "gpu", "purchase": ["on-demand"]})
    assert total(plan, "support") == pytest.approx((1_440.0, monthly(120.0, 0, 12)))
    assert {line.unit for line in lines(plan, "support")} == {"GPU-months"}


def test_a_window_need_not_be_a_grid_point() -> None:
    """From month 2.5 to 4: half of month 2 is paid at its end."""
    cost = {"kind": "support", "monthly": 30.0, "per": "node", "start_month": 2.5, "end_month": 4}
    expected = 60.0 * (0.5 * 1.1 ** (-3 / 12) + 1.1 ** (-4 / 12))
    assert total(planned(RENTED, cost), "support") == pytest.approx((90.0, expected))
    found = total(planned(OWNED, cost), "support")
    assert found == pytest.approx((135.0, 1.5 * expected))


def test_jobs_pay_for_the_hours_that_they_rent() -> None:
    """730 GPU-hours of a job on nodes of one GPU are one node-month."""
    data = problem([job(amount=730.0)], [on_demand()], [works()], months=1)
    assert total(planned(data, {"kind": "support", "monthly": 50.0, "per": "node"}, rate=0), "support")[0] == 50.0


def test_amounts_per_kw_count_nameplate_power_of_owned_nodes() -> None:
    """Three nodes of 2 kW at 10 a kW and month."""
    plan = planned(OWNED, {"kind": "insurance", "monthly": 10.0, "per": "kw"})
    assert total(plan, "insurance") == pytest.approx((720.0, monthly(60.0, 0, 12)))


def test_existing_nodes_pay_monthly_until_they_leave_and_nothing_once() -> None:
    """Two nodes in service for four more months: 8 node-months, and no order."""
    old = {"name": "old", "gpu": "A", "nodes": 2, "age": "56 months", "retire": "60 months"}
    data = problem([service(rate=2.0)], [on_demand()], [serves()], existing=[old])
    costs = [{"kind": "licences", "monthly": 100.0, "per": "node", "option": "ol*"}]
    costs += [{"kind": "network", "once": 500.0, "per": "node", "option": "old"}]
    plan = planned(data, *costs)
    assert total(plan, "licences") == pytest.approx((800.0, monthly(200.0, 0, 4)))
    assert lines(plan, "network") == []


def test_terms_past_the_horizon_bear_their_fee_and_no_further_cost() -> None:
    """A term of 18 months on a horizon of 12: the fee of 18 months, support for 12."""
    data = problem([service()], [reserved(term=18)], [serves()])
    plan = planned(data, {"kind": "support", "monthly": 100.0, "per": "node"}, rate=0)
    assert total(plan, "holding_fee")[0] == pytest.approx(0.6 * 730 * 18)
    assert total(plan, "support")[0] == pytest.approx(1_200.0)


def test_gb_kept_or_moved_each_month() -> None:
    """50,000 GB at 0.023 a month."""
    plan = planned(RENTED, {"kind": "storage", "per_gb": "0.023 USD/GB/month", "gb_per_month": 50_000})
    assert total(plan, "storage") == pytest.approx((13_800.0, monthly(1_150.0, 0, 12)))


def test_gb_of_served_requests_leave_out_headroom() -> None:
    """2.5 requests/s all year at 4 GB per 1,000 and 0.08 a GB; a headroom of 20 % moves nothing."""
    data = problem([service(rate=2.5, headroom=0.2)], [on_demand(nodes_of=3, price=2.0)], [serves()])
    plan = planned(data, {"kind": "egress", "per_gb": "0.08 USD/GB", "gb_per_1000_requests": 4}, rate=0)
    assert total(plan, "egress")[0] == pytest.approx(2.5 * SECONDS_PER_YEAR * 0.004 * 0.08)


def test_egress_of_one_provider_decides_where_requests_are_served() -> None:
    """The cheaper node is the dearer one once what it serves is moved: 1 request/s at 0.1 GB is 360 GB an hour."""
    offers = [on_demand("cheap", price=1.0, provider="far"), on_demand("dear", price=1.5, provider="near")]
    data = problem([service()], offers, [serves()])
    far = {"kind": "egress", "per_gb": 0.01, "gb_per_1000_requests": 100, "provider": "far"}
    plan = planned(data, far, rate=0)
    assert [rental.option for rental in plan.rentals] == ["dear"]
    assert close(least_cost(data | {"costs": [far | {"per_gb": 0.001}]}), (1.0 + 0.36) * 8_760)


def test_monthly_costs_of_one_provider_decide_between_like_nodes() -> None:
    """Offers that further costs fall on unequally are not compared by price alone."""
    offers = [on_demand("cheap", price=1.0, provider="far"), on_demand("dear", price=1.5, provider="near")]
    data = problem([service()], offers, [serves()])
    plan = planned(data, {"kind": "support", "monthly": 400.0, "per": "node", "provider": "far"}, rate=0)
    assert [rental.option for rental in plan.rentals] == ["dear"]


def test_a_tax_on_purchases_is_capex_and_one_on_rent_is_opex() -> None:
    """8 % of price and installation at the order; 5 % of fees as they are paid."""
    mine = owned("mine", price=1_000.0, installation=200.0)
    data = problem([service()], [mine], [serves()])
    plan = planned(data, {"kind": "tax", "percent": "8 %", "of": "purchases"})
    assert [(line.group, line.amount, line.npv) for line in lines(plan, "tax")] == [("capex", 96.0, 96.0)]
    plan = planned(RENTED, {"kind": "tax", "percent": "5 %", "of": "rent"})
    assert total(plan, "tax") == pytest.approx((0.05 * 4 * 8_760, 0.05 * monthly(4 * 730.0, 0, 12)))
    assert {(line.group, line.unit) for line in lines(plan, "tax")} == {("opex", "USD")}


def test_a_share_of_all_is_of_every_cost_but_salvage_and_shares() -> None:
    """10 % of a purchase of 1,000 with half its price left, staff of 1,200 and a fee of 100; 5 % of all beside it."""
    data = problem([service()], [owned("mine", price=1_000.0, residual=0.5, useful_life="12 months")], [serves()])
    costs = [{"kind": "staff", "monthly": 100.0}, {"kind": "other", "once": 100.0}]
    shares = [{"kind": "tax", "percent": 0.1, "of": "all"}, {"kind": "insurance", "percent": 0.05, "of": "all"}]
    plan = planned(data, *costs, *shares, rate=0)
    assert total(plan, "tax")[0] == pytest.approx(230.0)
    assert total(plan, "insurance")[0] == pytest.approx(115.0)
    groups = {line.group: line.amount for line in lines(plan, "tax") if line.option == "mine"}
    assert groups == {"capex": pytest.approx(100.0)}


def test_a_share_for_some_offers_is_of_their_lines_only() -> None:
    """A support plan of 10 % on what one provider charges."""
    offers = [on_demand("a", price=1.0, provider="p", max_nodes=1), on_demand("b", price=2.0, provider="q")]
    data = problem([service(rate=2.0)], offers, [serves()])
    costs = [{"kind": "support", "percent": 0.1, "of": "all", "provider": "p"}, {"kind": "staff", "monthly": 100.0}]
    assert total(planned(data, *costs, rate=0), "support")[0] == pytest.approx(876.0)


def test_prices_step_up_each_year() -> None:
    """Over 30 months: 12 months at 1,000, 12 at 1,050, 6 at 1,102.50; each price is a line of its own."""
    data = problem([service()], [on_demand()], [serves()], months=30, periods="yearly")
    plan = planned(data, {"kind": "staff", "monthly": 1_000.0}, staff=0.05)
    assert [line.unit_price for line in lines(plan, "staff")] == pytest.approx([1_000.0, 1_050.0, 1_102.5])
    paid = monthly(1_000.0, 0, 12) + monthly(1_050.0, 12, 24) + monthly(1_102.5, 24, 30)
    assert total(plan, "staff") == pytest.approx((31_215.0, paid))


def test_prices_step_inside_a_period() -> None:
    """A period of 24 months holds two prices."""
    data = problem([service()], [on_demand()], [serves()], months=24, periods="once")
    plan = planned(data, rent=-0.1)
    assert [line.unit_price for line in lines(plan, "usage_fee")] == pytest.approx([1.0, 0.9])
    assert total(plan, "usage_fee") == pytest.approx((8_760 * 1.9, monthly(730.0, 0, 12) + monthly(657.0, 12, 24)))


def test_electricity_hosting_and_maintenance_rise_on_their_own() -> None:
    """A node of 2 kW, idle 1 kW, busy half the time, for two years."""
    mine = owned("mine", price=1_200.0, power="2 kW", idle_power="1 kW", electricity=0.1, hosting=10.0, maintenance=0.1)
    data = problem([service(rate=0.5)], [mine], [serves()], months=24, periods="once")
    plan = planned(data, electricity=0.2, hosting=0.1, maintenance=0.05)
    assert total(plan, "energy")[0] == pytest.approx(1.5 * 8_760 * 0.1 * (1 + 1.2))
    assert total(plan, "hosting")[0] == pytest.approx(20.0 * 12 * (1 + 1.1))
    assert total(plan, "maintenance")[0] == pytest.approx(120.0 * (1 + 1.05))
    assert total(plan, "energy")[1] == pytest.approx(monthly(109.5, 0, 12) + monthly(131.4, 12, 24))


def test_signed_and_reserved_terms_keep_their_price() -> None:
    """Rent rises for what is rented by the hour only."""
    data = problem([service()], [reserved(term=24)], [serves()], months=24, periods="once")
    assert total(planned(data, rent=0.5, rate=0), "holding_fee")[0] == pytest.approx(0.6 * 730 * 24)


def test_budgets_count_further_costs() -> None:
    """Capex counts what is paid once, opex what is paid monthly: the last that fits and the first that does not."""
    once, staff = {"kind": "network", "once": 500.0, "per": "node"}, {"kind": "staff", "monthly": 1_000.0}
    data = OWNED | {"costs": [once, staff]}
    for limits, fits in (({"capex": 4_500.0}, True), ({"capex": 4_499.0}, False)):
        assert math.isfinite(least_cost(data | {"limits": limits})) is fits
    for limits, fits in (({"opex": 1_000.0}, True), ({"opex": 999.0}, False)):
        assert math.isfinite(least_cost(data | {"limits": limits})) is fits


def test_money_in_another_currency_is_converted() -> None:
    """Every kind of amount takes the dated rate."""
    rates = {"EUR": {"rate": 2.0, "date": "2026-06-01"}}
    costs = [
        {"kind": "staff", "monthly": "10 EUR/month"},
        {"kind": "other", "once": "100 EUR"},
        {"kind": "storage", "per_gb": "1 EUR/GB", "gb_per_month": 5},
    ]
    plan = planned(RENTED | {"exchange_rates": rates}, *costs, rate=0)
    assert [total(plan, cost["kind"])[0] for cost in costs] == pytest.approx([240.0, 200.0, 120.0])


def test_a_signed_reservation_is_paid_to_its_end_and_has_no_resale() -> None:
    """What was paid upfront is sunk, the fee runs to the end of the term, nothing is left to sell."""
    signed = {"name": "signed", "gpu": "A", "nodes": 2, "term": "6 months", "fee": "0.5/h", "paid": 9_000.0}
    data = problem([service(rate=2.0)], [on_demand()], [serves()], existing=[signed])
    plan = planned(data)
    assert total(plan, "holding_fee") == pytest.approx((2 * 0.5 * 4_380, monthly(730.0, 0, 6)))
    assert lines(plan, "salvage_value") == []
    assert total(plan, "usage_fee")[0] == pytest.approx(2 * 4_380)
    assert plan.cost is not None
    assert plan.cost.capex == 0.0


def test_a_cost_of_nothing_considered_is_said() -> None:
    """Costs are assumptions with their source; one that is for no node of the problem says so."""
    costs = [{"kind": "support", "monthly": 5.0, "per": "node"}, {"kind": "insurance", "monthly": 5.0, "per": "kw"}]
    found = {one.name: one for one in planned(RENTED, *costs, staff=0.03).assumptions}
    assert (found["cost: support"].value, found["cost: support"].unit) == (5.0, "USD/month per node")
    assert found["cost: support"].source == "problem file"
    assert found["cost: insurance"].source == "problem file; applies to nothing that is considered"
    assert found["escalation of staff"].value == 0.03


def further() -> st.SearchStrategy[list[Data]]:
    """Further costs of every form."""
    amount = st.integers(1, 40).map(lambda n: n * 25.0)
    per = st.sampled_from(("node", "gpu", "kw"))
    forms: list[st.SearchStrategy[dict[str, Any]]] = [
        st.builds(lambda a, p: {"once": a, "per": p}, amount, per),
        st.builds(
            lambda a, p, s: {"monthly": a / 10, "per": p, "start_month": s}, amount, per, st.sampled_from((0, 0.5))
        ),
        st.builds(lambda a: {"monthly": a / 10, "per": "node", "provider": "base"}, amount),
        st.builds(lambda a: {"monthly": a}, amount),
        st.builds(lambda a: {"once": a}, amount),
        st.builds(lambda a: {"per_gb": a / 1e4, "gb_per_1000_requests": 2}, amount),
        st.builds(lambda a: {"percent": a / 5_000, "of": "rent"}, amount),
        st.builds(lambda a: {"percent": a / 5_000, "of": "purchases"}, amount),
    ]
    kinds = st.lists(st.one_of(forms), min_size=1, max_size=4)
    return kinds.map(lambda found: [{"kind": "other", "name": f"cost {i}", **one} for i, one in enumerate(found)])


some = settings(max_examples=20)


@some
@given(problems(with_costs=False), further(), st.integers(1, 50), st.sampled_from((0.0, 0.07)))
def test_i04_a_fixed_cost_adds_exactly_itself(data: Data, costs: list[Data], fee: int, change: float) -> None:
    """A monthly amount adds its present value, whatever else is planned and however prices rise (limits apart)."""
    data = data | {"limits": {}, "costs": costs, "finance": data["finance"] | {"opex_escalation": {"staff": change}}}
    more = data | {"costs": [*costs, {"kind": "staff", "monthly": float(fee)}]}
    months, rate = data["horizon"]["months"], data["finance"]["discount_rate"]
    shares = sum(cost["percent"] for cost in costs if cost.get("of") == "all")
    assert close(least_cost(more), least_cost(data) + monthly(fee, 0, months, rate) * (1 + shares))


@some
@given(problems(with_costs=False), further(), st.sampled_from((1e-3, 0.37, 7.0)))
def test_i03_all_amounts_times_k_is_cost_times_k(data: Data, costs: list[Data], k: float) -> None:
    """Cost stays linear in money with further costs; shares stay."""
    scaled = [
        {key: value * k if key in ("once", "monthly", "per_gb") else value for key, value in cost.items()}
        for cost in costs
    ]
    assert close(least_cost(scaled_money(data, k) | {"costs": scaled}), k * least_cost(data | {"costs": costs}))


@some
@given(problems(with_costs=False), further(), st.sampled_from((-0.1, 0.05)))
def test_plans_with_further_costs_pass_the_audit(data: Data, costs: list[Data], change: float) -> None:
    """Ledger, budgets and rows of random plans are derived a second time, rising prices included."""
    rises = dict.fromkeys(("rent", "electricity", "hosting", "maintenance", "other"), change)
    data = data | {"costs": costs, "finance": data["finance"] | {"opex_escalation": rises}}
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    if plan.cost is not None:
        assert audit_plan(plan.document(), catalog=the_catalog()).findings == ()
        assert close(plan.cost.npv, solved(data).cost)
