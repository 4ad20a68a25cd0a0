"""Random planning problems with all families mixed, as plain problem-file data that `check` accepts.

Numbers are short decimals, so that no instance sits on a rounding edge by accident. Every problem has one offer paid by
the hour that serves everything, unless a limit drawn on top forbids it.
"""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from tests.model.builders import (
    HOURS_PER_MONTH,
    Data,
    classes_service,
    job,
    on_demand,
    owned,
    problem,
    reserved,
    serves,
    spot,
    works,
)

FACTOR = int(os.environ.get("GPUMIX_EXAMPLES_FACTOR", "1"))
"""How many times the examples of CI are drawn (`.ci/nightly`)."""


def examples(count: int) -> Callable[[Any], Any]:
    """So many random examples in CI; the test says how many (`in_ci`)."""

    def counted(test: Any) -> Any:
        test.in_ci = count
        return settings(max_examples=count * FACTOR)(test)

    return counted


GPUS = ("A", "B")
REGIONS = ("eu-1", "us-1")
tenths = st.integers(1, 80).map(lambda n: n / 4)
prices = st.integers(4, 60).map(lambda n: n / 20)
one_in = [st.integers(0, n - 1).map(lambda found: found == 0) for n in range(1, 9)]
"""`one_in[n]`: true once in n + 1 times."""

DAY_AND_NIGHT = {0.5: ("08:00", "20:00"), 0.25: ("09:00", "15:00")}
"""Share of the hours that are day, and when it is."""


# --- supply -----------------------------------------------------------------------------------------------------------


@st.composite
def quotes(draw: st.DrawFn, index: int, *, salvage: bool = True) -> Data:
    """An offer of any kind."""
    kinds = ("on-demand", "spot", "reserved", "owned", "reserved", "owned") if salvage else ("on-demand", "reserved")
    kind = draw(st.sampled_from(kinds))
    gpu, size = draw(st.sampled_from(GPUS)), draw(st.sampled_from((1, 1, 2, 8)))
    price = round(draw(prices) * size, 3)
    more: Data = {"provider": draw(st.sampled_from(("north", "south")))}
    more |= {"region": draw(st.sampled_from(REGIONS))}
    if draw(st.booleans()):
        more["max_nodes"] = draw(st.integers(1, 6))
    if draw(one_in[3]):
        more["availability"] = 0.9
    if kind in ("on-demand", "spot") and draw(one_in[2]):
        more["billing_step"] = draw(st.sampled_from(("10 minutes", "hour", "day", "week", "month")))
        more["billed_by_clock"] = draw(st.booleans())
    if kind == "on-demand":
        return on_demand(f"q{index}", gpu, size, price, **more)
    if kind == "spot":
        return spot(f"q{index}", gpu, size, price / 2, interruptions_per_hour=0.05, hours_lost="1 h", **more)
    more |= {"lead_time": f"{draw(st.sampled_from((0, 0, 1)))} months"}
    if draw(one_in[2]):
        more["min_nodes"] = draw(st.integers(2, 3))
        if "max_nodes" in more:
            more["max_nodes"] += more["min_nodes"]
    if kind == "reserved":
        more |= {"upfront": draw(st.sampled_from((0.0, 100.0))), "cancellable": draw(st.booleans())}
        return reserved(f"q{index}", gpu, size, price * 0.6, draw(st.sampled_from((1, 3, 6, 12))), **more)
    return owned(f"q{index}", gpu, size, price * 1500, **more, **draw(_owning(size)))


@st.composite
def _owning(draw: st.DrawFn, size: int) -> Data:
    """What owning a node of that many GPUs costs beside its price, and what it is worth in the end."""
    curve = [{"age": "1 month", "fraction": 0.75}, {"age": "4 months", "fraction": 0.5}]
    more: Data = {"installation": draw(st.sampled_from((0.0, 50.0))), "power": f"{size} kW", "electricity": 0.1}
    more |= {"hosting": draw(st.sampled_from((0.0, 20.0))), "residual": draw(st.sampled_from((0.0, 0.5, curve)))}
    more |= {"maintenance": draw(st.sampled_from((0.0, 0.05))), "pue": draw(st.sampled_from((1.0, 1.5)))}
    more["rack_units"] = 2 * size
    if draw(one_in[3]):
        more["retire"] = "4 months"
    return more


@st.composite
def _existing(draw: st.DrawFn, months: int) -> Data:
    """A node that is there already: bought, or signed for."""
    gpu, size = draw(st.sampled_from(GPUS)), draw(st.sampled_from((1, 2)))
    found: Data = {"name": "held", "gpu": gpu, "gpus_per_node": size, "nodes": draw(st.integers(1, 2))}
    if draw(st.booleans()):
        return found | {"term": f"{draw(st.integers(1, months + 2))} months", "fee": draw(st.sampled_from((0.0, 0.5)))}
    power = {"power": "1 kW", "electricity": 0.1, "useful_life": "60 months", "residual": 0.0, "rack_units": 2}
    return found | power | {"age": "12 months", "paid": draw(st.sampled_from((0.0, 800.0)))}


# --- demand -----------------------------------------------------------------------------------------------------------


@st.composite
def _services(draw: st.DrawFn, name: str, slices: list[Data], periods: list[Data]) -> Data:
    rates = {f"class-{i}": draw(tenths) for i in range(draw(st.integers(1, 2)))}
    by_slice = {one["name"]: draw(st.sampled_from((1.0, 0.5, 0.25))) for one in slices}
    traffic: Data = {"by_slice": by_slice}
    if draw(one_in[3]):
        traffic["growth"] = "20 %/month"
    else:
        traffic["by_period"] = [draw(st.sampled_from((1.0, 1.5, 0.75))) for _ in periods]
    more: Data = {}
    if draw(one_in[3]):
        more["headroom"] = 0.25
    if draw(one_in[3]):
        more["data"] = {"regions": ["eu-*"]}
    if draw(one_in[4]):
        more["redundancy"] = "n+1"
    if draw(one_in[5]):
        more["min_replicas"] = draw(st.integers(2, 3))
    return classes_service(name, rates, traffic=traffic, **more)


@st.composite
def _jobs(draw: st.DrawFn, name: str, months: int, day: float | None) -> Data:
    more: Data = {"spread": draw(st.sampled_from(("one-pool", "one-gpu-type", "any")))}
    if draw(st.booleans()):
        more |= {"start": f"{draw(st.integers(0, 10)) * 24} h", "deadline": f"{draw(st.integers(5, 15)) * 24} h"}
        if months <= 3 and draw(one_in[2]):
            more["repeat"] = "monthly"
    if draw(one_in[2]):
        more["max_gpus"] = draw(st.integers(30, 60))
    if draw(one_in[2]):
        more["min_gpus"] = draw(st.sampled_from((2, 4, 8)))
    if draw(one_in[3]):
        more["interruptible"] = False
    elif draw(one_in[3]):
        more |= {"checkpoint_every": "4 h", "restart": "0.5 h"}
    if day is not None and draw(one_in[3]):
        start, end = DAY_AND_NIGHT[day]
        more["window"] = {"daily": f"{end}-{start}"}
    return job(name, draw(st.integers(1, 40)) * 25.0, **more)


def slices_of(day: float | None) -> list[Data]:
    """One slice, or day and night with their clock hours."""
    if day is None:
        return [{"name": "slice-0", "share_of_hours": 1.0, "hours_of_week": list(range(48))}]
    first, last = (int(clock[:2]) for clock in DAY_AND_NIGHT[day])
    light = [*range(first, last), *range(24 + first, 24 + last)]
    dark = [hour for hour in range(48) if hour not in light]
    parts = ((day, light), (1 - day, dark))
    return [
        {"name": f"slice-{i}", "share_of_hours": share, "hours_of_week": hours}
        for i, (share, hours) in enumerate(parts)
    ]


@st.composite
def _rates(draw: st.DrawFn, one: Data, there: set[str], base: int) -> list[Data]:
    """Rates per GPU type and class of replicas that the base node holds; type B need not serve every class."""
    found: list[Data] = []
    for gpu in sorted(there):
        size = draw(st.sampled_from((1, base))) if gpu == "A" else 1
        for entry in one["classes"]:
            if gpu == "A" or draw(st.integers(0, 3)):
                found.append(
                    serves(one["name"], draw(tenths), gpu=gpu, **{"class": entry["name"]}, gpus_per_replica=size)
                )
    return found


# --- limits and further costs -----------------------------------------------------------------------------------------


@st.composite
def _limits(draw: st.DrawFn, offers: list[Data], periods: int) -> Data:
    found: dict[str, Any] = {}
    if draw(one_in[5]):
        found["capex_by_period"] = [draw(st.sampled_from((None, 1000.0, 8000.0))) for _ in range(periods)]
    if draw(one_in[5]):
        found["vendors"] = {"max": draw(st.integers(1, 2))}
    if draw(one_in[2]):
        found["capex"] = draw(st.integers(1, 20)) * 1000.0
    if draw(one_in[5]):
        found["opex"] = draw(st.integers(40, 200)) * 1000.0
    if draw(one_in[2]):
        found["spot_share"] = draw(st.sampled_from((0.0, 0.25, 0.5)))
    if draw(one_in[3]):
        found["gpus"] = {"B": draw(st.integers(0, 16))}
    if draw(one_in[5]):
        found["providers"] = {offers[-1]["provider"]: {"max_nodes": draw(st.integers(0, 5))}}
    if draw(one_in[5]):
        found["stock"] = {offers[-1]["name"]: draw(st.integers(0, 5))}
    return found


FURTHER_COSTS = (
    {"kind": "staff", "monthly": 500.0},
    {"kind": "network", "monthly": 5.0, "per": "gpu"},
    {"kind": "insurance", "once": 20.0, "per": "node", "gpu": "A"},
    {"kind": "support", "percent": "10 %", "of": "rent"},
    {"kind": "egress", "per_gb": 0.5, "gb_per_1000_requests": 0.01},
    {"kind": "licences", "once": 1_000.0, "start_month": 0.5},
)


@st.composite
def _costs(draw: st.DrawFn) -> list[Data]:
    """Further costs of a buyer, none most of the time."""
    if not draw(one_in[2]):
        return []
    return [dict(one) for one in draw(st.lists(st.sampled_from(FURTHER_COSTS), max_size=2, unique_by=_kind))]


def _kind(cost: Data) -> str:
    return str(cost["kind"])


@st.composite
def _carbon(draw: st.DrawFn, *, limit: bool, price: bool) -> Data:
    """Emissions counted by a limit, a price or both, with all that they need; nothing most of the time."""
    limit, price = limit and draw(one_in[6]), price and draw(one_in[6])
    if not (limit or price):
        return {}
    regions = {"*": "400 g/kWh", "eu-*": f"{draw(st.sampled_from((0, 50, 300)))} g/kWh"}
    return {
        "site": {"carbon": f"{draw(st.sampled_from((0, 100, 500)))} g/kWh"},
        "carbon": {"regions": regions, "pue": 1.25},
        "gpus": {gpu: {"tdp": f"{watts} W"} for gpu, watts in zip(GPUS, (400, 700), strict=True)},
        **({"limits": {"carbon": f"{draw(st.integers(1, 60))} t"}} if limit else {}),
        **({"finance": {"carbon_price": draw(st.sampled_from((10.0, 100.0, 1000.0)))}} if price else {}),
    }


# --- whole problems ---------------------------------------------------------------------------------------------------


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    with_limits: bool = True,
    with_stock: bool = True,
    with_existing: bool = True,
    with_salvage: bool = True,
    with_costs: bool = True,
    plain: bool = False,
) -> Data:
    """1–2 services, 0–2 jobs, 2–5 offers, 1–3 periods, 1–2 slices, hardware held or none, limits or none.

    `plain`: limits on capex, spot and GPUs only; no hardware held, windows, places, spare nodes or further costs.
    """
    with_existing, with_costs = with_existing and not plain, with_costs and not plain
    lengths = draw(st.lists(st.sampled_from((1, 2, 3)), min_size=1, max_size=3))
    if with_costs and draw(one_in[5]):
        lengths[-1] = 12
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    periods = [{"start_month": start, "months": length} for start, length in zip(starts, lengths, strict=True)]
    day = draw(st.sampled_from((None, 0.5, 0.25)))
    base = draw(st.sampled_from((1, 1, 2)))
    offers = [on_demand("base", "A", base, 3.0 * base, provider="base", region="eu-1")]
    offers += [draw(quotes(i, salvage=with_salvage)) for i in range(draw(st.integers(1, 4)))]
    if not with_stock:
        for offer in offers:
            offer.pop("max_nodes", None)
    months = sum(lengths)
    held = [draw(_existing(months))] if with_existing and draw(one_in[2]) else []
    services = [draw(_services(f"s{i}", slices_of(day), periods)) for i in range(draw(st.integers(1, 2)))]
    jobs = [draw(_jobs(f"job-{i}", months, day)) for i in range(draw(st.sampled_from((0, 0, 1, 1, 2))))]
    for one in (*services, *jobs) if plain else ():
        for key in (
            "data",
            "redundancy",
            "min_replicas",
            "window",
            "repeat",
            "interruptible",
            "checkpoint_every",
            "restart",
        ):
            one.pop(key, None)
    there = {one["gpu"] for one in (*offers, *held)}
    measured = [m for one in services for m in draw(_rates(one, there, base))]
    measured += [works(one["name"], draw(tenths), gpu=gpu) for one in jobs for gpu in sorted(there)]
    data = problem(
        [*services, *jobs], offers, measured, months=months, periods=periods, slices=slices_of(day), existing=held
    )
    data["gpus"] = {gpu: {} for gpu in GPUS}
    data["finance"] = {"discount_rate": draw(st.sampled_from((0.0, 0.08)))}
    if months > 12:
        data["finance"]["opex_escalation"] = {"rent": "-10 %", "electricity": "5 %", "staff": "3 %"}
    data["limits"] = draw(_limits(offers, len(periods))) if with_limits else {}
    for key in ("opex", "providers", "stock", "capex_by_period", "vendors") if plain else ():
        data["limits"].pop(key, None)
    if with_costs:
        data["costs"] = draw(_costs())
    if with_limits and not plain and draw(one_in[4]):
        most = draw(st.integers(1, 20))
        kinds = {"power_limit_it": f"{most} kW", "power_limit_facility": f"{most} kW", "rack_units_limit": 2 * most}
        kind = draw(st.sampled_from(sorted(kinds)))
        data["site"] = {kind: kinds[kind]}
    if not plain:
        for key, more in draw(_carbon(limit=with_limits, price=with_costs)).items():
            data[key] = data.get(key, {}) | more
    return data


def months_of(data: Data) -> float:
    """Length of the horizon."""
    return float(data["horizon"]["months"])


def hours_of(data: Data) -> float:
    """Length of the horizon in hours."""
    return months_of(data) * HOURS_PER_MONTH
