"""Choices of a solution that stand for nothing, set to what the rest of it says."""

from collections import defaultdict
from collections.abc import Sequence

from optimizer.model.rows import Row

DUST = 1e-9


def without_idle_choices(rows: Sequence[Row], values: Sequence[float]) -> tuple[float, ...]:
    """The same plan with no provider called used that nothing is had from."""
    used: dict[int, float] = defaultdict(float)
    for row in rows:
        if row.family == "vendor_limit" and row.index[-1] == "link":
            (nodes, _), (provider, _) = row.terms
            used[provider] = max(used[provider], float(values[nodes] > DUST))
    return tuple(used.get(column, value) for column, value in enumerate(values))
