"""Explaining the plans of everything that is shipped, by every name in them; and plan files that were damaged."""

import copy
import functools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from catalog import load_catalog
from optimizer.cli import app
from optimizer.explain.explanation import explain
from optimizer.explain.reading import PlanReader
from optimizer.plan import SCHEMA_VERSION
from optimizer.problem.load import load_problem, parse_problem
from optimizer.report.explain import explanation_csv, explanation_sections
from optimizer.report.sections import markdown
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings
from tests.report.report_cases import STOCK, TINY

ROOT = Path(__file__).parents[2]
SHIPPED = sorted([*ROOT.glob("problems/*.yaml"), *ROOT.glob("optimizer/problem/templates/*.yaml")])


@functools.cache
def catalog() -> Any:
    return load_catalog()


def document_of(problem: Any, stock: Any) -> dict[str, Any]:
    plan = solve(problem, stock, SolverSettings(gap=0.1, time_limit_s=20))
    return dict(json.loads(json.dumps(plan.document())))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_name_in_a_shipped_plan_can_be_asked_for(path: Path) -> None:
    """Without WHAT, and with each workload, offer and GPU type: an answer in every form, never a failure."""
    loaded = load_problem(path, catalog())
    document = document_of(loaded.problem, loaded.catalog or catalog())
    plan = PlanReader(document)
    left_out = [entry["option"] for entry in document["left_out"]]
    names = [None, *plan.workloads, *plan.options, *plan.gpus_of_problem, *left_out[:50], "bindings", "assumptions"]
    for name in names:
        found = explain(document, name)
        assert found.answer, name
        assert markdown(explanation_sections(found.problem, found.answer, depth=found.depth))
        assert explanation_csv(found.answer)
        assert json.dumps(found.document())


# --- damaged files ----------------------------------------------------------------------------------------------------


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="gpumix")


@functools.cache
def small(text: str) -> str:
    return json.dumps(document_of(parse_problem(text, "small", catalog=catalog()).problem, catalog()))


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("cost",), ..., "cost is missing"),
        (("inputs",), ..., "inputs is missing"),
        (("inputs",), {}, "inputs.problem is missing"),
        (("schedule",), [], "schedule is a list"),
        (("schedule",), {}, "schedule.rented is missing"),
        (("assignments",), None, "assignments is null"),
        (("status",), "hello", 'status is "hello": expected optimal, feasible'),
        (("status",), ..., "status is missing"),
        (("cost", "npv"), "much", 'cost.npv is "much"'),
        (("inputs", "options"), {}, "inputs.options"),
    ],
)
@pytest.mark.parametrize("verb", ["explain", "audit"])
def test_a_damaged_plan_file_is_told_key_by_key(
    verb: str, keys: tuple[str, ...], value: Any, words: str, tmp_path: Path
) -> None:
    """Exit 2 and the key at fault, for explain and audit alike."""
    document = json.loads(small(TINY))
    change(document, keys, value)
    result = run(verb, written(tmp_path / "plan.json", document))
    assert result.exit_code == 2
    assert "plan.json: error: not a whole plan file: " in result.stderr
    assert words in result.stderr


def change(document: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    """Replace what is at `keys`, or take it away (`...`)."""
    part = document
    for key in keys[:-1]:
        part = part[key]
    if value is ...:
        del part[keys[-1]]
    else:
        part[keys[-1]] = value


def places(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Keys of the first and second level."""
    found: list[tuple[Any, ...]] = [(key,) for key in document]
    for key, part in document.items():
        if isinstance(part, dict):
            found += [(key, inner) for inner in part]
        elif isinstance(part, list):
            found += [(key, 0, inner) for inner in part[0]] if part and isinstance(part[0], dict) else []
    return found


@pytest.mark.parametrize("text", [TINY, STOCK], ids=["plan", "infeasible"])
@settings(max_examples=60)
@given(data=st.data())
def test_no_edit_of_a_plan_file_is_an_internal_error(
    text: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any key of the first two levels taken away or replaced: exit 0, 1 or 2 and never an internal error."""
    document = copy.deepcopy(json.loads(small(text)))
    keys = data.draw(st.sampled_from(places(document)))
    change(document, keys, data.draw(st.sampled_from([..., None, {}, [], "x", -1, 0.5, 7, True, [[]], {"a": 1}])))
    path = written(tmp_path_factory.mktemp("damaged") / "plan.json", document)
    for question in ([], ["chat"], ["A", "--no-resolve"], ["use"]):
        result = run("explain", path, *question)
        assert result.exit_code in (0, 1, 2), result.output
        assert "internal error" not in result.output
        assert result.exit_code == 0 or "error" in result.stderr


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "words"), [(SCHEMA_VERSION - 1, "an older gpumix"), (SCHEMA_VERSION + 1, "a newer gpumix")]
)
@pytest.mark.parametrize("verb", ["explain", "audit"])
def test_a_file_of_another_version_is_refused(verb: str, version: int, words: str, tmp_path: Path) -> None:
    """Keys were renamed between versions: what wrote the file is said, and what to do."""
    document = json.loads(small(TINY)) | {"schema_version": version}
    result = run(verb, written(tmp_path / "plan.json", document))
    assert result.exit_code == 2
    assert f"was written by {words} (plan version {version}" in result.stderr
    assert ("solve again" in result.stderr) == (version < SCHEMA_VERSION)
