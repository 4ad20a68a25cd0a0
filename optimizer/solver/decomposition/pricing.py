"""The least cost of every cell at given prices of nodes, with replicas in parts: each class goes where it is cheapest.

This is a lower bound of what the cell can cost, for all cells at once: arrays of cells × kinds. Prices are present
values of one node for the whole cell. Services that must survive a loss of nodes (N + k) need nodes as they run, and
nodes to survive on: whatever a plan does, it has both, so a node has a price in each of these two states.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.estimator.workloads import Service
from optimizer.model.costs import build_ledger
from optimizer.model.entities import Instance, Server
from optimizer.model.instance import spot_share
from optimizer.model.timegrid import Cell
from optimizer.model.variables import Variables, cell_key
from optimizer.solver.decomposition.groups import added_up
from optimizer.solver.decomposition.kinds import Kind
from optimizer.solver.decomposition.spare_pricing import SpareTable, make_spare_tables
from optimizer.solver.matrix import Floats, Indices

UNAFFORDABLE = 1e30
"""Price of nodes that cannot be had in a cell."""


@dataclass(frozen=True, slots=True)
class ClassTable:
    """Ways to serve one request class: the kind, nodes per request/s, and how many of them are busy on average."""

    rates_per_s: Floats
    kinds: Indices
    nodes_per_rate: Floats
    busy_nodes_per_rate: Floats
    spot_share: float
    redundant: bool
    """Whether its service must survive a loss of nodes."""


@dataclass(frozen=True, slots=True)
class Priced:
    """The cheapest way of every cell in some states: cost, the nodes it takes (cells × kinds), and its busy cost."""

    states: tuple[int, ...]
    cost: Floats
    nodes: Floats
    busy: Floats


@dataclass(frozen=True, slots=True)
class Pricing:
    """All that prices are held against. Rows are cells, or groups of cells of one block that stand for their mean."""

    blocks: Indices
    """Block of each row."""
    kinds: Sequence[Kind]
    classes: Sequence[ClassTable]
    hours: Floats
    """Present value of paying 1 per hour throughout a row."""
    rent: Floats
    """Present value of renting a node throughout a row, by row and kind."""
    busy: Floats
    """What a node costs more if it is busy throughout a row, by row and kind (held nodes)."""
    spares: Sequence[SpareTable] = ()
    """What services with redundancy need to survive a loss."""

    @property
    def states(self) -> int:
        """States that a node has a price in: as all runs, and after a loss where a service must survive one."""
        return 2 if self.spares else 1

    @property
    def spare_kinds(self) -> Indices:
        """Kinds of nodes that can host services with redundancy."""
        return np.unique(np.concatenate([t.kinds for t in self.spares])) if self.spares else np.zeros(0, dtype=np.int64)

    def valued(self, prices: Floats) -> "Pricing":
        """The same with services worth what they cost at prices of nodes by cell and kind (rows that are cells)."""
        return replace(self, spares=[table.valued(prices) for table in self.spares])

    def split(self, prices: Floats, share: float | Floats = 0.5) -> Floats:
        """Prices by row and kind as prices by state, row and kind: `share` of them for the state after a loss."""
        if self.states == 1:
            return prices[None]
        after = np.zeros(prices.shape)
        after[:, self.spare_kinds] = (prices * share)[:, self.spare_kinds]
        return np.stack([prices - after, after])

    def grouped(self, groups: Indices) -> "Pricing":
        """The same with rows added up: `groups` is the new row of every row. Rates become means over the hours."""
        hours = added_up(self.hours, groups)
        blocks = np.zeros(len(hours), dtype=np.int64)
        blocks[groups] = self.blocks
        rates = [added_up(table.rates_per_s * self.hours, groups) / hours for table in self.classes]
        classes = [replace(table, rates_per_s=rate) for table, rate in zip(self.classes, rates, strict=True)]
        rent = np.minimum(added_up(self.rent, groups), UNAFFORDABLE)
        spares = [table.grouped(groups, self.hours / hours[groups]) for table in self.spares]
        return Pricing(blocks, self.kinds, classes, hours, rent, added_up(self.busy, groups), spares)

    def at(self, prices: Floats) -> list[Priced]:
        """Every row at its cheapest at prices by state, row and kind, in parts that are each for themselves."""
        if self.states == 1:
            return [self._served(prices[0], (0,), self.classes)]
        always = [table for table in self.classes if not table.redundant]
        redundant = [table for table in self.classes if table.redundant]
        return [
            self._served(prices.sum(axis=0), (0, 1), always),
            self._served(prices[0], (0,), redundant),
            self._survived(prices[1]),
        ]

    def _survived(self, prices: Floats) -> Priced:
        found = [table.at(prices) for table in self.spares]
        cost, nodes = np.sum([one.cost for one in found], axis=0), np.sum([one.nodes for one in found], axis=0)
        return Priced((1,), cost, nodes, np.zeros(len(cost)))

    def _served(self, prices: Floats, states: tuple[int, ...], classes: Sequence[ClassTable]) -> Priced:
        """Classes at their cheapest; one may use interruptible nodes for its share only."""
        size = prices.shape[0]
        cost, busy, nodes = np.zeros(size), np.zeros(size), np.zeros(prices.shape)
        interruptible = np.array([kind.sample.interruptible for kind in self.kinds])
        for table in classes:
            unit = prices[:, table.kinds] * table.nodes_per_rate
            unit += self.busy[:, table.kinds] * table.busy_nodes_per_rate
            spot = interruptible[table.kinds]
            firm, firm_cost = _cheapest(np.where(spot, UNAFFORDABLE, unit))
            taken, taken_cost = _cheapest(np.where(spot, unit, UNAFFORDABLE))
            share = np.where(taken_cost < firm_cost, table.spot_share, 0.0)
            for choice, unit_cost, part in ((firm, firm_cost, 1.0 - share), (taken, taken_cost, share)):
                amount = table.rates_per_s * part
                cost += np.where(amount > 0, amount * unit_cost, 0.0)
                busy += amount * self.busy[np.arange(size), table.kinds[choice]] * table.busy_nodes_per_rate[choice]
                np.add.at(nodes, (np.arange(size), table.kinds[choice]), amount * table.nodes_per_rate[choice])
        return Priced(states, cost, nodes, busy)


def _cheapest(unit: Floats) -> tuple[Indices, Floats]:
    choice = unit.argmin(axis=1)
    return choice, unit[np.arange(len(choice)), choice]


def make_pricing(instance: Instance, kinds: Sequence[Kind]) -> Pricing:
    """Tables of an instance with services."""
    cells = instance.cells()
    hours = np.array([cell.present_value_hours for cell in cells])
    classes = []
    spare = {w.name for w in instance.problem.workloads if isinstance(w, Service) and w.redundancy}
    for demand in instance.rate_demands:
        periods = [instance.grid.blocks[cell.block].period for cell in cells]
        rates = np.array([demand.rate_per_s[p][c.slice] for p, c in zip(periods, cells, strict=True)])
        share = spot_share(instance.problem, demand.workload)
        redundant = demand.workload in spare
        classes.append(_class_table(demand.workload, demand.request_class, rates, kinds, share, redundant=redundant))
    rent, busy = node_costs(instance, kinds)
    blocks = np.array([cell.block for cell in cells], dtype=np.int64)
    spares = make_spare_tables(instance, kinds)
    return Pricing(blocks, kinds, classes, hours, rent, busy, spares).valued(rent)


def node_costs(instance: Instance, kinds: Sequence[Kind]) -> tuple[Floats, Floats]:
    """Present value of renting a node, and of a held node being busy, for every cell and kind: read off the ledger.

    A probe of one rented node per option and cell, and of one replica of a held kind serving alone, so that every cost
    term counts as the plan counts it.
    """
    v, size = Variables(), (len(instance.cells()), len(kinds))
    rent, busy = np.full(size, UNAFFORDABLE), np.zeros(size)
    rented: list[tuple[int, int, int]] = []
    probes: list[tuple[int, int, int, float]] = []
    for row, cell in enumerate(instance.cells()):
        key = cell_key(cell)
        for kind in kinds:
            for option in kind.rents:
                column = v.rent[option.option_id, key] = v.columns.add("rent", (option.option_id, *key))
                rented.append((row, kind.index, column))
            probe = _busy_probe(instance, kind, cell)
            if probe is not None:
                server, name, nodes = probe
                column = v.serve[server, name, key] = v.columns.add("serve", (server, name, *key))
                probes.append((row, kind.index, column, nodes))
    value: dict[int, float] = defaultdict(float)
    for line in build_ledger(replace(instance, orders=()), v):
        for column, _, amount in line.terms:
            value[column] += amount
    for row, kind_index, column in rented:
        rent[row, kind_index] = min(rent[row, kind_index], value[column])
    for row, kind_index, column, nodes in probes:
        busy[row, kind_index] = value[column] / nodes
    return rent, busy


def _busy_probe(instance: Instance, kind: Kind, cell: Cell) -> tuple[int, str, float] | None:
    """A server of a held kind, a class with a rate in the cell, and the nodes it would keep busy alone."""
    if not kind.held or kind.sample.load_kw <= kind.sample.idle_kw:
        return None
    for server in kind.servers:
        for demand in instance.rate_demands:
            load = server.load(demand.request_class) if demand.workload == server.workload else None
            rate = demand.rate_per_s[instance.grid.blocks[cell.block].period][cell.slice]
            if load is not None and rate > 0:
                return server.index, demand.request_class, rate * load * busy_nodes(server)
    return None


def busy_nodes(server: Server) -> float:
    """Busy nodes per replica that is used as much as it may be."""
    able = server.estimate.utilisation_cap * server.option.productive_share
    return able * server.occupied_gpus / server.option.gpus_per_node


def _class_table(
    workload: str, name: str, rates: Floats, kinds: Sequence[Kind], share: float, *, redundant: bool
) -> ClassTable:
    found: list[tuple[int, float, float]] = []
    for kind in kinds:
        for server in kind.servers:
            load = server.load(name) if server.workload == workload else None
            if load is not None:
                nodes = load * server.occupied_gpus / server.option.gpus_per_node
                found.append((kind.index, nodes, load * busy_nodes(server)))
    index, nodes_per_rate, busy = zip(*found, strict=True) if found else ((), (), ())
    return ClassTable(
        rates, np.array(index, dtype=np.int64), np.array(nodes_per_rate), np.array(busy), share, redundant
    )
