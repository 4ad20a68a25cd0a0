"""Valid inequalities: they cut off no whole plan, only fractions that the relaxation would otherwise live on.

Measured on the shipped problems (benchmarks/README.md): without them the relaxation of a small fleet lies a third below
the least cost, because it rents 0.2 of a node; with them the same problems are proven several times faster.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

from optimizer.model.entities import Instance, Server
from optimizer.model.families.vendors import vendor_serves
from optimizer.model.lookup import cell_index, nodes_in_service, server_cells
from optimizer.model.rows import Row, Term, row
from optimizer.model.spare import NodeKind, SpareNeed
from optimizer.model.staging import DECODE, sides, takes_requests
from optimizer.model.variables import SMALL_LOAD, CellKey, Variables

SHARES = frozenset({"share_needs_replica", "share_needs_node"})
"""Families with a row for every class, deployment and cell: the many ones, which a search may leave out."""

ServerTerms = tuple[Server, list[tuple[str, int, float]]]


def share_needs_replica(instance: Instance, v: Variables) -> Iterator[Row]:
    """Served share ≤ replicas, where one replica could serve the whole class: any share needs a whole one."""
    for server, key, terms in server_cells(instance, v):
        for name, column, rate in terms:
            if SMALL_LOAD <= rate * (server.load(name) or 0.0) < 1:
                index = (server.workload, name, server.label, *cell_index(instance, key))
                columns = [(column, 1.0), (v.replicas[server.index, key], -1.0)]
                yield row("share_needs_replica", index, columns, "<=", 0.0, "replicas")


def share_needs_node(instance: Instance, v: Variables) -> Iterator[Row]:
    """Σ share of a class served on an option ≤ its nodes, where one node could serve it all: any share needs one.

    Outputs alone (decode stages) have a row of their own: their shares and those of the other deployments add up to 2.
    """
    shares: dict[tuple[str, str, str, bool, CellKey], list[int]] = defaultdict(list)
    least: dict[tuple[str, str, str, bool, CellKey], float] = {}
    for server, key, terms in server_cells(instance, v):
        for name, column, rate in terms:
            place = (server.option.option_id, server.workload, name, takes_requests(server), key)
            nodes = rate * (server.load(name) or 0.0) * server.occupied_gpus / server.option.gpus_per_node
            shares[place].append(column)
            least[place] = min(nodes, least.get(place, nodes))
    for place, columns in shares.items():
        option_id, workload, name, whole, key = place
        nodes_column = nodes_in_service(v, option_id, key)
        if nodes_column is not None and least[place] < 1:
            index = (workload, name, option_id, *cell_index(instance, key), *(() if whole else (DECODE,)))
            terms_ = [*((c, 1.0) for c in columns), (nodes_column, -1.0)]
            yield row("share_needs_node", index, terms_, "<=", 0.0, "nodes")


def replica_cover(instance: Instance, v: Variables) -> Iterator[Row]:
    """Σ replicas × worth ≥ need, per service, block, slice and reference deployment: a row of whole numbers only.

    Weigh every class by its load w_b on a reference deployment. A replica of deployment d can do at most
    max_b(w_b ÷ load_db) of that weighted work, and all of Σ w_b × rate_b must be done (Chvátal's argument; HiGHS
    derives its rounding cuts from such rows). With stages, whole deployments and prefill stages do it all together,
    and so do whole deployments and decode stages: a set of rows for each.
    """
    by_cell: dict[tuple[str, CellKey], list[ServerTerms]] = defaultdict(list)
    for server, key, terms in server_cells(instance, v):
        by_cell[server.workload, key].append((server, terms))
    for (workload, key), servers in by_cell.items():
        terms_of = {server.index: terms for server, terms in servers}
        for stage, members in sides(server for server, _ in servers):
            together = [(server, terms_of[server.index]) for server in members]
            index = (workload, *([stage] if stage else []))
            yield from _covers(v, together, index, key, cell_index(instance, key))


def _covers(
    v: Variables, servers: list[ServerTerms], index: tuple[str, ...], key: CellKey, place: tuple[str, str]
) -> Iterator[Row]:
    """Cover rows of deployments that do all requests of a service together."""
    rates = {name: rate for _, terms in servers for name, _, rate in terms}
    for number, weights in enumerate(_references(servers, list(rates))):
        need = sum(weights[name] * rate for name, rate in rates.items())
        worth = [(v.replicas[server.index, key], _worth(server, terms, weights)) for server, terms in servers]
        if need >= SMALL_LOAD:
            yield row("replica_cover", (*index, number, *place), worth, ">=", need, "replicas")


def _references(servers: list[ServerTerms], names: list[str]) -> list[dict[str, float]]:
    """Distinct load vectors of deployments that serve every class."""
    found: dict[tuple[float, ...], dict[str, float]] = {}
    for server, _ in servers:
        loads = [server.load(name) for name in names]
        if all(loads):
            weights = {name: load or 0.0 for name, load in zip(names, loads, strict=True)}
            found.setdefault(tuple(round(load or 0.0, 12) for load in loads), weights)
    return list(found.values())


def _worth(server: Server, terms: list[tuple[str, int, float]], weights: dict[str, float]) -> float:
    """Most weighted work that one replica of a server can do, in replicas of the reference."""
    return max(weights[name] / load for name, _, _ in terms if (load := server.load(name)))


def spare_nodes(instance: Instance, v: Variables) -> Iterator[Row]:
    """Σ nodes × worth ≥ 1 + Σ served share × worth (+ (k − 1) × the least worth), per service with N + k and cell.

    Worth is the share of the service that a full node can do after a loss, 1 at most. What any loss leaves stands on
    the nodes left, and is the whole service; the largest node in use is worth no less than the mean over the shares
    served, and any other node no less than the least.
    """
    for need in v.spare_needs:
        worth = _worth_of_nodes(need)
        nodes = _nodes_by_kind(need, v)
        if not worth or any(kind not in nodes for kind in worth) or any(group.stage for group in need.groups):
            continue
        shares = _weights_of_classes(need)
        terms: list[Term] = [(column, w) for kind, w in worth.items() for column in nodes[kind]]
        for group in need.groups:
            for server in group.servers:
                for name, share in shares.items():
                    column = v.serve.get((server.index, name, need.cell))
                    if column is not None:
                        terms.append((column, -share * worth[group.kind]))
        least = 1.0 + (need.nodes - 1) * min(worth.values())
        index = (need.service, *cell_index(instance, need.cell))
        yield row("spare_nodes", index, terms, ">=", least, "share")


def _weights_of_classes(need: SpareNeed) -> dict[str, float]:
    """Share of each class in the load of the service on its best deployment; they add up to 1."""
    loads = {n: r * min(g.loads[n] for g in need.groups if n in g.loads) for n, r in need.rates.items()}
    return {name: load / sum(loads.values()) for name, load in loads.items()}


def _worth_of_nodes(need: SpareNeed) -> dict[NodeKind, float]:
    """Most of the service that a node of each kind can do, weighing classes as above; 1 at most."""
    if any(all(name not in g.loads for g in need.groups) for name in need.rates):
        return {}
    shares = _weights_of_classes(need)
    found: dict[NodeKind, float] = {}
    for group in need.groups:
        best = max(shares[n] / (r * group.loads[n]) for n, r in need.rates.items() if n in group.loads)
        found[group.kind] = max(found.get(group.kind, 0.0), min(1.0, best * group.per_node))
    return found


def _nodes_by_kind(need: SpareNeed, v: Variables) -> dict[NodeKind, list[int]]:
    found: dict[NodeKind, dict[int, None]] = defaultdict(dict)
    for group in need.groups:
        for server in group.servers:
            column = nodes_in_service(v, server.option.option_id, need.cell)
            if column is not None:
                found[group.kind][column] = None
    return {kind: list(columns) for kind, columns in found.items()}


def left_needs_nodes(instance: Instance, v: Variables) -> Iterator[Row]:
    """(Nodes lost + 1) × more ≤ nodes of the kind: what is left stands on one node more than are lost."""
    for need in v.spare_needs:
        nodes = _nodes_by_kind(need, v)
        for group in need.groups:
            for lost in range(1, need.nodes + 1):
                more = v.spare.get(("more", need.service, need.cell, group.label, lost))
                if more is not None:
                    index = (need.service, *cell_index(instance, need.cell), group.label, lost)
                    there = [(column, -1.0) for column in nodes[group.kind]]
                    yield row("left_needs_nodes", index, [(more, lost + 1.0), *there], "<=", 0.0, "nodes")


CUTS: tuple[Callable[[Instance, Variables], Iterator[Row]], ...] = (
    share_needs_replica,
    share_needs_node,
    replica_cover,
    spare_nodes,
    left_needs_nodes,
    vendor_serves,
)


def cuts(instance: Instance, v: Variables) -> Iterator[Row]:
    """All valid inequalities."""
    for family in CUTS:
        yield from family(instance, v)
