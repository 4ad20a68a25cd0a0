"""What the tests of `convert melange` share: the packaged instances, and the way from JSON to an audited plan."""

import csv
import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from catalog import load_catalog
from optimizer.audit import audit_plan
from optimizer.cli import app
from optimizer.convert.melange import read_melange
from optimizer.convert.problem_file import problem_text
from optimizer.problem.load import parse_problem
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings

DATA = Path(__file__).parent / "data"
Plan = dict[str, Any]


def rows_of(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


OPTIMA = {row["instance"]: float(row["usd_per_hour"]) for row in rows_of("optima.csv")}


def instance_text(name: str) -> str:
    return (DATA / f"{name}.json").read_text(encoding="utf-8")


def gpu(cost: Any, tputs: Any, **more: Any) -> dict[str, Any]:
    return {"cost": cost, "tputs": tputs} | more


def instance(gpus: Any = None, shares: Any = None, rate: Any = 5, **more: Any) -> dict[str, Any]:
    """An instance as plain data; one GPU type at 1 USD/h that serves 10 requests/s of one bucket by default."""
    return {
        "gpu_info": {"g": gpu(1, [[10]])} if gpus is None else gpus,
        "workload_distribution": [[1]] if shares is None else shares,
        "total_request_rate": rate,
        "slice_factor": 1,
    } | more


def solved(text: str) -> Plan:
    """The plan of an instance at gap 0, by the problem file that it becomes; its audit finds nothing."""
    written = problem_text(read_melange(text, "instance.json"), "instance")
    catalog = load_catalog()
    problem = parse_problem(written, "instance.yaml", catalog=catalog).problem
    plan = solve(problem, catalog, SolverSettings(gap=0))
    document = json.loads(json.dumps(plan.document()))
    if plan.cost is not None:
        assert not audit_plan(document).findings
    return document


def answer(data: dict[str, Any]) -> Plan:
    return solved(json.dumps(data))


def run(*arguments: Any, stdin: str | bytes | None = None) -> Any:
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin, prog_name="gpumix")
