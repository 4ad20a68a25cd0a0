from datetime import date

import pytest

from catalog.load import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.solve import solve

TEXT = """\
name: bounds
horizon: {months: 12}
finance: {discount_rate: 5 %}
exchange_rates: {EUR: {rate: 1.1, date: 2026-11-01}}
workloads:
  - name: chat
    kind: service
    utilisation_cap: 0.5
    traffic: {mean_requests_per_s: 5, growth: 0 %/month}
  - {name: job, kind: training, model: gpt2, tokens: 1e9, mfu: 0.4, deadline: 10 days}
measurements: [{workload: chat, gpu: A100-80GB-SXM, requests_per_s: 5}]
options:
  catalog: false
  discounts: []
  quotes:
    - {name: rent, gpu: A100-80GB-SXM, purchase: on-demand, price: 2 USD/h, date: 2026-11-01, availability: 1}
"""
TODAY = date(2026, 12, 1)


def parsed(*replacements, text=TEXT):
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new, 1)
    return parse_problem(text, "p.yaml", catalog=load_catalog(), today=TODAY).problem


def test_the_base_is_right():
    """The problem that the cases below spoil has no mistake itself."""
    assert parsed().name == "bounds"


DISCOUNT = ("  catalog: false\n  discounts: []", "  discounts: [{provider: aws, %s}]")
WRONG = [
    ("months: 12", "months: 601", "horizon.months", "≤ 600, found 601"),
    ("months: 12", "months: 0", "horizon.months", "found 0"),
    ("months: 12", "months: 30 min", "horizon.months", "months or a duration"),
    ("discount_rate: 5 %", "discount_rate: 8", "finance.discount_rate", 'write "8 %" for a percentage'),
    ("discount_rate: 5 %", "discount_rate: 120 %", "finance.discount_rate", "≤ 1"),
    ("mean_requests_per_s: 5", "mean_requests_per_s: 1e10", "workloads[0].traffic.mean_requests_per_s", "≤ 1e+09"),
    ("mean_requests_per_s: 5", "requests_per_day: 1e20", "workloads[0].traffic.requests_per_day", "≤ 8.64e+13"),
    ("growth: 0 %/month", "growth: 500 %/month", "workloads[0].traffic.growth", "passes 1e+09 requests/s"),
    ("tokens: 1e9", "tokens: 1e21", "workloads[1].tokens", "≤ 1e+20"),
    ("tokens: 1e9", "tokens: 1e9, min_gpus: 10_000_000_000", "workloads[1].min_gpus", "≤ 1e+09"),
    ("requests_per_s: 5}]", "requests_per_s: 1e-300}]", "measurements[0].requests_per_s", "≥ 1e-09"),
    ("price: 2 USD/h", "price: 1e16 USD/h", "options.quotes[0].price", "≤ 1e+15"),
    ("rate: 1.1", "rate: 1e299", "exchange_rates.EUR.rate", "≤ 1e+09"),
    ("rate: 1.1, date: 2026-11-01", "rate: 1.1, date: 2026-12-02", "exchange_rates.EUR.date", "(today is 2026-12-01"),
    ("date: 2026-11-01, av", "date: 2027-11-01, av", "options.quotes[0].date", "is still to come"),
    (DISCOUNT[0], DISCOUNT[1] % "percent: 100 %", "options.discounts[0].percent", "write price: 0"),
    (DISCOUNT[0], DISCOUNT[1] % "price: 2 USD/h, date: 2028-01-01", "options.discounts[0].date", "is still to come"),
]


@pytest.mark.parametrize(("old", "new", "path", "message"), WRONG)
def test_what_is_beyond_measure_is_refused_at_its_place(old, new, path, message):
    """Sizes outside what can be planned, and dates that have not come, are one finding with the bound in it."""
    with pytest.raises(ProblemFileError) as caught:
        parsed((old, new))
    assert [finding.path for finding in caught.value.findings] == [path], caught.value
    assert message in str(caught.value)


def test_shares_may_be_percentages_and_horizons_durations():
    """What is a share takes a percentage; the horizon takes a duration, a bare number is months."""
    problem = parsed(
        ("months: 12", "months: 3 years"), ("utilisation_cap: 0.5", "utilisation_cap: 80 %"),
        ("mfu: 0.4", "mfu: 45 %"), ("availability: 1", "availability: 99 %"),
        ("options:", "site: {pue: 120 %}\nslices: [{name: a, share_of_hours: 40 %}, "
         "{name: b, share_of_hours: 60 %}]\noptions:"),
        ("{workload: chat, gpu: A100-80GB-SXM, requests_per_s: 5}", "{workload: chat, gpu: A100-80GB-SXM, "
         "requests_per_s: 5}, {workload: job, gpu: A100-80GB-SXM, mfu: 40 %}"),
    )  # fmt: skip
    chat, job = problem.workloads
    found = (problem.horizon.months, chat.utilisation_cap, job.mfu, problem.options.quotes[0].availability)
    assert found == pytest.approx((36, 0.8, 0.45, 0.99))
    assert problem.site.pue == pytest.approx(1.2)
    assert [one.share_of_hours for one in problem.slices] == pytest.approx([0.4, 0.6])
    assert problem.measurements[1].mfu == pytest.approx(0.4)
    periods = "months: 1 year, periods: [{start_month: 0, months: 6}, {start_month: 6 months, months: 6 months}]"
    assert [p.months for p in parsed(("months: 12", periods)).horizon.periods] == pytest.approx([6, 6])


@pytest.mark.parametrize(
    "changes",
    [
        [("mean_requests_per_s: 5", "mean_requests_per_s: 1e9")],
        [("months: 12", "months: 600, periods: yearly")],
        [("requests_per_s: 5}]", "requests_per_s: 1e-3}]")],
        [("price: 2 USD/h", "price: 1e9 USD/h")],
    ],
)
def test_what_is_within_the_bounds_is_solved(changes):
    """At the bounds themselves there is a plan, proven."""
    alone = TEXT.replace("  - {name: job, kind: training, model: gpt2, tokens: 1e9, mfu: 0.4, deadline: 10 days}\n", "")
    problem = parsed(*changes, text=alone)
    assert prepare(problem, load_catalog(), TODAY).supply.options
    assert solve(problem, load_catalog()).document()["status"] == "optimal"
