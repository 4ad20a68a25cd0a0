import pytest

from catalog import load_catalog
from optimizer.estimator.inference import batch_limit, best_point, request_shapes
from optimizer.estimator.search import best_batches
from optimizer.estimator.workloads import Service

CATALOG = load_catalog()
CARDS = [
    (CATALOG.gpu(name), 8)
    for name in ("H100-80GB-SXM", "A100-80GB-PCIe", "RTX-4090", "L40S", "L4", "B200-SXM", "MI300X", "T4")
]
LATENCIES = [
    {},
    {"p95_tpot": "40 ms"},
    {"p95_ttft": "1 s"},
    {"p95_ttft": "400 ms", "p95_tpot": "60 ms"},
    {"p95_end_to_end": "8 s"},
]


def service(**settings):
    classes = [
        {"name": "short", "share": 0.7, "input": 300, "output": 150},
        {"name": "long", "share": 0.2, "input": 6000, "output": 500},
        {"name": "embed", "share": 0.1, "input": 500, "output": 0},
    ]
    return Service(name="s", kind="service", weights=["fp16", "fp8", "int4"], classes=classes, **settings)


@pytest.mark.parametrize("latency", LATENCIES, ids=lambda targets: "+".join(targets) or "no target")
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b", "gemma-2-9b"])
def test_the_search_over_arrays_finds_what_the_search_one_by_one_finds(model, latency):
    """Every deployment of every card: the same batch and cap, or a miss in both."""
    wanted, shape_of = service(latency=latency), CATALOG.model(model)
    found = best_batches(wanted, shape_of, CARDS)
    cards = {card.gpu_id: card for card, _ in CARDS}
    compared = 0
    for (gpu_id, weights, *layout), copy in found.copies.items():
        for lengths in request_shapes(wanted):
            limit = batch_limit(cards[gpu_id], wanted, copy.memory, copy.replica, lengths)
            place = (gpu_id, weights, *layout, lengths.name)
            assert (place in found.choices) == (limit >= 1)
            if limit < 1:
                continue
            point = best_point(copy.replica, lengths, wanted.latency, limit, None)
            choice = found.choices[place]
            assert (choice is None) == (point is None), place
            if choice is not None and point is not None:
                assert choice.batch == point.batch, place
                assert choice.utilisation_cap == pytest.approx(point.utilisation_cap, abs=1e-6)
                compared += 1
    assert compared > 20


def test_the_buyers_own_cap_is_kept():
    """A utilisation cap of the buyer's is taken at the largest batch."""
    found = best_batches(service(utilisation_cap=0.5), CATALOG.model("llama-3.1-8b"), CARDS[:2])
    assert {choice.utilisation_cap for choice in found.choices.values() if choice} == {0.5}
