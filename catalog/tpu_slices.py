"""Names of TPU slices as clouds and price files write them: v5litepod-8, tpu-v5p-8, v6e-1."""

import re
from dataclasses import dataclass

_SLICE = re.compile(r"(?:(?:cloud|google)[ -])?(?:tpu[ -]?)?v(\d\d?)[ -]?(litepod|lite|e|p|x)?(?:[ -]?pod)?-(\d+)")
_LITE = {"litepod": "e", "lite": "e"}
_COUNTED_IN_CORES = ("v2", "v3", "v4", "v5p", "v7x")
"""Generations whose slices are named after TensorCores, two per chip (docs.cloud.google.com/tpu/docs/v5p)."""


@dataclass(frozen=True, slots=True)
class TpuSlice:
    """A slice: the generation of its chips (`v5e`), and how many there are."""

    generation: str
    chips: int


def tpu_slice(name: str) -> TpuSlice | None:
    """The slice that a name means; None where it is none, or where its cores make no whole chips."""
    found = _SLICE.fullmatch(name.strip().casefold().replace("_", "-"))
    if found is None:
        return None
    generation = f"v{found[1]}{_LITE.get(found[2], found[2] or '')}"
    chips, rest = divmod(int(found[3]), 2 if generation in _COUNTED_IN_CORES else 1)
    return TpuSlice(generation, chips) if chips and not rest else None
