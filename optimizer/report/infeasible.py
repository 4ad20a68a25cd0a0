"""The answer "no": which row falls short, by how much, what would mend it, and what cannot run at all."""

from collections.abc import Iterable
from typing import Any

from optimizer.report.numbers import money, number
from optimizer.report.sections import Section, columns
from optimizer.report.supply import no_offer_line, supply_notes
from optimizer.report.words import counted, limit_words, quantity

MOST_REJECTIONS = 12
Document = dict[str, Any]


def infeasible_sections(document: Document) -> list[Section]:
    """What the buyer needs to know: the shortfall, the cheapest single change, cuts of demand, rejections."""
    limits = [s for s in document["infeasibility"] if s["kind"] == "limit"]
    cuts = [s for s in document["infeasibility"] if s["kind"] == "demand"]
    verdict = "Infeasible: no plan meets all that the problem asks for."
    found = [
        Section(document["problem"], notes=(verdict, *supply_notes(document), *_fix_lines(document, limits))),
        _enough_alone([s for s in limits if s["alone"]], document["currency"]),
        _shortfalls("One set of limits that is enough together (others may be, too)", _together(limits)),
        _shortfalls("Demand that stays unmet, if all limits stand", cuts),
        rejected_section(document["rejections"], _without_a_way(document)),
    ]
    return [section for section in found if section.rows or section.notes]


def _together(limits: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [s for s in limits if not s["alone"]]


def _enough_alone(limits: Iterable[dict[str, Any]], currency: str) -> Section:
    """Changes of one limit, each of which makes the problem feasible."""
    rows = tuple(
        (
            _row_words(s),
            number(s["attainable"]),
            number(s["required"]),
            number(s["short_by"]),
            s["unit"],
            money(s["npv"]),
        )
        for s in limits
    )
    headings = columns("Limit", ">Is", ">At least", ">Change", "Unit", f">Least cost then ({currency}, NPV)")
    return Section("Any one of these limits is enough, if it gives by so much and all demand is met", headings, rows)


def shortfall_line(document: Document) -> str:
    """The first shortfall in one line, for standard error."""
    found = document["infeasibility"]
    if not found:
        return "infeasible"
    if nothing := no_offer_line(document):
        return f"infeasible: {nothing}"
    first = found[0]
    words = limit_words(first["family"], first["index"], first["unit"])
    return f"infeasible: {words} falls short by {quantity(first['short_by'], first['unit'])}"


def _fix_lines(document: Document, limits: Iterable[dict[str, Any]]) -> list[str]:
    if not document["inputs"]["options"]:
        return []
    fixes = [s["cheapest_fix"] for s in limits if s["cheapest_fix"]]
    if not fixes:
        return ["No change of a single limit makes it feasible."]
    fix = min(fixes, key=lambda f: f["npv"])
    family, _, label = fix["change"].partition(" ")
    words = limit_words(family, [label] if label else [], fix["unit"])
    return [
        f"Cheapest single change: {words} from {number(fix['from'])} to {quantity(fix['to'], fix['unit'])} "
        f"(+{number(fix['by'])}); the least cost is then {money(fix['npv'])} {document['currency']} (NPV)."
    ]


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
    found = sorted(rejections, key=lambda r: r["workload"] not in first)
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
