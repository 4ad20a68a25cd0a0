"""Offers that several nodes of another one outclass: left out with the reason, at the same least cost, and audited."""

import json
import random

import pytest

from optimizer.audit import audit_plan
from tests.model.builders import (
    Data,
    close,
    job,
    least_cost,
    on_demand,
    planned,
    problem,
    serves,
    service,
    spot,
    the_catalog,
    works,
)


def two_sizes(price_of_four: float, **more: Data | list[Data]) -> Data:
    """Nodes of 1 GPU at 1/h, and of 4 GPUs; a replica takes one GPU."""
    quotes = [on_demand("one", "A", 1, 1.0), on_demand("four", "A", 4, price_of_four)]
    return problem([service(rate=3.0)], quotes, [serves()], months=1, **more)


def left_out(data: Data) -> dict[str, str]:
    return {one["option"]: one["reason"] for one in planned(data, checked=False).left_out}


def test_four_small_nodes_outclass_one_of_four_gpus() -> None:
    """At 4.00 and at 4.99 four nodes of one GPU cost no more and hold as much: the large one is left out."""
    for price in (4.0, 4.99):
        assert left_out(two_sizes(price)) == {
            "four": "outclassed by one: 4 of its nodes are no dearer than one, and every workload runs as well there"
        }


def test_three_small_nodes_do_not() -> None:
    """At 3.99 only three small nodes cost no more, and they hold three replicas of four: both offers stay."""
    assert left_out(two_sizes(3.99)) == {}
    assert close(least_cost(two_sizes(2.5)), 2.5 * 730)


def test_replicas_must_fit_the_small_node() -> None:
    """A replica of two GPUs does not fit nodes of one, at whatever price."""
    data = two_sizes(9.0)
    data["measurements"] = [serves(gpus_per_replica=2)]
    assert "four" not in left_out(data)


@pytest.mark.parametrize(
    ("cost", "stays"),
    [
        ({"per": "node", "kind": "network"}, True),
        ({"per": "gpu", "kind": "network"}, False),
        ({"kind": "network"}, False),
    ],
)
def test_costs_per_node_count_for_each_node(cost: Data, stays: bool) -> None:
    """Four nodes bear four times what is paid per node, so that the large one stays; per GPU it is the same."""
    further = [{"name": "switch", "monthly": 100.0} | cost]
    assert ("four" not in left_out(two_sizes(4.5, costs=further))) == stays


def test_one_node_is_compared_with_one_too() -> None:
    """At half the price two nodes are affordable and would emit twice as much; one is enough."""
    carbon = {"carbon": "100 g/kWh", "power": "1 kW"}
    quotes = [on_demand("cheap", "A", 4, 1.0, **carbon), on_demand("dear", "B", 4, 2.5, **carbon)]
    data = problem([service()], quotes, [serves(), serves(gpu="B")], months=1, finance={"carbon_price": "50 /t"})
    assert left_out(data) == {"dear": "outclassed by cheap: no dearer per node, and every workload runs as well there"}


def test_jobs_need_nodes_of_the_same_size() -> None:
    """A job keeps the large nodes in the problem: its groups may span what small ones do not hold."""
    data = two_sizes(4.5)
    data["workloads"].append(job())
    data["measurements"].append(works())
    assert "four" not in left_out(data)


def test_the_audit_knows_the_price_at_which_they_would_not() -> None:
    """With the large node at 3.99 in the file, leaving it out is a finding."""
    document = json.loads(json.dumps(planned(two_sizes(4.0)).document()))
    quotes = document["inputs"]["problem"]["options"]["quotes"]
    assert quotes[1]["name"] == "four"
    quotes[1]["price"] = 3.99
    report = audit_plan(document, catalog=the_catalog())
    assert any("no option beats it" in str(finding) for finding in report.findings)


def random_offers(seed: int) -> Data:
    """Offers of several sizes and prices, some interruptible, for a service with two sizes of replicas."""
    draw = random.Random(seed)
    quotes = []
    for number in range(6):
        size = draw.choice([1, 2, 4, 8])
        price = round(size * draw.choice([1.0, 1.0, draw.uniform(0.8, 2.0)]), 2)
        quotes.append(draw.choice([on_demand, on_demand, spot])(f"offer {number}", draw.choice("AB"), size, price))
    quotes.append(on_demand("large", "A", 8, 20.0))
    measured = [serves(rate=draw.uniform(0.3, 2.0), gpu="A", gpus_per_replica=1)]
    measured.append(serves(rate=draw.uniform(0.3, 5.0), gpu="A", gpus_per_replica=draw.choice([2, 4])))
    if any(quote["gpu"] == "B" for quote in quotes):
        measured.append(serves(rate=draw.uniform(0.3, 2.0), gpu="B", gpus_per_replica=draw.choice([1, 2])))
    chat = service(rate=draw.uniform(0.5, 9.0), traffic={"profile": "office-hours"})
    limits = {"spot_share": {"chat": draw.choice([0.0, 0.3, 1.0])}}
    return problem([chat], quotes, measured, months=1, limits=limits)


@pytest.mark.parametrize("seed", range(25))
def test_leaving_them_out_costs_nothing(seed: int) -> None:
    """With more stock than is ever needed no offer outclasses another: the least cost is the same."""
    data = random_offers(seed)
    stocked = random_offers(seed)
    stocked["options"]["quotes"] = [quote | {"max_nodes": 500} for quote in data["options"]["quotes"]]
    assert close(least_cost(data), least_cost(stocked))


def test_random_offers_do_outclass_one_another() -> None:
    """The comparison above is not of equals."""
    reasons = [reason for seed in range(25) for reason in left_out(random_offers(seed)).values()]
    assert sum("of its nodes are no dearer than one" in reason for reason in reasons) >= 10
