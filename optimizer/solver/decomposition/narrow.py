"""Less to decide in a cell: what looks worth it in parts, and a first plan in whole numbers near it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.model.build import Milp
from optimizer.solver.decomposition.choices import WHOLE, choose
from optimizer.solver.matrix import Floats, MatrixModel, MatrixSolution, solve_matrix

CHOICE_GAP = 1e-3
"""How near the best choice of kinds that survive a loss comes, with all else in parts."""
DEAR = 0.3
"""What a replica may add to the relaxed cost to be thought of, in rents of its GPUs at the cheapest."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The model of a cell with less to decide: what was chosen, the relaxed plan then, and a bound of the whole."""

    model: MatrixModel
    chosen: Mapping[int, float]
    relaxed: MatrixSolution
    bound: float


def narrow(milp: Milp, model: MatrixModel, cheapest: float) -> Narrowed | None:
    """Leave replicas only where they look worth it in parts; None where there is no plan.

    Services that must survive a loss first choose the kinds of nodes on which something is left then, with all else in
    parts: relaxed, that choice says nothing. `cheapest`: rent of a GPU of the cheapest nodes.
    """
    choices = [column for key, column in milp.variables.spare.items() if key[0] == "more"]
    chosen = choose(model, choices, CHOICE_GAP) if choices else None
    fixed = {} if chosen is None else dict(_structure(milp, choices, chosen.values))
    model = model.fixed(fixed)
    relaxed = solve_matrix(model, relaxed=True)
    if not len(relaxed.values):
        return None
    bound = relaxed.objective if chosen is None else chosen.bound
    return Narrowed(_without_dear(milp, model, cheapest, relaxed), fixed, relaxed, bound)


def _structure(milp: Milp, choices: Sequence[int], values: Floats) -> Iterator[tuple[int, float]]:
    """What was chosen, and no replicas where there were none."""
    yield from ((column, float(round(values[column]))) for column in choices)
    for need in milp.variables.spare_needs:
        for group in need.groups:
            for server in group.servers:
                column = milp.variables.replicas[server.index, need.cell]
                if values[column] < WHOLE:
                    yield column, 0.0


def _without_dear(milp: Milp, model: MatrixModel, cheapest: float, relaxed: MatrixSolution) -> MatrixModel:
    """No replicas that are not in the relaxed plan and would each cost it much, against the cheapest GPUs to rent."""
    upper = list(model.upper)
    for (index, _), column in milp.variables.replicas.items():
        dear = DEAR * cheapest * milp.instance.servers[index].occupied_gpus
        if relaxed.values[column] < WHOLE and relaxed.reduced[column] > dear:
            upper[column] = 0.0
    return replace(model, upper=upper)


def rounded(narrowed: Narrowed, milp: Milp, there: set[str]) -> dict[int, float]:
    """Whole replicas and nodes near a relaxed plan: what fits of it on the nodes there, the rest on rented ones."""
    v, servers = milp.variables, milp.instance.servers
    model, fixed = narrowed.model, dict(_floored(milp, there, narrowed.relaxed))
    tight = replace(model, upper=[min(u, fixed.get(c, u)) for c, u in enumerate(model.upper)])
    again = solve_matrix(tight, relaxed=True)
    if not len(again.values):
        return {}
    kept: dict[str, float] = {}
    for (index, _), column in v.replicas.items():
        server = servers[index]
        fixed.setdefault(column, float(math.ceil(again.values[column] - WHOLE)))
        kept[server.option.option_id] = kept.get(server.option.option_id, 0.0) + fixed[column] * server.occupied_gpus
    sizes = {option.option_id: option.gpus_per_node for option in milp.instance.options}
    for (option_id, _), column in v.rent.items():
        fixed[column] = float(math.ceil(kept.get(option_id, 0.0) / sizes[option_id] - WHOLE))
    return fixed


def _floored(milp: Milp, there: set[str], relaxed: MatrixSolution) -> Iterator[tuple[int, float]]:
    """Replicas on nodes that are there: rounded down, then up again while GPUs are left, the fullest first."""
    v, servers = milp.variables, milp.instance.servers
    on: dict[str, list[tuple[float, int, float]]] = {}
    for (index, _), column in v.replicas.items():
        option_id = servers[index].option.option_id
        if option_id in there:
            value = float(relaxed.values[column])
            on.setdefault(option_id, []).append((value - math.floor(value), column, servers[index].occupied_gpus))
    options = {option.option_id: option for option in milp.instance.options}
    for option_id, found in on.items():
        option = options[option_id]
        whole = {column: math.floor(float(relaxed.values[column]) + WHOLE) for _, column, _ in found}
        left = (option.max_nodes or 0) * option.gpus_per_node - sum(whole[c] * size for _, c, size in found)
        for part, column, size in sorted(found, reverse=True):
            if part > WHOLE and size <= left + WHOLE:
                whole[column], left = whole[column] + 1, left - size
        yield from ((column, float(n)) for column, n in whole.items())
