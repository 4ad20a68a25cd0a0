"""Prices that are no list prices, derived anew: the buyer's own terms, and reservations estimated from on-demand."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from catalog.schema import TypicalDiscount
from optimizer.audit.carbon import kg_per_hour
from optimizer.problem.further_costs import FurtherCost
from optimizer.problem.schema import Discount, Problem

Fields = dict[str, Any]
PRICES = ("price_per_node_hour", "upfront_per_node", "capex_per_node")


def at_terms(fields: Fields, problem: Problem) -> Fields:
    """Fields of an offer of the catalog after the last of the buyer's discounts that names it (docs/catalog.md)."""
    named = [discount for discount in problem.options.discounts if _names(discount, fields)]
    if not named:
        return fields
    discount = named[-1]
    if discount.price is None:
        share = discount.percent or 0.0
        cut = {name: fields[name] * (1 - share) for name in PRICES}
        return {**fields, **cut, "source": _told(fields, problem, f"{100 * share:g} % off: {discount.source}")}
    nodes = fields["gpus_per_node"] if discount.per == "gpu" else 1
    price = discount.price * nodes
    told = _told(fields, problem, f"own price {price:g}: {discount.source}")
    day = "" if discount.date is None else discount.date.isoformat()
    return {**fields, "price_per_node_hour": price, "price_date": day, "source": told}


def _names(discount: Discount, fields: Fields) -> bool:
    way = fields["purchase_option"]
    if discount.purchase != way and (discount.purchase is not None or way == "owned"):
        return False
    if discount.gpu is not None and discount.gpu != fields["gpu_id"]:
        return False
    texts = {"provider": discount.provider, "option_id": discount.option}
    return all(fnmatchcase(fields[key].lower(), text.lower()) for key, text in texts.items() if text is not None)


def _told(fields: Fields, problem: Problem, what: str) -> str:
    owned = fields["purchase_option"] == "owned"
    amount, unit = (fields["capex_per_node"], "") if owned else (fields["price_per_node_hour"], "/h")
    return f"{fields['source']}; list price {amount:,.2f} {problem.currency}{unit}, {what}"


def estimates(listed: Sequence[Fields], typical: Iterable[TypicalDiscount], problem: Problem) -> Mapping[str, Fields]:
    """By id, the reservations that the catalog's on-demand prices let one expect where it lists none of that term."""
    level = problem.options.estimated_discounts
    found: dict[str, Fields] = {}
    if level is None:
        return found
    reserved = [(*_node(fields), fields["term_months"]) for fields in listed if fields["purchase_option"] == "reserved"]
    for row in typical:
        share = {"low": row.low_fraction, "mid": row.mid_fraction, "high": row.high_fraction}[level]
        for fields in listed:
            sells = fields["provider"] in row.providers.split() and fields["purchase_option"] == "on-demand"
            if not sells or (*_node(fields), row.term_months) in reserved:
                continue
            what = f"{100 * share:g} % off for {row.term_months:g} months (estimate): {row.ref}"
            name = "/".join([*fields["option_id"].split("/")[:-1], f"{row.discount_id}-estimate"])
            found[name] = {
                **fields,
                "option_id": name,
                "purchase_option": row.purchase_option,
                "billing": "holding",
                "billing_step_hours": None,
                "billed_by_clock": None,
                "term_months": row.term_months,
                "price_per_node_hour": fields["price_per_node_hour"] * (1 - share),
                "source": _told(fields, problem, what),
            }
    return found


def _node(fields: Fields) -> tuple[Any, ...]:
    return tuple(fields[name] for name in ("gpu_id", "gpus_per_node", "provider", "region"))


def cheapest(found: Iterable[Fields], problem: Problem) -> list[Fields]:
    """Of one node and term (and region, provider, where they are restricted) only the cheapest is an option."""
    restricted = [name for name, given in (
        ("region", any(workload.data.regions for workload in problem.workloads)),
        ("provider", bool(problem.limits.providers)),
    ) if given]  # fmt: skip
    best: dict[tuple[Any, ...], Fields] = {}
    for fields in found:
        borne = tuple(_falls_on(cost, fields) for cost in problem.costs)
        node = tuple(fields[name] for name in ("gpu_id", "gpus_per_node", "term_months", *restricted))
        key = (*node, borne, kg_per_hour(fields, problem))
        rival = best.get(key)
        if rival is None or _rank(fields) < _rank(rival):
            best[key] = fields
    return list(best.values())


def _falls_on(cost: FurtherCost, fields: Fields) -> bool:
    """Whether one of the buyer's further costs is for such nodes."""
    exact = ((cost.gpu, "gpu_id"), (cost.provider, "provider"), (cost.option, "option_id"))
    named = all(
        wanted is None or (fields[key] == wanted if key == "gpu_id" else _like(wanted, fields[key]))
        for wanted, key in exact
    )
    return named and (cost.purchase is None or fields["purchase_option"] in cost.purchase)


def _like(pattern: str, text: str) -> bool:
    return fnmatchcase(text.lower(), pattern.lower())


def _rank(fields: Fields) -> tuple[float, str]:
    return fields["price_per_node_hour"], fields["option_id"]
