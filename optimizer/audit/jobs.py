"""Checks of jobs: every run done in its window, one way, within its sizes, on GPUs that are there."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optimizer.audit.case import Case, Key, Run
from optimizer.audit.document import OptionRecord, SliceRecord, WorkRecord
from optimizer.audit.fitting import Member, Way, kept_per_gpu
from optimizer.audit.report import DUST, TOLERANCE, Checker
from optimizer.audit.services import Place, Station, spot_share
from optimizer.audit.steps import may_fill, may_hire

# --- the figures of one entry -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Working:
    """An entry of the schedule with its run, its way of running (and that way's number), its offer and hours."""

    number: int
    record: WorkRecord
    run: Run
    way: Way
    way_number: int
    member: Member
    hours: float

    @property
    def option(self) -> OptionRecord:
        """The offer worked on."""
        return self.member.option

    @property
    def key(self) -> Key:
        """Its cell."""
        return (self.record.block, self.record.slice)

    @property
    def gpus(self) -> float:
        """GPUs at work on average."""
        return self.record.gpus_on_free + self.record.gpus_on_hired

    @property
    def kept_per_gpu(self) -> float:
        """GPUs kept from others per GPU working."""
        return kept_per_gpu(self.option, self.member.estimate)

    def gpus_for(self, amount: float) -> float:
        """GPUs working on average for an amount: amount ÷ (yield per GPU-hour × productive share × hours)."""
        return amount / (self.member.estimate.units_per_gpu_hour * self.member.useful_share * self.hours)

    @property
    def nodes_at_once(self) -> int:
        """Hired nodes held at one time: the mean made whole, and no fewer than the least size needs."""
        return max(math.ceil(self.record.hired_nodes - TOLERANCE), self.way.least_nodes(self.member))

    @property
    def hires(self) -> bool:
        """Whether it hires nodes: more than dust, measured by what the whole run would hire here."""
        all_nodes = self.gpus_for(self.run.amount) * self.kept_per_gpu / self.option.gpus_per_node
        return self.record.hired_nodes > DUST * all_nodes


def workings(case: Case, checker: Checker) -> list[Working]:
    """All entries of work, each in its run and way; entries of no run or no way are findings."""
    runs = {run.name: run for run in case.runs}
    found = []
    for number, record in enumerate(case.plan.schedule.work):
        where = f"schedule.work[{number}]"
        run = runs.get(record.run)
        if run is None or run.job.name != record.job:
            checker.fail("work", where, f"{record.job} has no run {record.run}")
            continue
        ways = enumerate(case.ways[record.job])
        held = next(((i, way) for i, way in ways if way.holds(record.option, record.estimate)), None)
        if held is None:
            checker.fail("one way", where, f"{record.job} may not run on {record.option} by this estimate")
            continue
        option, estimate = case.options[record.option], case.job_estimates[record.estimate]
        member = Member(option, record.estimate, estimate, case.useful_share(run.job, option, estimate))
        found.append(Working(number, record, run, held[1], held[0], member, case.cell_of(record).hours))
    return found


# --- checks -----------------------------------------------------------------------------------------------------------


def check_jobs(case: Case, found: list[Working], stations: dict[Place, Station], checker: Checker) -> None:
    """Check every run and every entry of work."""
    by_run: dict[str, list[Working]] = defaultdict(list)
    for working in found:
        _check_entry(working, case.plan.grid.slices, checker)
        by_run[working.run.name].append(working)
    for run in case.runs:
        _check_run(case, run, by_run[run.name], checker)
    _check_free(case, found, stations, checker)


def _check_entry(working: Working, slices: Sequence[SliceRecord], checker: Checker) -> None:
    record, where = working.record, f"schedule.work[{working.number}]"
    inside = working.key in working.run.keys
    checker.holds("window", where, inside, f"{record.run} may not run in block {record.block}, slice {record.slice}")
    checker.holds("work", where, min(record.gpus_on_free, record.gpus_on_hired, record.hired_nodes) >= 0, "is negative")
    total = f"{where}.gpus_on_free + gpus_on_hired"
    checker.equal("work", total, working.gpus, working.gpus_for(record.amount), "GPUs")
    if not may_fill(working.option, working.run, slices):
        message = f"{record.option} is paid apart by kind of day: each day's work needs nodes of its own"
        checker.holds("hired nodes", where, record.gpus_on_free == 0, message)
    if not may_hire(working.option, working.run):
        checker.holds("hired nodes", where, record.hired_nodes == 0, f"{record.option} is not rented by the hour")
    needed = working.way.nodes_for(working.member, record.gpus_on_hired * working.kept_per_gpu)
    checker.at_most("hired nodes", f"{where}.hired_nodes", needed, record.hired_nodes, "nodes")
    at_once = working.nodes_at_once if working.hires else 0
    checker.equal("hired nodes", f"{where}.hired_nodes_at_once", record.hired_nodes_at_once, at_once, "nodes")


def _check_run(case: Case, run: Run, entries: list[Working], checker: Checker) -> None:
    done = math.fsum(w.record.amount for w in entries)
    checker.at_most("work", run.name, run.amount, done, run.unit)
    ways = {w.way_number for w in entries}
    checker.holds("one way", run.name, len(ways) <= 1, "is done in several ways that its spread does not let mix")
    interruptible = math.fsum(w.record.amount for w in entries if w.option.interruptible)
    share = spot_share(case, run.job.name) if run.job.interruptible else 0.0
    if share < 1:
        checker.at_most("spot share", run.name, interruptible, share * run.amount, run.unit, run.amount)
    by_cell: dict[Key, float] = defaultdict(float)
    for w in entries:
        by_cell[w.key] += w.gpus
        if w.way.most_gpus is not None:
            where = f"{run.name} in block {w.key[0]}, slice {w.key[1]}"
            checker.at_most("most GPUs", where, by_cell[w.key], float(w.way.most_gpus), "GPUs")


def _check_free(case: Case, found: list[Working], stations: dict[Place, Station], checker: Checker) -> None:
    """Work on free GPUs fits in whole groups beside the replicas, and its least size fits at once."""
    kept: dict[tuple[str, Key], float] = defaultdict(float)
    for station in stations.values():
        kept[station.option.option_id, station.key] += station.replicas * station.gpus_kept
    for (run, key), entries in _on_free(found):
        where = f"{run} on free GPUs in block {key[0]}, slice {key[1]}"
        for w in entries:
            whole = _whole_gpus(case, w.member, kept[w.record.option, key], key)
            checker.at_most("free GPUs", where, w.record.gpus_on_free, whole, "GPUs", max(1.0, whole))
        way = entries[0].way
        together = sum(_whole_gpus(case, m, kept[m.option.option_id, key], key) for m in way.members)
        checker.at_most("least GPUs", where, float(way.least_gpus), together, "GPUs")


def _on_free(found: Iterable[Working]) -> Iterator[tuple[tuple[str, Key], list[Working]]]:
    groups: dict[tuple[str, Key], list[Working]] = defaultdict(list)
    for working in found:
        if working.record.gpus_on_free > DUST:
            groups[working.run.name, working.key].append(working)
    yield from groups.items()


def _whole_gpus(case: Case, member: Member, kept: float, key: Key) -> float:
    """GPUs in whole groups that services leave free on an option in a cell."""
    free = case.nodes_for_services(member.option, key) * member.option.gpus_per_node - kept
    group = member.estimate.deployment.gpus_per_replica
    return math.floor(free / (group * kept_per_gpu(member.option, member.estimate)) + TOLERANCE) * group
