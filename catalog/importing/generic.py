"""Price tables of one's own (form `csv`): a header with our names, or with others and a map from ours to them."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime

from catalog.checks import BILLING_STEPS, PURCHASE_OPTIONS
from catalog.errors import CatalogFileError
from catalog.importing.basis import Basis, price_basis
from catalog.importing.cells import memory_sizes, number, optional_number, whole_count
from catalog.importing.headers import Header
from catalog.importing.names import Clues, GpuMatcher, Match
from catalog.importing.offers import HIGHEST_PRICE, LOWEST_PRICE, ImportRun, PriceRow
from catalog.importing.tables import TextTable

REQUIRED = ("gpu", "price")
OPTIONAL = (
    "gpus_per_node", "instance_type", "region", "purchase_option", "per", "currency", "gpu_memory_gb", "term_months",
    "upfront", "billing_step", "vcpus", "ram_gib", "priced_on", "source", "notes",
)  # fmt: skip
"""Our columns: `price` is USD per node and hour, or as `per` says (gpu, node-month, gpu-year …); `upfront` per node."""
_OPTION_WORDS = {
    "": "on-demand", "ondemand": "on-demand", "payasyougo": "on-demand", "paygo": "on-demand", "payg": "on-demand",
    "list": "on-demand",
    "preemptible": "spot", "interruptible": "spot", "committed": "committed-use", "commitment": "committed-use",
    "committeduse": "committed-use", "reservation": "reserved",
}  # fmt: skip

_FOREIGN = re.compile(r"[€£¥₹₩]|\b(EUR|GBP|CNY|RMB|JPY|INR|CHF|CAD|AUD|KRW|SEK)\b", re.IGNORECASE)
"""Marks of other currencies in a price."""


def read_generic(table: TextTable, matcher: GpuMatcher, run: ImportRun) -> None:
    """Add the offers of a table with our columns to `run`.

    Raises CatalogFileError for an unknown column in the map, and for one of the file that it should name.
    """
    places = _places(table, dict(run.settings.columns), run)
    for line, cells in table.rows:
        run.lines_read += 1
        if len(cells) != len(table.header):
            run.drop(line, "ragged", f"{len(cells)} cells, the header has {len(table.header)}")
            continue
        named = {name: cells[place].strip() for name, place in places.items()}
        try:
            row = _row(line, named, matcher, run)
        except ValueError as error:
            run.drop(line, "unreadable", str(error))
            continue
        if row is not None:
            run.rows.append(row)


def _places(table: TextTable, columns: Mapping[str, str], run: ImportRun) -> dict[str, int]:
    """Where each of our columns stands in the file; the others are noted in `run`."""
    ours = (*REQUIRED, *OPTIONAL)
    unknown = [name for name in columns if name not in ours]
    if unknown:
        msg = f"columns: {', '.join(unknown)} is none of {', '.join(ours)}"
        raise CatalogFileError(table.label, 1, None, msg)
    header = Header(table.header, table.label)
    theirs = {name: header.find(columns.get(name, name)) for name in ours}
    found = table.columns([theirs[name] for name in (*REQUIRED, *columns)], [theirs[name] for name in OPTIONAL])
    run.unread_columns = header.unread({name: theirs[name] for name in ours if theirs[name] in found})
    return {name: found[theirs[name]] for name in ours if theirs[name] in found}


def _row(line: int, cells: Mapping[str, str], matcher: GpuMatcher, run: ImportRun) -> PriceRow | None:
    """One offer. Raises ValueError for a cell that cannot be read."""
    if not cells["gpu"]:
        run.drop(line, "no-gpu", cells.get("instance_type", ""))
        return None
    foreign = _FOREIGN.search(cells["price"])
    if foreign or cells.get("currency", "").upper() not in ("", "USD", "$", "US$"):
        run.drop(line, "currency", f"{cells['gpu']}: {foreign[0] if foreign else cells['currency']}")
        return None
    price, said_count = number(cells["price"]), number(cells.get("gpus_per_node", "") or "1")
    count = whole_count(said_count)
    if count is None:
        run.drop(line, "fraction-of-gpu" if said_count and said_count > 0 else "no-count", cells["gpus_per_node"])
        return None
    if price is None or price <= 0:
        said = f"{price:g} is negative" if price else cells["price"] or "no price"
        run.drop(line, "no-price", f"{cells['gpu']}: {said}")
        return None
    basis = price_basis(cells.get("per", "")) or run.settings.basis
    gpu = _gpu(line, cells, count, matcher, run)
    if not gpu.gpu_id:
        return None
    price *= (gpu.count if basis.per_gpu else 1) / basis.hours
    if not LOWEST_PRICE <= price <= HIGHEST_PRICE:
        run.drop(line, "price-out-of-range", f"{cells['gpu']}: {cells['price']}")
        return None
    if basis.term_months and _option(cells.get("purchase_option", "")) == "on-demand":
        run.remark(line, "reservation", f"{cells['gpu']}: {cells['price']} per {basis.billing_step}")
    return _offer(line, cells, gpu, price, basis)


def _gpu(line: int, cells: Mapping[str, str], count: int, matcher: GpuMatcher, run: ImportRun) -> Match:
    sizes = memory_sizes(cells.get("gpu_memory_gb", ""))
    match = matcher.match(Clues(cells["gpu"], sizes, cells.get("instance_type", ""), count))
    if match.code:
        run.drop(line, match.code, match.detail)
    elif match.remark:
        run.remark(line, "memory-differs", match.remark)
    return match


def _offer(line: int, cells: Mapping[str, str], gpu: Match, price: float, basis: Basis) -> PriceRow:
    option = _option(cells.get("purchase_option", ""))
    extra = {name: cells.get(name, "") for name in ("source", "notes", "priced_on", "billing_step", "term_months")}
    extra["upfront_usd_per_node"] = cells.get("upfront", "")
    if basis.term_months and option == "on-demand":
        option, extra["term_months"] = "reserved", extra["term_months"] or str(basis.term_months)
    extra["billing_step"] = extra["billing_step"] or basis.billing_step
    _check(extra, option)
    name = cells.get("instance_type") or f"{gpu.count}x-{gpu.gpu_id}"
    return PriceRow(
        line, cells.get("region", ""), "", name, gpu.gpu_id, gpu.count, option,
        round(price, 6), optional_number(cells.get("vcpus", "")), optional_number(cells.get("ram_gib", "")),
        extra={name: text for name, text in extra.items() if text},
    )  # fmt: skip


def _option(text: str) -> str:
    word = text.casefold()
    option = word if word in PURCHASE_OPTIONS else _OPTION_WORDS.get(re.sub(r"[^a-z]", "", word), "")
    if not option:
        msg = f'purchase_option is "{text[:40]}"; write one of {", ".join(PURCHASE_OPTIONS)}'
        raise ValueError(msg)
    return option


def _past_day(text: str) -> str:
    """A date that has come, as the catalog writes it."""
    try:
        day, today = date.fromisoformat(text), datetime.now(UTC).date()
    except ValueError:
        msg = f'priced_on is "{text[:40]}"; write YYYY-MM-DD, or leave it empty if unknown'
        raise ValueError(msg) from None
    if day > today:
        msg = f"priced_on is {day}, which is still to come; write the day on which the price was read"
        raise ValueError(msg)
    return day.isoformat()


def _check(extra: dict[str, str], option: str) -> None:
    """Put numbers and dates in the form of the catalog. Raises ValueError for what the catalog would refuse."""
    if extra["priced_on"]:
        extra["priced_on"] = _past_day(extra["priced_on"])
    if extra["billing_step"] and extra["billing_step"] not in BILLING_STEPS:
        msg = f'billing_step is "{extra["billing_step"][:40]}"; write one of {", ".join(BILLING_STEPS)}'
        raise ValueError(msg)
    term, upfront = number(extra["term_months"]), number(extra["upfront_usd_per_node"])
    if (option in ("reserved", "committed-use")) != bool(term and term > 0):
        msg = "give term_months for reserved and committed-use offers, and for no others"
        raise ValueError(msg)
    if upfront is not None and upfront < 0:
        msg = f"upfront is {upfront:g}; write USD from 0 on"
        raise ValueError(msg)
    extra["term_months"] = f"{term:g}" if term else ""
    extra["upfront_usd_per_node"] = f"{upfront:g}" if upfront else ""
