"""Is a catalog sound, and are its prices plausible? One function per rule; each finding has its file and line.

An error is something that cannot be true; a warning is something that seldom is. Thresholds after the mistakes that
public catalogs have made (docs/catalog.md lists them).
"""

import re
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

from catalog.errors import CatalogFileError
from catalog.gpu_figures import ERROR, WARNING, doubtful_figures
from catalog.load import Catalog
from catalog.names_of_nodes import gpus_of_node
from catalog.packaged import packaged_nodes
from catalog.schema import CloudOffer, Gpu, ServerOffer, SourceRef

LOW_SHARE_OF_MEDIAN = 0.2
HIGH_MULTIPLE_OF_MEDIAN = 5.0
OTHER_UNIT_MULTIPLE = 100.0
"""So far above the median of its GPU is no price per hour; a price per month is (730 hours)."""
SPOT_LOW_SHARE_OF_MEDIAN = 0.05
LEAST_OFFERS_FOR_A_MEDIAN = 4
SPOT_FLOOR_SHARE = 0.25
"""A spot price below this share of on-demand is usually a "from" price or the floor of an auction."""
DEARER_PER_GPU = 1.25
STALE_DAYS = 365

T = TypeVar("T")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that cannot be (error) or seldom is (warning), and where."""

    file: str
    line: int
    severity: str
    code: str
    message: str


@dataclass(frozen=True)
class Stock:
    """What is checked, and what it is compared with."""

    gpus: tuple[Gpu, ...]
    offers: tuple[CloudOffer, ...]
    servers: tuple[ServerOffer, ...]
    market: tuple[CloudOffer, ...]
    """All offers, also those that are not checked themselves: medians are taken over these."""
    known_gpus: dict[str, Gpu]
    today: date
    stale_days: int
    faulty_gpus: frozenset[str] = frozenset()
    """GPUs that are sold and have a row, which cannot be read."""

    @cached_property
    def medians(self) -> dict[str, float]:
        """Median on-demand price per GPU-hour of each GPU with enough offers."""
        prices = _grouped(
            (offer for offer in self.market if offer.purchase_option == "on-demand"), lambda offer: offer.gpu_id
        )
        return {
            gpu_id: statistics.median(map(per_gpu, offers))
            for gpu_id, offers in prices.items()
            if len(offers) >= LEAST_OFFERS_FOR_A_MEDIAN
        }

    @cached_property
    def on_demand(self) -> dict[Hashable, CloudOffer]:
        """The on-demand offer of each node type and place."""
        return {_node(offer): offer for offer in self.market if offer.purchase_option == "on-demand"}


def check_catalog(
    catalog: Catalog, today: date, *, files: Iterable[str] | None = None, stale_days: int = STALE_DAYS
) -> list[Finding]:
    """Every finding, in the order of files and lines; with `files` only those of these price files (by their names)."""
    wanted = None if files is None else set(files)
    records: list[tuple[str, Any]] = list(catalog.scan())
    sound = [(kind, row) for kind, row in records if not isinstance(row, CatalogFileError)]
    stock = _stock(sound, wanted, today, stale_days)
    sold = ({o.gpu_id for o in stock.offers} | {s.gpu_id for s in stock.servers}) - stock.known_gpus.keys()
    stock = replace(stock, faulty_gpus=frozenset(name for name in sold if name in catalog.gpu_candidates(name)))
    faults = [(kind, row) for kind, row in records if isinstance(row, CatalogFileError)]
    found = [
        _of_fault(fault)
        for kind, fault in faults
        if wanted is None or fault.file in wanted or (kind == "gpu" and stock.faulty_gpus)
    ]
    for rule in RULES:
        found += rule(stock)
    if wanted is None:
        found += unknown_alias_targets(catalog)
    return sorted(found, key=lambda finding: (finding.file, finding.line, finding.severity, finding.code))


def per_gpu(offer: CloudOffer) -> float:
    """Price per GPU-hour in USD."""
    return offer.price_usd_per_node_hour / offer.gpus_per_node


def _stock(records: Iterable[tuple[str, Any]], wanted: set[str] | None, today: date, stale_days: int) -> Stock:
    kinds: dict[str, list[Any]] = {"gpu": [], "offer": [], "server": []}
    for kind, row in records:
        kinds.setdefault(kind, []).append(row)

    def checked(kind: str) -> tuple[Any, ...]:
        return tuple(row for row in kinds[kind] if wanted is None or row.ref.file in wanted)

    gpus = {gpu.gpu_id: gpu for gpu in kinds["gpu"]}
    market = tuple(kinds["offer"])
    return Stock(checked("gpu"), checked("offer"), checked("server"), market, gpus, today, stale_days)


def _of_fault(fault: CatalogFileError) -> Finding:
    """A row that the reader refuses."""
    column = fault.column or ""
    code = "price" if column.startswith("price_usd") else "memory" if column.startswith("memory") else "row"
    if "is already on line" in fault.message:
        code = "duplicate"
    if "sparse" in fault.message:
        code = "sparse-peak"
    place = f"{column}: " if column else ""
    return Finding(fault.file, fault.line, ERROR, code, f"{place}{fault.message}")


def _about(ref: SourceRef, severity: str, code: str, message: str) -> Finding:
    return Finding(ref.file, ref.line, severity, code, message)


def _grouped(items: Iterable[Item], key: Callable[[Item], T]) -> dict[T, list[Item]]:
    groups: dict[T, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _node(offer: CloudOffer) -> Hashable:
    return (offer.provider, offer.region, offer.instance_type, offer.gpu_id, offer.gpus_per_node)


# --- prices -----------------------------------------------------------------------------------------------------------


def reserved_dearer(stock: Stock) -> Iterator[Finding]:
    """A commitment that costs more per hour than the same node on demand."""
    for offer in stock.offers:
        other = stock.on_demand.get(_node(offer)) if offer.purchase_option in ("reserved", "committed-use") else None
        if other is not None and offer.price_usd_per_node_hour > other.price_usd_per_node_hour:
            price, least = offer.price_usd_per_node_hour, other.price_usd_per_node_hour
            message = f"{offer.purchase_option} {price:g} is above on-demand {least:g} USD per node-hour"
            yield _about(offer.ref, WARNING, "reserved-dearer", message)


def spot_not_cheaper(stock: Stock) -> Iterator[Finding]:
    """A spot price at or above on-demand: it happens (skypilot issue 4914), and then spot is no bargain."""
    for spot, price in _spot_prices(stock):
        if spot.price_usd_per_node_hour >= price:
            message = f"spot {spot.price_usd_per_node_hour:g} is not below on-demand {price:g} USD per node-hour"
            yield _about(spot.ref, WARNING, "spot-not-cheaper", message)


def spot_is_a_floor(stock: Stock) -> Iterator[Finding]:
    """A spot price below a quarter of on-demand: usually a "from" price or the floor of an auction."""
    for spot, price in _spot_prices(stock):
        share = spot.price_usd_per_node_hour / price
        if share < SPOT_FLOOR_SHARE:
            yield _about(spot.ref, WARNING, "spot-floor", f"spot is {share:.0%} of on-demand: is it what is paid?")


def _spot_prices(stock: Stock) -> Iterator[tuple[CloudOffer, float]]:
    """Spot offers with the on-demand price of the same node."""
    for offer in stock.offers:
        on_demand = stock.on_demand.get(_node(offer)) if offer.purchase_option == "spot" else None
        if on_demand is not None:
            yield offer, on_demand.price_usd_per_node_hour


def far_from_the_median(stock: Stock) -> Iterator[Finding]:
    """Below 20 % of the on-demand median of the GPU (spot: 5 %), or above five times it: per GPU for per node.

    From a hundred times on it is an error: the price of another span of time.
    """
    for offer in stock.offers:
        median = stock.medians.get(offer.gpu_id)
        if median is None:
            continue
        multiple = per_gpu(offer) / median
        least = SPOT_LOW_SHARE_OF_MEDIAN if offer.purchase_option == "spot" else LOW_SHARE_OF_MEDIAN
        said = f"{per_gpu(offer):.3g} USD per GPU-hour, {multiple:.0%} of the median of {offer.gpu_id} ({median:.3g})"
        if multiple < least and not offer.upfront_usd_per_node:
            yield _about(offer.ref, WARNING, "low-price", said)
        elif multiple > OTHER_UNIT_MULTIPLE:
            yield _about(offer.ref, ERROR, "high-price", f"{said}: is it the price of a month?")
        elif multiple > HIGH_MULTIPLE_OF_MEDIAN:
            yield _about(offer.ref, WARNING, "high-price", said)


def price_not_scaled(stock: Stock) -> Iterator[Finding]:
    """The price of one GPU on a node of several (skypilot-catalog PR 44)."""
    for offers in _by_market(stock).values():
        singles = {offer.price_usd_per_node_hour for offer in offers if offer.gpus_per_node == 1}
        for offer in offers:
            if offer.gpus_per_node > 1 and offer.price_usd_per_node_hour in singles:
                message = (
                    f"{offer.gpus_per_node} GPUs at the price of one ({offer.price_usd_per_node_hour:g}): per GPU?"
                )
                yield _about(offer.ref, ERROR, "price-not-scaled", message)


def bigger_node_cheaper(stock: Stock) -> Iterator[Finding]:
    """A node with more GPUs that costs less than one with fewer (dstack issue 1044): a plan may use it, but look."""
    for small, big in _neighbours(stock):
        if big.price_usd_per_node_hour < small.price_usd_per_node_hour:
            message = (
                f"{big.gpus_per_node} GPUs at {big.price_usd_per_node_hour:g}, {small.gpus_per_node} at "
                f"{small.price_usd_per_node_hour:g} USD per node-hour ({small.offer_id})"
            )
            yield _about(big.ref, WARNING, "bigger-node-cheaper", message)


def smaller_node_dearer(stock: Stock) -> Iterator[Finding]:
    """A smaller node that costs over 25 % more per GPU than the next bigger one of the same market."""
    for small, big in _neighbours(stock):
        times = per_gpu(small) / per_gpu(big)
        if times > DEARER_PER_GPU and big.price_usd_per_node_hour > small.price_usd_per_node_hour:
            message = f"{times:.2f} × the price per GPU of {big.offer_id}"
            yield _about(small.ref, WARNING, "smaller-node-dearer", message)


def _neighbours(stock: Stock) -> Iterator[tuple[CloudOffer, CloudOffer]]:
    """The cheapest node of a size and of the next bigger size, in each market."""
    for offers in _by_market(stock).values():
        sizes = _grouped(sorted(offers, key=per_gpu), lambda offer: offer.gpus_per_node)
        yield from pairwise(sizes[count][0] for count in sorted(sizes))


def _by_market(stock: Stock) -> dict[Hashable, list[CloudOffer]]:
    """Checked offers of one GPU, place and way of paying."""
    return _grouped(stock.offers, lambda o: (o.provider, o.region, o.gpu_id, o.purchase_option, o.term_months))


def server_price(stock: Stock) -> Iterator[Finding]:
    """A server below 20 % of the median of its GPU, per GPU, or above five times it."""
    prices = _grouped(stock.servers, lambda server: server.gpu_id)
    for servers in prices.values():
        median = statistics.median(s.price_usd_per_node / s.gpus_per_node for s in servers)
        for server in servers:
            price = server.price_usd_per_node / server.gpus_per_node
            code = "low-price" if price < LOW_SHARE_OF_MEDIAN * median else "high-price"
            if price < LOW_SHARE_OF_MEDIAN * median or price > HIGH_MULTIPLE_OF_MEDIAN * median:
                yield _about(server.ref, WARNING, code, f"{price:,.0f} USD per GPU; the median is {median:,.0f}")


# --- identity ---------------------------------------------------------------------------------------------------------


def duplicates(stock: Stock) -> Iterator[Finding]:
    """The same offer twice under two ids: at one price, or at two (which tier is which? dstack issue 1886)."""
    same = _grouped(stock.offers, lambda offer: (_node(offer), offer.purchase_option, offer.term_months))
    for offers in same.values():
        for offer in offers[1:]:
            first = offers[0]
            price, other = offer.price_usd_per_node_hour, first.price_usd_per_node_hour
            if price == other:
                message = f"the same offer as {first.ref.file}:{first.ref.line}"
                yield _about(offer.ref, ERROR, "duplicate", message)
            else:
                message = f"{price:g} here, {other:g} at line {first.ref.line}: name the tier in instance_type"
                yield _about(offer.ref, WARNING, "tier-mix", message)


def unknown_gpus(stock: Stock) -> Iterator[Finding]:
    """Offers and servers of a GPU that the catalog does not have."""
    sold: tuple[CloudOffer | ServerOffer, ...] = (*stock.offers, *stock.servers)
    for entry in sold:
        if entry.gpu_id not in stock.known_gpus and entry.gpu_id not in stock.faulty_gpus:
            yield _about(entry.ref, ERROR, "unknown-gpu", f"{entry.gpu_id} is not in gpus.csv")


def unknown_alias_targets(catalog: Catalog) -> Iterator[Finding]:
    """Other names of GPUs or models that the catalog does not have."""
    for kind, name, target in catalog.unknown_alias_targets():
        yield Finding("aliases.csv", 1, ERROR, "unknown-alias", f"{kind} {name!r} means {target}, which is not there")


def count_over_node(stock: Stock) -> Iterator[Finding]:
    """More GPUs than a node of that GPU holds (skypilot-catalog PR 50: 12 for 8)."""
    sold: tuple[CloudOffer | ServerOffer, ...] = (*stock.offers, *stock.servers)
    for entry in sold:
        gpu = stock.known_gpus.get(entry.gpu_id)
        if gpu is not None and entry.gpus_per_node > gpu.max_gpus_per_node:
            message = f"{entry.gpus_per_node} × {gpu.gpu_id}; a node holds {gpu.max_gpus_per_node}"
            yield _about(entry.ref, ERROR, "count-over-node", message)


def count_of_node(stock: Stock) -> Iterator[Finding]:
    """Another number of GPUs than the provider's node type has (p5.48xlarge: 8)."""
    for offer in stock.offers:
        counts = {count for _, count in packaged_nodes(offer.provider).get(offer.instance_type.casefold(), ())}
        if counts and offer.gpus_per_node not in counts:
            had = " or ".join(map(str, sorted(counts)))
            message = f"{offer.instance_type} has {had} GPUs, not {offer.gpus_per_node} (packaged catalog)"
            yield _about(offer.ref, ERROR, "count-of-node", message)


def gpu_mixup(stock: Stock) -> Iterator[Finding]:
    """Another GPU than the node type has, or another memory size than its name says (skypilot-catalog PR 15)."""
    for offer in stock.offers:
        sold = packaged_nodes(offer.provider).get(offer.instance_type.casefold(), ())
        had = {gpu_id for gpu_id, _ in sold} or gpus_of_node(offer.instance_type, offer.provider)
        if had and offer.gpu_id not in had:
            message = f"{offer.instance_type} has {' or '.join(sorted(had))}, not {offer.gpu_id}"
            yield _about(offer.ref, ERROR, "gpu-mixup", message)
            continue
        said, own = _other_size(offer, stock)
        if said:
            message = f"{offer.instance_type} says {said}, {offer.gpu_id} has {own:g} GB"
            yield _about(offer.ref, WARNING, "gpu-mixup", message)


def _other_size(offer: CloudOffer, stock: Stock) -> tuple[str, float]:
    """A memory size in the instance's name that is that of another variant of the GPU; empty if there is none."""
    gpu = stock.known_gpus.get(offer.gpu_id)
    if gpu is None:
        return "", 0.0
    family = offer.gpu_id.split("-")[0]
    others = {other.memory_sold_gb for other in stock.known_gpus.values() if other.gpu_id.split("-")[0] == family}
    said = re.findall(r"(?<![0-9])(\d+)\s?gb(?![a-z])", offer.instance_type.casefold())
    sizes = {float(size) for size in said}
    wrong = sorted(sizes & (others - {gpu.memory_sold_gb})) if gpu.memory_sold_gb not in sizes else []
    return (f"{wrong[0]:g} GB", gpu.memory_sold_gb) if wrong else ("", 0.0)


# --- GPUs and dates ---------------------------------------------------------------------------------------------------


def doubtful_gpus(stock: Stock) -> Iterator[Finding]:
    """Figures of a GPU that look sparse, cannot be, or are not those of the packaged catalog."""
    for gpu in stock.gpus:
        for severity, code, message in doubtful_figures(gpu):
            yield _about(gpu.ref, severity, code, message)


def old_prices(stock: Stock) -> Iterator[Finding]:
    """Prices older than the limit, without a date, or of a day to come."""
    for offer in stock.offers:
        day = offer.ref.date
        if day is None:
            yield _about(offer.ref, WARNING, "undated", "date unknown: fails every age limit")
        elif day > stock.today:
            severity = WARNING if offer.ref.file.startswith("catalog/") else ERROR
            yield _about(offer.ref, severity, "future", f"priced on {day}, a day to come")
        elif (stock.today - day).days > stock.stale_days:
            yield _about(offer.ref, WARNING, "stale", f"priced on {day}, {(stock.today - day).days} days ago")


RULES: tuple[Callable[[Stock], Iterator[Finding]], ...] = (
    spot_not_cheaper,
    spot_is_a_floor,
    reserved_dearer,
    far_from_the_median,
    price_not_scaled,
    bigger_node_cheaper,
    smaller_node_dearer,
    server_price,
    duplicates,
    unknown_gpus,
    count_over_node,
    count_of_node,
    gpu_mixup,
    doubtful_gpus,
    old_prices,
)
