"""Emissions as a limit and with a price: worked by hand and enumerated; unknown figures are refused, never 0."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.errors import ProblemFileError
from optimizer.plan import Plan
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.report.plan import plan_sections
from tests.model.builders import (
    HOURS_PER_YEAR,
    Data,
    close,
    job,
    least_cost,
    on_demand,
    owned,
    parsed,
    planned,
    problem,
    reserved,
    serves,
    service,
    spot,
    the_catalog,
    works,
)
from tests.model.strategies import examples, problems


def fee(plan: Plan) -> tuple[float, float]:
    """Tonnes and amount of the carbon fee."""
    lines = [line for line in plan.cost_lines if line.term == "carbon_fee"]
    return math.fsum(line.quantity for line in lines), math.fsum(line.amount for line in lines)


def priced(data: Data, price: float = 100.0, **more: object) -> Data:
    return data | {"finance": {"carbon_price": price}} | more


def test_owned_nodes_emit_what_they_use() -> None:
    """(1 kW idle + 1 kW more for half of the time) × PUE 1.5 × 8,760 h × 400 g/kWh = 7.884 t, at 100 each."""
    node = owned(power="2 kW", idle_power="1 kW", electricity=0.1, pue=1.5)
    plan = planned(priced(problem([service(rate=0.5)], [node], [serves()]), site={"carbon": "400 g/kWh"}))
    assert fee(plan) == pytest.approx((7.884, 788.4))
    energy = math.fsum(line.quantity for line in plan.cost_lines if line.term == "energy")
    assert energy * 400 / 1e6 == pytest.approx(7.884)
    assert plan.cost is not None
    assert plan.cost.opex == pytest.approx(19_710 * 0.1 + 788.4)


def test_existing_nodes_emit_though_nothing_is_decided() -> None:
    """A node held until month 6, idle at 1 kW, is on the right of the limit and in the fee: 4,380 kWh × 500 g/kWh."""
    held = {"name": "old", "gpu": "B", "nodes": 1, "power": "2 kW", "idle_power": "1 kW", "retire": "6 months"}
    rented = on_demand(power="1 kW", pue=1.0, carbon="100 g/kWh")
    data = problem([service()], [rented], [serves()], existing=[held], site={"carbon": "500 g/kWh"})
    plan = planned(priced(data, limits={"carbon": "4 t"}), checked=False)
    assert fee(plan)[0] == pytest.approx(2.19 + 0.876)
    (row,) = [row for row in plan.constraints if row.family == "carbon_limit"]
    assert (row.lhs, row.rhs, row.unit) == (pytest.approx(0.876), pytest.approx(4 - 2.19), "t CO2e")


@pytest.mark.parametrize(
    ("quote", "carbon", "tonnes"),
    [
        ({"power": "2 kW", "pue": 1.2, "carbon": "300 g/kWh"}, {}, 2 * 1.2 * 0.3),
        ({"region": "us-1"}, {"regions": {"us-*": "400 g/kWh"}}, 2 * 0.5 * 1.8 * 1.54 * 0.4),
        ({"region": "us-1"}, {"regions": {"*": 400_000.0, "us-*": 1.0}}, None),
        (
            {"region": "us-1"},
            {"regions": {"*": "900 g/kWh", "US-*": "0.4 kg/kWh"}, "pue": 1.1, "host_factor": 2},
            2 * 0.5 * 2 * 1.1 * 0.4,
        ),
        ({}, {"regions": {"*": "900 kg/MWh"}}, 2 * 0.5 * 1.8 * 1.54 * 0.9),
    ],
)
def test_rented_nodes_emit_by_an_estimate(quote: Data, carbon: Data, tonnes: float | None) -> None:
    """Power said, or TDP × GPUs × host factor, × PUE × paid hours × CO2e of its own, or its region's last match."""
    for node, hours in (
        (on_demand(nodes_of=2, **quote), 6 * HOURS_PER_YEAR / 12),
        (spot(nodes_of=2, **quote), 6 * HOURS_PER_YEAR / 12),
        (reserved(nodes_of=2, term=9, **quote), 6 * HOURS_PER_YEAR / 12),
    ):
        data = problem([service()], [node], [serves()], months=6, carbon=carbon) | {"gpus": {"A": {"tdp": "500 W"}}}
        if tonnes is None:
            with pytest.raises(ProblemFileError, match="a carbon intensity with its unit"):
                parsed(data)
        else:
            assert fee(planned(priced(data)))[0] == pytest.approx(hours * tonnes / 1000)


def test_only_paid_hours_emit() -> None:
    """Requests by day only: the node is rented for half of the hours; a job of 300 node-hours emits in those."""
    slices = [{"name": "day", "share_of_hours": 0.5}, {"name": "night", "share_of_hours": 0.5}]
    chat = service(rate=0.5, traffic={"by_slice": {"day": 1.0, "night": 0.0}})
    node = on_demand(power="1 kW", pue=1.0, carbon="500 g/kWh")
    plan = planned(priced(problem([chat], [node], [serves()], slices=slices)))
    assert fee(plan)[0] == pytest.approx(8_760 / 2 * 0.5 / 1000)
    plan = planned(priced(problem([job(amount=300.0)], [node], [works()])))
    assert fee(plan)[0] == pytest.approx(300 * 0.5 / 1000)


def two_regions(nodes: float = 10.0, **more: object) -> Data:
    """A cheap node in a dirty region (4.38 t a year) and a dear one in a clean region (0.1752 t), 1 kW each."""
    quotes = [
        on_demand("dirty", price=1.0, power="1 kW", region="coal-1"),
        on_demand("clean", price=1.5, power="1 kW", region="hydro-1"),
    ]
    carbon = {"regions": {"coal-*": "500 g/kWh", "hydro-*": "20 g/kWh"}, "pue": 1.0}
    return problem([service(rate=nodes)], quotes, [serves()], carbon=carbon) | more


@pytest.mark.parametrize(("limit", "dirty"), [(44, 10), (30, 6), (10, 1), (5, 0), (1.752, 0)])
def test_a_limit_turns_the_mix(limit: float, dirty: int) -> None:
    """As many cheap dirty nodes as 4.38 t each leave under the limit, beside clean ones of 0.1752 t."""
    cost = least_cost(two_regions(limits={"carbon": f"{limit!r} t"}))
    assert cost == pytest.approx((dirty * 1.0 + (10 - dirty) * 1.5) * HOURS_PER_YEAR)


def test_a_price_turns_the_mix_where_it_pays() -> None:
    """Clean nodes cost 4,380 more a year and save 4.2048 t: they enter at 1,041.67 a tonne, not before."""
    turning = 0.5 * HOURS_PER_YEAR / 4.2048
    below, above = (planned(priced(two_regions(), turning * factor)) for factor in (0.999, 1.001))
    assert [rental.option for rental in below.rentals] == ["dirty"]
    assert [rental.option for rental in above.rentals] == ["clean"]
    assert fee(below) == pytest.approx((43.8, 43.8 * turning * 0.999))
    assert fee(above) == pytest.approx((1.752, 1.752 * turning * 1.001))


def test_a_limit_too_low_is_named_with_what_would_do() -> None:
    """No mix emits less than ten clean nodes: the limit is named, and 1.752 t is what would do."""
    plan = planned(two_regions(limits={"carbon": "1 t"}))
    assert plan.status == "infeasible"
    text = repr(plan.infeasibility)
    assert "limits.carbon" in text
    assert "1.752" in text


@examples(25)
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(2, 20), st.integers(0, 9)), min_size=2, max_size=3),
    st.integers(1, 500),
    st.integers(0, 3),
)
def test_limit_and_price_against_enumeration(nodes: int, offers: list[tuple[int, int]], limit: int, price: int) -> None:
    """The least cost of all counts of nodes of each offer that emit no more than the limit, for a month."""
    quotes = [
        on_demand(f"q{i}", price=cost / 10, power="1 kW", pue=1.0, carbon=f"{100 * dirt} g/kWh")
        for i, (cost, dirt) in enumerate(offers)
    ]
    allowed = nodes * 0.73 * limit / 500 + 0.001
    data = problem([service(rate=float(nodes))], quotes, [serves()], months=1, limits={"carbon": f"{allowed!r} t"})
    best = math.inf
    for counts in itertools.product(range(nodes + 1), repeat=len(offers)):
        tonnes = sum(n * 0.073 * dirt for n, (_, dirt) in zip(counts, offers, strict=True))
        if sum(counts) == nodes and tonnes <= allowed:
            paid = sum(n * 730 * cost / 10 for n, (cost, _) in zip(counts, offers, strict=True))
            best = min(best, paid + tonnes * price * 100)
    assert close(least_cost(priced(data, price * 100.0)), best)


@examples(15)
@given(problems())
def test_figures_that_nothing_counts_change_nothing(data: Data) -> None:
    """Intensities without a limit, or with a price of 0, leave the least cost as it is, in problems of all families."""
    data["limits"].pop("carbon", None)
    data["finance"].pop("carbon_price", None)
    told = data | {"carbon": {"regions": {"*": "400 g/kWh"}}}
    told["finance"] = data.get("finance", {}) | {"carbon_price": 0.0}
    told["site"] = data.get("site", {}) | {"carbon": "300 g/kWh"}
    assert close(least_cost(told), least_cost(data))


# --- what is not known ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quote", "more", "found"),
    [
        (on_demand(power="1 kW", region="us-1"), {}, 'CO2e per kWh of region "us-1" is not given'),
        (owned(power="1 kW"), {}, "CO2e per kWh of its site is not given"),
        (owned(carbon="1 g/kWh"), {}, "this node says no power"),
        (on_demand(carbon="1 g/kWh"), {}, "neither this node's power nor the TDP of A is given"),
        (on_demand(carbon="1 g/kWh", power="1 kW"), {"limits": {"carbon": 30}}, "a mass of CO2e with its unit"),
    ],
)
@pytest.mark.parametrize("counting", [{"limits": {"carbon": "30 t"}}, {"finance": {"carbon_price": "80 USD/t"}}])
def test_unknown_emissions_of_own_offers_are_an_error(quote: Data, more: Data, found: str, counting: Data) -> None:
    """A quote without intensity or power is refused where emissions count, with the place and what to write."""
    data = problem([service()], [quote], [serves()]) | counting | more
    with pytest.raises(ProblemFileError) as error:
        parsed(data)
    (finding,) = error.value.findings
    assert found in finding.message
    assert finding.hint
    assert finding.line


CATALOG_PROBLEM = """
name: x
workloads:
  - {name: chat, kind: service, traffic: {mean_requests_per_s: 1}}
measurements: [{workload: chat, gpu: H100-80GB-SXM, requests_per_s: 1}]
options: {gpus: [H100-80GB-SXM], purchase: [on-demand, owned]}
site: {electricity: 0.1 USD/kWh}
carbon: {regions: {us-*: 400 g/kWh}}
limits: {carbon: 500 t}
"""


def test_offers_of_the_catalog_without_intensity_are_left_out_with_the_reason() -> None:
    """Of the catalog only offers in regions with an intensity stay, and no server for a site without; never as 0."""
    prepared = prepare(parse_problem(CATALOG_PROBLEM, catalog=the_catalog()).problem, the_catalog())
    assert prepared.supply.options
    for option in prepared.supply.options:
        assert option.region.startswith("us-")
        assert option.metered_kw == pytest.approx(option.gpus_per_node * 0.7 * 1.8 * 1.54)
    unknown = [one for one in prepared.supply.left_out if "emissions are not known" in one.reason]
    assert {one.option_id.startswith("hgx") for one in unknown} == {True, False}
    kinds = {one.name: one.kind for one in prepared.assumptions}
    assert kinds["power of rented nodes"] == kinds["PUE of rented nodes"] == kinds["load of rented nodes"] == "estimate"


def test_the_report_says_what_is_emitted() -> None:
    """The headline of a plan with a limit or a price has the tonnes; others have no such line."""
    for data, text in (
        (two_regions(limits={"carbon": "44 t"}), "43.8 t CO2e"),
        (priced(two_regions()), "43.8 t CO2e"),
        (two_regions(), None),
    ):
        rows = dict(row for row in plan_sections(planned(data).document())[0].rows)
        assert (text is None and "emissions" not in rows) or rows["emissions"].startswith(text)
