"""Diagnoses of random problems with all families mixed, held against re-solves of the edited problem file."""

import copy
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from optimizer.plan import Shortfall
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.model.builders import Data, least_cost, parsed, the_catalog
from tests.model.strategies import problems

UNITS = {"deadline": "{} h", "start": "{} h", "lead_time": "{} months"}
WHOLE = ("nodes", "GPUs")
MARGIN = 3e-6
HAIR = 1e-4


@st.composite
def scarce(draw: st.DrawFn) -> Data:
    """A problem whose offer that serves everything is short, so that many have no plan."""
    data = draw(problems(plain=True))
    data["options"]["quotes"][0]["max_nodes"] = draw(st.integers(0, 4))
    if draw(st.booleans()):
        data["limits"]["npv"] = draw(st.integers(1, 40)) * 500.0
    return data


def edited(data: Data, key: str, value: float) -> Data:
    """The problem file with one key at another value, by the key that the diagnosis names."""
    out = copy.deepcopy(data)
    group, *path = key.split(".")
    if group == "limits":
        *parts, last = path
        where: Any = out["limits"]
        for part in parts:
            where = where[part]
        where[last] = value
        return out
    listed = out["options"]["quotes"] if group == "options" else out["workloads"]
    name, field = path[-2:]
    entry = next(one for one in listed if one["name"] == name)
    if field == "spread":
        entry["spread"] = "any" if value else entry["spread"]
        return out
    if field == "start":
        hours = float(entry["start"].split()[0])
        entry["deadline"] = f"{float(entry['deadline'].split()[0]) + hours - value!r} h"
    is_whole = field in ("max_nodes", "min_nodes", "max_gpus", "min_gpus")
    entry[field] = UNITS.get(field, "{}").format(repr(value)) if not is_whole else round(value)
    return out


def further(found: Shortfall, share: float) -> float:
    """The value found, passed by a share of it in the direction in which the limit gives."""
    sign = 1 if found.required > found.attainable else -1
    return max(0.0, found.required + sign * share * max(abs(found.required), 1e-3))


def a_hair_less(found: Shortfall) -> float:
    """A value that gives a little less: a node, a GPU, or a hair of the change."""
    sign = 1 if found.required > found.attainable else -1
    by = 1.0 if found.unit in WHOLE else max(HAIR * abs(found.required), 0.01 * found.short_by)
    return found.required - sign * min(by, found.short_by)


@given(scarce())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_every_fix_is_enough_at_the_cost_stated_and_no_less_is(data: Data) -> None:
    """Each change of one limit that is said to be enough: so in the file, at that cost, and not with a hair less."""
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    assume(plan.status == "infeasible")
    assume(plan.notes == ())  # cut short by its time limit, as on a busy machine, it need not be complete
    alone = [one for one in plan.infeasibility if one.kind == "limit" and one.alone]
    for found in alone:
        if found.unit == "choice":
            assert least_cost(edited(data, found.change, 1.0)) == pytest.approx(found.npv, rel=1e-5)
            continue
        margin = 0.0 if found.unit in WHOLE else MARGIN
        enough = edited(data, found.change, min(further(found, margin), 1.0 if found.unit == "share" else math.inf))
        assert least_cost(enough) == pytest.approx(found.npv, rel=1e-4)
        assert least_cost(edited(data, found.change, a_hair_less(found))) == math.inf
    costs = [one.npv for one in alone]
    assert costs == sorted(costs, key=lambda npv: npv or 0.0)


def lifted(data: Data) -> dict[str, Data]:
    """The problem without each of the limits that it has, by the same keys."""
    found: dict[str, Data] = {}
    for quote in data["options"]["quotes"]:
        if "max_nodes" in quote:
            key = f"options.quotes.{quote['name']}.max_nodes"
            found[key] = edited(data, key, 10_000)
    for key in data["limits"]:
        path = "limits.gpus.B" if key == "gpus" else f"limits.{key}"
        found[path] = edited(data, path, {"spot_share": 1.0}.get(key, 1e7))
    for one in data["workloads"]:
        if one["kind"] == "batch" and "max_gpus" in one:
            key = f"workloads.{one['name']}.max_gpus"
            found[key] = edited(data, key, 100_000)
    return found


@given(scarce())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
def test_no_limit_that_would_be_enough_is_missed(data: Data) -> None:
    """Every limit without which there is a plan is listed as enough alone, and no other."""
    plan = solve(parsed(data), the_catalog(), SolverSettings(gap=0))
    assume(plan.status == "infeasible")
    alone = {one.change for one in plan.infeasibility if one.kind == "limit" and one.alone}
    for key, without in lifted(data).items():
        assert (least_cost(without) < math.inf) == (key in alone), key
