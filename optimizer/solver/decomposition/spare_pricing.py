"""The least price of surviving a loss of nodes (N + k), cell by cell, with replicas in parts.

After a loss every request class may go anywhere. At any worth w_c of serving a request/s of class c, a replica of
group g is worth no more than v_g = max_c w_c ÷ load_gc, and the service is worth W = Σ w_c · rate_c, so that whatever
is lost, Σ v_g · replicas left ≥ W. With L for the worst loss: Σ v_g · replicas ≥ W + L, and no kind of node may hold
more than L, unless a full loss of its nodes is no more than L. For a given L that is filled in the order of price ÷
worth; the best L is where one more group becomes free to hold any number, or where kinds that hold L each make up the
whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from optimizer.estimator.workloads import Service
from optimizer.model.entities import Instance
from optimizer.model.spare import NodeKind, degraded_loads, replicas_per_node
from optimizer.solver.decomposition.kinds import Kind
from optimizer.solver.matrix import Floats, Indices

ALIKE = 1.0 + 1e-9
"""Losses that differ by less are the same."""
DUST = 1e-9
"""Shares of the service below which there is nothing."""


@dataclass(frozen=True, slots=True)
class Spare:
    """The cheapest way of every cell to survive a loss: its cost, and the nodes it takes (rows × kinds)."""

    cost: Floats
    nodes: Floats


@dataclass(frozen=True, slots=True)
class SpareTable:
    """A service with redundancy: groups of replicas in the order of the nodes that are lost together (hosts).

    Cells stay apart where rows are groups of cells: what a mean of cells must survive is not the mean of what each
    must.
    """

    kinds: Indices
    """Kind of node of each group."""
    host_starts: Indices
    """First group of each kind of node that can be lost."""
    nodes_per_replica: Floats
    lost: Floats
    """Replicas of each group that go with the nodes lost, where there are as many."""
    loads: Floats
    """Replicas per request/s after a loss, groups × classes; infinite where a group cannot serve a class."""
    rates_per_s: Floats
    """Cells × classes."""
    rows: Indices
    """Row of every cell."""
    share: Floats
    """Share of every cell in the hours of its row."""
    values: Floats
    """Worth of a replica, cells × groups."""
    need: Floats
    """Worth of the whole service, by cell."""

    def valued(self, prices: Floats) -> "SpareTable":
        """The same with worths from prices of nodes by cell and kind: a class is worth its cheapest way.

        A replica is worth no more than the service: there are whole ones only.
        """
        unit = (prices[:, self.kinds] * self.nodes_per_replica)[:, :, None]
        able = np.isfinite(self.loads)
        worth = np.where(able, unit * np.where(able, self.loads, 1.0), np.inf).min(axis=1)
        values = (worth[:, None, :] / self.loads[None, :, :]).max(axis=2)
        need = (worth * self.rates_per_s).sum(axis=1)
        return replace(self, values=np.minimum(values, need[:, None]), need=need)

    def grouped(self, groups: Indices, share: Floats) -> "SpareTable":
        """The same with rows that are groups of cells; `share` of every cell in its group's hours."""
        return replace(self, rows=groups, share=share)

    def at(self, prices: Floats) -> Spare:
        """Every cell at its cheapest, added up by row; `prices` by row and kind."""
        unit = prices[self.rows][:, self.kinds] * (self.nodes_per_replica * self.share[:, None])
        ratio = np.divide(unit, self.values, out=np.full(unit.shape, np.inf), where=self.values > 0)
        best, loss = np.full(len(self.need), np.inf), np.zeros(len(self.need))
        for worst in self._candidates(ratio):
            cost = self._cost(ratio, worst)
            loss = np.where(cost < best, worst, loss)
            best = np.fmin(best, cost)
        return self._spare(ratio, loss, np.where(self.need > 0, best, 0.0), prices.shape)

    def _candidates(self, ratio: Floats) -> list[Floats]:
        """Losses by cell that one of may be best; NaN where there are fewer."""
        hosts = len(self.host_starts)
        return [*self._records(ratio), *(self.need / parts for parts in range(1, hosts))]

    def _records(self, ratio: Floats) -> list[Floats]:
        """Losses from which on a cheaper group is free to hold any number."""
        loss = self.values * self.lost
        order = np.argsort(loss, axis=1, kind="stable")
        least = np.minimum.accumulate(np.take_along_axis(ratio, order, axis=1), axis=1)
        record = np.isfinite(least)
        record[:, 1:] &= least[:, 1:] < least[:, :-1]
        losses = np.where(record, np.take_along_axis(loss, order, axis=1), np.nan)
        first = np.argsort(~record, axis=1, kind="stable")[:, : int(record.sum(axis=1).max(initial=0))]
        return list(np.take_along_axis(losses, first, axis=1).T)

    def _limited(self, ratio: Floats, worst: Floats) -> tuple[Floats, Floats]:
        """Prices of worth on groups free to hold any number (infinite on others), and on those that are not."""
        free = self.values * self.lost <= (worst * ALIKE)[:, None]
        return np.where(free, ratio, np.inf), np.where(free, np.inf, ratio)

    def _cost(self, ratio: Floats, worst: Floats) -> Floats:
        """Least cost if that is the worst loss: kinds that hold no more where they are cheaper, then the rest."""
        free, limited = self._limited(ratio, worst)
        price = free.min(axis=1)
        held = np.sort(np.minimum.reduceat(limited, self.host_starts, axis=1), axis=1)
        amounts = _amounts(held, price, self.need + worst, worst)
        rest = self.need + worst - amounts.sum(axis=1)
        spent: Floats = (amounts * np.where(amounts > 0, held, 0.0)).sum(axis=1)
        dear: Floats = np.multiply(rest, price, out=np.zeros(len(rest)), where=rest > DUST * self.need)
        return spent + dear

    def _spare(self, ratio: Floats, worst: Floats, cost: Floats, shape: tuple[int, ...]) -> Spare:
        """Costs and nodes by row, at the worst loss that is best."""
        free, limited = self._limited(ratio, worst)
        cells, groups = np.arange(len(worst)), len(self.kinds)
        starts = [*self.host_starts.tolist(), groups]
        chosen = np.column_stack([s + limited[:, s:e].argmin(axis=1) for s, e in pairwise(starts)])
        held = np.take_along_axis(limited, chosen, axis=1)
        order = np.argsort(held, axis=1, kind="stable")
        chosen, held = np.take_along_axis(chosen, order, axis=1), np.take_along_axis(held, order, axis=1)
        total = np.where(self.need > 0, self.need + worst, 0.0)
        amounts = _amounts(held, free.min(axis=1), total, worst)
        nodes = np.zeros(shape)
        columns = [*zip(chosen.T, amounts.T, strict=True), (free.argmin(axis=1), total - amounts.sum(axis=1))]
        for group, amount in columns:
            value = self.values[cells, group]
            used = (amount > DUST * self.need) & (value > 0)
            replicas = np.divide(amount, value, out=np.zeros(len(cells)), where=used)
            spent = replicas * self.nodes_per_replica[group] * self.share
            np.add.at(nodes, (self.rows, self.kinds[group]), spent)
        costs = np.zeros(shape[0])
        np.add.at(costs, self.rows, cost)
        return Spare(costs, nodes)


def _amounts(held: Floats, price: Floats, total: Floats, most: Floats) -> Floats:
    """How much of each kind in the order of their prices, `most` each, while they are cheaper than `price`."""
    before = most[:, None] * np.arange(held.shape[1])
    amounts = np.clip(total[:, None] - before, 0.0, most[:, None])
    return np.where(held < price[:, None], amounts, 0.0)


def make_spare_tables(instance: Instance, kinds: Sequence[Kind]) -> list[SpareTable]:
    """One table per service with redundancy that has traffic."""
    services = [w for w in instance.problem.workloads if isinstance(w, Service) and w.redundancy]
    return [table for service in services if (table := _table(instance, kinds, service)) is not None]


def _table(instance: Instance, kinds: Sequence[Kind], service: Service) -> SpareTable | None:
    demands = [d for d in instance.rate_demands if d.workload == service.name]
    groups = sorted(_groups(kinds, service), key=lambda group: (group.host, group.kind))
    if not demands or not groups:
        return None
    hosts = [group.host for group in groups]
    starts = [i for i, host in enumerate(hosts) if i == 0 or host != hosts[i - 1]]
    periods = [(instance.grid.blocks[cell.block].period, cell.slice) for cell in instance.cells()]
    rates = np.array([[d.rate_per_s[period][place] for d in demands] for period, place in periods])
    loads = np.array([[group.loads.get(d.request_class, np.inf) for d in demands] for group in groups])
    empty = np.zeros(0)
    return SpareTable(
        kinds=np.array([group.kind for group in groups], dtype=np.int64),
        host_starts=np.array(starts, dtype=np.int64),
        nodes_per_replica=np.array([group.nodes for group in groups]),
        lost=np.array([float(group.lost) for group in groups]),
        loads=loads,
        rates_per_s=rates,
        rows=np.arange(len(rates), dtype=np.int64),
        share=np.ones(len(rates)),
        values=empty,
        need=empty,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    kind: int
    host: NodeKind
    nodes: float
    lost: int
    loads: Mapping[str, float]


def _groups(kinds: Sequence[Kind], service: Service) -> Iterator[_Group]:
    for kind in kinds:
        for server in kind.servers:
            if server.workload == service.name:
                option = server.option
                host = (option.gpu_id, option.gpus_per_node)
                nodes = server.occupied_gpus / option.gpus_per_node
                lost = (service.redundancy or 0) * replicas_per_node(server)
                yield _Group(kind.index, host, nodes, lost, degraded_loads(service, server))
