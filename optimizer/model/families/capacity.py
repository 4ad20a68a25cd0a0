"""Families of capacity: GPUs used fit the nodes there, and nodes there were ordered.

The docstring of a family is its inequality, then why. Left-hand sides hold variables only, right-hand sides data only,
both in the buyer's units.
"""

from collections import defaultdict
from collections.abc import Iterator

from optimizer.model.entities import Instance
from optimizer.model.lookup import (
    cell_index,
    month_label,
    nodes_in_service,
    place_index,
)
from optimizer.model.rows import CostLine, Row, Term, row
from optimizer.model.variables import SMALL_LOAD, CellKey, Variables, WorkPlace, cell_key


def pool_capacity(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """GPUs kept by replicas and by jobs ≤ GPUs of the nodes held or rented, per option, block and slice.

    Jobs on nodes rented for themselves (a job of g GPUs holds ⌈g/n⌉ nodes): their GPUs ≤ those nodes × the most that
    a size between least and most uses of a node, and where the most GPUs leave part of the last node idle, the line
    from there to its top.
    """
    used: dict[tuple[str, CellKey], list[Term]] = defaultdict(list)
    for (server, key), column in v.replicas.items():
        used[instance.servers[server].option.option_id, key].append((column, instance.servers[server].occupied_gpus))
    whole = {k: list(terms) for k, terms in used.items()}
    for place in v.places:
        if place.free is not None:
            gpus = place.gpus_per_share * place.occupied_per_gpu
            used[place.option.option_id, cell_key(place.cell)].append((place.free, gpus))
    for option in instance.options:
        for cell in instance.cells():
            here = (option.option_id, cell_key(cell))
            nodes = nodes_in_service(v, *here)
            if used.get(here):
                index = (option.option_id, *cell_index(instance, cell_key(cell)))
                held = [(nodes, -float(option.gpus_per_node))] if nodes is not None else []
                yield row("pool_capacity", index, [*used[here], *held], "<=", 0.0, "GPUs")
    for place in v.places:
        yield from _hired_rows(instance, place)
        yield from _any_node_rows(instance, v, place)
        yield from _slot_rows(instance, v, place, whole)


def _any_node_rows(instance: Instance, v: Variables, place: WorkPlace) -> Iterator[Row]:
    """Share on free GPUs ≤ nodes there, where the work is tiny: no tolerance of the solver may lose its machine."""
    if place.free is None or place.gpus_per_share * place.occupied_per_gpu >= SMALL_LOAD:
        return
    index = (place.demand.name, str(place.alternative), *place_index(instance, place), "any")
    nodes = nodes_in_service(v, place.option.option_id, cell_key(place.cell))
    held = [(nodes, -1.0)] if nodes is not None else []
    yield row("pool_capacity", index, [(place.free, 1.0), *held], "<=", 0.0, "nodes")


def _hired_rows(instance: Instance, place: WorkPlace) -> Iterator[Row]:
    if place.hired is None or place.nodes is None:
        return
    index = (place.demand.name, str(place.alternative), *place_index(instance, place))
    gpus = place.gpus_per_share * place.occupied_per_gpu
    useful = place.useful_gpus_per_node
    terms = [(place.hired, gpus), (place.nodes, -useful * place.nodes_per_share)]
    yield row("pool_capacity", (*index, "hired"), terms, "<=", 0.0, "GPUs")
    if place.hired_on is not None:
        yield row("pool_capacity", (*index, "on"), [(place.hired, 1.0), (place.hired_on, -1.0)], "<=", 0.0, "share")
    if place.at_once is not None:
        whole = [(place.nodes, place.nodes_per_share), (place.at_once, -1.0)]
        yield row("pool_capacity", (*index, "at-once"), whole, "<=", 0.0, "nodes")
        if place.hired_on is not None:
            least_terms = [(place.hired_on, float(place.least_nodes_at_once)), (place.at_once, -1.0)]
            yield row("pool_capacity", (*index, "at-once-least"), least_terms, "<=", 0.0, "nodes")
    top = place.most_occupied_gpus
    per_node = float(place.option.gpus_per_node)
    if top is None or useful < per_node:
        return
    full = top // per_node
    rest = top - full * per_node
    if rest > 0:  # gpus − full·n ≤ (nodes − full)·rest
        terms = [(place.hired, gpus), (place.nodes, -rest * place.nodes_per_share)]
        yield row("pool_capacity", (*index, "last-node"), terms, "<=", full * (per_node - rest), "GPUs")


def _slot_rows(
    instance: Instance, v: Variables, place: WorkPlace, whole: dict[tuple[str, CellKey], list[Term]]
) -> Iterator[Row]:
    """Whole GPU groups of a job on free GPUs: its average fits in them, and they fit beside the replicas."""
    if place.slots is None or place.free is None:
        return
    index = (place.demand.name, str(place.alternative), *place_index(instance, place))
    key = cell_key(place.cell)
    group = float(place.estimate.deployment.gpus_per_replica)
    yield row(
        "pool_capacity",
        (*index, "groups"),
        [(place.free, place.gpus_per_share), (place.slots, -group)],
        "<=",
        0.0,
        "GPUs",
    )
    nodes = nodes_in_service(v, place.option.option_id, key)
    held = [(nodes, -float(place.option.gpus_per_node))] if nodes is not None else []
    terms = [*whole.get((place.option.option_id, key), []), (place.slots, group * place.occupied_per_gpu), *held]
    yield row("pool_capacity", (*index, "beside"), terms, "<=", 0.0, "GPUs")


def fleet_balance(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Nodes in service = existing + orders arrived and still in term, per held option and block."""
    for option in instance.held_options:
        for block in instance.grid.blocks:
            stock = v.stock.get((option.option_id, block.index))
            if stock is None:
                continue
            arrived = [
                (v.acquire[option.option_id, o.period], -1.0)
                for o in instance.orders
                if o.option is option and o.in_service(block.start_month)
            ]
            existing = instance.existing_in_service(option, block.start_month)
            index = (option.option_id, month_label(block.start_month))
            yield row("fleet_balance", index, [(stock, 1.0), *arrived], "=", existing, "nodes")
