"""Which job works where, at its peak, read off a solution."""

import math
from collections import defaultdict
from collections.abc import Sequence

from optimizer.model.build import Milp
from optimizer.model.interruptions import amount_of, hours_of_run
from optimizer.model.variables import WorkPlace
from optimizer.plan import Assignment
from optimizer.solver.tidy import DUST

NEARLY_WHOLE = 1e-6
"""So much of a GPU group more than a whole number of them is the solver's tolerance."""


def job_assignments(milp: Milp, values: Sequence[float]) -> list[Assignment]:
    """Per job, option and deployment: its share of the work, its peak, and its hours where it starts over."""
    shares: dict[tuple[str, str, str], float] = defaultdict(float)
    peak: dict[tuple[str, str, str], float] = defaultdict(float)
    example: dict[tuple[str, str, str], WorkPlace] = {}
    total: dict[str, float] = defaultdict(float)
    for demand in milp.instance.volume_demands:
        total[demand.workload] += demand.amount
    for place in milp.variables.places:
        share = sum(values[c] for c in (place.free, place.hired) if c is not None)
        if share <= DUST:
            continue
        key = (place.demand.workload, place.option.option_id, place.estimate.deployment.label)
        shares[key] += share * place.demand.amount / total[place.demand.workload]
        example[key] = place
        peak[key] = max(peak[key], _gpus_at_once(place, share * place.gpus_per_share))
    hours = {key: _hours(milp, place, shares[key] / peak[key]) for key, place in example.items()}
    return [
        Assignment(
            workload=key[0],
            request_class=None,
            gpu=place.option.gpu_id,
            option=key[1],
            deployment=key[2],
            replicas_peak=peak[key] / place.estimate.deployment.gpus_per_replica,
            gpus_peak=peak[key],
            share=shares[key],
            bottleneck="measured rate" if place.estimate.measured else "compute",
            utilisation=1.0,
            measured=place.estimate.measured,
            hours_undisturbed=hours[key][0],
            hours_expected=hours[key][1],
        )
        for key, place in example.items()
    ]


def _hours(milp: Milp, place: WorkPlace, part_per_gpu: float) -> tuple[float | None, float | None]:
    """Hours of a job's part of one run, undisturbed and expected, where it starts over at every interruption."""
    job = next(w for w in milp.instance.problem.workloads if w.name == place.demand.workload and w.kind != "service")
    amount = amount_of(milp.instance.estimates.demands, job.name)
    found = hours_of_run(job, place.option, place.estimate, amount)
    return (None, None) if found is None else (found[0] * part_per_gpu, found[1] * part_per_gpu)


def _gpus_at_once(place: WorkPlace, mean_gpus: float) -> int:
    """GPUs that a job works on at one time: its mean in whole groups, and no fewer than its least size."""
    group = place.estimate.deployment.gpus_per_replica
    return max(
        math.ceil(mean_gpus / group - NEARLY_WHOLE) * group, place.demand.alternatives[place.alternative].min_gpus
    )
