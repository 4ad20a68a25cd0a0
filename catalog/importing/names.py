"""Which GPU a row of a price file means: by name, memory, vendor, node type and form factor."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from catalog.load import Catalog
from catalog.memory_sizes import SAME_SIZE, distance
from catalog.names_of_nodes import gpus_of_node, read_facts
from catalog.resolve import fitting_memory, narrowed
from catalog.schema import Gpu
from catalog.tpu_slices import TpuSlice, tpu_slice

NOTICED_MEMORY_ERROR = 0.08
"""Up to here two published sizes of one GPU are taken for the same (B200: 180 and 192 GB)."""


@dataclass(frozen=True, slots=True)
class Clues:
    """What a row says about its GPU. `sizes_gb` are the readings of its memory figure (empty: none given)."""

    name: str
    sizes_gb: tuple[float, ...]
    instance_type: str
    count: int
    other_name: str = ""
    vendor: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """The GPU meant and how many, or why it cannot be told (`code` of DROPPED); `remark`: its memory is misstated."""

    gpu_id: str = ""
    count: int = 0
    code: str = ""
    detail: str = ""
    remark: str = ""


class GpuMatcher:
    """Finds the GPU of a row; rows with the same name, memory and vendor are settled once, as far as these do it."""

    def __init__(self, catalog: Catalog, provider: str) -> None:
        self._catalog = catalog
        self._provider = provider
        self._known: dict[tuple[str, tuple[float, ...], str], tuple[list[Gpu], Match]] = {}
        self._gpus = {gpu.gpu_id: gpu for gpu in catalog.gpus()}

    def match(self, clues: Clues) -> Match:
        """The GPU that the clues lead to."""
        tpu = tpu_slice(clues.name)
        if tpu is not None:
            return self._of_slice(tpu, clues)
        key = (clues.name, clues.sizes_gb, clues.vendor)
        if key not in self._known:
            self._known[key] = self._by_name(clues)
        fitting, match = self._known[key]
        if len(fitting) > 1:
            words = f"{clues.name} {clues.other_name} {clues.instance_type}"
            fitting = narrowed(fitting, self._by_instance(clues), words)
        if len(fitting) > 1:
            choices = " or ".join(gpu.gpu_id for gpu in fitting)
            return Match(code="ambiguous-gpu", detail=f'"{clues.name}" on {clues.instance_type or "?"}: {choices}')
        return _checked(fitting[0], clues.count, match.remark) if fitting else match

    def _by_name(self, clues: Clues) -> tuple[list[Gpu], Match]:
        """GPUs of that name, vendor and memory, and what is to be said whichever it is."""
        candidates = [self._gpus[gpu_id] for gpu_id in self._catalog.gpu_candidates(clues.name)]
        if not candidates:
            return [], Match(code="unknown-gpu", detail=self._unknown(clues.name))
        if clues.vendor and all(gpu.vendor != clues.vendor for gpu in candidates):
            made = " or ".join(dict.fromkeys(gpu.vendor for gpu in candidates))
            detail = f'"{clues.name}" of {clues.vendor}; the catalog knows it of {made}'
            return [], Match(code="vendor-mismatch", detail=detail)
        fitting = fitting_memory(candidates, clues.sizes_gb)
        if not fitting:
            return [], Match(code="memory-mismatch", detail=_mismatch(candidates, clues))
        off = min(distance(clues.sizes_gb, gpu.memory_sold_gb) for gpu in fitting) if clues.sizes_gb else 0.0
        return fitting, Match(remark=_mismatch(fitting, clues) if off > NOTICED_MEMORY_ERROR else "")

    def _of_slice(self, tpu: TpuSlice, clues: Clues) -> Match:
        """A TPU slice, which files count as one; its memory may be that of a chip or of all of them."""
        gpu = self._gpus.get(f"TPU-{tpu.generation}")
        if gpu is None:
            return Match(code="tpu", detail=clues.name)
        if clues.vendor not in ("", gpu.vendor):
            detail = f'"{clues.name}" of {clues.vendor}; TPUs are of {gpu.vendor}'
            return Match(code="vendor-mismatch", detail=detail)
        if clues.count not in (1, tpu.chips):
            return Match(code="count-mismatch", detail=f"{clues.count} × {clues.name}, a slice of {tpu.chips} chips")
        sizes = (gpu.memory_sold_gb, tpu.chips * gpu.memory_sold_gb)
        if clues.sizes_gb and min(distance(clues.sizes_gb, size) for size in sizes) > SAME_SIZE:
            return Match(code="memory-mismatch", detail=_mismatch([gpu], clues))
        if tpu.chips > gpu.max_gpus_per_node:
            detail = f"{clues.name}: {tpu.chips} chips; a host has {gpu.max_gpus_per_node}"
            return Match(code="tpu-slice", detail=detail)
        return Match(gpu.gpu_id, tpu.chips)

    def _unknown(self, name: str) -> str:
        near = self._catalog.gpu_suggestions(name)
        return f'"{name}"' + (f" (like {' or '.join(near)}?)" if near else "")

    def _by_instance(self, clues: Clues) -> set[str]:
        """GPUs of the same instance type of this provider, in the catalog's offers or the table of instance types."""
        instance = clues.instance_type.casefold()
        return self._offered.get(instance) or gpus_of_node(instance, self._provider)

    @cached_property
    def _offered(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for offer in self._catalog.offers():
            if offer.provider == self._provider:
                found.setdefault(offer.instance_type.casefold(), set()).add(offer.gpu_id)
        return found


def provider_name(name: str) -> str:
    """The catalog's name of a provider that others call differently ("lambdalabs" is "lambda")."""
    plain = name.strip().casefold()
    return next((row["provider"] for row in read_facts("providers.csv") if row["name"] == plain), plain)


def _checked(gpu: Gpu, count: int, remark: str) -> Match:
    if count > gpu.max_gpus_per_node:
        detail = f"{count} × {gpu.gpu_id}; a node holds {gpu.max_gpus_per_node}"
        return Match(code="count-over-node", detail=detail)
    return Match(gpu.gpu_id, count, remark=remark)


def _mismatch(candidates: Sequence[Gpu], clues: Clues) -> str:
    sold = " or ".join(dict.fromkeys(f"{gpu.memory_sold_gb:g}" for gpu in candidates))
    said = clues.sizes_gb[0]
    total = next((n for n in (2, 4, 8, 16) for gpu in candidates if abs(said / n - gpu.memory_sold_gb) < 1), 0)
    hint = f" ({said:g} is the total of {total})" if total else ""
    return f'"{clues.name}" with {said:g} GB; sold with {sold} GB{hint}'
