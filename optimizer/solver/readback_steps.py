"""What is paid in whole billing steps, read off a solution: stretches, bills of runs, and how much of it is used."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from optimizer.model.build import Milp
from optimizer.model.places import WorkPlace
from optimizer.model.rows import Row
from optimizer.model.variables import CellKey, cell_key
from optimizer.solver.tidy import DUST

NEARLY_WHOLE = 1e-6


def with_least_hires(milp: Milp, rows: Sequence[Row], values: Sequence[float]) -> tuple[float, ...]:
    """The same plan with no more hired nodes than the work on them needs: the rest of the steps paid is idle.

    Idle time is paid last, when it costs least, unless rents rise: then the rows of the model see to it.
    """
    bills = milp.variables.bills
    if not bills or milp.instance.problem.finance.opex_escalation.rent > 0:
        return tuple(values)
    least: dict[int, float] = defaultdict(float)
    for row in rows:
        if row.family == "pool_capacity" and row.index[-1] in ("hired", "last-node"):
            (hired, gpus), (nodes, per_node) = row.terms
            least[nodes] = max(least[nodes], (gpus * values[hired] - row.rhs) / -per_node)
    tidy = list(values)
    for bill in bills:
        for place in bill.places:
            if place.nodes is not None:
                freed = max(0.0, values[place.nodes] - least.get(place.nodes, values[place.nodes]))
                tidy[place.nodes] -= freed
                tidy[bill.idle] += freed * place.nodes_per_share * place.cell.hours
    return tuple(tidy)


def step_schedule(milp: Milp, values: Sequence[float]) -> dict[str, Any]:
    """Nodes rented for stretches of whole steps, and node-steps paid for runs of jobs; nothing where there are none."""
    stretches = [
        {
            "option": stretch.option.option_id,
            "days": stretch.days,
            "first_block": stretch.first,
            "last_block": stretch.last,
            "nodes": round(values[column]),
        }
        for stretch, column in milp.variables.stretches
        if values[column] > 0.5
    ]
    bills = [
        {
            "option": bill.option.option_id,
            "run": bill.places[0].demand.name,
            "estimate": milp.instance.estimates.jobs.index(bill.places[0].estimate),
            "days": steps.days,
            "piece": steps.piece.name,
            "node_steps": round(values[steps.column]),
        }
        for bill in milp.variables.bills
        for steps in bill.steps
        if values[steps.column] > 0.5
    ]
    return {key: found for key, found in (("stretches", stretches), ("bills", bills)) if found}


def used_gpu_hours(milp: Milp, values: Sequence[float]) -> dict[str, float]:
    """GPU-hours of the nodes that something runs on, by option, for those paid in whole steps."""
    v, instance = milp.variables, milp.instance
    in_steps = {s.option.option_id for s, _ in v.stretches}
    billed = {bill.option.option_id for bill in v.bills}
    found: dict[str, float] = defaultdict(float)
    hours = {cell_key(c): c.hours for c in instance.cells()}
    busy = _busy_nodes(milp, values, in_steps)
    for (option_id, key), column in v.rent.items():
        used = busy.get((option_id, key), 0.0) if option_id in in_steps else values[column]
        found[option_id] += hours[key] * min(values[column], used)
    for place in v.places:
        found[place.option.option_id] += hours[cell_key(place.cell)] * place.hired_nodes(values)
    sizes = {o.option_id: o.gpus_per_node for o in instance.options}
    return {name: sizes[name] * found[name] for name in in_steps | billed}


def _busy_nodes(milp: Milp, values: Sequence[float], names: set[str]) -> dict[tuple[str, CellKey], float]:
    """Nodes that replicas stand on, in whole nodes, and jobs work on, on average."""
    v, servers = milp.variables, milp.instance.servers
    sizes = {o.option_id: o.gpus_per_node for o in milp.instance.options}
    gpus: dict[tuple[str, CellKey], float] = defaultdict(float)
    for (index, key), column in v.replicas.items():
        server = servers[index]
        if server.option.option_id in names:
            gpus[server.option.option_id, key] += round(values[column]) * server.occupied_gpus
    found: dict[tuple[str, CellKey], float] = defaultdict(float)
    for (name, key), kept in gpus.items():
        found[name, key] = math.ceil(kept / sizes[name] - NEARLY_WHOLE)
    for place in v.places:
        if place.free is not None and place.option.option_id in names:
            found[place.option.option_id, cell_key(place.cell)] += _nodes_worked_on(place, values[place.free])
    return found


def _nodes_worked_on(place: WorkPlace, share: float) -> float:
    return share * place.nodes_per_share if share > DUST else 0.0
