"""The catalog as sections and records: lists of a kind, and all facts of one entry with their source."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

from catalog.schema import CloudOffer, Gpu, LlmArchitecture, ServerOffer, SiteCost, SourceRef
from optimizer.report.numbers import NOTHING, number, span, unit_price
from optimizer.report.sections import Section, columns
from optimizer.report.words import counted
from optimizer.units import BYTES_PER_GIB, UNIT_SUFFIXES

Entry = Gpu | LlmArchitecture | CloudOffer | ServerOffer | SiteCost
_UNIT_WORDS = {"gb": "GB", "gib": "GiB", "tb": "TB", "tflop": "TFLOP", "tops": "TOPS", "usd": "USD", "w": "W",
               "kw": "kW", "kwh": "kWh", "flop": "FLOP"}  # fmt: skip


def record(entry: Entry) -> dict[str, Any]:
    """All fields of an entry as plain data, its source flattened."""
    found = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry) if f.name != "ref"}
    ref: SourceRef = entry.ref
    day = ref.date.isoformat() if ref.date else None
    return {**found, "source": ref.source, "date": day, "file": ref.file, "line": ref.line}


def list_section(kind: str, entries: Sequence[Any], order: str = "price") -> Section:
    """The entries of a kind (gpus, offers, models, servers, site-costs) as a table; `order` is that of the offers."""
    headings, row, note = _LISTS[kind]
    noun = kind.removesuffix("s").replace("-", " ")
    notes = (f"{counted(len(entries), noun)}.{_ORDER_NOTES[order] if kind == 'offers' else note}",)
    return Section(
        f"Catalog: {kind.replace('-', ' ')}", columns(*headings), tuple(row(entry) for entry in entries), notes
    )


_ORDER_NOTES = {
    "price": " Cheapest per GPU-hour first.",
    "age": " Oldest price first, undated ones before all.",
    "gpu": " By GPU, each cheapest per GPU-hour first.",
    "provider": " By provider, each cheapest per GPU-hour first.",
    "region": " By region, each cheapest per GPU-hour first.",
}


def _gpu_row(gpu: Gpu) -> tuple[str, ...]:
    return (
        gpu.gpu_id,
        number(gpu.memory_usable_bytes / BYTES_PER_GIB),
        number(gpu.memory_bandwidth_gb_per_s),
        number(gpu.bf16_dense_tflop_per_s),
        number(gpu.fp8_dense_tflop_per_s),
        number(gpu.fp32_tflop_per_s),
        f"{gpu.link_kind} {number(gpu.link_gb_per_s)}",
        number(gpu.tdp_w),
        number(gpu.max_gpus_per_node),
    )


def _offer_row(offer: CloudOffer) -> tuple[str, ...]:
    return (
        offer.offer_id,
        offer.gpu_id,
        number(offer.gpus_per_node),
        number(offer.term_months),
        unit_price(offer.price_usd_per_node_hour),
        number(offer.price_usd_per_node_hour / offer.gpus_per_node),
        _day(offer.ref.date),
    )


def _model_row(model: LlmArchitecture) -> tuple[str, ...]:
    return (
        model.model_id,
        number(model.parameters / 1e9),
        number(model.active_parameters / 1e9),
        number(model.layers),
        number(model.hidden_size),
        number(model.attention_heads),
        number(model.kv_heads),
        number(model.experts) if model.experts > 1 else NOTHING,
        number(model.max_context_tokens),
    )


def _server_row(server: ServerOffer) -> tuple[str, ...]:
    return (
        server.server_id,
        server.gpu_id,
        number(server.gpus_per_node),
        number(server.price_usd_per_node),
        span(server.price_low_usd, server.price_high_usd),
        number(server.nameplate_kw),
        number(server.useful_life_months),
        number(server.lead_time_months),
        _day(server.ref.date),
    )


def _site_cost_row(cost: SiteCost) -> tuple[str, ...]:
    return (
        cost.cost_id,
        cost.kind,
        cost.item,
        cost.region or NOTHING,
        number(cost.value),
        span(cost.value_low, cost.value_high),
        cost.unit,
        _day(cost.ref.date),
    )


def _day(day: date | None) -> str:
    return day.isoformat() if day else "unknown"


_LISTS: dict[str, tuple[tuple[str, ...], Callable[[Any], tuple[str, ...]], str]] = {
    "gpus": (
        (
            "GPU", ">Memory (GiB)", ">Bandwidth (GB/s)", ">BF16 (TFLOP/s)", ">FP8 (TFLOP/s)", ">FP32 (TFLOP/s)",
            "Link (GB/s)", ">TDP (W)", ">Per node",
        ),
        _gpu_row,
        " Dense peaks; usable memory; link one way and per GPU.",
    ),
    "offers": (
        (
            "Offer", "GPU", ">GPUs per node", ">Term (months)", ">USD per node-hour", ">USD per GPU-hour",
            "Priced on",
        ),
        _offer_row,
        "",
    ),
    "models": (
        (
            "Model", ">Parameters (1e9)", ">Active (1e9)", ">Layers", ">Hidden", ">Heads", ">KV heads", ">Experts",
            ">Context (tokens)",
        ),
        _model_row,
        "",
    ),
    "servers": (
        (
            "Server", "GPU", ">GPUs per node", ">Price (USD per node)", ">Range (USD)", ">Nameplate (kW)",
            ">Life (months)", ">Lead (months)", "Priced on",
        ),
        _server_row,
        " Cheapest per GPU first.",
    ),
    "site-costs": (
        ("Site cost", "Kind", "Item", "Region", ">Value", ">Range", "Unit", "Priced on"),
        _site_cost_row,
        "",
    ),
}  # fmt: skip


def entry_sections(name: str, entry: Entry, related: Iterable[Section] = ()) -> list[Section]:
    """All facts of an entry with units, where they are from, and what belongs to it."""
    facts = [f.name for f in dataclasses.fields(entry) if f.name not in ("ref", "notes", "confidence")]
    facts += [name for name in ("link_both_ways_gb_per_s", "licence_note") if hasattr(entry, name)]
    rows = tuple(_fact_row(fact, getattr(entry, fact)) for fact in facts)
    notes = [f"Source: {entry.ref}", f"Confidence: {entry.confidence}"]
    notes += [f"Notes: {entry.notes}"] if entry.notes else []
    return [Section(name, columns("Fact", ">Value", "Unit"), rows, tuple(notes)), *related]


def _fact_row(field: str, value: Any) -> tuple[str, str, str]:
    label, unit = _named(field)
    return label, str(value) if field.endswith("_year") and value else _value(value), unit


def _named(field: str) -> tuple[str, str]:
    """Label and unit of a field by the suffix of its name: memory_bandwidth_gb_per_s → memory bandwidth, GB/s."""
    if "_usd" in field:
        stem, _, rest = field.partition("_usd")
        return stem.replace("_", " "), ("USD" + rest).replace("_per_", "/").replace("_", "-")
    suffix = max((s for s in UNIT_SUFFIXES if field.endswith(s)), key=len, default="")
    words = suffix.strip("_").split("_")
    unit = " ".join(_UNIT_WORDS.get(word, word) for word in words).replace(" per ", "/")
    return field.removesuffix(suffix).replace("_", " "), unit


def _value(value: Any) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.12g}" if isinstance(value, int | float) else str(value)
