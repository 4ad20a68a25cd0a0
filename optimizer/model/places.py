"""Where a run of a job may work, and what is paid for the nodes that it hires."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optimizer.estimator.types import JobEstimate
from optimizer.model.billing import ALL_DAYS, Piece, pieces
from optimizer.model.entities import VolumeDemand, occupied_gpus
from optimizer.model.options import Option
from optimizer.model.rows import Columns
from optimizer.model.timegrid import Cell, TimeGrid
from optimizer.units import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class WorkPlace:
    """One (job, alternative, option, cell) with its columns.

    `free`: share of the work on GPUs that services leave free there; `hired`: share on nodes rented for the job, with
    `nodes` their number on average, in units of `nodes_per_share`, and `at_once` their number at one time where GPUs
    are limited. `slots`: GPU groups at once on free GPUs, where sizes need to be whole.
    `gpus_per_share`: GPUs on average in the cell for the whole job there.
    """

    demand: VolumeDemand
    alternative: int
    option: Option
    estimate: JobEstimate
    cell: Cell
    gpus_per_share: float
    free: int | None = None
    hired: int | None = None
    nodes: int | None = None
    hired_on: int | None = None
    at_once: int | None = None
    slots: int | None = None

    @property
    def occupied_per_gpu(self) -> float:
        """GPUs kept from others per GPU working (groups that do not divide a node waste the rest)."""
        group = self.estimate.deployment.gpus_per_replica
        return occupied_gpus(group, self.option.gpus_per_node) / group

    @property
    def nodes_per_share(self) -> float:
        """Nodes on average for the whole job here: the unit of `nodes`, so that no load is too small to count."""
        return self.gpus_per_share * self.occupied_per_gpu / self.option.gpus_per_node

    @property
    def waste(self) -> float:
        """Nodes that the size which uses them worst keeps, over those that its GPUs fill."""
        top, per_node = self.most_occupied_gpus, self.option.gpus_per_node
        return 1.0 if top is None else math.ceil(top / per_node - 1e-9) * per_node / top

    @property
    def most_node_hours(self) -> float:
        """Node-hours that the whole job would hire here, on the size that uses its nodes worst."""
        return self.nodes_per_share * self.cell.hours * self.waste

    @property
    def least_occupied_gpus(self) -> float:
        """GPUs that the job's least size keeps from others."""
        return self.demand.alternatives[self.alternative].min_gpus * self.occupied_per_gpu

    @property
    def most_occupied_gpus(self) -> float | None:
        """GPUs that the job's largest size keeps from others (None: no limit)."""
        most = self.demand.alternatives[self.alternative].max_gpus
        return None if most is None else most * self.occupied_per_gpu

    @property
    def least_nodes_at_once(self) -> int:
        """Nodes that the job's least size needs at once."""
        return math.ceil(self.least_occupied_gpus / self.option.gpus_per_node - 1e-9)

    @property
    def most_nodes_at_once(self) -> float:
        """Nodes that the job's largest size holds at once; no limit is infinity."""
        top = self.most_occupied_gpus
        return math.inf if top is None else math.ceil(top / self.option.gpus_per_node - 1e-9)

    @property
    def useful_gpus_per_node(self) -> float:
        """Most GPUs per node that any size between least and most keeps busy: all, if one of them fills its nodes."""
        top, per_node = self.most_occupied_gpus, self.option.gpus_per_node
        if top is None or math.floor(top / per_node + 1e-9) >= self.least_nodes_at_once:
            return float(per_node)
        return top / math.ceil(top / per_node - 1e-9)

    def hired_nodes(self, values: Sequence[float]) -> float:
        """Nodes rented for the job here, on average, at a solution."""
        return 0.0 if self.nodes is None else values[self.nodes] * self.nodes_per_share


@dataclass(frozen=True, slots=True)
class Steps:
    """Node-steps of one length paid for a run, each `paid_hours`; `column` is their number.

    `moments` is the column of how many come one after another, where the number of nodes at once has a least size.
    `shares` is the share of the run that one holds, by slice; under None in any slices.
    """

    days: str
    piece: Piece
    paid_hours: float
    shares: Mapping[int | None, float]
    column: int
    moments: int | None
    least: int
    most: float

    @property
    def name(self) -> str:
        """`whole`, or the part that an end of the window cuts."""
        return self.piece.name


@dataclass(frozen=True, slots=True)
class Bill:
    """What is paid for the nodes that one run of a job hires of an option: whole steps.

    `idle` is the column of the node-hours paid and not used.
    """

    places: tuple[WorkPlace, ...]
    steps: tuple[Steps, ...]
    idle: int

    @property
    def option(self) -> Option:
        """The option hired."""
        return self.places[0].option

    @property
    def idle_span(self) -> tuple[float, float]:
        """Months in which idle hours are paid: the last hour of the run's window, or (each day's work) all of it."""
        demand = self.places[0].demand
        last_hour = max(demand.start_month, demand.end_month - 1 / HOURS_PER_MONTH)
        return (last_hour if demand.days is None else demand.start_month, demand.end_month)


def make_bill(columns: Columns, key: tuple[str, int, str], places: tuple[WorkPlace, ...], grid: TimeGrid) -> Bill:
    """The bill of a run's places on an option, with its columns; `key` names run, alternative and option."""
    first, option = places[0], places[0].option
    steps: list[Steps] = []
    each = 1.0 if first.demand.days is None else first.demand.days
    for piece in pieces(option, first.demand, first.most_node_hours, first.most_nodes_at_once):
        held = piece.hours * each / first.most_node_hours
        shares: dict[int | None, float] = {s.index: held * s.share_of_hours for s in grid.slices}
        name = (*key, ALL_DAYS, piece.name)
        steps.append(_steps(columns, name, first, piece, each, ALL_DAYS, shares if option.long_step else {None: held}))
    return Bill(places, tuple(steps), columns.add("idle", key))


def _steps(
    columns: Columns,
    key: tuple[object, ...],
    place: WorkPlace,
    piece: Piece,
    each: float,
    days: str,
    shares: Mapping[int | None, float],
) -> Steps:
    least, most = place.least_nodes_at_once, place.most_nodes_at_once
    enough = math.ceil(1 / min(shares.values())) + least
    upper = None if piece.count is None or most == math.inf else piece.count * most
    column = columns.add("steps", key, upper=upper, integer=True)
    moments = columns.add("moments", key, upper=piece.count, integer=True) if least > 1 else None
    paid = (place.option.billing_step_hours or 0.0) * each
    return Steps(days, piece, paid, shares, column, moments, least, min(most, enough))
