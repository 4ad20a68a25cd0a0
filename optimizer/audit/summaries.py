"""Checks of what a plan sums up: GPUs at once, rentals, who serves what, cost, bound, gap and status."""

import math
from collections import defaultdict
from collections.abc import Mapping

from optimizer.audit.billing import used_gpu_hours
from optimizer.audit.case import Case
from optimizer.audit.document import AssignmentRecord
from optimizer.audit.fleet import check_terms, most_gpus
from optimizer.audit.interruptions import starts_anew
from optimizer.audit.jobs import Working
from optimizer.audit.lines import Line
from optimizer.audit.report import DUST, TOLERANCE, Checker
from optimizer.audit.services import Place, Station
from optimizer.estimator.types import ClassEstimate, ServiceEstimate

EQUAL_COSTS = 1e-9
"""A bound this near to the cost (relative) is the cost: the gap is then stated as 0."""


def check_summaries(
    case: Case, stations: dict[Place, Station], works: list[Working], lines: list[Line], checker: Checker
) -> None:
    """Check every summary."""
    checker.same("summaries", "gpus", case.plan.gpus, most_gpus(case))
    used = {name: used_gpu_hours(case, option, stations, works) for name, option in case.options.items()}
    _check_rentals(case, lines, used, checker)
    _check_assignments(case, {**_of_services(case, stations), **_of_jobs(case, works)}, checker)
    _check_proof(case, checker)


def _check_rentals(case: Case, lines: list[Line], used: Mapping[str, float | None], checker: Checker) -> None:
    hours: dict[str, float] = defaultdict(float)
    for line in lines:
        if line.term == "usage_fee":
            hours[line.option_id] += line.quantity
    peak: dict[str, int] = defaultdict(int)
    for name in hours:
        counts = (case.rented.get((name, k), 0) + case.hired.get((name, k), (0.0, 0))[1] for k in case.cells)
        peak[name] = max(counts)
    listed = {rental.option: rental for rental in case.plan.rentals}
    for name in dict.fromkeys((*hours, *listed)):
        where = f"rentals[{name}]"
        if name not in listed or name not in hours:
            checker.fail("summaries", where, "is missing" if name in hours else "is not rented in the schedule")
            continue
        option, rental = case.options[name], listed[name]
        check_terms(where, rental, option, checker)
        checker.equal("summaries", f"{where}.peak_nodes", rental.peak_nodes, peak[name], "nodes")
        gpu_hours = hours[name] * option.gpus_per_node
        checker.equal("summaries", f"{where}.gpu_hours", rental.gpu_hours, gpu_hours, "GPU-hours")
        checker.equal("summaries", f"{where}.used_gpu_hours", rental.used_gpu_hours, used[name], "GPU-hours")


# --- who serves what --------------------------------------------------------------------------------------------------

Who = tuple[str, str | None, str, str]
"""(workload, class, option, deployment)."""


def _of_services(case: Case, stations: dict[Place, Station]) -> dict[Who, list[AssignmentRecord]]:
    hours = {key: cell.hours for key, cell in case.cells.items()}
    groups: dict[tuple[str, str, int], dict[str, list[Station]]] = defaultdict(lambda: defaultdict(list))
    for place, station in stations.items():
        for name in station.served:
            groups[place[:3]][name].append(station)
    found: dict[Who, list[AssignmentRecord]] = defaultdict(list)
    for (service, option, _), by_class in groups.items():
        for name, serving in by_class.items():
            rates = [(case.rates.get((service, name, key), 0.0), hours[key]) for key in case.cells]
            total = math.fsum(rate * h for rate, h in rates)
            done = math.fsum(s.served[name] * hours[s.key] for s in serving)
            record = _service_record(serving, name, done / total if total else math.nan)
            found[service, name, option, record.deployment].append(record)
    return found


def _service_record(serving: list[Station], name: str, share: float) -> AssignmentRecord:
    """Share of the class's total; replicas where there are most of them, and how busy they are there at most."""
    most = max(s.replicas for s in serving)
    first = serving[0]
    busy = max((s.busy_replicas() / most for s in serving if s.replicas == most and most), default=0.0)
    return AssignmentRecord.model_construct(
        workload=first.service,
        request_class=name,
        gpu=first.option.gpu_id,
        option=first.option.option_id,
        deployment=first.estimate.deployment.label,
        replicas_peak=float(most),
        gpus_peak=most * first.gpus_kept,
        share=share,
        bottleneck=_bottleneck(first.estimate, first.classes[name]),
        utilisation=busy,
        measured=first.estimate.measured,
    )


def _bottleneck(estimate: ServiceEstimate, found: ClassEstimate) -> str:
    """The resource that sets most of a request's time on a replica."""
    if estimate.measured:
        return "measured rate"
    names = ("compute", "memory_bandwidth", "interconnect", "overhead")
    return max(names, key=lambda name: getattr(found, f"{name}_seconds"))


def _of_jobs(case: Case, works: list[Working]) -> dict[Who, list[AssignmentRecord]]:
    groups: dict[Who, list[Working]] = defaultdict(list)
    for work in works:
        label = work.member.estimate.deployment.label
        groups[work.run.job.name, None, work.record.option, label].append(work)
    return {who: [_job_record(case, who, own)] for who, own in groups.items()}


def _job_record(case: Case, who: Who, works: list[Working]) -> AssignmentRecord:
    first = works[0]
    undisturbed, expected = _hours_of_run(case, works)
    group = first.member.estimate.deployment.gpus_per_replica
    peak = max(max(math.ceil(w.gpus / group - TOLERANCE) * group, w.way.least_gpus) for w in works)
    return AssignmentRecord.model_construct(
        workload=who[0],
        request_class=None,
        gpu=first.option.gpu_id,
        option=who[2],
        deployment=who[3],
        replicas_peak=peak / group,
        gpus_peak=peak,
        share=math.fsum(w.record.amount for w in works),
        bottleneck="measured rate" if first.member.estimate.measured else "compute",
        utilisation=1.0,
        measured=first.member.estimate.measured,
        hours_undisturbed=None if undisturbed is None else undisturbed / peak,
        hours_expected=None if expected is None else expected / peak,
    )


def _hours_of_run(case: Case, works: list[Working]) -> tuple[float | None, float | None]:
    """GPU-hours of the part of a run done here, undisturbed and with starting over, where it does."""
    first = works[0]
    job, option, member = first.run.job, first.option, first.member
    if not starts_anew(job, option):
        return None, None
    demand = next(d for d in case.plan.inputs.estimates.demands if d.workload == job.name)
    whole = math.fsum(run.amount for run in case.runs if run.job is job)
    amount = (demand.amount or 0.0) * math.fsum(w.record.amount for w in works) / whole
    gpu_hours = amount / member.estimate.units_per_gpu_hour
    return gpu_hours / option.availability, gpu_hours / member.useful_share


def _check_assignments(case: Case, derived: dict[Who, list[AssignmentRecord]], checker: Checker) -> None:
    total: dict[str, float] = defaultdict(float)
    for run in case.runs:
        total[run.job.name] += run.amount
    listed: dict[Who, list[AssignmentRecord]] = defaultdict(list)
    for record in case.plan.assignments:
        listed[record.workload, record.request_class, record.option, record.deployment].append(record)
    for who in dict.fromkeys((*derived, *listed)):
        where = f"assignments[{' '.join(part for part in who if part)}]"
        found, expected = listed.get(who, []), derived.get(who, [])
        if len(found) != len(expected):
            checker.fail("summaries", where, "entries missing or too many", found=len(found), expected=len(expected))
        for is_, should in zip(found, expected, strict=False):
            share = should.share / total.get(who[0], 1.0)
            checker.same("summaries", where, is_.model_dump(), {**should.model_dump(), "share": share})


# --- proof ------------------------------------------------------------------------------------------------------------


def _check_proof(case: Case, checker: Checker) -> None:
    """Bound ≤ cost; gap = (cost − bound) ÷ |cost|; optimal only within the gap asked."""
    cost, status, asked = case.plan.cost, case.plan.status, case.plan.inputs.settings.gap
    if cost.bound is None or cost.gap is None:
        unproven = status == "feasible" and cost.bound is None and cost.gap is None
        checker.holds("proof", "cost.bound", unproven, "there is no bound or no gap")
        return
    size = max(abs(cost.npv), 1e-12)
    checker.at_most("proof", "cost.bound", cost.bound, cost.npv, case.plan.currency)
    difference = abs(cost.npv - cost.bound)
    gap = 0.0 if difference <= EQUAL_COSTS * max(1.0, size) else difference / size
    rounding = EQUAL_COSTS * max(1.0, 1.0 / size) * 2
    agrees = abs(cost.gap - gap) <= TOLERANCE * gap + rounding
    checker.holds("proof", "cost.gap", agrees, f"gap {cost.gap:g} is not (cost − bound) ÷ |cost| = {gap:g}")
    if status == "optimal":
        within = cost.gap <= asked + TOLERANCE + DUST
        checker.holds("proof", "status", within, f"optimal within {asked:g} was asked, the gap is {cost.gap:g}")
