"""Which GPU a name means, settled by what else a price file or a measurement says: memory, node type, form factor."""

import re
from collections.abc import Collection, Sequence

from catalog.errors import AmbiguousNameError, GpuMismatchError
from catalog.memory_sizes import SAME_SIZE, distance, sizes_of_gb
from catalog.names_of_nodes import gpus_of_node
from catalog.schema import Gpu

MOST_MEMORY_ERROR = 0.15
"""So far off may the memory of a GPU be whose name is clear (MI325X: 288 for 256); beyond, the two contradict."""

_FORM_WORDS = {"sxm": "sxm", "mega": "sxm", "hgx": "sxm", "dgx": "sxm", "pcie": "pcie", "pci": "pcie", "nvl": "nvl",
               "oam": "oam"}  # fmt: skip


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
    left = fitting_memory(choices, sizes_of_gb(memory_gb) if memory_gb else ())
    if not left:
        sizes = [f"{gpu.gpu_id} ({gpu.memory_sold_gb:g} GB)" for gpu in choices]
        raise GpuMismatchError(name, f"{memory_gb:g} GB", sizes)
    left = narrowed(left, gpus_of_node(instance_type or ""), f"{form_factor or ''} {instance_type or ''}")
    if len(left) > 1:
        raise AmbiguousNameError(name, [gpu.gpu_id for gpu in left])
    return left[0].gpu_id


def fitting_memory(choices: Sequence[Gpu], sizes_gb: Sequence[float]) -> list[Gpu]:
    """Choices whose sold size is nearest to a reading of the memory; all without one, none where it contradicts all.

    A choice of one size may differ by more than one of several, which must be told apart.
    """
    if not sizes_gb:
        return list(choices)
    nearest = min(distance(sizes_gb, gpu.memory_sold_gb) for gpu in choices)
    same_size = len({gpu.memory_sold_gb for gpu in choices}) == 1
    if nearest > (MOST_MEMORY_ERROR if same_size else SAME_SIZE):
        return []
    return [gpu for gpu in choices if distance(sizes_gb, gpu.memory_sold_gb) <= nearest + SAME_SIZE / 4]


def narrowed(choices: Sequence[Gpu], of_node: Collection[str], words: str) -> list[Gpu]:
    """Choices that the node type has (`of_node`: ids, none if it says nothing) and whose form factor a word names."""
    left = _where(choices, of_node)
    forms = {_FORM_WORDS[word] for word in re.findall(r"[a-z]+", words.casefold()) if word in _FORM_WORDS}
    return _where(left, {gpu.gpu_id for gpu in left if any(form in _form(gpu) for form in forms)})


def _where(choices: Sequence[Gpu], ids: Collection[str]) -> list[Gpu]:
    """The choices among `ids`; all of them where that says nothing of any."""
    return [gpu for gpu in choices if gpu.gpu_id in ids] or list(choices)


def _form(gpu: Gpu) -> str:
    """`sxm`, `pcie`, `nvl` … as the id or the form factor says it."""
    identity = gpu.gpu_id.casefold()
    return "nvl" if identity.endswith("-nvl") else f"{identity} {gpu.form_factor.casefold()}"
