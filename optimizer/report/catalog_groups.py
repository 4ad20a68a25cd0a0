"""Offers in groups: how many, from what to what price per GPU-hour, and how old the oldest is."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from catalog.schema import CloudOffer
from optimizer.report.numbers import number
from optimizer.report.sections import Section, columns
from optimizer.report.words import counted

GROUP_KEYS: Mapping[str, Callable[[CloudOffer], Any]] = {
    "gpu": lambda offer: offer.gpu_id,
    "provider": lambda offer: offer.provider,
    "region": lambda offer: offer.region,
    "purchase": lambda offer: offer.purchase_option,
    "nodes": lambda offer: offer.gpus_per_node,
}
_HEADINGS = {
    "gpu": "GPU",
    "provider": "Provider",
    "region": "Region",
    "purchase": "Purchase",
    "nodes": ">GPUs per node",
}
_FIGURES = (
    "offers", "lowest_usd_per_gpu_hour", "median_usd_per_gpu_hour", "highest_usd_per_gpu_hour", "oldest_date",
    "newest_date", "undated",
)  # fmt: skip


def group_columns(keys: Sequence[str]) -> list[str]:
    """Names of a group's figures, its keys first."""
    return [*keys, *_FIGURES]


def grouped_offers(offers: Iterable[CloudOffer], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Groups of offers that agree in `keys` (of GROUP_KEYS), cheapest first."""
    groups: dict[tuple[Any, ...], list[CloudOffer]] = {}
    for offer in offers:
        groups.setdefault(tuple(GROUP_KEYS[key](offer) for key in keys), []).append(offer)
    found = [{**dict(zip(keys, values, strict=True)), **_figures(some)} for values, some in groups.items()]
    return sorted(found, key=lambda group: (group["lowest_usd_per_gpu_hour"], *(str(group[key]) for key in keys)))


def _figures(offers: Sequence[CloudOffer]) -> dict[str, Any]:
    prices = [offer.price_usd_per_node_hour / offer.gpus_per_node for offer in offers]
    days = sorted(offer.ref.date.isoformat() for offer in offers if offer.ref.date)
    undated = len(offers) - len(days)
    oldest, newest = (days[0], days[-1]) if days else (None, None)
    return dict(
        zip(
            _FIGURES,
            (len(offers), min(prices), statistics.median(prices), max(prices), oldest, newest, undated),
            strict=True,
        )
    )


def groups_section(groups: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Section:
    """Groups as a table."""
    headings = (
        *(_HEADINGS[key] for key in keys), ">Offers", ">Lowest", ">Median", ">Highest", "Oldest price", ">Undated",
    )  # fmt: skip
    rows = tuple((*(str(group[key]) for key in keys), number(group["offers"]), *_range(group)) for group in groups)
    note = f"{counted(len(groups), 'group')}; USD per GPU-hour, cheapest first."
    return Section("Catalog: offers by " + ", ".join(keys), columns(*headings), rows, (note,))


def _range(group: Mapping[str, Any]) -> tuple[str, ...]:
    prices = (number(group[f"{word}_usd_per_gpu_hour"]) for word in ("lowest", "median", "highest"))
    return (*prices, group["oldest_date"] or "unknown", number(group["undated"]))
