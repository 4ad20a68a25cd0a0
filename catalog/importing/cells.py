"""Cells of other people's price files: numbers as people write them, memory as the size a GPU is sold with."""

import ast
import json
import math
import re
import warnings
from functools import lru_cache
from typing import Any

from catalog.memory_sizes import sizes_of_gb, sizes_of_mib

_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
_MONEY_MARKS = re.compile(r"^(US)?\$\s*|^USD\s*|\s*USD(/h(our)?)?$|\s*(US)?\$$")

_MEMORY_UNIT = re.compile(r"\s*(gb|gib|g|mb|mib)$", re.IGNORECASE)

LONGEST_LITERAL = 20_000


@lru_cache(maxsize=100_000)
def number(text: str) -> float | None:
    """A number with or without thousands separators and a dollar mark; None where the cell is empty.

    Raises ValueError for anything else: `nan`, `1,5` and `1.234,50` could mean several things or nothing.
    """
    text = _MONEY_MARKS.sub("", text.strip())
    if not text:
        return None
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if not _PLAIN.fullmatch(text):
        msg = f'"{text[:40]}" is not a number; write e.g. 12.50'
        raise ValueError(msg)
    value = float(text)
    if not math.isfinite(value):
        msg = f'"{text[:40]}" is too large'
        raise ValueError(msg)
    return value


def optional_number(text: str) -> float | None:
    """A number of secondary interest (vCPUs, host memory): None where it is empty or unreadable."""
    try:
        return number(text)
    except ValueError:
        return None


def whole_count(value: float | None) -> int | None:
    """`8.0` → 8; None where it is no whole number above 0 (a fraction of a GPU, a missing count)."""
    if value is None or value < 1 or value != int(value):
        return None
    return int(value)


def memory_sizes(text: str) -> tuple[float, ...]:
    """What a memory cell (`80`, `80GB`, `80 GiB`, `81920 MiB`) may be in GB as sold; nothing where it is empty or 0.

    Raises ValueError for what is no number with one of these units.
    """
    said = _MEMORY_UNIT.search(text.strip())
    value = number(text.strip()[: said.start()] if said else text)
    if not value:
        return ()
    return sizes_of_mib(value) if said and said[1].casefold().startswith("m") else sizes_of_gb(value)


@lru_cache(maxsize=10_000)
def gpu_info(text: str) -> tuple[str, float | None, float | None]:
    """Name, memory per GPU (MiB) and count in SkyPilot's `GpuInfo`, a JSON text or a Python literal.

    What cannot be read is "" or None; the total is never used (some clouds write one GPU's memory there).
    """
    first = _first_gpu(_literal(text))
    memory = first.get("MemoryInfo")
    size = memory.get("SizeInMiB") if isinstance(memory, dict) else None
    name = first.get("Name")
    return (name if isinstance(name, str) else "", _finite(size), _finite(first.get("Count")))


def _literal(text: str) -> Any:
    if not text or len(text) > LONGEST_LITERAL:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _first_gpu(info: Any) -> dict[str, Any]:
    gpus = info.get("Gpus") if isinstance(info, dict) else None
    first = gpus[0] if isinstance(gpus, list | tuple) and gpus else None
    return first if isinstance(first, dict) else {}


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 1e12 else None
