"""Changes of a problem that leave its least cost, or move it in a known direction."""

import copy
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from tests.model.builders import Data

MONEY = ("price", "upfront", "installation", "electricity", "hosting", "fee", "paid")
"""Keys of offers that hold an amount of money."""
_REMOVABLE = ("spot_share", "gpus", "providers", "stock", "capex_by_period", "vendors")
_AMOUNT = re.compile(r"([0-9.e+-]+)(.*)")


def copied(data: Data) -> Data:
    return copy.deepcopy(data)


def offers(data: Data) -> list[Data]:
    return data["options"]["quotes"]


def held(data: Data) -> list[Data]:
    return data["options"]["existing"]


def with_offers(data: Data, kept: Iterable[Data]) -> Data:
    """The same problem with other quotes; measurements that nothing uses any more are left out."""
    out = copied(data)
    out["options"]["quotes"] = copied(list(kept))
    return usable(out)


def usable(data: Data) -> Data:
    """Without measurements, and limits, of what is no longer on offer."""
    there = {one["gpu"] for one in (*offers(data), *held(data))}
    names = {one["name"] for one in offers(data)}
    providers = {one.get("provider", one["name"]) for one in offers(data)}
    data["measurements"] = [one for one in data["measurements"] if one.get("gpu", "A") in there]
    data["costs"] = [one for one in data.get("costs", []) if one.get("gpu") in {None, *there}]
    limits = data.get("limits", {})
    for key, known in (("stock", names), ("providers", providers), ("gpus", there)):
        if key in limits:
            limits[key] = {name: most for name, most in limits[key].items() if name in known}
    return data


def without_workloads(data: Data, keep: set[str]) -> Data:
    out = copied(data)
    out["workloads"] = [one for one in out["workloads"] if one["name"] in keep]
    out["measurements"] = [one for one in out["measurements"] if one["workload"] in keep]
    return out


def with_money(data: Data, change: Callable[[float, str], Any]) -> Data:
    """The same problem with every amount of money of its offers and limits rewritten from (amount, its unit)."""
    out = copied(data)
    for offer in (*offers(out), *held(out)):
        for key in MONEY:
            if key in offer:
                amount, unit = _AMOUNT.fullmatch(str(offer[key])).groups()
                offer[key] = change(float(amount), unit)
    for cost in out.get("costs", []):
        for key in ("once", "monthly", "per_gb"):
            if key in cost:
                cost[key] = change(cost[key], "")
    for key in ("capex", "opex", "npv"):
        if key in out.get("limits", {}):
            out["limits"][key] = change(out["limits"][key], "")
    if "carbon_price" in out.get("finance", {}):
        out["finance"]["carbon_price"] = change(out["finance"]["carbon_price"], "")
    by_period = out.get("limits", {}).get("capex_by_period", [])
    by_period[:] = [most if most is None else change(most, "") for most in by_period]
    return out


def scaled_money(data: Data, k: float) -> Data:
    """Every amount times k, limits too."""
    return with_money(data, lambda amount, unit: f"{amount * k!r}{unit}" if unit else amount * k)


def scaled_demand(data: Data, k: float) -> Data:
    """k times the rates and the work; a job may then use k times the GPUs."""
    out = copied(data)
    for one in out["workloads"]:
        for entry in one.get("classes", ()):
            entry["requests_per_s"] *= k
        if "work" in one:
            one["work"]["amount"] *= k
            if "max_gpus" in one:
                one["max_gpus"] = math.ceil(one["max_gpus"] * k)
    return out


def loosened(data: Data, draw: st.DataObject) -> Data:
    """One wish relaxed: a limit, a stock, a place, a job's sizes, or the rate of a replica.

    No deadline: without it the grid has a cut less, and what serves is the same throughout a block.
    """
    out = copied(data)
    limits = out["limits"]
    ways: list[tuple[Data, str, Any]] = []
    for one in out["workloads"]:
        free = ("max_gpus", "min_gpus", "interruptible", "data", "headroom", "redundancy", "window", "min_replicas")
        ways += [(one, key, None) for key in free if key in one]
    ways += [(offer, "max_nodes", offer["max_nodes"] + 1) for offer in offers(out) if "max_nodes" in offer]
    ways += [(offer, "min_nodes", None) for offer in offers(out) if "min_nodes" in offer]
    ways += [(limits, key, limits[key] * 1.5) for key in ("capex", "opex") if key in limits]
    ways += [(limits, "carbon", f"{1.5 * float(limits['carbon'].split()[0])} t")] if "carbon" in limits else []
    ways += [(limits, key, None) for key in _REMOVABLE if key in limits]
    ways += [(out["site"], key, None) for key in out.get("site", {}) if key != "carbon"]
    ways += [(one, "requests_per_s", one["requests_per_s"] * 1.25) for one in out["measurements"] if "class" in one]
    where, key, value = draw.draw(st.sampled_from(ways))
    where.pop(key) if value is None else where.__setitem__(key, value)
    return out
