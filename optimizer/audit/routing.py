"""How much of several rates a set of replicas can serve together: a small linear program, solved in place.

Largest θ ≤ 1 with θ of every class served. Variables: share of class b served by group d (≥ 0); rows: the time of each
group's replicas, per class θ ≤ Σ shares, and as many outputs as prompts where they are done apart. All zeros is a
start, so one phase of the simplex method suffices (Dantzig 1951), with Bland's rule against cycling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TINY = 1e-11


@dataclass(frozen=True)
class Group:
    """Replicas alike: how many the whole rate of each class would keep busy, and how many there are.

    `stage`: they do whole requests (empty), or prompts (`prefill`) or outputs (`decode`) handed over in `network`.
    """

    loads: Mapping[str, float]
    count: float
    stage: str = ""
    network: tuple[str, ...] = ()


def most_served(names: Sequence[str], groups: Sequence[Group]) -> float:
    """Largest share of all rates that the groups can serve, 1 at most."""
    present = [group for group in groups if group.count > 0]
    if any(not any(name in group.loads for group in present) for name in names):
        return 0.0
    whole = [group for group in present if not group.stage and all(name in group.loads for name in names)]
    if sum(group.count / sum(group.loads[name] for name in names) for group in whole) >= 1:
        return 1.0  # all classes in proportion is enough
    return _largest_share(names, present)


def _largest_share(names: Sequence[str], present: Sequence[Group]) -> float:
    shares = [(group, name) for group in present for name in names if name in group.loads]
    rows = [[*(g.loads[n] / group.count if g is group else 0.0 for g, n in shares), 0.0, 1.0] for group in present]
    for name in names:
        rows.append([*(-1.0 if n == name and g.stage != "decode" else 0.0 for g, n in shares), 1.0, 0.0])
    for network in dict.fromkeys((g.network, n) for g, n in shares if g.stage):
        given = [_handed_over(g) if (g.network, n) == network else 0.0 for g, n in shares]
        rows += [[*given, 0.0, 0.0], [*(-share for share in given), 0.0, 0.0]]
    rows.append([0.0] * len(shares) + [1.0, 1.0])  # θ ≤ 1
    return _maximum(rows, len(shares))


def _handed_over(group: Group) -> float:
    """1 for prompts, −1 for outputs done apart."""
    return {"prefill": 1.0, "decode": -1.0}.get(group.stage, 0.0)


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
