"""Least costs against enumeration with arithmetic of its own, one kind of problem at a time."""

import itertools
import math
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

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
    problem,
    reserved,
    serves,
    service,
    spot,
    works,
)
from tests.model.strategies import examples

EXAMPLES = 30
prices = st.integers(2, 60).map(lambda n: n / 20)
rates = st.integers(1, 24).map(lambda n: n / 4)
stocks = st.one_of(st.none(), st.integers(0, 4))


def whole(load: float) -> int:
    """Machines for a load, by the tolerance of docs/model.md."""
    return math.ceil(load - 1e-9 * max(1.0, load))


def discounted_months(rate: float, start: int, end: int) -> float:
    """Worth of 1 at the end of every month from start to end."""
    return sum((1 + rate) ** (-(m + 1) / 12) for m in range(start, end))


@examples(EXAMPLES)
@given(
    st.lists(st.tuples(st.sampled_from((1, 2, 4, 8)), prices, stocks), min_size=1, max_size=3),
    st.integers(1, 13),
)
def test_one_class_on_whole_nodes(offers: list[tuple[int, float, int | None]], gpus_needed: int) -> None:
    """A load in GPUs is covered by whole nodes of several sizes within their stock."""
    choices = [range((whole(gpus_needed / size) if stock is None else stock) + 1) for size, _, stock in offers]
    costs = [
        sum(n * price for n, (_, price, _) in zip(counts, offers, strict=True)) * HOURS_PER_YEAR
        for counts in itertools.product(*choices)
        if sum(n * size for n, (size, _, _) in zip(counts, offers, strict=True)) >= gpus_needed
    ]
    quotes = [
        on_demand(f"o{i}", "A", size, price, **({} if stock is None else {"max_nodes": stock}))
        for i, (size, price, stock) in enumerate(offers)
    ]
    data = problem([service(rate=gpus_needed)], quotes, [serves(rate=1.0, gpus_per_replica=1)])
    assert close(least_cost(data), min(costs, default=math.inf))


@examples(EXAMPLES)
@given(st.tuples(rates, rates), st.tuples(rates, rates), st.tuples(rates, rates), st.tuples(prices, prices))
def test_two_classes_share_the_time_of_two_types(
    load: tuple[float, float], on_a: tuple[float, float], on_b: tuple[float, float], price: tuple[float, float]
) -> None:
    """Two classes on two GPU types: each goes where it saves most, and a node shares its time between them."""

    def left_for_b(nodes_a: int) -> float:
        room, busy = float(nodes_a), 0.0
        gain = [(on_a[i] / on_b[i], load[i] / on_a[i], load[i] / on_b[i]) for i in (0, 1)]
        for _, time_a, time_b in sorted(gain, reverse=True):
            share = min(1.0, room / time_a)
            room -= share * time_a
            busy += (1 - share) * time_b
        return busy

    most = whole(load[0] / on_a[0] + load[1] / on_a[1])
    best = min(a * price[0] + whole(left_for_b(a)) * price[1] for a in range(most + 1)) * HOURS_PER_YEAR
    measured = [
        serves(rate=on[i], gpu=gpu, **{"class": name})
        for gpu, on in (("A", on_a), ("B", on_b))
        for i, name in enumerate(("x", "y"))
    ]
    workload = classes_service("chat", {"x": load[0], "y": load[1]})
    quotes = [on_demand("a", "A", 1, price[0]), on_demand("b", "B", 1, price[1])]
    assert close(least_cost(problem([workload], quotes, measured)), best)


@examples(EXAMPLES)
@given(
    st.integers(1, 12),
    st.integers(0, 12),
    st.sampled_from((1, 2, 4, 8)),
    prices,
    st.integers(1, 40).map(lambda n: n * 50.0),
    st.sampled_from((100, 250, 800)),
)
def test_job_holds_whole_nodes(least: int, span: int, size: int, price: float, work: float, window_h: int) -> None:
    """A job on rented nodes pays ⌈g/n⌉ nodes for g GPUs at once, may change g over time, and must end in time."""
    ways = [(g, -(-g // size)) for g in range(least, least + span + 1)] + [(0, 0)]
    mean_gpus = work / window_h
    costs = [math.inf]
    for (g1, n1), (g2, n2) in itertools.product(ways, ways):
        if g1 >= mean_gpus - 1e-9 and g1 > g2:
            share = (mean_gpus - g2) / (g1 - g2)
            if 0 <= share <= 1 + 1e-12:
                costs.append((share * n1 + (1 - share) * n2) * window_h * price)
    train = job(amount=work, min_gpus=least, max_gpus=least + span, deadline=f"{window_h} h")
    data = problem([train], [on_demand("o", "A", size, price)], [works(gpus_per_replica=1)])
    assert close(least_cost(data), min(costs))


@examples(EXAMPLES)
@given(
    st.tuples(rates, rates),
    st.sampled_from((0.25, 0.5, 0.75)),
    prices,
    prices,
    st.integers(1, 4),
    st.sampled_from((0.0, 100.0, 500.0)),
    st.sampled_from((0.0, 0.08)),
    st.sampled_from((3, 5, 12)),
)
def test_reserved_base_and_on_demand_peak(
    load: tuple[float, float],
    day: float,
    paid: float,
    hourly: float,
    least: int,
    upfront: float,
    rate: float,
    term: int,
) -> None:
    """Two slices and one order point: a reserved base of at least a minimum order, the rest rented slice by slice."""
    shares, months = (day, 1 - day), 7
    best = math.inf
    for base in {0, *range(least, 40)}:
        held = base * (paid * HOURS_PER_MONTH * discounted_months(rate, 0, term) + upfront)
        rents = 0.0
        for start, end, there in ((0, min(term, months), base), (min(term, months), months, 0)):
            worth = discounted_months(rate, start, end) * HOURS_PER_MONTH * hourly
            rents += sum(max(0, whole(x) - there) * s * worth for x, s in zip(load, shares, strict=True))
        best = min(best, held + rents)
    slices = [{"name": "day", "share_of_hours": day}, {"name": "night", "share_of_hours": 1 - day}]
    workload = classes_service("chat", {"all": 1.0}, traffic={"by_slice": {"day": load[0], "night": load[1]}})
    quotes = [reserved("r", "A", 1, paid, term, upfront=upfront, min_nodes=least), on_demand("o", "A", 1, hourly)]
    data = problem([workload], quotes, [serves()], months=months, slices=slices, finance={"discount_rate": rate})
    assert close(least_cost(data), best)


@examples(EXAMPLES)
@given(rates, rates, st.tuples(prices, prices), st.sampled_from((0.0, 0.1, 0.25, 0.5, 1.0)), stocks)
def test_spot_serves_at_most_its_share(
    load: float, per_node: float, price: tuple[float, float], share: float, stock: int | None
) -> None:
    """Spot nodes are whole too, lose work to interruptions, and serve no more than their share of the rate."""
    kept = 1 / (1 + 0.2 * 0.5)
    most = whole(share * load / (per_node * kept)) if stock is None else stock
    best = math.inf
    for spots in range(most + 1):
        served = min(share * load, spots * per_node * kept)
        best = min(best, spots * price[0] + whole((load - served) / per_node) * price[1])
    extra = {} if stock is None else {"max_nodes": stock}
    quotes = [
        spot("s", "A", 1, price[0], interruptions_per_hour=0.2, hours_lost="0.5 h", **extra),
        on_demand("o", "A", 1, price[1]),
    ]
    data = problem([service(rate=load)], quotes, [serves(rate=per_node)], limits={"spot_share": share})
    assert close(least_cost(data), best * HOURS_PER_YEAR)


@dataclass(frozen=True)
class Buying:
    """A choice between buying in either of two half-years and renting at an hourly price."""

    load: tuple[float, float]
    capex: float
    hourly: float
    lead: int
    end_value: float
    rate: float
    budget: float | None
    most: int | None


INSTALLATION, LIFE, KWH, IDLE_KW, LOAD_KW, PUE, HOSTING, UPKEEP = 120.0, 24, 0.2, 0.3, 1.0, 1.5, 30.0, 0.06


def cost_of_orders(case: Buying, orders: tuple[int, int]) -> float:
    """NPV month by month when so many nodes are ordered at months 0 and 6; infinite past a limit."""
    if case.budget is not None and sum(orders) * (case.capex + INSTALLATION) > case.budget:
        return math.inf
    total = 0.0
    for order, nodes in zip((0, 6), orders, strict=True):
        age = 12 - order - case.lead
        worth = case.capex * (1 + (case.end_value - 1) * age / LIFE) / (1 + case.rate)
        total += nodes * ((case.capex + INSTALLATION) * (1 + case.rate) ** (-order / 12) - worth)
    for month in range(12):
        have = orders[0] * (month >= case.lead) + orders[1] * (month >= 6 + case.lead)
        if case.most is not None and have > case.most:
            return math.inf
        load = case.load[month // 6]
        rent = max(0, whole(load) - have)
        busy = max(0.0, load - rent)
        kw = (have * IDLE_KW + busy * (LOAD_KW - IDLE_KW)) * PUE
        upkeep = have * (HOSTING + case.capex * UPKEEP / 12)
        month_cost = HOURS_PER_MONTH * (rent * case.hourly + kw * KWH) + upkeep
        total += month_cost * (1 + case.rate) ** (-(month + 1) / 12)
    return total


@examples(2 * EXAMPLES)
@given(
    st.builds(
        Buying,
        load=st.tuples(*[st.sampled_from((1.0, 2.5, 4.0))] * 2),
        capex=st.integers(2, 40).map(lambda n: n * 250.0),
        hourly=st.integers(10, 60).map(lambda n: n / 20),
        lead=st.sampled_from((0, 1, 3)),
        end_value=st.sampled_from((0.0, 0.4, 1.0)),
        rate=st.sampled_from((0.0, 0.1)),
        budget=st.one_of(st.none(), st.integers(0, 12).map(lambda n: n * 2_000.0)),
        most=st.one_of(st.none(), st.integers(0, 5)),
    )
)
def test_buying_with_resale_energy_and_limits(case: Buying) -> None:
    """Bought or rented: price, installation, energy, hosting, upkeep, resale, lead time, a budget, a provider limit."""
    best = min(cost_of_orders(case, orders) for orders in itertools.product(range(6), range(6)))
    limits: Data = {} if case.budget is None else {"capex": case.budget}
    limits |= {} if case.most is None else {"providers": {"home": {"max_nodes": case.most}}}
    mine = owned(
        "mine", "A", 1, case.capex, installation=INSTALLATION, lead_time=f"{case.lead} months", provider="home",
        useful_life=f"{LIFE} months", residual=case.end_value, power=f"{LOAD_KW} kW", idle_power=f"{IDLE_KW} kW",
        pue=PUE, electricity=KWH, hosting=HOSTING, maintenance=UPKEEP,
    )  # fmt: skip
    workload = classes_service("chat", {"all": 1.0}, traffic={"by_period": list(case.load)})
    periods = [{"start_month": 0, "months": 6}, {"start_month": 6, "months": 6}]
    finance = {"discount_rate": case.rate}
    quotes = [mine, on_demand("rent", "A", 1, case.hourly)]
    data = problem([workload], quotes, [serves()], periods=periods, limits=limits, finance=finance)
    assert close(least_cost(data), best)


@examples(EXAMPLES)
@given(
    st.tuples(*[st.sampled_from((0.5, 1.0, 2.5, 4.0))] * 2),
    st.integers(1, 40).map(lambda n: n * 250.0),
    prices,
    st.integers(0, 40).map(lambda n: n * 400.0 + 100),
)
def test_job_fills_what_a_service_leaves_free(
    load: tuple[float, float], capex: float, hourly: float, work: float
) -> None:
    """A job runs for nothing on whole GPUs that a service leaves free on owned nodes, the rest of it on rented ones."""
    hours = HOURS_PER_YEAR / 2
    best = math.inf
    for nodes in range(12):
        rents = [max(0, whole(x) - nodes) for x in load]
        free = sum((nodes + rent - whole(x)) * hours for x, rent in zip(load, rents, strict=True))
        total = nodes * capex + sum(rents) * hours * hourly + max(0.0, work - free) * hourly
        best = min(best, total)
    workload = classes_service("chat", {"all": 1.0}, traffic={"by_slice": {"day": load[0], "night": load[1]}})
    slices = [{"name": "day", "share_of_hours": 0.5}, {"name": "night", "share_of_hours": 0.5}]
    quotes = [owned("own", "A", 1, capex, useful_life="12 months"), on_demand("o", "A", 1, hourly)]
    batch = job(amount=work, spread="one-gpu-type")
    data = problem([workload, batch], quotes, [serves(), works()], slices=slices)
    assert close(least_cost(data), best)
