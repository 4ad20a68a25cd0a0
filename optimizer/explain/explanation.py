"""What may be asked of a plan, and the answer: a number, a term, an offer, a workload, a GPU type, or everything."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from optimizer.errors import Finding, ProblemFileError
from optimizer.explain.costs import COST_MEANINGS, group_node, proof_node, term_node, total_node
from optimizer.explain.gpus import ForceHook, gpu_nodes
from optimizer.explain.quantities import option_nodes, use_node, workload_nodes
from optimizer.explain.reading import PlanReader, Record
from optimizer.explain.resolves import Resolves
from optimizer.explain.rows import bindings_node, left_out_node, rejections_node, shortfall_nodes
from optimizer.explain.tables import Table, bottleneck_table, use_table
from optimizer.explain.verdicts import is_beaten, limits_node, offer_nodes
from optimizer.plan import SCHEMA_VERSION
from optimizer.problem.messages import suggestion
from optimizer.report.meanings import TERM_MEANINGS
from optimizer.report.numbers import number
from optimizer.trace import TraceNode

TABLES = {"use": use_table, "bottlenecks": bottleneck_table}
"""Tables by the name that asks for them."""
GpuNameHook = Callable[[str], tuple[str, ...]]
"""The ids that a name of a GPU type may mean: one, several or none."""
COST_NAMES = ("cost", *(f"{start}{name}" for start in ("", "cost.") for name in (*COST_MEANINGS, "bound", "gap")))
NOISE = ("why not ", "why-not ", "why ", "gpu:", "gpus.", "workload:", "option:", "offer:")


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer: trees of figures; `depth` levels of them are worth showing to a person."""

    problem: str
    question: str
    answer: tuple[TraceNode, ...]
    ask_next: tuple[str, ...] = ()
    depth: int = 9
    tables: tuple[Table, ...] = ()

    def document(self) -> dict[str, Any]:
        """The explanation as plain JSON data."""
        return {
            "schema_version": SCHEMA_VERSION,
            "problem": self.problem,
            "question": self.question,
            "answer": [_plain(node) for node in self.answer],
            "tables": [table.document() for table in self.tables],
            "next": list(self.ask_next),
        }


def _plain(node: TraceNode) -> dict[str, Any]:
    found = asdict(node)
    found["inputs"] = dict(node.inputs)
    found["children"] = [_plain(child) for child in node.children]
    return found


def explain(
    document: Record,
    what: str | None = None,
    *,
    force: ForceHook | None = None,
    resolves: Resolves | None = None,
    gpu_name: GpuNameHook = lambda _: (),
    plan_file: str = "plan.json",
) -> Explanation:
    """Explain a plan document: everything in short, or what `what` names.

    `force` re-solves for "why not GPU X", `resolves` for limits and for the price at which an offer enters;
    `gpu_name` settles other names of GPU types (the catalog's aliases); `plan_file` is named in errors.

    Raises
    ------
    ProblemFileError
        If nothing in the plan has the name that is asked for.
    """
    plan = PlanReader(document)
    if what is None or not what.strip():
        return Explanation(document["problem"], "", tuple(_overview(plan)), _next_questions(plan), depth=3)
    name = what.strip()
    nodes = _answer(plan, name, resolves)
    if nodes is not None:
        return Explanation(document["problem"], name, tuple(nodes), tables=_tables(plan, name))
    gpus = _gpus_called(plan, _bare(name), gpu_name)
    if len(gpus) != 1:
        finding = _ambiguous(name, gpus, plan_file) if gpus else _unknown(plan, name, plan_file)
        raise ProblemFileError([finding])
    nodes = [*gpu_nodes(plan, gpus[0], force), *_entries_of_gpu(plan, gpus[0], resolves)]
    return Explanation(document["problem"], name, tuple(nodes), depth=2)


def _entries_of_gpu(plan: PlanReader, gpu: str, resolves: Resolves | None) -> list[TraceNode]:
    """The price at which the offers of a GPU type enter, all by the same share."""
    offers = [name for name, option in plan.options.items() if option["gpu_id"] == gpu]
    beaten = [e["option"] for e in plan.document["left_out"] if e["gpu"] == gpu and is_beaten(plan, e["option"])]
    return offer_nodes(plan, offers or beaten, gpu, resolves)


def _tables(plan: PlanReader, what: str) -> tuple[Table, ...]:
    """The tables of an answer that is asked for by their name."""
    name = _spelt(_bare(what))
    if not plan.solved or name not in _free(plan, TABLES):
        return ()
    return (TABLES[name](plan),)


def _gpus_called(plan: PlanReader, name: str, gpu_name: GpuNameHook) -> tuple[str, ...]:
    """GPU types that a name may mean: those of this plan before others."""
    exact = _same(name, dict.fromkeys(plan.gpus_of_problem))
    if exact is not None:
        return (exact,)
    candidates = gpu_name(name)
    return tuple(gpu for gpu in candidates if gpu in plan.gpus_of_problem) or candidates


def _ambiguous(what: str, gpus: tuple[str, ...], plan_file: str) -> Finding:
    choices = " or ".join(f'"{gpu}"' for gpu in gpus)
    return Finding(f'"{what}" could mean several GPU types', file=plan_file, hint=f"ask for {choices}")


def _unknown(plan: PlanReader, what: str, plan_file: str) -> Finding:
    names = [*_numbers(plan), *plan.workloads, *plan.gpus_of_problem, *plan.options]
    names += [entry["option"] for entry in plan.document["left_out"]]
    message = f'nothing in this plan is called "{what}"'
    return Finding(message, file=plan_file, hint=suggestion(_bare(what), names, "ask for"))


# --- names ------------------------------------------------------------------------------------------------------------


def _answer(plan: PlanReader, what: str, resolves: Resolves | None) -> list[TraceNode] | None:
    """The trees for a name that is no GPU type's; None if nothing has it."""
    numbers = _numbers(plan, resolves)
    name = _bare(what)
    for asked in (what, name):
        if _spelt(asked) in numbers:
            return numbers[_spelt(asked)]()
    if (workload := _same(name, plan.workloads)) is not None:
        return workload_nodes(plan, workload)
    if (option := _same(name, plan.options)) is not None:
        return [*option_nodes(plan, option), *offer_nodes(plan, [option], option, resolves)]
    left_out = {entry["option"]: entry for entry in plan.document["left_out"]}
    if (option := _same(name, left_out)) is not None:
        node = TraceNode(option, "left out before solving", formula=left_out[option]["reason"])
        return [node, *(offer_nodes(plan, [option], option, resolves) if is_beaten(plan, option) else [])]
    return None


def _spelt(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def _bare(what: str) -> str:
    """The name in a question: without "why not", "gpu:" and a question mark."""
    name = what.strip().rstrip("?").strip()
    for noise in NOISE:
        if name.lower().startswith(noise):
            return name[len(noise) :].strip()
    return name


def _same(name: str, known: Mapping[str, object]) -> str | None:
    """The known name that equals `name`, or does but for capitals."""
    if name in known:
        return name
    return next((one for one in known if one.lower() == name.lower()), None)


def _numbers(plan: PlanReader, resolves: Resolves | None = None) -> dict[str, Callable[[], list[TraceNode]]]:
    """Everything that has a name of its own in a plan: numbers, terms and lists."""
    lists: dict[str, Callable[[], list[TraceNode]]] = {
        "bindings": lambda: [bindings_node(plan)],
        "assumptions": lambda: [assumptions_node(plan)],
        "rejections": lambda: [rejections_node(plan)],
        "left_out": lambda: [left_out_node(plan)],
    }
    if not plan.solved:
        nothing = {name: _no_figure(plan, name) for name in _free(plan, (*COST_NAMES, *TERM_MEANINGS, "gpus", "use"))}
        return {**nothing, **lists, "infeasibility": lambda: list(shortfall_nodes(plan))}
    totals: dict[str, Callable[[], list[TraceNode]]] = {
        "cost.npv": lambda: [total_node(plan)],
        "cost.bound": lambda: [proof_node(plan, "bound")],
        "cost.gap": lambda: [proof_node(plan, "gap")],
        "cost.capex": lambda: [group_node(plan, "capex")],
        "cost.opex": lambda: [group_node(plan, "opex")],
        "cost.salvage": lambda: [group_node(plan, "salvage")],
    }
    short = {name.removeprefix("cost."): found for name, found in totals.items()}
    named = dict.fromkeys((*_free(plan, TERM_MEANINGS), *(str(line["term"]) for line in plan.cost_lines())))
    terms = {term: _term(plan, term) for term in named}
    others = {"use": lambda: _uses(plan), **{name: list for name in _free(plan, ["bottlenecks"])}}
    others |= {name: lambda: [limits_node(plan, resolves)] for name in _free(plan, ["limits"])}
    others |= {**{name: lambda: [_fleet(plan)] for name in _free(plan, ["gpus"])}}
    return {**lists, **others, **terms, **short, "cost": totals["cost.npv"], **totals}


def _term(plan: PlanReader, term: str) -> Callable[[], list[TraceNode]]:
    return lambda: [term_node(plan, term, "npv")]


def _free(plan: PlanReader, names: Iterable[str]) -> list[str]:
    """Names without those that a workload or an offer has taken."""
    return [name for name in names if _same(name, plan.workloads) is None and _same(name, plan.options) is None]


def _no_figure(plan: PlanReader, name: str) -> Callable[[], list[TraceNode]]:
    """The answer for a figure of a plan where there is none: why there is no plan."""
    text = f"none: there is no plan (status {plan.document['status']})"
    return lambda: [TraceNode(name.replace("_", " "), text), *shortfall_nodes(plan)]


def _fleet(plan: PlanReader) -> TraceNode:
    """GPUs of every type at most at once, and what they do."""
    held = plan.document["gpus"]
    children = tuple(TraceNode(gpu, held[gpu], "GPUs", f"ask for {gpu}") for gpu in sorted(held))
    return TraceNode("GPUs at most at once", sum(held.values()), "GPUs", "on nodes held or rented", children=children)


def _uses(plan: PlanReader) -> list[TraceNode]:
    return [use_node(plan, option) for option in sorted(plan.used_options)]


def assumptions_node(plan: PlanReader) -> TraceNode:
    """Every figure that the answer rests on, by kind."""
    kinds = dict.fromkeys(a["kind"] for a in plan.document["assumptions"])
    return TraceNode("assumptions", children=tuple(_assumption_kind(plan, kind) for kind in kinds))


def _assumption_kind(plan: PlanReader, kind: str) -> TraceNode:
    found = [a for a in plan.document["assumptions"] if a["kind"] == kind]
    children = tuple(TraceNode(a["name"], a["value"], a["unit"], _range(a), _dated(a)) for a in found)
    return TraceNode(kind, children=children)


def _range(assumption: Record) -> str:
    low, high = assumption["low"], assumption["high"]
    return "" if low is None or high is None else f"between {number(low)} and {number(high)}"


def _dated(assumption: Record) -> str:
    return ", ".join(part for part in (assumption["source"], assumption["date"]) if part)


# --- everything in short ----------------------------------------------------------------------------------------------


def _overview(plan: PlanReader) -> list[TraceNode]:
    """Costs by term with their largest options, what binds, use of every pool, what was rejected and left out."""
    if not plan.solved:
        status = TraceNode("status", str(plan.document["status"]), formula="there is no plan; this is why")
        return [status, *shortfall_nodes(plan), rejections_node(plan), left_out_node(plan)]
    uses = TraceNode("use of what is there", children=tuple(_uses(plan)))
    return [total_node(plan), bindings_node(plan), uses, rejections_node(plan), left_out_node(plan)]


def _next_questions(plan: PlanReader) -> tuple[str, ...]:
    """What else can be asked, with the names of this plan."""
    names = ["cost.npv", "cost.capex", "cost.opex"] if plan.solved else []
    names += ["limits", "use", "bottlenecks"] if plan.solved else ["infeasibility"]
    names += ["bindings", "assumptions", *list(plan.workloads)[:3]]
    used = sorted(plan.used_options)[:2] if plan.solved else []
    others = [gpu for gpu in plan.gpus_of_problem if not plan.solved or gpu not in plan.used_gpus][:2]
    return (*names, *used, *(f"why not {gpu}" for gpu in others))
