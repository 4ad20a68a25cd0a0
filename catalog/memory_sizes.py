"""Memory of a GPU as others write it, read as the size the GPU is sold with."""

from collections.abc import Iterable

MIB_PER_GIB = 1024
BYTES_PER_MIB = 2**20
BYTES_PER_GB = 1e9
GB_PER_GIB = 2**30 / 1e9
LEAST_MIB = 1024
"""Less than this in a field of MiB is a figure in GB (RunPod writes 80)."""
SAME_SIZE = 0.04
"""Two sizes that differ by less are one size in two units or roundings (23.6 and 24; but not 40 and 42.9)."""


def sizes_of_mib(mib: float) -> tuple[float, ...]:
    """What a figure in a MiB field may be in GB as sold: GiB (40960 → 40), decimal GB (22888 → 24.0), GB (80 → 80)."""
    if mib < LEAST_MIB:
        return (mib,)
    return (mib / MIB_PER_GIB, mib * BYTES_PER_MIB / BYTES_PER_GB)


def sizes_of_gb(gb: float) -> tuple[float, ...]:
    """What a figure in a GB field may be in GB as sold: GB, or GiB (22 → 23.6, an L4 of 24)."""
    return (gb, gb * GB_PER_GIB)


def distance(sizes: Iterable[float], sold_gb: float) -> float:
    """How far the nearest of `sizes` is from the size a GPU is sold with, as a share of that."""
    return min(abs(size / sold_gb - 1) for size in sizes)
