"""What a price is for: a node or one of its GPUs, an hour or a longer span."""

import re
from dataclasses import dataclass
from functools import lru_cache

HOURS_PER_MONTH = 730
HOURS_PER_YEAR = 8760
_NODE_WORDS = ("node", "nodes", "instance", "vm", "server", "machine")
_GPU_WORDS = ("gpu", "gpus", "card", "accelerator", "chip")
_SPANS = {
    "h": (1, ""), "hr": (1, ""), "hour": (1, ""), "hourly": (1, ""),
    "day": (24, "day"), "daily": (24, "day"),
    "mo": (HOURS_PER_MONTH, "month"), "month": (HOURS_PER_MONTH, "month"), "monthly": (HOURS_PER_MONTH, "month"),
    "yr": (HOURS_PER_YEAR, "year"), "year": (HOURS_PER_YEAR, "year"), "yearly": (HOURS_PER_YEAR, "year"),
    "annum": (HOURS_PER_YEAR, "year"), "annual": (HOURS_PER_YEAR, "year"), "annually": (HOURS_PER_YEAR, "year"),
}  # fmt: skip
"""Hours of a span, and the least that is then paid for: a price per month is not to be had by the hour."""


@dataclass(frozen=True, slots=True)
class Basis:
    """A price is for a node, or for one GPU, and for so many hours (a month is 730 of them, a year 8760)."""

    per_gpu: bool = False
    hours: int = 1
    billing_step: str = ""

    @property
    def term_months(self) -> int:
        """Months that are paid at least: a price per month or year is that of a reservation; 0 for shorter spans."""
        return self.hours // HOURS_PER_MONTH


PER_NODE_HOUR = Basis()


@lru_cache(maxsize=10_000)
def price_basis(text: str) -> Basis | None:
    """`gpu`, `node-month`, `per GPU per year`, `USD/GPU/h` …; None where the cell is empty.

    Raises ValueError for words that are none of these.
    """
    words = [word for word in re.findall(r"[a-z]+", text.casefold()) if word not in ("per", "usd", "a", "and")]
    unknown = [word for word in words if word not in (*_NODE_WORDS, *_GPU_WORDS, *_SPANS)]
    spans = [_SPANS[word] for word in words if word in _SPANS]
    per_gpu, per_node = (any(word in kind for word in words) for kind in (_GPU_WORDS, _NODE_WORDS))
    if unknown or len(spans) > 1 or (per_gpu and per_node) or (text.strip() and not words):
        msg = f'per is "{text[:40]}"; write node or gpu, and month or year for such prices, e.g. gpu-month'
        raise ValueError(msg)
    return Basis(per_gpu, *(spans or [(1, "")])[0]) if words else None
