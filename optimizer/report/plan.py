"""A plan document as sections: what to do, what it costs, why, and what it rests on."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from optimizer.finance import running_factor
from optimizer.report.carbon import emitted_tonnes
from optimizer.report.costs import costs_section
from optimizer.report.infeasible import infeasible_sections
from optimizer.report.numbers import NOTHING, money, number, percent, span, unit_price
from optimizer.report.sections import Section, columns, without_empty_columns
from optimizer.report.words import (
    ACTIONS,
    LIMIT_FAMILIES,
    PURCHASE_WORDS,
    beyond_context,
    counted,
    limit_words,
    quantity,
    resource_words,
    short_source,
    workload_words,
)

MOST_ASSUMPTIONS = 12
MOST_DOUBTS = 6
WORTH_TELLING = 0.01
"""Share of the time paid in whole billing steps that must be idle to be told."""
PLAN_FILE = "plan.json"
Document = dict[str, Any]


def plan_sections(document: Document, *, plan_file: str | None = None, problem_file: str = "FILE") -> list[Section]:
    """All that a buyer and a finance person ask of a plan.

    The next steps name `problem_file`, and the plan file if there is one.
    """
    if document["status"] == "infeasible":
        return [*infeasible_sections(document), _next_steps(document, plan_file, problem_file)]
    if document["cost"] is None:
        return [_no_plan(document), _next_steps(document, plan_file, problem_file)]
    found = [
        _headline(document),
        _actions(document),
        _assignments(document),
        costs_section(document),
        _limits(document),
        _not_chosen(document, plan_file),
        _assumptions(document),
        _next_steps(document, plan_file, problem_file),
    ]
    return [section for section in found if section.rows or section.notes]


def status_line(document: Document) -> str:
    """The status and what it means, in a sentence."""
    status, asked = document["status"], document["inputs"].get("settings", {}).get("gap")
    if status == "infeasible":
        return "Infeasible: no plan meets all that the problem asks for."
    stopped = "Interrupted" if document.get("interrupted") else "Stopped by the time limit"
    if document["cost"] is None:
        return f"{stopped} before any plan was found."
    if document["inputs"].get("settings", {}).get("method") == "decomposed" and not document.get("interrupted"):
        stopped = "Planned by prices and cells"
    verdict = "Optimal" if status == "optimal" else f"{stopped}: a plan that can be carried out"
    return f"{verdict}; {_proof(document['cost']['gap'])} (gap asked: {percent(asked)})."


def _proof(gap: float | None) -> str:
    if gap is None:
        return "how much cheaper another plan could be is not known yet"
    return f"proven: no plan is {f'more than {percent(gap)} ' if gap else ''}cheaper"


# --- headline ---------------------------------------------------------------------------------------------------------


def _headline(document: Document) -> Section:
    cost, currency = document["cost"], document["currency"]
    months, rate = document["grid"]["horizon_months"], _discount_rate(document)
    factor = running_factor(rate, 0.0, months, months)
    rows = [
        ("status", status_line(document)),
        ("cost (NPV)", f"{money(cost['npv'])} {currency} over {quantity(months, 'months')} at {percent(rate)} a year"),
        ("that is per month", f"{money(cost['npv'] / factor)} {currency}, the level payment of the same present value"),
        ("proven bound", _bound_text(cost, currency)),
        ("undiscounted", _undiscounted(cost, currency)),
        ("GPUs at most at once", _fleet(document["gpus"])),
    ]
    tonnes = emitted_tonnes(document)
    if tonnes is not None:
        words = f"{number(tonnes)} t CO2e of electricity over the horizon"
        rows.append(("emissions", words + _estimated(document)))
    return Section(document["problem"], rows=tuple(rows))


def _estimated(document: Document) -> str:
    rented = any(option["purchase_option"] != "owned" for option in document["inputs"]["options"])
    return " (of rented nodes an estimate: carbon in the problem file)" if rented else ""


def _discount_rate(document: Document) -> float:
    return float(document["inputs"]["problem"].get("finance", {}).get("discount_rate") or 0.0)


def _bound_text(cost: dict[str, float | None], currency: str) -> str:
    if cost["bound"] is None:
        return "none yet"
    return f"no plan costs less than {money(cost['bound'])} {currency}; gap {percent(cost['gap'])}"


def _undiscounted(cost: dict[str, float], currency: str) -> str:
    parts = f"capex {money(cost['capex'])} + opex {money(cost['opex'])} − salvage {money(cost['salvage'])}"
    return f"{parts} = {money(cost['capex'] + cost['opex'] - cost['salvage'])} {currency}"


def _fleet(gpus: dict[str, int]) -> str:
    return ", ".join(f"{count:,} × {gpu}" for gpu, count in sorted(gpus.items())) or "none"


# --- what to do -------------------------------------------------------------------------------------------------------


def _actions(document: Document) -> Section:
    days = {option["option_id"]: option["price_date"] for option in document["inputs"]["options"]}
    rows = [
        *_kept(document, days),
        *(_order(order, days) for order in document["acquisitions"]),
        *(_rental(rental, document, days) for rental in document["rentals"]),
    ]
    headings = ("Do", "Offer", "GPU", ">Nodes", ">GPUs", "When (months)", f"Price ({document['currency']})", "Source")
    note = "Nodes and GPUs of rentals are the most at one time; months count from the start of the horizon."
    notes = (note, *_idle_time(document), *_doubts(document)) if rows else ()
    return Section("What to keep, buy, sign and rent", columns(*headings), tuple(rows), notes)


def _idle_time(document: Document) -> Iterator[str]:
    """Time paid in whole billing steps, and how much of it is used."""
    for rental in document["rentals"]:
        paid, used = rental["gpu_hours"], rental.get("used_gpu_hours")
        if used is not None and used < (1 - WORTH_TELLING) * paid:
            share = percent(1 - used / paid)
            hours = f"{number(paid)} GPU-hours paid, {number(used)} of them on nodes in use"
            yield f"{rental['option']} is paid in whole billing steps: {hours} ({share} idle)."


def _doubts(document: Document) -> Iterator[str]:
    """Prices that the catalog's check doubts."""
    for text in document.get("notes", ())[:MOST_DOUBTS]:
        yield f"Look twice: {text}."
    if more := len(document.get("notes", ())) - MOST_DOUBTS:
        yield from (f"{counted(more, 'more note')} of that kind in `-o json`." for _ in range(more > 0))


def _kept(document: Document, days: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for option in document["inputs"]["options"]:
        if nodes := option["existing_nodes"]:
            ends = [m for m in (option["term_months"], option["retire_months"]) if m is not None]
            when = f"0 to {number(min(ends))}" if ends else "from 0"
            fee = option["price_per_node_hour"]
            price = f"{unit_price(fee)} per node and hour" if fee else "already paid"
            source = short_source(option["source"], days[option["option_id"]])
            gpus = nodes * option["gpus_per_node"]
            yield "keep", option["option_id"], option["gpu_id"], f"{nodes:,}", f"{gpus:,}", when, price, source


def _order(order: dict[str, Any], days: dict[str, str]) -> tuple[str, ...]:
    start, term = order["start_month"], order["term_months"]
    when = f"{number(start)} to {number(start + term)}" if term is not None else f"from {number(start)}"
    if order["order_month"] != start:
        when += f" (order at {number(order['order_month'])})"
    price = f"{unit_price(order['unit_price'])} {order['unit']}"
    source = short_source(order["source"], days.get(order["option"], ""))
    action = ACTIONS.get(order["purchase_option"], order["purchase_option"])
    return action, order["option"], order["gpu"], f"{order['nodes']:,}", f"{order['gpus']:,}", when, price, source


def _rental(rental: dict[str, Any], document: Document, days: dict[str, str]) -> tuple[str, ...]:
    option = next(o for o in document["inputs"]["options"] if o["option_id"] == rental["option"])
    nodes = rental["peak_nodes"]
    action = PURCHASE_WORDS.get(rental["purchase_option"], rental["purchase_option"])
    when = f"{number(rental['gpu_hours'])} GPU-hours in all"
    price = f"{unit_price(rental['unit_price'])} {rental['unit']}"
    source = short_source(rental["source"], days.get(rental["option"], ""))
    gpus = nodes * option["gpus_per_node"]
    return action, rental["option"], rental["gpu"], f"{nodes:,}", f"{gpus:,}", when, price, source


# --- who serves what --------------------------------------------------------------------------------------------------


def _assignments(document: Document) -> Section:
    headings = ("Workload", "GPU", "Offer", "Deployment", ">Replicas", ">GPUs", ">Share", ">Use", "Limited by", "Basis")
    rows = tuple(_assignment(found) for found in document["assignments"])
    notes = [
        "Replicas, GPUs and use at the peak; share of the workload's (class's) total. TP: GPUs that share one copy of "
        "the model.",
        *_shared(document),
        *_idle(document),
        *_starting_over(document),
    ]
    return Section("Who serves what", columns(*headings), rows, tuple(notes) if rows else ())


def _shared(document: Document) -> Iterator[str]:
    """Classes of a workload on the same replicas, and workloads with peaks at other times: GPUs that do not add up."""
    pools = Counter((a["workload"], a["option"], a["deployment"]) for a in document["assignments"])
    if any(count > 1 for count in pools.values()):
        yield "Classes of one workload on the same offer and deployment share its GPUs: theirs are not to be added up."
    elif len(document["assignments"]) > 1:
        yield "Peaks may come at different times: the GPUs of several lines are not to be added up."


def _idle(document: Document) -> Iterator[str]:
    """GPUs that are there and that no workload keeps at its peak."""
    kept: dict[str, float] = defaultdict(float)
    lines: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for a in document["assignments"]:
        if (a["workload"], a["deployment"]) not in lines[a["option"]]:
            kept[a["option"]] += a["gpus_peak"]
            lines[a["option"]].add((a["workload"], a["deployment"]))
    redundant = any(workload.get("redundancy") for workload in document["inputs"]["problem"]["workloads"])
    spares = ", spares for a loss of nodes among them" if redundant else ""
    for option, there in _gpus_there(document).items():
        paid, idle = quantity(there, "GPUs"), there - kept[option]
        if idle > 1e-6:
            yield f"{option}: {paid} paid for, at least {number(idle)} of them idle even at the peak{spares}."


def _starting_over(document: Document) -> Iterator[str]:
    """When jobs that start over at every interruption may be expected to end."""
    for a in document["assignments"]:
        expected = a.get("hours_expected")
        if expected is not None:
            yield (
                f"{a['workload']} on {a['option']} starts over at every interruption: a run on "
                f"{quantity(a['gpus_peak'], 'GPUs')} takes {number(expected)} h on average, "
                f"{number(a['hours_undisturbed'])} h if undisturbed."
            )


def _gpus_there(document: Document) -> dict[str, float]:
    """GPUs of each offer at most at once, as far as orders, rentals and what is there already say."""
    sizes = {o["option_id"]: o["gpus_per_node"] for o in document["inputs"]["options"]}
    there: dict[str, float] = defaultdict(float)
    for o in document["inputs"]["options"]:
        if o["existing_nodes"]:
            there[o["option_id"]] += o["existing_nodes"] * o["gpus_per_node"]
    for rental in document["rentals"]:
        there[rental["option"]] += rental["peak_nodes"] * sizes[rental["option"]]
    orders: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for order in document["acquisitions"]:
        orders[order["option"]].append(order)
    for option, placed in orders.items():
        there[option] += max(sum(o["gpus"] for o in placed if _in_service(o, one["start_month"])) for one in placed)
    return there


def _in_service(order: dict[str, Any], month: float) -> bool:
    end = order["start_month"] + (order["term_months"] if order["term_months"] is not None else math.inf)
    return bool(order["start_month"] <= month < end)


def _assignment(found: dict[str, Any]) -> tuple[str, ...]:
    return (
        workload_words(found["workload"], found["class"]),
        found["gpu"],
        found["option"],
        found["deployment"],
        number(found["replicas_peak"]),
        number(found["gpus_peak"]),
        percent(found["share"]),
        percent(found["utilisation"]),
        resource_words(found["bottleneck"]),
        "measured" if found["measured"] else "estimate",
    )


# --- why, and what it rests on ----------------------------------------------------------------------------------------


def _limits(document: Document) -> Section:
    """Limits that are reached, with how often."""
    reached: dict[tuple[str, str, float, str], int] = defaultdict(int)
    rows_of: dict[tuple[str, str], int] = defaultdict(int)
    for found in document["constraints"]:
        if found["family"] in LIMIT_FAMILIES:
            words = limit_words(found["family"], found["index"], found["unit"])
            rows_of[found["family"], words] += 1
            if found["binding"]:
                reached[found["family"], words, found["rhs"], found["unit"]] += 1
    rows = tuple(
        (words, number(limit), unit, _places(count, rows_of[family, words]))
        for (family, words, limit, unit), count in reached.items()
    )
    notes = () if rows else ("None of the limits given is reached." if rows_of else "The problem sets no limits.",)
    return Section("Limits reached", columns("Limit", ">Value", "Unit", "Reached in"), rows, notes)


def _places(count: int, of: int) -> str:
    return "the horizon" if of == 1 else f"{count:,} of {of:,} times"


def _not_chosen(document: Document, plan_file: str | None) -> Section:
    used = {found["option"] for key in ("acquisitions", "rentals") for found in document[key]}
    considered = [o for o in document["inputs"]["options"] if not o["existing_nodes"]]
    idle = sum(1 for o in considered if o["option_id"] not in used)
    left_out, rejected = len(document["left_out"]), len(document["rejections"])
    text = (
        f"{counted(idle, 'offer')} considered and not used, {left_out:,} left out beforehand, "
        f"{counted(rejected, 'deployment')} rejected: `gpumix explain {plan_file or PLAN_FILE} GPU` says why."
    )
    return Section("Not chosen", notes=(text,))


def _assumptions(document: Document) -> Section:
    found = sorted(document["assumptions"], key=_weight)
    rows = tuple(_assumption(a) for a in found[:MOST_ASSUMPTIONS])
    more = len(found) - len(rows)
    notes = [f"{more:,} more in the plan file (`assumptions`)."] if more else []
    notes += [*beyond_context(document["assumptions"]), _price_dates(document)]
    headings = ("Assumption", ">Value", "Unit", ">Range", "Kind", "Source")
    return without_empty_columns(Section("Main assumptions", columns(*headings), rows, tuple(notes)))


def _weight(assumption: dict[str, Any]) -> tuple[bool, int]:
    """Estimates with a range first: they move the answer most; then what nobody chose."""
    order = ("default", "estimate", "user", "measured", "catalog")
    kind = assumption["kind"]
    return assumption["low"] is None, order.index(kind) if kind in order else len(order)


def _assumption(found: dict[str, Any]) -> tuple[str, ...]:
    value = found["value"] if isinstance(found["value"], str) else number(found["value"])
    return found["name"], value, found["unit"], span(found["low"], found["high"]), found["kind"], found["source"]


def _price_dates(document: Document) -> str:
    """Age of the prices, of those in the plan and of all."""
    used = {found["option"] for key in ("acquisitions", "rentals") for found in document[key]}
    chosen = [o["price_date"] for o in document["inputs"]["options"] if o["option_id"] in used]
    every = [o["price_date"] for o in document["inputs"]["options"] if o["price_date"]]
    oldest = min((day for day in chosen if day), default=NOTHING)
    text = f"Oldest price in this plan: {oldest}; oldest considered: {min(every, default=NOTHING)}."
    undated = sum(1 for day in chosen if not day)
    return text + (f" {counted(undated, 'price')} in this plan without a date." if undated else "")


def _no_plan(document: Document) -> Section:
    hint = "Give it more time (--time-limit), a larger gap (--gap), fewer periods or fewer offers to choose from."
    return Section(document["problem"], notes=(status_line(document), hint))


def _next_steps(document: Document, plan_file: str | None, problem_file: str) -> Section:
    size, timing = document["model"], document["timing"]
    seconds = sum(value for value in timing.values() if value)
    made = (
        f"gpumix {document['gpumix_version']}, catalog {document['catalog_version']}; {size['variables']:,} variables "
        f"({size['integers']:,} whole), {size['rows']:,} rows, {seconds:.3g} s."
    )
    if document["cost"] is None:
        rows = [("what each GPU yields", f"gpumix estimate {problem_file}")]
    else:
        written = plan_file or PLAN_FILE
        rows = [
            *([] if plan_file else [("keep the plan", f"gpumix solve {problem_file} --plan {written}")]),
            ("where a number is from", f"gpumix explain {written}"),
            ("check it without the solver", f"gpumix audit {written}"),
            ("cloud, owned and mixed", f"gpumix compare {problem_file}"),
        ]
    return Section("Next", rows=tuple(rows), notes=(made,))
