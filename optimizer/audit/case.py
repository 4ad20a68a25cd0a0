"""A plan file with everything that its checks look up: options, cells, orders, rates and runs, derived here anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from optimizer.audit.calendar import EPSILON_MONTHS, HOURS_PER_MONTH, clock_hours, overlap, present_months, runs_of
from optimizer.audit.document import (
    AcquisitionRecord,
    BlockRecord,
    CellRecord,
    OptionRecord,
    PlanDocument,
    SliceRecord,
)
from optimizer.audit.fitting import Possible, Way, possible_deployments, ways_of
from optimizer.audit.hours import started_for
from optimizer.audit.interruptions import useful_share
from optimizer.audit.rates import planned_rates
from optimizer.audit.steps import Billing, billed_runs
from optimizer.estimator.types import JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import AnyJob, Service
from optimizer.problem.schema import Problem

Key = tuple[int, int]
"""(block, slice)."""


def month_label(month: float) -> str:
    """Name of a moment in the index of a constraint."""
    return f"month-{round(month, 9):.12g}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One slice of one block; `present_hours` is the present value of paying 1 per hour in it."""

    key: Key
    period: int
    month: float
    slice_name: str
    hours: float
    present_hours: float

    @property
    def index(self) -> tuple[str, str]:
        """Its two names in the index of a constraint."""
        return (month_label(self.month), self.slice_name)


@dataclass(frozen=True, slots=True)
class Run:
    """One amount of work to be done inside a window (for daily work: in one block)."""

    name: str
    job: AnyJob
    amount: float
    unit: str
    keys: tuple[Key, ...]
    start_month: float
    end_month: float
    days: float | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Nodes that may be ordered at the start of a period (`nodes` is 0 where the plan orders none)."""

    option: OptionRecord
    period: int
    order_month: float
    arrival_month: float
    nodes: int

    @property
    def leave_month(self) -> float:
        """Month at which they leave."""
        return self.arrival_month + self.option.months_in_service

    def counts_at(self, month: float) -> bool:
        """Whether they are on order or held."""
        return self.order_month <= month + EPSILON_MONTHS and month < self.leave_month - EPSILON_MONTHS

    def usable_at(self, month: float) -> bool:
        """Whether they are in service."""
        return self.arrival_month <= month + EPSILON_MONTHS and month < self.leave_month - EPSILON_MONTHS


@dataclass(frozen=True)
class Case:
    """The plan under audit."""

    plan: PlanDocument
    problem: Problem

    @property
    def horizon(self) -> float:
        """Months of the horizon."""
        return self.problem.horizon.months

    @property
    def rate_per_year(self) -> float:
        """Effective annual discount rate."""
        return self.problem.finance.discount_rate

    @property
    def service_estimates(self) -> tuple[ServiceEstimate, ...]:
        """Estimates by the number that the schedule uses."""
        return self.plan.inputs.estimates.services

    @property
    def job_estimates(self) -> tuple[JobEstimate, ...]:
        """Estimates by the number that the schedule uses."""
        return self.plan.inputs.estimates.jobs

    @cached_property
    def options(self) -> dict[str, OptionRecord]:
        """Options by id."""
        return {option.option_id: option for option in self.plan.inputs.options}

    @cached_property
    def services(self) -> dict[str, Service]:
        """Services by name."""
        return {w.name: w for w in self.problem.workloads if isinstance(w, Service)}

    @cached_property
    def jobs(self) -> dict[str, AnyJob]:
        """Jobs by name."""
        return {w.name: w for w in self.problem.workloads if not isinstance(w, Service)}

    @cached_property
    def cells(self) -> dict[Key, Cell]:
        """Cells by (block, slice)."""
        grid = self.plan.grid
        return {
            (b, s): self._cell((b, s), block, slice_)
            for b, block in enumerate(grid.blocks)
            for s, slice_ in enumerate(grid.slices)
        }

    def _cell(self, key: Key, block: BlockRecord, slice_: SliceRecord) -> Cell:
        share = slice_.share_of_hours * HOURS_PER_MONTH
        present = present_months(self.rate_per_year, block.start_month, block.end_month, self.horizon)
        months = block.end_month - block.start_month
        return Cell(key, block.period, block.start_month, slice_.name, months * share, present * share)

    def cell_of(self, record: CellRecord) -> Cell:
        """The cell of an entry of the schedule."""
        return self.cells[record.block, record.slice]

    @cached_property
    def rates(self) -> dict[tuple[str, str, Key], float]:
        """Rate by (service, class, cell): what must be served."""
        found = {}
        for service in self.services.values():
            planned = planned_rates(service, self.plan.grid)
            names = dict.fromkeys(name for name, _, _ in planned)
            for key, cell in self.cells.items():
                for name in names:
                    found[service.name, name, key] = planned[name, cell.period, key[1]]
        return found

    # --- nodes --------------------------------------------------------------------------------------------------------

    @cached_property
    def orders(self) -> list[Order]:
        """Every order that could arrive before the horizon ends, with the nodes that the plan orders."""
        placed = {(a.option, round(a.order_month, 9)): a.nodes for a in self.plan.acquisitions}
        return [
            Order(option, i, p.start_month, arrival, placed.get((option.option_id, round(p.start_month, 9)), 0))
            for option in self.options.values()
            if option.held and not option.existing_nodes
            for i, p in enumerate(self.plan.grid.periods)
            if (arrival := p.start_month + option.lead_months) < self.horizon - EPSILON_MONTHS
        ]

    def orders_of(self, option: OptionRecord) -> list[Order]:
        """Possible orders of an option."""
        return [order for order in self.orders if order.option is option]

    def leaves(self, acquisition: AcquisitionRecord) -> float:
        """Month at which acquired nodes leave."""
        return acquisition.start_month + self.options[acquisition.option].months_in_service

    def existing_at(self, option: OptionRecord, month: float) -> int:
        """Nodes already there at the start that are still there."""
        return option.existing_nodes if month < option.months_in_service - EPSILON_MONTHS else 0

    @cached_property
    def in_service(self) -> dict[tuple[str, int], int]:
        """Nodes of held options in service by (option, block): existing, and acquired ones arrived and in term."""
        return {
            (name, b): self._in_service(option, block.start_month)
            for name, option in self.options.items()
            if option.held
            for b, block in enumerate(self.plan.grid.blocks)
        }

    def _in_service(self, option: OptionRecord, month: float) -> int:
        acquired = sum(
            a.nodes
            for a in self.plan.acquisitions
            if a.option == option.option_id
            and a.start_month <= month + EPSILON_MONTHS
            and month < self.leaves(a) - EPSILON_MONTHS
        )
        return acquired + self.existing_at(option, month)

    @cached_property
    def _holdable(self) -> set[tuple[str, int]]:
        starts = [block.start_month for block in self.plan.grid.blocks]
        found = {(o.option.option_id, b) for o in self.orders for b, month in enumerate(starts) if o.usable_at(month)}
        for option in self.options.values():
            found |= {(option.option_id, b) for b, month in enumerate(starts) if self.existing_at(option, month)}
        return found

    def may_be_held(self, option: OptionRecord, block: int) -> bool:
        """Whether a held option could have nodes in service in a block."""
        return (option.option_id, block) in self._holdable

    @cached_property
    def deployments(self) -> list[Possible]:
        """Every deployment that may stand on every option."""
        options = list(self.options.values())
        return list(possible_deployments(self.services.values(), options, self.service_estimates))

    @cached_property
    def ways(self) -> dict[str, list[Way]]:
        """All ways of running each job."""
        options = list(self.options.values())
        return {
            name: ways_of(job, options, self.job_estimates, partial(self.useful_share, job))
            for name, job in self.jobs.items()
        }

    def useful_share(self, job: AnyJob, option: OptionRecord, estimate: JobEstimate) -> float:
        """Share of paid hours in which a job gets on."""
        demands = self.plan.inputs.estimates.demands
        amount = next((d.amount or 0.0 for d in demands if d.workload == job.name), 0.0)
        return useful_share(job, option, estimate, amount)

    @cached_property
    def servable(self) -> dict[tuple[str, str, int, Key], dict[str, float]]:
        """Rates by class that a deployment could serve, by (service, option, estimate, cell), where there are any.

        Where replicas could only start for the next hour, there are none.
        """
        found = {}
        for one in self.deployments:
            classes = [c.request_class for c in one.estimate.classes]
            for key in self.cells:
                if not one.option.held or self.may_be_held(one.option, key[0]):
                    rates = {name: self.rates.get((one.service, name, key), 0.0) for name in classes}
                    after = started_for(self.plan.grid, self.services[one.service], key)[1:]
                    starts = any(self.rates.get((one.service, name, k), 0.0) > 0 for k in after for name in classes)
                    if any(rates.values()) or starts:
                        place = (one.service, one.option.option_id, one.number, key)
                        found[place] = {name: rate for name, rate in rates.items() if rate > 0}
        return found

    @cached_property
    def rentable(self) -> set[tuple[str, Key]]:
        """(Option, cell) in which services could rent by the hour; of offers in long steps whoever may use them."""
        found = {(option, key) for _, option, _, key in self.servable if not self.options[option].held}
        users = {one.option.option_id for one in self.deployments}
        working = {run.job.name for run in self.runs}
        users |= {m.option.option_id for name in working for way in self.ways[name] for m in way.members}
        long = [name for name in users if self.options[name].long_step and not self.options[name].held]
        return found | {(name, key) for name in long for key in self.cells}

    @cached_property
    def rented(self) -> dict[tuple[str, Key], int]:
        """Nodes rented for services by (option, cell)."""
        return {(r.option, (r.block, r.slice)): r.nodes for r in self.plan.schedule.rented}

    def nodes_for_services(self, option: OptionRecord, key: Key) -> int:
        """Nodes in service or rented for services."""
        return self.in_service[option.option_id, key[0]] if option.held else self.rented.get((option.option_id, key), 0)

    @cached_property
    def hired(self) -> dict[tuple[str, Key], tuple[float, int]]:
        """Nodes rented for jobs by (option, cell): their mean, and at one time."""
        found: dict[tuple[str, Key], tuple[float, int]] = {}
        for work in self.plan.schedule.work:
            place = (work.option, (work.block, work.slice))
            mean, at_once = found.get(place, (0.0, 0))
            found[place] = (mean + work.hired_nodes, at_once + work.hired_nodes_at_once)
        return found

    @cached_property
    def billings(self) -> Mapping[tuple[str, str, int], Billing]:
        """By run, option and estimate: runs whose hired nodes are paid in whole steps."""
        return billed_runs(((run.name, run, self.ways[run.job.name]) for run in self.runs), self.plan.grid.slices)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    @cached_property
    def runs(self) -> list[Run]:
        """All amounts of work that must be done."""
        demands = {d.workload: d for d in self.plan.inputs.estimates.demands}
        found = []
        for job in self.jobs.values():
            demand, slices = demands[job.name], self._slices_of(job)
            amount = demand.amount or 0.0
            for name, release, deadline in runs_of(job, self.horizon):
                blocks = self._blocks_within(release, deadline)
                if not demand.per_day:
                    keys = tuple((b, s) for b in blocks for s in slices)
                    found.append(Run(name, job, amount, demand.unit, keys, release, deadline))
                    continue
                for b in blocks:
                    block = self.plan.grid.blocks[b]
                    days = (block.end_month - block.start_month) * HOURS_PER_MONTH / 24
                    keys = tuple((b, s) for s in slices)
                    label, span = f"{name}@{block.start_month:g}", (block.start_month, block.end_month)
                    found.append(Run(label, job, amount * days, demand.unit, keys, *span, days))
        return found

    def _slices_of(self, job: AnyJob) -> list[int]:
        numbered = list(enumerate(self.plan.grid.slices))
        if job.window is None:
            return [i for i, _ in numbered]
        hours = clock_hours(job.window.daily)
        return [i for i, s in numbered if s.hours_of_week is None or all(h % 24 in hours for h in s.hours_of_week)]

    def _blocks_within(self, release: float, deadline: float) -> list[int]:
        """Blocks that lie inside a window."""
        window = (release - EPSILON_MONTHS, deadline + EPSILON_MONTHS)
        return [
            i
            for i, b in enumerate(self.plan.grid.blocks)
            if overlap((b.start_month, b.end_month), window) >= b.end_month - b.start_month > 0
        ]
