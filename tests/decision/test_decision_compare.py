"""Comparing ways of having the GPUs, and where owning breaks even: cases that can be reckoned by hand."""

import math
from typing import Any

import pytest

from catalog.load import load_catalog
from optimizer.decision.breakeven import CROSSING, NEVER, STOPPED, UNDEFINED
from optimizer.decision.compare import Comparison, compare
from optimizer.decision.runner import OutOfTimeError, Runner
from optimizer.decision.variants import cloud_only, cut_at, list_variants, owned_only, with_duty
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.problem.schema import Problem
from optimizer.report.compare import comparison_csv, comparison_sections
from optimizer.report.sections import markdown
from optimizer.solver.milp import SolverSettings

EXACT = SolverSettings(gap=0.0)
CLOUD = "{name: cloud, gpu: A, purchase: on-demand, price: 2 USD/h}"
BOX = "{name: box, gpu: A, purchase: owned, price: 14600 USD, residual: [{age: 0 months, fraction: 0}]}"
TEXT = """
name: by hand
horizon: {{months: 24, periods: quarterly}}
workloads:
  - name: chat
    kind: service
    traffic: {{mean_requests_per_s: 5}}
{more}
gpus: {{A: {{}}}}
measurements:
  - {{workload: chat, gpu: A, requests_per_s: 10, gpus_per_replica: 1}}
options: {{catalog: false, quotes: [{quotes}]{options}}}
{tail}
"""


def problem_of(quotes: str = f"{CLOUD}, {BOX}", more: str = "", options: str = "", tail: str = "") -> Problem:
    return parse_problem(TEXT.format(quotes=quotes, more=more, options=options, tail=tail)).problem


def compared(problem: Problem, **settings: Any) -> Comparison:
    return compare(problem, load_catalog(), EXACT, **settings)


def costs(found: Comparison) -> dict[str, float | None]:
    return {outcome.variant.name: outcome.cost for outcome in found.outcomes}


@pytest.fixture(scope="module")
def by_hand() -> Comparison:
    return compared(problem_of())


def test_variants_cost_what_they_cost_by_hand(by_hand: Comparison) -> None:
    """One GPU for 24 months: 24 · 730 h · 2 USD rented, 14,600 USD owned; the hybrid takes the cheaper."""
    assert costs(by_hand) == pytest.approx({"cloud-only": 35_040, "owned-only": 14_600, "hybrid": 14_600})


def test_break_even_utilisation_of_one_node(by_hand: Comparison) -> None:
    """Owning costs 14,600 however little it is used, renting u · 35,040: u* = 0.41667, inside a bracket of 1 %."""
    found = by_hand.utilisation
    assert found is not None
    assert found.status == CROSSING
    assert found.below is not None
    assert found.above is not None
    assert found.below.at < 14_600 / 35_040 <= found.above.at + 1e-12
    assert found.above.at - found.below.at <= 0.01 + 1e-12
    assert found.estimate == pytest.approx(14_600 / 35_040)
    assert found.cheaper_above == "owned-only"
    for point in found.points:
        assert point.owned_only == pytest.approx(14_600)
        assert point.cloud_only == pytest.approx(point.at * 35_040)


def test_break_even_month_of_one_node(by_hand: Comparison) -> None:
    """Renting costs 1,460 a month, so that owning for 14,600 breaks even in month 10, and the curves are straight."""
    found = by_hand.month
    assert found is not None
    assert found.above is not None
    assert found.below is not None
    assert (found.below.at, found.above.at) == (9, 10)
    assert by_hand.document()["break_even"]["month"]["month"] == 10
    for point in found.points:
        assert point.owned_only == pytest.approx(14_600)
        assert point.cloud_only == pytest.approx(point.at * 1_460)


def test_few_solves_are_enough(by_hand: Comparison) -> None:
    """The whole comparison takes at most some thirty re-solves, for it may be slow ones."""
    assert by_hand.solves <= 32


def test_owning_that_never_pays_is_said_so() -> None:
    """A node dearer than two years of rent is never cheaper, at no share of hours and in no month."""
    found = compared(problem_of(f"{CLOUD}, {BOX.replace('14600', '40000')}"))
    assert found.utilisation is not None
    assert found.month is not None
    assert (found.utilisation.status, found.month.status) == (NEVER, NEVER)
    assert found.document()["break_even"]["utilisation"]["utilisation"] is None


def test_without_an_owned_option_the_reason_says_what_to_write() -> None:
    """Nothing to own: the variant says what to give, and no break-even is claimed."""
    found = compared(problem_of(CLOUD))
    owned = found.document()["variants"]["owned-only"]
    assert owned["status"] == "infeasible"
    assert "give a site" in owned["reason"]
    assert found.utilisation is not None
    assert found.utilisation.status == UNDEFINED
    assert costs(found)["cloud-only"] == pytest.approx(35_040)


def test_a_stock_too_small_is_named_by_its_row() -> None:
    """An offer of no node at a time cannot carry the service: the first shortfall is the reason."""
    found = compared(problem_of(f"{CLOUD}, {BOX}", tail="limits: {stock: {cloud: 0}}"), break_even=False)
    reasons = {name: variant["reason"] for name, variant in found.document()["variants"].items()}
    assert "stock of cloud" in reasons["cloud-only"]
    assert reasons["owned-only"] == ""
    assert found.utilisation is None


def test_savings_are_against_the_stated_baseline() -> None:
    """Baseline: what is held stays, the rest on-demand; three GPUs' work on one kept node and two rented ones."""
    existing = ", existing: [{name: old, gpu: A, nodes: 1}]"
    more = "    headroom: 400 %"  # 5 requests/s · 5 = 25: three nodes of 10 requests/s
    problem = problem_of(more=more, options=existing, tail="baseline: {keep: existing, rest: on-demand}")
    document = compared(problem, break_even=False).document()
    assert document["variants"]["baseline"]["cost"]["npv"] == pytest.approx(2 * 35_040)
    assert document["variants"]["baseline"]["fleet"] == {"owned": {"A": 1}, "reserved": {}, "rented": {"A": 2}}
    saved = document["savings"]["against_baseline"]
    assert saved["hybrid"]["amount"] == pytest.approx(2 * 35_040 - 2 * 14_600)
    assert saved["hybrid"]["share"] == pytest.approx(1 - 14_600 / 35_040)
    assert saved["cloud-only"]["amount"] == pytest.approx(-35_040)


def test_a_baseline_may_keep_nothing() -> None:
    """With `keep: nothing` the nodes held now do not serve the baseline."""
    existing = ", existing: [{name: old, gpu: A, nodes: 1}]"
    problem = problem_of(options=existing, tail="baseline: {keep: nothing, rest: on-demand}")
    assert costs(compared(problem, break_even=False))["baseline"] == pytest.approx(35_040)


def test_a_signed_fee_is_owed_in_every_variant() -> None:
    """A year of 0.5 USD/h is signed: no way of having the rest is rid of it, and its node serves meanwhile."""
    signed = ", existing: [{name: signed, gpu: A, nodes: 1, term: 12 months, fee: 0.5 USD/h, paid: 9000 USD}]"
    document = compared(problem_of(options=signed, tail="baseline: {keep: nothing}"), break_even=False)
    fee, year = 0.5 * 8_760, 2 * 8_760
    wanted = {"cloud-only": fee + year, "baseline": fee + year, "owned-only": fee + 14_600, "hybrid": fee + 14_600}
    assert costs(document) == pytest.approx(wanted)
    assert document.document()["variants"]["owned-only"]["meaning"].endswith("and on what is signed already")


def test_lead_times_are_set_aside_for_owned_only_and_said() -> None:
    """Owned nodes that come in month 4 cannot serve month 0: owned-only supposes them there, the hybrid bridges."""
    found = compared(problem_of(f"{CLOUD}, {BOX[:-1]}, lead_time: 4 months}}"), break_even=False)
    document = found.document()["variants"]
    assert document["owned-only"]["lead_times_set_aside"]
    assert costs(found)["owned-only"] == pytest.approx(14_600)
    assert costs(found)["hybrid"] == pytest.approx(14_600 + 4 * 1_460)


def test_reserved_terms_belong_to_the_cloud() -> None:
    """A reservation counts as renting, and its GPUs are listed as reserved."""
    year = "{name: year, gpu: A, purchase: reserved, term: 12 months, price: 1 USD/h}"
    found = compared(problem_of(f"{CLOUD}, {year}, {BOX}"), break_even=False).document()["variants"]["cloud-only"]
    assert found["cost"]["npv"] == pytest.approx(2 * 8_760)
    assert found["fleet"]["reserved"] == {"A": 1}


def test_duty_is_exact_for_profiles_classes_and_windows() -> None:
    """Cut in two, every slice keeps its demand in u of its hours: on-demand cost is u times the whole, by the cent."""
    more = "    classes: [{name: a, share: 30 %}, {name: b, share: 70 %}]\n    headroom: 20 %"
    text = TEXT.format(quotes=CLOUD, more=more, options="", tail="").replace(
        "{mean_requests_per_s: 5}", "{requests_per_day: 4_000_000, profile: office-hours, growth: 2 %/month}"
    )
    problem = parse_problem(text).problem
    runner = Runner(load_catalog(), EXACT)
    whole = runner.least_cost(problem, "whole")
    part = runner.least_cost(with_duty(problem, 0.3), "part")
    assert whole is not None
    assert part == pytest.approx(0.3 * whole)


def test_jobs_do_their_share_of_the_work_inside_their_window() -> None:
    """A nightly batch at half duty has half its work, and its window still holds: no rent outside it."""
    text = """
name: night
horizon: {months: 1, periods: once}
workloads:
  - {name: nightly, kind: batch, work: {amount: 7300, unit: pages}, window: {daily: "22:00-06:00"}}
gpus: {A: {}}
measurements: [{workload: nightly, gpu: A, per_gpu_hour: 10}]
options: {catalog: false, quotes: [{name: cloud, gpu: A, purchase: on-demand, price: 2 USD/h}]}
"""
    problem = with_duty(parse_problem(text).problem, 0.5)
    instance = prepare(problem, load_catalog()).instance()
    (demand,) = instance.volume_demands
    assert demand.amount == pytest.approx(3650)
    assert math.fsum(cell.hours for cell in demand.cells) == pytest.approx(730 / 3)
    assert Runner(load_catalog(), EXACT).least_cost(problem, "half") == pytest.approx(730)


def test_a_shorter_horizon_leaves_out_jobs_that_end_later() -> None:
    """Cut at month 3, a job with its deadline in month 6 is gone; cut at 6, it is there."""
    more = "  - {name: train, kind: batch, work: {amount: 10, unit: pages}, start: month 5, deadline: 1 months}"
    text = TEXT.format(quotes=CLOUD, more=more, options="", tail="").replace(
        "measurements:\n", "measurements:\n  - {workload: train, gpu: A, per_gpu_hour: 10}\n"
    )
    problem = parse_problem(text).problem
    names = {month: [w.name for w in cut.workloads] for month in (3, 6) if (cut := cut_at(problem, month)) is not None}
    assert names == {3: ["chat"], 6: ["chat", "train"]}


def test_daily_work_is_whole_in_any_horizon() -> None:
    """Requests per day have no end to wait for: a batch of them stays in every cut, in proportion."""
    more = "  - {name: daily, kind: batch, requests: {per_day: 240}}"
    text = TEXT.format(quotes=CLOUD, more=more, options="", tail="").replace(
        "measurements:\n", "measurements:\n  - {workload: daily, gpu: A, requests_per_s: 0.01}\n"
    )
    problem = parse_problem(text).problem
    runner = Runner(load_catalog(), EXACT)
    cut = cut_at(problem, 6)
    assert cut is not None
    whole, part = runner.least_cost(problem, "24 months"), runner.least_cost(cut, "6 months")
    assert whole is not None
    assert part == pytest.approx(whole / 4)


def test_listed_periods_are_cut_with_the_horizon() -> None:
    """Own periods beyond the cut go, the one that holds it ends there."""
    text = TEXT.format(quotes=CLOUD, more="", options="", tail="")
    periods = "[{start_month: 0, months: 6}, {start_month: 6, months: 18}]"
    cut = cut_at(parse_problem(text.replace("periods: quarterly", f"periods: {periods}")).problem, 9)
    assert cut is not None
    assert not isinstance(cut.horizon.periods, str)
    assert [(p.start_month, p.months) for p in cut.horizon.periods] == [(0, 6), (6, 3)]


def test_variants_change_nothing_but_the_supply() -> None:
    """Every variant has the same workloads, horizon and limits as the problem."""
    problem = problem_of(tail="limits: {capex: 20_000 USD}")
    for variant in list_variants(problem):
        same = variant.problem.model_copy(update={"options": problem.options})
        assert same == problem


def test_options_not_allowed_stay_out_of_every_variant() -> None:
    """A problem that allows on-demand only has no owned option, though a quote of one is there."""
    problem = problem_of(options=", purchase: [on-demand]")
    assert owned_only(problem).options.purchase == []
    assert cloud_only(problem).options.purchase == ["on-demand"]
    reason = compared(problem, break_even=False).document()["variants"]["owned-only"]["reason"]
    assert "options.purchase" in reason


def test_no_solve_is_started_when_the_time_is_up(by_hand: Comparison) -> None:
    """An interrupted search starts nothing more and keeps what it has."""
    runner = Runner(load_catalog(), EXACT, interrupted=True)
    with pytest.raises(OutOfTimeError):
        runner.least_cost(problem_of(), "never")
    assert runner.solves == 0


def test_a_stopped_search_says_so() -> None:
    """Out of time in the middle, the break-even is marked stopped and shows the points computed so far."""
    from optimizer.decision.breakeven import Point, Ways, break_even_utilisation

    problem = problem_of()
    ways = Ways(owned_only(problem), cloud_only(problem))
    runner = Runner(load_catalog(), EXACT, interrupted=True)
    found = break_even_utilisation(ways, runner, Point(1.0, 14_600.0, 35_040.0))
    assert found.status == STOPPED
    assert len(found.points) == 1


def test_the_text_holds_the_answer_in_words(by_hand: Comparison) -> None:
    """Variants, verdicts and definitions stand in the Markdown, one line per variant in the CSV."""
    document = by_hand.document()
    text = markdown(comparison_sections(document))
    for part in ("35,040.00", "From month 10 on owning costs no more", "about 41.7 %", "bisection", "baseline:"):
        assert part in text
    assert [line.split(",")[0] for line in comparison_csv(document).splitlines()] == [
        "variant",
        "cloud-only",
        "owned-only",
        "hybrid",
    ]


def test_hardware_that_is_given_up_is_sold_at_the_start() -> None:
    """Renting all sells the old node for 12,300 now; keeping it saves the rent of 1,825 and loses 225 of its worth."""
    held = ", existing: [{name: old, gpu: A, nodes: 1, age: 12 months, paid: 15_000 USD}]"
    text = TEXT.replace("months: 24, periods: quarterly", "months: 1, periods: once")
    cloud = "{name: cloud, gpu: A, purchase: on-demand, price: 2.5 USD/h}"
    problem = parse_problem(text.format(quotes=cloud, more="", options=held, tail="")).problem
    found = compared(problem, break_even=False)
    assert costs(found) == pytest.approx({"cloud-only": 1_825 - 12_300, "owned-only": -12_075, "hybrid": -12_075})
    assert found.document()["variants"]["cloud-only"]["sold_at_start"] == pytest.approx(12_300)
