"""The search over arrays against a search one deployment at a time, written out here."""

import pytest

from catalog import load_catalog
from optimizer.estimator.constants import constant
from optimizer.estimator.inference import SMALLER_BATCHES, at_high_end, missed_target, pessimism_of, request_shapes
from optimizer.estimator.queueing import waiting_percentile_s
from optimizer.estimator.search import best_batches
from optimizer.estimator.stages import point_of_stage, serves_in, stage_batch_limit, stages_of, targets_of
from optimizer.estimator.workloads import Service
from optimizer.units import MS_PER_S

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


class OneByOne:
    """Search of the batch of one deployment for a class, in a stage or whole."""

    def __init__(self, wanted, stage, replica, shape):
        targets = targets_of(wanted, shape, stage)
        self.latency, self.tail = targets.latency, targets.tail
        self.point = lambda batch: at_high_end(
            point_of_stage(stage, wanted)(replica, shape, batch), pessimism_of(wanted)
        )

    def largest(self, limit):
        """Largest batch that meets the targets without waiting; latency grows with batch."""
        if missed_target(self.point(limit), self.latency) is None:
            return limit
        low, high = 0, limit
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if missed_target(self.point(middle), self.latency) else (middle, high)
        return low

    def cap(self, point):
        """Highest utilisation at which the wait fits what the targets leave."""
        times = ((self.latency.p95_ttft, point.ttft_s), (self.latency.p95_end_to_end, point.end_to_end_s))
        slack = min((target / MS_PER_S - s for target, s in times if target is not None), default=float("inf"))
        residence = point.seconds.total * point.batch
        low, high = 0.0, constant("highest_utilisation")
        if waiting_percentile_s(high, point.batch, residence, self.tail) <= slack:
            return high
        for _ in range(40):
            middle = (low + high) / 2
            fits = waiting_percentile_s(middle, point.batch, residence, self.tail) <= slack
            low, high = (middle, high) if fits else (low, middle)
        return low

    def best(self, limit):
        """Least replica time ÷ cap among the largest batch and ever smaller ones; infinite: no batch will do."""
        largest = self.largest(limit)
        batches = {max(1, int(largest * share)) for share in (1.0, *SMALLER_BATCHES)} if largest else ()
        return min((self.score(batch) for batch in batches), default=float("inf"))

    def score(self, batch):
        """Replica time ÷ cap at a batch."""
        point = self.point(batch)
        cap = self.cap(point)
        return point.seconds.total / cap if cap > 1e-6 else float("inf")


SETTINGS = {
    "llama-3.1-8b": {},
    "mixtral-8x7b": {"expert_parallel": [1, 2, 4]},
    "gemma-2-9b": {"disaggregated": "allowed", "plan_for": "low"},
}


@pytest.mark.parametrize("latency", LATENCIES, ids=lambda targets: "+".join(targets) or "no target")
@pytest.mark.parametrize("model", SETTINGS)
def test_the_search_over_arrays_finds_what_the_search_one_by_one_finds(model, latency):
    """Every deployment of every card: a batch as good, at the same cap, or a miss in both."""
    wanted, shape_of = service(latency=latency, **SETTINGS[model]), CATALOG.model(model)
    found = best_batches(wanted, shape_of, CARDS)
    cards = {card.gpu_id: card for card, _ in CARDS}
    compared = {stage: 0 for stage in stages_of(wanted)}
    cases = [(key, copy, lengths, stage) for key, copy in found.copies.items() for lengths in request_shapes(wanted)
             for stage in stages_of(wanted) if serves_in(stage, lengths)]  # fmt: skip
    for key, copy, lengths, stage in cases:
        limit = stage_batch_limit(cards[key[0]], wanted, copy.memory, copy.replica, lengths, stage)
        place = (*key, lengths.name, stage)
        assert (place in found.choices) == (limit >= 1)
        if limit < 1:
            continue
        one = OneByOne(wanted, stage, copy.replica, lengths)
        least, choice = one.best(limit), found.choices[place]
        assert (choice is None) == (least == float("inf")), place
        if choice is not None:
            point = one.point(choice.batch)
            assert choice.batch <= limit
            assert missed_target(point, one.latency) is None
            assert choice.utilisation_cap == pytest.approx(one.cap(point), abs=1e-6)
            assert point.seconds.total / choice.utilisation_cap == pytest.approx(least, rel=1e-5), place
            compared[stage] += 1
    assert min(compared.values()) > 20


def test_the_buyers_own_cap_is_kept():
    """A utilisation cap of the buyer's is taken at the largest batch."""
    found = best_batches(service(utilisation_cap=0.5), CATALOG.model("llama-3.1-8b"), CARDS[:2])
    assert {choice.utilisation_cap for choice in found.choices.values() if choice} == {0.5}
