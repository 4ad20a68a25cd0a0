"""From a fleet and plans of its cells to values of the planning model itself, limited to what they use.

Replicas are dealt out over the options of a kind; jobs, and whatever else the cells leave open, are decided by the
planning model with all that fixed. What comes out is checked against its every row.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.model.build import Milp, build
from optimizer.model.entities import Instance, Server, VolumeDemand
from optimizer.model.variables import CellKey, cell_key
from optimizer.solver.decomposition.cells import CellPlan
from optimizer.solver.decomposition.fleet import Fleet
from optimizer.solver.decomposition.kinds import Kind
from optimizer.solver.matrix import MatrixModel, solve_matrix

ENOUGH = 1e-6
FEASIBLE = 1e-6
"""Largest violation of a row, as a share of its scale, that counts as none."""
MOST_ALTERNATIVES = 8
"""Ways of running a job that are tried, the cheapest first."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """The limited planning model with the values of its columns, and their cost."""

    milp: Milp
    values: tuple[float, ...]
    cost: float


@dataclass(slots=True)
class Assembly:
    """Services' columns by meaning, gathered cell by cell: replicas and shares by server, nodes by option."""

    instance: Instance
    kinds: Sequence[Kind]
    fleet: Fleet
    replicas: dict[tuple[int, CellKey], int]
    shares: dict[tuple[int, str, CellKey], float]
    rents: dict[tuple[str, CellKey], int]

    @classmethod
    def of(
        cls, instance: Instance, kinds: Sequence[Kind], fleet: Fleet, plans: Sequence[CellPlan]
    ) -> "Assembly | None":
        """Gather plans of all cells; None where replicas cannot be dealt out over the options."""
        made = cls(instance, kinds, fleet, {}, {}, {})
        dealer = _Dealer(instance, kinds, fleet)
        for cell, plan in zip(instance.cells(), plans, strict=True):
            key = cell_key(cell)
            dealt = dealer.deal(plan, cell.block)
            if dealt is None:
                return None
            for (server, origin), count in dealt.items():
                made.replicas[server, key] = made.replicas.get((server, key), 0) + count
                for name in instance.servers[server].loads:
                    share = plan.shares.get((*origin, name), 0.0) * count / plan.replicas[origin]
                    if share > 0:
                        made.shares[server, name, key] = made.shares.get((server, name, key), 0.0) + share
            for option_id, nodes in plan.nodes.items():
                if option_id in dealer.rented:
                    made.rents[option_id, key] = nodes
        return made

    def solve(self, alternatives: Mapping[str, Sequence[int]], gap: float, time_limit_s: float) -> Assembled | None:
        """Decide jobs beside the services; None where no plan was found in time."""
        milp = build(self._limited(alternatives))
        fixed = dict(self._fixed(milp))
        prices, constant = milp.objective()
        free = [c for c in range(len(milp.variables.columns)) if c not in fixed]
        reduced = _reduced(milp, fixed, free, prices)
        if reduced is None:
            return None
        values = dict(fixed)
        if free:
            solution = solve_matrix(reduced, gap=gap, time_limit_s=time_limit_s)
            if not len(solution.values):
                return None
            whole = milp.variables.columns.integer
            values.update(
                {c: float(round(x)) if whole[c] else float(x) for c, x in zip(free, solution.values, strict=True)}
            )
        point = tuple(values[c] for c in range(len(milp.variables.columns)))
        if not all(row.holds(point) for row in milp.rows):
            return None
        return Assembled(milp, point, constant + sum(x * point[c] for c, x in prices.items()))

    def _limited(self, alternatives: Mapping[str, Sequence[int]]) -> Instance:
        """The instance with servers only where they have replicas, and the jobs' alternatives that are tried."""
        placements: dict[CellKey, set[int]] = defaultdict(set)
        for server, key in self.replicas:
            placements[key].add(server)
        return replace(
            self.instance,
            placements={key: frozenset(found) for key, found in placements.items()},
            volume_demands=tuple(_tried(d, alternatives.get(d.name)) for d in self.instance.volume_demands),
        )

    def _fixed(self, milp: Milp) -> Iterator[tuple[int, float]]:
        v = milp.variables
        for key, column in v.acquire.items():
            yield column, float(self.fleet.acquired.get(key, 0))
        for order, column in v.ordered.items():
            yield column, float(self.fleet.acquired.get(order, 0) > 0)
        for stock, column in v.stock.items():
            yield column, float(self.fleet.stock.get(stock, 0))
        for place, column in v.replicas.items():
            yield column, float(self.replicas[place])
        for served, column in v.serve.items():
            yield column, self.shares.get(served, 0.0)
        for rent, column in v.rent.items():
            yield column, float(self.rents.get(rent, 0))


def _tried(demand: VolumeDemand, alternatives: Sequence[int] | None) -> VolumeDemand:
    if alternatives is None:
        return demand
    marked = (replace(one, tried=i in alternatives) for i, one in enumerate(demand.alternatives))
    return replace(demand, alternatives=tuple(marked))


def _reduced(
    milp: Milp, fixed: Mapping[int, float], free: Sequence[int], prices: Mapping[int, float]
) -> MatrixModel | None:
    """The model with fixed columns put in; None where a row then fails whatever is decided."""
    place = {column: i for i, column in enumerate(free)}
    columns, model = milp.variables.columns, MatrixModel()
    for column in free:
        model.column(prices.get(column, 0.0), columns.upper[column], integer=columns.integer[column])
    for row in milp.solved_rows():
        rhs = row.rhs - sum(c * fixed[j] for j, c in row.terms if j in fixed)
        terms = [(place[j], c / row.scale) for j, c in row.terms if j in place]
        if terms:
            model.row(terms, row.sense, rhs / row.scale)
        elif not _holds(row.sense, rhs / row.scale):
            return None
    return model


def _holds(sense: str, rest: float) -> bool:
    """Whether 0 (sense) rest."""
    return {"<=": rest >= -FEASIBLE, ">=": rest <= FEASIBLE, "=": abs(rest) <= FEASIBLE}[sense]


class _Dealer:
    """Deals the replicas of a kind out over the options whose nodes are there, the largest replicas first."""

    def __init__(self, instance: Instance, kinds: Sequence[Kind], fleet: Fleet) -> None:
        self.fleet = fleet
        self.kind_of = {option.option_id: kind for kind in kinds for option in kind.options}
        self.rented = {option.option_id for kind in kinds for option in kind.rents}
        self.servers = {
            (s.option.option_id, s.workload, s.estimate.deployment.label): s.index for s in instance.servers
        }

    def deal(self, plan: CellPlan, block: int) -> dict[tuple[int, tuple[str, int]], int] | None:
        """Replicas by server and by (option, number) of the cell's plan; None where they do not fit."""
        dealt: dict[tuple[int, tuple[str, int]], int] = {}
        room: dict[str, dict[str, float]] = {}
        order = sorted(plan.replicas.items(), key=lambda item: -self._sample(item[0]).occupied_gpus)
        for origin, count in order:
            option_id = origin[0]
            left = room.setdefault(option_id, self._room(option_id, plan, block))
            for target, gpus in left.items():
                sample = self._sample(origin)
                part = min(count, int((gpus + ENOUGH) // sample.occupied_gpus))
                if part:
                    dealt[self._server(target, sample), origin] = part
                    left[target] -= part * sample.occupied_gpus
                    count -= part
            if count:
                return None
        return dealt

    def _sample(self, origin: tuple[str, int]) -> Server:
        return self.kind_of[origin[0]].servers[origin[1]]

    def _server(self, option_id: str, sample: Server) -> int:
        return self.servers[option_id, sample.workload, sample.estimate.deployment.label]

    def _room(self, option_id: str, plan: CellPlan, block: int) -> dict[str, float]:
        """GPUs of the nodes there, by option."""
        kind = self.kind_of[option_id]
        if option_id in self.rented:
            return {option_id: float(plan.nodes.get(option_id, 0) * kind.sample.gpus_per_node)}
        stock = {o.option_id: self.fleet.stock.get((o.option_id, block), 0) for o in kind.held}
        return {name: float(nodes * kind.sample.gpus_per_node) for name, nodes in stock.items() if nodes}
