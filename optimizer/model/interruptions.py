"""What interruptions cost a job on an offer: lost work since the last checkpoint, or all of it.

With interruptions at a rate λ per node-hour and c hours lost each, 1 ÷ (1 + λc) of the hours are useful. Without
checkpoints a job starts over: a run of H node-hours takes (e^(λH) − 1) ÷ λ node-hours on average, whatever its size
(restart after exponential interruptions; e.g. Ross, Introduction to Probability Models, on renewal).
"""

import math
from collections.abc import Iterator, Sequence

from optimizer.estimator.types import Demand, Estimates, JobEstimate, Rejection
from optimizer.estimator.workloads import AnyJob
from optimizer.model.entities import occupied_gpus
from optimizer.model.option import Option
from optimizer.problem.schema import Problem

MOST_INTERRUPTIONS = 1.2564
"""Mean interruptions of one run (λH) up to which starting over is priced: there a run takes twice its hours."""


def starts_over(job: AnyJob, option: Option) -> bool:
    """Whether an interruption loses the whole run: nothing says that there are checkpoints, and how often."""
    if not job.checkpoints:
        return option.interruptible or option.interruptions_per_node_hour > 0
    known = job.checkpoint_every is not None or option.hours_lost_per_interruption > 0
    return option.interruptions_per_node_hour > 0 and not known


def useful_share(job: AnyJob, option: Option, estimate: JobEstimate, amount: float) -> float:
    """Useful share of the paid hours of a job on an option; 0: it may never end there."""
    if not starts_over(job, option):
        lost = option.hours_lost_per_interruption
        if job.checkpoint_every is not None:
            lost = job.checkpoint_every / 2 + job.restart
        return option.availability / (1.0 + option.interruptions_per_node_hour * lost)
    expected = interruptions_of_run(option, estimate, amount)
    if option.interruptions_per_node_hour == 0 or expected > MOST_INTERRUPTIONS:
        return 0.0
    return option.availability * (expected / math.expm1(expected) if expected > 0 else 1.0)


def interruptions_of_run(option: Option, estimate: JobEstimate, amount: float) -> float:
    """Mean interruptions in the node-hours of one undisturbed run: λH."""
    group, size = estimate.deployment.gpus_per_replica, option.gpus_per_node
    gpu_hours = amount / (estimate.units_per_gpu_hour * option.availability)
    return option.interruptions_per_node_hour * gpu_hours * occupied_gpus(group, size) / group / size


def hours_of_run(job: AnyJob, option: Option, estimate: JobEstimate, amount: float) -> tuple[float, float] | None:
    """GPU-hours of an amount without interruptions, and on average where it starts over (None: it never does)."""
    share = useful_share(job, option, estimate, amount)
    if share == 0 or not starts_over(job, option):
        return None
    gpu_hours = amount / estimate.units_per_gpu_hour
    return gpu_hours / option.availability, gpu_hours / share


def refused_runs(
    problem: Problem, estimates: Estimates, fitting: Sequence[tuple[Option, JobEstimate]]
) -> Iterator[Rejection]:
    """Jobs that interruptions keep off an offer, of the pairs that fit else."""
    amounts = {d.workload: d.amount or 0.0 for d in estimates.demands}
    jobs = {w.name: w for w in problem.workloads if w.kind != "service"}
    for option, estimate in fitting:
        job = jobs.get(estimate.workload)
        amount = amounts.get(estimate.workload, 0.0)
        if job is None or (not job.interruptible and option.interruptible):
            continue
        if useful_share(job, option, estimate, amount) == 0:
            expected = interruptions_of_run(option, estimate, amount)
            yield _refused(job, option, estimate, expected)


def _refused(job: AnyJob, option: Option, estimate: JobEstimate, expected: float) -> Rejection:
    why = "how often its nodes are taken back is not known" if expected == 0 else "it may never end"
    hint = "give checkpoint_every, or the offer's hours_lost"
    return Rejection(
        job.name,
        option.gpu_id,
        f"on {option.option_id} it would start over at every interruption, and {why}: {hint}",
        "interruptions",
        MOST_INTERRUPTIONS,
        min(expected, 1e9),
        "interruptions per run",
        estimate.deployment.label,
    )


def amount_of(demands: Sequence[Demand], job: str) -> float:
    """Work of one run of a job (of one day, for daily work)."""
    return next((d.amount or 0.0 for d in demands if d.workload == job), 0.0)
