"""Nodes kept busy, which draw more than idle ones."""

import math
from collections import defaultdict

from optimizer.audit.case import Key
from optimizer.audit.jobs import Working
from optimizer.audit.services import Place, Station


def busy_nodes(stations: dict[Place, Station], works: list[Working]) -> dict[str, list[tuple[Key, float]]]:
    """Nodes busy in a cell, by option.

    A service keeps busy what it serves ÷ the throughput at its operating point, a job its GPUs ÷ the node's.
    """
    found: dict[str, list[tuple[Key, float]]] = defaultdict(list)
    for station in stations.values():
        seconds = {name: c.replica_seconds_per_request for name, c in station.classes.items()}
        replicas = math.fsum(rate * seconds[name] for name, rate in station.served.items())
        nodes = replicas * station.gpus_kept / station.option.gpus_per_node
        found[station.option.option_id].append((station.key, nodes))
    for work in works:
        found[work.record.option].append((work.key, work.record.gpus_on_free / work.option.gpus_per_node))
    return found
