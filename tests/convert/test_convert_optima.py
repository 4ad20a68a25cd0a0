"""Converted instances cost what is proven, and the mix can serve every bucket."""

import json
import math
from collections import defaultdict

import pytest

from tests.convert.melange_cases import DATA, OPTIMA, Plan, answer, gpu, instance, instance_text, rows_of, solved


def test_every_instance_has_its_optimum() -> None:
    """The packaged files and the list of their least costs belong together."""
    assert {path.stem for path in DATA.glob("*.json")} == set(OPTIMA)
    assert len(OPTIMA) == 11


@pytest.mark.parametrize("name", OPTIMA)
def test_the_cost_is_the_proven_optimum_and_every_bucket_is_served(name: str) -> None:
    """Least cost to 1e-6, no machine busy for more than its time, no bucket short of its requests."""
    data = json.loads(instance_text(name))
    plan = solved(instance_text(name))
    assert plan["status"] == "optimal"
    assert plan["cost"]["npv"] == pytest.approx(OPTIMA[name], rel=1e-6)
    prices = {gpu: entry["cost"] for gpu, entry in data["gpu_info"].items()}
    assert math.fsum(prices[one] * count for one, count in plan["gpus"].items()) == pytest.approx(OPTIMA[name])
    check_served(data, plan)


def check_served(data: dict, plan: Plan) -> None:
    """Straight from the instance: requests of each bucket, and machine time of each GPU type."""
    busy: dict[str, float] = defaultdict(float)
    served: dict[tuple[int, int], float] = defaultdict(float)
    for one in plan["schedule"]["served"]:
        _, row, _, column = one["class"].split()
        i, j = int(row) - 1, int(column) - 1
        served[i, j] += one["requests_per_s"]
        busy[one["option"]] += one["requests_per_s"] / data["gpu_info"][one["option"]]["tputs"][i][j]
    for i, row in enumerate(data["workload_distribution"]):
        for j, share in enumerate(row):
            assert served[i, j] == pytest.approx(share * data["total_request_rate"], rel=1e-6)
    for name, time in busy.items():
        assert time <= plan["gpus"][name] * (1 + 1e-6)


def test_the_example_of_the_repository_costs_4_68() -> None:
    """One A10G and one A100; the solver it comes from answers 6.70, or 5.69 with finer slices."""
    plan = solved(instance_text("o01_repo_example"))
    assert plan["gpus"] == {"A10G": 1, "A100-80GB": 1}
    assert plan["cost"]["npv"] == pytest.approx(4.68)


TYPES = {"A10G": gpu(1.01, [[0.368]]), "A100": gpu(3.67, [[2.0]])}


@pytest.mark.parametrize("row", rows_of("figure_9.csv"), ids=lambda row: row["requests_per_s"])
def test_figure_9_step_by_step(row: dict[str, str]) -> None:
    """Least cost at every request rate of the figure, with both types and with either alone."""
    rate = float(row["requests_per_s"])
    assert answer(instance(TYPES, rate=rate))["cost"]["npv"] == pytest.approx(float(row["usd_per_hour"]), rel=1e-6)
    for name in TYPES:
        alone = answer(instance({name: TYPES[name]}, rate=rate))["cost"]["npv"]
        assert alone == pytest.approx(float(row[f"{name.lower()}_only_usd_per_hour"]), rel=1e-6)


def test_figure_9_as_the_paper_says_it() -> None:
    """At 4.3 requests/s: 2 A100 and 1 A10G for 8.35 USD/h, 24 % below A100 alone and 31 % below A10G alone."""
    plan = answer(instance(TYPES, rate=4.3))
    assert plan["gpus"] == {"A10G": 1, "A100": 2}
    cost = plan["cost"]["npv"]
    assert cost == pytest.approx(8.35)
    saved = {name: 1 - cost / answer(instance({name: TYPES[name]}, rate=4.3))["cost"]["npv"] for name in TYPES}
    assert {name: round(100 * share) for name, share in saved.items()} == {"A100": 24, "A10G": 31}
