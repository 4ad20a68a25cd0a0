"""Checks of billing steps, and the node-hours paid for nodes rented by use."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from optimizer.audit.case import Case, Key
from optimizer.audit.document import OptionRecord, StretchRecord
from optimizer.audit.fleet import gpus_used
from optimizer.audit.jobs import Working
from optimizer.audit.report import TOLERANCE, Checker
from optimizer.audit.rows import DerivedRow, derived_row
from optimizer.audit.services import Place, Station
from optimizer.audit.steps import days_charged, days_paid, months_paid
from optimizer.audit.stretches import FROM_START, When, hours_charged, months_charged

BillKey = tuple[str, str, int]
"""(run, option, estimate)."""


# --- what is paid -----------------------------------------------------------------------------------------------------


def hours_rented(
    case: Case, option: OptionRecord, change: float, window: tuple[float, float] = FROM_START
) -> dict[When, tuple[float, float]]:
    """Node-hours paid of an option rented by use, inside a window, and their present value at price 1."""
    parts: dict[When, list[tuple[float, float]]] = defaultdict(list)
    for nodes, charged in _charged(case, option, change, window):
        for when, (hours, present) in charged.items() if nodes else ():
            parts[when].append((nodes * hours, nodes * present))
    return {when: (math.fsum(h for h, _ in found), math.fsum(p for _, p in found)) for when, found in parts.items()}


def _charged(
    case: Case, option: OptionRecord, change: float, window: tuple[float, float]
) -> Iterator[tuple[float, dict[When, tuple[float, float]]]]:
    """Numbers of nodes, each with the hours that one of them is paid for."""
    name, blocks = option.option_id, case.plan.grid.blocks
    for stretch in case.plan.schedule.stretches if option.long_step else ():
        if stretch.option == name:
            used = (blocks[stretch.first_block].start_month, blocks[stretch.last_block].end_month)
            span = months_paid(option, *used)
            per_month = days_charged(span, share_of(case, option, stretch.days))
            yield stretch.nodes, _spread(case, span, per_month, change, window)
    for (rented, key), nodes in case.rented.items():
        if rented == name and not option.long_step:
            yield nodes, hours_charged(case, key, change, window)
    for (hired, key), (mean, _) in case.hired.items():
        if hired == name:
            yield mean, hours_charged(case, key, change, window)
    for who, hours in _idle_hours(case, name).items():
        span = case.billings[who].idle_span
        yield hours, _spread(case, span, 1 / (span[1] - span[0]), change, window)


def _spread(
    case: Case, span: tuple[float, float], per_month: float, change: float, window: tuple[float, float]
) -> dict[When, tuple[float, float]]:
    """Hours paid evenly over a span, as far as they lie in a window."""
    months = months_charged(case, max(span[0], window[0]), min(span[1], window[1]), change)
    return {when: (m * per_month, p * per_month) for when, (m, p) in months.items()}


def _idle_hours(case: Case, name: str) -> dict[BillKey, float]:
    """Node-hours paid and not used, by run, of the nodes hired of an option in whole steps."""
    found: dict[BillKey, list[float]] = defaultdict(list)
    for bill in case.plan.schedule.bills:
        if bill.option == name:
            key = (bill.run, name, bill.estimate)
            found[key].append(case.billings[key].paid_hours(bill.node_steps))
    for work in case.plan.schedule.work:
        key = (work.run, name, work.estimate)
        if work.option == name and key in case.billings:
            found[key].append(-work.hired_nodes * case.cell_of(work).hours)
    return {key: math.fsum(parts) for key, parts in found.items()}


def share_of(case: Case, option: OptionRecord, days: str) -> float:
    """Share of all hours that some days have."""
    if days == "all":
        return 1.0
    slices = case.plan.grid.slices
    named = days_paid(option, slices)
    return math.fsum(s.share_of_hours for s, found in zip(slices, named, strict=True) if found == days)


# --- what is used of it -----------------------------------------------------------------------------------------------


def used_gpu_hours(
    case: Case, option: OptionRecord, stations: dict[Place, Station], works: list[Working]
) -> float | None:
    """GPU-hours of nodes that replicas stand on or jobs work on, of an offer whose time is paid in whole steps."""
    name = option.option_id
    if not (option.long_step or any(key[1] == name for key in case.billings)):
        return None
    busy: dict[Key, float] = defaultdict(float)
    for (used, key), gpus in gpus_used(stations, []).items() if option.long_step else ():
        if used == name:
            busy[key] = math.ceil(gpus / option.gpus_per_node - TOLERANCE)
    for work in works:
        if work.option is option and option.long_step:
            busy[work.key] += work.record.gpus_on_free * work.kept_per_gpu / option.gpus_per_node
    there = {key: nodes for (rented, key), nodes in case.rented.items() if rented == name}
    hours = [(min(n, busy[key]) if option.long_step else n) * case.cells[key].hours for key, n in there.items()]
    hours += [work.record.hired_nodes * work.hours for work in works if work.option is option]
    return option.gpus_per_node * math.fsum(hours)


# --- checks -----------------------------------------------------------------------------------------------------------


def check_steps(case: Case, works: list[Working], checker: Checker) -> None:
    """Check that nodes of steps longer than an hour are there in whole stretches, and that runs pay whole steps."""
    _check_stretches(case, checker)
    for number, bill in enumerate(case.plan.schedule.bills):
        billing = case.billings[bill.run, bill.option, bill.estimate]
        _, count = billing.lengths().get(bill.piece, (0.0, 0.0))
        possible = bill.node_steps > 0 and billing.may_be(bill.node_steps, count)
        message = "no number of nodes between least and most gives so many steps"
        checker.holds("billing steps", f"schedule.bills[{number}]", possible, message)
    for (key, slice_), (hired, held) in _hired_and_held(case, works).items():
        where = f"{key[0]} on {key[1]}" + ("" if slice_ is None else f" in slice {case.plan.grid.slices[slice_].name}")
        size = case.billings[key].whole_node_hours
        checker.at_most("billing steps", where, math.fsum(hired), math.fsum(held), "node-hours", size)


def _hired_and_held(
    case: Case, works: list[Working]
) -> dict[tuple[BillKey, int | None], tuple[list[float], list[float]]]:
    """Node-hours hired for a run on an option and held by the steps paid, in all or (long steps) in each slice."""
    found: dict[tuple[BillKey, int | None], tuple[list[float], list[float]]] = {}
    for run in case.runs:
        for way in case.ways[run.job.name]:
            for member in way.members:
                key = (run.name, member.option.option_id, member.number)
                slices = {s for _, s in run.keys} if member.option.long_step else (None,)
                found |= {(key, slice_): ([], []) for slice_ in slices if key in case.billings}
    for work in works:
        key = (work.run.name, work.option.option_id, work.record.estimate)
        if key in case.billings:
            slice_ = work.record.slice if work.option.long_step else None
            found[key, slice_][0].append(work.record.hired_nodes * work.hours)
    for bill in case.plan.schedule.bills:
        key = (bill.run, bill.option, bill.estimate)
        for (other, slice_), (_, held) in found.items():
            if other == key:
                most = case.billings[key].whole_node_hours
                held.append(bill.node_steps * min(most, case.billings[key].held(bill.days, bill.piece, slice_)))
    return found


def _check_stretches(case: Case, checker: Checker) -> None:
    for (name, key), expected in _nodes_of_stretches(case).items():
        where = f"{name} in block {key[0]}, slice {case.cells[key].slice_name}"
        checker.equal("billing steps", where, case.rented.get((name, key), 0), expected, "nodes")


def _nodes_of_stretches(case: Case) -> dict[tuple[str, Key], int]:
    """Nodes that the stretches of each option paid in long steps give in every cell."""
    found: dict[tuple[str, Key], int] = {}
    for name, option in case.options.items():
        if option.long_step:
            days = days_paid(option, case.plan.grid.slices)
            own = [stretch for stretch in case.plan.schedule.stretches if stretch.option == name]
            for key in case.cells:
                found[name, key] = sum(s.nodes for s in own if _covers(s, key[0], days[key[1]]))
    return found


def _covers(stretch: StretchRecord, block: int, days: str) -> bool:
    return stretch.first_block <= block <= stretch.last_block and stretch.days in (days, "all")


def check_step_references(case: Case, checker: Checker) -> None:
    """Check names and numbers of stretches and bills."""
    blocks = len(case.plan.grid.blocks)
    for number, stretch in enumerate(case.plan.schedule.stretches):
        where, option = f"schedule.stretches[{number}]", case.options.get(stretch.option)
        long = option is not None and option.long_step and not option.held
        checker.holds("references", where, long, f"{stretch.option} is not paid in steps longer than an hour")
        inside = stretch.first_block <= stretch.last_block < blocks and stretch.nodes > 0
        checker.holds("references", where, inside, "is no stretch of blocks with nodes")
        days = [] if option is None else ["all", *days_paid(option, case.plan.grid.slices)]
        checker.holds("references", where, stretch.days in days, f"days {stretch.days} are not paid apart")
    for number, bill in enumerate(case.plan.schedule.bills):
        billing = case.billings.get((bill.run, bill.option, bill.estimate))
        known = billing is not None and bill.days in (billing.days if billing.option.long_step else ("all",))
        message = "is of no run whose hired nodes are paid in whole steps, or of no such days"
        checker.holds("references", f"schedule.bills[{number}]", known, message)
    stretches = Counter((s.option, s.days, s.first_block, s.last_block) for s in case.plan.schedule.stretches)
    bills = Counter((b.run, b.option, b.estimate, b.days, b.piece) for b in case.plan.schedule.bills)
    double = [key for counts in (stretches, bills) for key, count in counts.items() if count > 1]
    checker.holds("references", "schedule", not double, f"holds steps twice: {double[:1]}")


# --- constraints ------------------------------------------------------------------------------------------------------


def step_rows(case: Case, works: list[Working]) -> Iterator[DerivedRow]:
    """Nodes there are those of the stretches; hired nodes of a run fit the node-steps paid."""
    slices, used = case.plan.grid.slices, {name for name, _ in case.rentable}
    for name, option in case.options.items():
        days = days_paid(option, slices)
        own = [s for s in case.plan.schedule.stretches if s.option == name]
        for number in range(len(case.plan.grid.blocks)) if option.long_step and name in used else ():
            for named in dict.fromkeys(days):
                there = case.rented.get((name, (number, days.index(named))), 0)
                parts = [there, *(-s.nodes for s in own if _covers(s, number, named))]
                index = (name, case.cells[number, 0].index[0], named)
                yield derived_row("billing_step", index, parts, "=", 0.0, "nodes")
    yield from _bill_rows(case, works)


def _bill_rows(case: Case, works: list[Working]) -> Iterator[DerivedRow]:
    """Share of a run on hired nodes ≤ shares that the node-steps paid hold, wherever they could be hired in steps."""
    numbers = {(run.name, m.option.option_id, m.number): number for run in case.runs
               for number, way in enumerate(case.ways[run.job.name]) for m in way.members}  # fmt: skip
    for (key, slice_), (hired, held) in _hired_and_held(case, works).items():
        whole = case.billings[key].whole_node_hours
        place = () if slice_ is None else (case.plan.grid.slices[slice_].name,)
        parts = [*(hours / whole for hours in hired), *(-hours / whole for hours in held)]
        yield derived_row("billing_step", (key[0], numbers[key], key[1], *place, "steps"), parts, "<=", 0.0, "share")
