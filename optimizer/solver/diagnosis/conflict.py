"""Which limits cannot hold together, and which have to give together: sets found by asking whether plans exist."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Holds = Callable[[Sequence[Item]], bool]
"""Whether all demand can be met while these limits hold (and the others are lifted)."""


def irreducible_conflict(limits: Sequence[Item], holds: Holds[Item]) -> list[Item]:
    """Limits that cannot hold together, none of which could be left out (QuickXplain, Junker 2004).

    `limits` must not hold together, and must hold if all are lifted. Of several conflicts, it is one that needs the
    later ones of `limits` least.
    """
    return _explain([], [], list(limits), holds)


def _explain(background: list[Item], added: list[Item], limits: list[Item], holds: Holds[Item]) -> list[Item]:
    if added and not holds(background):
        return []
    if len(limits) == 1:
        return limits
    first, second = limits[: len(limits) // 2], limits[len(limits) // 2 :]
    of_second = _explain([*background, *first], first, second, holds)
    of_first = _explain([*background, *of_second], of_second, first, holds)
    return [*of_first, *of_second]


def least_to_give(limits: Sequence[Item], holds: Holds[Item]) -> list[Item]:
    """Limits that have to give together: all the others hold, and none of these could be kept beside them.

    Earlier ones are kept rather than later ones.
    """
    kept: list[Item] = []
    gives: list[Item] = []

    def keep(group: list[Item]) -> None:
        if not group:
            return
        if holds([*kept, *group]):
            kept.extend(group)
        elif len(group) == 1:
            gives.extend(group)
        else:
            keep(group[: len(group) // 2])
            keep(group[len(group) // 2 :])

    keep(list(limits))
    return gives
