"""What only several rows together tell: the same offer twice, prices that do not grow with the GPUs, spot markets."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from catalog.importing.offers import HIGHEST_PRICE, LOWEST_PRICE, ImportRun, PriceRow

SAME_PRICE = 1e-6


def scale(run: ImportRun) -> None:
    """Turn the prices of a run into those of nodes, where its settings say that they are for GPUs."""
    if run.settings.basis.per_gpu:
        run.rows = [replace(row, price=round(row.price * row.gpus_per_node, 6)) for row in run.rows]


def merge(run: ImportRun) -> None:
    """Settle what the rows of a run say together; changes `run`."""
    run.rows = list(_with_possible_prices(run))
    run.rows = list(_one_per_offer(run))
    run.rows = list(_with_scaled_prices(run))
    run.rows = list(_with_real_spot(run))
    if any(row.flags for row in run.rows):
        run.rows = list(_with_flags_told(run))


def identity(row: PriceRow) -> tuple[object, ...]:
    """What makes two rows the same offer."""
    term = (row.extra or {}).get("term_months", "")
    return (row.region, row.instance_type, row.purchase_option, row.gpu_id, row.gpus_per_node, row.flags, term)


def _with_possible_prices(run: ImportRun) -> Iterable[PriceRow]:
    for row in run.rows:
        if LOWEST_PRICE <= row.price <= HIGHEST_PRICE:
            yield row
        else:
            run.drop(row.line, "price-out-of-range", f"{_named(row)}: {row.price:g}")


def _one_per_offer(run: ImportRun) -> Iterable[PriceRow]:
    kept: dict[tuple[object, ...], PriceRow] = {}
    for row in run.rows:
        key = identity(row)
        other = kept.get(key)
        kept[key] = row if other is None else _better(other, row, run)
    return kept.values()


def _better(first: PriceRow, second: PriceRow, run: ImportRun) -> PriceRow:
    """Of two rows of one offer: the cheaper zone, else the dearer price; the other is dropped."""
    if abs(first.price - second.price) <= SAME_PRICE * first.price:
        run.drop(second.line, "duplicate", f"{_named(second)}, as on line {first.line}")
        return first
    zones = first.zone != second.zone
    keep, leave = sorted((first, second), key=lambda row: row.price, reverse=not zones)
    where = f" ({leave.zone}; {keep.zone} kept)" if zones else ""
    detail = f"{_named(leave)} at {leave.price:g}, line {keep.line} has {keep.price:g}{where}"
    run.drop(leave.line, "zone" if zones else "conflict", detail)
    if zones and keep.zone:
        return replace(keep, notes=f"{keep.notes}; zone {keep.zone}".strip("; "))
    return keep


def _named(row: PriceRow) -> str:
    return f"{row.instance_type or row.gpu_id} {row.purchase_option} in {row.region or 'any region'}"


def _with_scaled_prices(run: ImportRun) -> Iterable[PriceRow]:
    """Rows without those that cost as much as one GPU though they have several (skypilot-catalog PR 44)."""
    singles: dict[tuple[str, str, str], set[float]] = {}
    for row in run.rows:
        if row.gpus_per_node == 1:
            singles.setdefault((row.gpu_id, row.region, row.purchase_option), set()).add(round(row.price, 6))
    for row in run.rows:
        ones = singles.get((row.gpu_id, row.region, row.purchase_option), ())
        if row.gpus_per_node > 1 and round(row.price, 6) in ones:
            detail = f"{_named(row)}: {row.price:g} for {row.gpus_per_node} GPUs as for 1"
            run.drop(row.line, "price-not-scaled", detail)
        else:
            yield row


def _with_real_spot(run: ImportRun) -> Iterable[PriceRow]:
    """Rows without spot prices that are the on-demand price; a dearer spot price is kept and remarked on."""
    on_demand = {_node(row): row.price for row in run.rows if row.purchase_option == "on-demand"}
    for row in run.rows:
        price = on_demand.get(_node(row)) if row.purchase_option == "spot" else None
        if price is not None and abs(row.price - price) <= SAME_PRICE * price:
            run.drop(row.line, "spot-is-on-demand", f"{row.instance_type} in {row.region}: {row.price:g}")
            continue
        if price is not None and "oci-spot" in row.flags.split():
            run.remark(row.line, "spot-assumed", f"{_named(row)}: {row.price:g}")
        if price is not None and row.price > price:
            run.remark(row.line, "spot-dearer", f"{_named(row)}: {row.price:g}, on-demand {price:g}")
        yield row


def _with_flags_told(run: ImportRun) -> Iterable[PriceRow]:
    """Rows that only their flags tell apart get them into the instance's name: an offer's identity holds its tier."""
    alike = Counter(_without_flags(identity(row)) for row in run.rows)
    for row in run.rows:
        told = row.flags and alike[_without_flags(identity(row))] > 1
        yield replace(row, instance_type=f"{row.instance_type} ({row.flags})") if told else row


def _without_flags(key: tuple[object, ...]) -> tuple[object, ...]:
    return (*key[:5], *key[6:])


def _node(row: PriceRow) -> tuple[object, ...]:
    return (row.region, row.instance_type, row.gpu_id, row.gpus_per_node, row.flags.replace("oci-spot", "").strip())
