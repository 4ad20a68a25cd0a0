"""Start-up of replicas by clock hours, worked by hand."""

import json
import math
from typing import Any

import pytest

from optimizer.decision.variants import with_duty
from optimizer.errors import ProblemFileError
from optimizer.problem.load import parse_problem
from optimizer.solver.decomposition.run import can_decompose
from tests.model.builders import (
    Data,
    built,
    job,
    least_cost,
    on_demand,
    parsed,
    planned,
    problem,
    reserved,
    serves,
    service,
    the_catalog,
    works,
)

DAY = [0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 5, 5, 1, 1, 1, 1, 3, 3, 3, 3, 0, 0, 0, 0]


def needed(profile: list[int], rate: float) -> list[int]:
    """Replicas of 1 request/s in each hour of a day, at a mean rate."""
    mean = sum(profile) / len(profile)
    return [math.ceil(one / mean * rate - 1e-9) for one in profile]


def hours_of_start(nodes: list[int], startup: float) -> float:
    """Node-hours a day that starting nodes are paid before they serve."""
    return sum(max(0, nodes[(hour + 1) % 24] - nodes[hour]) for hour in range(24)) * startup


def chat(startup: str) -> Data:
    """A service that sleeps by night."""
    return service(rate=2.0, startup=startup, traffic={"profile": DAY})


@pytest.mark.parametrize(("startup", "hours"), [("0 min", 0.0), ("6 min", 0.1), ("45 min", 0.75)])
def test_rented_nodes_are_paid_from_their_start(startup: str, hours: float) -> None:
    """Each rise from one hour to the next is paid for its start-up, from no replica at night too."""
    nodes = needed(DAY, 2.0)
    expected = 365 * (sum(nodes) + hours_of_start(nodes, hours))
    assert least_cost(problem([chat(startup)], [on_demand()], [serves()])) == pytest.approx(expected)


def test_services_start_in_their_own_time() -> None:
    """Two services on nodes of their own pay each its own start-up, with the hour cut twice."""
    back = list(reversed(DAY))
    other = service("search", rate=3.0, startup="30 min", traffic={"profile": back})
    quotes = [on_demand(), on_demand("b", "B")]
    data = problem([chat("6 min"), other], quotes, [serves(), serves("search", gpu="B")])
    first, second = needed(DAY, 2.0), needed(back, 3.0)
    extra = hours_of_start(first, 0.1) + hours_of_start(second, 0.5)
    assert least_cost(data) == pytest.approx(365 * (sum(first) + sum(second) + extra))


def test_either_kind_of_day_may_follow_midnight() -> None:
    """Work by weekday, none at weekends: the first hour of a weekday is prepared for after every day."""
    profile = [2.0] * 24 + [0.0] * 24
    data = problem([service(rate=1.0, startup="6 min", traffic={"profile": profile})], [on_demand()], [serves()])
    nodes = 2  # 1 request/s on average is 1.4 on weekdays
    assert least_cost(data) == pytest.approx(nodes * 365 * (5 / 7 * 24 + 2 / 7 * 0.1))


def test_old_and_new_replicas_are_there_at_once() -> None:
    """Where the mix changes from hour to hour, both mixes hold nodes while the new one starts: limits count both."""
    profile = [1.0] * 12 + [4.0] * 12
    quotes = [on_demand("small", "A", price=1.0, provider="p"), on_demand("large", "B", price=3.0, provider="p")]
    measured = [serves(rate=1.0), serves(rate=4.0, gpu="B")]
    limits = {"providers": {"p": {"max_nodes": 1}}}

    def cost(startup: str) -> float:
        one = service(rate=2.5, startup=startup, traffic={"profile": profile})
        return least_cost(problem([one], quotes, measured, limits=limits))

    assert cost("0 min") == pytest.approx(365 * 12 * (1.0 + 3.0))
    assert cost("6 min") == pytest.approx(365 * 24 * 3.0)


def test_jobs_do_not_work_on_gpus_where_replicas_start() -> None:
    """A node held for the day is free for a job by night, but for the minutes in which replicas start on it."""
    profile = [0.0] * 12 + [1.0] * 12
    held, days = reserved(price=0.5, term=1), 730 / 24
    one = service(rate=0.5, traffic={"profile": profile})

    def cost(startup: str, hours_a_day: float) -> float:
        work = job(amount=hours_a_day * days)
        return least_cost(problem([one | {"startup": startup}, work], [held], [serves(), works()], months=1))

    assert cost("0 min", 12) == pytest.approx(365)
    assert cost("30 min", 11.5) == pytest.approx(365)
    assert cost("30 min", 11.6) == pytest.approx(730)


def test_a_plan_says_which_slices_are_for_starting() -> None:
    """Slices cut off the ends of hours carry the part of the hour, and all slices make up the time."""
    document = planned(problem([chat("6 min")], [on_demand()], [serves()])).document()
    ends = {one["name"]: tuple(one["starting"]) for one in document["grid"]["slices"] if "starting" in one}
    assert ends["weekday-07,weekend-07:54..60"] == pytest.approx((0.9, 1.0))
    assert math.fsum(one["share_of_hours"] for one in document["grid"]["slices"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("startup", "more", "words"),
    [
        ("1 h", {}, "only times below 1 h are planned"),
        ("5 min", {"slices": [{"name": "all", "share_of_hours": 1}]}, "which hour follows which"),
    ],
)
def test_what_cannot_be_planned_is_refused(startup: str, more: dict[str, Any], words: str) -> None:
    """An hour or more, and slices without an order, are errors at the key."""
    data = problem([service(startup=startup)], [on_demand()], [serves()], **more)
    with pytest.raises(ProblemFileError, match=words):
        parse_problem(json.dumps(data), catalog=the_catalog())


def test_break_even_counts_replicas_as_ready_at_once() -> None:
    """A problem run for a share of its hours has no order of hours; start-up is left out there."""
    data = parsed(problem([chat("6 min")], [on_demand()], [serves()]))
    assert all(w.startup == 0 for w in with_duty(data, 0.5).workloads if w.kind == "service")


def test_replicas_that_take_time_to_start_are_planned_in_one_model() -> None:
    """Start-up ties the cells of a block together: such problems are not decomposed, however large."""
    one, other = (problem([chat(startup)], [on_demand()], [serves()]) for startup in ("0 min", "6 min"))
    assert can_decompose(built(one).instance)
    assert not can_decompose(built(other).instance)


def test_a_start_that_does_not_fit_is_named() -> None:
    """One node, full until noon: what is needed from then on cannot start on it, and would if it were ready at once."""
    first = service("morning", rate=1.0, traffic={"profile": [1.0] * 12 + [0.0] * 12})
    then = service("later", rate=1.0, startup="6 min", traffic={"profile": [0.0] * 12 + [1.0] * 12})
    quotes = [on_demand(nodes_of=2, max_nodes=1)]
    measured = [serves("morning", rate=2.0, gpus_per_replica=2), serves("later", gpus_per_replica=1)]
    plan = planned(problem([first, then], quotes, measured, months=1))
    fixes = {one.change: one.required for one in plan.infeasibility if one.kind == "limit"}
    assert fixes == {"workloads.later.startup": 1.0, "options.quotes.od.max_nodes": 2.0}
