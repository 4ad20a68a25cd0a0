"""How much of several rates a set of replicas can serve together: a small linear program, solved in place.

Largest θ ≤ 1 with θ of every class served. Variables: share of class b served by group d (≥ 0); rows: the time of each
group's replicas, and per class θ ≤ Σ shares. All zeros is a start, so one phase of the simplex method suffices
(Dantzig 1951), with Bland's rule against cycling.
"""

from collections.abc import Mapping, Sequence

TINY = 1e-11

Able = tuple[Mapping[str, float], int]
"""Replicas that the whole rate of each class would keep busy, and replicas there."""


def most_served(names: Sequence[str], groups: Sequence[Able]) -> float:
    """Largest share of all rates that the groups can serve, 1 at most."""
    present = [(loads, float(count)) for loads, count in groups if count > 0]
    if any(not any(name in loads for loads, _ in present) for name in names):
        return 0.0
    whole = [(loads, count) for loads, count in present if all(name in loads for name in names)]
    if sum(count / sum(loads[name] for name in names) for loads, count in whole) >= 1:
        return 1.0  # all classes in proportion is enough
    return _largest_share(names, present)


def _largest_share(names: Sequence[str], present: Sequence[tuple[Mapping[str, float], float]]) -> float:
    shares = [(d, name) for d, (loads, _) in enumerate(present) for name in names if name in loads]
    rows = []
    for d, (loads, count) in enumerate(present):
        rows.append([loads[name] / count if at == d else 0.0 for at, name in shares] + [0.0, 1.0])
    for name in names:
        rows.append([-1.0 if of == name else 0.0 for _, of in shares] + [1.0, 0.0])
    rows.append([0.0] * len(shares) + [1.0, 1.0])  # θ ≤ 1
    return _maximum(rows, len(shares))


def _maximum(rows: list[list[float]], objective: int) -> float:
    """Largest value of column `objective` where each row says Σ coefficient × column ≤ last entry (none below 0)."""
    columns = len(rows[0]) - 1
    count = len(rows)
    table = [
        [*row[:columns], *(1.0 if i == j else 0.0 for j in range(count)), row[columns]] for i, row in enumerate(rows)
    ]
    reduced = [1.0 if j == objective else 0.0 for j in range(columns + count)] + [0.0]
    basis = list(range(columns, columns + count))
    while (entering := next((j for j in range(columns + count) if reduced[j] > TINY), None)) is not None:
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(table) if row[entering] > TINY]
        _, _, leaving = min(ratios)
        _pivot(table, reduced, leaving, entering)
        basis[leaving] = entering
    return -reduced[-1]


def _pivot(table: list[list[float]], reduced: list[float], leaving: int, entering: int) -> None:
    by = table[leaving][entering]
    table[leaving] = [value / by for value in table[leaving]]
    for row in [*(r for i, r in enumerate(table) if i != leaving), reduced]:
        factor = row[entering]
        if factor:
            row[:] = [value - factor * own for value, own in zip(row, table[leaving], strict=True)]
