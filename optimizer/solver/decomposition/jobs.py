"""Jobs against prices of nodes: a lower bound of what each costs, and columns for the fleet to plan with.

A job may here use any kind that can run it, in parts, and any mix of them: what is lost against the plan itself only
makes the bound lower.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from optimizer.model.entities import Instance, VolumeDemand, occupied_gpus
from optimizer.solver.decomposition.kinds import Kind
from optimizer.solver.decomposition.pricing import Pricing
from optimizer.solver.matrix import Floats, Indices


@dataclass(frozen=True, slots=True)
class JobWay:
    """A job on a kind of nodes: node-hours for all of it, and the most of it that can be done in an hour."""

    kind: int
    node_hours: float
    most_share_per_hour: float
    busy_node_hours: float
    interruptible: bool


@dataclass(frozen=True, slots=True)
class JobTable:
    """A run of a job: where it may be done, in which cells, and how much of it on interruptible nodes."""

    name: str
    cells: Indices
    cell_hours: Floats
    busy: Floats
    """What a node costs more if it is busy throughout the cell, by cell and kind."""
    ways: tuple[JobWay, ...]
    interruptible_share: float

    def grouped(self, groups: Indices, pricing: Pricing) -> "JobTable":
        """The same on groups of cells: `groups` is the row of every cell."""
        rows = np.unique(groups[self.cells])
        place = {int(row): i for i, row in enumerate(rows)}
        hours = np.zeros(len(rows))
        np.add.at(hours, [place[int(row)] for row in groups[self.cells]], self.cell_hours)
        return replace(self, cells=rows, cell_hours=hours, busy=pricing.busy[rows])

    def columns(self, kinds: set[int]) -> Iterator[tuple[int, JobWay, float, float, float]]:
        """(cell, way, nodes on average for the whole job there, busy cost for the whole, most share)."""
        for position, cell in enumerate(self.cells):
            hours = self.cell_hours[position]
            for way in self.ways:
                if way.kind in kinds:
                    most = min(1.0, way.most_share_per_hour * hours)
                    busy = way.busy_node_hours / hours * self.busy[position, way.kind]
                    yield int(cell), way, way.node_hours / hours, float(busy), most

    def cheapest_kinds(self, prices: Floats) -> set[int]:
        """The kinds on which the job costs least at some prices: of firm nodes, and of all."""
        cost = {
            way: float((prices[self.cells, way.kind] * way.node_hours / self.cell_hours).min()) for way in self.ways
        }
        firm = [way for way in self.ways if not way.interruptible]
        return {min(ways, key=cost.__getitem__).kind for ways in (firm, self.ways) if ways}

    def least_cost(self, prices: Floats) -> float:
        """Least cost of the job at prices of nodes (cells × kinds), the cheapest hours first."""
        offers = []
        for way in self.ways:
            unit = prices[self.cells, way.kind] * way.node_hours + self.busy[:, way.kind] * way.busy_node_hours
            unit /= self.cell_hours
            most = np.minimum(1.0, way.most_share_per_hour * self.cell_hours)
            offers += [(c, m, way.interruptible) for c, m in zip(unit, most, strict=True)]
        left, spot_left, cost = 1.0, self.interruptible_share, 0.0
        for unit_cost, most, interruptible in sorted(offers):
            part = min(left, most, spot_left) if interruptible else min(left, most)
            cost, left = cost + part * unit_cost, left - part
            spot_left -= part if interruptible else 0.0
        return cost


def make_job_tables(instance: Instance, pricing: Pricing) -> list[JobTable]:
    """One table per run of a job."""
    of_option = {option.option_id: kind for kind in pricing.kinds for option in kind.options}
    return [_table(instance, pricing, demand, of_option) for demand in instance.volume_demands]


def _table(instance: Instance, pricing: Pricing, demand: VolumeDemand, of_option: dict[str, Kind]) -> JobTable:
    slices = len(instance.grid.slices)
    hours = np.array([cell.hours for cell in demand.cells])
    cells = np.array([cell.block * slices + cell.slice for cell in demand.cells], dtype=np.int64)
    ways = tuple(_ways(demand, of_option))
    return JobTable(demand.name, cells, hours, pricing.busy[cells], ways, demand.interruptible_share)


def _ways(demand: VolumeDemand, of_option: dict[str, Kind]) -> Iterator[JobWay]:
    best: dict[int, tuple[float, float, float]] = {}
    for alternative in demand.alternatives:
        for option, estimate in alternative.members:
            kind = of_option.get(option.option_id)
            if kind is None:
                continue
            group = estimate.deployment.gpus_per_replica
            gpu_hours = demand.amount / (estimate.units_per_gpu_hour * option.productive_share)
            nodes = gpu_hours * occupied_gpus(group, option.gpus_per_node) / group / option.gpus_per_node
            most = np.inf if alternative.max_gpus is None else alternative.max_gpus / gpu_hours
            busy = gpu_hours / option.gpus_per_node
            known = best.get(kind.index, (np.inf, 0.0, np.inf))
            best[kind.index] = (min(nodes, known[0]), max(most, known[1]), min(busy, known[2]))
    interruptible = {kind.index: kind.sample.interruptible for kind in of_option.values()}
    for kind_index, (nodes, most, busy) in best.items():
        yield JobWay(kind_index, nodes, most, busy, interruptible[kind_index])
