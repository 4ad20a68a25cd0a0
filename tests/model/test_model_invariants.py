"""Properties I01–I16 and some relatives on random problems with the families mixed. Costs only, never mixes."""

import copy
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.plan import read_plan, write_plan
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    HOURS_PER_YEAR,
    Data,
    at_most,
    close,
    least_cost,
    on_demand,
    parsed,
    problem,
    serves,
    service,
    solved,
    the_catalog,
)
from tests.model.strategies import problems, quotes

EXAMPLES = 45
examples = settings(max_examples=EXAMPLES)
MONEY = ("price", "upfront", "installation", "electricity", "hosting", "fee", "paid")


def offers(data: Data) -> list[Data]:
    return data["options"]["quotes"]


def scaled_money(data: Data, k: float) -> Data:
    """The same problem in another currency unit: every amount times k, limits too."""
    out = copy.deepcopy(data)
    for offer in offers(out):
        for key in MONEY:
            if key in offer:
                amount, _, per = str(offer[key]).partition("/")
                offer[key] = f"{float(amount) * k!r}/{per}" if per else float(amount) * k
    for key in ("capex", "opex", "npv"):
        if key in out["limits"]:
            out["limits"][key] *= k
    return out


def scaled_demand(data: Data, k: float) -> Data:
    """k times the rates and the work; a job may then use k times the GPUs."""
    out = copy.deepcopy(data)
    for one in out["workloads"]:
        for entry in one.get("classes", ()):
            entry["requests_per_s"] *= k
        if "work" in one:
            one["work"]["amount"] *= k
            if "max_gpus" in one:
                one["max_gpus"] = math.ceil(one["max_gpus"] * k)
    return out


def without_workloads(data: Data, keep: set[str]) -> Data:
    out = copy.deepcopy(data)
    out["workloads"] = [one for one in out["workloads"] if one["name"] in keep]
    out["measurements"] = [one for one in out["measurements"] if one["workload"] in keep]
    return out


@examples
@given(problems(), quotes(99))
def test_i01_another_offer_never_raises_the_cost(data: Data, offer: Data) -> None:
    """Old plans stay feasible when an offer is added."""
    more = copy.deepcopy(data)
    offers(more).append(offer)
    assert at_most(least_cost(more), least_cost(data))


@examples
@given(problems(), st.data())
def test_i02_removing_an_unused_offer_leaves_the_cost(data: Data, draw: st.DataObject) -> None:
    """An offer that the plan does not use can be taken away."""
    before = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    assert before.cost is not None
    used = {one.option for one in (*before.acquisitions, *before.rentals)}
    unused = [one for one in offers(data) if one["name"] not in used]
    less = copy.deepcopy(data)
    dropped = draw.draw(st.sampled_from(unused))["name"] if unused else None
    less["options"]["quotes"] = [one for one in offers(data) if one["name"] != dropped]
    assert close(least_cost(less), before.cost.npv)


@examples
@given(problems(), st.sampled_from((1e-3, 0.37, 7.0, 1e4)))
def test_i03_prices_times_k_is_cost_times_k(data: Data, k: float) -> None:
    """Cost is linear in money, limits in money included (I20: a change of currency)."""
    assert close(least_cost(scaled_money(data, k)), k * least_cost(data))


@examples
@given(problems(), st.integers(1, 50))
def test_i04_a_fee_of_every_plan_adds_itself(data: Data, fee: int) -> None:
    """A signed reservation that serves nothing adds its fee to the end of its term, whatever is planned."""
    months, rate = data["horizon"]["months"], data["finance"]["discount_rate"]
    more = copy.deepcopy(data)
    more["gpus"]["idle"] = {}
    signed = {"name": "signed", "gpu": "idle", "nodes": 1, "term": f"{months} months", "fee": f"{fee}/month"}
    more["options"]["existing"] = [signed]
    paid = sum(fee * (1 + rate) ** (-(m + 1) / 12) for m in range(months))
    assert close(least_cost(more), least_cost(data) + paid)


@examples
@given(problems(), st.integers(0, 2**32))
def test_i05_order_does_not_matter(data: Data, seed: int) -> None:
    """Offers, workloads, measurements, slices and classes are sets."""
    shuffled = copy.deepcopy(data)
    shuffle = random.Random(seed).shuffle
    lists = [shuffled["workloads"], shuffled["measurements"], shuffled["slices"], offers(shuffled)]
    for one in (*lists, *(w["classes"] for w in shuffled["workloads"] if "classes" in w)):
        shuffle(one)
    assert close(least_cost(shuffled), least_cost(data))


WORDS = ("no", "1e3", "ü", "A-1", "A+1", "__", "a__b", "b__c", "-", "null", "A", "r0", "«¬»", "0x1F", "a  b", "a b")
NAMES = (*WORDS, "x" * 300)


@examples
@given(problems(), st.permutations(NAMES))
def test_i06_names_carry_no_meaning(data: Data, names: list[str]) -> None:
    """Any text may name an offer, a workload, a class, a slice or a provider."""
    fresh = iter(names)
    new: dict[str, str] = {}

    def renamed(name: str) -> str:
        if name not in new:
            new[name] = next(fresh)
        return new[name]

    out = copy.deepcopy(data)
    for offer in offers(out):
        offer["name"] = renamed(offer["name"])
    for one in out["workloads"]:
        one["name"] = renamed(one["name"])
        for entry in one.get("classes", ()):
            entry["name"] = renamed(entry["name"])
        if "traffic" in one:
            one["traffic"]["by_slice"] = {renamed(k): v for k, v in one["traffic"]["by_slice"].items()}
    for one in out["slices"]:
        one["name"] = renamed(one["name"])
    for one in out["measurements"]:
        one["workload"] = renamed(one["workload"])
        if "class" in one:
            one["class"] = renamed(one["class"])
    assert close(least_cost(out), least_cost(data))


def loosened(data: Data, draw: st.DataObject) -> Data:
    """One wish relaxed: a deadline, a limit, a stock, a job's sizes, or the rate of a replica."""
    out = copy.deepcopy(data)
    ways: list[Any] = []
    for one in out["workloads"]:
        ways += [(one, key, None) for key in ("deadline", "max_gpus", "min_gpus") if key in one]
    ways += [(offer, "max_nodes", offer["max_nodes"] + 1) for offer in offers(out) if "max_nodes" in offer]
    ways += [(offer, "min_nodes", None) for offer in offers(out) if "min_nodes" in offer]
    ways += [(out["limits"], "capex", out["limits"]["capex"] * 1.5)] if "capex" in out["limits"] else []
    ways += [(out["limits"], key, None) for key in ("spot_share", "gpus") if key in out["limits"]]
    ways += [(one, "requests_per_s", one["requests_per_s"] * 1.25) for one in out["measurements"] if "class" in one]
    where, key, value = draw.draw(st.sampled_from(ways))
    where.pop(key) if value is None else where.__setitem__(key, value)
    return out


@examples
@given(problems(), st.data())
def test_i07_relaxing_a_wish_never_raises_the_cost(data: Data, draw: st.DataObject) -> None:
    """The feasible set grows."""
    assert at_most(least_cost(loosened(data, draw)), least_cost(data))


@examples
@given(problems())
def test_i08_a_limit_out_of_reach_is_no_limit(data: Data) -> None:
    """Limits so loose that nothing meets them change nothing."""
    loose = copy.deepcopy(data)
    loose["limits"] = {"capex": 1e12, "opex": 1e12, "npv": 1e12, "spot_share": 1.0, "gpus": {"A": 10**6, "B": 10**6}}
    loose["limits"]["providers"] = {"base": {"max_nodes": 10**6}}
    free = data | {"limits": {}}
    assert close(least_cost(loose), least_cost(free))


@examples
@given(problems(), st.sampled_from((1.01, 1.5, 3.0)))
def test_i09_more_demand_never_lowers_the_cost(data: Data, k: float) -> None:
    """A plan for more serves less. The sizes that a job may have stay as they are."""
    more = scaled_demand(data, k)
    for one, before in zip(more["workloads"], data["workloads"], strict=True):
        if "max_gpus" in before:
            one["max_gpus"] = before["max_gpus"]
    assert at_most(least_cost(data), least_cost(more))


@examples
@given(problems(with_limits=False, with_stock=False))
def test_i10_twice_the_demand_costs_at_most_twice(data: Data) -> None:
    """Without limits the plan can be bought twice."""
    assert at_most(least_cost(scaled_demand(data, 2)), 2 * least_cost(data))


@examples
@given(problems(with_limits=False, with_stock=False))
def test_i11_together_costs_at_most_the_sum(data: Data) -> None:
    """Without limits the plans of two halves of the workloads can run side by side."""
    names = [one["name"] for one in data["workloads"]]
    parts = [set(names[:1]), set(names[1:])]
    apart = sum(least_cost(without_workloads(data, part)) for part in parts if part)
    assert at_most(least_cost(data), apart)


@examples
@given(problems())
def test_i12_a_single_type_is_one_of_the_plans(data: Data) -> None:
    """No plan of one GPU type is cheaper than the best of all."""
    for gpu in ("A", "B"):
        single = copy.deepcopy(data)
        single["options"]["quotes"] = [one for one in offers(data) if one["gpu"] == gpu]
        if offers(single):
            assert at_most(least_cost(data), least_cost(single))


@examples
@given(
    st.integers(1, 10**6).map(lambda n: n / 1000),
    st.integers(1, 10**4).map(lambda n: n / 1000),
    st.integers(1, 500).map(lambda n: n / 100),
)
def test_i13_one_offer_costs_price_times_ceil(need: float, capacity: float, price: float) -> None:
    """One offer, one service: price × ⌈need ÷ capacity⌉, exactly."""
    data = problem([service(rate=need)], [on_demand(price=price)], [serves(rate=capacity)])
    nodes = -(-round(need * 1000) // round(capacity * 1000))
    assert close(least_cost(data), nodes * price * HOURS_PER_YEAR)


@examples
@given(problems())
def test_i14_the_relaxation_is_a_lower_bound(data: Data) -> None:
    """Without integrality the cost is not higher."""
    assert at_most(solved(data, relaxed=True).cost, least_cost(data))


@examples
@given(problems(), st.sampled_from((0.0, 1e-4, 0.02, 0.5)))
def test_i15_bound_gap_and_status_agree(data: Data, gap: float) -> None:
    """Bound ≤ cost, gap = (cost − bound) ÷ cost, and optimal only within the gap asked."""
    answer = solved(data, SolverSettings(gap=gap)).solution
    assert answer.bound <= answer.objective
    assert answer.gap == pytest.approx((answer.objective - answer.bound) / abs(answer.objective), abs=1e-9)
    assert answer.status == "optimal"
    assert answer.gap <= gap + 1e-9
    proven = least_cost(data)
    assert at_most(answer.bound, proven)
    assert at_most(proven, answer.objective)


@examples
@given(problems())
def test_i16_a_plan_read_back_meets_its_rows_and_its_cost(tmp_path_factory: pytest.TempPathFactory, data: Data) -> None:
    """The file alone gives the rows, the demand served and the cost again, to 1e-6 relative."""
    path = Path(tmp_path_factory.getbasetemp()) / "plan.json"
    write_plan(solve(parsed(data), the_catalog(), SolverSettings(gap=0)), path)
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


def check_served(data: Data, plan: Data) -> None:
    """What the schedule serves and works is what the problem asks for."""
    blocks, slices = plan["grid"]["blocks"], plan["grid"]["slices"]
    for one in data["workloads"]:
        if "work" in one:
            done = math.fsum(entry["amount"] for entry in plan["schedule"]["work"] if entry["job"] == one["name"])
            assert close(done, one["work"]["amount"])
            continue
        for entry in one["classes"]:
            for b, block in enumerate(blocks):
                for s, part in enumerate(slices):
                    want = entry["requests_per_s"] * one["traffic"]["by_slice"][part["name"]]
                    want *= one["traffic"]["by_period"][block["period"]]
                    served = math.fsum(
                        x["requests_per_s"]
                        for x in plan["schedule"]["served"]
                        if (x["workload"], x["class"], x["block"], x["slice"]) == (one["name"], entry["name"], b, s)
                    )
                    assert close(served, want)


@examples
@given(problems(), st.data())
def test_i17_an_offer_split_in_two_costs_the_same(data: Data, draw: st.DataObject) -> None:
    """Two equal offers with the stock of one between them, where nothing is counted per order."""
    split = copy.deepcopy(data)
    candidates = [one for one in offers(split) if one.get("max_nodes", 0) >= 2 and "min_nodes" not in one]
    if not candidates:
        return
    offer = draw.draw(st.sampled_from(candidates))
    twin = offer | {"name": "twin", "max_nodes": offer["max_nodes"] // 2}
    offer["max_nodes"] -= twin["max_nodes"]
    offers(split).append(twin)
    spread = [one for one in split["workloads"] if "work" in one]
    assert close(least_cost(split), least_cost(data)) or (spread and at_most(least_cost(data), least_cost(split)))


@examples
@given(problems(), st.sampled_from((1e-6, 1e-3, 1e12)), st.sampled_from((1e-6, 1e6)))
def test_i21_units_of_work_and_requests_do_not_matter(data: Data, work: float, requests: float) -> None:
    """Demand and yield in another unit (FLOP, TFLOP, thousand requests) are the same problem."""
    out = copy.deepcopy(data)
    for one in out["workloads"]:
        for entry in one.get("classes", ()):
            entry["requests_per_s"] *= requests
        if "work" in one:
            one["work"]["amount"] *= work
    for one in out["measurements"]:
        key, factor = ("per_gpu_hour", work) if "per_gpu_hour" in one else ("requests_per_s", requests)
        one[key] *= factor
    assert close(least_cost(out), least_cost(data))


@examples
@given(problems(with_limits=False), st.sampled_from((0.5, 1 - 1e-4, 1 + 1e-6, 2.0)))
def test_i27_the_budget_that_works_starts_at_the_cost(data: Data, share: float) -> None:
    """A budget of at least the least cost changes nothing, a smaller one is infeasible."""
    cost = least_cost(data)
    limited = least_cost(data | {"limits": {"npv": cost * share}})
    assert close(limited, cost) if share > 1 else limited == math.inf


@settings(max_examples=20)
@given(problems(), st.integers(0, 1000))
def test_i31_the_same_problem_has_the_same_answer(data: Data, seed: int) -> None:
    """With one thread and a seed the plan is the same, with another seed the cost is."""
    one = solved(data, SolverSettings(gap=0, threads=1, seed=seed)).solution
    again = solved(data, SolverSettings(gap=0, threads=1, seed=seed)).solution
    assert one.values == again.values
    assert close(solved(data, SolverSettings(gap=0, threads=2, seed=seed + 1)).cost, one.objective)
