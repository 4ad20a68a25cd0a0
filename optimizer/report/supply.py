"""Why there is nothing to choose from, or nothing in time: offers left out by the problem's own words, deliveries."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from optimizer.report.numbers import number
from optimizer.report.words import counted
from optimizer.units import HOURS_PER_MONTH

MOST_REASONS = 6
Document = dict[str, Any]
_BEATEN = ("same node, not cheaper than", "outclassed by")
"""Starts of the reasons of offers that only a better one keeps out."""
_HINTS = (
    ("purchase option", "add the ways of paying that you accept to options.purchase, or leave it out"),
    ("provider", "widen options.providers (deny, allow)"),
    ("region", "options.regions takes patterns such as eu-*; `gpumix catalog list offers` shows the names"),
    ("GPU type", "add GPU types to options.gpus, or leave it out"),
    ("price of", "a longer options.price_age_limit, or fresh prices (`gpumix catalog refresh`)"),
    ("the licence", "site.consumer_gpus_allowed"),
)


def supply_notes(document: Document) -> list[str]:
    """What kept offers out, and what would let them in; deliveries that come after the demand."""
    found = [*_left_out_notes(document)]
    if not _offers(document):
        found.insert(0, "There is no offer to choose from.")
        found += _owned_hint(document)
    return [*found, *_late_notes(document)]


def no_offer_line(document: Document) -> str:
    """The first reason in one line where there is no offer at all; else empty."""
    return "" if _offers(document) else f"no offer to choose from{''.join(f'; {n}' for n in _summary(document)[:1])}"


def _offers(document: Document) -> list[dict[str, Any]]:
    return list(document["inputs"]["options"])


def _summary(document: Document) -> list[str]:
    """`39 offers left out: purchase option spot is not in options.purchase × 12; …`, the most frequent first."""
    kinds = Counter(_kind(e["reason"]) for e in document["left_out"] if not e["reason"].startswith(_BEATEN))
    if not kinds:
        return []
    parts = [f"{kind} × {count:,}" for kind, count in kinds.most_common(MOST_REASONS)]
    parts += ["…"] if len(kinds) > MOST_REASONS else []
    return [f"{counted(sum(kinds.values()), 'offer')} left out: {'; '.join(parts)}"]


def _kind(reason: str) -> str:
    """A reason without the provider, region or day it names."""
    reason = re.sub(r"^(provider|region) .+ is", r"\1 is", reason)
    return re.sub(r"^price of [\d-]+ is", "price is", reason.replace("price of unknown date", "price without a date"))


def _left_out_notes(document: Document) -> Iterator[str]:
    yield from (f"{line}." for line in _summary(document))
    reasons = [e["reason"] for e in document["left_out"]]
    hints = [hint for start, hint in _HINTS if any(reason.startswith(start) for reason in reasons)]
    if hints:
        yield f"To have more to choose from: {'; '.join(hints)}."


def _owned_hint(document: Document) -> Iterator[str]:
    """Hardware of the catalog is only considered where it can stand somewhere."""
    problem = document["inputs"]["problem"]
    wanted = (problem.get("options") or {}).get("purchase")
    if not problem.get("site") and (wanted is None or "owned" in wanted):
        yield "Owned hardware needs a place: add site: {electricity: …} for the catalog's servers, or a quote of yours."


# --- deliveries -------------------------------------------------------------------------------------------------------


def _late_notes(document: Document) -> Iterator[str]:
    """A line per workload that falls short, and whose hardware arrives after it is needed."""
    told: set[str] = set()
    for short in document["infeasibility"]:
        name = _workload(short)
        needed = _needed_month(document, short, name)
        if name is None or needed is None or name in told:
            continue
        able = _able(document, name)
        late = [option for option in able if option["lead_months"] > needed]
        prompt = [option for option in able if option["lead_months"] <= needed]
        if late and all(option["max_nodes"] is not None for option in prompt):
            told.add(name)
            yield _late_note(name, needed, min(late, key=lambda option: option["lead_months"]), len(prompt))


def _late_note(name: str, needed: float, first: dict[str, Any], prompt: int) -> str:
    besides = f"; only {counted(prompt, 'offer')} of limited stock in time" if prompt else ""
    return (
        f"Hardware arrives at month {number(first['lead_months'])} at the earliest ({first['option_id']}), demand of "
        f"{name} is there at month {number(needed)}{besides}: start later, allow offers that are delivered sooner, or "
        "set options.lead_times: false to plan as if it were there."
    )


def _workload(short: dict[str, Any]) -> str | None:
    """The workload whose demand falls short (a job's runs are named after it)."""
    if short["family"] not in ("demand_coverage", "deadline") or not short["index"]:
        return None
    return re.split(r"[#@]", str(short["index"][0]))[0]


def _needed_month(document: Document, short: dict[str, Any], name: str | None) -> float | None:
    """The month in which the demand is there; for a job the end of its time, as far as the problem says it."""
    month = re.fullmatch(r"month-([\d.]+)", short["index"][2]) if len(short["index"]) > 2 else None
    if month:
        return float(month[1])
    found = [w for w in document["inputs"]["problem"]["workloads"] if w["name"] == name]
    if not found or found[0].get("deadline") is None:
        return None
    return (float(found[0].get("start") or 0.0) + float(found[0]["deadline"])) / HOURS_PER_MONTH


def _able(document: Document, name: str) -> list[dict[str, Any]]:
    """Offers of GPU types on which a workload can run."""
    estimates = document["inputs"]["estimates"]
    gpus = {e["gpu_id"] for key in ("services", "jobs") for e in estimates[key] if e["workload"] == name}
    return [o for o in _offers(document) if o["gpu_id"] in gpus and not o["existing_nodes"]]
