"""Decompose: prices of nodes, a whole fleet, every cell in whole nodes, and one plan of it all with a proven bound."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimizer.model.entities import Instance, VolumeDemand
from optimizer.solver.decomposition.assemble import MOST_ALTERNATIVES, Assembled, Assembly
from optimizer.solver.decomposition.cells import CellModels, CellPlan
from optimizer.solver.decomposition.fleet import Fleet, FleetModel
from optimizer.solver.decomposition.groups import added_up, group_cells
from optimizer.solver.decomposition.jobs import make_job_tables
from optimizer.solver.decomposition.kinds import group_kinds
from optimizer.solver.decomposition.prices import PricedFleet, find_prices
from optimizer.solver.decomposition.pricing import Pricing, make_pricing
from optimizer.solver.matrix import Floats, Indices, start_afresh
from optimizer.solver.milp import Progress, ProgressHook, SolverSettings, relative_gap

LARGEST_DIRECT = 100_000
"""Variables of services up to which everything is one model."""
DEFAULT_TIME_LIMIT_S = 300.0
ROUNDS = ((5, 4e-3), (8, 2e-4))
"""Groups of cells per block, and how near prices must come: first by how much there is to do, then by what a node is
worth."""
PRICES_SHARE, FLEET_SHARE, JOBS_SHARE = 0.15, 0.1, 0.1
"""Shares of the time for each round of prices, the fleets, and the jobs; cells take the rest."""
LEAST_JOBS_S = 30.0
"""What is given to the last step whatever the limit: without it there is no plan."""
SHORTEST_S = 0.1
QUICK_SHARE, LONGER = 0.4, 2.0
"""Share of the cells' time in which all are planned once; and how much more than its part a cell may take then."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The problem with rents and replicas in parts: a fleet in whole nodes, its cost, and a bound on any plan."""

    fleet: Fleet
    cost: float
    bound: float
    prices: Floats
    """Present value of a node by state, cell and kind, at which the bound holds."""


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A plan as values of a limited planning model, with the bound that holds for the whole problem."""

    plan: Assembled
    bound: float
    gap: float
    seconds: float
    relaxed: Relaxed
    interrupted: bool = False


def decompose(
    instance: Instance, settings: SolverSettings, on_progress: ProgressHook | None = None
) -> Decomposed | None:
    """Plan an instance with services by prices and cells; None where no plan was found, or it is not of that kind."""
    if not can_decompose(instance):
        return None
    run = _Run(replace(instance, most_routes=math.inf), settings, on_progress)
    relaxed = run.relaxed()
    plans = None if relaxed is None else run.cells(relaxed.fleet)
    if relaxed is None or plans is None:
        return None
    plan = run.assemble(relaxed.fleet, plans, relaxed.prices)
    if plan is None:
        return None
    bound = min(relaxed.bound, plan.cost)
    gap, seconds = relative_gap(plan.cost, bound), time.monotonic() - run.started
    return Decomposed(plan, bound, gap, seconds, relaxed, run.interrupted)


def can_decompose(instance: Instance) -> bool:
    """Whether every class can be served by whole deployments, and each cell for itself.

    Prefill and decode apart, replicas that take time to start, and rents in steps longer than an hour are planned in
    one model.
    """
    if any(slice_.starting is not None for slice_ in instance.grid.slices):
        return False
    if any(option.long_step for option in instance.rented_options):
        return False
    served = {(s.workload, name) for s in instance.servers for name in s.loads if not s.estimate.deployment.stage}
    asked = {(d.workload, d.request_class) for d in instance.rate_demands}
    return bool(asked) and asked <= served and not any(s.estimate.deployment.stage for s in instance.servers)


class _Run:
    """The stages of one decomposition, under one clock."""

    def __init__(self, instance: Instance, settings: SolverSettings, on_progress: ProgressHook | None) -> None:
        start_afresh()
        self.instance, self.settings, self.on_progress = instance, settings, on_progress
        self.started = time.monotonic()
        self.limit_s = settings.time_limit_s or DEFAULT_TIME_LIMIT_S
        self.kinds = group_kinds(instance)
        self.pricing = make_pricing(instance, self.kinds)
        self.jobs = make_job_tables(instance, self.pricing)
        self.models = CellModels(instance, self.pricing)
        self.bound, self.stage = -math.inf, "prices"
        self.interrupted = False

    @property
    def left_s(self) -> float:
        return self.started + self.limit_s - time.monotonic()

    def relaxed(self) -> Relaxed | None:
        """Prices on groups of cells, a fleet, what its nodes are worth in each cell, and again with groups by worth."""
        best: Relaxed | None = None
        features, pricing = self._load(), self.pricing
        starts: list[Floats] = []
        for per_block, near in ROUNDS:
            found = self._priced(pricing, self._groups(features, per_block), starts, near)
            if found is None:
                continue
            fleet, bound, prices = found
            cost, worth = self._evaluated(fleet)
            if best is None or cost < best.cost:
                best = Relaxed(fleet, cost, max(bound, self.bound), prices)
            self.bound = max(self.bound, bound)
            best = replace(best, bound=self.bound)
            self.stage = "relaxed rents"
            self._report(best.cost, best.bound)
            features, pricing = np.nan_to_num(worth), self.pricing.valued(prices.sum(axis=0))
            starts = [prices, self._start(worth, prices)]
            if relative_gap(best.cost, best.bound) <= self.settings.gap / 2:
                break
        return best

    def _start(self, worth: Floats, prices: Floats) -> Floats:
        """Prices to go on from: what nodes are worth where they are in service, split over the states as before."""
        total = prices.sum(axis=0)
        after = np.divide(prices[-1], total, out=np.full(total.shape, 0.5), where=total > 0)
        known = np.minimum(worth * self.pricing.hours[:, None], self.pricing.rent)
        return self.pricing.split(np.where(np.isnan(worth), total, known), after)

    def _groups(self, features: Floats, per_block: int) -> Indices:
        count = per_block * len(self.instance.grid.blocks)
        return group_cells(self._apart(), features, self.pricing.hours, count)

    def _apart(self) -> list[tuple[int, ...]]:
        """Block, and the jobs that may work in the cell: cells that differ in these never share a group."""
        there = [set(job.cells.tolist()) for job in self.jobs]
        return [(b, *(c in cells for cells in there)) for c, b in enumerate(self.pricing.blocks.tolist())]

    def _load(self) -> Floats:
        """What each service would cost per hour at rents, by cell."""
        cost: dict[str, Floats] = {}
        for demand, table in zip(self.instance.rate_demands, self.pricing.classes, strict=True):
            unit = (self.pricing.rent[:, table.kinds] * table.nodes_per_rate).min(axis=1) / self.pricing.hours
            cost[demand.workload] = cost.get(demand.workload, 0.0) + table.rates_per_s * np.minimum(unit, 1e9)
        return np.column_stack(list(cost.values()))

    def _priced(
        self, cells: Pricing, groups: Indices, starts: Sequence[Floats], near: float
    ) -> tuple[Fleet, float, Floats] | None:
        """The best fleet on groups of cells, the bound it proves, and prices by state, cell and kind."""
        pricing = cells.grouped(groups)
        model = FleetModel(self.instance, pricing, [job.grouped(groups, pricing) for job in self.jobs])
        deadline = time.monotonic() + PRICES_SHARE * self.limit_s
        first = [model.without_gains(np.stack([added_up(one, groups) for one in prices])) for prices in starts]
        found = find_prices(model, max(self.settings.gap / 8, near), deadline, self._tell, first)
        fleet = model.whole(gap=2e-4, time_limit_s=max(1.0, FLEET_SHARE * self.limit_s / 2))
        share = self.pricing.hours / pricing.hours[groups]
        return None if fleet is None else (fleet, found.bound, found.prices[:, groups] * share[:, None])

    def _evaluated(self, fleet: Fleet) -> tuple[float, Floats]:
        """Cost of a fleet with every cell in parts (jobs at no more than prices say), and worth of nodes per hour.

        NaN for kinds that are not in service.
        """
        stock = self._stock_by_kind(fleet)
        worth = np.full(self.pricing.rent.shape, np.nan)
        total = 0.0
        for group, (cost, values) in self._each_alike(stock, lambda cell, there: self.models.worth(cell, there)):
            for cell in group:
                scale = self.pricing.hours[cell] / self.pricing.hours[group[0]]
                total += cost * scale
                for kind, value in values.items():
                    worth[cell, kind] = value / self.pricing.hours[group[0]]
        return fleet.orders_cost + total, worth

    def _each_alike(
        self, stock: Sequence[Mapping[int, int]], work: Callable[[int, Mapping[int, int]], Any]
    ) -> Iterator[tuple[list[int], Any]]:
        """Work on one cell of every set of cells alike: same period, slice and nodes there."""
        blocks, alike = self.pricing.blocks, self._alike(stock)
        with ThreadPoolExecutor(self.settings.threads or 1) as pool:
            yield from zip(alike, pool.map(lambda g: work(g[0], stock[blocks[g[0]]]), alike), strict=True)

    def _alike(self, stock: Sequence[Mapping[int, int]]) -> list[list[int]]:
        alike: dict[tuple[object, ...], list[int]] = {}
        for index, cell in enumerate(self.instance.cells()):
            there = tuple(sorted(stock[cell.block].items()))
            alike.setdefault((self.instance.grid.blocks[cell.block].period, cell.slice, there), []).append(index)
        return list(alike.values())

    def cells(self, fleet: Fleet) -> list[CellPlan] | None:
        """Every cell with whole nodes and replicas on the fleet: all quickly, then the dearest gaps for longer."""
        self.stage = "whole nodes"
        stock = self._stock_by_kind(fleet)
        deadline = self.started + (1 - JOBS_SHARE) * self.limit_s
        threads, alike = self.settings.threads or 1, len(self._alike(stock))
        quick = max(SHORTEST_S, QUICK_SHARE * (deadline - time.monotonic()) * threads / alike)
        gap, found = self.settings.gap / 4, {}
        for group, plan in self._each_alike(stock, lambda cell, there: self.models.plan(cell, there, gap, quick)):
            if plan is None:
                return None
            found[tuple(group)] = plan
        self._improve(found, stock, deadline)
        plans = {cell: plan for group, plan in found.items() for cell in group}
        return [plans[cell] for cell in range(len(plans))]

    def _improve(
        self, found: dict[tuple[int, ...], CellPlan], stock: Sequence[Mapping[int, int]], deadline: float
    ) -> None:
        """Go on with the cells whose gaps cost most, until time is up or the gap asked is reached everywhere."""

        def worth(group: tuple[int, ...]) -> float:
            hours = float(self.pricing.hours[list(group)].sum() / self.pricing.hours[group[0]])
            return (found[group].cost - found[group].bound) * hours

        open_ = [g for g, p in found.items() if p.cost - p.bound > self.settings.gap / 4 * abs(p.cost)]
        threads = self.settings.threads or 1

        def go_on(group: tuple[int, ...]) -> None:
            left = deadline - time.monotonic()
            if left > SHORTEST_S and not self.interrupted:
                there, gap = stock[self.pricing.blocks[group[0]]], self.settings.gap / 4
                better = self.models.plan(group[0], there, gap, min(left, longest), found[group])
                if better is not None and better.cost < found[group].cost:
                    found[group] = better

        longest = max(SHORTEST_S, LONGER * (deadline - time.monotonic()) * threads / max(1, len(open_)))
        with ThreadPoolExecutor(threads) as pool:
            try:
                list(pool.map(go_on, sorted(open_, key=worth, reverse=True)))
            except KeyboardInterrupt:  # the plan as it stands is a plan
                self.interrupted = True

    def assemble(self, fleet: Fleet, plans: Sequence[CellPlan], prices: Floats) -> Assembled | None:
        """The plan as a whole, jobs included; with every way to run them where the cheapest will not do."""
        assembly = Assembly.of(self.instance, self.kinds, fleet, plans)
        if assembly is None:
            return None
        slices = len(self.instance.grid.slices)
        jobs = self.instance.volume_demands
        tried = {d.name: cheapest_alternatives(d, self.pricing, slices, prices.sum(axis=0)) for d in jobs}
        for alternatives in (tried, {}):
            plan = assembly.solve(alternatives, self.settings.gap / 4, max(LEAST_JOBS_S, self.left_s))
            if plan is not None:
                return plan
        return None

    def _stock_by_kind(self, fleet: Fleet) -> list[dict[int, int]]:
        kind_of = {option.option_id: kind.index for kind in self.kinds for option in kind.held}
        stock: list[dict[int, int]] = [{} for _ in self.instance.grid.blocks]
        for (option_id, block), nodes in fleet.stock.items():
            if nodes:
                kind = kind_of[option_id]
                stock[block][kind] = stock[block].get(kind, 0) + nodes
        return stock

    def _tell(self, found: PricedFleet) -> None:
        """What is known while prices are sought: a bound, and no plan yet."""
        self.bound = max(self.bound, found.bound)
        self._report(None, self.bound)

    def _report(self, best: float | None, bound: float) -> None:
        if self.on_progress is not None:
            gap = None if best is None else relative_gap(best, bound)
            known = bound if math.isfinite(bound) else None
            self.on_progress(Progress(time.monotonic() - self.started, best, known, gap, stage=self.stage))


def cheapest_alternatives(demand: VolumeDemand, pricing: Pricing, slices: int, prices: Floats) -> list[int]:
    """The ways of running a job that cost least at prices of nodes, in order."""
    kind_of = {option.option_id: kind.index for kind in pricing.kinds for option in kind.options}
    cells = np.array([cell.block * slices + cell.slice for cell in demand.cells])
    hours = np.array([cell.hours for cell in demand.cells])

    def cost(index: int) -> float:
        units = []
        for option, estimate in demand.alternatives[index].members:
            per_hour = estimate.units_per_gpu_hour * option.productive_share * option.gpus_per_node
            units.append(float((prices[cells, kind_of[option.option_id]] / hours).min()) / per_hour)
        return min(units)

    return sorted(range(len(demand.alternatives)), key=cost)[:MOST_ALTERNATIVES]
