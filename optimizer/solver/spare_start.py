"""A first plan where services have spare nodes: each keeps to one deployment on one kind of node.

HiGHS finds its own first plans by rounding, which seldom leaves enough when nodes go. With one deployment and kind per
service the choice of what a loss leaves is settled, and the rest is as easy as without redundancy. Measured on the
shipped problems with n+1: plans within 10 to 20 % of the best known in 1 to 3 s, where HiGHS alone had 10 times the
cost after 30 s.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from optimizer.model.build import Milp
from optimizer.model.spare import ReplicaGroup
from optimizer.solver.known_start import solve_from_start
from optimizer.solver.milp import (
    IncumbentHook,
    LinearModel,
    ProgressHook,
    Solution,
    SolverSettings,
    solve_model,
)

GAP = 0.01
LONGEST_S = 20.0
SHORTEST_S = 0.1
SHARE_OF_TIME = 0.25
"""Of the time limit, for the relaxation and the restricted model each."""


def solve_from_spares(
    milp: Milp,
    model: LinearModel,
    settings: SolverSettings,
    *,
    on_progress: ProgressHook | None = None,
    on_incumbent: IncumbentHook | None = None,
) -> Solution:
    """Solve a model, from a first plan with spare nodes where services ask for them (`milp.solve_model` otherwise)."""
    began = time.monotonic()
    first = _first_plan(milp, model, settings) if milp.variables.spare_needs else None
    if first is not None:
        spent, limit = time.monotonic() - began, settings.time_limit_s
        left = None if limit is None else max(SHORTEST_S, limit - spent)
        settings = replace(settings, time_limit_s=SHORTEST_S if first.interrupted else left)
        model = replace(model, start=first.values)
    found = solve_from_start(model, settings, on_progress=on_progress, on_incumbent=on_incumbent)
    interrupted = found.interrupted or (first is not None and first.interrupted)
    return replace(found, interrupted=interrupted, seconds=time.monotonic() - began)


def _first_plan(milp: Milp, model: LinearModel, settings: SolverSettings) -> Solution | None:
    """Each service on the deployment and kind of node that serves most of it in the relaxation."""
    most = LONGEST_S if settings.time_limit_s is None else min(LONGEST_S, SHARE_OF_TIME * settings.time_limit_s)
    quick = replace(settings, gap=max(GAP, settings.gap), time_limit_s=most)
    relaxed = solve_model(replace(model, relaxed=True), quick)
    if not relaxed.values:
        return None
    columns = model.columns.copy()
    columns.upper = list(columns.upper)
    for replicas in _barred(milp, relaxed.values):
        columns.upper[replicas] = 0.0
    found = solve_model(replace(model, columns=columns), quick)
    return replace(found, interrupted=found.interrupted or relaxed.interrupted) if found.values else None


def _barred(milp: Milp, values: Sequence[float]) -> list[int]:
    """Replicas of all groups but the one that serves most of each service in the relaxation."""
    v, grid = milp.variables, milp.instance.grid
    served: dict[tuple[str, str], float] = defaultdict(float)
    for need in v.spare_needs:
        hours = grid.cell(*need.cell).hours
        for group in need.groups:
            columns = [v.serve.get((s.index, name, need.cell)) for s in group.servers for name in need.rates]
            share = sum(values[column] for column in columns if column is not None)
            served[need.service, _name(group)] += hours * share
    best: dict[str, str] = {}
    for (service, name), _ in sorted(served.items(), key=lambda one: -one[1]):
        best.setdefault(service, name)
    return [
        v.replicas[server.index, need.cell]
        for need in v.spare_needs
        for group in need.groups
        if _name(group) != best[need.service]
        for server in group.servers
    ]


def _name(group: ReplicaGroup) -> str:
    """The same group in every cell, whatever offers are there."""
    gpu, size = group.kind
    return f"{gpu} x{size} {group.servers[0].estimate.deployment.label}"
