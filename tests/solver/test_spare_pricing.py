"""The least price of surviving a loss, against enumeration; and decomposed plans of services that must survive one."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimizer.audit import audit_plan
from optimizer.prepare import prepare
from optimizer.solve import solve
from optimizer.solver.decomposition.choices import choose
from optimizer.solver.decomposition.run import decompose
from optimizer.solver.decomposition.spare_pricing import SpareTable
from optimizer.solver.matrix import MatrixModel, solve_matrix
from optimizer.solver.milp import Solution, SolverSettings
from tests.model.builders import (
    Data,
    at_most,
    check_solution,
    classes_service,
    least_cost,
    on_demand,
    owned,
    parsed,
    problem,
    reserved,
    serves,
    the_catalog,
)

Group = tuple[int, int, int, float, float]
"""Host, price of a replica, replicas lost, and the loads of two classes."""
numbers = st.integers(1, 12)
groups = st.lists(
    st.tuples(st.integers(0, 2), numbers, st.integers(1, 4), numbers.map(float), numbers.map(float)),
    min_size=1,
    max_size=5,
).map(sorted)


def table(found: list[Group], rates: list[list[float]]) -> SpareTable:
    """Each group on a kind of node of its own, a replica per node."""
    hosts = [host for host, *_ in found]
    starts = [i for i, host in enumerate(hosts) if i == 0 or host != hosts[i - 1]]
    size, cells = len(found), len(rates)
    return SpareTable(
        kinds=np.arange(size),
        host_starts=np.array(starts),
        nodes_per_replica=np.ones(size),
        lost=np.array([float(lost) for _, _, lost, _, _ in found]),
        loads=np.array([[x, y] for *_, x, y in found]),
        rates_per_s=np.array(rates),
        rows=np.arange(cells),
        share=np.ones(cells),
        values=np.zeros((cells, size)),
        need=np.zeros(cells),
    )


def enumerated(found: list[Group], values: list[float], need: float, prices: list[float]) -> float:
    """The least over every choice of the groups that may be larger than the worst loss, each a linear program."""
    best = math.inf
    for free in itertools.product([False, True], repeat=len(found)):
        model = MatrixModel()
        worst = model.column()
        replicas = [model.column(price) for price in prices]
        model.row([(worst, -1.0), *((c, v) for c, v in zip(replicas, values, strict=True))], ">=", need)
        for i, (_, _, lost, _, _) in enumerate(found):
            if free[i]:
                model.row([(worst, 1.0)], ">=", values[i] * lost)
        for host in {group[0] for group in found}:
            limited = [i for i, group in enumerate(found) if group[0] == host and not free[i]]
            if limited:
                model.row([(worst, -1.0), *((replicas[i], values[i]) for i in limited)], "<=", 0.0)
        solution = solve_matrix(model, relaxed=True)
        if solution.status == "optimal":
            best = min(best, solution.objective)
    return best


@settings(max_examples=150, deadline=None)
@given(groups, st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3), st.integers(0, 2))
def test_the_cheapest_way_to_survive_is_the_least_of_all_choices(
    found: list[Group], rates: list[tuple[int, int]], dearer: int
) -> None:
    """At any prices the closed form is what enumerating the groups free to be large gives, and its nodes cost that."""
    of_worth = np.tile(np.array([float(price) for _, price, _, _, _ in found]), (len(rates), 1))
    valued = table(found, [[float(x), float(y)] for x, y in rates]).valued(of_worth)
    asked = of_worth * (1.0 + dearer * np.arange(len(found)) / 3)
    spare = valued.at(asked)
    for cell in range(len(rates)):
        least = enumerated(found, valued.values[cell].tolist(), float(valued.need[cell]), asked[cell].tolist())
        assert math.isclose(spare.cost[cell], least, rel_tol=1e-6), (spare.cost[cell], least)
        assert math.isclose(float(spare.nodes[cell] @ asked[cell]), least, rel_tol=1e-6)


def test_cells_stay_apart_in_groups() -> None:
    """A group of two cells costs what its cells cost at their shares of its price, not what their mean would."""
    one = table([(0, 3, 2, 1.0, 2.0), (1, 4, 1, 2.0, 1.0)], [[1.0, 1.0], [5.0, 2.0]])
    prices = np.array([[3.0, 4.0], [3.0, 4.0]])
    apart = one.valued(prices)
    together = apart.grouped(np.zeros(2, dtype=np.int64), np.array([0.5, 0.5])).at(prices[:1] * 2)
    each = apart.at(prices)
    assert math.isclose(float(together.cost[0]), float(each.cost.sum()), rel_tol=1e-9)
    assert np.allclose(together.nodes[0], each.nodes.sum(axis=0) / 2)


amounts = st.integers(2, 40).map(lambda n: n / 4)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.tuples(amounts, amounts),
    st.tuples(amounts, amounts, amounts, amounts),
    st.tuples(*[st.integers(4, 40)] * 4),
    st.sampled_from([1, 2]),
)
def test_bound_below_and_plan_above_the_least_cost_with_spare_nodes(
    load: tuple[float, float],
    able: tuple[float, float, float, float],
    price: tuple[int, int, int, int],
    lost: int,
) -> None:
    """Two GPU types, two classes, nodes of two sizes, owned, reserved and by the hour: any loss is survived."""
    chat = classes_service("chat", {"x": load[0], "y": load[1]}, redundancy=lost)
    measured = [
        serves(rate=able[2 * i + j], gpu=gpu, **{"class": name})
        for i, gpu in enumerate("AB")
        for j, name in enumerate("xy")
    ]
    quotes = [
        on_demand("a", "A", price=price[0] / 20),
        on_demand("a4", "A", 4, price=price[1] / 6),
        reserved("b", "B", 2, price[2] / 20, term=6),
        owned("own", "A", 2, price[3] * 100.0, power="1 kW", electricity=0.1),
    ]
    data = problem([chat], quotes, measured)
    found = decompose(prepare(parsed(data), the_catalog()).instance(), SolverSettings(gap=1e-4, time_limit_s=10))
    least = least_cost(data)
    if found is None:
        return
    check_solution(found.plan.milp, Solution("feasible", found.plan.values, found.plan.cost))
    assert at_most(found.bound, least), (found.bound, least)
    assert at_most(least, found.plan.cost), (least, found.plan.cost)


def large(rates: Data) -> Data:
    """A service over tens of nodes that must survive the loss of one."""
    chat = classes_service("chat", rates, redundancy=1)
    measured = [serves(rate=rate, gpu=gpu, **{"class": n}) for gpu, rate in (("A", 1.0), ("B", 2.0)) for n in rates]
    quotes = [on_demand("a", "A", 4, 4.0), on_demand("b", "B", 8, 15.0), on_demand("b1", "B", 1, 2.2)]
    return problem([chat], quotes, measured)


@pytest.mark.parametrize("rates", [{"x": 40.0, "y": 20.0}, {"x": 90.0, "y": 45.0}])
def test_the_bound_sees_spare_nodes(rates: Data) -> None:
    """The bound of a service over tens of nodes counts the node that may be lost: within 2 % of the least cost."""
    data = large(rates)
    found = decompose(prepare(parsed(data), the_catalog()).instance(), SolverSettings(gap=1e-4, time_limit_s=10))
    least = least_cost(data)
    assert found is not None
    assert 0.98 * least <= found.bound <= least * (1 + 1e-9)
    assert least <= found.plan.cost * (1 + 1e-9) <= 1.02 * least


def test_a_decomposed_plan_with_spare_nodes_passes_the_audit() -> None:
    """Any loss is survived by the audit's own routing, in every cell of a plan found by prices and cells."""
    data = large({"x": 40.0, "y": 20.0})
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0.05, time_limit_s=20, method="decomposed"))
    assert plan.cost is not None
    assert plan.cost.bound <= plan.cost.npv
    assert audit_plan(json.loads(json.dumps(plan.document())), catalog=the_catalog()).findings == ()


terms = st.lists(st.integers(-5, 9), min_size=6, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=6, max_size=6), st.lists(terms, min_size=1, max_size=4))
def test_choices_are_the_best_ones(costs: list[int], rows: list[list[int]]) -> None:
    """Four yes-or-no columns and two in parts: the least cost of HiGHS's own search, or no plan where it has none."""
    model = MatrixModel()
    columns = [model.column(float(cost), 1.0, integer=i < 4) for i, cost in enumerate(costs)]
    for row in rows:
        model.row([(c, float(x)) for c, x in zip(columns, row, strict=True) if x], ">=", 3.5)
    wanted, found = solve_matrix(model, gap=0.0), choose(model, columns[:4], 0.0)
    assert (found is None) == (not len(wanted.values))
    if found is not None:
        assert math.isclose(found.cost, wanted.objective, rel_tol=1e-7, abs_tol=1e-7)
        assert found.bound <= found.cost
        assert math.isclose(found.bound, wanted.objective, rel_tol=1e-7, abs_tol=1e-7)
