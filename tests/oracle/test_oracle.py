"""Procurement problems with proven least costs (facts and answers in the JSON files), as a buyer would write them."""

import copy
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import RELATIVE, least_cost, parsed, the_catalog
from tests.oracle_to_problem import problem_from_facts

Facts = dict[str, Any]
CASES = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(__file__).parent.glob("*.json"))
}
FEASIBLE = [n for n, case in CASES.items() if case["answer"]["status"] == "optimal"]
INFEASIBLE = [n for n, case in CASES.items() if case["answer"]["status"] == "infeasible"]
TEXTS = (
    "no",
    "1e3",
    "a b",
    "ü",
    "long" * 60,
    "A-1",
    "A+1",
    "__",
    "a__b",
    "null",
    "-",
    "12:30",
    "cost",
    "[x]",
    "ñ",
    "~",
)


def cost_of(facts: Facts) -> float:
    """Proven least cost of facts; infinite if infeasible."""
    return least_cost(problem_from_facts(facts, "oracle"))


def expected(name: str) -> Any:
    """The proven cost to 1e-6 relative."""
    return pytest.approx(CASES[name]["answer"]["npv_cost"], rel=RELATIVE)


def test_all_problems_are_here() -> None:
    """23 problems: 21 with a plan, one of them with spare nodes, and 2 without."""
    assert (len(FEASIBLE), len(INFEASIBLE)) == (21, 2)
    assert [n for n in FEASIBLE if CASES[n]["facts"]["redundancy"]["spare_nodes"]] == ["25-n-plus-1"]


@pytest.mark.parametrize("name", FEASIBLE)
def test_least_cost(name: str) -> None:
    """The least cost is the proven one at gap 0, and the plan says that it is proven."""
    problem = parsed(problem_from_facts(CASES[name]["facts"], name))
    plan = solve(problem, the_catalog(), SolverSettings(gap=0))
    assert plan.status == "optimal"
    assert plan.cost is not None
    assert plan.cost.npv == expected(name)
    assert plan.cost.bound == expected(name)


@pytest.mark.parametrize("name", INFEASIBLE)
def test_infeasible_says_what_is_short(name: str) -> None:
    """No plan and no cost, but the wish that is missed, by how much, in the buyer's unit."""
    answer = CASES[name]["answer"]
    plan = solve(parsed(problem_from_facts(CASES[name]["facts"], name)), the_catalog(), SolverSettings(gap=0))
    assert (plan.status, plan.cost, plan.acquisitions, plan.rentals) == ("infeasible", None, (), ())
    for wish in answer["shortfall"]:
        found = next(one for one in plan.infeasibility if one.unit == wish["unit"].split(" ")[0])
        assert found.short_by == pytest.approx(wish["missing"], rel=RELATIVE)
        assert found.required == pytest.approx(wish["required"], rel=RELATIVE)
        assert found.attainable == pytest.approx(wish["attainable"], rel=RELATIVE)


KEYS = {
    "jobs.train.deadline_hour": "workloads.train.deadline",
    "jobs.train.max_gpus": "workloads.train.max_gpus",
    "jobs.train.work_units": "workloads.train",
    "limits.npv_max": "limits.npv",
    "services.chat.rate_per_s": "workloads.chat",
}
"""Keys of the problem file for the facts that the answers change."""


@pytest.mark.parametrize("name", INFEASIBLE)
def test_the_diagnosis_finds_exactly_the_proven_fixes(name: str) -> None:
    """Every single fix (change, from, to, cost) and no other; cuts of demand apart; the cheapest is said to be it."""
    case = CASES[name]
    plan = solve(parsed(problem_from_facts(case["facts"], name)), the_catalog(), SolverSettings(gap=0))
    fixes = {KEYS[fix["change"]]: fix for fix in case["answer"]["single_fixes"]}
    kinds = {"limit": "limit", "cut": "demand"}
    found = {one.change: one for one in plan.infeasibility if one.kind in kinds and one.alone}
    assert set(found) == set(fixes)
    for key, fix in fixes.items():
        one = found[key]
        before, after = (one.attainable, one.required) if one.kind == "limit" else (one.required, one.attainable)
        assert kinds[one.kind] == fix["kind"]
        assert (before, after) == pytest.approx((fix["from"], fix["to"]), rel=RELATIVE)
        assert one.npv == pytest.approx(fix["npv_cost"], rel=RELATIVE)
    cheapest = min(fix["npv_cost"] for fix in fixes.values() if fix["kind"] == "limit")
    said = [one.cheapest_fix["npv"] for one in plan.infeasibility if one.cheapest_fix]
    assert said == pytest.approx([cheapest] * len(said))
    assert said


def with_fact(facts: Facts, path: str, value: float) -> Facts:
    """Facts with one of them changed, by the path used in the answers (`jobs.train.deadline_hour`)."""
    out = copy.deepcopy(facts)
    where: Any = out
    *parts, last = path.split(".")
    for part in parts:
        where = next(one for one in where if one["name"] == part) if isinstance(where, list) else where[part]
    if last == "rate_per_s":
        where["classes"][0][last] = value
    else:
        where[last] = value
    return out


FIXES = [(name, fix) for name in INFEASIBLE for fix in CASES[name]["answer"]["single_fixes"]]


@pytest.mark.parametrize(("name", "fix"), FIXES, ids=[f"{n}-{f['change']}" for n, f in FIXES])
def test_single_fixes_are_enough_and_no_less_is(name: str, fix: dict[str, Any]) -> None:
    """The least change of one fact makes the problem feasible at the proven cost; 1 % less of a change does not."""
    change = fix["to"] - fix["from"]
    enough = fix["from"] + change * (1 + (1e-6 if fix["change"] == "limits.npv_max" else 0))
    assert cost_of(with_fact(CASES[name]["facts"], fix["change"], enough)) == pytest.approx(fix["npv_cost"], rel=1e-6)
    less = fix["from"] + change * 0.99
    less = math.floor(less) if fix["change"].endswith("max_gpus") else less
    assert cost_of(with_fact(CASES[name]["facts"], fix["change"], less)) == math.inf


def without_limit(facts: Facts, limit: str) -> Facts:
    """Facts without one limit, by the name used in the answers (`max_nodes:A_od`)."""
    out = copy.deepcopy(facts)
    kind, _, name = limit.partition(":")
    if kind == "max_nodes":
        next(one for one in out["options"] if one["name"] == name)["max_nodes"] = None
    elif name:
        next(one for one in out["jobs"] if one["name"] == name)[kind] = {"single_gpu_type": False, "min_gpus": 1}[kind]
    elif kind == "spare_nodes":
        out["redundancy"][kind] = 0
    else:
        out["limits"][kind] = {} if kind == "provider_max_nodes" else None
    return out


# Enumerated again with whole GPUs for jobs (docs/model.md): the answer's 78,475.44 lets a job use parts of a GPU.
WHOLE_GPUS = {("36-combo-classes-profile-growth-spot-job", "interruptible_share_of_rate_max"): 78_995.994222}
LIMITS = [(name, limit) for name in FEASIBLE for limit in CASES[name]["answer"].get("npv_cost_without", {})]


@pytest.mark.parametrize(("name", "limit"), LIMITS, ids=[f"{n}-{limit}" for n, limit in LIMITS])
def test_cost_without_a_binding_limit(name: str, limit: str) -> None:
    """Each binding limit alone is worth what was proven."""
    cost = cost_of(without_limit(CASES[name]["facts"], limit))
    proven = WHOLE_GPUS.get((name, limit), CASES[name]["answer"]["npv_cost_without"][limit])
    assert cost == pytest.approx(proven, rel=RELATIVE)


def shuffled(facts: Facts) -> Facts:
    """The same facts in another order."""
    out = copy.deepcopy(facts)
    shuffle = random.Random(25).shuffle
    for one in (out["options"], out["services"], out["jobs"], out["slices"]):
        one.reverse()
    for one in out["services"]:
        shuffle(one["classes"])
        shuffle(one["serves"])
    for one in out["jobs"]:
        shuffle(one["yields"])
    return out


def renamed(facts: Facts) -> Facts:
    """The same facts under other names (providers, options, GPU types, services, classes, jobs, slices)."""
    new: dict[str, str] = {}

    def text(name: str) -> str:
        return new.setdefault(name, f"{TEXTS[len(new) % len(TEXTS)]}{'' if len(new) < len(TEXTS) else len(new)}")

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            named = key in ("multiplier_by_slice", "provider_max_nodes")
            return {text(k) if named else k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(one) for one in value]
        return text(value) if key in ("name", "option", "class", "gpu_type", "provider") else value

    found: Facts = walk(facts)
    return found


MONEY = ("price_per_node_hour", "upfront_per_node", "capex_per_node", "installation_per_node", "energy_price_per_kwh")
MONEY = (*MONEY, "hosting_per_nameplate_kw_month", "capex_total_max", "opex_per_month_max", "npv_max")


def scaled(facts: Facts, factors: dict[str, float]) -> Facts:
    """Facts with every number under a key times its factor."""

    def walk(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(one) for one in value]
        return value * factors[key] if key in factors and value is not None else value

    found: Facts = walk(facts)
    return found


VARIANTS: dict[str, tuple[Callable[[Facts], Facts], float]] = {
    "other order": (shuffled, 1.0),
    "other names": (renamed, 1.0),
    "money in thousandths": (lambda f: scaled(f, dict.fromkeys(MONEY, 1e3)), 1e3),
    "money in ten thousands": (lambda f: scaled(f, dict.fromkeys(MONEY, 1e-4)), 1e-4),
    "work in smaller units": (lambda f: scaled(f, dict.fromkeys(("work_units", "units_per_gpu_hour"), 1e12)), 1.0),
    "work in larger units": (lambda f: scaled(f, dict.fromkeys(("work_units", "units_per_gpu_hour"), 1e-6)), 1.0),
    "rates per day": (lambda f: scaled(f, dict.fromkeys(("rate_per_s", "requests_per_s_per_node"), 86_400.0)), 1.0),
    "rates in millions": (lambda f: scaled(f, dict.fromkeys(("rate_per_s", "requests_per_s_per_node"), 1e-6)), 1.0),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", FEASIBLE)
def test_the_same_facts_said_otherwise(name: str, variant: str) -> None:
    """Order, names and units of the facts do not change the least cost (but for the unit of money)."""
    change, factor = VARIANTS[variant]
    cost = cost_of(change(CASES[name]["facts"]))
    assert cost == pytest.approx(CASES[name]["answer"]["npv_cost"] * factor, rel=RELATIVE)


@pytest.mark.parametrize("name", ["05-day-night-reserved-base", "21-supply-cap-second-type", "13-spot-share-limit"])
def test_cutting_the_grid_at_idle_months_changes_nothing(name: str) -> None:
    """A job that costs nothing cuts the grid inside a period; the plan and its cost stay."""
    facts = copy.deepcopy(CASES[name]["facts"])
    free = {"name": "free", "gpu_type": "F", "provider": "f", "billing": "use", "gpus_per_node": 1}
    facts["options"].append(free | {"price_per_node_hour": 0.0, "max_nodes": None})
    work = {"name": "cut", "work_units": 1.0, "work_unit": "units", "release_hour": 100.0, "deadline_hour": 901.5}
    sizes = {"min_gpus": 1, "max_gpus": None, "single_gpu_type": True}
    facts["jobs"].append(work | sizes | {"yields": [{"option": "F0", "units_per_gpu_hour": 1.0}]})
    facts["options"][-1]["name"] = "F0"
    assert cost_of(facts) == expected(name)
