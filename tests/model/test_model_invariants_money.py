"""Properties of money, bounds and plan files on random problems with all families mixed (I03, I04, I15 to I34).

Every cost is that of a plan at gap 0 by the public path, which the audit found nothing in.
"""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.plan import read_plan, write_plan
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    HOURS_PER_MONTH,
    Data,
    at_most,
    close,
    least_cost,
    on_demand,
    owned,
    planned,
    problem,
    serves,
    service,
    solved,
)
from tests.model.changes import copied, held, offers, scaled_money, with_money
from tests.model.strategies import examples, months_of, prices, problems

# --- prices -----------------------------------------------------------------------------------------------------------


@examples(50)
@given(problems(), st.sampled_from((1e-3, 0.37, 7.0, 1e4)))
def test_i03_prices_times_k_is_cost_times_k(data: Data, k: float) -> None:
    """Cost is linear in money, limits in money included."""
    assert close(least_cost(scaled_money(data, k)), k * least_cost(data))


@examples(50)
@given(problems(with_costs=False), st.integers(1, 50))
def test_i04_a_fee_of_every_plan_adds_itself(data: Data, fee: int) -> None:
    """A signed reservation that serves nothing adds its fee to the end of its term, whatever is planned."""
    months, rate = months_of(data), data["finance"]["discount_rate"]
    more = copied(data)
    for key in ("opex", "vendors", "carbon"):
        more["limits"].pop(key, None)
    before = least_cost(more)
    more["gpus"]["idle"] = {}
    signed = {"name": "signed", "gpu": "idle", "nodes": 1, "term": f"{months:g} months", "fee": f"{fee}/month"}
    held(more).append(signed)
    paid = sum(fee * (1 + rate) ** (-(m + 1) / 12) for m in range(int(months)))
    assert close(least_cost(more), before + paid)


@examples(45)
@given(problems(), st.sampled_from((0.5, 1.25, 150.0)))
def test_i20_a_foreign_currency_is_its_rate(data: Data, rate: float) -> None:
    """Every price in euros at a dated rate costs the same; so does the whole problem in another currency."""

    def in_euros(amount: float, unit: str) -> str:
        return f"{amount / rate!r} EUR{unit}"

    foreign = with_money(data, in_euros) | {"exchange_rates": {"EUR": {"rate": rate, "date": "2026-11-30"}}}
    cost = least_cost(data)
    assert close(least_cost(foreign), cost)
    assert close(least_cost(scaled_money(data, 1 / rate) | {"currency": "EUR"}), cost / rate)


@examples(45)
@given(problems(), st.sampled_from((("day", 24), ("month", 730), ("year", 8760))))
def test_i30_a_price_per_day_month_or_year_is_its_hours(data: Data, per: tuple[str, int]) -> None:
    """A day has 24 hours, a month 730, a year 8,760, wherever a price stands."""
    unit, hours = per

    def per_unit(amount: float, old: str) -> float | str:
        if not old:
            return amount
        return f"{amount * (hours if old == '/h' else hours / HOURS_PER_MONTH)!r}/{unit}"

    assert close(least_cost(with_money(data, per_unit)), least_cost(data))


@examples(45)
@given(problems(with_salvage=False), st.sampled_from((0.01, 0.2)))
def test_i29_costs_of_the_future_weigh_less_at_a_higher_rate(data: Data, more: float) -> None:
    """Without anything sold in the end, the present value falls as the rate rises."""
    for nodes in held(data):
        nodes.pop("paid", None)
    dearer = copied(data)
    dearer["finance"]["discount_rate"] += more
    assert at_most(least_cost(dearer), least_cost(data))


@examples(45)
@given(problems(), st.data())
def test_i34_spot_dearer_than_on_demand_is_not_used(data: Data, draw: st.DataObject) -> None:
    """A dearer spot twin of an offer paid by the hour is admissible, changes no cost and is not rented."""
    hourly = [one for one in offers(data) if one["purchase"] == "on-demand" and "max_nodes" not in one]
    offer = draw.draw(st.sampled_from(hourly))
    amount, _, per = str(offer["price"]).partition("/")
    more = copied(data)
    offers(more).append(offer | {"name": "dear", "purchase": "spot", "price": f"{float(amount) * 1.1!r}/{per}"})
    before, after = planned(data, why=False), planned(more, why=False)
    assert (before.cost is None) == (after.cost is None)
    if before.cost is not None and after.cost is not None:
        assert close(before.cost.npv, after.cost.npv)
        assert "dear" not in {one.option for one in after.rentals}


@examples(45)
@given(problems(with_costs=False), st.sampled_from(("A", "B")), st.integers(1, 3))
def test_i26_free_hardware_never_raises_the_cost(data: Data, gpu: str, nodes: int) -> None:
    """Nodes that are there and cost nothing to keep can be left alone."""
    if gpu not in {one["gpu"] for one in (*offers(data), *held(data))} or gpu in data["limits"].get("gpus", {}):
        return
    more = copied(data)
    gift: Data = {"name": "gift", "gpu": gpu, "nodes": nodes, "residual": 0.0, "rack_units": 0}
    if "carbon" in data["limits"]:  # then its power has to be known, and the site has to take it
        gift |= {"power": "1 kW", "electricity": 0.0, "hosting": 0.0, "carbon": "0 g/kWh"}
        if any("power_limit" in key for key in data["site"]):
            return
    held(more).append(gift)
    assert at_most(least_cost(more), least_cost(data))


@examples(45)
@given(
    st.integers(1, 40).map(lambda n: n / 4),
    st.integers(2, 40).map(lambda n: n * 250.0),
    st.sampled_from((0.0, 120.0)),
    st.sampled_from((12, 24, 60)),
    st.sampled_from((0.0, 0.08)),
    st.sampled_from((1.0, 1.4)),
)
def test_i28_a_life_at_no_discount_costs_capex_and_running(
    load: float, capex: float, installation: float, life: int, upkeep: float, pue: float
) -> None:
    """Over its useful life at 0 % a bought node costs its price, installation and running, and is worth nothing."""
    nodes = math.ceil(load)
    mine = owned(
        "mine", "A", 1, capex, installation=installation, useful_life=f"{life} months", maintenance=upkeep,
        power="1 kW", idle_power="0.4 kW", electricity=0.1, pue=pue, hosting=20.0,
    )  # fmt: skip
    kw = nodes * 0.4 + load * 0.6
    monthly = nodes * (20.0 + capex * upkeep / 12) + kw * pue * 0.1 * HOURS_PER_MONTH
    expected = nodes * (capex + installation) + life * monthly
    assert close(least_cost(problem([service(rate=load)], [mine], [serves()], months=life)), expected)


# --- units and sizes --------------------------------------------------------------------------------------------------


@examples(50)
@given(problems(), st.sampled_from((1e-6, 1e-3, 1e12)), st.sampled_from((1e-6, 1e6)))
def test_i21_units_of_work_and_requests_do_not_matter(data: Data, work: float, requests: float) -> None:
    """Demand and yield in another unit (FLOP, TFLOP, thousand requests) are the same problem."""
    out = copied(data)
    for one in out["workloads"]:
        for entry in one.get("classes", ()):
            entry["requests_per_s"] *= requests
        if "work" in one:
            one["work"]["amount"] *= work
    for one in out["measurements"]:
        key, factor = ("per_gpu_hour", work) if "per_gpu_hour" in one else ("requests_per_s", requests)
        one[key] *= factor
    for one in out["costs"]:
        if "gb_per_1000_requests" in one:
            one["gb_per_1000_requests"] /= requests
    assert close(least_cost(out), least_cost(data))


@examples(45)
@given(problems(), st.sampled_from((600, 10_000, 1_000_000)))
def test_i33_how_large_a_large_number_is_does_not_matter(data: Data, most: int) -> None:
    """A stock far beyond need, which stands as the large constant in rows of minimum orders, changes nothing."""
    stocked = copied(data)
    for offer in offers(stocked):
        offer.setdefault("max_nodes", most)
    assert close(least_cost(stocked), least_cost(data))


# --- bounds, budgets, plan files --------------------------------------------------------------------------------------


@examples(50)
@given(problems(), st.sampled_from((0.0, 1e-4, 0.02, 0.5)))
def test_i15_bound_gap_and_status_agree(data: Data, gap: float) -> None:
    """Bound ≤ cost, gap = (cost − bound) ÷ cost, and optimal only within the gap asked."""
    answer = solved(data, SolverSettings(gap=gap)).solution
    if answer.status == "infeasible":
        assert least_cost(data) == math.inf
        return
    assert answer.bound <= answer.objective
    size = max(abs(answer.objective), 1e-12)  # what is there already may do all
    assert answer.gap == pytest.approx((answer.objective - answer.bound) / size, abs=1e-9)
    assert answer.status == "optimal"
    assert answer.gap <= gap + 1e-9
    proven = least_cost(data)
    assert at_most(answer.bound, proven)
    assert at_most(proven, answer.objective)


@examples(50)
@given(problems(with_limits=False), st.sampled_from((0.5, 1 - 1e-4, 1 + 1e-6, 2.0)))
def test_i27_the_budget_that_works_starts_at_the_cost(data: Data, share: float) -> None:
    """A budget of at least the least cost changes nothing, a smaller one is infeasible."""
    cost = least_cost(data)
    if cost <= 0:
        return
    limited = least_cost(data | {"limits": {"npv": cost * share}})
    assert close(limited, cost) if share > 1 else limited == math.inf


@examples(80)
@given(problems())
def test_i16_i25_i32_a_plan_read_back_is_whole(tmp_path_factory: pytest.TempPathFactory, data: Data) -> None:
    """The file alone gives rows, demand and cost again; lines are quantity × price; counts are whole numbers."""
    found = planned(data, why=False)
    if found.cost is None:
        return
    path = Path(tmp_path_factory.getbasetemp()) / "plan.json"
    write_plan(found, path)
    plan = read_plan(path)
    for one in plan["constraints"]:
        off = {"<=": one["lhs"] - one["rhs"], ">=": one["rhs"] - one["lhs"], "=": abs(one["lhs"] - one["rhs"])}
        assert off[one["sense"]] <= 1e-6 * max(1.0, abs(one["rhs"])), one
    for line in plan["cost_lines"]:
        assert close(line["quantity"] * line["unit_price"], line["amount"])
    assert close(math.fsum(line["npv"] for line in plan["cost_lines"]), plan["cost"]["npv"])
    spent = plan["cost"]["capex"] + plan["cost"]["opex"] - plan["cost"]["salvage"]
    assert close(math.fsum(line["amount"] for line in plan["cost_lines"]), spent)
    check_served(data, plan)
    check_counts(plan)


def check_served(data: Data, plan: Data) -> None:
    """What the schedule serves and works is what the problem asks for."""
    blocks, slices = plan["grid"]["blocks"], plan["grid"]["slices"]
    for one in data["workloads"]:
        more = 1 + one.get("headroom", 0.0)
        if "work" in one:
            runs: dict[str, float] = {}
            for entry in plan["schedule"]["work"]:
                if entry["job"] == one["name"]:
                    runs[entry["run"]] = runs.get(entry["run"], 0.0) + entry["amount"]
            assert runs
            assert all(close(done, one["work"]["amount"]) for done in runs.values())
            continue
        for entry in one["classes"]:
            for b, block in enumerate(blocks):
                for s, part in enumerate(slices):
                    want = entry["requests_per_s"] * one["traffic"]["by_slice"][part["name"]] * more
                    if "growth" in one["traffic"]:
                        last = data["horizon"]["periods"][block["period"]]
                        want *= 1.2 ** (last["start_month"] + last["months"] - 1)
                    else:
                        want *= one["traffic"]["by_period"][block["period"]]
                    served = math.fsum(
                        x["requests_per_s"]
                        for x in plan["schedule"]["served"]
                        if (x["workload"], x["class"], x["block"], x["slice"]) == (one["name"], entry["name"], b, s)
                    )
                    assert close(served, want)


def check_counts(plan: Data) -> None:
    """Nodes, replicas and GPUs are whole numbers, none below zero."""
    counts = [*plan["gpus"].values()]
    for listed, keys in (("acquisitions", ("nodes", "gpus")), ("rentals", ("peak_nodes",))):
        counts += [one[key] for one in plan[listed] for key in keys]
    counts += [one["nodes"] for one in plan["schedule"]["rented"]]
    counts += [one["replicas"] for one in plan["schedule"]["replicas"]]
    assert all(isinstance(count, int) and count >= 0 for count in counts)


@examples(45)
@given(problems(), st.integers(0, 1000))
def test_i31_the_same_problem_has_the_same_answer(data: Data, seed: int) -> None:
    """With one thread and a seed the plan is the same, with another seed the cost is."""
    one = solved(data, SolverSettings(gap=0, threads=1, seed=seed)).solution
    again = solved(data, SolverSettings(gap=0, threads=1, seed=seed)).solution
    assert one.values == again.values
    other = solved(data, SolverSettings(gap=0, threads=2, seed=seed + 1))
    assert other.solution.status == "infeasible" if one.status == "infeasible" else close(other.cost, one.objective)


@examples(45)
@given(st.lists(st.tuples(prices, st.integers(1, 3)), min_size=1, max_size=3), st.integers(1, 12))
def test_i25_the_cost_is_the_sum_of_what_is_rented(offers_: list[tuple[float, int]], load: int) -> None:
    """Nodes × price × hours of every rental, added up, is the cost."""
    listed = {f"o{i}": price for i, (price, _) in enumerate(offers_)} | {"rest": 9.0}
    quotes = [on_demand(f"o{i}", "A", 1, price, max_nodes=stock) for i, (price, stock) in enumerate(offers_)]
    plan = planned(problem([service(rate=load)], [*quotes, on_demand("rest", "A", 1, 9.0)], [serves()], months=1))
    total = math.fsum(one.peak_nodes * listed[one.option] * HOURS_PER_MONTH for one in plan.rentals)
    assert close(plan.cost.npv, total)
    assert sum(one.peak_nodes for one in plan.rentals) == load
