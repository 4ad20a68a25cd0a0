"""Which deployments are worth keeping."""

from collections.abc import Iterable, Sequence

from optimizer.estimator.types import Rejection, ServiceEstimate

KEPT_PER_SERVICE_AND_GPU = 4
_RELATIVE_TOLERANCE = 1e-9


def gpu_seconds(estimate: ServiceEstimate) -> dict[str, float]:
    """GPU-seconds that a request of each class costs at the utilisation cap."""
    gpus = estimate.deployment.gpus_per_replica
    return {c.request_class: c.replica_seconds_per_request * gpus / estimate.utilisation_cap for c in estimate.classes}


def dominates(better: ServiceEstimate, worse: ServiceEstimate) -> bool:
    """Whether `better` serves every class of `worse` for no more GPU-seconds, with no more GPUs per replica."""
    if better.deployment.gpus_per_replica > worse.deployment.gpus_per_replica:
        return False
    cheap, dear = gpu_seconds(better), gpu_seconds(worse)
    return all(name in cheap and cheap[name] <= seconds * (1 + _RELATIVE_TOLERANCE) for name, seconds in dear.items())


def without_dominated(estimates: Sequence[ServiceEstimate]) -> tuple[list[ServiceEstimate], list[Rejection]]:
    """Drop dominated deployments, and those beyond the four most efficient; each with its reason."""
    ordered = sorted(estimates, key=lambda e: (e.deployment.gpus_per_replica, sum(gpu_seconds(e).values())))
    kept: list[ServiceEstimate] = []
    dropped: list[Rejection] = []
    for candidate in ordered:
        rival = next((k for k in kept if dominates(k, candidate)), None)
        if rival is None:
            kept.append(candidate)
        else:
            dropped.append(_dropped(candidate, rival, f"dominated by {rival.deployment.label}"))
    best = _most_efficient(kept)
    reason = f"not among the {KEPT_PER_SERVICE_AND_GPU} most efficient deployments of this GPU"
    dropped.extend(_dropped(k, best[0], reason) for k in kept if k not in best)
    return best, dropped


def _most_efficient(kept: Sequence[ServiceEstimate]) -> list[ServiceEstimate]:
    """Keep those that serve the most classes, then the cheapest in GPU-seconds, in order of size."""
    ranked = sorted(kept, key=lambda e: (-len(e.classes), sum(gpu_seconds(e).values())))
    best = ranked[:KEPT_PER_SERVICE_AND_GPU]
    return [k for k in kept if k in best]


def _dropped(worse: ServiceEstimate, better: ServiceEstimate, reason: str) -> Rejection:
    names = gpu_seconds(worse).keys() & gpu_seconds(better).keys()
    return Rejection(
        workload=worse.workload,
        gpu_id=worse.gpu_id,
        reason=reason,
        resource="dominated",
        required=_total(worse, names),
        available=_total(better, names),
        unit="GPU-seconds per request of each class",
        deployment=worse.deployment.label,
    )


def _total(estimate: ServiceEstimate, names: Iterable[str]) -> float:
    seconds = gpu_seconds(estimate)
    return sum(seconds[name] for name in names)
