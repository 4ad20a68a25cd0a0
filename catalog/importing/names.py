"""Which GPU a row of a price file means: by name, memory, form factor and instance type."""

import re
from dataclasses import dataclass
from functools import cached_property

from catalog.importing.cells import SAME_SIZE, distance
from catalog.load import Catalog
from catalog.names_of_nodes import gpus_of_node, read_facts
from catalog.schema import Gpu

MOST_MEMORY_ERROR = 0.15
"""So far off may the memory of a GPU be whose name is clear (MI325X: 288 for 256); beyond, the row is dropped."""
NOTICED_MEMORY_ERROR = 0.08
"""Up to here two published sizes of one GPU are taken for the same (B200: 180 and 192 GB)."""

_FORM_WORDS = {"sxm": "sxm", "hgx": "sxm", "dgx": "sxm", "pcie": "pcie", "nvl": "nvl", "nvlink": "", "oam": "oam"}
_TPU = re.compile(r"tpu.*|v\d[a-z]*-\d+")


@dataclass(frozen=True, slots=True)
class Clues:
    """What a row says about its GPU. `sizes_gb` are the readings of its memory figure (empty: none given)."""

    name: str
    sizes_gb: tuple[float, ...]
    instance_type: str
    count: int
    other_name: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """The GPU meant, or why it cannot be told (`code` of DROPPED); `remark` where its memory is misstated."""

    gpu_id: str = ""
    code: str = ""
    detail: str = ""
    remark: str = ""


class GpuMatcher:
    """Finds the GPU of a row; rows with the same name and memory are settled once, as far as these settle it."""

    def __init__(self, catalog: Catalog, provider: str) -> None:
        self._catalog = catalog
        self._provider = provider
        self._known: dict[tuple[str, tuple[float, ...]], tuple[list[Gpu], Match]] = {}
        self._gpus = {gpu.gpu_id: gpu for gpu in catalog.gpus()}

    def match(self, clues: Clues) -> Match:
        """The GPU that the clues lead to."""
        key = (clues.name, clues.sizes_gb)
        if key not in self._known:
            self._known[key] = self._by_name(clues)
        fitting, match = self._known[key]
        if len(fitting) < 2:
            return self._checked(fitting[0], match, clues) if fitting else match
        settled = _settled(fitting, self._by_instance(clues)) or _settled(fitting, _by_form(fitting, clues))
        if settled is None:
            choices = " or ".join(gpu.gpu_id for gpu in fitting)
            return Match(code="ambiguous-gpu", detail=f'"{clues.name}" on {clues.instance_type or "?"}: {choices}')
        return self._checked(settled, match, clues)

    def _by_name(self, clues: Clues) -> tuple[list[Gpu], Match]:
        """GPUs of that name and memory, and what is to be said whichever it is."""
        if _TPU.fullmatch(clues.name.casefold()):
            return [], Match(code="tpu", detail=clues.name)
        candidates = [self._gpus[gpu_id] for gpu_id in self._catalog.gpu_candidates(clues.name)]
        if not candidates:
            return [], Match(code="unknown-gpu", detail=self._unknown(clues))
        fitting = _by_memory(candidates, clues.sizes_gb)
        if not fitting:
            return [], Match(code="memory-mismatch", detail=_mismatch(candidates, clues))
        off = min(distance(clues.sizes_gb, gpu.memory_sold_gb) for gpu in fitting) if clues.sizes_gb else 0.0
        return fitting, Match(remark=_mismatch(fitting, clues) if off > NOTICED_MEMORY_ERROR else "")

    def _checked(self, gpu: Gpu, match: Match, clues: Clues) -> Match:
        if clues.count > gpu.max_gpus_per_node:
            detail = f"{clues.count} × {gpu.gpu_id}; a node holds {gpu.max_gpus_per_node}"
            return Match(code="count-over-node", detail=detail)
        return Match(gpu.gpu_id, remark=match.remark)

    def _unknown(self, clues: Clues) -> str:
        near = self._catalog.gpu_suggestions(clues.name)
        return f'"{clues.name}"' + (f" (like {' or '.join(near)}?)" if near else "")

    def _by_instance(self, clues: Clues) -> set[str]:
        """GPUs of the same instance type of this provider, in the catalog's offers or the table of instance types."""
        instance = clues.instance_type.casefold()
        if instance in self._offered:
            return self._offered[instance]
        return gpus_of_node(self._provider, instance)

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


def _by_memory(candidates: list[Gpu], sizes_gb: tuple[float, ...]) -> list[Gpu]:
    """Candidates whose sold size is the nearest to the file's figure; a lone candidate may differ by more."""
    if not sizes_gb:
        return candidates
    nearest = min(distance(sizes_gb, gpu.memory_sold_gb) for gpu in candidates)
    same_size = len({gpu.memory_sold_gb for gpu in candidates}) == 1
    if nearest > (MOST_MEMORY_ERROR if same_size else SAME_SIZE):
        return []
    return [gpu for gpu in candidates if distance(sizes_gb, gpu.memory_sold_gb) <= nearest + SAME_SIZE / 4]


def _by_form(candidates: list[Gpu], clues: Clues) -> set[str]:
    """Candidates of the form factor that a word of the row names."""
    words = re.findall(r"[a-z]+", f"{clues.name} {clues.other_name} {clues.instance_type}".casefold())
    named = {_FORM_WORDS[word] for word in words if _FORM_WORDS.get(word)}
    return {gpu.gpu_id for gpu in candidates if any(form in _form(gpu) for form in named)}


def _form(gpu: Gpu) -> str:
    """`sxm`, `pcie`, `nvl` … as the id or the form factor says it."""
    identity = gpu.gpu_id.casefold()
    return "nvl" if identity.endswith("-nvl") else f"{identity} {gpu.form_factor.casefold()}"


def _settled(candidates: list[Gpu], wanted: set[str]) -> Gpu | None:
    found = [gpu for gpu in candidates if gpu.gpu_id in wanted]
    return found[0] if len(found) == 1 else None


def _mismatch(candidates: list[Gpu], clues: Clues) -> str:
    sold = " or ".join(dict.fromkeys(f"{gpu.memory_sold_gb:g}" for gpu in candidates))
    said = clues.sizes_gb[0]
    total = next((n for n in (2, 4, 8, 16) for gpu in candidates if abs(said / n - gpu.memory_sold_gb) < 1), 0)
    hint = f" ({said:g} is the total of {total})" if total else ""
    return f'"{clues.name}" with {said:g} GB; sold with {sold} GB{hint}'
