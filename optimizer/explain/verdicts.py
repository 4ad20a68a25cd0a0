"""Answers that need re-solves, in words: what limits cost, why not an offer and at which price it would enter."""

from collections.abc import Sequence
from typing import Any

from optimizer.explain.entry import Entry, entry, price_field
from optimizer.explain.limit_costs import LimitCost, LimitCosts, limit_costs
from optimizer.explain.reading import PlanReader
from optimizer.explain.resolves import Resolves
from optimizer.model.option import Option
from optimizer.prepare import Prepared
from optimizer.report.changes import CHOICE, change_value, limit_name
from optimizer.report.numbers import money, percent, unit_price
from optimizer.report.words import counted
from optimizer.solver.resolve import OutOfTimeError
from optimizer.trace import TraceNode

NO_RESOLVE = "needs re-solves: leave --no-resolve out"
NO_TIME = "no answer within the time limit: ask with a longer --time-limit"
_PRICE_UNITS = {
    "capex_per_node": "per node",
    "price_per_node_hour": "per node and hour",
    "upfront_per_node": "per node at signing",
}


# --- limits -----------------------------------------------------------------------------------------------------------


def limits_node(plan: PlanReader, resolves: Resolves | None) -> TraceNode:
    """What each limit costs: the saving with one unit more, and without the limit."""
    label = "what limits cost"
    if resolves is None:
        return TraceNode(label, NO_RESOLVE)
    binding = tuple(dict.fromkeys(row["family"] for row in plan.binding_rows()))
    try:
        found = limit_costs(resolves.prepared, resolves.resolver(), binding)
    except OutOfTimeError:
        return TraceNode(label, NO_TIME)
    if found is None:
        return TraceNode(label, "there is no plan: ask for infeasibility")
    children = tuple(_limit_node(plan, cost) for cost in found.costly)
    return TraceNode(label, _counts(found), formula=_how(resolves), children=children)


def _how(resolves: Resolves) -> str:
    return f"re-solved with each limit changed, to a gap of {percent(resolves.gap)}; no duals"


def _counts(found: LimitCosts) -> str:
    parts = [f"{counted(len(found.costly), 'limit')} cost something" if found.costly else "no limit costs anything"]
    parts += [f"{counted(found.free, 'limit')} cost nothing"] if found.free and found.costly else []
    parts += [f"{counted(found.unknown, 'limit')} not asked within the time limit"] if found.unknown else []
    return "; ".join(parts)


def _limit_node(plan: PlanReader, cost: LimitCost) -> TraceNode:
    limit, currency = cost.limit, plan.currency
    record: dict[str, Any] = {"family": limit.family, "index": list(limit.index), "unit": limit.unit}
    text = "saved without it"
    inputs = [] if limit.unit == CHOICE else [("limit", limit.value)]
    inputs.append(("npv without it", cost.npv_without))
    if cost.saved_by_more is not None and cost.npv_with_more is not None:
        step = change_value(cost.step, limit.unit, currency)
        less = "less" if limit.direction < 0 else "more"
        text = f"saved without it; {step} {less} saves {money(cost.saved_by_more)} {currency}"
        inputs += [("one unit", cost.step), ("saved by one unit", cost.saved_by_more)]
    return TraceNode(limit_name(record), cost.saved_without, currency, text, limit.key, tuple(inputs))


# --- offers -----------------------------------------------------------------------------------------------------------


def beaten_by(plan: PlanReader, names: Sequence[str]) -> list[str]:
    """Offers that were left out only because one of `names` beats them."""
    return [e["option"] for e in plan.document["left_out"] if any(_beats(name, e["reason"]) for name in names)]


def _beats(name: str, reason: str) -> bool:
    return reason.endswith(f"not cheaper than {name}") or reason.startswith(f"outclassed by {name}:")


def is_beaten(plan: PlanReader, name: str) -> bool:
    """Whether an offer was left out only because another one beats it."""
    reasons = [e["reason"] for e in plan.document["left_out"] if e["option"] == name]
    return any("not cheaper than " in reason or reason.startswith("outclassed by ") for reason in reasons)


def offer_nodes(plan: PlanReader, names: Sequence[str], label: str, resolves: Resolves | None) -> list[TraceNode]:
    """What using some offers costs, and the price at which the least-cost plan uses them, by re-solves."""
    if resolves is None or not plan.solved:
        return []
    left_out = [name for name in names if name not in plan.options]
    prepared = resolves.with_offers([*left_out, *beaten_by(plan, names)])
    options = {o.option_id: o for o in prepared.supply.options}
    there = [name for name in names if name in options]
    if not there:
        return []
    try:
        found = entry(prepared, there, resolves.resolver())
    except OutOfTimeError:
        return [TraceNode(f"price at which {label} enters", NO_TIME)]
    if found is None:
        return []
    used = any(name in plan.used_options for name in there)
    first = [] if used else [_forced_node(plan, label, found)]
    return [*first, _entry_node(plan, [options[name] for name in there], label, found, _settled(prepared, resolves))]


def _settled(prepared: Prepared, resolves: Resolves) -> str:
    anew = "" if prepared is resolves.prepared else ", with what it beats let in"
    return f"re-solved to a gap of {percent(resolves.gap)}{anew}"


def _forced_node(plan: PlanReader, label: str, found: Entry) -> TraceNode:
    name = f"with at least one node of {label}"
    if found.forced is None:
        return TraceNode(name, "there is no plan: nothing can run on it, or a limit bars it")
    dearer = max(0.0, found.forced - found.here)
    share = f" ({percent(dearer / abs(found.here))})" if found.here else ""
    inputs = (("npv with it", found.forced), ("npv of the plan", found.here))
    return TraceNode(name, dearer, plan.currency, f"dearer{share}, or one whole job on it", "", inputs)


def _entry_node(plan: PlanReader, options: Sequence[Option], label: str, found: Entry, how: str) -> TraceNode:
    used = any(option.option_id in plan.used_options for option in options)
    name = f"price up to which {label} stays" if used else f"price at which {label} enters"
    if found.without is None:
        return TraceNode(name, "any: there is no plan without it", formula=how)
    if found.factor is None:
        return TraceNode(name, "none: it would not be used if it cost nothing", formula=how)
    inputs = (("share of its price", found.factor), ("npv without it", found.without))
    change = _change(found.factor)
    if len(options) > 1:
        text = f"of the prices of its {counted(len(options), 'offer')} ({change}); {how}"
        return TraceNode(name, found.factor, "share", text, "", inputs)
    (option,) = options
    price = getattr(option, price_field(option))
    unit = f"{plan.currency} {_PRICE_UNITS[price_field(option)]}"
    text = f"{change} its price of {unit_price(price)}; {how}"
    return TraceNode(
        name, f"{unit_price(found.factor * price)} {unit}", "", text, "", (("price", found.factor * price), *inputs)
    )


def _change(factor: float) -> str:
    return f"{percent(abs(1 - factor))} {'below' if factor < 1 else 'above'}"
