"""What workloads need and GPUs yield, as sections and as CSV."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from optimizer.report.forms import csv_text
from optimizer.report.infeasible import REJECTION_HEADINGS, rejection_row
from optimizer.report.numbers import NOTHING, brief, number, percent, span
from optimizer.report.sections import Section, columns, without_empty_columns
from optimizer.report.words import beyond_context, counted, resource_words
from optimizer.units import BYTES_PER_GIB

Document = dict[str, Any]
CSV_COLUMNS = (
    "workload", "class", "gpu", "deployment", "gpus_per_replica", "batch", "yield", "unit", "low", "high", "ttft_ms",
    "tpot_ms", "end_to_end_ms", "bottleneck", "utilisation_cap", "mfu", "min_gpus", "max_gpus", "gpus_needed",
    "gpus_at_peak", "measured", "source",
)  # fmt: skip


def sizing_sections(document: Document, *, everything: bool = False) -> list[Section]:
    """Per workload what it needs and what GPUs yield; without `everything` the deployment with fewest GPUs per type."""
    found = [Section(document["problem"], notes=(_preface(), *beyond_context(document["assumptions"])))]
    for demand in document["demands"]:
        found.append(_need(demand))
        found.extend(_yields(demand["workload"], document, everything))
    found.append(_rejections(document["rejections"], everything))
    return [section for section in found if section.rows or section.notes]


def _preface() -> str:
    return (
        "GPUs: a quick count for one deployment alone at the peak, headroom and utilisation cap included. "
        "`gpumix solve` mixes, shares, times and prices them."
    )


# --- needs ------------------------------------------------------------------------------------------------------------


def _need(demand: dict[str, Any]) -> Section:
    rows = [*_rate_rows(demand), *_volume_rows(demand)]
    rows += [(step["symbol"], _step(step)) for step in demand["steps"]]
    return Section(f"{demand['workload']}: what it needs", rows=tuple(rows))


def _rate_rows(demand: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for found in demand["classes"]:
        label = "rate" if found["class"] == "all" else f"rate of {found['class']}"
        peak, mean = number(found["peak_requests_per_s"]), number(found["first_mean_requests_per_s"])
        yield label, f"{peak} requests/s at the peak of the horizon, {mean} requests/s on average in the first period"


def _volume_rows(demand: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if demand["amount"] is None:
        return
    per = " a day" if demand["per_day"] else ""
    yield "work", f"{number(demand['amount'])} {demand['unit']}{per}"
    if demand["hours_per_run"] is not None:
        runs = f"{counted(demand['runs'], 'run')} of " if demand["runs"] > 1 and not demand["per_day"] else ""
        hours = number(demand["hours_per_run"])
        yield "time", f"{runs}{hours} hours in which it may run" if not demand["per_day"] else "every day"


def _step(step: dict[str, Any]) -> str:
    inputs = ", ".join(f"{name} = {number(value)}" for name, value in step["inputs"])
    tail = f"; {inputs}" if inputs else ""
    return f"{number(step['value'])} {step['unit']} = {step['formula']}{tail}"


# --- yields -----------------------------------------------------------------------------------------------------------


def _yields(workload: str, document: Document, everything: bool) -> Iterator[Section]:
    services = [e for e in document["services"] if e["workload"] == workload]
    jobs = [e for e in document["jobs"] if e["workload"] == workload]
    if services:
        shown = services if everything else _best(services)
        yield _service_section(workload, shown, len(services) - len(shown))
    elif jobs:
        shown = jobs if everything else _best(jobs)
        yield _job_section(workload, shown, len(jobs) - len(shown))
    else:
        note = "No GPU that the problem allows can run it; see what was rejected."
        yield Section(f"{workload}: what a GPU yields", notes=(note,))


def _best(estimates: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per GPU type (and offer, where measured on one) the deployment that needs fewest GPUs and serves most classes.

    Of prompts and outputs apart, the best of each.
    """
    groups: dict[tuple[str, str | None, str | None], list[dict[str, Any]]] = defaultdict(list)
    for estimate in estimates:
        groups[estimate["gpu"], estimate["option"], estimate["stage"]].append(estimate)
    return [min(group, key=_rank) for group in groups.values()]


def _rank(estimate: dict[str, Any]) -> tuple[float, ...]:
    missing = len(estimate.get("classes_not_served", ()))
    late = not estimate.get("in_time", True)
    count, needed = estimate["gpus_at_peak"], estimate["gpus_needed"]
    return (missing, late, float("inf") if count is None else count, float("inf") if needed is None else needed)


def _more(hidden: int) -> tuple[str, ...]:
    return (f"Fewest GPUs per type; {counted(hidden, 'more deployment')}: `-v` or `-o json`.",) if hidden else ()


def _service_section(workload: str, estimates: Sequence[dict[str, Any]], hidden: int) -> Section:
    headings = (
        "GPU", "Deployment", "Class", ">Replica (requests/s)", ">Range", ">TTFT (ms)", ">TPOT (ms)",
        ">KV memory (GiB)", "Limited by", ">GPUs", "Basis",
    )  # fmt: skip
    rows = [row for estimate in estimates for row in _service_rows(estimate)]
    missing = sorted({c for e in estimates for c in e["classes_not_served"]})
    notes = tuple(f"Class {name} is not served by every deployment." for name in missing)
    if any(e["stage"] for e in estimates):
        notes = (*notes, "A request done apart needs a prefill and a decode deployment: add up one of each.")
    section = Section(f"{workload}: what a GPU yields", columns(*headings), tuple(rows), (*notes, *_more(hidden)))
    return without_empty_columns(section, ("", NOTHING, "all"))


def _service_rows(estimate: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for position, found in enumerate(estimate["classes"]):
        first = position == 0
        memory = estimate["free_memory_bytes"]
        yield (
            _place(estimate) if first else "",
            estimate["deployment"] if first else "",
            found["class"],
            number(found["requests_per_s_per_replica"]),
            "" if estimate["measured"] else span(found["low"], found["high"]),
            brief(found["ttft_ms"]),
            brief(found["tpot_ms"]),
            brief(memory / BYTES_PER_GIB if memory else None) if first else "",
            resource_words(found["bottleneck"]),
            _count(estimate) if first else "",
            "measured" if estimate["measured"] else "estimate",
        )


def _place(estimate: dict[str, Any]) -> str:
    return f"{estimate['gpu']} ({estimate['option']})" if estimate["option"] else str(estimate["gpu"])


def _count(estimate: dict[str, Any]) -> str:
    """Whole GPUs, with the unrounded figure where they differ: `4 (2.22)`."""
    whole, needed = estimate["gpus_at_peak"], estimate["gpus_needed"]
    if whole is None or needed is None:
        return NOTHING
    return f"{whole:,}" if whole == needed else f"{whole:,} ({number(needed)})"


def _job_section(workload: str, estimates: Sequence[dict[str, Any]], hidden: int) -> Section:
    unit = estimates[0]["unit"]
    headings = (
        "GPU", "Deployment", f">Yield ({unit} per GPU-hour)", ">Range", ">MFU", ">GPUs at once", ">GPUs in time",
        "Basis",
    )  # fmt: skip
    rows = tuple(_job_row(estimate) for estimate in estimates)
    late = [e["gpu"] for e in estimates if not e["in_time"]]
    notes = (f"Too slow at the most GPUs it may use: {', '.join(dict.fromkeys(late))}.",) if late else ()
    section = Section(f"{workload}: what a GPU yields", columns(*headings), rows, (*notes, *_more(hidden)))
    return without_empty_columns(section)


def _job_row(estimate: dict[str, Any]) -> tuple[str, ...]:
    least, most = estimate["min_gpus"], estimate["max_gpus"]
    return (
        _place(estimate),
        estimate["deployment"],
        number(estimate["units_per_gpu_hour"]),
        "" if estimate["measured"] else span(estimate["low"], estimate["high"]),
        percent(estimate["mfu"]),
        f"{least:,} or more" if most is None else f"{least:,}–{most:,}",
        _count(estimate),
        "measured" if estimate["measured"] else "estimate",
    )


def _rejections(rejections: Sequence[dict[str, Any]], everything: bool) -> Section:
    """All rejections, or the nearest miss per workload, GPU type and reason's resource."""
    shown = list(rejections)
    if not everything:
        groups: dict[tuple[str, str, str], dict[str, Any]] = {}
        for found in rejections:
            key = (found["workload"], found["gpu"], found["resource"])
            if key not in groups or _miss(found) < _miss(groups[key]):
                groups[key] = found
        shown = list(groups.values())
    rows = tuple(rejection_row(found) for found in shown)
    return Section("Rejected", columns(*REJECTION_HEADINGS), rows, _more_rejections(len(rejections) - len(rows)))


def _miss(found: dict[str, Any]) -> float:
    """How far what was there missed what was required, as a factor."""
    required, available = found["required"], found["available"]
    if not required or not available:
        return float("inf")
    return float(max(required / available, available / required))


def _more_rejections(hidden: int) -> tuple[str, ...]:
    return (f"Nearest miss per GPU type; {counted(hidden, 'more rejection')}: `-v` or `-o json`.",) if hidden else ()


# --- CSV --------------------------------------------------------------------------------------------------------------


def sizing_csv(document: Document) -> str:
    """One line per workload, class, GPU type and deployment."""
    return csv_text([*_service_records(document), *_job_records(document)], CSV_COLUMNS)


def _service_records(document: Document) -> Iterator[dict[str, Any]]:
    for estimate in document["services"]:
        for found in estimate["classes"]:
            rate = found["requests_per_s_per_replica"]
            yield {**estimate, **found, "yield": rate, "unit": "requests/s per replica"}


def _job_records(document: Document) -> Iterator[dict[str, Any]]:
    for estimate in document["jobs"]:
        unit = f"{estimate['unit']} per GPU-hour"
        yield {**estimate, "yield": estimate["units_per_gpu_hour"], "unit": unit}
