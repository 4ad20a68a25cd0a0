"""Prompts and outputs apart: least costs against enumeration, on one and on two GPU types, here and there."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.estimator.types import ClassEstimate, Deployment, Estimates, ServiceEstimate, Stage
from optimizer.model.build import Milp, build
from optimizer.model.instance import build_instance
from optimizer.prepare import prepare
from optimizer.solve import linear_model
from optimizer.solver.milp import Solution, SolverSettings, solve_model
from optimizer.solver.readback import assignments
from tests.model.builders import (
    HOURS_PER_YEAR,
    Data,
    check_solution,
    close,
    on_demand,
    parsed,
    problem,
    serves,
    service,
    the_catalog,
)

Seconds = dict[tuple[str, Stage], float]
prices = st.integers(2, 60).map(lambda n: n / 20)
seconds = st.integers(1, 12).map(lambda n: n / 4)


def estimate(gpu: str, stage: Stage, replica_seconds: float, weights: str = "bf16") -> ServiceEstimate:
    """A replica of one GPU that does a stage of a request (or all of it) in so many seconds."""
    found = ClassEstimate("all", replica_seconds)
    return ServiceEstimate("chat", gpu, Deployment(1, 1, weights=weights, stage=stage), (found,))


def solved(quotes: list[Data], estimates: list[ServiceEstimate], rate: float) -> tuple[Milp, Solution]:
    """Least-cost plan of a service of one class on estimates written here."""
    measured = [serves(gpu=gpu) for gpu in dict.fromkeys(quote["gpu"] for quote in quotes)]
    stocked = [quote | {"max_nodes": 99} for quote in quotes]  # limited offers outclass none by their measured rates
    made = parsed(problem([service(rate=rate) | {"disaggregated": "allowed"}], stocked, measured))
    supply = prepare(made, the_catalog()).supply
    milp = build(build_instance(made, supply, Estimates(services=tuple(estimates))))
    solution = solve_model(linear_model(milp), SolverSettings(gap=0))
    if solution.status != "infeasible":
        check_solution(milp, solution)
    return milp, solution


def nodes(load: float) -> int:
    """Whole nodes of one GPU for a load."""
    return math.ceil(load - 1e-9)


def least(price: dict[str, float], takes: Seconds, rate: float) -> float:
    """Cost per hour by trying every number of replicas: whole deployments do a share, stages the rest, in full each."""
    most = {key: nodes(rate * s) for key, s in takes.items()}
    best = math.inf
    for counts in itertools.product(*(range(most[key] + 1) for key in takes)):
        able = {"": 0.0, "prefill": 0.0, "decode": 0.0}
        for (key, s), count in zip(takes.items(), counts, strict=True):
            able[key[1]] += count / s
        if able[""] + min(able["prefill"], able["decode"]) >= rate * (1 - 1e-9):
            best = min(best, sum(n * price[gpu] for n, (gpu, _) in zip(counts, takes, strict=True)))
    return best


@settings(max_examples=25)
@given(st.tuples(prices, prices), st.tuples(*[seconds] * 4), seconds, st.integers(1, 5).map(float))
def test_stages_on_two_types_against_whole_replicas(
    cost: tuple[float, float], apart: tuple[float, ...], whole: float, rate: float
) -> None:
    """Any prefill stage feeds any decode stage of the same place; the cheapest mix with whole replicas is found."""
    takes: Seconds = {("A", ""): whole + apart[0]}
    takes |= dict(zip([("A", "prefill"), ("A", "decode"), ("B", "prefill"), ("B", "decode")], apart, strict=True))
    price = dict(zip("AB", cost, strict=True))
    quotes = [on_demand(gpu.lower(), gpu, 1, price[gpu], provider="north") for gpu in "AB"]
    _, solution = solved(quotes, [estimate(gpu, stage, s) for (gpu, stage), s in takes.items()], rate)
    assert close(solution.objective, least(price, takes, rate) * HOURS_PER_YEAR)


def test_a_split_over_two_types_is_cheaper_where_each_does_what_it_is_good_at() -> None:
    """Prompts on A (0.2 s, 2/h), outputs on B (0.5 s, 1/h): 2 and 5 replicas for 10 requests/s beat all else."""
    quotes = [on_demand("a", "A", 1, 2.0, provider="north"), on_demand("b", "B", 1, 1.0, provider="north")]
    takes: Seconds = {
        ("A", ""): 1.0, ("B", ""): 1.5, ("A", "prefill"): 0.2, ("A", "decode"): 0.6, ("B", "prefill"): 0.9,
        ("B", "decode"): 0.5,
    }  # fmt: skip
    milp, solution = solved(quotes, [estimate(gpu, stage, s) for (gpu, stage), s in takes.items()], 10.0)
    assert close(solution.objective, (2 * 2.0 + 5 * 1.0) * HOURS_PER_YEAR)
    found = {
        (a.gpu, a.deployment): (a.replicas_peak, a.share, a.utilisation) for a in assignments(milp, solution.values)
    }
    assert found["A", "prefill bf16 TP1"] == pytest.approx((2, 1.0, 1.0))
    assert found["B", "decode bf16 TP1"] == pytest.approx((5, 1.0, 1.0))


@pytest.mark.parametrize("where", [{"provider": "south"}, {"region": "elsewhere"}, {"weights": "fp8"}], ids=str)
def test_stages_that_cannot_hand_over_serve_nothing(where: dict[str, str]) -> None:
    """Another provider, another region or weights of another format: no cache goes there, so there is no plan."""
    weights = where.pop("weights", "bf16")
    quotes = [on_demand("a", "A", provider="north", region="x")]
    quotes.append(on_demand("b", "B") | {"provider": "north", "region": "x"} | where)
    estimates = [estimate("A", "prefill", 0.2), estimate("B", "decode", 0.5, weights)]
    assert solved(quotes, estimates, 10.0)[1].status == "infeasible"
    estimates = [estimate("A", "prefill", 0.2), estimate("A", "decode", 0.5), estimate("B", "decode", 0.1, weights)]
    assert close(solved(quotes, estimates, 10.0)[1].objective, (2 + 5) * HOURS_PER_YEAR)
