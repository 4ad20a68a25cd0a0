"""Which GPU an ambiguous name means, settled by what else a price file or a measurement says of it."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

from catalog.errors import AmbiguousNameError, GpuMismatchError
from catalog.names_of_nodes import read_facts
from catalog.schema import Gpu

# Sizes as sold, as GiB and as usable MiB differ by up to 8 % (L4: 22 of 24); 80 and 94 GB by 15 %.
MEMORY_TOLERANCE = 0.12
_FORM_WORDS = {"sxm": ("sxm", "mega", "hgx", "dgx"), "pcie": ("pcie", "pci"), "nvl": ("nvl",), "oam": ("oam",)}


def settle_gpu(
    name: str,
    choices: Sequence[Gpu],
    memory_gb: float | None = None,
    form_factor: str | None = None,
    instance_type: str | None = None,
) -> str:
    """The id among `choices` that fits memory per GPU, form factor and instance type.

    Raises
    ------
    GpuMismatchError
        If what is said of it fits none of the choices (an A100 of 24 GB).
    AmbiguousNameError
        If several choices are left.
    """
    left = _of_memory(name, choices, memory_gb)
    left = _where(left, _gpus_of_node_type(instance_type or ""))
    for text in (form_factor, instance_type):
        forms = _forms(text or "")
        left = _where(left, {gpu.gpu_id for gpu in left if forms & _forms(f"{gpu.gpu_id} {gpu.form_factor}")})
    if len(left) == 1:
        return left[0].gpu_id
    raise AmbiguousNameError(name, [gpu.gpu_id for gpu in left])


def _of_memory(name: str, choices: Sequence[Gpu], memory_gb: float | None) -> Sequence[Gpu]:
    """The choices whose size is nearest to `memory_gb`, if within the tolerance."""
    if not memory_gb:
        return choices
    distance = {gpu.gpu_id: _distance(gpu, memory_gb) for gpu in choices}
    nearest = min(distance.values())
    if nearest > MEMORY_TOLERANCE:
        sizes = [f"{gpu.gpu_id} ({gpu.memory_sold_gb:g} GB)" for gpu in choices]
        raise GpuMismatchError(name, f"{memory_gb:g} GB", sizes)
    return [gpu for gpu in choices if distance[gpu.gpu_id] == nearest]


def _distance(gpu: Gpu, memory_gb: float) -> float:
    return abs(memory_gb / gpu.memory_sold_gb - 1)


def _gpus_of_node_type(instance_type: str) -> set[str]:
    """GPUs of the nodes of that name, at any provider."""
    wanted = instance_type.casefold()
    return {gpu_id for pattern, gpu_id in _node_types().items() if wanted and fnmatchcase(wanted, pattern)}


@cache
def _node_types() -> Mapping[str, str]:
    return {row["instance_pattern"].casefold(): row["gpu_id"] for row in read_facts("instance_types.csv")}


def _where(choices: Sequence[Gpu], ids: set[str]) -> Sequence[Gpu]:
    """The choices among `ids`; all of them where that says nothing of any."""
    return [gpu for gpu in choices if gpu.gpu_id in ids] or choices


def _forms(text: str) -> set[str]:
    words = re.findall(r"[a-z]+", text.casefold())
    return {form for form, spellings in _FORM_WORDS.items() if any(word in spellings for word in words)}
