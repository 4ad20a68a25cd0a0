"""Properties of least costs on random problems with all families mixed: offers, demand and limits (I01 to I24).

Costs only, never mixes. Every cost is that of a plan at gap 0 by the public path, which the audit found nothing in.
"""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from tests.model.builders import (
    HOURS_PER_MONTH,
    HOURS_PER_YEAR,
    Data,
    at_most,
    close,
    job,
    least_cost,
    on_demand,
    planned,
    problem,
    serves,
    service,
    solved,
    works,
)
from tests.model.changes import (
    copied,
    held,
    loosened,
    offers,
    scaled_demand,
    usable,
    with_offers,
    without_workloads,
)
from tests.model.strategies import GPUS, examples, months_of, problems, quotes


@examples(50)
@given(problems(), quotes(99))
def test_i01_another_offer_never_raises_the_cost(data: Data, offer: Data) -> None:
    """Old plans stay feasible when an offer of a known GPU type is added."""
    there = {one["gpu"] for one in (*offers(data), *held(data))}
    more = copied(data)
    offers(more).append(offer | {"gpu": offer["gpu"] if offer["gpu"] in there else "A"})
    assert at_most(least_cost(more), least_cost(data))


@examples(50)
@given(problems(), st.data())
def test_i02_removing_an_unused_offer_leaves_the_cost(data: Data, draw: st.DataObject) -> None:
    """An offer that the plan does not use can be taken away; where its terms cut the grid, jobs may then cost more.

    (Blocks hold all their time in proportion: without a cut a job cannot wait for a cheaper part of one.)
    """
    before = planned(data)
    if before.cost is None:
        return
    used = {one.option for one in (*before.acquisitions, *before.rentals)}
    unused = [one["name"] for one in offers(data) if one["name"] not in used]
    dropped = draw.draw(st.sampled_from(unused)) if unused else None
    less = with_offers(data, [one for one in offers(data) if one["name"] != dropped])
    if offers(less):
        cuts = any(one["name"] == dropped and one["purchase"] in ("reserved", "owned") for one in offers(data))
        assert (at_most if cuts else close)(before.cost.npv, least_cost(less))


@examples(50)
@given(problems(), st.integers(0, 2**32))
def test_i05_order_does_not_matter(data: Data, seed: int) -> None:
    """Offers, workloads, measurements, slices and classes are sets."""
    shuffled = copied(data)
    shuffle = random.Random(seed).shuffle
    lists = [shuffled["workloads"], shuffled["measurements"], shuffled["slices"], offers(shuffled)]
    for one in (*lists, *(w["classes"] for w in shuffled["workloads"] if "classes" in w)):
        shuffle(one)
    assert close(least_cost(shuffled), least_cost(data))


WORDS = ("no", "1e3", "ü", "A-1", "A+1", "__", "a__b", "b__c", "-", "null", "A", "r0", "«¬»", "0x1F", "a  b", "a b")
NAMES = (*WORDS, "x" * 300, "cost", "total", "base", "month-0", "row 1", "{}", "%s", "'", '"')


@examples(50)
@given(problems(), st.permutations(NAMES))
def test_i06_names_carry_no_meaning(data: Data, names: list[str]) -> None:
    """Any text may name an offer, a workload, a class, a slice or a provider."""
    fresh = iter(names)
    new: dict[str, str] = {}

    def renamed(name: str) -> str:
        if name not in new:
            new[name] = next(fresh)
        return new[name]

    out = copied(data)
    for nodes in held(out):
        nodes["name"] = renamed(nodes["name"])
    for offer in offers(out):
        offer["name"], offer["provider"] = renamed(offer["name"]), renamed(offer["provider"])
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
    for key in ("providers", "stock"):
        if key in out["limits"]:
            out["limits"][key] = {renamed(k): v for k, v in out["limits"][key].items()}
    assert close(least_cost(out), least_cost(data))


@examples(60)
@given(problems(), st.data())
def test_i07_relaxing_a_wish_never_raises_the_cost(data: Data, draw: st.DataObject) -> None:
    """The feasible set grows."""
    assert at_most(least_cost(loosened(data, draw)), least_cost(data))


@examples(45)
@given(problems(with_limits=False))
def test_i08_a_limit_out_of_reach_is_no_limit(data: Data) -> None:
    """Limits so loose that nothing meets them change nothing."""
    loose = copied(data)
    there = {one["gpu"] for one in (*offers(data), *held(data))}
    loose["limits"] = {"capex": 1e12, "opex": 1e12, "npv": 1e12, "spot_share": 1.0}
    loose["limits"] |= {"gpus": dict.fromkeys(there, 10**6), "stock": {"base": 10**6}}
    loose["limits"]["providers"] = {"base": {"max_nodes": 10**6}}
    loose["site"] = data.get("site", {}) | {"power_limit_it": "1000000 kW"}
    assert close(least_cost(loose), least_cost(data))


@examples(50)
@given(problems(), st.sampled_from((1.01, 1.5, 3.0)))
def test_i09_more_demand_never_lowers_the_cost(data: Data, k: float) -> None:
    """A plan for more serves less. The sizes that a job may have stay as they are."""
    more = scaled_demand(data, k)
    for one, before in zip(more["workloads"], data["workloads"], strict=True):
        if "max_gpus" in before:
            one["max_gpus"] = before["max_gpus"]
    assert at_most(least_cost(data), least_cost(more))


@examples(50)
@given(problems(with_limits=False, with_stock=False))
def test_i10_twice_the_demand_costs_at_most_twice(data: Data) -> None:
    """Without limits the plan can be bought twice, and what is held can be had twice."""
    twice = scaled_demand(data, 2)
    for nodes in held(twice):
        nodes["nodes"] *= 2
    assert at_most(least_cost(twice), 2 * least_cost(data))


@examples(50)
@given(problems(with_limits=False, with_stock=False, with_existing=False))
def test_i11_together_costs_at_most_the_sum(data: Data) -> None:
    """Without limits the plans of two halves of the workloads can run side by side."""
    names = [one["name"] for one in data["workloads"]]
    parts = [set(names[:1]), set(names[1:])]
    apart = sum(least_cost(without_workloads(data, part)) for part in parts if part)
    assert at_most(least_cost(data), apart)


@examples(40)
@given(problems())
def test_i12_a_single_type_is_one_of_the_plans(data: Data) -> None:
    """No plan of one GPU type is cheaper than the best of all."""
    for gpu in GPUS:
        kept = [one for one in offers(data) if one["gpu"] == gpu]
        single = with_offers(data, kept)
        measured = {one["workload"] for one in single["measurements"]}
        if kept and all(one["name"] in measured for one in single["workloads"]):
            assert at_most(least_cost(data), least_cost(single))


@examples(60)
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


@examples(50)
@given(problems())
def test_i14_the_relaxation_is_a_lower_bound(data: Data) -> None:
    """Without integrality the cost is not higher."""
    assert at_most(solved(data, relaxed=True).cost, least_cost(data))


@examples(45)
@given(problems(), st.data())
def test_i17_an_offer_split_in_two_costs_the_same(data: Data, draw: st.DataObject) -> None:
    """Two equal offers with the stock of one between them, where nothing is counted per order.

    A job that may use one pool only can use either; then the split may cost more, never less.
    """
    split = copied(data)
    limited = {*data["limits"].get("stock", {}), *data["limits"].get("providers", {})}
    candidates = [
        one
        for one in offers(split)
        if one.get("max_nodes", 0) >= 2 and "min_nodes" not in one and one["name"] not in limited
    ]
    if not candidates:
        return
    offer = draw.draw(st.sampled_from(candidates))
    twin = offer | {"name": "twin", "max_nodes": offer["max_nodes"] // 2}
    offer["max_nodes"] -= twin["max_nodes"]
    offers(split).append(twin)
    whole, parts = least_cost(data), least_cost(split)
    has_jobs = any("work" in one for one in split["workloads"])
    assert at_most(whole, parts) if has_jobs else close(parts, whole)


@examples(45)
@given(problems(), st.integers(1, 30), st.booleans())
def test_i18_two_equal_jobs_cost_what_one_of_twice_the_work_costs(data: Data, size: int, limited: bool) -> None:
    """Where GPUs may be shared, no size binds and rents are paid as used; else the one costs no more than the two.

    Billing steps are rounded up once per run.
    """
    apart = limited or any("billing_step" in one for one in offers(data))
    there = sorted({one["gpu"] for one in (*offers(data), *held(data))})
    bound = {"max_gpus": 40} if limited else {}
    twins = [job(name, 25.0 * size, spread="any", **bound) for name in ("twin-1", "twin-2")]
    merged = job("twin-1", 50.0 * size, spread="any", **{key: 2 * most for key, most in bound.items()})
    costs = []
    for jobs in (twins, [merged]):
        more = copied(data)
        more["workloads"] += jobs
        more["measurements"] += [works(one["name"], 2.0, gpu=gpu) for one in jobs for gpu in there]
        costs.append(least_cost(more))
    assert at_most(costs[1], costs[0])
    assert apart or close(costs[1], costs[0])


@examples(45)
@given(problems(), st.sampled_from((1.0, 1.2, 3.0)), st.data())
def test_i19_a_dominated_offer_changes_nothing(data: Data, factor: float, draw: st.DataObject) -> None:
    """A copy of an offer without a stock limit at the same price or a higher one is never needed."""
    limited = {*data["limits"].get("stock", {})}
    unlimited = [one for one in offers(data) if "max_nodes" not in one and one["name"] not in limited]
    offer = draw.draw(st.sampled_from(unlimited)) if unlimited else None
    if offer is None:
        return
    amount, _, per = str(offer["price"]).partition("/")
    # A dearer purchase is worth more in the end: only an equal one is dominated for sure.
    worse = offer | {"name": "worse"} | ({"price": f"{float(amount) * factor!r}/{per}"} if per else {})
    more = copied(data)
    offers(more).append(worse)
    assert close(least_cost(more), least_cost(data))


@examples(25)
@given(problems(with_limits=False), st.data())
def test_i22_infeasible_stays_infeasible(data: Data, draw: st.DataObject) -> None:
    """Another limit, or an offer less, does not help a problem that has no plan."""
    cost = least_cost(data)
    if cost <= 0:
        return
    barred = data | {"limits": {"npv": cost / 2}}
    assert least_cost(barred) == math.inf
    gone = draw.draw(st.sampled_from(offers(data)[1:]))["name"]
    less = usable(with_offers(barred, [one for one in offers(data) if one["name"] != gone]))
    more = barred | {"limits": {"npv": cost / 2, "spot_share": 0.0, "capex": 1e9}}
    for harder in (less, more):
        assert least_cost(harder) == math.inf


@examples(25)
@given(problems(with_limits=False, with_existing=False))
def test_i23_nothing_to_be_had_is_infeasible_with_a_reason(data: Data) -> None:
    """With every offer sold out there is no plan and no cost, and the answer says what falls short."""
    barred = with_offers(data, [{k: v for k, v in one.items() if k != "min_nodes"} for one in offers(data)])
    for offer in offers(barred):
        offer["max_nodes"] = 0
    plan = planned(barred)
    assert (plan.status, plan.cost) == ("infeasible", None)
    named = {str(part) for one in plan.infeasibility for part in one.index}
    assert named & {one["name"] for one in (*data["workloads"], *offers(data))}


@examples(45)
@given(problems(with_limits=False, with_costs=False))
def test_i24_zero_demand_costs_what_cannot_be_avoided(data: Data) -> None:
    """Nothing is bought for nothing: what is held costs its fees, idle power and worth; no more, no less."""
    idle = without_workloads(data, {one["name"] for one in data["workloads"] if "classes" in one})
    idle = scaled_demand(idle, 0)
    rate, months = data["finance"]["discount_rate"], months_of(data)
    expected = 0.0
    for nodes in held(idle):
        end = float(nodes["term"].split()[0]) if "term" in nodes else months  # a term is paid in full
        monthly = nodes.get("fee", 0.0) * HOURS_PER_MONTH
        if "power" in nodes:  # 30 % of the nameplate while idle, at 0.1 per kWh
            monthly += 0.3 * 0.1 * HOURS_PER_MONTH
        expected += nodes["nodes"] * monthly * sum((1 + rate) ** (-(m + 1) / 12) for m in range(int(end)))
        age = (12 + months) / 60
        worth = nodes.get("paid", 0.0) * (1 - age) * (1 + rate) ** (-months / 12)
        expected -= nodes["nodes"] * worth
    plan = planned(idle)
    assert close(plan.cost.npv, expected)
    assert not plan.acquisitions
    assert not plan.rentals
