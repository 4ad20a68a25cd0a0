"""One cell of the grid as a model of its own, with whole nodes and whole replicas.

It is the planning model on one slice of one block, where nodes in service are there for nothing, up to their number,
and others are rented.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.model.build import Milp, build
from optimizer.model.entities import Instance, RateDemand, Server, make_server
from optimizer.model.options import Option
from optimizer.model.timegrid import TimeGrid
from optimizer.solver.decomposition.kinds import Kind
from optimizer.solver.decomposition.narrow import narrow, rounded
from optimizer.solver.decomposition.pricing import UNAFFORDABLE, Pricing, busy_nodes
from optimizer.solver.matrix import MatrixModel, MatrixSolution, solve_matrix

COMPACT = 1e-3
"""Price of a GPU kept by a replica on nodes that are there, as a share of the cheapest rent: leaves room for jobs."""
LONGER = (1.0, 4.0, 16.0)
"""Times that a cell gets, until a plan of it is found."""
BEST_WAYS = 3
"""Kinds to rent that are tried per request class, from the cheapest on."""
POOR = 0.3
"""Gap of a cell's first plan that asks for another try."""
QUICK_GAP = 2e-3
"""How near to the best a cell's first plan comes."""
SMALL = 1e-9


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
    chosen: Mapping[int, float]
    """Columns that were chosen before the others were searched."""


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
        if last is not None:
            return _longer(milp, servers, model, gap, time_limit_s, last)
        best = self._soon(milp, servers, model, offers, max(gap, QUICK_GAP), time_limit_s)
        if best is not None:
            return best
        solution = solve_matrix(model, gap=gap, time_limit_s=LONGER[-1] * time_limit_s, restarts=False)
        return _read(milp, servers, _whole(model, solution), solution.bound, {}) if len(solution.values) else None

    def _soon(
        self,
        milp: Milp,
        servers: Sequence[int],
        model: MatrixModel,
        offers: Sequence[NodeOffer],
        gap: float,
        time_limit_s: float,
    ) -> CellPlan | None:
        """A good plan soon: with what looks worth it in parts. For longer where none was found, or a poor one."""
        best: CellPlan | None = None
        there = {o.option.option_id for o in offers if o.price == 0}
        cheapest = min((o.price / o.option.gpus_per_node for o in offers if o.price > 0), default=math.inf)
        found = narrow(milp, model, cheapest)
        if found is None:
            return None
        start = rounded(found, milp, there)
        for factor in LONGER:
            limit_s = factor * time_limit_s
            solution = solve_matrix(found.model, gap=gap, time_limit_s=limit_s, start=start, restarts=False)
            if len(solution.values):
                plan = _read(milp, servers, _whole(found.model, solution), found.bound, found.chosen)
                best = plan if best is None or plan.cost < best.cost else best
                if best.cost - best.bound <= POOR * best.cost:
                    return best
        return best

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


def _longer(
    milp: Milp, servers: Sequence[int], model: MatrixModel, gap: float, time_limit_s: float, last: CellPlan
) -> CellPlan:
    """Go on from a plan: with what was chosen first, then, if that is done in time, with everything."""
    began = time.monotonic()
    if last.chosen:
        found = model.fixed(last.chosen)
        solution = solve_matrix(found, gap=gap, time_limit_s=time_limit_s, start=last.whole, restarts=False)
        if len(solution.values) and solution.objective < last.cost:
            last = _read(milp, servers, _whole(found, solution), last.bound, last.chosen)
    left = began + time_limit_s - time.monotonic()
    if last.chosen and left < time_limit_s / 2:
        return last
    solution = solve_matrix(model, gap=gap, time_limit_s=left, start=last.whole, restarts=False)
    better = len(solution.values) and solution.objective < last.cost
    return _read(milp, servers, _whole(model, solution), solution.bound, {}) if better else last


def _whole(model: MatrixModel, solution: MatrixSolution) -> MatrixSolution:
    """The solution with its whole numbers rounded and the rest decided again, so that shares fit what is there."""
    rounds = {c: float(round(x)) for c, x in enumerate(solution.values) if model.integer[c]}
    again = solve_matrix(model.fixed(rounds), relaxed=True)
    return again if len(again.values) else solution


def _read(
    milp: Milp, numbers: Sequence[int], solution: MatrixSolution, bound: float, chosen: Mapping[int, float]
) -> CellPlan:
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
    return CellPlan(solution.objective, bound, nodes, replicas, shares, whole, chosen)
