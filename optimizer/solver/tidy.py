"""Choices of a solution that stand for nothing, set to what the rest of it says."""

from collections import defaultdict
from collections.abc import Sequence

from optimizer.model.rows import Row

DUST = 1e-9
SOLVER_TOLERANCE = 2e-6
"""Rows hold to so much of their scale (twice the solver's own tolerance, for sums of two of them)."""
REPLICA_FAMILIES = ("replica_time", "compute", "memory_bandwidth", "memory_capacity", "whole_replica")
"""Rows that end in −1 × replicas: what a deployment is asked to do, in replicas."""


def served_by_replicas(rows: Sequence[Row], values: Sequence[float]) -> tuple[float, ...]:
    """The same plan without requests on no replicas, which the solver's tolerance allows; others serve them.

    Shares that stand on a deployment without replicas are dust of the size of the tolerance. They are set to 0, and the
    other shares of the class in that cell are raised by as much, so that they add up to its rate again.
    """
    gone = {
        column
        for row in rows
        if row.family in REPLICA_FAMILIES and not round(values[row.terms[-1][0]])
        for column, coefficient in row.terms[:-1]
        if 0 < coefficient * values[column] <= SOLVER_TOLERANCE * max(1.0, row.scale)
    }
    if not gone:
        return tuple(values)
    tidy = [0.0 if column in gone else value for column, value in enumerate(values)]
    for row in rows:
        if row.family == "demand_coverage" and any(column in gone for column, _ in row.terms):
            served = sum(coefficient * tidy[column] for column, coefficient in row.terms)
            if served > 0:
                for column, _ in row.terms:
                    tidy[column] *= row.rhs / served
    return tuple(tidy)


def without_idle_choices(rows: Sequence[Row], values: Sequence[float]) -> tuple[float, ...]:
    """The same plan with no provider called used that nothing is had from."""
    used: dict[int, float] = defaultdict(float)
    for row in rows:
        if row.family == "vendor_limit" and row.index[-1] == "link":
            (nodes, _), (provider, _) = row.terms
            used[provider] = max(used[provider], float(values[nodes] > DUST))
    return tuple(used.get(column, value) for column, value in enumerate(values))


def with_starting(rows: Sequence[Row], values: Sequence[float], tidy: list[float]) -> tuple[float, ...]:
    """As many replicas starting as the hours before and after need."""
    least: dict[int, float] = defaultdict(float)
    for row in rows:
        if row.family == "start_up":
            (starting, _), (needed, _) = row.terms
            least[starting] = max(least[starting], tidy[needed])
    for column, needed_at_least in least.items():
        tidy[column] = min(values[column], max(tidy[column], needed_at_least))
    return tuple(tidy)
