"""Prices of nodes at which cells and fleet agree: found by turns of asking cells for their cheapest and mixing answers.

Duals of the mix alone swing from turn to turn, so each question is asked between the best prices so far and the new
ones (Wentges, 1997).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.solver.decomposition.fleet import FleetModel
from optimizer.solver.matrix import Floats

FIRST_FACTORS = (1.0, 1.4, 2.5, 0.3)
"""Guesses of what held nodes are worth per hour of service, against their cost per hour at full use."""
KEEP_BEST = 0.6
"""Weight of the best prices so far in the next question; none where that question brought nothing new."""
MOST_TURNS = 100


@dataclass(frozen=True, slots=True)
class PricedFleet:
    """Prices (states × cells × kinds), the bound they prove, and the cost of the fleet in parts that they come from."""

    prices: Floats
    bound: float
    cost: float

    @property
    def gap(self) -> float:
        """(cost − bound) ÷ cost."""
        return (self.cost - self.bound) / max(abs(self.cost), 1e-12)


def find_prices(
    model: FleetModel,
    gap: float,
    deadline: float,
    on_turn: Callable[[PricedFleet], None] | None = None,
    starts: Sequence[Floats] = (),
) -> PricedFleet:
    """Ask cells and fleet in turns until the bound is within `gap`, nothing new comes, or time is up.

    `starts`: prices that may be near already, asked first.
    """
    _first_patterns(model)
    best = PricedFleet(model.pricing.split(model.first_prices()), -np.inf, np.inf)
    for start in starts:
        bound, _ = _ask(model, start)
        best = max(best, PricedFleet(start, bound, np.inf), key=lambda one: one.bound)
    keep = KEEP_BEST
    for _ in range(MOST_TURNS):
        cost, new = model.prices()
        asked = new if not np.isfinite(best.bound) else keep * best.prices + (1 - keep) * new
        bound, fresh = _ask(model, asked)
        best = max(best, PricedFleet(asked, bound, cost), key=lambda one: one.bound)
        best = replace(best, cost=min(cost, best.cost))
        if on_turn is not None:
            on_turn(best)
        if best.gap <= gap or not (fresh or keep) or time.monotonic() > deadline:
            break
        keep = KEEP_BEST if fresh else 0.0
    return best


def _first_patterns(model: FleetModel) -> None:
    for factor in FIRST_FACTORS:
        _ask(model, model.pricing.split(model.first_prices(factor)), bound=False)
    _ask(model, model.pricing.split(model.pricing.rent), bound=False)


def _ask(model: FleetModel, prices: Floats, *, bound: bool = True) -> tuple[float, int]:
    """The bound at some prices, and how much is new in the answers."""
    priced = model.pricing.at(prices)
    known, total = len(model.active), prices.sum(axis=0)
    new = sum(model.add(part) for part in priced)
    for job in model.jobs:
        model.active.update(job.cheapest_kinds(total))
    cells = np.sum([part.cost for part in priced], axis=0)
    return model.lower_bound(total, cells) if bound else -np.inf, new + len(model.active) - known
