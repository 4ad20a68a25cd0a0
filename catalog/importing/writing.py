"""Imported offers as a file of the catalog."""

import csv
import io
from collections import Counter
from collections.abc import Iterator

from catalog.importing.offers import ImportRun, PriceRow

COLUMNS = (
    "offer_id", "provider", "region", "instance_type", "gpu_id", "gpus_per_node", "purchase_option", "term_months",
    "price_usd_per_node_hour", "upfront_usd_per_node", "billing_step", "vcpus", "ram_gib", "confidence", "source",
    "priced_on", "notes",
)  # fmt: skip
CONFIDENCE = "imported"


def offers_csv(run: ImportRun) -> str:
    """The offers of an import as CSV text with the catalog's columns."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(row, offer_id, run) for row, offer_id in zip(run.rows, offer_ids(run), strict=True))
    return buffer.getvalue()


def offer_ids(run: ImportRun) -> Iterator[str]:
    """`provider/region/instance/option`, with flags, term, GPUs or line where that is not unique."""
    plain = Counter(_plain_id(row, run) for row in run.rows)
    given: set[str] = set()
    for row in run.rows:
        name = _plain_id(row, run)
        if plain[name] > 1:
            name = "/".join([name, *_particulars(row)])
        if name in given:
            name = f"{name}/line-{row.line}"
        given.add(name)
        yield name


def _plain_id(row: PriceRow, run: ImportRun) -> str:
    return f"{run.settings.provider}/{row.region or 'any'}/{row.instance_type}/{row.purchase_option}"


def _particulars(row: PriceRow) -> list[str]:
    term = (row.extra or {}).get("term_months")
    parts = [row.flags.replace(" ", "+"), f"{term}-months" if term else "", f"{row.gpus_per_node}x-{row.gpu_id}"]
    return [part for part in parts if part]


def _cells(row: PriceRow, offer_id: str, run: ImportRun) -> list[object]:
    settings, extra = run.settings, row.extra or {}
    day = settings.priced_on.isoformat() if settings.priced_on else ""
    source = f"{settings.label}:{row.line}"
    if extra.get("source"):
        source = f"{extra['source']} ({source})"
    notes = [text for text in (row.notes, extra.get("notes", ""), f"flags: {row.flags}" if row.flags else "") if text]
    return [
        offer_id, settings.provider, row.region, row.instance_type, row.gpu_id, row.gpus_per_node, row.purchase_option,
        extra.get("term_months", ""), plain(row.price), extra.get("upfront_usd_per_node", "0"),
        extra.get("billing_step", "unknown"), plain(row.vcpus), plain(row.ram_gib), CONFIDENCE,
        source, extra.get("priced_on", day), "; ".join(notes),
    ]  # fmt: skip


def plain(value: float | None) -> str:
    """A number without exponent, at most six decimals; empty for None."""
    if value is None:
        return ""
    return f"{value:.6f}".rstrip("0").rstrip(".")
