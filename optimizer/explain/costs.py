"""Costs traced: a total, its terms, their options, and every line as quantity × unit price with its source."""

import math
from collections.abc import Callable, Iterable

from optimizer.explain.reading import PlanReader, Record
from optimizer.report.meanings import term_meaning
from optimizer.report.words import group_of, item_of, term_words
from optimizer.trace import TraceNode

COST_MEANINGS = {
    "npv": "present value of all lines: what the plan minimises",
    "capex": "purchases, installation and upfront fees, undiscounted",
    "opex": "running costs, undiscounted",
    "salvage": "resale value at the end of the horizon, undiscounted; it counts against the cost",
}


_SITE_PRICES = {
    "energy": "price of a kWh and PUE: problem file (site, or the quote's own)",
    "hosting": "fee per kW: problem file (site, or the quote's own)",
}


def total_node(plan: PlanReader) -> TraceNode:
    """The whole cost (NPV) down to its lines."""
    terms = _by_size(plan.cost_lines(), lambda line: str(line["term"]), "npv")
    children = tuple(term_node(plan, term, "npv") for term in terms)
    return TraceNode(
        "cost (NPV)", _sum(plan.cost_lines(), "npv"), plan.currency, COST_MEANINGS["npv"], children=children
    )


def group_node(plan: PlanReader, group: str) -> TraceNode:
    """`capex`, `opex` or `salvage` down to its lines, undiscounted."""
    lines = [line for line in plan.cost_lines() if group_of(line) == group]
    terms = _by_size(lines, lambda line: str(line["term"]), "amount")
    children = tuple(_term_node(plan, term, lines, "amount") for term in terms)
    total = _sum(lines, "amount")
    value = -total + 0.0 if group == "salvage" else total
    formula = "− Σ of the lines" if group == "salvage" else COST_MEANINGS[group]
    return TraceNode(group, value, plan.currency, formula, children=children)


def proof_node(plan: PlanReader, name: str) -> TraceNode:
    """The bound or the gap."""
    cost = plan.document["cost"]
    if name == "bound":
        formula = "no plan of this problem costs less: proven by the solver (branch and bound)"
        return TraceNode("bound", cost["bound"], plan.currency, formula)
    inputs = tuple((key, cost[key]) for key in ("npv", "bound") if cost[key] is not None)
    return TraceNode("gap", cost["gap"], "share of the cost", "(npv − bound) ÷ |npv|", inputs=inputs)


def term_node(plan: PlanReader, term: str, key: str) -> TraceNode:
    """A cost term, its options, their lines. `key`: `npv`, or `amount` for the undiscounted sums."""
    return _term_node(plan, term, plan.cost_lines(), key)


def _term_node(plan: PlanReader, term: str, among: Iterable[Record], key: str) -> TraceNode:
    lines = [line for line in among if line["term"] == term]
    items = {item_of(line): line["option"] for line in lines}
    children = tuple(
        option_lines_node(plan, [line for line in lines if item_of(line) == item], items[item], key, item)
        for item in _by_size(lines, item_of, key)
    )
    return TraceNode(term_words(term), _sum(lines, key), plan.currency, term_meaning(term), children=children)


def option_lines_node(
    plan: PlanReader, lines: Iterable[Record], option: str, key: str, label: str | None = None
) -> TraceNode:
    """The lines of one option (or of a cost that is for none), period by period."""
    own = [line for line in lines if line["option"] == option]
    own_price = bool(own) and option in plan.options and own[0]["source"] == plan.options[option]["source"]
    source = own[0]["source"] if own else ""
    source = _dated(plan, option, source) if own_price else source
    site = {_SITE_PRICES[line["term"]] for line in own if line["term"] in _SITE_PRICES}
    if len(site) == 1:
        source = f"{source}; {site.pop()}"
    children = tuple(_line_node(line, key, plan.currency) for line in own)
    title = option if label is None else label or term_words(own[0]["term"])
    return TraceNode(title, _sum(own, key), plan.currency, _formula(own), source, (), children)


def _line_node(line: Record, key: str, currency: str) -> TraceNode:
    parts = (("quantity", line["quantity"]), ("unit price", line["unit_price"]))
    formula = f"quantity ({line['unit']}) × unit price"
    label = f"{term_words(line['term'])}, period {line['period']}"
    if key == "amount":
        return TraceNode(label, line["amount"], currency, formula, line["source"], parts)
    amount = line["amount"]
    factor = line["npv"] / amount if amount else 1.0
    inputs = (*parts, ("discount factor", factor))
    return TraceNode(label, line["npv"], currency, f"{formula} × discount factor", line["source"], inputs)


def _formula(lines: list[Record]) -> str:
    prices = {(line["unit_price"], line["unit"]) for line in lines}
    if len(prices) != 1:
        return "Σ of its lines"
    price, unit = prices.pop()
    return f"{_sum(lines, 'quantity'):,.6g} {unit} × {price:,.7g}"


def _dated(plan: PlanReader, option: str, source: str) -> str:
    day = plan.options.get(option, {}).get("price_date") or "no date"
    return source if day in source or "date unknown" in source else f"{source}, {day}"


def _by_size(lines: Iterable[Record], name: Callable[[Record], str], key: str) -> list[str]:
    """Names of groups of lines, largest sum first."""
    sums: dict[str, float] = {}
    for line in lines:
        sums[name(line)] = sums.get(name(line), 0.0) + line[key]
    return sorted(sums, key=lambda group: -abs(sums[group]))


def _sum(lines: Iterable[Record], key: str) -> float:
    return math.fsum(line[key] for line in lines)
