"""What a plan costs, as a table: the lines of the ledger over all periods, and the totals."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from optimizer.problem.further_costs import COST_KINDS
from optimizer.report.numbers import money, number, span, unit_price
from optimizer.report.sections import Section, columns
from optimizer.report.words import counted, group_of, item_of, term_words

Document = dict[str, Any]
MOST_COST_ROWS = 14
CostKey = tuple[str, str, str, float | None]
"""(term, what it is for, unit, unit price of what is paid once)."""


def costs_section(document: Document) -> Section:
    """The ledger as a table: what costs most by itself, every further cost of the buyer, the rest in a row; totals."""
    currency = document["currency"]
    headings = ("Cost", "Offer", ">Quantity", "Unit", *(f">{h} ({currency})" for h in ("Unit price", "Amount", "NPV")))
    rows = [*_cost_rows(document["cost_lines"]), *_cost_totals(document)]
    note = "Quantity × unit price = amount; NPV is its worth today; salvage is what hardware is worth at the end."
    return Section("What it costs", columns(*headings), tuple(rows), (note, _scope_line(document)), totals=4)


_SCOPE = {
    "tax": "taxes", "staff": "staff", "network": "network", "storage": "storage", "egress": "data transfer",
    "insurance": "insurance",
}  # fmt: skip
"""What an offer's price leaves out, by the kind of further cost that covers it."""


def _scope_line(document: Document) -> str:
    given = {cost["kind"] for cost in document["inputs"]["problem"].get("costs", ())}
    missing = [words for kind, words in _SCOPE.items() if kind not in given]
    if not missing:
        return "Every kind of further cost is given in the problem file (costs)."
    return f"Not in the cost beyond what prices include: {', '.join(missing)} (costs in the problem file add them)."


def _cost_rows(lines: Iterable[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """One row per term, offer and unit over all periods; of small ones a row per further cost, and one for the rest.

    Running costs whose price rises stand in one row with the range of their price.
    """
    parts: dict[CostKey, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        price = None if group_of(line) == "opex" else line["unit_price"]
        parts[line["term"], item_of(line), line["unit"], price].append(line)
    largest = set(sorted(parts, key=lambda key: -abs(_sum(parts[key], "npv")))[:MOST_COST_ROWS])
    small = [key for key in parts if key not in largest]
    kinds: Counter[str] = Counter(term for term, *_ in small if term in COST_KINDS)
    for key, found in parts.items():
        if key in largest or kinds[key[0]] == 1:
            yield _cost_row(key[0], key[1], found, (number(_sum(found, "quantity")), key[2], _price(found)))
    for kind, count in kinds.items():
        if count > 1:
            yield _cost_row(kind, counted(count, "smaller line"), _of(parts, small, kind))
    rest = [key for key in small if key[0] not in kinds]
    if rest:
        yield _cost_row(counted(len(rest), "smaller line"), "", [line for key in rest for line in parts[key]])


def _price(lines: list[dict[str, Any]]) -> str:
    prices = [line["unit_price"] for line in lines]
    return span(min(prices), max(prices)) or unit_price(prices[0])


def _of(parts: dict[CostKey, list[dict[str, Any]]], keys: Iterable[CostKey], term: str) -> list[dict[str, Any]]:
    return [line for key in keys if key[0] == term for line in parts[key]]


def _cost_row(
    term: str, item: str, lines: list[dict[str, Any]], priced: tuple[str, str, str] = ("", "", "")
) -> tuple[str, ...]:
    return term_words(term), item, *priced, money(_sum(lines, "amount")), money(_sum(lines, "npv"))


def _sum(lines: Iterable[dict[str, Any]], key: str) -> float:
    return math.fsum(line[key] for line in lines)


def _cost_totals(document: Document) -> Iterator[tuple[str, ...]]:
    cost = document["cost"]
    worth: dict[str, float] = defaultdict(float)
    for line in document["cost_lines"]:
        worth[group_of(line)] += line["npv"]
    amounts = {"capex": cost["capex"], "opex": cost["opex"], "salvage": -cost["salvage"]}
    for group, amount in amounts.items():
        yield f"total {group}", "", "", "", "", money(amount), money(worth[group])
    yield "total", "", "", "", "", money(sum(amounts.values())), money(cost["npv"])
