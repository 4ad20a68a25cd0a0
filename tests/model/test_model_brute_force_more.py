"""Least costs against enumeration: pools of a job, spot shares of work, terms with lead times, budgets per month."""

import itertools
import math
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.model.builders import (
    HOURS_PER_MONTH,
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
    spot,
    works,
)
from tests.model.strategies import examples, prices

WINDOW_H = 100
rates = st.integers(1, 24).map(lambda n: n / 4)


@dataclass(frozen=True)
class Pool:
    """An offer that a job may use: GPU type, nodes of one GPU in stock, price per hour, work per hour."""

    gpu: str
    stock: int
    price: float
    rate: float


def filled(pools: list[Pool], work: float) -> float:
    """Least cost of so much work in the window: the pool with the cheapest work first; infinite if they are too few."""
    cost = 0.0
    for pool in sorted(pools, key=lambda one: one.price / one.rate):
        done = min(work, pool.stock * WINDOW_H * pool.rate)
        cost += done / pool.rate * pool.price
        work -= done
    return cost if work <= 1e-9 else math.inf


@examples(40)
@given(
    st.lists(st.tuples(st.sampled_from("AAB"), st.integers(1, 3), prices), min_size=1, max_size=4),
    st.fixed_dictionaries({"A": rates, "B": rates}),
    st.integers(1, 30).map(lambda n: n * 50.0),
    st.sampled_from(("one-pool", "one-gpu-type", "any")),
)
def test_a_job_in_the_pools_that_its_spread_allows(
    offers: list[tuple[str, int, float]], yields: dict[str, float], work: float, spread: str
) -> None:
    """One pool alone, the pools of one GPU type, or any mix of them, each within its stock."""
    pools = [Pool(gpu, stock, price, yields[gpu]) for gpu, stock, price in offers]
    choices = {
        "one-pool": [[pool] for pool in pools],
        "one-gpu-type": [[pool for pool in pools if pool.gpu == gpu] for gpu in {pool.gpu for pool in pools}],
        "any": [pools],
    }
    best = min(filled(choice, work) for choice in choices[spread])
    quotes = [on_demand(f"o{i}", p.gpu, 1, p.price, max_nodes=p.stock) for i, p in enumerate(pools)]
    measured = [works(rate=yields[gpu], gpu=gpu) for gpu in sorted({pool.gpu for pool in pools})]
    train = job(amount=work, spread=spread, deadline=f"{WINDOW_H} h")
    assert close(least_cost(problem([train], quotes, measured, months=1)), best)


@examples(40)
@given(
    st.integers(1, 30).map(lambda n: n * 25.0),
    prices,
    prices,
    st.sampled_from((0.0, 0.1, 0.5, 1.0)),
    st.sampled_from((0.0, 0.1, 0.5)),
    st.booleans(),
)
def test_a_job_on_spot_within_its_share(
    work: float, spot_price: float, price: float, share: float, interruptions: float, may: bool
) -> None:
    """Interruptions cost hours; spot does its share of the work where that is cheaper, and none where it may not."""
    per_unit = spot_price * (1 + interruptions * 0.5)
    on_spot = share if may and per_unit < price else 0.0
    best = work * (on_spot * per_unit + (1 - on_spot) * price)
    quotes = [
        spot("s", "A", 1, spot_price, interruptions_per_hour=interruptions, hours_lost="0.5 h", provider="p"),
        on_demand("o", "A", 1, price, provider="p"),
    ]
    train = job(amount=work, spread="any", interruptible=may)
    data = problem([train], quotes, [works()], months=1, limits={"spot_share": share})
    assert close(least_cost(data), best)


@dataclass(frozen=True)
class Signing:
    """Reservations that may be signed at months 0, 2 and 4 of six, beside nodes by the hour."""

    load: tuple[int, int, int]
    term: int
    lead: int
    fee: float
    hourly: float
    upfront: float
    cancellable: bool
    most: int
    rate: float

    def worth(self, month: float) -> float:
        """Present value of 1 at a month."""
        return float((1 + self.rate) ** (-month / 12))

    def cost_of_one(self, order: int) -> float:
        """Upfront fee at the order, and the holding fee of every month of the term, to the horizon if cancellable."""
        start = order + self.lead
        end = min(6, start + self.term) if self.cancellable else start + self.term
        return self.upfront * self.worth(order) + sum(
            self.fee * HOURS_PER_MONTH * self.worth(m + 1) for m in range(start, end)
        )

    def cost(self, orders: tuple[int, ...]) -> float:
        """Cost of so many nodes at each order; infinite where they are more than can be had, or come too late."""
        total = sum(n * self.cost_of_one(order) for order, n in zip((0, 2, 4), orders, strict=True))
        for order, n in zip((0, 2, 4), orders, strict=True):
            if n and order + self.lead >= 6:
                return math.inf
        for month in range(6):
            spans = [(order, order + self.lead, order + self.lead + self.term) for order in (0, 2, 4)]
            taken = sum(n for n, (ordered, _, end) in zip(orders, spans, strict=True) if ordered <= month < end)
            if taken > self.most:
                return math.inf
            there = sum(n for n, (_, start, end) in zip(orders, spans, strict=True) if start <= month < end)
            rents = max(0, self.load[month // 2] - there)
            total += rents * self.hourly * HOURS_PER_MONTH * self.worth(month + 1)
        return total


@examples(60)
@given(
    st.builds(
        Signing,
        load=st.tuples(*[st.integers(0, 3)] * 3).filter(any),
        term=st.sampled_from((1, 2, 3, 4, 6, 9)),
        lead=st.sampled_from((0, 1, 2)),
        fee=st.integers(4, 40).map(lambda n: n / 20),
        hourly=st.integers(10, 60).map(lambda n: n / 20),
        upfront=st.sampled_from((0.0, 200.0)),
        cancellable=st.booleans(),
        most=st.integers(1, 4),
        rate=st.sampled_from((0.0, 0.1)),
    )
)
def test_terms_signed_one_after_another(case: Signing) -> None:
    """Whole terms with lead times, what runs past the horizon, nodes on order that count against the stock."""
    best = min(case.cost(orders) for orders in itertools.product(range(case.most + 1), repeat=3))
    extra: Data = {"upfront": case.upfront, "cancellable": case.cancellable, "max_nodes": case.most}
    quotes = [
        reserved("r", "A", 1, case.fee, case.term, lead_time=f"{case.lead} months", **extra),
        on_demand("o", "A", 1, case.hourly),
    ]
    chat = classes_service("chat", {"all": 1.0}, traffic={"by_period": [float(x) for x in case.load]})
    periods = [{"start_month": month, "months": 2} for month in (0, 2, 4)]
    data = problem([chat], quotes, [serves()], months=6, periods=periods, finance={"discount_rate": case.rate})
    assert close(least_cost(data), best)


@examples(50)
@given(
    st.tuples(*[st.integers(1, 4)] * 2),
    st.integers(2, 30).map(lambda n: n * 100.0),
    st.integers(10, 60).map(lambda n: n / 20),
    st.one_of(st.none(), st.integers(0, 6)),
    st.one_of(st.none(), st.integers(0, 4)),
    st.one_of(st.none(), st.integers(1, 5)),
    st.one_of(st.none(), st.integers(1, 20).map(lambda n: n * 1_500.0)),
)
def test_limits_per_month_on_power_on_gpus_and_on_all(
    load: tuple[int, int],
    capex: float,
    hourly: float,
    rents_affordable: int | None,
    kw: int | None,
    most_gpus: int | None,
    npv: float | None,
) -> None:
    """Owned nodes bought at month 0 or 6 beside rented ones, within running costs, power, GPUs and a total."""
    rent = hourly * HOURS_PER_MONTH
    best = math.inf
    for orders in itertools.product(range(6), range(6)):
        held = (orders[0], sum(orders))
        rents = [max(0, x - h) for x, h in zip(load, held, strict=True)]
        total = sum(orders) * capex + 6 * rent * sum(rents)
        fits = (
            (rents_affordable is None or max(rents) <= rents_affordable)
            and (kw is None or held[1] <= kw)
            and (most_gpus is None or max(r + h for r, h in zip(rents, held, strict=True)) <= most_gpus)
            and (npv is None or total <= npv * (1 + 1e-9))
        )
        best = min(best, total if fits else math.inf)
    limits: Data = {} if rents_affordable is None else {"opex": (rents_affordable + 0.25) * rent}
    limits |= {} if most_gpus is None else {"gpus": {"A": most_gpus}}
    limits |= {} if npv is None else {"npv": npv}
    more: Data = {} if kw is None else {"site": {"power_limit_it": f"{kw} kW"}}
    mine = owned("mine", "A", 1, capex, power="1 kW", electricity=0.0, useful_life="12 months")
    chat = classes_service("chat", {"all": 1.0}, traffic={"by_period": [float(x) for x in load]})
    periods = [{"start_month": 0, "months": 6}, {"start_month": 6, "months": 6}]
    # Worth nothing whenever it was bought: the second order would else be sold at half its life.
    mine["residual"] = [{"age": "0 months", "fraction": 0.0}]
    quotes = [mine, on_demand("rent", "A", 1, hourly)]
    data = problem([chat], quotes, [serves()], periods=periods, limits=limits, **more)
    assert close(least_cost(data), best)
