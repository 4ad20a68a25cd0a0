"""Billing steps, worked by hand and against enumeration: what is paid of the time that rented nodes are used."""

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.errors import ProblemFileError
from optimizer.problem.load import parse_problem
from optimizer.solver.decomposition.run import can_decompose
from tests.model.builders import (
    Data,
    built,
    classes_service,
    close,
    job,
    least_cost,
    on_demand,
    planned,
    problem,
    reserved,
    serves,
    service,
    works,
)
from tests.model.strategies import examples

OFFICE = [0.0] * 9 + [1.0] * 8 + [0.0] * 7
NEVER = [0.0] * 24


# --- runs of jobs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "cost"),
    [
        ({}, 4 / 30),
        ({"billing_step": "second"}, 4 / 30),
        ({"billing_step": "10 minutes"}, 4 / 6),
        ({"billing_step": "hour"}, 4.0),
        ({"billing_step": "hour", "billed_by_clock": True}, 8.0),
        ({"billing_step": "day"}, 96.0),
        ({"billing_step": "day", "billed_by_clock": True}, 96.0),
    ],
)
def test_two_minutes_across_an_hour(more: Data, cost: float) -> None:
    """From 09:59 to 10:01 at 4.00 an hour: two clock hours are 8.00 (MicrosoftDocs/azure-docs issue 34390)."""
    work = job(amount=2 / 60, start="9.983333333333333 h", deadline="2 min", max_gpus=1)
    assert least_cost(problem([work], [on_demand(price=4.0, **more)], [works()], months=1)) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("amount", "more", "hours"),
    [
        (12.0, {}, 12),  # any number of nodes: twelve for an hour
        (12.2, {}, 13),
        (12.0, {"min_gpus": 8}, 12),  # twelve at once
        (12.0, {"min_gpus": 8, "max_gpus": 8}, 16),  # eight for an hour and a half
        (12.0, {"min_gpus": 8, "max_gpus": 11}, 16),
        (3.0, {"min_gpus": 8}, 8),
        (1e-7, {}, 1),
    ],
)
def test_a_run_is_rounded_up_once(amount: float, more: Data, hours: float) -> None:
    """So many hours of work on nodes billed by the hour, within the sizes that the job may have."""
    work = job(amount=amount, deadline="20 days", **more)
    data = problem([work], [on_demand(billing_step="hour")], [works()], months=1)
    assert least_cost(data) == pytest.approx(hours)


@pytest.mark.parametrize("clock", [False, True])
@pytest.mark.parametrize(
    ("amount", "window", "most", "days"),
    [(12.0, 72, 2, 1), (12.0, 48, 4, 1), (24.0, 24, 1, 1), (30.0, 72, 1, 2), (59.94, 60, 1, 3), (60.0, 60, 1, 3)],
)
def test_a_run_in_a_window_of_days_pays_whole_days(
    amount: float, window: int, most: int, days: int, clock: bool
) -> None:
    """However few days of a kind a mean of weeks has in a window, one that is used is paid in full."""
    work = job(amount=amount, deadline=f"{window} h", max_gpus=most)
    offer = on_demand(billing_step="day", billed_by_clock=clock)
    assert least_cost(problem([work], [offer], [works()], months=1)) == pytest.approx(24 * days)


def test_less_than_a_week_of_weekdays_is_whole_days() -> None:
    """Three days, of which a mean of weeks makes 2.14 weekdays: nodes pay three, for weekdays or for all days."""
    chat = service(rate=1 / 4.2, traffic={"profile": OFFICE + NEVER})
    assert least_cost(problem([chat], [on_demand(billing_step="day")], [serves()], months=72 / 730)) == pytest.approx(
        72
    )


def test_a_run_across_cuts_of_the_grid_is_rounded_once() -> None:
    """What cuts the grid (another job, a new period) is no end of a use."""
    runs = [job("long", 40.0, max_gpus=1, deadline="60 days"), job("cut", 0.5, start="20 h", deadline="0.5 h")]
    quotes, measured = [on_demand(billing_step="day"), on_demand("b", "B")], [works("long"), works("cut", gpu="B")]
    assert least_cost(problem(runs, quotes, measured, months=2, periods="monthly")) == pytest.approx(48.5)


def test_jobs_share_nodes_paid_in_long_steps() -> None:
    """Two jobs of 40 and of half an hour fit two days of one node, whose hours are paid anyway."""
    runs = [job("long", 40.0, max_gpus=1, deadline="60 days"), job("cut", 0.5, start="20 h", deadline="0.5 h")]
    data = problem(runs, [on_demand(billing_step="day")], [works("long"), works("cut")], months=2)
    assert least_cost(data) == pytest.approx(48)


def test_steps_of_the_clock_in_a_full_window() -> None:
    """One GPU throughout 09:45 to 11:15 pays three clock hours; two GPUs do it in the hour between."""
    work = job(amount=1.5, start="9.75 h", deadline="1.5 h", max_gpus=1)
    offer = on_demand(billing_step="hour", billed_by_clock=True)
    assert least_cost(problem([work], [offer], [works()], months=1)) == pytest.approx(3.0)
    assert least_cost(problem([work | {"max_gpus": 2}], [offer], [works()], months=1)) == pytest.approx(2.0)


def test_each_day_of_daily_work_is_a_run() -> None:
    """2.2 hours every day are 3 hours every day, or a day with steps of a day."""
    work = {"name": "daily", "kind": "batch", "requests": {"per_day": 22, "input": 1, "output": 1}}
    measured = [works("daily", 10.0)]
    days = 730 / 24
    for step, hours in (("hour", 3), ("day", 24)):
        data = problem([work], [on_demand(billing_step=step)], measured, months=1)
        assert least_cost(data) == pytest.approx(days * hours)


def test_steps_pay_for_hours_outside_a_daily_window() -> None:
    """Of a node's week a nightly window of eight hours has 56: work of 50 hours needs one week, of 60 two."""
    for amount, weeks in ((50.0, 1), (60.0, 2)):
        work = job(amount=amount, deadline="28 days", window={"daily": "22:00-06:00"})
        data = problem([work], [on_demand(billing_step="week")], [works()], months=1)
        assert least_cost(data) == pytest.approx(weeks * 168)


def test_a_long_run_in_short_steps_is_paid_as_used() -> None:
    """Above a million steps rounding is no figure that counts."""
    work = job(amount=300.0001, max_gpus=1)
    for step, hours in (("second", 300.0001), ("minute", math.ceil(300.0001 * 60) / 60)):
        data = problem([work], [on_demand(billing_step=step)], [works()], months=1)
        assert least_cost(data) == pytest.approx(hours, rel=1e-9)


# --- services ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "hours"),
    [(None, 730 * 5 / 7 * 8 / 24), ("hour", 730 * 5 / 7 * 8 / 24), ("day", 31 * 5 / 7 * 24), ("week", 5 * 168),
     ("month", 730), ("year", 8760)],
)  # fmt: skip
def test_office_hours_pay_whole_days_weeks_months(step: str | None, hours: float) -> None:
    """A replica for eight hours on weekdays, during one month (730 hours): 31 days begin in it, and five weeks."""
    chat = service(rate=1 / 4.2, traffic={"profile": OFFICE + NEVER})
    more = {} if step is None else {"billing_step": step}
    assert least_cost(problem([chat], [on_demand(**more)], [serves()], months=1)) == pytest.approx(hours)


def test_days_are_told_apart_only_where_slices_are() -> None:
    """Slices of no clock hours may be part of any day: what one of them needs is paid on all days."""
    slices = [{"name": "day", "share_of_hours": 0.25}, {"name": "night", "share_of_hours": 0.75}]
    chat = classes_service("chat", {"all": 2.0}, traffic={"by_slice": {"day": 1.0, "night": 0.5}})
    data = problem([chat], [on_demand(billing_step="day")], [serves()], months=12, slices=slices)
    assert least_cost(data) == pytest.approx(2 * 8760)


def test_a_use_goes_on_across_periods() -> None:
    """Three months of one node are 92 days, not three times 31; a second one for the first month is 31 days."""
    periods = [{"start_month": i, "months": 1} for i in range(3)]
    offer = on_demand(billing_step="day")
    for loads, days in (([1.0, 1.0, 1.0], 92), ([2.0, 1.0, 1.0], 92 + 31)):
        chat = classes_service("chat", {"all": 1.0}, traffic={"by_period": loads})
        data = problem([chat], [offer], [serves()], months=3, periods=periods)
        assert least_cost(data) == pytest.approx(days * 24)


def test_jobs_get_what_is_left_of_paid_days_for_nothing() -> None:
    """A node for office hours is paid by the day: sixteen hours of each weekday are a job's, more need other nodes."""
    chat, days = service(rate=1 / 4.2, traffic={"profile": OFFICE + NEVER}), 730 / 24 * 5 / 7
    alone = 31 * 5 / 7 * 24
    for amount, more in ((15.9 * days, 0.0), (16.1 * days, 24.0)):
        work = job(amount=amount)
        data = problem([chat, work], [on_demand(billing_step="day")], [serves(), works()], months=1)
        assert least_cost(data) == pytest.approx(alone + more)


def test_paid_and_used_hours_stand_in_the_plan() -> None:
    """Of 31 weekdays' share of days one third is used; the bill of a job says its steps."""
    chat = service(rate=1 / 4.2, traffic={"profile": OFFICE + NEVER})
    work = job(amount=2.5, gpus=["B"])
    quotes = [on_demand("od", billing_step="day"), on_demand("b", "B", billing_step="hour")]
    document = planned(problem([chat, work], quotes, [serves(), works(gpu="B")], months=1)).document()
    found = {rental["option"]: rental for rental in document["rentals"]}
    assert found["od"]["gpu_hours"] == pytest.approx(31 * 5 / 7 * 24)
    assert found["od"]["used_gpu_hours"] == pytest.approx(730 * 5 / 7 * 8 / 24)
    assert (found["b"]["gpu_hours"], found["b"]["used_gpu_hours"]) == pytest.approx((3, 2.5))
    (stretch,), (bill,) = document["schedule"]["stretches"], document["schedule"]["bills"]
    assert (stretch["days"], stretch["nodes"], bill["node_steps"]) == ("weekday", 1, 3)


def test_further_costs_and_emissions_count_paid_hours() -> None:
    """Support per node and tonnes of CO2e are those of the time paid inside the horizon."""
    chat = service(rate=1 / 4.2, traffic={"profile": OFFICE + NEVER})
    more: Data = {"costs": [{"kind": "support", "monthly": 73.0, "per": "node"}]}
    more |= {"finance": {"carbon_price": "1_000/t"}, "carbon": {"pue": 1.0}}
    offer = on_demand(billing_step="week", carbon="1000 g/kWh", power="1 kW")
    data = problem([chat], [offer], [serves()], months=1, **more)
    assert least_cost(data) == pytest.approx(840 + 73 + 730)


# --- which offers there are -------------------------------------------------------------------------------------------


def test_a_dearer_offer_in_finer_steps_is_kept() -> None:
    """Six minutes cost 1.00 by the hour begun and 0.15 at 1.50 an hour as used: neither outclasses the other."""
    quotes = [on_demand("coarse", price=1.0, billing_step="hour"), on_demand("fine", price=1.5)]
    for amount, cost in ((0.1, 0.15), (10.0, 10.0)):
        data = problem([job(amount=amount, max_gpus=1)], quotes, [works()], months=1)
        assert least_cost(data) == pytest.approx(cost)
    chat = service(rate=1.0)
    left = planned(problem([chat], quotes, [serves()], months=1)).left_out
    assert [one["option"] for one in left] == ["fine"]


def test_a_month_is_no_whole_number_of_days() -> None:
    """730 hours are one month, and 31 days begun: each of the two is cheaper for some use."""
    quotes = [on_demand("days", price=1.0, billing_step="day"), on_demand("months", price=1.001, billing_step="month")]
    assert least_cost(problem([service(rate=1.0)], quotes, [serves()], months=1)) == pytest.approx(730.73)


def test_long_steps_are_planned_in_one_model() -> None:
    """Prices and cells do not know steps longer than an hour."""
    for step, may in (("hour", True), ("day", False)):
        data = problem([service(rate=2.0)], [on_demand(billing_step=step), reserved()], [serves()])
        assert can_decompose(built(data).instance) == may


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        (reserved(billing_step="day"), "billing_step has no meaning for purchase: reserved"),
        (on_demand(billed_by_clock=True), "billed_by_clock without billing_step"),
        (on_demand(billing_step="fortnight"), "billing_step"),
    ],
)
def test_steps_without_a_meaning_are_refused(offer: Data, words: str) -> None:
    """A reservation has its term; the clock needs its steps."""
    with pytest.raises(ProblemFileError) as error:
        parse_problem(json.dumps(problem([service()], [offer], [serves()])))
    assert words in str(error.value)


# --- against enumeration ----------------------------------------------------------------------------------------------

HOURS: dict[str, float] = {"day": 24, "week": 168, "month": 730}


def steps_paid(start: float, end: float, step: float, *, clock: bool) -> float:
    """Hours paid for one use."""
    if clock:
        return (math.ceil(end / step - 1e-9) - math.floor(start / step + 1e-9)) * step
    return math.ceil((end - start) / step - 1e-9) * step


@examples(40)
@given(
    st.lists(st.integers(0, 2), min_size=3, max_size=3).filter(any),
    st.lists(st.sampled_from((0.5, 1.0, 1.3, 2.0)), min_size=3, max_size=3),
    st.sampled_from(sorted(HOURS)),
    st.booleans(),
)
def test_uses_over_periods(loads: list[int], months: list[float], step: str, clock: bool) -> None:
    """Nodes rented from one period to another, over all ways of covering what three periods need."""
    starts = [sum(months[:i]) for i in range(4)]
    uses = [(i, j) for i in range(3) for j in range(i, 3)]
    best = math.inf
    for counts in itertools.product(range(3), repeat=len(uses)):
        there = [sum(n for n, (i, j) in zip(counts, uses, strict=True) if i <= b <= j) for b in range(3)]
        if all(n >= load for n, load in zip(there, loads, strict=True)):
            paid = (
                n * steps_paid(starts[i] * 730, starts[j + 1] * 730, HOURS[step], clock=clock)
                for n, (i, j) in zip(counts, uses, strict=True)
            )
            best = min(best, sum(paid))
    chat = classes_service("chat", {"all": 1.0}, traffic={"by_period": [float(load) for load in loads]})
    periods = [{"start_month": start, "months": length} for start, length in zip(starts, months, strict=False)]
    offer: dict[str, Any] = on_demand(billing_step=step, billed_by_clock=clock)
    assert close(least_cost(problem([chat], [offer], [serves()], months=starts[3], periods=periods)), best)


@examples(60)
@given(
    st.integers(1, 60).map(lambda n: n / 8),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(0, 8).map(lambda n: n / 4),
    st.integers(2, 12).map(lambda n: n / 4),
    st.booleans(),
)
def test_runs_in_a_window(work: float, least: int, wider: int, start: float, window: float, clock: bool) -> None:
    """Nodes at once in every step of the window, by hours begun: over all numbers in each of its steps."""
    most, origin = least + wider, 0.0 if clock else start
    marks = [origin + k for k in range(-1, 8) if start < origin + k < start + window]
    lengths = [b - a for a, b in itertools.pairwise([start, *marks, start + window])]
    sizes = (0, *range(least, most + 1))
    held = [
        sum(nodes)
        for nodes in itertools.product(sizes, repeat=len(lengths))
        if sum(n * length for n, length in zip(nodes, lengths, strict=True)) >= work - 1e-9
    ]
    best = min(held, default=math.inf)
    run = job(amount=work, start=f"{start} h", deadline=f"{window} h", min_gpus=least, max_gpus=most)
    offer = on_demand(billing_step="hour", billed_by_clock=clock)
    assert close(least_cost(problem([run], [offer], [works()], months=1)), best)
