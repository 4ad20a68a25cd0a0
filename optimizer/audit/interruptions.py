"""What interruptions leave of a job's paid hours, derived for the audit."""

import math
from collections.abc import Iterable, Iterator, Sequence

from optimizer.audit.document import OptionRecord
from optimizer.audit.fitting import kept_per_gpu, usable_estimates
from optimizer.estimator.types import Demand, JobEstimate, Rejection
from optimizer.estimator.workloads import AnyJob
from optimizer.problem.schema import Problem

MOST_PER_RUN = 1.2564
"""(e^x − 1) ÷ x reaches 2 there."""


def taken_back(option: OptionRecord, estimate: JobEstimate, amount: float) -> float:
    """Mean interruptions in an undisturbed run of an amount."""
    gpus = amount / estimate.units_per_gpu_hour / option.availability * kept_per_gpu(option, estimate)
    return gpus / option.gpus_per_node * option.interruptions_per_node_hour


def useful_share(job: AnyJob, option: OptionRecord, estimate: JobEstimate, amount: float) -> float:
    """Share of paid hours in which the job gets on; none where it starts over too often."""
    rate, lost = option.interruptions_per_node_hour, option.hours_lost_per_interruption
    if job.checkpoints and job.checkpoint_every is not None:
        return option.availability / (1 + rate * (job.checkpoint_every / 2 + job.restart))
    if (job.checkpoints and (lost > 0 or rate == 0)) or (rate == 0 and not option.interruptible):
        return option.availability / (1 + rate * lost)
    count = taken_back(option, estimate, amount)
    if rate == 0 or count > MOST_PER_RUN:
        return 0.0
    times_over = (math.exp(count) - 1) / count if count > 1e-6 else 1 + count / 2
    return option.availability / times_over


def starts_anew(job: AnyJob, option: OptionRecord) -> bool:
    """Whether interruptions come and nothing is saved."""
    rate, lost = option.interruptions_per_node_hour, option.hours_lost_per_interruption
    if job.checkpoints:
        return rate > 0 and job.checkpoint_every is None and lost == 0
    return rate > 0 or option.interruptible


def refusals(
    problem: Problem, options: Iterable[OptionRecord], estimates: Sequence[JobEstimate], demands: Sequence[Demand]
) -> Iterator[Rejection]:
    """Jobs that interruptions keep off offers, option by option."""
    amounts = {demand.workload: demand.amount or 0.0 for demand in demands}
    jobs = {w.name: w for w in problem.workloads if w.kind != "service"}
    for option in options:
        for number in (n for name in jobs for n in usable_estimates(name, option, estimates)):
            estimate = estimates[number]
            job = jobs[estimate.workload]
            barred = option.interruptible and not job.interruptible
            if not barred and useful_share(job, option, estimate, amounts[job.name]) == 0:
                yield _refusal(job, option, estimate, taken_back(option, estimate, amounts[job.name]))


def _refusal(job: AnyJob, option: OptionRecord, estimate: JobEstimate, count: float) -> Rejection:
    why = "it may never end" if count > 0 else "how often its nodes are taken back is not known"
    return Rejection(
        workload=job.name,
        gpu_id=option.gpu_id,
        reason=f"on {option.option_id} it would start over at every interruption, and {why}: "
        "give checkpoint_every, or the offer's hours_lost",
        resource="interruptions",
        required=MOST_PER_RUN,
        available=min(count, 1e9),
        unit="interruptions per run",
        deployment=estimate.deployment.label,
    )
