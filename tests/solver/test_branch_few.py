"""The search over few whole numbers: the same least cost as HiGHS's own search, and rows that every plan keeps."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from optimizer.model.rows import Columns, Row, row
from optimizer.solver import branch_few, priced_columns
from optimizer.solver.branch_few import search_few
from optimizer.solver.few_wholes import common_unit, read_few_wholes
from optimizer.solver.known_start import solve_from_start
from optimizer.solver.milp import LinearModel, Solution, SolverSettings, solve_model
from optimizer.solver.priced_columns import learnt_row

PROVEN = SolverSettings(gap=0)


class Mix:
    """A random mix of machines for classes of requests; nodes cost money, replicas stand on them, shares are free."""

    def __init__(self, seed: int, *, most_classes: int = 12) -> None:
        self.draw = random.Random(seed)
        self.columns, self.rows, self.prices = Columns(), list[Row](), dict[int, float]()
        self.classes = range(self.draw.randint(1, most_classes))
        kinds = range(self.draw.randint(1, 4))
        self.nodes = [self.node(kind) for kind in kinds]
        self.replicas = [self.held(kind) for kind in kinds]
        shares = {(k, c): self.columns.add("serve", (k, c), upper=1.0) for k in kinds for c in self.classes}
        for name in self.classes:
            terms = [(shares[kind, name], 1.0) for kind in kinds]
            self.rows.append(row("demand_coverage", (name,), terms, "=", 1.0, "requests/s"))
        for kind in kinds:
            self.busy(kind, [shares[kind, name] for name in self.classes])
        if self.draw.random() < 0.3:
            terms = [(node, 1.0) for node in self.nodes]
            self.rows.append(row("supply_limit", (), terms, "<=", float(self.draw.randint(2, 9)), "nodes"))

    def node(self, kind: int) -> int:
        upper = self.draw.choice([None, None, None, float(self.draw.randint(0, 4))])
        column = self.columns.add("rent", (kind,), upper=upper, integer=True)
        self.prices[column] = self.draw.choice([self.draw.uniform(0.2, 5.0), self.draw.randint(2, 50) / 10])
        return column

    def held(self, kind: int) -> int:
        """Replicas, some per node (of its GPUs), or the node itself."""
        if self.draw.random() < 0.3:
            return self.nodes[kind]
        column = self.columns.add("replicas", (kind,), integer=True)
        terms = [(column, 2.0), (self.nodes[kind], -2.0 * self.draw.choice([1, 2, 4]))]
        self.rows.append(row("pool_capacity", (kind,), terms, "<=", 0.0, "GPUs"))
        return column

    def busy(self, kind: int, shares: list[int]) -> None:
        size = self.draw.choice([0.1, 1.0, 3.0])
        loads = [(column, self.draw.choice([1e-9, self.draw.uniform(0.0, size)])) for column in shares]
        replicas = (self.replicas[kind], -1.0)
        self.rows.append(row("replica_time", (kind,), [*loads, replicas], "<=", 0.0, "replicas"))
        for column, load in loads:
            if load < 1e-6:
                name = ("whole_replica", (kind, column))
                self.rows.append(row(*name, [(column, 1.0), replicas], "<=", 0.0, "replicas"))

    def model(self) -> LinearModel:
        constant = self.draw.choice([0.0, 7.0])
        return LinearModel(
            self.columns, self.rows, self.prices, constant, objective_scale=self.draw.choice([1.0, 0.01])
        )


def plans_cost(found: Solution, model: LinearModel) -> float:
    """Cost of a plan that keeps every row and has whole nodes and replicas."""
    assert all(one.holds(found.values) for one in model.rows)
    whole = [value for value, integer in zip(found.values, model.columns.integer, strict=True) if integer]
    assert all(value == round(value) >= 0 for value in whole)
    limits = zip(found.values, model.columns.upper, strict=True)
    assert all(value <= (math.inf if upper is None else upper) + 1e-9 for value, upper in limits)
    return sum(price * found.values[column] for column, price in model.objective.items()) + model.constant


@pytest.mark.parametrize("seed", range(150))
def test_costs_what_highs_finds(seed: int) -> None:
    """Least cost, bound and gap agree with HiGHS's own search, and the plan keeps all rows."""
    model = Mix(seed).model()
    found, reference = search_few(model, PROVEN), solve_model(model, PROVEN)
    if found is None:
        assert reference.status == "infeasible" or limited(model)  # nodes rounded up may be too many then
        return
    assert found.status == "optimal"
    assert plans_cost(found, model) == pytest.approx(reference.objective, rel=1e-7)
    assert found.objective == pytest.approx(reference.objective, rel=1e-7)
    assert found.bound == pytest.approx(found.objective, rel=1e-7)


def limited(model: LinearModel) -> bool:
    """Whether nodes are limited, so that rounding up may go too far."""
    wholes = [u for u, integer in zip(model.columns.upper, model.columns.integer, strict=True) if integer]
    return any(u is not None for u in wholes) or any(one.family == "supply_limit" for one in model.rows)


@pytest.mark.parametrize("seed", range(150, 170))
def test_branching_without_lists_finds_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No node is listed, and columns are left out from the first run on: costs are the same."""
    monkeypatch.setattr(branch_few, "MOST_POINTS", 0)
    monkeypatch.setattr(priced_columns, "FEWEST", 0)
    model = Mix(seed, most_classes=30).model()
    found, reference = search_few(model, PROVEN), solve_model(model, PROVEN)
    if found is not None:
        assert plans_cost(found, model) == pytest.approx(reference.objective, rel=1e-7)


@pytest.mark.parametrize("gap", [0.3, 0.05])
def test_the_gap_asked_is_kept_and_the_bound_is_true(gap: float) -> None:
    """With a gap allowed, bound ≤ least cost ≤ cost found, and the gap stated is no wider than asked."""
    for seed in range(40):
        model = Mix(seed).model()
        found = search_few(model, SolverSettings(gap=gap))
        if found is not None:
            least = solve_model(model, PROVEN).objective
            assert found.bound <= least * (1 + 1e-7)
            assert least <= found.objective * (1 + 1e-7)
            assert found.gap <= gap + 1e-9


def test_learnt_rows_hold_for_every_plan_whatever_the_duals() -> None:
    """Random duals, of any sign: all whole points that are plans (listed and tried one by one) keep the row."""
    checked = 0
    for seed in range(12):
        model = Mix(seed, most_classes=4).model()
        few = read_few_wholes(model)
        assert few is not None
        draw = np.random.default_rng(seed)
        points = itertools.product(range(4), repeat=len(few.price))
        plans = [np.array(point, dtype=float) for point in points if serves_all(model, few.wholes, point)]
        for _ in range(20):
            g, side, _ = learnt_row(few, draw.normal(size=len(few.row_lower)))
            assert all(g @ plan >= side for plan in plans)
            checked += len(plans)
    assert checked > 1000


def serves_all(model: LinearModel, wholes: np.ndarray, point: tuple[int, ...]) -> bool:
    """Whether so many nodes are enough, by HiGHS on the model with them fixed."""
    fixed = [row("fixed", (j,), [(int(j), 1.0)], "=", float(n), "nodes") for j, n in zip(wholes, point, strict=True)]
    return solve_model(replace(model, rows=[*model.rows, *fixed]), PROVEN).status == "optimal"


def test_replicas_are_all_that_their_nodes_hold() -> None:
    """A node of 8 GPUs with replicas of 2: the replicas are replaced by 4 per node, and come back in the plan."""
    columns = Columns()
    node, replicas = columns.add("rent", (), integer=True), columns.add("replicas", (), integer=True)
    share = columns.add("serve", (), upper=1.0)
    rows = [
        row("pool_capacity", (), [(replicas, 2.0), (node, -8.0)], "<=", 0.0, "GPUs"),
        row("replica_time", (), [(share, 9.0), (replicas, -1.0)], "<=", 0.0, "replicas"),
        row("demand_coverage", (), [(share, 1.0)], "=", 1.0, "requests/s"),
    ]
    model = LinearModel(columns, rows, {node: 2.0})
    few, found = read_few_wholes(model), search_few(model, PROVEN)
    assert few is not None
    assert few.tied == ((replicas, 0, 4.0),)
    assert found is not None
    assert (found.values, found.objective, found.bound) == ((3.0, 12.0, 1.0), 6.0, 6.0)


@pytest.mark.parametrize(
    "change", ["floor", "two holders", "a price on shares", "a ratio that is not whole", "a limit"]
)
def test_other_models_are_left_to_highs(change: str) -> None:
    """Costless whole numbers held otherwise, or shares that cost money: not read as few whole numbers."""
    columns, prices = Columns(), {0: 2.0}
    node = columns.add("rent", (), integer=True)
    replicas = columns.add("replicas", (), integer=True, upper=5.0 if change == "a limit" else None)
    share = columns.add("serve", (), upper=1.0)
    ratio = 3.0 if change == "a ratio that is not whole" else 4.0
    rows = [
        row("pool_capacity", (), [(replicas, 2.0), (node, -ratio)], "<=", 0.0, "GPUs"),
        row("replica_time", (), [(share, 3.0), (replicas, -1.0)], "<=", 0.0, "replicas"),
        row("demand_coverage", (), [(share, 1.0)], "=", 1.0, "requests/s"),
    ]
    if change == "floor":
        rows.append(row("start_up", (), [(replicas, 1.0), (share, 1.0)], "=", 4.0, "replicas"))
    if change == "two holders":
        rows.append(row("provider_limit", (), [(replicas, 1.0)], "<=", 9.0, "GPUs"))
    if change == "a price on shares":
        prices[share] = 0.5
    model = LinearModel(columns, rows, prices)
    assert read_few_wholes(model) is None
    assert solve_from_start(model, PROVEN).objective == solve_model(model, PROVEN).objective


def test_without_an_end_in_sight_highs_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after its first linear program, it hands over a plan without a bound; HiGHS proves the cost."""
    monkeypatch.setattr(branch_few, "MOST_PROGRAMS", 1)
    model = next(mix for mix in (Mix(seed).model() for seed in range(50)) if needs_a_second_program(mix))
    found = search_few(model, PROVEN)
    assert found is not None
    assert (found.status, found.bound) == ("feasible", -math.inf)
    assert solve_from_start(model, PROVEN).objective == pytest.approx(solve_model(model, PROVEN).objective)


def needs_a_second_program(model: LinearModel) -> bool:
    found = search_few(model, PROVEN)
    return found is not None and found.status == "feasible"


def test_infeasible_is_left_to_highs() -> None:
    """Without a first plan nothing is claimed."""
    columns = Columns()
    node = columns.add("rent", (), integer=True, upper=1.0)
    model = LinearModel(columns, [row("demand_coverage", (), [(node, 1.0)], ">=", 2.0, "nodes")], {node: 1.0})
    assert search_few(model, PROVEN) is None
    assert solve_from_start(model, PROVEN).status == "infeasible"


@pytest.mark.parametrize(
    ("prices", "unit"),
    [([0.7, 1.01, 3.67], 0.01), ([0.7, 1.4], 0.7), ([2.0, 3.0], 1.0), ([1.5, 2.25], 0.75), ([math.pi, 1.0], 0.0)],
)
def test_the_unit_of_costs(prices: list[float], unit: float) -> None:
    """All costs of a plan are multiples of the unit; where there is none, bounds are not rounded."""
    assert common_unit(prices) == pytest.approx(unit)
