"""What a request needs of the three resources of a replica, beside its time."""

from collections.abc import Callable

from optimizer.estimator.types import ClassEstimate, ServiceEstimate


def _ratio(required: float, ceiling: float) -> float:
    """Replicas needed per request/s by one resource; 0 where the estimate names no ceiling (measured rates)."""
    return required / ceiling if ceiling > 0 else 0.0


RESOURCES: dict[str, Callable[[ServiceEstimate, ClassEstimate], float]] = {
    "compute": lambda e, c: _ratio(c.flop_per_request, e.effective_flop_per_s),
    "memory_bandwidth": lambda e, c: _ratio(c.moved_bytes_per_request, e.effective_bytes_per_s),
    "memory_capacity": lambda e, c: _ratio(c.kv_bytes_per_sequence * c.residence_s, e.free_memory_bytes),
}
"""Replicas that one request/s of a class needs of a resource."""
