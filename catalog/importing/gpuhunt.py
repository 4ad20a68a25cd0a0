"""gpuhunt's catalogs (a CSV per provider, also without the columns that old ones lack): a row is one price of a node.

`price` is USD per node and hour, `gpu_memory` GB per GPU; on-demand and spot are rows of their own. Columns after
dstackai/gpuhunt 0.1.34, `storage.CATALOG_V2_FIELDS`.
"""

from collections.abc import Mapping

from catalog.importing.cells import number, optional_number, whole_count
from catalog.importing.names import Clues, GpuMatcher, Match
from catalog.importing.offers import ImportRun, PriceRow
from catalog.importing.tables import TextTable
from catalog.memory_sizes import sizes_of_gb

REQUIRED = ("instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
OPTIONAL = ("cpu", "memory", "gpu_vendor", "flags")

WITH_DISK = ("vast",)
"""Providers to whose prices gpuhunt adds that of the disk it asks for (providers/vastai.py)."""


def read_gpuhunt(table: TextTable, matcher: GpuMatcher, run: ImportRun) -> None:
    """Add the offers of a gpuhunt catalog to `run`."""
    places = table.columns(REQUIRED, OPTIONAL)
    width = len(table.header)
    for line, cells in table.rows:
        run.lines_read += 1
        if len(cells) != width:
            run.drop(line, "ragged", f"{len(cells)} cells, the header has {width}")
            continue
        named = {name: cells[place].strip() for name, place in places.items()}
        row = _row(line, named, matcher, run)
        if row is not None:
            run.rows.append(row)


def _row(line: int, cells: Mapping[str, str], matcher: GpuMatcher, run: ImportRun) -> PriceRow | None:
    try:
        price, count, memory = number(cells["price"]), number(cells["gpu_count"]), number(cells["gpu_memory"])
        spot = _truth(cells["spot"])
    except ValueError as error:
        run.drop(line, "unreadable", str(error))
        return None
    name, instance = cells["gpu_name"], cells["instance_name"]
    if not name or count == 0:
        run.drop(line, "no-gpu", instance)
        return None
    if price is None or price <= 0:
        run.drop(line, "no-spot" if spot else "no-price", f"{instance}: {cells['price'] or 'no price'}")
        return None
    match = _gpu(line, cells, count, memory, matcher, run)
    if not match.gpu_id:
        return None
    disk = run.settings.provider in WITH_DISK
    if disk:
        run.remark(line, "disk-included", f"{instance}: {price:g}")
    return PriceRow(
        line, cells["location"], "", instance, match.gpu_id, match.count, "spot" if spot else "on-demand", price,
        optional_number(cells.get("cpu", "")), optional_number(cells.get("memory", "")),
        notes="price with disk" if disk else "", flags=cells.get("flags", ""),
    )  # fmt: skip


def _gpu(
    line: int, cells: Mapping[str, str], count: float | None, memory: float | None, matcher: GpuMatcher, run: ImportRun
) -> Match:
    """The GPU; without an id, and the row dropped, where it cannot be told."""
    name, instance = cells["gpu_name"], cells["instance_name"]
    whole = whole_count(count)
    if whole is None:
        code = "fraction-of-gpu" if count is not None and count > 0 else "no-count"
        run.drop(line, code, f"{cells['gpu_count'] or 'no count'} of {name} on {instance}")
        return Match()
    sizes = sizes_of_gb(memory) if memory else ()
    match = matcher.match(Clues(name, sizes, instance, whole, vendor=_vendor(cells)))
    if match.code:
        run.drop(line, match.code, match.detail)
    elif match.remark:
        run.remark(line, "memory-differs", match.remark)
    return match


def _vendor(cells: Mapping[str, str]) -> str:
    """First word of the vendor, in lower case; empty where the file has none."""
    return cells.get("gpu_vendor", "").casefold().partition(" ")[0]


def _truth(text: str) -> bool:
    if text.casefold() not in ("true", "false"):
        msg = f'spot is "{text[:40]}"; write True or False'
        raise ValueError(msg)
    return text.casefold() == "true"
