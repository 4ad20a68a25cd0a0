"""The answer "no": which row falls short, by how much, what would mend it, and what cannot run at all."""

import math
from collections.abc import Iterable
from typing import Any

from optimizer.report.changes import CHOICE, change_value, change_words, cut_words, limit_name, limit_value, unmet_words
from optimizer.report.numbers import money, number
from optimizer.report.sections import Section, columns
from optimizer.report.supply import no_offer_line, supply_notes
from optimizer.report.words import counted, limit_words, quantity

MOST_REJECTIONS = 12
MOST_SENTENCES = 5
Document = dict[str, Any]


def infeasible_sections(document: Document) -> list[Section]:
    """What the buyer needs to know: the shortfall, changes that are enough, conflicts, cuts of demand, rejections."""
    kinds = ("limit", "conflict", "demand", "cut")
    limits, conflict, unmet, cuts = ([s for s in document["infeasibility"] if s["kind"] == k] for k in kinds)
    verdict = "Infeasible: no plan meets all that the problem asks for."
    currency = document["currency"]
    notes = (
        verdict,
        *supply_notes(document),
        *_no_way_lines(document),
        *_unmet_lines(document, unmet),
        *_fix_lines(document, limits),
    )
    found = [
        Section(document["problem"], notes=(*notes, *_diagnosis_notes(document))),
        _enough_alone([s for s in limits if s["alone"] and not _at_least(s)], currency),
        _one_must_give([s for s in limits if s["alone"] and _at_least(s)], currency),
        _together([s for s in limits if not s["alone"]], currency),
        _conflict(conflict, currency),
        _shortfalls("Demand that stays unmet, if all limits stand", unmet),
        _cuts(cuts, currency),
        rejected_section(document["rejections"], _without_a_way(document)),
    ]
    return [section for section in found if section.rows or section.notes]


def _unmet_lines(document: Document, unmet: list[dict[str, Any]]) -> list[str]:
    """The worst shortfalls as sentences; the rest stands in the table."""
    if not document["inputs"]["options"]:
        return []
    worst = sorted(unmet, key=lambda s: -s["short_by"] / s["required"] if s["required"] else 0.0)
    return [unmet_words(s, document) for s in worst[:MOST_SENTENCES]]


def _diagnosis_notes(document: Document) -> list[str]:
    """What the plan notes of its own making: whether the diagnosis had the time it needed."""
    return list(document.get("notes") or ())


def _enough_alone(limits: Iterable[dict[str, Any]], currency: str) -> Section:
    """Changes of one limit, each of which makes the problem feasible."""
    rows = tuple((*_values(s, currency), money(s["npv"])) for s in limits)
    headings = columns("Limit", ">Is", ">At least", ">Change", f">Least cost then ({currency}, NPV)")
    return Section("Any one of these limits is enough, if it gives by so much and all demand is met", headings, rows)


def _at_least(found: dict[str, Any]) -> bool:
    """Whether a figure is the least that is needed, and more may be."""
    return bool(found.get("at_least"))


def _one_must_give(limits: Iterable[dict[str, Any]], currency: str) -> Section:
    """Changes of one limit, each of which could make the problem feasible, and none if it were smaller."""
    rows = tuple(_values(s, currency) for s in limits)
    title = "Any one of these limits could be enough, if it gives by no less than this and all demand is met"
    return Section(title, columns("Limit", ">Is", ">At least", ">Change"), rows)


def _values(found: dict[str, Any], currency: str) -> tuple[str, str, str, str]:
    """Name of a limit, its value, the value that is enough, and the change."""
    unit = found["unit"]
    is_, least = (limit_value(found[key], unit, currency) for key in ("attainable", "required"))
    by = change_value(found["short_by"], unit, currency)
    sign = "−" if found["required"] < found["attainable"] else "+"
    return limit_name(found), is_, least, by if unit == CHOICE else f"{sign}{by}"


def _together(limits: list[dict[str, Any]], currency: str) -> Section:
    rows = tuple(_values(s, currency) for s in limits)
    title = "One set of limits that is enough together (others may be, too); none of them is enough alone"
    costs = dict.fromkeys(s["npv"] for s in limits if s["npv"] is not None)
    notes = tuple(f"With all of them the least cost is {money(npv)} {currency} (NPV)." for npv in costs)
    return Section(title, columns("Limit", ">Is", ">At least", ">Change"), rows, notes)


def _conflict(limits: Iterable[dict[str, Any]], currency: str) -> Section:
    """Limits that cannot hold together; without any one of them, the others could."""
    rows = tuple((limit_name(s), limit_value(s["attainable"], s["unit"], currency)) for s in limits)
    return Section("Limits that cannot hold together while all demand is met", columns("Limit", ">Is"), rows)


def _cuts(cuts: Iterable[dict[str, Any]], currency: str) -> Section:
    rows = tuple((cut_words(s), "" if _at_least(s) else money(s["npv"])) for s in cuts)
    headings = columns("Cut of one workload", f">Least cost then ({currency}, NPV)")
    return Section("Or, if all limits stand, any one of these cuts of demand", headings, rows)


def shortfall_line(document: Document) -> str:
    """The first shortfall in one line, for standard error."""
    found = document["infeasibility"]
    if not found:
        return "infeasible"
    if nothing := no_offer_line(document):
        return f"infeasible: {nothing}"
    if lines := _no_way_lines(document):
        return f"infeasible: {lines[0].removesuffix('.')}"
    first = found[0]
    if first["kind"] == "limit" and first["unit"] == CHOICE:
        would = "might" if _at_least(first) else "would"
        return f"infeasible: {change_words(first, document['currency'])} {would} mend it"
    if first["kind"] == "limit":
        by = limit_value(first["short_by"], first["unit"], document["currency"])
        at_least = "at least " if _at_least(first) else ""
        return f"infeasible: {limit_name(first)} falls short by {at_least}{by}"
    words = limit_words(first["family"], first["index"], first["unit"])
    return f"infeasible: {words} falls short by {quantity(first['short_by'], first['unit'])}"


def _fix_lines(document: Document, limits: list[dict[str, Any]]) -> list[str]:
    """Every change of one limit that is enough, the cheapest first."""
    if not document["inputs"]["options"] or document["status"] != "infeasible":
        return []
    alone = [s for s in limits if s["alone"]]
    if not alone:
        known = _cut_short(document) or _without_a_way(document)
        return [] if known else ["No change of a single limit makes it feasible."]
    currency = document["currency"]
    others = [change_words(s, currency) for s in alone[1 : 1 + MOST_SENTENCES]]
    if _at_least(alone[0]):
        found = [f"One change that could be enough, by no less than this: {_from_to(alone[0], currency)}."]
        return found + ([f"Or else, each alone, by no less: {'; or '.join(others)}."] if others else [])
    least = f"the least cost is then {money(alone[0]['npv'])} {currency} (NPV)"
    found = [f"Cheapest single change: {_from_to(alone[0], currency)}; {least}."]
    return found + ([f"Or else, each alone: {'; or '.join(others)}."] if others else [])


def _from_to(found: dict[str, Any], currency: str) -> str:
    """`stock of A from 3 to 5 nodes (+2)`."""
    if found["unit"] == CHOICE:
        return change_words(found, currency)
    name, is_, least, by = _values(found, currency)
    unit = f" {found['unit']}"
    return f"{name} from {is_.removesuffix(unit)} to {least} ({by.removesuffix(unit)})"


def _cut_short(document: Document) -> bool:
    return any("cut short" in note for note in document.get("notes") or ())


def _shortfalls(title: str, found: Iterable[dict[str, Any]]) -> Section:
    rows = tuple(
        (
            _row_words(s),
            number(s["required"]),
            number(s["attainable"]),
            number(s["short_by"]),
            s["unit"],
        )
        for s in found
    )
    return Section(title, columns("What", ">Needed", ">There is", ">Short by", "Unit"), rows)


def _row_words(shortfall: dict[str, Any]) -> str:
    """The row, with the time of its worst place for rates."""
    words = limit_words(shortfall["family"], shortfall["index"], shortfall["unit"])
    places = shortfall["index"][2:] if shortfall["family"] == "demand_coverage" else []
    return f"{words} ({', '.join(places)})" if places else words


def _no_way_lines(document: Document) -> list[str]:
    return [no_way_line(name, document["rejections"]) for name in _without_a_way(document)]


def no_way_line(workload: str, rejections: Iterable[dict[str, Any]]) -> str:
    """A workload that nothing can run, with the rejection that was nearest to fitting: required, and there."""
    line = f"{workload} cannot run on any GPU that the problem allows"
    own = [r for r in rejections if r["workload"] == workload and r["resource"] != "dominated"]
    if not own:
        return f"{line}."
    nearest = min(own, key=_excess)
    where = " ".join(part for part in (nearest["gpu"], nearest["deployment"]) if part)
    figures = ""
    if nearest["required"] and nearest["available"] is not None:
        unit = nearest["unit"]
        figures = f" ({quantity(nearest['required'], unit)} required, {quantity(nearest['available'], unit)} there)"
    return f"{line}. Nearest: {where}: {nearest['reason']}{figures}."


def _excess(found: dict[str, Any]) -> float:
    """How far a rejection is from fitting: required ÷ there, or the other way round; infinite where nothing is."""
    required, there = found["required"], found["available"]
    if not required or not there:
        return math.inf
    return float(max(required / there, there / required))


def _without_a_way(document: Document) -> list[str]:
    """Workloads that have no estimate at all, though there are offers."""
    if not document["inputs"]["options"]:
        return []
    known = document["inputs"]["estimates"]
    able = {e["workload"] for key in ("services", "jobs") for e in known[key]}
    return [w["name"] for w in document["inputs"]["problem"]["workloads"] if w["name"] not in able]


def rejected_section(rejections: Iterable[dict[str, Any]], without: Iterable[str] = ()) -> Section:
    """Deployments that were rejected, those of workloads `without` any way to run first."""
    first = set(without)
    useful = [r for r in rejections if r["resource"] != "dominated"]
    found = sorted(useful, key=lambda r: r["workload"] not in first)
    rows = tuple(rejection_row(r) for r in found[:MOST_REJECTIONS])
    notes = [f"{name} cannot run on any GPU that the problem allows." for name in sorted(first)]
    if len(found) > len(rows):
        notes.append(f"{counted(len(found) - len(rows), 'more rejection')} in `-o json`.")
    return Section("Rejected", columns(*REJECTION_HEADINGS), rows, tuple(notes))


REJECTION_HEADINGS = ("Workload", "GPU", "Deployment", "Reason", ">Required", ">There is", "Unit")


def rejection_row(found: dict[str, Any]) -> tuple[str, ...]:
    """A rejection: what was required, what was there."""
    return (
        found["workload"],
        found["gpu"],
        found["deployment"],
        found["reason"],
        number(found["required"]),
        number(found["available"]),
        found["unit"],
    )
