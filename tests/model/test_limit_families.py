"""Limits of the site, of capex by time, and of the number of providers: worked cases and enumeration."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.errors import ProblemFileError
from optimizer.problem.load import parse_problem
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import (
    HOURS_PER_YEAR,
    Data,
    close,
    least_cost,
    on_demand,
    owned,
    parsed,
    problem,
    reserved,
    serves,
    service,
    the_catalog,
)

OWN: Data = {"price": 5_000.0, "power": "2 kW", "rack_units": 4, "residual": 0.0, "useful_life": "12 months"}


def owned_or_rented(**site: object) -> float:
    """Ten nodes of load: a node owned costs 5,000 for the year, one rented 8,760."""
    quotes = [owned("own", **OWN), on_demand("od", price=1.0)]
    return least_cost(problem([service(rate=10.0)], quotes, [serves()], site=site))


@pytest.mark.parametrize(
    ("site", "nodes"),
    [
        ({}, 10),
        ({"power_limit_it": "12 kW"}, 6),
        ({"power_limit_facility": "12 kW"}, 6),
        ({"power_limit_facility": "12 kW", "pue": 1.5}, 4),
        ({"power_limit_it": "12 kW", "pue": 1.5}, 6),
        ({"power_limit_facility": "17.9 kW", "power_limit_it": "11 kW", "pue": 1.5}, 5),
        ({"rack_units_limit": 31}, 7),
        ({"rack_units_limit": 0}, 0),
    ],
)
def test_owned_nodes_fit_the_site(site: Data, nodes: int) -> None:
    """As many nodes are owned as IT power, power at the meter (× PUE) and rack units allow; the rest is rented."""
    assert owned_or_rented(**site) == pytest.approx(nodes * 5_000 + (10 - nodes) * HOURS_PER_YEAR)


def test_unknown_rack_units_are_an_error_and_never_nothing() -> None:
    """A quote without rack units is refused where they are limited; servers of the catalog are left out and say why."""
    text = """
name: x
site: {rack_units_limit: 20, electricity: 0.1 USD/kWh}
gpus: {A: {}}
workloads: [{name: chat, kind: service, traffic: {mean_requests_per_s: 1}}]
measurements: [{workload: chat, gpu: A, requests_per_s: 1}]
options: {catalog: false, quotes: [{name: own, gpu: A, purchase: owned, price: 9000 USD}]}
"""
    with pytest.raises(ProblemFileError, match="rack_units"):
        parse_problem(text)
    catalog = text.replace("gpus: {A: {}}\n", "").replace("gpu: A", "gpu: L40S")
    catalog = catalog.replace("catalog: false, ", "gpus: [L40S], ").replace("9000 USD}", "9000 USD, rack_units: 4}")
    plan = solve(parse_problem(catalog, catalog=the_catalog()).problem, the_catalog(), SolverSettings(gap=0))
    servers = [left for left in plan.left_out if left["option"].startswith("l40s")]
    assert servers
    assert all("rack units" in left["reason"] for left in servers)


def by_time(limits: Data) -> float:
    """5 nodes of load in the first year and 10 in the second; a node owned costs 5,000, one rented 8,760 a year."""
    chat = service(rate=10.0, traffic={"by_period": [0.5, 1.0]})
    quotes = [owned("own", **OWN | {"useful_life": "24 months"}), on_demand("od", price=1.0)]
    return least_cost(problem([chat], quotes, [serves()], months=24, periods="yearly", limits=limits))


@pytest.mark.parametrize("key", ["capex_by_period", "capex_by_year"])
def test_capex_by_time(key: str) -> None:
    """Money of one year is none of the other; a node bought in the second is sold for half at the end."""
    assert by_time({}) == pytest.approx(5 * 5_000 + 5 * 2_500)
    assert by_time({key: [None, 0.0]}) == pytest.approx(10 * 5_000)
    assert by_time({key: [0.0, 14_999.0]}) == pytest.approx(2 * 2_500 + (5 + 8) * HOURS_PER_YEAR)


def test_lists_of_capex_fit_the_horizon() -> None:
    """One amount for each period or year, and years that begin with a period."""
    base = problem([service()], [on_demand()], [serves()], months=24)
    for limits, periods, words in (
        ({"capex_by_period": [1.0]}, "yearly", "found 1 amount for 2 periods"),
        ({"capex_by_year": [1.0, 2.0, 3.0]}, "yearly", "found 3 amounts for 2 years"),
        ({"capex_by_year": [1.0, 2.0]}, "once", "no period starts at month 12"),
    ):
        data = base | {"limits": limits, "horizon": {"months": 24, "periods": periods}}
        with pytest.raises(ProblemFileError, match=words):
            parsed(data)


prices = st.integers(2, 60).map(lambda n: n / 20)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(prices, st.integers(1, 4)), min_size=1, max_size=4), st.integers(1, 8), st.integers(1, 3))
def test_few_providers(offers: list[tuple[float, int]], load: int, most: int) -> None:
    """The cheapest nodes of at most so many providers, each with its stock."""

    def cost(chosen: tuple[tuple[float, int], ...]) -> float:
        nodes = sorted(itertools.chain.from_iterable([price] * stock for price, stock in chosen))
        return sum(nodes[:load]) if len(nodes) >= load else math.inf

    sets = (c for size in range(1, most + 1) for c in itertools.combinations(offers, size))
    least = min((cost(chosen) for chosen in sets), default=math.inf)
    quotes = [on_demand(f"o{i}", price=p, provider=f"p{i}", max_nodes=n) for i, (p, n) in enumerate(offers)]
    data = problem([service(rate=load)], quotes, [serves()], limits={"vendors": {"max": most}})
    assert close(least_cost(data), least * HOURS_PER_YEAR)


def test_nodes_held_already_count_as_a_provider_and_own_ones_do_not() -> None:
    """A reservation signed at one provider leaves room for one other, and for own nodes."""
    existing = [{"name": "signed", "gpu": "A", "nodes": 1, "term": "12 months", "fee": "0.5/h", "provider": "east"}]
    quotes = [
        on_demand("n", price=1.0, provider="north", max_nodes=1),
        reserved("s", price=1.5, term=12, provider="south"),
        owned("own", **OWN | {"price": 20_000.0}),
    ]

    def with_most(most: int | None) -> float:
        limits = {} if most is None else {"vendors": {"max": most}}
        data = problem([service(rate=4.0)], quotes, [serves()], existing=existing, limits=limits)
        return least_cost(data) / HOURS_PER_YEAR

    assert with_most(None) == pytest.approx(0.5 + 1.0 + 2 * 1.5)
    assert with_most(3) == pytest.approx(0.5 + 1.0 + 2 * 1.5)
    assert with_most(2) == pytest.approx(0.5 + 3 * 1.5)
    assert with_most(1) == pytest.approx(0.5 + 3 * 20_000 / HOURS_PER_YEAR)


def test_too_few_providers_say_what_would_do() -> None:
    """Two providers of one node each, a load of two, one provider allowed: one more is the fix."""
    quotes = [on_demand(f"o{i}", provider=f"p{i}", max_nodes=1) for i in (1, 2)]
    data = problem([service(rate=2.0)], quotes, [serves()], limits={"vendors": {"max": 1}})
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    fixes = {one.change: (one.required, one.unit) for one in plan.infeasibility if one.kind == "limit"}
    assert fixes["limits.vendors.max"] == (2, "providers")


def test_the_least_replicas_are_there_whenever_requests_come() -> None:
    """Three replicas at least by night too, where one would do; none where no request comes."""
    slices = [{"name": name, "share_of_hours": 0.25} for name in ("peak", "day", "night", "closed")]
    by_slice = {"peak": 5.0, "day": 2.5, "night": 0.5, "closed": 0.0}

    def nodes(least: int) -> float:
        chat = service(rate=1.0, min_replicas=least) | {"traffic": {"mean_requests_per_s": 2.0, "by_slice": by_slice}}
        data = problem([chat], [on_demand()], [serves()], slices=slices)
        return least_cost(data) / HOURS_PER_YEAR * 4

    assert nodes(0) == pytest.approx(5 + 3 + 1)
    assert nodes(3) == pytest.approx(5 + 3 + 3)
    assert nodes(4) == pytest.approx(5 + 4 + 4)
