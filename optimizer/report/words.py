"""The terms of a plan file in a buyer's words."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from optimizer.report.numbers import number
from optimizer.trace import BEYOND_CONTEXT

TERM_GROUPS = {"capex": "capex", "installation": "capex", "upfront_fee": "capex", "salvage_value": "salvage"}
"""Cost terms that are no running cost."""


def group_of(line: Mapping[str, Any]) -> str:
    """The total that a line of the ledger counts in; files of before further costs leave it to the term."""
    return str(line.get("group") or TERM_GROUPS.get(line["term"], "opex"))


def item_of(line: Mapping[str, Any]) -> str:
    """What a line is for: its offer, or (and) which of the buyer's further costs it is."""
    return ": ".join(part for part in (line.get("name", ""), line["option"]) if part)


def beyond_context(assumptions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each workload whose requests are longer than its model was published for."""
    return [
        f"Look twice: {found['name']}: {number(found['value'])} tokens; {found['source']}. Engines refuse them unless "
        "told to stretch it."
        for found in assumptions
        if found["name"].endswith(BEYOND_CONTEXT)
    ]


LIMIT_FAMILIES = (
    "budget_capex",
    "budget_opex",
    "budget_npv",
    "supply_limit",
    "provider_limit",
    "interruptible_share",
    "site_power",
    "site_rack_units",
    "vendor_limit",
    "carbon_limit",
)
"""Families of rows that are limits a buyer may ask to change."""
ACTIONS = {"owned": "buy", "reserved": "sign", "committed-use": "sign"}
PURCHASE_WORDS = {"on-demand": "rent", "spot": "rent (spot)"}
_FAMILY_WORDS = {
    "budget_capex": "capex budget (limits.capex)",
    "budget_opex": "running cost per month (limits.opex)",
    "budget_npv": "whole cost, NPV (limits.npv)",
    "provider_limit": "nodes at provider {0} (limits.providers)",
    "interruptible_share": "spot share of {0} (limits.spot_share)",
    "site_power": "nameplate power of owned nodes (site.power_limit_it)",
    "site_rack_units": "rack units of owned nodes (site.rack_units_limit)",
    "vendor_limit": "providers used (limits.vendors.max)",
    "carbon_limit": "CO2e of all electricity (limits.carbon)",
    "demand_coverage": "requests of {0}",
    "deadline": "work of {0} by its deadline",
    "replica_floor": "least replicas of {0} (min_replicas)",
    "start_up": "replicas of {0} started before they are needed (startup)",
    "spare_capacity": "spare nodes of {0} (redundancy)",
    "minimum_order": "minimum order of {0}",
    "scaling_limit": "GPUs at once of {0}",
}


def limit_words(family: str, index: Sequence[str], unit: str = "") -> str:
    """What a row of a family is, for a person: `stock of spot B`."""
    label = index[0] if index else ""
    if family == "supply_limit":
        return f"GPUs of {label.removesuffix(' GPUs')} (limits.gpus)" if unit == "GPUs" else f"stock of {label}"
    if family == "site_power" and list(index[-1:]) == ["facility"]:
        return "power of owned nodes at the meter (site.power_limit_facility)"
    words = _FAMILY_WORDS.get(family, family.replace("_", " ") + (" of {0}" if label else "")).format(label)
    if family == "demand_coverage" and len(index) > 1 and index[1] != "all":
        words += f", class {index[1]}"
    return words


def term_words(term: str) -> str:
    """A cost term as words."""
    return term.replace("_", " ")


def workload_words(workload: str, request_class: str | None) -> str:
    """A workload, with its class where it has several."""
    return workload if request_class in (None, "", "all") else f"{workload}: {request_class}"


def resource_words(resource: str) -> str:
    """A resource as words: `memory bandwidth`."""
    return resource.replace("_", " ")


def short_source(source: str, day: str = "") -> str:
    """Where a price is from, in short: `offers/aws.csv:7, 2026-07-20`, or the buyer's words and the day.

    A list price that the buyer's terms or an estimate changed stays beside what became of it.
    """
    source, changed, terms = source.partition("; list price ")
    found = re.match(r"(?:\S*/)?((?:offers/)?[^/\s]+\.csv:\d+) \(", source)
    place = found.group(1) if found else source
    short = f"{place}, {day or 'no date'}" if place else day
    return f"{short}{changed}{re.sub(r' [(]((?!estimate[)]).*?)[)]$', '', terms)}" if changed else short


def counted(count: float, noun: str) -> str:
    """`1 offer`, `12 offers`; `noun` in the singular."""
    return f"{number(count)} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """`offers` of `offer`, `queries` of `query`, `boxes` of `box`."""
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


_SINGULARS = {f"{noun}s": noun for noun in ("node", "GPU", "month", "hour", "GPU-hour", "day", "replica", "request")}


def quantity(value: float, unit: str) -> str:
    """A figure with its unit: `1 node`, `2 nodes`, `1 request/s`."""
    head, slash, per = unit.partition("/")
    return f"{number(value)} {_SINGULARS.get(head, head) if value == 1 else head}{slash}{per}".rstrip()
