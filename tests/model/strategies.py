"""Random planning problems with the constraint families mixed, as plain problem-file data.

Numbers are short decimals, so that no instance sits on a rounding edge by accident. Every problem has one offer paid by
the hour that serves everything, unless a limit drawn on top forbids it.
"""

from typing import Any

from hypothesis import strategies as st

from tests.model.builders import (
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

GPUS = ("A", "B")
tenths = st.integers(1, 80).map(lambda n: n / 4)
prices = st.integers(4, 60).map(lambda n: n / 20)


@st.composite
def quotes(draw: st.DrawFn, index: int) -> Data:
    """An offer of any kind."""
    kind = draw(st.sampled_from(("on-demand", "spot", "reserved", "owned", "reserved", "owned")))
    gpu, size = draw(st.sampled_from(GPUS)), draw(st.sampled_from((1, 1, 2, 8)))
    price = round(draw(prices) * size, 3)
    more: Data = {"provider": draw(st.sampled_from(("north", "south")))}
    if draw(st.booleans()):
        more["max_nodes"] = draw(st.integers(1, 6))
    if draw(st.integers(0, 3)) == 0:
        more["availability"] = 0.9
    if kind == "on-demand":
        return on_demand(f"q{index}", gpu, size, price, **more)
    if kind == "spot":
        return spot(f"q{index}", gpu, size, price / 2, interruptions_per_hour=0.05, hours_lost="1 h", **more)
    more |= {"lead_time": f"{draw(st.sampled_from((0, 0, 1)))} months"}
    if draw(st.integers(0, 2)) == 0:
        more["min_nodes"] = draw(st.integers(2, 3))
        if "max_nodes" in more:
            more["max_nodes"] += more["min_nodes"]
    if kind == "reserved":
        more |= {"upfront": draw(st.sampled_from((0.0, 100.0))), "cancellable": draw(st.booleans())}
        return reserved(f"q{index}", gpu, size, price * 0.6, draw(st.sampled_from((1, 3, 6))), **more)
    more |= {"installation": draw(st.sampled_from((0.0, 50.0))), "power": f"{size} kW", "electricity": 0.1}
    more |= {"hosting": draw(st.sampled_from((0.0, 20.0))), "residual": draw(st.sampled_from((0.0, 0.5)))}
    return owned(f"q{index}", gpu, size, price * 1500, maintenance=draw(st.sampled_from((0.0, 0.05))), **more)


@st.composite
def problems(draw: st.DrawFn, *, with_limits: bool = True, with_stock: bool = True) -> Data:
    """1–2 services, 0–1 job, 2–5 offers, 1–3 periods, 1–2 slices, limits or none."""
    lengths = draw(st.lists(st.sampled_from((1, 2, 3)), min_size=1, max_size=3))
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    periods = [{"start_month": start, "months": length} for start, length in zip(starts, lengths, strict=True)]
    shares = draw(st.sampled_from(((1.0,), (0.5, 0.5), (0.25, 0.75))))
    slices = [{"name": f"slice-{i}", "share_of_hours": share} for i, share in enumerate(shares)]
    offers = [on_demand("base", "A", 1, 3.0, provider="base")]
    offers += [draw(quotes(i)) for i in range(draw(st.integers(1, 4)))]
    if not with_stock:
        for offer in offers:
            offer.pop("max_nodes", None)
    services = [draw(_services(f"s{i}", slices, periods)) for i in range(draw(st.integers(1, 2)))]
    jobs = [draw(_jobs(sum(lengths)))] if draw(st.booleans()) else []
    measured = [m for one in services for m in draw(_rates(one, offers))]
    measured += [works(one["name"], draw(tenths), gpu=gpu) for one in jobs for gpu in GPUS]
    data = problem([*services, *jobs], offers, measured, months=sum(lengths), periods=periods, slices=slices)
    data["gpus"] = {gpu: {} for gpu in GPUS}
    data["finance"] = {"discount_rate": draw(st.sampled_from((0.0, 0.08)))}
    data["limits"] = draw(_limits()) if with_limits else {}
    return data


@st.composite
def _services(draw: st.DrawFn, name: str, slices: list[Data], periods: list[Data]) -> Data:
    rates = {f"class-{i}": draw(tenths) for i in range(draw(st.integers(1, 2)))}
    by_slice = {one["name"]: draw(st.sampled_from((1.0, 0.5, 0.25))) for one in slices}
    by_period = [draw(st.sampled_from((1.0, 1.5, 0.75))) for _ in periods]
    return classes_service(name, rates, traffic={"by_slice": by_slice, "by_period": by_period})


@st.composite
def _jobs(draw: st.DrawFn, months: int) -> Data:
    more: Data = {"spread": draw(st.sampled_from(("one-pool", "one-gpu-type", "any")))}
    if draw(st.booleans()):
        more |= {"start": f"{draw(st.integers(0, 10)) * 24} h", "deadline": f"{draw(st.integers(5, 15)) * 24} h"}
    if draw(st.integers(0, 2)) == 0:
        more["max_gpus"] = draw(st.integers(30, 60))
    if draw(st.integers(0, 2)) == 0:
        more["min_gpus"] = draw(st.sampled_from((2, 4, 8)))
    return job("job", draw(st.integers(1, 40)) * 25.0, **more)


@st.composite
def _rates(draw: st.DrawFn, one: Data, offers: list[Data]) -> list[Data]:
    """Rates per GPU type and class; type B need not serve every class."""
    found: list[Data] = []
    for gpu in GPUS:
        for entry in one["classes"]:
            if gpu == "A" or draw(st.integers(0, 3)):
                found.append(serves(one["name"], draw(tenths), gpu=gpu, **{"class": entry["name"]}))
    return found


@st.composite
def _limits(draw: st.DrawFn) -> Data:
    found: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        found["capex"] = draw(st.integers(1, 20)) * 1000.0
    if draw(st.integers(0, 2)) == 0:
        found["spot_share"] = draw(st.sampled_from((0.0, 0.25, 0.5)))
    if draw(st.integers(0, 3)) == 0:
        found["gpus"] = {"B": draw(st.integers(0, 16))}
    return found
