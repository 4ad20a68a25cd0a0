"""A comparison document as sections: variants side by side, savings, and where owning breaks even."""

from collections.abc import Iterable
from typing import Any

from optimizer.report.forms import csv_text
from optimizer.report.numbers import NOTHING, money, number, percent
from optimizer.report.sections import Section, columns
from optimizer.report.words import quantity

Document = dict[str, Any]
WAYS = ("owned", "reserved", "rented")
VARIANT_COLUMNS = (
    "variant", "status", "npv", "bound", "gap", "capex", "opex", "salvage", "per_month", "gpus",
    "saving_against_baseline", "saving_against_dearest", "currency", "reason",
)  # fmt: skip
BASELINE_HINT = "No baseline is stated; to measure against one: `baseline: {keep: existing, rest: on-demand}`."


def comparison_sections(document: Document) -> list[Section]:
    """All that `compare` has to say of a problem's variants."""
    even = document["break_even"]
    found = [
        _side_by_side(document),
        _reasons(document),
        _break_even(document, "utilisation", "Break-even utilisation"),
        _break_even(document, "month", "Break-even month"),
        _curve(document, "utilisation", "Cost by share of hours in use (NPV)", "Share of hours"),
        _curve(document, "month", "Cost by length of the horizon (NPV)", "Months"),
    ]
    skipped = even["utilisation"] is None and even["month"] is None
    return [section for section in found if section.rows or section.notes][: 2 if skipped else None]


def comparison_csv(document: Document) -> str:
    """One line per variant."""
    records = [_record(document, name, variant) for name, variant in document["variants"].items()]
    return csv_text(records, VARIANT_COLUMNS)


def _record(document: Document, name: str, variant: Document) -> Document:
    cost = variant["cost"] or {}
    savings = {
        f"saving_{key}": (document["savings"][key] or {}).get(name, {}).get("amount")
        for key in ("against_baseline", "against_dearest")
    }
    gpus = " + ".join(f"{count} x {gpu}" for gpu, count in variant["gpus"].items())
    known = {"variant": name, "currency": document["currency"], "gpus": gpus, **savings}
    return {**cost, **{key: variant[key] for key in ("status", "per_month", "reason")}, **known}


# --- side by side -----------------------------------------------------------------------------------------------------


def _side_by_side(document: Document) -> Section:
    variants = document["variants"]
    rows = [
        ("status", *(_status(variant) for variant in variants.values())),
        *(_cost_row(variants, key, label) for key, label in _COST_ROWS),
        *_further_rows(variants),
        *_sold_rows(variants),
        ("per month", *(money(variant["per_month"]) for variant in variants.values())),
        ("gap", *(percent((variant["cost"] or {}).get("gap")) for variant in variants.values())),
        *((f"GPUs {way}", *(_fleet(variant, way) for variant in variants.values())) for way in WAYS),
        *_savings_rows(document),
    ]
    notes = [
        "Per month: the level payment of the same present value. GPUs at most at once; rented ones at the peak of "
        "each offer. Saved: against the baseline, against the dearest variant.",
        *([] if document["baseline"] else [BASELINE_HINT]),
        *document["notes"],
    ]
    title = f"{document['problem']}: {quantity(document['horizon_months'], 'months')}, {document['currency']}"
    return Section(title, columns("", *(f">{name}" for name in variants)), tuple(rows), tuple(notes))


_COST_ROWS = (
    ("npv", "cost (NPV)"),
    ("bound", "proven bound"),
    ("capex", "capex"),
    ("opex", "opex"),
    ("salvage", "salvage"),
)


def _cost_row(variants: Document, key: str, label: str) -> tuple[str, ...]:
    return (label, *(money((variant["cost"] or {}).get(key)) for variant in variants.values()))


def _further_rows(variants: Document) -> Iterable[tuple[str, ...]]:
    """The buyer's further costs, by kind: parts of capex and opex."""
    for kind in dict.fromkeys(kind for variant in variants.values() for kind in variant.get("further_costs", {})):
        amounts = (variant.get("further_costs", {}).get(kind, 0.0) for variant in variants.values())
        yield (f"further: {kind}", *(money(amount) for amount in amounts))


def _sold_rows(variants: Document) -> Iterable[tuple[str, ...]]:
    """What variants get for hardware that they give up, where any does, and the cost that is compared then."""
    if any(variant["sold_at_start"] for variant in variants.values()):
        yield ("held now, sold", *(money(variant["sold_at_start"]) for variant in variants.values()))
        yield ("cost less sale", *(money(variant["compared_npv"]) for variant in variants.values()))


def _status(variant: Document) -> str:
    status = str(variant["status"])
    return {"no_plan": "no plan in time", "feasible": "not proven"}.get(status, status)


def _fleet(variant: Document, way: str) -> str:
    held = variant["fleet"].get(way, {})
    return ", ".join(f"{count:,} × {gpu}" for gpu, count in sorted(held.items())) or NOTHING


def _savings_rows(document: Document) -> Iterable[tuple[str, ...]]:
    for key, label in (
        ("against_baseline", "saved: baseline"),
        ("against_dearest", "saved: dearest"),
    ):
        saved = document["savings"][key]
        if saved is not None:
            yield (label, *(_saving(saved.get(name)) for name in document["variants"]))


def _saving(found: Document | None) -> str:
    if found is None:
        return NOTHING
    return f"{money(found['amount'])} ({percent(found['share'])})"


def _reasons(document: Document) -> Section:
    rows = [
        (name, text)
        for name, variant in document["variants"].items()
        for text in (variant["meaning"], variant["reason"], *variant["notes"])
        if text
    ]
    return Section("What the variants are", rows=tuple(rows))


# --- break-even -------------------------------------------------------------------------------------------------------


def _break_even(document: Document, key: str, title: str) -> Section:
    found = document["break_even"][key]
    if found is None:
        return Section(title)
    notes = (_verdict(found, key, document), f"Meaning: {found['definition']}", f"Method: {found['method']}.")
    return Section(title, notes=(*notes, *found["notes"]))


def _verdict(found: Document, key: str, document: Document) -> str:
    match found["status"]:
        case "crossing":
            return _crossing(found, key, document["currency"])
        case "always":
            first = found["points"][0]
            return f"Owning is never dearer: from {_at(first, key)} on it costs no more than renting."
        case "never":
            last = found["points"][-1]
            return f"Owning is never cheaper, up to {_at(last, key)}."
        case "stopped":
            return "Stopped by the time limit before the answer; what is known so far is below."
    return "Not defined here: it needs a plan of both ways, and a workload that is whole before the horizon ends."


def _crossing(found: Document, key: str, currency: str) -> str:
    low, high = found["below"], found["above"]
    cheaper = "owning" if found["cheaper_above"] == "owned-only" else "renting"
    near = f", about {percent(found[key])}" if key == "utilisation" else ""
    ends = "; ".join(
        f"at {_at(end, key)} owned-only {money(end['owned_only'])}, cloud-only {money(end['cloud_only'])} {currency}"
        for end in (low, high)
    )
    if key == "month" and cheaper == "owning":
        return f"From {_at(high, key)} on owning costs no more than renting ({ends})."
    return f"Between {_at(low, key)} and {_at(high, key)}{near}: above it {cheaper} is cheaper ({ends})."


def _at(point: Document, key: str) -> str:
    return f"{percent(point[key])} of the hours" if key == "utilisation" else f"month {number(point[key])}"


def _curve(document: Document, key: str, title: str, heading: str) -> Section:
    found = document["break_even"][key]
    if found is None or len(found["points"]) < 2:
        return Section(title)
    rows = tuple(
        (
            percent(point[key]) if key == "utilisation" else number(point[key]),
            money(point["owned_only"]),
            money(point["cloud_only"]),
            _cheaper(point),
        )
        for point in found["points"]
    )
    currency = document["currency"]
    headings = (f">{heading}", f">Owned-only ({currency})", f">Cloud-only ({currency})", "Cheaper")
    return Section(title, columns(*headings), rows)


def _cheaper(point: Document) -> str:
    owned, cloud = point["owned_only"], point["cloud_only"]
    if owned is None and cloud is None:
        return NOTHING
    if cloud is None or (owned is not None and owned < cloud):
        return "owned"
    return "equal" if owned == cloud else "cloud"
