"""Discounts, private prices, estimated reservations and electricity by region, from the problem file to the audit."""

import json
from datetime import date
from pathlib import Path

import pytest

from catalog import load_catalog
from optimizer.audit.run import audit_plan
from optimizer.errors import ProblemFileError
from optimizer.model.options import Option
from optimizer.prepare import Prepared, prepare
from optimizer.problem.load import parse_problem
from optimizer.report.words import short_source
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings

CATALOG = load_catalog()
TODAY = date(2026, 12, 1)
P5 = "aws/us-east-1/p5.48xlarge/on-demand"
HEAD = """
name: prices
horizon: {months: 12, periods: once}
workloads:
- {name: train, kind: training, model: llama-2-7b, tokens: 1e9, spread: any}
"""


def prepared(options: str, more: str = "") -> Prepared:
    """The problem of HEAD with these options, ready to be modelled."""
    text = f"{HEAD}\noptions: {{gpus: [H100-80GB-SXM], {options}}}\n{more}"
    return prepare(parse_problem(text, catalog=CATALOG).problem, CATALOG, TODAY)


def option(ready: Prepared, name: str) -> Option:
    return next(one for one in ready.supply.options if one.option_id == name)


def only(terms: str) -> str:
    return f"providers: {{allow: [aws]}}, purchase: [on-demand], discounts: [{terms}]"


@pytest.mark.parametrize(
    ("terms", "price"),
    [
        ("{provider: aws, percent: 12 %}", 55.04 * 0.88),
        ("{gpu: H100-SXM, percent: 0.25}", 55.04 * 0.75),
        ('{option: "aws/us-*", price: 40 USD/h, per: node}', 40.0),
        ("{provider: aws, gpu: H100-80GB-SXM, price: 2.1 USD/h, per: gpu}", 16.8),
        ("{provider: aws, purchase: spot, percent: 50 %}", 55.04),
        ("{provider: gcp, percent: 50 %}", 55.04),
        ("{provider: aws, percent: 50 %}, {gpu: H100-80GB-SXM, percent: 10 %}", 55.04 * 0.9),
        ("{provider: aws, price: 0}", 0.0),
    ],
)
def test_discounts_and_private_prices_change_the_price_of_what_they_name(terms: str, price: float) -> None:
    """A share off or a price instead; the last of several counts, and what is not named keeps its list price."""
    assert option(prepared(only(terms)), P5).price_per_node_hour == pytest.approx(price)


def test_the_source_keeps_the_list_price_and_names_the_terms() -> None:
    """A plan's reader sees whose list, what it says, and what was agreed."""
    ready = prepared(only("{provider: aws, percent: 12 %, source: enterprise agreement 7}"))
    found = option(ready, P5)
    assert found.source.startswith("catalog/offers/aws.csv:")
    assert found.source.endswith("; list price 55.04 USD/h, 12 % off: enterprise agreement 7")
    assert found.price_date == "2026-07-20"
    said = next(one for one in ready.assumptions if one.name == "discount: aws")
    assert (said.value, said.kind, said.source) == (0.12, "user", "enterprise agreement 7")


def test_a_private_price_has_its_own_day() -> None:
    """Dated by the buyer it passes a limit on the age of prices; without a day it fails it, as every price does."""
    limited = "price_age_limit: 30 days, " + only("{provider: aws, price: 40 USD/h, per: node%s}")
    assert option(prepared(limited % ", date: 2026-11-20"), P5).price_date == "2026-11-20"
    left_out = {one.option_id: one.reason for one in prepared(limited % "").supply.left_out}
    assert left_out[P5] == "price of unknown date is past price_age_limit"


@pytest.mark.parametrize(
    ("options", "place", "message", "hint"),
    [
        (
            "discounts: [{provider: lambda, price: 2 USD/h}]",
            ".price",
            "nodes of 1, 2, 4 and 8 GPUs",
            "per: gpu or per: ",
        ),
        (
            f'discounts: [{{option: "{P5}", price: 5 USD/h}}]',
            ".price",
            "below 20% of the list price (55.04",
            "per: gpu",
        ),
        ("discounts: [{provider: scaleway, gpu: GB200, percent: 5 %}]", "", "no offer of the catalog is", "offers "),
        ("discounts: [{provider: aws, purchase: committed-use, percent: 5 %}]", "", "no offer", "such offers are"),
        ("discounts: [{provider: aws, purchase: owned, percent: 5 %}]", "", "no server of the catalog", "list servers"),
    ],
)
def test_terms_that_would_hit_the_wrong_nodes_or_none_are_refused(
    options: str, place: str, message: str, hint: str
) -> None:
    """A price per GPU taken for one of a whole node, or a discount on what nobody offers, would mislead."""
    with pytest.raises(ProblemFileError) as caught:
        prepared(options)
    (finding,) = caught.value.findings
    assert finding.path == f"options.discounts[0]{place}"
    assert message in finding.message
    assert hint in finding.hint


def test_terms_for_what_is_not_considered_are_listed_as_for_nothing() -> None:
    """An entry that other options bar, or that a later entry always replaces, has no effect, and the reader is told."""
    terms = "{gpu: H100-80GB-SXM, percent: 1 %}, {provider: gcp, percent: 2 %}, {provider: aws, percent: 3 %}"
    ready = prepared(only(terms))
    said = {one.name: one.source for one in ready.assumptions if one.name.startswith("discount: ")}
    nothing = "buyer's terms; applies to nothing that is considered"
    assert said == {
        "discount: H100-80GB-SXM": nothing,
        "discount: gcp": nothing,
        "discount: aws": "buyer's terms",
    }


@pytest.mark.parametrize("per", ["node", "gpu"])
def test_a_price_that_says_per_what_is_taken_at_its_word(per: str) -> None:
    """Explicit terms hold for every size, however low the price is."""
    terms = f"{{provider: lambda, gpu: H100-80GB-SXM, purchase: on-demand, price: 2 USD/h, per: {per}}}"
    text = f"{HEAD}\noptions: {{gpus: [H100-80GB-SXM], providers: {{allow: [lambda]}}, discounts: [{terms}]}}"
    ready = prepare(parse_problem(text, catalog=CATALOG).problem, CATALOG, TODAY)
    prices = {one.gpus_per_node: one.price_per_node_hour for one in ready.supply.options}
    assert prices
    assert all(price == (2.0 * size if per == "gpu" else 2.0) for size, price in prices.items())


def test_no_reservation_is_guessed_for_hosts_of_third_parties() -> None:
    """What private persons or marketplaces rent out on demand is not reserved for years; a cloud's own nodes are."""
    text = HEAD + "\noptions: {providers: {allow: [runpod, vast, openrelay]}, estimated_discounts: high}"
    listed = prepare(parse_problem(text, catalog=CATALOG).problem, CATALOG, TODAY).supply.options
    guessed = [one for one in listed if one.option_id.endswith("-estimate")]
    assert guessed
    assert not [one.option_id for one in guessed if one.provider != "runpod" or "COMMUNITY" in one.option_id]


def test_servers_are_discounted_only_where_owning_is_named() -> None:
    """An agreement with a cloud says nothing of what a server costs."""
    site, bought = "site: {electricity: 0.1 USD/kWh}", "purchase: [owned]"
    plain = prepared(f"{bought}, discounts: [{{gpu: H100-80GB-SXM, percent: 10 %}}]", site)
    assert option(plain, "hgx-h100-8x").capex_per_node == 400_000
    cut = prepared(f"{bought}, discounts: [{{purchase: owned, percent: 10 %}}]", site)
    assert option(cut, "hgx-h100-8x").capex_per_node == pytest.approx(360_000)
    assert "list price 400,000.00 USD, 10 % off" in option(cut, "hgx-h100-8x").source


@pytest.mark.parametrize(("level", "after_two_years"), [("low", 0.3), ("mid", 0.375), ("high", 0.45)])
def test_used_servers_sell_for_what_the_literature_says(level: str, after_two_years: float) -> None:
    """Not on a straight line from new to scrap: most is lost early, at the level that the site asks for."""
    ready = prepared("purchase: [owned]", f"site: {{electricity: 0.1 USD/kWh, resale: {level}}}")
    points = dict(option(ready, "hgx-h100-8x").residual_points)
    assert points[24.0] == after_two_years
    assert (points[0.0], points[60.0], sorted(points.values(), reverse=True)) == (1.0, 0.1, list(points.values()))
    said = next(one for one in ready.assumptions if one.name == "resale of servers after 24 months")
    assert (said.value, said.low, said.high, said.kind) == (after_two_years, 0.3, 0.45, "estimate")


def test_a_discount_may_turn_the_order_of_offers() -> None:
    """On-demand after discount beats spot: the price that counts is the buyer's (karpenter 3860)."""
    text = "providers: {allow: [crusoe]}, discounts: [{provider: crusoe, purchase: on-demand, percent: 70 %}]"
    found = {one.purchase_option: one.price_per_node_hour for one in prepared(text).supply.options}
    assert found["on-demand"] == pytest.approx(31.2 * 0.3)
    assert found.get("spot", 12.8) > found["on-demand"]


@pytest.mark.parametrize(("level", "share"), [("low", 0.3), ("mid", 0.45), ("high", 0.6)])
def test_estimated_reservations_are_made_from_on_demand_when_asked(level: str, share: float) -> None:
    """12 months at 30, 45 or 60 % off the list price, marked as estimates in name, source and assumptions."""
    ready = prepared(f"providers: {{allow: [aws]}}, estimated_discounts: {level}")
    found = option(ready, "aws/us-east-1/p5.48xlarge/reserved-12m-estimate")
    assert found.price_per_node_hour == pytest.approx(55.04 * (1 - share))
    assert (found.purchase_option, found.billing, found.term_months) == ("reserved", "holding", 12)
    assert f"list price 55.04 USD/h, {100 * share:g} % off for 12 months (estimate): catalog/typical" in found.source
    said = next(one for one in ready.assumptions if one.name == "estimated discount reserved-12m")
    assert (said.value, said.low, said.high, said.kind) == (share, 0.3, 0.6, "estimate")


def test_estimates_are_off_unless_asked_for_and_never_of_marketplaces() -> None:
    """No price nobody quoted comes in by itself, and nobody reserves on a marketplace."""
    assert not [one for one in prepared("catalog: true").supply.options if "estimate" in one.option_id]
    asked = prepared("estimated_discounts: mid").supply.options
    assert {one.provider for one in asked if "estimate" in one.option_id}.isdisjoint({"vast", "lium", "nebius"})


def test_a_published_reservation_is_not_estimated_again() -> None:
    """AWS prints one- and three-year prices of g6e.xlarge: those stand."""
    text = (
        HEAD + "\noptions: {gpus: [L40S], providers: {allow: [aws]}, purchase: [reserved], estimated_discounts: high}"
    )
    ready = prepare(parse_problem(text, catalog=CATALOG).problem, CATALOG, TODAY)
    names = {one.option_id for one in ready.supply.options}
    assert "aws/us-east-1/g6e.xlarge/reserved-1y" in names
    assert "aws/us-east-1/g6e.xlarge/reserved-12m-estimate" not in names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("discounts: [{provider: aws}]", "a discount needs either percent or price"),
        ("discounts: [{provider: aws, percent: 1 %, price: 2 USD/h}]", "a discount needs either percent or price"),
        ("discounts: [{percent: 1 %}]", "a discount on everything"),
        ("discounts: [{provider: aws, percent: 120 %}]", "120 %"),
        ("discounts: [{provider: aws, price: 40 USD}]", "a rented node has a price per time, found"),
        ("discounts: [{purchase: owned, price: 40 USD/h}]", "a price of your own for a server"),
        ("discounts: [{provider: awz, percent: 1 %}]", 'unknown provider "awz"'),
        ("discounts: [{gpu: H10, percent: 1 %}]", 'unknown GPU "H10"'),
        ("discounts: [{gpu: H100, percent: 1 %}]", "could mean several"),
        ("discounts: [{option: aws/p5, percent: 1 %}]", 'unknown offer "aws/p5"'),
        ("discounts: [{gpu: T4, percent: 1 %}, {gpu: T4, percent: 2 %}]", "a second discount for T4"),
        ("estimated_discounts: much", "low"),
        ("catalog: false, quotes: [], estimated_discounts: mid", "estimated_discounts without the catalog"),
    ],
)
def test_mistakes_in_own_prices_are_told(options: str, message: str) -> None:
    """Every mistake names its place and what to write."""
    with pytest.raises(ProblemFileError) as caught:
        prepared(options)
    assert message in str(caught.value)


def test_electricity_of_a_region_is_the_catalogs() -> None:
    """California's businesses pay 0.2946 USD/kWh (EIA, 2026-04); a price of one's own comes first."""
    site = parse_problem(f"{HEAD}\nsite: {{region: us-ca}}", catalog=CATALOG).problem.site
    assert site is not None
    assert site.electricity == 0.2946
    own = parse_problem(f"{HEAD}\nsite: {{region: us-ca, electricity: 0.08 USD/kWh}}", catalog=CATALOG).problem.site
    assert own is not None
    assert own.electricity == 0.08
    said = next(one for one in prepared("catalog: true", "site: {region: US CA}").assumptions if "electr" in one.name)
    assert (said.value, said.kind, said.date) == (0.2946, "catalog", "2026-04-26")
    assert "site_costs.csv" in said.source


def test_electricity_in_another_currency_needs_its_rate() -> None:
    """Eurostat prints euros: with a dated rate they become dollars, without one it is an error."""
    rate = "exchange_rates: {EUR: {rate: 1.1, date: 2026-12-01}}"
    site = parse_problem(f"{HEAD}\n{rate}\nsite: {{region: EU average}}", catalog=CATALOG).problem.site
    assert site is not None
    assert site.electricity == pytest.approx(0.1902 * 1.1)
    with pytest.raises(ProblemFileError, match=r"a price in EUR needs a dated rate"):
        parse_problem(f"{HEAD}\nsite: {{region: EU average}}", catalog=CATALOG)
    with pytest.raises(ProblemFileError, match=r'no price of electricity for "Atlantis"'):
        parse_problem(f"{HEAD}\nsite: {{region: Atlantis}}", catalog=CATALOG)


def test_a_plan_at_own_prices_passes_the_audit_and_says_so() -> None:
    """Discount, private price and estimate stand in the plan's sources, and the audit derives each of them anew."""
    options = """options:
  gpus: [H100-80GB-SXM, L40S]
  purchase: [reserved, on-demand, owned]
  providers: {allow: [aws, lambda]}
  estimated_discounts: mid
  discounts: [{provider: aws, percent: 12 %}, {option: "lambda/*", price: 2.1 USD/h, per: gpu, date: 2026-11-01}]
"""
    service = "{name: chat, kind: service, model: llama-2-7b, traffic: {requests_per_day: 9e5}, "
    service += "tokens: {input: 500, output: 200}}"
    text = f"name: t\nworkloads: [{service}]\nsite: {{region: US CA}}\n{options}"
    problem = parse_problem(text, catalog=CATALOG).problem
    document = json.loads(json.dumps(solve(problem, CATALOG, SolverSettings(gap=0.0)).document()))
    sources = [one["source"] for one in document["inputs"]["options"]]
    for words in ("12 % off", "own price 2.1", "(estimate)"):
        assert any(words in source for source in sources), words
    assert audit_plan(document, catalog=CATALOG).findings == ()
    for one in document["inputs"]["options"]:
        one["price_per_node_hour"] *= 1.01
    assert audit_plan(document, catalog=CATALOG).findings


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("catalog/offers/aws.csv:7 (a list, 2026-07-20)", "aws.csv:7, 2026-07-20"),
        (
            "catalog/offers/aws.csv:7 (a list, 2026-07-20); list price 55.04 USD/h, 12 % off: agreement 7",
            "aws.csv:7, 2026-07-20; list price 55.04 USD/h, 12 % off: agreement 7",
        ),
        (
            "catalog/offers/aws.csv:7 (a list, 2026-07-20); list price 55.04 USD/h, 45 % off for 12 months (estimate): "
            "catalog/typical_discounts.csv:2 (a blog: 20 to 60 % (cloud), 2025-09-10)",
            "aws.csv:7, 2026-07-20; list price 55.04 USD/h, 45 % off for 12 months (estimate): "
            "catalog/typical_discounts.csv:2",
        ),
    ],
)
def test_the_tables_of_a_report_keep_the_terms(source: str, short: str) -> None:
    """Shortened for a table, a source still says what became of the list price."""
    assert short_source(source, "2026-07-20") == short


def test_price_files_hold_no_days_to_come(tmp_path: Path) -> None:
    """A price of tomorrow would pass every limit on age; the file's line is named, and today's prices are taken."""
    columns = "offer_id,provider,region,instance_type,gpu_id,gpus_per_node,purchase_option,term_months,"
    columns += (
        "price_usd_per_node_hour,upfront_usd_per_node,billing_step,vcpus,ram_gib,confidence,source,priced_on,notes"
    )
    row = "p/r/{0}/on-demand,p,r,{0},H100-80GB-SXM,8,on-demand,,20,0,hour,,,read,a page,{1},"
    text = HEAD + "\noptions: {catalog: false, price_files: [prices.csv]}"
    (tmp_path / "prices.csv").write_text(
        "\n".join((columns, row.format("a", "2026-12-01"), row.format("b", "2026-12-02")))
    )
    with pytest.raises(ProblemFileError) as caught:
        parse_problem(text, folder=tmp_path, catalog=CATALOG, today=TODAY)
    (finding,) = caught.value.findings
    assert finding.path == "options.price_files[0]"
    assert "prices.csv:3: priced_on 2026-12-02 is still to come" in finding.message
    parse_problem(text, folder=tmp_path, catalog=CATALOG, today=date(2026, 12, 2))
