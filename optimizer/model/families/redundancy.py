"""The family of N + k: whatever nodes are lost, the rest still serves the whole rate.

Left-hand sides hold variables only, right-hand sides data only. Shares are of the service's (or class's) rate.
"""

from collections import defaultdict
from collections.abc import Iterator

from optimizer.model.entities import Instance
from optimizer.model.lookup import cell_index
from optimizer.model.rows import CostLine, Row, Term, row
from optimizer.model.spare import ReplicaGroup, SpareNeed, loss_label
from optimizer.model.staging import DECODE
from optimizer.model.variables import Variables

FAMILY = "spare_capacity"


def spare_capacity(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Capacity − the worst loss of any k nodes ≥ the whole rate, per service with redundancy, block and slice.

    The loss of i nodes of a kind leaves `left` ≤ replicas − i × replicas per node where `more` says that there are
    more than that, else nothing. Where every group of replicas serves all classes in proportion, the worst k nodes are
    k × threshold + Σ excess, by the dual of choosing the k largest; else each loss has a routing of its own.
    """
    for need in v.spare_needs:
        index = (need.service, *cell_index(instance, need.cell))
        yield from _left_rows(need, v, index)
        yield from _routed(need, v, index) if need.by_routes else _proportional(need, v, index)


def _replicas(need: SpareNeed, v: Variables, group: ReplicaGroup, factor: float = 1.0) -> list[Term]:
    return [(v.replicas[server.index, need.cell], factor) for server in group.servers]


def _left_rows(need: SpareNeed, v: Variables, index: tuple[str, ...]) -> Iterator[Row]:
    """Left ≤ replicas − i × per node, and left ≤ (what is worth counting) × more: per group and nodes lost."""
    for group in need.groups:
        for lost in range(1, need.nodes + 1):
            left = v.spare.get(("left", need.service, need.cell, group.label, lost))
            if left is None:
                continue
            more = v.spare["more", need.service, need.cell, group.label, lost]
            here = (*index, group.label, lost)
            gone = (more, float(lost * group.per_node))
            unit = 1.0 if need.by_routes else need.share(group)
            terms = [(left, 1.0), (gone[0], gone[1] * unit), *_replicas(need, v, group, -unit)]
            yield row(FAMILY, (*here, "left"), terms, "<=", 0.0, "replicas" if need.by_routes else "share")
            if not need.by_routes:
                yield row(FAMILY, (*here, "more"), [(left, 1.0), (more, -need.most_share)], "<=", 0.0, "share")


# --- all classes in proportion ----------------------------------------------------------------------------------------


def _proportional(need: SpareNeed, v: Variables, index: tuple[str, ...]) -> Iterator[Row]:
    threshold = v.spare["threshold", need.service, need.cell]
    excess: list[Term] = []
    for kind in need.kinds:
        groups = [g for g in need.groups if g.kind == kind and need.share(g) > 0]
        for lost in range(1, need.nodes + 1):
            terms: list[Term] = [(threshold, -1.0)]
            over = v.spare.get(("excess", need.service, need.cell, kind, lost))
            if over is not None:
                terms.append((over, -1.0))
                excess.append((over, -1.0))
            for group in groups:
                terms += [(c, 1.0) for c in _left_before(need, v, group, lost)]
                terms += _replicas(need, v, group, need.share(group)) if lost == 1 else []
                terms.append((v.spare["left", need.service, need.cell, group.label, lost], -1.0))
            if groups:
                yield row(FAMILY, (*index, *map(str, kind), lost, "lost"), terms, "<=", 0.0, "share")
    able = [term for group in need.groups for term in _replicas(need, v, group, need.share(group))]
    terms = [*able, (threshold, -float(need.nodes)), *excess]
    yield row(FAMILY, (*index, "served"), terms, ">=", 1.0, "share")


def _left_before(need: SpareNeed, v: Variables, group: ReplicaGroup, lost: int) -> list[int]:
    """Column of what is left when one node less is lost (none for the first: all replicas)."""
    return [] if lost == 1 else [v.spare["left", need.service, need.cell, group.label, lost - 1]]


# --- a routing for every loss -----------------------------------------------------------------------------------------


def _routed(need: SpareNeed, v: Variables, index: tuple[str, ...]) -> Iterator[Row]:
    for loss in need.losses():
        label, gone = loss_label(loss), dict(loss)
        served: dict[str, list[Term]] = defaultdict(list)
        handed_over: dict[tuple[str, ...], list[Term]] = defaultdict(list)
        for group in need.groups:
            lost = gone.get(group.kind, 0)
            there = (
                [(v.spare["left", need.service, need.cell, group.label, lost], -1.0)]
                if lost
                else _replicas(need, v, group, -1.0)
            )
            shares = {
                name: v.spare["route", need.service, need.cell, label, group.label, name]
                for name in need.rates
                if name in group.loads
            }
            if not shares:
                continue
            busy = [(c, need.rates[name] * group.loads[name]) for name, c in shares.items()]
            yield row(FAMILY, (*index, label, group.label, "busy"), [*busy, *there], "<=", 0.0, "replicas")
            yield from _whole(need, v, (*index, label, group.label), group, shares, there, lost)
            for name, column in shares.items():
                if group.stage != DECODE:
                    served[name].append((column, need.rates[name]))
                if group.stage:
                    sign = -1.0 if group.stage == DECODE else 1.0
                    handed_over[name, *group.servers[0].handover].append((column, sign * need.rates[name]))
        for name, rate in need.rates.items():
            yield row(FAMILY, (*index, name, label, "served"), served[name], ">=", rate, "requests/s")
        for link, terms in handed_over.items():
            yield row(FAMILY, (*index, label, *link, "handover"), terms, "=", 0.0, "requests/s")


def _whole(
    need: SpareNeed,
    v: Variables,
    index: tuple[str, ...],
    group: ReplicaGroup,
    shares: dict[str, int],
    there: list[Term],
    lost: int,
) -> Iterator[Row]:
    """Share ≤ whole replicas there, where one could serve the whole class; share ≤ whether any is left."""
    for name, column in shares.items():
        if need.rates[name] * group.loads[name] < 1:
            yield row(FAMILY, (*index, name, "whole"), [(column, 1.0), *there], "<=", 0.0, "replicas")
        if lost:
            more = v.spare["more", need.service, need.cell, group.label, lost]
            yield row(FAMILY, (*index, name, "more"), [(column, 1.0), (more, -1.0)], "<=", 0.0, "share")
