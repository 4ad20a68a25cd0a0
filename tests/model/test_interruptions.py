"""Jobs on interruptible capacity: what a checkpoint saves, what starting over costs, and when it is refused."""

import json
import math
import random

import pytest

from optimizer.audit import audit_plan
from optimizer.errors import ProblemFileError
from optimizer.report.plan import plan_sections
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import Data, job, least_cost, on_demand, parsed, planned, problem, spot, the_catalog, works

MONTH = 730


def cost(amount: float, *, rate: float = 0.01, lost: str | None = None, nodes_of: int = 1, **more: object) -> float:
    """Least cost of a job of so many GPU-hours, on spot at 1 per node-hour; on-demand nodes cost 100."""
    terms: Data = {"interruptions_per_hour": rate} | ({} if lost is None else {"hours_lost": lost})
    quotes = [spot("s", "A", nodes_of, 1.0, **terms), on_demand("od", "A", nodes_of, 100.0)]
    data = problem([job(amount=amount, **more)], quotes, [works(gpus_per_replica=1)], months=12)
    return least_cost(data)


def test_checkpoints_lose_half_their_interval_and_the_restart() -> None:
    """Every 2 h and 30 min to go on: 1.5 h per interruption, instead of what the offer says of its other loads."""
    for lost in (None, "5 h"):
        found = cost(500.0, lost=lost, checkpoint_every="2 h", restart="30 min")
        assert found == pytest.approx(500 * (1 + 0.01 * 1.5))
    assert cost(500.0, lost="5 h") == pytest.approx(500 * (1 + 0.01 * 5))


@pytest.mark.parametrize("said", [{}, {"checkpoints": False}], ids=["nothing said", "no checkpoints"])
def test_starting_over_is_priced_by_its_expected_hours(said: Data) -> None:
    """(e^(λH) − 1) ÷ λ node-hours for H = 100 at λ = 0.01; nodes of 8 GPUs are taken back as nodes."""
    assert cost(100.0, **said) == pytest.approx(math.expm1(1.0) / 0.01)
    assert cost(800.0, nodes_of=8, **said) == pytest.approx(math.expm1(1.0) / 0.01)


def test_the_formula_is_the_mean_of_simulated_runs() -> None:
    """Played through 200,000 times: draw the time to the next interruption until one is longer than the run."""
    draw = random.Random(7)
    total = 0.0
    for _ in range(200_000):
        while (up := draw.expovariate(0.01)) < 100.0:
            total += up
        total += 100.0
    assert total / 200_000 == pytest.approx(math.expm1(1.0) / 0.01, rel=0.01)


def test_what_may_never_end_is_refused_with_the_reason() -> None:
    """500 h at one interruption in 100 h would take 14,741 h: on-demand it is, and the rejection says what to give."""
    assert cost(500.0) == pytest.approx(50_000.0)
    quotes = [spot("s", "A", 1, 1.0, interruptions_per_hour=0.01), on_demand("od", "A", 1, 100.0)]
    data = problem([job(amount=500.0)], quotes, [works(gpus_per_replica=1)], months=12)
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    (refused,) = plan.rejections
    assert (refused["workload"], refused["resource"]) == ("train", "interruptions")
    assert refused["available"] == pytest.approx(5.0)
    assert "checkpoint_every" in refused["reason"]
    document = json.loads(json.dumps(plan.document()))
    assert audit_plan(document, catalog=the_catalog()).ok
    document["rejections"][0]["available"] = 4.0
    assert not audit_plan(document, catalog=the_catalog()).ok


def test_without_checkpoints_an_unknown_rate_is_not_none() -> None:
    """Spot that says nothing of interruptions is refused to a job that starts over; other jobs may use it."""
    assert cost(50.0, rate=0.0, checkpoints=False) == pytest.approx(5_000.0)
    assert cost(50.0, rate=0.0) == pytest.approx(50.0)


def test_each_day_is_a_run_of_its_own() -> None:
    """Daily work of 50 h starts over within the day: 12 months of it are priced by the day's 50 hours."""
    quotes = [spot("s", "A", 1, 1.0, interruptions_per_hour=0.01), on_demand("od", "A", 1, 100.0)]
    daily = job(amount=50.0, repeat="daily")
    data = problem([daily], quotes, [works(gpus_per_replica=1)], months=10 / MONTH * 24)
    assert least_cost(data) == pytest.approx(10 * math.expm1(0.5) / 0.01, rel=1e-6)


def test_an_interval_of_checkpoints_that_there_are_none_of() -> None:
    """checkpoints: false beside checkpoint_every is a contradiction."""
    with pytest.raises(ProblemFileError, match="checkpoint_every"):
        cost(10.0, checkpoints=False, checkpoint_every="1 h")


def test_the_expected_hours_of_a_run_are_in_the_plan_and_its_report() -> None:
    """80 GPU-hours on one node of 8: 10 h undisturbed, (e^(λH) − 1) ÷ λ hours on average."""
    quotes = [spot("s", "A", 8, 1.0, interruptions_per_hour=0.05), on_demand("od", "A", 8, 100.0)]
    alone = job(amount=80.0, min_gpus=8, max_gpus=8, checkpoints=False, deadline="20 h")
    document = planned(problem([alone], quotes, [works(gpus_per_replica=1)], months=1)).document()
    (found,) = document["assignments"]
    expected = math.expm1(0.5) / 0.05
    assert (found["gpus_peak"], found["hours_undisturbed"]) == (8, pytest.approx(10))
    assert found["hours_expected"] == pytest.approx(expected)
    (section,) = [one for one in plan_sections(document) if one.title == "Who serves what"]
    assert any("takes 12.97 h on average, 10 h if undisturbed" in note for note in section.notes)


def test_only_jobs_that_start_over_have_expected_hours() -> None:
    """With checkpoints a run goes on: hours lost are in its cost, and no hours are listed."""
    quotes = [spot("s", "A", 8, 1.0, interruptions_per_hour=0.05, hours_lost="1 h")]
    document = planned(problem([job(amount=80.0)], quotes, [works(gpus_per_replica=1)], months=1)).document()
    assert [one["hours_expected"] for one in document["assignments"]] == [None]
