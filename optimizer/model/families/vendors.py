"""The family of how many providers are used.

Left-hand sides hold variables only, right-hand sides data only.
"""

from collections import defaultdict
from collections.abc import Iterator

from optimizer.model.entities import Instance
from optimizer.model.families.limits import most_nodes
from optimizer.model.lookup import cell_index, server_cells
from optimizer.model.rows import CostLine, Row, row
from optimizer.model.staging import takes_requests
from optimizer.model.variables import CellKey, Variables, providers_held
from optimizer.problem.schema import OWN_PROVIDER

FAMILY = "vendor_limit"


def vendor_limit(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ providers used ≤ limits.vendors.max − those of nodes held already; nodes of a provider ≤ its most × used.

    The buyer's own hardware without a provider is no provider. The most of an offer is its stock, or the nodes that
    would serve all demand alone.
    """
    limit = instance.problem.limits.vendors
    if limit is None or not v.vendors:
        return
    already = len(providers_held(instance))
    yield row(FAMILY, ("most",), ((c, 1.0) for c in v.vendors.values()), "<=", limit.max - already, "providers")
    options = {option.option_id: option for option in instance.options}
    nodes: list[tuple[str, tuple[str, ...], int]] = [(o, (f"order-{t}",), c) for (o, t), c in v.acquire.items()]
    nodes += [(key[0], cell_index(instance, key[1]), column) for key, column in v.rent.items()]
    most: dict[str, float] = {}
    for name, where, column in nodes:
        used = v.vendors.get(options[name].provider)
        if used is not None:
            if name not in most:
                most[name] = float(options[name].max_nodes or most_nodes(instance, name))
            yield row(FAMILY, (name, *where, "link"), [(column, 1.0), (used, -most[name])], "<=", 0.0, "nodes")
    for number, place in enumerate(v.places):
        used = v.vendors.get(place.option.provider)
        if used is not None and place.hired is not None:
            index = (place.option.option_id, place.demand.name, number, "link")
            yield row(FAMILY, index, [(place.hired, 1.0), (used, -1.0)], "<=", 0.0, "share")


def vendor_serves(instance: Instance, v: Variables) -> Iterator[Row]:
    """Share of a class served at a provider ≤ whether it is used: tighter than the rows of its nodes."""
    shares: dict[tuple[str, str, str, CellKey], list[int]] = defaultdict(list)
    for server, key, terms in server_cells(instance, v) if v.vendors else ():
        if server.option.provider != OWN_PROVIDER and takes_requests(server):
            for name, column, _ in terms:
                shares[server.option.provider, server.workload, name, key].append(column)
    for (provider, workload, name, key), columns in shares.items():
        used = v.vendors.get(provider)
        if used is not None:
            index = (provider, workload, name, *cell_index(instance, key))
            yield row("vendor_serves", index, [*((c, 1.0) for c in columns), (used, -1.0)], "<=", 0.0, "share")
