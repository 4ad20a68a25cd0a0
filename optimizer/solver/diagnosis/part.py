"""A part of a large problem that any plan of the whole would have to meet, small enough to ask much of.

Services are asked for in some cells alone: the hours in which each peaks, in the periods that ask for most and the
first one, with the other hours of those periods as their mean. Jobs may work at any time, hours alike merged. Nodes,
replicas and choices may be in parts. Every plan of the whole is then a plan of the part: where the part has none, the
whole has none, and what the part needs at least, the whole needs at least.

Means keep every row that is linear in rates, nodes and hours; rows of least sizes, of tiny loads and of lost nodes are
not, and are left out where hours are merged. Where services are not asked for, jobs lose the GPUs that rented nodes
would have left them: there they rent nodes by the share, which costs no more and counts no more nodes. Rents are paid
as used, without the steps that they are billed in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from optimizer.model.build import build
from optimizer.model.entities import Alternative, Instance, RateDemand, VolumeDemand
from optimizer.model.option import Option
from optimizer.model.rows import Row
from optimizer.model.timegrid import Slice
from optimizer.prepare import Prepared
from optimizer.solver.milp import LinearModel, Solution
from optimizer.solver.resolve import Resolver, linear_model


@dataclass(frozen=True, slots=True)
class Extent:
    """What belongs to a part: so many variables of services, about (0: no services), and jobs or not."""

    service_variables: int
    jobs: bool


EXTENTS = (Extent(0, jobs=True), Extent(32_000, jobs=False), Extent(60_000, jobs=True))
"""Parts in the order in which they are asked: each where the one before it has plans."""
MEAN_OF = "mean of "
"""How names of merged slices begin."""
_UNLIKE_MEANS = frozenset((
    "whole_replica", "replica_floor", "spare_capacity", "share_needs_replica", "share_needs_node", "spare_nodes",
    "left_needs_nodes",
))  # fmt: skip
"""Rows of services that hold in every hour, and not for the mean of hours."""
_LEAST_SIZES = {
    "pool_capacity": ("on", "at-once-least", "last-node", "any"),
    "scaling_limit": ("least", "working"),
}
"""Rows of jobs of that kind, by the last part of their names."""
_NODES = ("supply_limit", "provider_limit")


@dataclass(frozen=True, slots=True)
class Part(Prepared):
    """A prepared problem whose instance is a part of the whole."""

    extent: Extent = EXTENTS[-1]

    def instance(self) -> Instance:
        """The part to be modelled."""
        return part_of(Prepared.instance(self), self.extent)


def part(prepared: Prepared, extent: Extent) -> Part:
    """The same problem, of which a part is modelled."""
    return Part(prepared.problem, prepared.gpus, prepared.supply, prepared.estimates, prepared.assumptions, extent)


def service_variables(instance: Instance) -> int:
    """Variables of services in one model of everything, about."""
    return len(instance.cells()) * _per_cell(instance)


def has_parts(instance: Instance) -> bool:
    """Whether cells stand for themselves: no replicas that start, no stages."""
    apart = any(slice_.starting is not None for slice_ in instance.grid.slices)
    return not apart and not any(server.stage for server in instance.servers)


def _per_cell(instance: Instance) -> int:
    return sum(1 + len(server.loads) for server in instance.servers)


# --- which part -------------------------------------------------------------------------------------------------------


def part_of(instance: Instance, extent: Extent) -> Instance:
    """The part of an instance; with all cells if that is small enough."""
    whole = _paid_as_used(instance if extent.jobs else replace(instance, volume_demands=()))
    cells = extent.service_variables // max(1, _per_cell(instance))
    if len(whole.cells()) <= cells:
        return whole
    if not extent.service_variables or not whole.rate_demands:
        return _in_groups(whole, _merged(whole, set()), set())
    cells = max(2, cells)
    work = _work(whole)
    periods = _periods_by_weight(work)
    first = _single_slices(whole.rate_demands, work, periods, max(1, cells // _blocks_in(whole, *periods[:2]) - 1))
    groups = [*([number] for number in first), *_merged(whole, set(first))]
    return _in_groups(whole, groups, set(_affordable(whole, periods, cells // len(groups))))


def _paid_as_used(instance: Instance) -> Instance:
    """An instance whose rents are paid for the time that is used, without billing steps: never dearer."""
    return replace(
        instance,
        options=tuple(_without_step(option) for option in instance.options),
        servers=tuple(replace(server, option=_without_step(server.option)) for server in instance.servers),
        volume_demands=tuple(
            replace(demand, alternatives=tuple(_alternative_without_steps(one) for one in demand.alternatives))
            for demand in instance.volume_demands
        ),
    )


def _without_step(option: Option) -> Option:
    return replace(option, billing_step_hours=None, billed_by_clock=None) if option.billing_step_hours else option


def _alternative_without_steps(alternative: Alternative) -> Alternative:
    members = tuple((_without_step(option), estimate) for option, estimate in alternative.members)
    return replace(alternative, members=members)


def _in_groups(instance: Instance, groups: Sequence[Sequence[int]], asked: set[int]) -> Instance:
    """An instance with groups of slices as its slices, and services in the periods asked."""
    slices = tuple(_slice_of(instance, number, group) for number, group in enumerate(groups))
    return replace(
        instance,
        grid=replace(instance.grid, slices=slices),
        rate_demands=tuple(_mean_rates(instance, demand, groups, asked) for demand in instance.rate_demands),
        volume_demands=tuple(_regrouped(instance, demand, groups, slices) for demand in instance.volume_demands),
    )


def _work(instance: Instance) -> list[list[float]]:
    """GPUs that services need at least, by period and slice."""
    grid = instance.grid
    total = [[0.0] * len(grid.slices) for _ in grid.periods]
    for demand in instance.rate_demands:
        each = _gpus_per_rate(instance, demand)
        for row, rates in zip(total, demand.rate_per_s, strict=True):
            row[:] = [known + each * rate for known, rate in zip(row, rates, strict=True)]
    return total


def _gpus_per_rate(instance: Instance, demand: RateDemand) -> float:
    own = (s for s in instance.servers if s.workload == demand.workload)
    loads = ((s.load(demand.request_class), s.occupied_gpus) for s in own)
    return min((load * gpus for load, gpus in loads if load is not None), default=1.0)


def _periods_by_weight(work: Sequence[Sequence[float]]) -> list[int]:
    """The period that asks for most, the first one (nothing is delivered yet), then the others by what they ask."""
    by_peak = sorted(range(len(work)), key=lambda period: -max(work[period]))
    return list(dict.fromkeys((by_peak[0], 0, *by_peak)))


def _single_slices(
    demands: Sequence[RateDemand], work: Sequence[Sequence[float]], periods: Sequence[int], most: int
) -> list[int]:
    """Slices that stay as they are: where all services together, and where each of them asks for most."""
    tables = (work, *(demand.rate_per_s for demand in demands))
    return list(dict.fromkeys(_peak(table, periods) for table in tables))[:most]


def _peak(rates: Sequence[Sequence[float]], periods: Sequence[int]) -> int:
    """Slice in which rates by period and slice are highest, in the first of `periods` that has any."""
    row = next((rates[period] for period in periods if any(rates[period])), rates[0])
    return row.index(max(row))


def _merged(instance: Instance, single: set[int]) -> list[list[int]]:
    """The other slices, those in which the same jobs may work together."""
    there = [{cell.slice for cell in demand.cells} for demand in instance.volume_demands]
    groups: dict[tuple[bool, ...], list[int]] = {}
    for number in range(len(instance.grid.slices)):
        if number not in single:
            groups.setdefault(tuple(number in slices for slices in there), []).append(number)
    return list(groups.values())


def _affordable(instance: Instance, periods: Sequence[int], blocks: int) -> Iterator[int]:
    """The first periods with so many blocks in all; the one that asks for most in any case."""
    for period in periods:
        blocks -= _blocks_in(instance, period)
        if blocks >= 0 or period == periods[0]:
            yield period


def _blocks_in(instance: Instance, *periods: int) -> int:
    return max(1, sum(block.period in periods for block in instance.grid.blocks))


def _slice_of(instance: Instance, number: int, group: Sequence[int]) -> Slice:
    members = [instance.grid.slices[one] for one in group]
    if len(members) == 1:
        return replace(members[0], index=number)
    share = sum(one.share_of_hours for one in members)
    return Slice(number, f"{MEAN_OF}{len(members)} from {members[0].name}", share)


def _mean_rates(
    instance: Instance, demand: RateDemand, groups: Sequence[Sequence[int]], periods: set[int]
) -> RateDemand:
    """Rates by group of slices, in the periods asked."""
    share = [slice_.share_of_hours for slice_ in instance.grid.slices]

    def mean(rates: Sequence[float], group: Sequence[int]) -> float:
        if len(group) == 1:
            return rates[group[0]]
        return sum(share[s] * rates[s] for s in group) / sum(share[s] for s in group)

    rows = enumerate(demand.rate_per_s)
    found = (tuple(mean(rates, g) if period in periods else 0.0 for g in groups) for period, rates in rows)
    return replace(demand, rate_per_s=tuple(found))


def _regrouped(
    instance: Instance, demand: VolumeDemand, groups: Sequence[Sequence[int]], slices: tuple[Slice, ...]
) -> VolumeDemand:
    grid = replace(instance.grid, slices=slices)
    there = {cell.slice for cell in demand.cells}
    blocks = dict.fromkeys(cell.block for cell in demand.cells)
    return replace(
        demand, cells=tuple(grid.cell(b, s) for b in blocks for s, group in enumerate(groups) if group[0] in there)
    )


# --- what holds of it -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class PartResolver(Resolver):
    """Re-solves of parts: in parts of nodes, and with the rows alone that every plan of the whole keeps."""

    def part(self, questions: int) -> "PartResolver":
        """A resolver for one of so many questions left."""
        base = Resolver.part(self, questions)
        return PartResolver(base.settings, base.again, base.enough_gap)

    def run(self, model: LinearModel, *, gap: float | None = None) -> Solution:
        """Solve a model of a part.

        Raises
        ------
        OutOfTimeError
            If time ends before there is an answer.
        """
        return Resolver.run(self, replace(model, rows=list(kept_rows(model.rows)), relaxed=True, start=()), gap=gap)

    def has_plan(self, prepared: Prepared) -> bool:
        """Whether a part has any plan.

        Raises
        ------
        OutOfTimeError
            If time ends before that is known.
        """
        model = linear_model(build(prepared.instance()))
        return self.run(replace(model, objective={}, constant=0.0)).status != "infeasible"


def kept_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows of a part that every plan of the whole keeps."""
    exact = {tuple(row.index[2:4]) for row in rows if row.family == "demand_coverage" and not of_means(row)}
    for row in rows:
        if any(place in exact for place in pairwise(row.index)):
            yield row
        elif row.family == "pool_capacity" and row.index[-1] == "hired":
            (share, gpus), (nodes, _), *more = row.terms
            yield replace(row, terms=((share, gpus), (nodes, -gpus), *more))
        elif not _of_one_hour(row):
            yield row


def of_means(row: Row) -> bool:
    """Whether a row is about merged slices."""
    return any(part.startswith(MEAN_OF) for part in row.index)


def _of_one_hour(row: Row) -> bool:
    """Whether a row holds in every hour, and not for means, nor where services' nodes are missing."""
    if row.family in _UNLIKE_MEANS or row.index[-1] in _LEAST_SIZES.get(row.family, ()):
        return True
    return row.family in _NODES and len(row.index) > 3
