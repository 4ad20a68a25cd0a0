"""N + k against enumeration with arithmetic of its own: the loss of every k nodes is played through."""

import itertools
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.audit import audit_plan
from optimizer.audit.routing import Group, most_served
from optimizer.estimator.types import ClassEstimate, Deployment, Estimates, ServiceEstimate
from optimizer.model import spare
from optimizer.model.build import build
from optimizer.model.instance import build_instance
from optimizer.prepare import prepare
from optimizer.solve import linear_model, solve
from optimizer.solver.milp import SolverSettings, solve_model
from tests.model.builders import (
    HOURS_PER_YEAR,
    RELATIVE,
    Data,
    check_solution,
    classes_service,
    close,
    job,
    least_cost,
    on_demand,
    owned,
    parsed,
    problem,
    serves,
    service,
    the_catalog,
    works,
)

EXAMPLES = 40
prices = st.integers(2, 60).map(lambda n: n / 20)
rates = st.integers(1, 12).map(lambda n: n / 4)


def holds(node: int, replica: int, nodes: int) -> tuple[int, int]:
    """Replicas on so many nodes, and replicas that go with one of them."""
    if replica > node:
        return nodes // math.ceil(replica / node), 1
    return nodes * (node // replica), node // replica


def left_over(there: list[tuple[int, int, float]], k: int) -> float:
    """Least rate that is left of (replicas, replicas per node, rate of one) when any k nodes go."""
    losses = itertools.product(*(range(k + 1) for _ in there))
    return min(
        sum(max(0, r - lost * per) * rate for lost, (r, per, rate) in zip(gone, there, strict=True))
        for gone in losses
        if sum(gone) == k
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ABC"), st.sampled_from((1, 2, 4)), prices),
        min_size=1,
        max_size=3,
        unique_by=lambda o: o[:2],
    ),
    st.fixed_dictionaries({gpu: st.tuples(st.integers(1, 3), rates) for gpu in "ABC"}),
    st.integers(1, 10).map(lambda n: n / 2),
    st.integers(1, 3),
)
def test_one_class_after_the_loss_of_any_nodes(
    offers: list[tuple[str, int, float]], replicas: dict[str, tuple[int, float]], load: float, k: int
) -> None:
    """Least cost of nodes of several kinds, replicas smaller and larger than a node, whatever k nodes are lost."""
    most = [
        (math.ceil(load / replicas[gpu][1]) + 3 * max(1, size // replicas[gpu][0])) * math.ceil(replicas[gpu][0] / size)
        for gpu, size, _ in offers
    ]
    costs = []
    for counts in itertools.product(*(range(n + 1) for n in most)):
        there = [(*holds(s, replicas[g][0], n), replicas[g][1]) for n, (g, s, _) in zip(counts, offers, strict=True)]
        if left_over(there, k) >= load - 1e-9:
            costs.append(sum(n * price for n, (_, _, price) in zip(counts, offers, strict=True)))
    quotes = [on_demand(f"o{i}", gpu, size, price) for i, (gpu, size, price) in enumerate(offers)]
    measured = [serves(rate=replicas[g][1], gpu=g, gpus_per_replica=replicas[g][0]) for g in {g for g, _, _ in offers}]
    data = problem([service(rate=load, redundancy=k)], quotes, measured)
    assert close(least_cost(data), min(costs) * HOURS_PER_YEAR)


def both_served(
    nodes: tuple[int, int], load: tuple[float, float], on_a: tuple[float, float], on_b: tuple[float, float]
) -> bool:
    """Whether nodes of A and B serve two classes: each class goes where it saves most."""
    room, busy = float(nodes[0]), 0.0
    for i in sorted((0, 1), key=lambda i: on_a[i] / on_b[i], reverse=True):
        share = min(1.0, room * on_a[i] / load[i])
        room -= share * load[i] / on_a[i]
        busy += (1 - share) * load[i] / on_b[i]
    return busy <= nodes[1] + 1e-9


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.tuples(rates, rates),
    st.tuples(rates, rates),
    st.tuples(rates, rates),
    st.tuples(prices, prices),
    st.integers(1, 2),
)
def test_two_classes_find_new_ways_after_a_loss(
    load: tuple[float, float], on_a: tuple[float, float], on_b: tuple[float, float], price: tuple[float, float], k: int
) -> None:
    """Two classes on two GPU types, each better at one: after any loss each class may go elsewhere."""
    most = [math.ceil(sum(r / s for r, s in zip(load, own, strict=True))) + k for own in (on_a, on_b)]
    costs = []
    for a, b in itertools.product(range(most[0] + 1), range(most[1] + 1)):
        after = [(max(0, a - lost), max(0, b - (k - lost))) for lost in range(k + 1)]
        if all(both_served(nodes, load, on_a, on_b) for nodes in after):
            costs.append(a * price[0] + b * price[1])
    chat = classes_service("chat", {"x": load[0], "y": load[1]}, redundancy=f"n+{k}")
    measured = [
        serves(rate=own[i], gpu=gpu, **{"class": name})
        for gpu, own in (("A", on_a), ("B", on_b))
        for i, name in enumerate("xy")
    ]
    quotes = [on_demand("a", "A", price=price[0]), on_demand("b", "B", price=price[1])]
    assert close(least_cost(problem([chat], quotes, measured)), min(costs) * HOURS_PER_YEAR)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.tuples(rates, rates), st.tuples(rates, rates), st.tuples(rates, rates), st.tuples(prices, prices))
def test_proportional_service_is_never_cheaper(
    load: tuple[float, float], on_a: tuple[float, float], on_b: tuple[float, float], price: tuple[float, float]
) -> None:
    """Beyond the size for a routing per loss the plan is as safe, and no cheaper than the exact one."""
    chat = classes_service("chat", {"x": load[0], "y": load[1]}, redundancy=1)
    measured = [
        serves(rate=own[i], gpu=gpu, **{"class": name})
        for gpu, own in (("A", on_a), ("B", on_b))
        for i, name in enumerate("xy")
    ]
    quotes = [on_demand("a", "A", price=price[0]), on_demand("b", "B", price=price[1])]
    data = problem([chat], quotes, measured)
    exact, wants_routes = least_cost(data), spare._wants_routes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spare, "_wants_routes", lambda service, found, _: wants_routes(service, found, 0))
        cost = least_cost(data)
        plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    assert cost >= exact * (1 - RELATIVE)
    report = audit_plan(json.loads(json.dumps(plan.document())), catalog=the_catalog())
    assert report.ok, report.findings


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.tuples(st.none() | rates, st.none() | rates), st.integers(0, 3)), min_size=1, max_size=4))
def test_the_audits_routing_is_the_largest_share(groups: list[tuple[tuple[float | None, float | None], int]]) -> None:
    """Two classes: by duality the largest share is the least, over all weights of classes, of what groups can do."""
    able = [
        ({name: one for name, one in zip("xy", loads, strict=True) if one is not None}, count)
        for loads, count in groups
    ]
    weights = {0.0, 1.0}
    for first, _ in able:  # where a group changes the class it serves best
        if len(first) == 2:
            weights.add(first["x"] / (first["x"] + first["y"]))
    bound = min(
        sum(
            n * max(({"x": w, "y": 1 - w}[name] / load for name, load in loads.items()), default=0.0)
            for loads, n in able
        )
        for w in weights
    )
    assert most_served(["x", "y"], [Group(loads, count) for loads, count in able]) == pytest.approx(
        min(1.0, bound), abs=1e-9
    )


def test_a_lost_node_is_as_full_of_the_service_as_it_can_be() -> None:
    """Two small services share nodes of 8 GPUs: each needs one replica beside a whole node's worth of them.

    A plan does not say which replicas stand together, so each service needs 1 + 8 replicas: 18 GPUs, 3 nodes.
    """
    services = [service("one", redundancy="n+1"), service("two", redundancy="N + 1")]
    measured = [serves("one", gpus_per_replica=1), serves("two", gpus_per_replica=1)]
    assert least_cost(problem(services, [on_demand("od", "A", 8, 1.0)], measured)) == pytest.approx(3 * HOURS_PER_YEAR)
    apart = problem(services, [on_demand("od", "A", 1, 0.2)], measured)
    assert least_cost(apart) == pytest.approx(4 * 0.2 * HOURS_PER_YEAR)


def test_spare_replicas_run_and_jobs_are_not_covered() -> None:
    """Two nodes of 2 GPUs hold 2 + 2 replicas; a job of 2 GPUs needs a third node, but no fourth to survive a loss."""
    train = job(amount=2.0 * HOURS_PER_YEAR)
    quotes = [owned("own", "A", 2, price=125.0)]  # a fifth of its life: 25 each
    measured = [serves(gpus_per_replica=1), works()]
    assert least_cost(problem([service(rate=2.0), train], quotes, measured)) == pytest.approx(50.0)
    spared = service(rate=2.0, redundancy=1)
    assert least_cost(problem([spared], quotes, measured[:1])) == pytest.approx(50.0)
    assert least_cost(problem([spared, train], quotes, measured)) == pytest.approx(75.0)


def test_an_impossible_redundancy_says_what_is_short() -> None:
    """Two nodes at most and a load of both: after a loss half of the rate is left, and the answer says so."""
    data = problem([service(rate=2.0, redundancy=1)], [on_demand(max_nodes=2)], [serves()])
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    assert plan.status == "infeasible"
    short = next(one for one in plan.infeasibility if one.kind == "demand")
    assert (short.family, short.short_by) == ("spare_capacity", pytest.approx(0.5))
    fixes = {one.change: (one.required, one.npv) for one in plan.infeasibility if one.kind == "limit"}
    year = HOURS_PER_YEAR
    assert fixes == {"workloads.chat.redundancy": (0, 2 * year), "options.quotes.od.max_nodes": (3, 3 * year)}


def estimated(cap: float | None) -> float:
    """Nodes for 6 busy replicas of an estimated rate with N+1; the latency targets leave a cap of 75 %."""
    more: Data = {} if cap is None else {"degraded_utilisation_cap": cap}
    chat = classes_service("chat", {"all": 6.0}, redundancy=1, **more)
    made = parsed(problem([chat], [on_demand("od", "A")], [serves()]))
    classes = (ClassEstimate("all", 1.0),)
    estimate = ServiceEstimate("chat", "A", Deployment(1, 1), classes, utilisation_cap=0.75)
    estimates = Estimates(services=(estimate,))
    milp = build(build_instance(made, prepare(made, the_catalog()).supply, estimates))
    solution = solve_model(linear_model(milp), SolverSettings(gap=0))
    check_solution(milp, solution)
    return solution.objective / HOURS_PER_YEAR


def test_after_a_loss_replicas_may_be_busier() -> None:
    """6 busy replicas: 8 nodes at 75 %, and after a loss the 7 left are enough at 95 % or 86 %, but 70 % takes 9."""
    assert estimated(None) == pytest.approx(8.0)
    assert estimated(0.86) == pytest.approx(8.0)
    assert estimated(0.70) == pytest.approx(10.0)


def test_the_audit_finds_a_plan_that_no_loss_may_hit() -> None:
    """A plan made without redundancy fails the audit of a problem that asks for it."""
    data = problem([service(rate=2.5)], [on_demand("od", "A", 2)], [serves(gpus_per_replica=1)])
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    document = json.loads(json.dumps(plan.document()))
    document["inputs"]["problem"]["workloads"][0]["redundancy"] = 1
    report = audit_plan(document, catalog=the_catalog())
    assert "spare capacity" in {finding.check for finding in report.errors}


def test_stages_survive_the_loss_of_their_nodes() -> None:
    """Prompts and outputs apart on nodes of one GPU: each stage has a replica to spare, and hands over after any loss.

    2 prompts a second take 2 replicas on A, their outputs 4 on B: with spare nodes 3 and 5.
    """
    data = problem(
        [service(rate=2.0, redundancy=1) | {"disaggregated": "required"}],
        [on_demand("a", "A", price=1.0, max_nodes=9), on_demand("b", "B", price=1.0, max_nodes=9)],
        [serves(gpu="A"), serves(gpu="B")],
    )
    made = parsed(data)
    parts = (("A", "prefill", 1.0), ("B", "decode", 2.0))
    estimates = tuple(
        ServiceEstimate("chat", gpu, Deployment(1, 1, stage=stage), (ClassEstimate("all", seconds),))
        for gpu, stage, seconds in parts
    )
    supply = prepare(made, the_catalog()).supply
    options = tuple(replace(option, provider="p") for option in supply.options)
    milp = build(build_instance(made, replace(supply, options=options), Estimates(services=estimates)))
    solution = solve_model(linear_model(milp), SolverSettings(gap=0))
    check_solution(milp, solution)
    assert solution.objective == pytest.approx(8 * HOURS_PER_YEAR)
