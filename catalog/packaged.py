"""Node types of the package's offers: what price files of one's own are compared with."""

import csv
from collections.abc import Mapping
from functools import cache

from catalog.load import DEFAULT_DIRECTORY


@cache
def packaged_nodes(provider: str) -> Mapping[str, frozenset[tuple[str, int]]]:
    """GPU and count of each node type of a provider, by the type's name in lower case."""
    path = DEFAULT_DIRECTORY.joinpath("offers", f"{provider}.csv")
    found: dict[str, set[tuple[str, int]]] = {}
    if path.is_file():
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            node = (row["gpu_id"], int(row["gpus_per_node"]))
            found.setdefault(row["instance_type"].casefold(), set()).add(node)
    return {name: frozenset(nodes) for name, nodes in found.items()}
