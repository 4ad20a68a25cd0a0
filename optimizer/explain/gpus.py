"""A GPU type in a plan, or why it is not in it."""

from collections.abc import Callable
from dataclasses import dataclass

from optimizer.explain.quantities import assignment_node, estimate_node, use_node
from optimizer.explain.reading import PlanReader
from optimizer.explain.rows import DOMINATED, bindings_node, left_out_node, rejection_node
from optimizer.report.numbers import money, percent
from optimizer.report.words import counted
from optimizer.trace import TraceNode

OUTCLASSED = "outclassed by"
"""Start of the reason of offers that could serve, but that another one beats in everything."""


@dataclass(frozen=True, slots=True)
class Forced:
    """What became of the problem when every workload that a GPU type can run was restricted to it.

    `status` as in a plan; `npv` and `gap` where there is a plan, `short` where not.
    """

    status: str
    npv: float | None = None
    gap: float | None = None
    short: str = ""
    notes: tuple[str, ...] = ()


ForceHook = Callable[[str, list[str]], Forced]
"""Re-solves with the named workloads restricted to a GPU type."""


def gpu_nodes(plan: PlanReader, gpu: str, force: ForceHook | None) -> list[TraceNode]:
    """What a GPU type does in the plan and why, or why it is not in it.

    `force` re-solves with the GPU type forced; without it a GPU type that could run is only said to be dearer.
    """
    if plan.solved and gpu in plan.used_gpus:
        return _in_plan(plan, gpu)
    left_out = left_out_node(plan, lambda entry: entry["gpu"] == gpu)
    offers = [node for node in (_considered_node(plan, gpu), left_out) if node.value != counted(0, "offer")]
    found = [*offers, *_by_workload(plan, gpu)]
    able = able_workloads(plan, gpu)
    if able and plan.solved:
        found.insert(0, _verdict(plan, gpu, able, force))
    elif not able:
        found.insert(0, TraceNode(f"why not {gpu}", _no_way(plan, gpu)))
    return found


def able_workloads(plan: PlanReader, gpu: str) -> list[str]:
    """Workloads that have an estimate on a GPU type, where an offer of it was considered, or only beaten by another."""
    beaten = any(e["gpu"] == gpu and e["reason"].startswith(OUTCLASSED) for e in plan.document["left_out"])
    if not beaten and not any(option["gpu_id"] == gpu for option in plan.options.values()):
        return []
    estimates = plan.document["inputs"]["estimates"]
    runs = {e["workload"] for key in ("services", "jobs") for e in estimates[key] if e["gpu_id"] == gpu}
    return [name for name in plan.workloads if name in runs]


def _no_way(plan: PlanReader, gpu: str) -> str:
    if any(option["gpu_id"] == gpu for option in plan.options.values()):
        return "no workload of this problem can run on it: see what was required and what was there"
    if any(entry["gpu"] == gpu for entry in plan.document["left_out"]):
        return "all its offers were left out before solving: see the reasons"
    listed = plan.problem["options"]["gpus"]
    if listed is not None and gpu not in listed:
        return f"it is not in options.gpus of the problem ({', '.join(listed)}): add it there to have it considered"
    return "no offer of it was found: neither the catalog nor the problem's quotes have one that is allowed"


def _considered_node(plan: PlanReader, gpu: str) -> TraceNode:
    """Offers of a GPU type that the solver could choose."""
    found = [name for name, option in plan.options.items() if option["gpu_id"] == gpu]
    return TraceNode(f"offers of {gpu} considered", counted(len(found), "offer"), formula=", ".join(found[:3]))


def _by_workload(plan: PlanReader, gpu: str) -> list[TraceNode]:
    """Per workload: what rejected the GPU type, or the estimate with which it could run."""
    return [node for name in plan.workloads for node in _workload_node(plan, name, gpu)]


def _workload_node(plan: PlanReader, workload: str, gpu: str) -> list[TraceNode]:
    estimates = plan.document["inputs"]["estimates"]
    can = [e for key in ("services", "jobs") for e in estimates[key] if (e["workload"], e["gpu_id"]) == (workload, gpu)]
    refused = [
        rejection_node(r)
        for r in plan.document["rejections"]
        if (r["workload"], r["gpu"]) == (workload, gpu) and r["resource"] != DOMINATED
    ]
    if can:
        return [TraceNode(f"{workload}: can run", children=(*(estimate_node(e) for e in can), *refused))]
    if refused:
        return [TraceNode(f"{workload}: rejected", children=tuple(refused))]
    allowed = plan.workloads[workload].get("gpus")
    if allowed is not None and gpu not in allowed:
        return [TraceNode(f"{workload}: not allowed", f"its gpus: {', '.join(allowed)}")]
    return []


def _verdict(plan: PlanReader, gpu: str, able: list[str], force: ForceHook | None) -> TraceNode:
    """How much dearer the problem is with the GPU type forced."""
    label, listed = f"why not {gpu}", ", ".join(able)
    if force is None:
        return TraceNode(
            label, f"it could run {listed}, but not more cheaply; leave --no-resolve out to see by how much"
        )
    forced, here = force(gpu, able), plan.document["cost"]["npv"]
    how = f"re-solved with {listed} restricted to {gpu}; status {forced.status}"
    remarks = tuple(TraceNode("note", text) for text in forced.notes)
    if forced.npv is None:
        why = forced.short or "no plan was found in time"
        return TraceNode(label, f"with {listed} on {gpu} only there is no plan: {why}", formula=how, children=remarks)
    difference = forced.npv - here
    share = percent(difference / abs(here)) if here else ""
    words = "dearer" if difference > 0 else "cheaper" if difference < 0 else "the same cost"
    text = f"{money(abs(difference))} {plan.currency} ({share}) {words}" if difference else words
    inputs = [("npv with it", forced.npv), ("npv of the plan", here)]
    inputs += [] if forced.gap is None else [("gap with it", forced.gap)]
    return TraceNode(label, text, "", how, "", tuple(inputs), remarks)


def _in_plan(plan: PlanReader, gpu: str) -> list[TraceNode]:
    options = [name for name in plan.options if name in plan.used_options and plan.options[name]["gpu_id"] == gpu]
    cost, total = plan.npv_of(options), plan.document["cost"]["npv"]
    share = f"{percent(cost / total)} of the plan's cost" if total else ""
    held = plan.document["gpus"].get(gpu, 0)
    tasks = tuple(assignment_node(a) for a in plan.document["assignments"] if a["gpu"] == gpu)
    about = bindings_node(
        plan, lambda row: any(str(part).startswith(name) for part in row["index"] for name in [*options, gpu])
    )
    return [
        TraceNode(f"{gpu} is in the plan", held, "GPUs at most at once", "on nodes held or rented"),
        TraceNode("its cost (NPV)", cost, plan.currency, share),
        TraceNode("what it carries", children=tasks),
        *(use_node(plan, name) for name in options),
        about,
    ]
