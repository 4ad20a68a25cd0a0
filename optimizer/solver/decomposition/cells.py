"""One cell of the grid as a model of its own, with whole nodes and whole replicas.

It is the planning model on one slice of one block, where nodes in service are there for nothing, up to their number,
and others are rented.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.model.build import Milp, build
from optimizer.model.entities import Instance, RateDemand, Server, make_server
from optimizer.model.options import Option
from optimizer.model.spare import SpareNeed
from optimizer.model.timegrid import TimeGrid
from optimizer.solver.decomposition.kinds import Kind
from optimizer.solver.decomposition.pricing import UNAFFORDABLE, Pricing, busy_nodes
from optimizer.solver.matrix import MatrixModel, MatrixSolution, solve_matrix

COMPACT = 1e-3
"""Price of a GPU kept by a replica on nodes that are there, as a share of the cheapest rent: leaves room for jobs."""
LONGER = (1.0, 4.0, 16.0)
"""Times that a cell gets, until a plan of it is found."""
EXTRA_REPLICAS = (0, 1, 2, 4, 8, 16, 32, 64)
"""Spare replicas that a start is given, until it survives the loss of nodes."""
BEST_WAYS = 3
"""Kinds to rent that are tried per request class, from the cheapest on."""
SMALL = 1e-9
WHOLE = 1e-6


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """Nodes of a kind that a cell may use: `most` of them, at `price` each (present value)."""

    kind: int
    option: Option
    price: float


@dataclass(frozen=True, slots=True)
class CellPlan:
    """How a cell is run: nodes by option; replicas and shares of each class by (option, server of the kind)."""

    cost: float
    bound: float
    nodes: Mapping[str, int]
    replicas: Mapping[tuple[str, int], int]
    shares: Mapping[tuple[str, int, str], float]
    whole: Mapping[int, float]
    """Columns of the cell's model that are whole, to go on from."""


@dataclass(frozen=True, slots=True)
class CellModels:
    """Makes and solves the models of cells."""

    instance: Instance
    pricing: Pricing

    @property
    def kinds(self) -> Sequence[Kind]:
        """Kinds of nodes."""
        return self.pricing.kinds

    def plan(
        self, cell: int, stock: Mapping[int, int], gap: float, time_limit_s: float, last: CellPlan | None = None
    ) -> CellPlan | None:
        """The cheapest way to run a cell with the nodes in service by kind, going on from `last`; None: none found."""
        offers = self.offers(cell, stock)
        milp, servers = self._milp(cell, offers)
        model = self._model(cell, milp, offers)
        start = None if last is None else last.whole
        if start is None:
            relaxed = solve_matrix(model, relaxed=True)
            if not len(relaxed.values):
                return None
            start = _rounded(model, milp, {o.option.option_id for o in offers if o.price == 0}, relaxed)
            if start and milp.variables.spare_needs:
                start = _with_spares(model, milp, start)
        for factor in LONGER:
            solution = solve_matrix(model, gap=gap, time_limit_s=factor * time_limit_s, start=start)
            if len(solution.values):
                return _read(milp, servers, solution)
        return None

    def worth(self, cell: int, stock: Mapping[int, int]) -> tuple[float, dict[int, float]]:
        """The least cost of a cell in parts with the nodes in service, and what one more node of each kind would save.

        Infinite and empty where the cell cannot be run.
        """
        offers = self.offers(cell, stock)
        milp, _ = self._milp(cell, offers)
        relaxed = solve_matrix(self._model(cell, milp, offers), relaxed=True)
        if not len(relaxed.values):
            return math.inf, {}
        kinds = {o.option.option_id: o.kind for o in offers if o.price == 0}
        rents = ((kinds.get(option_id), column) for (option_id, _), column in milp.variables.rent.items())
        return relaxed.objective, {k: max(0.0, -float(relaxed.reduced[c])) for k, c in rents if k is not None}

    def offers(self, cell: int, stock: Mapping[int, int]) -> list[NodeOffer]:
        """Nodes in service, and kinds to rent that could be worth it."""
        found = [
            NodeOffer(kind, _stand_in(self.kinds[kind].held[0], most=nodes), 0.0)
            for kind, nodes in stock.items()
            if nodes
        ]
        for kind in self.worth_renting(cell):
            option = self.kinds[kind].rented
            if option is not None:
                found.append(NodeOffer(kind, option, float(self.pricing.rent[cell, kind])))
        return found

    def worth_renting(self, cell: int) -> list[int]:
        """The cheapest kinds to rent for each class, firm and interruptible, and small nodes of the same GPUs."""
        rent = self.pricing.rent[cell]
        chosen: set[int] = set()
        for table in self.pricing.classes:
            unit = rent[table.kinds] * table.nodes_per_rate
            for spot in (False, True):
                ways = [w for w in np.argsort(unit) if self.kinds[table.kinds[w]].sample.interruptible is spot]
                ranked = dict.fromkeys(int(table.kinds[w]) for w in ways if rent[table.kinds[w]] < UNAFFORDABLE)
                chosen.update(list(ranked)[: BEST_WAYS - spot])
        gpus = {self.kinds[k].sample.gpu_id for k in chosen}
        small = {k.index for k in self.kinds if k.sample.gpus_per_node == 1 and k.sample.gpu_id in gpus and k.rents}
        return sorted(chosen | small)

    def _milp(self, cell: int, offers: Sequence[NodeOffer]) -> tuple[Milp, list[int]]:
        """The planning model of one cell; and for each of its servers its number in its kind."""
        here = self.instance.cells()[cell]
        grid = self.instance.grid
        block, slice_ = grid.blocks[here.block], grid.slices[here.slice]
        one = TimeGrid(grid.horizon_months, grid.periods, (replace(slice_, index=0),), (replace(block, index=0),))
        servers: list[Server] = []
        numbers: list[int] = []
        for offer in offers:
            for number, server in enumerate(self.kinds[offer.kind].servers):
                servers.append(make_server(len(servers), offer.option, server.estimate))
                numbers.append(number)
        rates = tuple(
            RateDemand(d.workload, d.request_class, tuple((period[here.slice],) for period in d.rate_per_s))
            for d in self.instance.rate_demands
        )
        options = tuple(offer.option for offer in offers)
        instance = replace(
            self.instance,
            grid=one,
            options=options,
            orders=(),
            servers=tuple(servers),
            rate_demands=rates,
            volume_demands=(),
        )
        return build(instance), numbers

    def _model(self, cell: int, milp: Milp, offers: Sequence[NodeOffer]) -> MatrixModel:
        """Prices of nodes, of busy nodes, and a little for every GPU kept on nodes that are there."""
        columns, price = milp.variables.columns, {offer.option.option_id: offer for offer in offers}
        cost = [0.0] * len(columns)
        for (option_id, _), column in milp.variables.rent.items():
            cost[column] = price[option_id].price
        compact = COMPACT * min((o.price / o.option.gpus_per_node for o in offers if o.price > 0), default=1.0)
        for (index, _), column in milp.variables.replicas.items():
            server = milp.instance.servers[index]
            if price[server.option.option_id].price == 0:
                cost[column] = compact * server.occupied_gpus
        for column, value in self._busy_costs(cell, milp, offers):
            cost[column] = value
        model = MatrixModel()
        for column, value in enumerate(cost):
            model.column(value, columns.upper[column], integer=columns.integer[column])
        for row in milp.solved_rows():
            model.scaled_row(row)
        return model

    def _busy_costs(self, cell: int, milp: Milp, offers: Sequence[NodeOffer]) -> Iterator[tuple[int, float]]:
        """Cost of a class served whole on nodes that are there: what they cost more for being busy."""
        kinds = {o.option.option_id: o.kind for o in offers if o.price == 0}
        rates = {(d.workload, d.request_class): d for d in milp.instance.rate_demands}
        period = milp.instance.grid.blocks[0].period
        for (index, name, _), column in milp.variables.serve.items():
            server = milp.instance.servers[index]
            kind = kinds.get(server.option.option_id)
            if kind is not None and self.pricing.busy[cell, kind]:
                rate = rates[server.workload, name].rate_per_s[period][0]
                nodes = rate * (server.load(name) or 0.0) * busy_nodes(server)
                yield column, nodes * float(self.pricing.busy[cell, kind])


def _stand_in(option: Option, most: int) -> Option:
    """A held option as nodes to be had by the hour."""
    return replace(
        option,
        billing="use",
        price_per_node_hour=0.0,
        capex_per_node=0.0,
        upfront_per_node=0.0,
        installation_per_node=0.0,
        term_months=None,
        lead_months=0.0,
        existing_nodes=0,
        max_nodes=most,
    )


def _rounded(model: MatrixModel, milp: Milp, there: set[str], relaxed: MatrixSolution) -> dict[int, float]:
    """Whole replicas and nodes near a relaxed plan: what fits of it on the nodes there, the rest on rented ones."""
    v, servers = milp.variables, milp.instance.servers
    fixed = dict(_floored(milp, there, relaxed))
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


def _with_spares(model: MatrixModel, milp: Milp, start: dict[int, float]) -> dict[int, float]:
    """A start with more replicas of the services that must survive a loss, until they do: on free GPUs, then rented."""
    for extra in EXTRA_REPLICAS:
        trial = dict(start)
        for need in milp.variables.spare_needs:
            _add_replicas(milp, trial, _spare_hosts(model, milp, need), extra)
        if len(solve_matrix(model.fixed(trial), gap=1.0, time_limit_s=1.0).values):
            return trial
    return start


def _add_replicas(milp: Milp, trial: dict[int, float], hosts: Sequence[Server], extra: int) -> None:
    """Put so many more replicas on the first hosts that have room: any number on rented nodes, free GPUs on others."""
    for server in hosts:
        replicas, nodes = (
            milp.variables.replicas[server.index, (0, 0)],
            milp.variables.rent[server.option.option_id, (0, 0)],
        )
        option, kept = server.option, _kept_gpus(milp, trial, server.option.option_id)
        most = math.inf if option.max_nodes is None else option.max_nodes * option.gpus_per_node - kept
        part = min(extra, math.floor(most / server.occupied_gpus + WHOLE)) if most < math.inf else extra
        trial[replicas] += part
        kept += part * server.occupied_gpus
        trial[nodes] = max(trial[nodes], float(math.ceil(kept / option.gpus_per_node - WHOLE)))
        extra -= part
        if not extra:
            return


def _kept_gpus(milp: Milp, trial: Mapping[int, float], option_id: str) -> float:
    servers = milp.instance.servers
    return math.fsum(
        trial[column] * servers[index].occupied_gpus
        for (index, _), column in milp.variables.replicas.items()
        if servers[index].option.option_id == option_id
    )


def _spare_hosts(model: MatrixModel, milp: Milp, need: SpareNeed) -> list[Server]:
    """Deployments that serve every class of a service: on nodes that are there, then on rented ones by price."""
    rents = {option_id: model.cost[column] for (option_id, _), column in milp.variables.rent.items()}

    def cost(server: Server) -> tuple[float, float]:
        load = sum(rate * (server.load(name) or 0.0) for name, rate in need.rates.items()) * server.occupied_gpus
        return rents[server.option.option_id] * load / server.option.gpus_per_node, load

    hosts = [s for group in need.groups for s in group.servers if need.rates.keys() <= s.loads.keys()]
    return sorted((s for s in hosts if not s.option.interruptible), key=cost)


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


def _read(milp: Milp, numbers: Sequence[int], solution: MatrixSolution) -> CellPlan:
    values, v, servers = solution.values, milp.variables, milp.instance.servers
    nodes = {option: round(values[c]) for (option, _), c in v.rent.items() if values[c] > 0.5}
    replicas = {
        (servers[i].option.option_id, numbers[i]): round(values[c])
        for (i, _), c in v.replicas.items()
        if values[c] > 0.5
    }
    shares = {
        (servers[i].option.option_id, numbers[i], name): float(values[c])
        for (i, name, _), c in v.serve.items()
        if values[c] > SMALL and values[v.replicas[i, (0, 0)]] > 0.5
    }
    whole = {c: float(round(values[c])) for c in (*v.rent.values(), *v.replicas.values())}
    return CellPlan(solution.objective, solution.bound, nodes, replicas, shares, whole)
