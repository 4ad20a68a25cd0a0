"""A first plan that HiGHS misreads must not come back as the optimum."""

from dataclasses import replace

from optimizer.solve import linear_model
from optimizer.solver import known_start
from optimizer.solver.milp import Solution, SolverSettings, solve_model
from optimizer.solver.spare_start import solve_from_spares
from tests.model.builders import (
    Data,
    at_most,
    built,
    check_solution,
    classes_service,
    close,
    on_demand,
    planned,
    problem,
    reserved,
    serves,
)


def grown_service_with_a_spare_node() -> Data:
    """Nodes of 1 GPU by the hour, or of 8 for a year that outlasts the horizon of two quarters."""
    chat = classes_service("chat", {"x": 1.75, "y": 5.0}, redundancy="n+1", traffic={"growth": "20 %/month"})
    measured = [serves(rate=1.25, **{"class": "x"}), serves(rate=0.5, **{"class": "y"})]
    for one in measured:
        one["gpus_per_replica"] = 1
    offers = [on_demand("hourly", "A", 1, 3.0), reserved("yearly", "A", 8, 3.12, 12)]
    periods = [{"start_month": 0, "months": 3}, {"start_month": 3, "months": 3}]
    return problem([chat], offers, measured, months=6, periods=periods)


def test_a_misread_first_plan_is_not_called_optimal() -> None:
    """HiGHS 1.16.0 moves this first plan to a cheaper point that is no plan; the answer is the true optimum."""
    milp = built(grown_service_with_a_spare_node())
    model, settings = linear_model(milp), SolverSettings(gap=0)
    alone = solve_model(replace(model, start=()), settings)
    found = solve_from_spares(milp, model, settings)
    assert found.status == "optimal"
    assert close(found.objective, alone.objective)
    assert found.gap <= 1e-6
    check_solution(milp, found)


def test_its_plan_passes_the_audit() -> None:
    """The proof in the plan file is one: bound and cost agree."""
    cost = planned(grown_service_with_a_spare_node()).cost
    assert close(cost.bound, cost.npv)


def test_without_time_for_another_search_it_is_a_plan_without_proof() -> None:
    """Stopped at once, the plan is feasible, and its bound is none that a better plan contradicts."""
    milp = built(grown_service_with_a_spare_node())
    model = linear_model(milp)
    best = solve_model(model, SolverSettings(gap=0))
    found = solve_from_spares(milp, model, SolverSettings(gap=0, time_limit_s=1e-3))
    if found.values:
        check_solution(milp, found)
        assert at_most(best.objective, found.objective)
        assert at_most(found.bound, best.objective)
        assert found.status == "optimal" or found.gap > 0


def test_a_start_that_is_cheaper_by_rounding_alone_is_no_other_plan() -> None:
    """What the search without a start proves is the answer where the start's plan costs less by a hair only."""
    start = Solution("feasible", (1.0,), -749.4821068, -760.0, 0.01)
    proven = Solution("optimal", (1.0,), -749.4820968, -749.4820968, 0.0)
    assert known_start._better(start, proven) is proven
    dearer = replace(proven, objective=-700.0, bound=-749.9)
    kept = known_start._better(start, dearer)
    assert (kept.objective, kept.bound, kept.status) == (start.objective, -749.9, "feasible")
    above = known_start._better(start, replace(proven, objective=-700.0, bound=-700.0))
    assert above.bound == start.objective
    assert above.gap == 0
