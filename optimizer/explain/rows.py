"""Rows that bind, in words; offers left out and deployments rejected, grouped."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from optimizer.explain.reading import PlanReader, Record
from optimizer.report.changes import limit_name
from optimizer.report.meanings import family_meaning
from optimizer.report.words import counted, limit_words
from optimizer.trace import TraceNode

MOST_EXAMPLES = 3
DOMINATED = "dominated"
"""Resource of deployments that another one beats: no obstacle, only a worse way."""


def bindings_node(plan: PlanReader, wanted: Callable[[Record], bool] = lambda _: True) -> TraceNode:
    """Binding rows by family and what they are about, with what it means."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in plan.binding_rows():
        if wanted(row):
            groups[row["family"], _about(row)].append(row)
    ordered = sorted(groups.items(), key=lambda item: (not _is_limit(item[0][0]), item[0]))
    children = tuple(_binding_node(family, about, rows) for (family, about), rows in ordered)
    label = "what binds" if children else "nothing binds"
    return TraceNode(label, counted(len(children), "group") + " of rows", children=children)


def _about(row: Record) -> str:
    """What a row is about, without its time: a workload and its deployment, an option, a job."""
    index = row["index"]
    if row["family"] in ("compute", "memory_bandwidth", "replica_time", "memory_capacity"):
        return f"{index[0]} on {index[1]}"
    if row["family"] == "pool_capacity" and len(index) > 3:
        return f"{index[0]} on {index[2]}"
    return str(limit_words(row["family"], index, row["unit"])) if index else str(row["family"])


def _is_limit(family: str) -> bool:
    return family.startswith(("budget", "supply", "provider", "interruptible", "site", "minimum"))


def _binding_node(family: str, about: str, rows: list[Record]) -> TraceNode:
    first = rows[0]
    times = f"{counted(len(rows), 'time')}, e.g. {', '.join(str(part) for part in first['index'])}"
    value = first["rhs"] if len({row["rhs"] for row in rows}) == 1 and first["rhs"] else None
    return TraceNode(f"{family}: {about}", value, first["unit"] if value else "", f"{family_meaning(family)} ({times})")


# --- rejected, left out -----------------------------------------------------------------------------------------------


def rejections_node(plan: PlanReader, wanted: Callable[[Record], bool] = lambda _: True) -> TraceNode:
    """Deployments rejected, by workload and GPU; those that another deployment of the same GPU beats are counted."""
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    beaten = 0
    for rejection in plan.document["rejections"]:
        if not wanted(rejection):
            continue
        if rejection["resource"] == DOMINATED:
            beaten += 1
        else:
            groups[rejection["workload"], rejection["gpu"]].append(rejection)
    children = [_rejected_node(f"{w} on {gpu}", found) for (w, gpu), found in groups.items()]
    if beaten:
        formula = "another deployment on the same GPU takes less of it for every class"
        children.append(TraceNode("not worth considering", counted(beaten, "deployment"), formula=formula))
    return TraceNode("rejected", counted(sum(map(len, groups.values())), "deployment"), children=tuple(children))


def _rejected_node(label: str, found: list[Record]) -> TraceNode:
    return TraceNode(label, children=tuple(rejection_node(one) for one in found))


def rejection_node(found: Record) -> TraceNode:
    """What was required and what was there."""
    inputs = (("required", found["required"]), ("there", found["available"]))
    label = found["deployment"] or found["resource"].replace("_", " ")
    known = tuple((name, value) for name, value in inputs if value is not None)
    if not any(value for _, value in known):
        known = ()
    return TraceNode(label, found["reason"], formula=f"{found['resource']}, in {found['unit']}", inputs=known)


def left_out_node(plan: PlanReader, wanted: Callable[[Record], bool] = lambda _: True) -> TraceNode:
    """Offers left out before solving, by reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for entry in plan.document["left_out"]:
        if wanted(entry):
            groups[_reason_kind(entry["reason"])].append(entry["option"])
    children = tuple(_left_out_group(reason, ids) for reason, ids in groups.items())
    total = sum(len(ids) for ids in groups.values())
    return TraceNode("left out before solving", counted(total, "offer"), children=children)


def _reason_kind(reason: str) -> str:
    """The reason without the name of the offer that is better."""
    kind = re.sub(r"not cheaper than \S+", "not cheaper than another", reason)
    return re.sub(r"outclassed by [^:]+", "outclassed by another", kind)


def _left_out_group(reason: str, ids: list[str]) -> TraceNode:
    more = f" and {len(ids) - MOST_EXAMPLES:,} more" if len(ids) > MOST_EXAMPLES else ""
    return TraceNode(reason, counted(len(ids), "offer"), formula=", ".join(ids[:MOST_EXAMPLES]) + more)


_SHORT = {
    "conflict": "cannot hold together with the other limits so marked",
    "demand": "so much demand stays unmet if limits stand",
    "cut": "a cut of this workload that is enough, if limits stand",
}


def shortfall_nodes(plan: PlanReader) -> Iterable[TraceNode]:
    """Why there is no plan: what falls short, the changes that are enough, limits in conflict, cuts of demand."""
    for found in plan.document["infeasibility"]:
        inputs = [("needed", found["required"]), ("there is", found["attainable"])]
        if found["npv"] is not None:
            inputs.append(("npv then", found["npv"]))
        yield TraceNode(
            _short_label(found),
            found["short_by"],
            found["unit"],
            _short_meaning(found),
            found.get("change", ""),
            tuple(inputs),
        )


def _short_meaning(found: Record) -> str:
    if found["kind"] != "limit":
        return _SHORT[found["kind"]]
    if found.get("at_least"):
        return "the least that it would have to give; more may be needed"
    return "enough alone, if it gives so much" if found["alone"] else "one of the limits that give together"


def _short_label(found: Record) -> str:
    if found["kind"] == "conflict":
        return f"{limit_name(found)} in conflict"
    name = (
        limit_name(found) if found["kind"] == "limit" else limit_words(found["family"], found["index"], found["unit"])
    )
    return f"{name} short by"
