"""Checks that a plan's entries speak of things that are there: before them nothing else can be derived."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from optimizer.audit.billing import check_step_references
from optimizer.audit.case import Case
from optimizer.audit.document import CellRecord, OptionRecord, ReplicasRecord, ServedRecord, WorkRecord
from optimizer.audit.fitting import belongs, place_allowed, usable_estimates
from optimizer.audit.report import Checker
from optimizer.estimator.types import JobEstimate, ServiceEstimate
from optimizer.problem.load import problem_from_json
from optimizer.problem.schema import Problem


def embedded_problem(data: dict[str, object]) -> Problem:
    """The problem inside a plan file.

    Raises
    ------
    ProblemFileError
        If it is none.
    """
    return problem_from_json(data)


def check_references(case: Case, checker: Checker) -> bool:
    """Check names and numbers of every entry; false where some lead nowhere."""
    before = len(checker.findings)
    plan, schedule = case.plan, case.plan.schedule
    checker.equal("references", "problem", float(plan.problem == case.problem.name), 1.0)
    checker.equal("references", "currency", float(plan.currency == case.problem.currency), 1.0)
    demands = Counter(demand.workload for demand in plan.inputs.estimates.demands)
    once = demands == Counter(w.name for w in case.problem.workloads)
    checker.holds("references", "inputs.estimates.demands", once, "does not hold one demand per workload")
    for name, entries in (("rented", schedule.rented), ("replicas", schedule.replicas), ("served", schedule.served)):
        _check_cells(case, f"schedule.{name}", entries, checker)
    _check_cells(case, "schedule.work", schedule.work, checker)
    for number, acquisition in enumerate(plan.acquisitions):
        known = acquisition.option in case.options
        checker.holds("references", f"acquisitions[{number}]", known, f"there is no option {acquisition.option}")
    check_step_references(case, checker)
    if len(checker.findings) == before:
        _check_estimates(case, checker)
    _check_unique(case, checker)
    return len(checker.findings) == before


def _check_cells(case: Case, where: str, entries: Sequence[CellRecord], checker: Checker) -> None:
    for number, entry in enumerate(entries):
        place = f"{where}[{number}]"
        checker.holds("references", place, entry.option in case.options, f"there is no option {entry.option}")
        there = (entry.block, entry.slice) in case.cells
        checker.holds("references", place, there, f"there is no block {entry.block} with a slice {entry.slice}")


def _check_estimates(case: Case, checker: Checker) -> None:
    entries: list[tuple[str, ReplicasRecord | ServedRecord]] = [
        *((f"schedule.replicas[{i}]", entry) for i, entry in enumerate(case.plan.schedule.replicas)),
        *((f"schedule.served[{i}]", entry) for i, entry in enumerate(case.plan.schedule.served)),
    ]
    for where, entry in entries:
        estimates = case.service_estimates
        if checker.holds("references", where, entry.estimate < len(estimates), "there is no such estimate"):
            estimate = estimates[entry.estimate]
            _check_belongs(case, where, entry.workload, case.options[entry.option], estimate, checker)
            classes = [c.request_class for c in estimate.classes]
            known = not isinstance(entry, ServedRecord) or entry.request_class in classes
            checker.holds("deployment", where, known, "the estimate does not serve this class")
    for number, work in enumerate(case.plan.schedule.work):
        where = f"schedule.work[{number}]"
        if checker.holds("references", where, work.estimate < len(case.job_estimates), "there is no such estimate"):
            _check_work(case, where, work, checker)


def _check_work(case: Case, where: str, work: WorkRecord, checker: Checker) -> None:
    option, estimate = case.options[work.option], case.job_estimates[work.estimate]
    _check_belongs(case, where, work.job, option, estimate, checker)
    label = f"{option.gpu_id} {estimate.deployment.label}".strip()
    gpu_alike = work.alternative == label or case.jobs[work.job].spread == "any" if work.job in case.jobs else False
    checker.holds("references", where, gpu_alike, f"the alternative is not {label}")


def _check_belongs(
    case: Case,
    where: str,
    workload: str,
    option: OptionRecord,
    estimate: ServiceEstimate | JobEstimate,
    checker: Checker,
) -> None:
    known = workload in (case.services if isinstance(estimate, ServiceEstimate) else case.jobs)
    if not checker.holds("references", where, known, f"there is no workload {workload}"):
        return
    own = estimate.workload == workload and belongs(estimate, option)
    checker.holds("deployment", where, own, f"the estimate does not hold for {workload} on {option.option_id}")
    numbers = case.service_estimates if isinstance(estimate, ServiceEstimate) else case.job_estimates
    usable = [numbers[i] for i in usable_estimates(workload, option, numbers)]
    replaced = f"a measurement on {option.option_id} itself replaces this estimate"
    checker.holds("deployment", where, not own or estimate in usable, replaced)
    allowed = place_allowed((case.services | case.jobs)[workload], option)
    checker.holds("data residency", where, allowed, f"data of {workload} may not go to {option.region or 'there'}")


def _check_unique(case: Case, checker: Checker) -> None:
    schedule = case.plan.schedule
    _no_double("schedule.rented", ((r.option, r.block, r.slice) for r in schedule.rented), checker)
    replicas = ((r.option, r.block, r.slice, r.workload, r.estimate) for r in schedule.replicas)
    _no_double("schedule.replicas", replicas, checker)
    served = ((s.option, s.block, s.slice, s.workload, s.request_class, s.estimate) for s in schedule.served)
    _no_double("schedule.served", served, checker)
    work = ((w.option, w.block, w.slice, w.run, w.alternative, w.estimate) for w in schedule.work)
    _no_double("schedule.work", work, checker)
    _no_double("acquisitions", ((a.option, a.order_month) for a in case.plan.acquisitions), checker)
    _no_double("rentals", (r.option for r in case.plan.rentals), checker)
    _no_double("constraints", ((c.family, c.index) for c in case.plan.constraints), checker)


def _no_double(where: str, keys: Iterable[Hashable], checker: Checker) -> None:
    double = [key for key, count in Counter(keys).items() if count > 1]
    checker.holds("references", where, not double, f"holds an entry twice: {double[:1]}")
