"""Quantities traced: what a workload needs, what serves it, by which estimate; what an option does."""

from collections.abc import Iterable

from optimizer.explain.costs import option_lines_node
from optimizer.explain.reading import PlanReader, Record
from optimizer.explain.rows import bindings_node, rejections_node
from optimizer.report.numbers import number, percent, unit_price
from optimizer.report.words import quantity, resource_words, workload_words
from optimizer.trace import TraceNode


def workload_nodes(plan: PlanReader, name: str) -> list[TraceNode]:
    """A workload: its demand, what carries it and why so much, the estimates behind, and what was rejected."""
    found = [demand_node(plan, name)]
    if plan.solved:
        found.append(_assignments_node(plan, name))
        found.append(bindings_node(plan, lambda row: _mentions(plan, row, name)))
    found += [
        estimate_node(estimate)
        for key in ("services", "jobs")
        for estimate in plan.document["inputs"]["estimates"][key]
        if estimate["workload"] == name and (not plan.solved or _is_used(plan, estimate))
    ]
    found.append(rejections_node(plan, lambda rejection: rejection["workload"] == name))
    return found


def _mentions(plan: PlanReader, row: Record, workload: str) -> bool:
    """Whether a row is about a workload (a job's runs are named after it)."""
    first = str(row["index"][0]) if row["index"] else ""
    return first == workload or first.split("#")[0].split("@")[0] == workload


def demand_node(plan: PlanReader, name: str) -> TraceNode:
    """How much there is to do."""
    demand = next(d for d in plan.document["inputs"]["estimates"]["demands"] if d["workload"] == name)
    steps = tuple(step_node(step) for step in demand["steps"])
    if demand["amount"] is not None:
        unit = f"{demand['unit']}{' per day' if demand['per_day'] else ''}"
        return TraceNode(f"demand of {name}", demand["amount"], unit, "work to be done in its window", children=steps)
    rows = [r for r in plan.document["constraints"] if r["family"] == "demand_coverage" and r["index"][0] == name]
    classes = list(dict.fromkeys(row["index"][1] for row in rows))
    children = tuple(_peak_node(name, one, [r for r in rows if r["index"][1] == one]) for one in classes)
    formula = "rate at base × period and slice multipliers × (1 + headroom)"
    return TraceNode(
        f"demand of {name}", "requests per second, by time slice", "", formula, "problem file", (), (*children, *steps)
    )


def _peak_node(workload: str, request_class: str, rows: list[Record]) -> TraceNode:
    peak = max(rows, key=lambda row: row["rhs"])
    where = ", ".join(peak["index"][2:])
    label = f"peak of {workload_words(workload, request_class)}"
    return TraceNode(label, peak["rhs"], "requests/s", f"row demand_coverage, in {where}")


def _is_used(plan: PlanReader, estimate: Record) -> bool:
    key = "services" if "classes" in estimate else "jobs"
    number_of = plan.document["inputs"]["estimates"][key].index(estimate)
    entries = plan.document["schedule"]["replicas" if key == "services" else "work"]
    return any(entry["estimate"] == number_of for entry in entries)


def _assignments_node(plan: PlanReader, name: str) -> TraceNode:
    found = [a for a in plan.document["assignments"] if a["workload"] == name]
    return TraceNode(f"what carries {name}", children=tuple(assignment_node(a) for a in found))


def assignment_node(found: Record) -> TraceNode:
    """An option's part in a workload, at its peak."""
    kind = "measured" if found["measured"] else "estimated"
    text = (
        f"{percent(found['share'])} of the total; at the peak {number(found['replicas_peak'])} replicas, busy "
        f"{percent(found['utilisation'])}, limited by {resource_words(found['bottleneck'])} ({kind})"
    )
    label = f"{workload_words(found['workload'], found['class'])} on {found['option']}, {found['deployment']}"
    return TraceNode(label, found["gpus_peak"], "GPUs", text)


def estimate_node(estimate: Record) -> TraceNode:
    """An estimate step by step, down to the rows of the model and GPU."""
    deployment = estimate["deployment"]
    size = deployment["gpus_per_replica"]
    steps = tuple(step_node(step) for step in estimate["steps"])
    label = f"estimate of {estimate['workload']} on {size} × {estimate['gpu_id']}"
    if "classes" in estimate:
        classes = tuple(_class_nodes(estimate))
        only = classes[0] if len(classes) == 1 else TraceNode("")
        children = (*classes, *steps)
        return TraceNode(label, only.value, only.unit, _range(estimate), estimate["source"], (), children)
    value = estimate["units_per_gpu_hour"]
    return TraceNode(label, value, "units per GPU-hour", _range(estimate), estimate["source"], (), steps)


def _range(estimate: Record) -> str:
    low, high = estimate["low_factor"], estimate["high_factor"]
    if estimate["measured"]:
        return "the buyer's measurement"
    return f"honest range of the rate: {percent(low)} to {percent(high)} of it" if low != high else ""


def _class_nodes(estimate: Record) -> Iterable[TraceNode]:
    cap = estimate["utilisation_cap"]
    for found in estimate["classes"]:
        seconds = found["replica_seconds_per_request"]
        inputs = [("replica-seconds per request", seconds), ("utilisation cap", cap)]
        inputs += [(f"{key} (ms)", found[f"{key}_ms"]) for key in ("ttft", "tpot") if found[f"{key}_ms"] is not None]
        label = f"rate of one replica, class {found['request_class']}"
        yield TraceNode(label, cap / seconds, "requests/s", "cap ÷ replica-seconds", "", tuple(inputs))


def step_node(step: Record) -> TraceNode:
    """A link of a derivation."""
    inputs = tuple((str(name), value) for name, value in step["inputs"])
    return TraceNode(step["symbol"], step["value"], step["unit"], step["formula"], step["source"], inputs)


# --- options ----------------------------------------------------------------------------------------------------------


def option_nodes(plan: PlanReader, option_id: str) -> list[TraceNode]:
    """An offer considered: its terms, what the plan does with it, its costs, and what binds on it."""
    option = plan.options[option_id]
    terms = TraceNode("offer", _terms(option, plan.currency), source=option["source"], formula=_size(option))
    if not plan.solved:
        return [terms]
    if option_id not in plan.used_options:
        text = f"considered and not used: the cheapest plan has no place for it; ask for {option['gpu_id']}"
        return [terms, TraceNode(option_id, text)]
    costs = option_lines_node(plan, plan.cost_lines(), option_id, "npv")
    about = bindings_node(plan, lambda row: any(str(part).startswith(option_id) for part in row["index"]))
    return [terms, _nodes_node(plan, option_id), costs, use_node(plan, option_id), about]


def _terms(option: Record, currency: str) -> str:
    kind = option["purchase_option"]
    if kind == "owned":
        text = f"owned, {unit_price(option['capex_per_node'])} {currency} per node"
    else:
        text = f"{kind}, {unit_price(option['price_per_node_hour'])} {currency} per node and hour"
    if option["term_months"] is not None:
        text += f", term {quantity(option['term_months'], 'months')}"
    return text + (f", delivery {quantity(option['lead_months'], 'months')}" if option["lead_months"] else "")


def _size(option: Record) -> str:
    place = ", ".join(part for part in (option["provider"], option["region"]) if part)
    return f"{option['gpus_per_node']} × {option['gpu_id']} per node, {place}"


def _nodes_node(plan: PlanReader, option_id: str) -> TraceNode:
    """How many nodes, and whose work asks for them."""
    document = plan.document
    orders = [order for order in document["acquisitions"] if order["option"] == option_id]
    children = [
        TraceNode(f"order in month {number(order['order_month'])}", order["nodes"], "nodes", _arrival(order))
        for order in orders
    ]
    children += [
        TraceNode("rented at the peak", rental["peak_nodes"], "nodes", _rented_hours(rental))
        for rental in document["rentals"]
        if rental["option"] == option_id
    ]
    if held := plan.options[option_id]["existing_nodes"]:
        children.append(TraceNode("already there", held, "nodes"))
    children += [assignment_node(a) for a in document["assignments"] if a["option"] == option_id]
    return TraceNode("what the plan does with it", children=tuple(children))


def _rented_hours(rental: Record) -> str:
    used = rental.get("used_gpu_hours")
    idle = "" if used is None else f" paid in whole billing steps, {number(used)} of them on nodes in use"
    return f"{number(rental['gpu_hours'])} GPU-hours{idle}"


def _arrival(order: Record) -> str:
    return f"in service from month {number(order['start_month'])}"


def use_node(plan: PlanReader, option_id: str) -> TraceNode:
    """Use of an option's GPUs: kept and busy at its peak, busy on average."""
    cells = [key for key in plan.gpus_there if key[0] == option_id and plan.gpus_there[key] > 0]
    if not cells:
        return TraceNode(f"use of {option_id}", "no nodes in service")
    peak = max(cells, key=lambda key: (plan.gpus_occupied.get(key, 0.0), plan.gpus_there[key]))
    there, kept = plan.gpus_there[peak], plan.gpus_occupied.get(peak, 0.0)
    hours = {key: plan.hours(key[1], key[2]) for key in cells}
    paid = sum(plan.gpus_there[key] * hours[key] for key in cells)
    worked = sum(plan.gpus_busy.get(key, 0.0) * hours[key] for key in cells)
    inputs = (("GPUs there", there), ("GPUs kept", kept), ("GPUs busy", plan.gpus_busy.get(peak, 0.0)))
    where = ", ".join(plan.cell_name(*peak[1:]))
    busy = f"over all its GPU-hours {percent(worked / paid)} are busy"
    text = f"at the peak ({where}) GPUs kept ÷ there, jobs by their mean; {busy}"
    return TraceNode(f"use of {option_id}", kept / there, "share of its GPUs", text, "", inputs)
