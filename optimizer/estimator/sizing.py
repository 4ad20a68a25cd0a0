"""From a rate to a number of GPUs: the fewest that do the work in time."""

from math import ceil

_ROUNDING = 1e-9
"""Relative: 2.1 ÷ 0.7 is 3.0000000000000004 in floating point, and three GPUs do it."""


def whole_gpus(need: float, group: int = 1) -> int:
    """Fewest GPUs, in multiples of `group`, that cover a fractional need."""
    groups = need / group
    return ceil(groups - _ROUNDING * max(1.0, groups)) * group


def gpus_for(work: float, units_per_gpu_hour: float, hours: float, group: int = 1) -> int:
    """Fewest GPUs that do `work` units within `hours`."""
    return whole_gpus(work / (units_per_gpu_hour * hours), group)
