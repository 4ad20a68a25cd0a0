"""One golden text of rows per constraint family, from tiny instances; numbers also as PuLP writes them.

`pytest tests/model/test_model_golden.py --refresh-goldens` writes the golden files anew.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from optimizer.estimator.types import ClassEstimate, Deployment, Estimates, ServiceEstimate, Stage
from optimizer.model.build import Milp, build
from optimizer.model.constraints import FAMILIES
from optimizer.model.families.strengthening import CUTS
from optimizer.model.instance import build_instance
from optimizer.model.rows import Row
from optimizer.prepare import prepare
from optimizer.solve import linear_model
from tests.model.builders import (
    Data,
    classes_service,
    job,
    on_demand,
    owned,
    parsed,
    problem,
    reserved,
    serves,
    service,
    spot,
    the_catalog,
    works,
)

GOLDEN = Path(__file__).parent / "golden"
SLICES = [{"name": "day", "share_of_hours": 0.5}, {"name": "night", "share_of_hours": 0.5}]


@cache
def estimated() -> Milp:
    """A service of three classes, one tiny, on a GPU type whose compute, bandwidth and memory figures are all given."""
    chat = classes_service("chat", {"short": 4.0, "mid": 2.0, "long": 0.002})
    made = parsed(problem([chat], [on_demand("rent", nodes_of=8)], [serves()]))
    figures = {"flop_per_request": 4e12, "moved_bytes_per_request": 3e11, "kv_bytes_per_sequence": 5e8}
    classes = (
        ClassEstimate("short", 0.25, residence_s=8.0, **figures),
        ClassEstimate("mid", 0.125, residence_s=2.0, **figures),
        ClassEstimate("long", 0.05, residence_s=40.0, **figures),
    )
    deployment = Deployment(2, 2, weights="bf16", batch=16, least_gpus_per_node=2)
    estimate = ServiceEstimate(
        "chat", "A", deployment, classes, utilisation_cap=0.8, free_memory_bytes=1e10, effective_flop_per_s=1e13,
        effective_bytes_per_s=2e12,
    )  # fmt: skip
    prepared = prepare(made, the_catalog())
    return build(build_instance(made, prepared.supply, Estimates(services=(estimate,))))


def stage_estimate(gpu: str, stage: Stage, seconds: dict[str, float], weights: str = "bf16") -> ServiceEstimate:
    """A replica of one GPU that does a stage of each class in so many seconds."""
    deployment = Deployment(1, 1, weights=weights, batch=8, least_gpus_per_node=1, stage=stage)
    return ServiceEstimate("chat", gpu, deployment, tuple(ClassEstimate(name, s) for name, s in seconds.items()))


@cache
def staged() -> Milp:
    """Whole deployments, prefill and decode stages on two GPU types at two providers, and stages in two formats."""
    chat = classes_service("chat", {"short": 4.0, "long": 2.0})
    quotes = [
        on_demand("a-north", "A", provider="north", region="x", max_nodes=50),
        on_demand("a-south", "A", provider="south", price=1.1),
        on_demand("b-north", "B", provider="north", region="x", price=0.5),
        owned("a-own", "A"),
    ]
    made = parsed(problem([chat | {"disaggregated": "allowed"}], quotes, [serves(rate=3.0), serves(gpu="B")]))
    estimates = (
        stage_estimate("A", "", {"short": 0.5, "long": 2.0}),
        stage_estimate("A", "prefill", {"short": 0.1, "long": 0.4}),
        stage_estimate("A", "decode", {"short": 0.25, "long": 1.0}),
        stage_estimate("B", "decode", {"short": 0.4, "long": 1.5}),
        stage_estimate("B", "prefill", {"short": 0.3}, weights="fp8"),
    )
    prepared = prepare(made, the_catalog())
    return build(build_instance(made, prepared.supply, Estimates(services=estimates)))


@cache
def held() -> Milp:
    """Owned, reserved and existing nodes with lead times, terms, a least order, further costs and every budget."""
    quotes = [
        owned("own", price=30_000.0, installation=500.0, lead_time="1 months", power="2 kW", electricity=0.1),
        reserved("res", price=1.5, term=4, upfront=100.0, min_nodes=2, max_nodes=6),
    ]
    existing = [{"name": "old", "gpu": "A", "nodes": 2, "power": "1 kW", "hosting": 50.0, "retire": "4 months"}]
    return _built(
        problem(
            [service(rate=3.0)],
            quotes,
            [serves()],
            months=6,
            periods="quarterly",
            existing=existing,
            limits={"capex": 90_000.0, "opex": 4_000.0, "npv": 100_000.0},
            site={"power_limit_it": "6 kW"},
            costs=[
                {"kind": "network", "once": 400.0, "per": "node", "purchase": ["owned"]},
                {"kind": "staff", "monthly": 200.0, "start_month": 1},
                {"kind": "support", "monthly": 30.0, "per": "gpu"},
                {"kind": "tax", "percent": "10 %", "of": "purchases"},
            ],
        )
    )


@cache
def mixed() -> Milp:
    """A service by day and night and a job with sizes, on spot and on-demand nodes under limits."""
    quotes = [on_demand("od", "A", 8, 16.0, provider="north"), spot("sp", "B", 4, 3.0, provider="south", max_nodes=5)]
    chat = classes_service("chat", {"all": 6.0}, traffic={"by_slice": {"day": 1.0, "night": 0.5}})
    train = job(amount=5_000.0, start="100 h", deadline="10 days", min_gpus=8, max_gpus=12)
    measured = [serves(gpus_per_replica=1), serves(rate=0.5, gpu="B", gpus_per_replica=1)]
    measured += [works(gpus_per_replica=1), works(rate=0.75, gpu="B", gpus_per_replica=1)]
    limits: Data = {"spot_share": 0.25, "providers": {"south": {"max_nodes": 4}}, "gpus": {"A": 32}}
    return _built(problem([chat, train], quotes, measured, months=1, slices=SLICES, limits=limits))


@cache
def limited() -> Milp:
    """Owned and rented nodes of three providers under limits of the site, of capex by time, and of providers."""
    quotes = [
        owned("own", price=9_000.0, power="2 kW", pue=1.4, rack_units=4),
        owned("big", nodes_of=4, price=30_000.0, power="6 kW", rack_units=8, provider="maker"),
        on_demand("od", price=2.0, provider="north"),
        reserved("res", price=1.2, term=3, provider="south", max_nodes=5),
    ]
    existing = [{"name": "signed", "gpu": "A", "nodes": 1, "term": "2 months", "fee": "1/h", "provider": "east"}]
    train = job(amount=2_000.0, deadline="20 days")
    limits: Data = {"capex_by_period": [20_000.0, None], "capex_by_year": [45_000.0], "vendors": {"max": 2}}
    site = {"power_limit_it": "9 kW", "power_limit_facility": "11 kW", "rack_units_limit": 20}
    return _built(
        problem(
            [service(rate=3.0, min_replicas=2), train],
            quotes,
            [serves(), works()],
            months=6,
            periods="quarterly",
            existing=existing,
            limits=limits,
            site=site,
        )
    )


@cache
def emitting() -> Milp:
    """Owned, reserved and rented nodes that emit, with a service and a job on each, under a limit of emissions."""
    quotes = [
        owned("own", price=9_000.0, power="2 kW", idle_power="0.5 kW", pue=1.5),
        reserved("res", price=1.2, term=3, power="1 kW", pue=1.2, region="eu-1"),
        on_demand("od", nodes_of=2, price=2.0, region="us-1"),
        on_demand("clean", nodes_of=2, price=3.0, region="us-1", carbon="10 g/kWh"),
    ]
    existing = [{"name": "held", "gpu": "A", "nodes": 2, "power": "1 kW", "retire": "4 months"}]
    site, carbon = {"carbon": "320 g/kWh"}, {"regions": {"*": "700 g/kWh", "us-*": "400 g/kWh"}, "host_factor": 1.5}
    work = job(amount=2_000.0, deadline="20 days")
    found = problem([service(rate=3.0), work], quotes, [serves(), works()], months=6, existing=existing, site=site)
    found |= {"carbon": carbon, "limits": {"carbon": "20 t"}, "gpus": {"A": {"tdp": "500 W"}}}
    return _built(found)


@cache
def redundant() -> Milp:
    """Two services with spare nodes: one by proportional service (two nodes), one with a routing for every loss."""
    quotes = [on_demand("a4", "A", 4, 8.0), on_demand("b1", "B", 1, 2.0), on_demand("a4x", "A", 4, 9.0, provider="x")]
    chat = classes_service("chat", {"short": 6.0, "long": 2.0}, redundancy="n+1")
    search = service("search", rate=3.0, redundancy=2)
    measured = [serves(rate=r, gpu=g, **{"class": c}) for g, c, r in (("A", "short", 2.0), ("A", "long", 0.5))]
    measured += [serves(rate=4.0, gpu="B", **{"class": "short"})]
    measured += [serves("search", rate=2.0, gpu="A", gpus_per_replica=2), serves("search", rate=1.0, gpu="B")]
    return _built(problem([chat, search], quotes, measured, months=1))


@cache
def starting() -> Milp:
    """A service that sleeps by night, and one that takes longer to start, on owned and rented nodes."""
    profile = [0.0] * 8 + [1.0] * 4 + [2.0] * 12
    quotes = [on_demand("od", nodes_of=4, price=4.0), owned("own", price=9_000.0)]
    services = [service(rate=2.0, startup="6 min", traffic={"profile": profile}), service("slow", startup="30 min")]
    return _built(problem(services, quotes, [serves(), serves("slow")], months=1))


@cache
def stepped() -> Milp:
    """A service and jobs on nodes billed by the day, by the hour and by hours of the clock."""
    quotes = [
        on_demand("day", billing_step="day", price=1.0),
        on_demand("hour", "B", nodes_of=2, billing_step="hour", price=2.0),
        on_demand("clock", "C", billing_step="hour", billed_by_clock=True, price=3.0),
    ]
    profile = [0.0] * 8 + [1.0] * 8 + [0.0] * 32
    train = job(amount=30.0, start="600 h", deadline="2 days", gpus=["A"])
    fixed = job("fixed", amount=9.0, deadline="20 h", min_gpus=4, max_gpus=6, gpus=["B"])
    quick = job("quick", amount=2.2, start="9.75 h", deadline="2.5 h", max_gpus=1, gpus=["C"])
    measured = [serves(), works(), works("fixed", gpu="B"), works("quick", gpu="C")]
    chat = service(rate=0.4, traffic={"profile": profile})
    return _built(problem([chat, train, fixed, quick], quotes, measured, months=1))


def _built(data: Data) -> Milp:
    return build(prepare(parsed(data), the_catalog()).instance())


SOURCES: dict[str, Callable[[], Milp]] = {
    "fleet_balance": held, "minimum_order": held, "budget_capex": held, "budget_opex": held, "budget_npv": held,
    "deadline": mixed, "single_gpu_type": mixed, "scaling_limit": mixed, "supply_limit": mixed,
    "stage_balance": staged, "provider_limit": mixed, "interruptible_share": mixed, "pool_capacity": mixed,
    "site_rack_units": limited, "site_power": limited, "vendor_limit": limited, "vendor_serves": limited,
    "carbon_limit": emitting,
    "replica_floor": limited, "start_up": starting, "billing_step": stepped,
    "spare_capacity": redundant, "spare_nodes": redundant, "left_needs_nodes": redundant,
}  # fmt: skip
NAMES = [family.__name__ for family in (*FAMILIES, *CUTS)]


def row_text(row: Row, columns: list[str]) -> str:
    """`name [unit] ÷ scale: +c variable … sense rhs`."""
    terms = " ".join(f"{c:+.10g} {columns[j]}" for j, c in sorted(row.terms, key=lambda term: columns[term[0]]))
    return f"{row.name} [{row.unit}] ÷ {row.scale:.10g}:\n  {terms} {row.sense} {row.rhs:.10g}\n"


@pytest.mark.parametrize("family", NAMES)
def test_rows_of_a_family(family: str, golden: Callable[[Path, str], None]) -> None:
    """Every family writes the rows that were read and found right once, name by name and number by number."""
    milp = SOURCES.get(family, estimated)()
    found = [row for row in (*milp.reported_rows(), *milp.cuts) if row.family == family]
    assert found, "the instance does not provoke the family"
    golden(GOLDEN / f"{family}.lp", "".join(row_text(row, milp.variables.columns.names) for row in found))


def test_columns_and_prices(golden: Callable[[Path, str], None]) -> None:
    """Variables with their bounds, and the ledger that prices them."""
    milp = held()
    columns = milp.variables.columns
    lines = [
        f"{name} <= {'inf' if upper is None else f'{upper:g}'}{' whole' if integer else ''}"
        for name, upper, integer in zip(columns.names, columns.upper, columns.integer, strict=True)
    ]
    for line in milp.ledger:
        terms = " ".join(f"{q:+.10g} {columns.names[j]} (npv {v:.10g})" for j, q, v in line.terms)
        fixed = f" + {line.constant_quantity:.10g} (npv {line.constant_npv:.10g})" if line.constant_quantity else ""
        head = f"{line.term} {line.option_id} period {line.period}"
        lines.append(f"{head}: {line.unit_price:.10g} per {line.unit} × ({terms}{fixed})")
    golden(GOLDEN / "ledger.lp", "\n".join(lines) + "\n")


NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"


def lp_rows(text: str) -> dict[str, tuple[dict[str, float], str, float]]:
    """Rows of an LP file: name → (coefficients, sense, right-hand side), whatever the version's line breaks."""
    body = re.split(r"^Bounds|^Generals|^Binaries|^End", text.split("Subject To", 1)[1], flags=re.M)[0]
    found: dict[str, tuple[dict[str, float], str, float]] = {}
    for name, left, sense, right in re.findall(r"^\s*(r\d+_\w+):(.*?)(<=|>=|=)\s*(\S+)", body, flags=re.M | re.S):
        terms: dict[str, float] = {}
        for sign, number, variable in re.findall(rf"([-+]?)\s*({NUMBER})?\s*(x\d+_\w*)", " ".join(left.split())):
            terms[variable] = (-1 if sign == "-" else 1) * float(number or 1)
        found[name] = (terms, sense, float(right))
    return found


@pytest.mark.parametrize("source", [estimated, held, mixed, redundant], ids=lambda source: source.__name__)
def test_names_and_numbers_arrive_in_pulp(source: Callable[[], Milp], tmp_path: Path) -> None:
    """PuLP's own LP file has every row by its name, scaled, with every coefficient to 10 digits or more."""
    milp = source()
    model = linear_model(milp)
    pulp_problem, variables = model.to_pulp()
    pulp_problem.writeLP(str(tmp_path / "model.lp"))
    read = lp_rows((tmp_path / "model.lp").read_text(encoding="utf-8"))
    assert len(read) == len(model.rows)
    for number, row in enumerate(model.rows):
        name = next(key for key in read if key.startswith(f"r{number}_"))
        assert name.startswith(f"r{number}_{row.family}")
        terms, sense, rhs = read[name]
        assert sense == row.sense
        assert rhs == pytest.approx(row.rhs / row.scale, rel=1e-10)
        expected = {variables[j].name: c / row.scale for j, c in row.terms}
        assert terms == pytest.approx(expected, rel=1e-10)
