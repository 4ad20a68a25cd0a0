"""Mistakes in further costs and rising prices, each provoked once: its place and its message."""

import pytest

from catalog.load import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.problem.load import parse_problem

CATALOG = load_catalog()
BASE = """\
name: base
horizon: {months: 12}
gpus: {A: {}}
workloads: [{name: chat, kind: service, traffic: {mean_requests_per_s: 1}}]
measurements: [{workload: chat, gpu: A, requests_per_s: 1}]
options:
  catalog: false
  quotes:
    - {name: mine, gpu: A, purchase: owned, price: 9000 USD}
    - {name: cloud, provider: P, gpu: A, purchase: on-demand, price: 2 USD/h}
"""
HERE = "costs[0]"
CASES = [
    ("{kind: staf, monthly: 1}", f"{HERE}.kind", 'found "staf" (did you mean "staff"?)'),
    ("{kind: staff}", HERE, "expected exactly one of once, monthly, per_gb, percent; found none"),
    ("{kind: staff, once: 1, monthly: 1}", HERE, "found once and monthly"),
    ("{kind: staff, once: 5 USD/month}", f"{HERE}.once", 'unknown unit "USD/month"'),
    ("{kind: staff, monthly: 5 EUR/month}", f"{HERE}.monthly", "a price in EUR needs a dated rate"),
    ("{kind: other, once: 5 EUR}", f"{HERE}.once", "a price in EUR needs a dated rate"),
    ("{kind: egress, per_gb: 5 EUR/GB, gb_per_month: 1}", f"{HERE}.per_gb", "a price in EUR needs a dated rate"),
    ("{kind: egress, per_gb: 5 USD/h, gb_per_month: 1}", f"{HERE}.per_gb", 'unknown unit "USD/h"'),
    ("{kind: staff, monthly: -1}", f"{HERE}.monthly", "≥ 0, found -1"),
    ("{kind: tax, percent: 8}", f"{HERE}.percent", '≤ 1, found 8 (write "8 %" for a percentage)'),
    ("{kind: tax, percent: 8 %}", f"{HERE}.of", "a share of what? (write of: purchases, rent or all)"),
    ("{kind: tax, percent: 8 %, of: capex}", f"{HERE}.of", 'expected one of purchases, rent, all, found "capex"'),
    ("{kind: tax, once: 8, of: all}", f"{HERE}.of", "of has no meaning here (it goes with percent)"),
    ("{kind: tax, percent: 8 %, of: all, per: node}", f"{HERE}.per", "a share has no quantity of its own"),
    ("{kind: tax, percent: 8 %, of: all, start_month: 3}", f"{HERE}.start_month", "start_month has no meaning here"),
    ("{kind: egress, per_gb: 1}", f"{HERE}.per_gb", "expected exactly one of gb_per_month, gb_per_1000_requests"),
    ("{kind: egress, monthly: 1, gb_per_month: 1}", f"{HERE}.gb_per_month", "it goes with per_gb"),
    ("{kind: egress, per_gb: 1, gb_per_month: 1, per: node}", f"{HERE}.per", "a price per GB is per GB"),
    ("{kind: egress, per_gb: 1, gb_per_month: 1, workload: chat}", f"{HERE}.workload", "it goes with gb_per_1000_req"),
    ("{kind: egress, per_gb: 1, gb_per_1000_requests: 1, workload: chit}", f"{HERE}.workload",
     'unknown service "chit" (did you mean "chat"?)'),
    ("{kind: staff, monthly: 1, purchase: [owned]}", f"{HERE}.purchase", "an amount paid whatever is chosen"),
    ("{kind: staff, monthly: 1, per: node, purchase: []}", f"{HERE}.purchase", "an empty list allows nothing"),
    ("{kind: support, monthly: 1, per: kw, purchase: [spot]}", f"{HERE}.purchase", "the power of rented nodes"),
    ("{kind: support, once: 1, per: node, purchase: [on-demand]}", f"{HERE}.once", "nodes rented by the hour are not"),
    ("{kind: staff, monthly: 1, start_month: 4, end_month: 4}", f"{HERE}.end_month", "it ends at month 4 and starts"),
    ("{kind: staff, monthly: 1, start_month: 12}", f"{HERE}.start_month", "after the horizon: never paid"),
    ("{kind: staff, once: 1, end_month: 3}", f"{HERE}.end_month", "an amount paid once is paid at start_month"),
    ("{kind: staff, monthly: 1, per: node, provider: Q}", f"{HERE}.provider", 'unknown provider "Q"'),
    ("{kind: staff, monthly: 1, per: node, option: clud}", f"{HERE}.option", 'unknown offer "clud"'),
    ("{kind: staff, monthly: 1, per: node, gpu: Z9}", f"{HERE}.gpu", 'unknown GPU "Z9"'),
    ("{kind: staff, monthly: 1}, {kind: staff, monthly: 2}", "costs[1]", "a second cost called staff"),
    ("{kind: staff, name: a, once: 1}, {kind: staff, name: a, once: 2}", "costs[1].name",
     "a second cost called staff: a"),
]  # fmt: skip


def findings_of(text: str) -> list:
    with pytest.raises(ProblemFileError) as caught:
        parse_problem(text, "p.yaml", catalog=CATALOG)
    return caught.value.findings


@pytest.mark.parametrize(("costs", "path", "message"), CASES)
def test_a_wrong_cost_is_told_at_its_place(costs, path, message):
    """One finding, at the key that is wrong, with what was found or what to write."""
    found = findings_of(f"{BASE}costs: [{costs}]\n")
    assert [finding.path for finding in found] == [path], found
    assert message in str(found[0])
    assert found[0].line == 11


@pytest.mark.parametrize(
    ("rises", "path", "message"),
    [
        ("{power: 3 %}", "finance.opex_escalation.power", 'unknown key "power"'),
        ("{staff: 3}", "finance.opex_escalation.staff", "≤ 1, found 3"),
        ("{rent: -95 %}", "finance.opex_escalation.rent", "≥ -0.9"),
    ],
)
def test_a_wrong_escalation_is_told_at_its_place(rises, path, message):
    """Changes per year have known names and a sensible size."""
    found = findings_of(f"{BASE}finance: {{opex_escalation: {rises}}}\n")
    assert [finding.path for finding in found] == [path]
    assert message in str(found[0])


@pytest.mark.parametrize("key", ["maintenance: 5 %/year", "residual: 10 %", "useful_life: 40 months"])
def test_a_signed_reservation_has_nothing_of_owned_nodes(key):
    """What would be ignored is refused."""
    signed = f"{{name: s, gpu: A, nodes: 1, term: 6 months, fee: 1 USD/h, {key}}}"
    found = findings_of(f"{BASE}  existing: [{signed}]\n")
    assert [finding.path for finding in found] == [f"options.existing[0].{key.split(':')[0]}"]
    assert "has no meaning for a signed reservation" in str(found[0])


@pytest.mark.parametrize(
    "quote",
    [
        "{name: q, gpu: A, purchase: owned, price: 1 EUR}",
        "{name: q, gpu: A, purchase: owned, price: 1, installation: 1 EUR}",
        "{name: q, gpu: A, purchase: owned, price: 1, electricity: 1 EUR/kWh}",
        "{name: q, gpu: A, purchase: owned, price: 1, hosting: 1 EUR/kW/month}",
        "{name: q, gpu: A, purchase: reserved, term: 3 months, price: 1 EUR/h}",
        "{name: q, gpu: A, purchase: reserved, term: 3 months, price: 1/h, upfront: 1 EUR}",
        "{name: q, gpu: A, purchase: on-demand, price: 1 EUR/h}",
    ],
)
def test_a_foreign_price_needs_a_dated_rate(quote):
    """Every key of a quote that holds money is refused in a currency without a rate."""
    found = findings_of(BASE.replace("  quotes:\n", f"  quotes:\n    - {quote}\n"))
    assert len(found) == 1
    assert "a price in EUR needs a dated rate; add exchange_rates" in str(found[0]).replace(" (add", "; add")
