"""Tables of an explanation: use of every pool by time slice, and the resource that each service's replicas are for."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from optimizer.estimator.types import Deployment
from optimizer.explain.reading import CellOf, PlanReader, Record
from optimizer.report.words import resource_words

Value = str | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of plain values; headings of figures carry their unit in brackets."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def document(self) -> dict[str, Any]:
        """As plain JSON data: one record per row."""
        return {"title": self.title, "rows": [dict(zip(self.headings, row, strict=True)) for row in self.rows]}


# --- use --------------------------------------------------------------------------------------------------------------

USE_HEADINGS = (
    "pool",
    "slice",
    "nodes at most",
    "GPUs there",
    "GPUs of services",
    "GPUs of jobs",
    "share kept",
    "share busy",
)


@dataclass(slots=True)
class _Use:
    """GPU-hours of an option in a slice over the whole horizon, and its most nodes at once."""

    hours: float = 0.0
    there: float = 0.0
    services: float = 0.0
    jobs: float = 0.0
    busy: float = 0.0
    most_gpus: float = 0.0


def use_table(plan: PlanReader) -> Table:
    """Use by pool and slice, over the months in which the pool has nodes: means, and the most nodes at once."""
    found: dict[tuple[str, int], _Use] = defaultdict(_Use)
    services, jobs = _kept_by_kind(plan)
    for (option, block, slice_), there in plan.gpus_there.items():
        if there <= 0:
            continue
        cell, hours, use = (option, block, slice_), plan.hours(block, slice_), found[option, slice_]
        use.hours += hours
        use.there += there * hours
        use.services += services.get(cell, 0.0) * hours
        use.jobs += jobs.get(cell, 0.0) * hours
        use.busy += plan.gpus_busy.get(cell, 0.0) * hours
        use.most_gpus = max(use.most_gpus, there)
    rows = tuple(_use_row(plan, option, slice_, found[option, slice_]) for option, slice_ in sorted(found))
    return Table("Use by pool and slice (means over the months with nodes there)", USE_HEADINGS, rows)


def _use_row(plan: PlanReader, option: str, slice_: int, use: _Use) -> tuple[Value, ...]:
    name = str(plan.document["grid"]["slices"][slice_]["name"])
    nodes = use.most_gpus / plan.options[option]["gpus_per_node"]
    mean = (use.there / use.hours, use.services / use.hours, use.jobs / use.hours)
    return (option, name, nodes, *mean, (use.services + use.jobs) / use.there, use.busy / use.there)


def _kept_by_kind(plan: PlanReader) -> tuple[dict[CellOf, float], dict[CellOf, float]]:
    """GPUs that replicas of services occupy, and GPUs at work for jobs (their mean), by cell."""
    services: dict[CellOf, float] = defaultdict(float)
    jobs: dict[CellOf, float] = defaultdict(float)
    schedule, estimates = plan.document["schedule"], plan.document["inputs"]["estimates"]
    for entry in schedule["replicas"]:
        gpus = estimates["services"][entry["estimate"]]["deployment"]["gpus_per_replica"]
        services[entry["option"], entry["block"], entry["slice"]] += gpus * entry["replicas"]
    for entry in schedule["work"]:
        jobs[entry["option"], entry["block"], entry["slice"]] += entry["gpus_on_free"] + entry["gpus_on_hired"]
    return services, jobs


# --- bottlenecks ------------------------------------------------------------------------------------------------------

BOTTLENECK_HEADINGS = (
    "service",
    "class",
    "on",
    "requests/s",
    "by compute",
    "by memory bandwidth",
    "by memory",
    "by replica time",
    "replicas",
    "bought for",
)
PACES = ("compute", "memory_bandwidth", "interconnect", "overhead")
Place = tuple[str, str, int, int, int]
"""Service, option, estimate, block, slice."""


def bottleneck_table(plan: PlanReader) -> Table:
    """Replicas that each resource asks for, by service, deployment and class, in the slice with most replicas."""
    peaks = _peaks(plan)
    rows = tuple(row for place, replicas in peaks.items() for row in _bottleneck_rows(plan, place, replicas))
    return Table(
        "What services' replicas are bought for, at their peak (by: replicas that a resource asks for)",
        BOTTLENECK_HEADINGS,
        rows,
    )


def _peaks(plan: PlanReader) -> dict[Place, float]:
    """The place in time with most replicas, by service, option and deployment."""
    best: dict[tuple[str, str, int], tuple[float, Place]] = {}
    for entry in plan.document["schedule"]["replicas"]:
        key = (entry["workload"], entry["option"], entry["estimate"])
        if key not in best or entry["replicas"] > best[key][0]:
            best[key] = (entry["replicas"], (*key, entry["block"], entry["slice"]))
    return {place: replicas for replicas, place in best.values()}


def _bottleneck_rows(plan: PlanReader, place: Place, replicas: float) -> Iterator[tuple[Value, ...]]:
    workload, option, number, *_ = place
    estimate = plan.document["inputs"]["estimates"]["services"][number]
    on = f"{option}, {Deployment(**estimate['deployment']).label}"
    share = _productive_share(plan.options[option])
    totals: dict[str, float] = defaultdict(float)
    served = [
        e
        for e in plan.document["schedule"]["served"]
        if (e["workload"], e["option"], e["estimate"], e["block"], e["slice"]) == place and e["requests_per_s"] > 0
    ]
    for entry in served:
        found = next(c for c in estimate["classes"] if c["request_class"] == entry["class"])
        needs = {name: entry["requests_per_s"] * n / share for name, n in resource_needs(estimate, found).items()}
        for name, need in needs.items():
            totals[name] += need
        there = replicas if len(served) == 1 else None
        figures = (entry["requests_per_s"], *_figures(needs), there)
        yield (workload, entry["class"], on, *figures, bought_for(needs, found))
    if len(served) > 1:
        rate = sum(e["requests_per_s"] for e in served)
        yield (workload, "together", on, rate, *_figures(totals), replicas, bought_for(totals, None))


def _productive_share(option: Record) -> float:
    lost = 1.0 + option["interruptions_per_node_hour"] * option["hours_lost_per_interruption"]
    return float(option["availability"] / lost)


def resource_needs(estimate: Record, found: Record) -> dict[str, float]:
    """Replicas that one request/s of a class asks for, by resource; measured rates know replica time only."""
    needs = {"replica_time": found["replica_seconds_per_request"] / estimate["utilisation_cap"]}
    if estimate["measured"]:
        return needs
    flop, moved = estimate["effective_flop_per_s"], estimate["effective_bytes_per_s"]
    held = found["kv_bytes_per_sequence"] * found["residence_s"]
    if flop > 0:
        needs["compute"] = found["flop_per_request"] / flop
    if moved > 0:
        needs["memory_bandwidth"] = found["moved_bytes_per_request"] / moved
    if estimate["free_memory_bytes"] > 0:
        needs["memory"] = held / estimate["free_memory_bytes"]
    return needs


def _figures(needs: dict[str, float]) -> tuple[Value, ...]:
    return tuple(needs.get(name) for name in ("compute", "memory_bandwidth", "memory", "replica_time"))


def bought_for(needs: dict[str, float], found: Record | None) -> str:
    """The resource that asks for most replicas; for replica time, what sets its pace."""
    most = max(needs, key=lambda name: needs[name])
    if most != "replica_time" or found is None:
        return resource_words(most)
    seconds = {name: found[f"{name}_seconds"] for name in PACES}
    if not any(seconds.values()):
        return "replica time (measured)"
    pace = max(seconds, key=lambda name: seconds[name])
    return f"replica time, its pace set by {resource_words(pace)}"
