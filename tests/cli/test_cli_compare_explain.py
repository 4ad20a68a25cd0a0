"""`gpumix compare` and `gpumix explain` as a person calls them: forms, exit codes, files, messages."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from optimizer.cli import app

PROBLEM = """
name: shop
horizon: {months: 12, periods: once}
workloads: [{name: chat, kind: service, traffic: {mean_requests_per_s: 5}}]
gpus: {A: {}, B: {}}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 10, gpus_per_replica: 1}
  - {workload: chat, gpu: B, requests_per_s: 10, gpus_per_replica: 1}
options:
  catalog: false
  quotes:
    - {name: cloud, gpu: A, purchase: on-demand, price: 2 USD/h}
    - {name: dear, gpu: B, purchase: on-demand, price: 3 USD/h, max_nodes: 5}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="gpumix")


@pytest.fixture
def problem(tmp_path: Path) -> str:
    path = tmp_path / "shop.yaml"
    path.write_text(PROBLEM)
    return str(path)


@pytest.fixture
def plan(tmp_path: Path, problem: str) -> str:
    path = tmp_path / "plan.json"
    assert run("solve", problem, "--plan", str(path)).exit_code == 0
    return str(path)


def test_compare_gives_the_contract_in_json(problem: str) -> None:
    """Variants with status, cost and GPUs, the break-even searches, baseline and savings; exit 0."""
    result = run("compare", problem, "-o", "json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert {"schema_version", "problem", "currency", "variants", "break_even", "baseline", "savings"} <= set(document)
    assert document["variants"]["cloud-only"]["cost"]["npv"] == pytest.approx(17_520)
    assert document["variants"]["owned-only"]["status"] == "infeasible"
    assert document["break_even"]["month"]["status"] == "not defined"


@pytest.mark.parametrize("form", ["table", "yaml", "csv", "md"])
def test_compare_and_explain_in_every_form(problem: str, plan: str, form: str) -> None:
    """All forms hold the figures."""
    assert "cloud-only" in run("compare", problem, "-o", form, "--no-break-even").stdout
    assert "usage" in run("explain", plan, "cost.npv", "-o", form).stdout


def test_no_variant_with_a_plan_is_exit_1(problem: str, tmp_path: Path) -> None:
    """Nothing can be had: the answer is "no", with the reason."""
    path = tmp_path / "none.yaml"
    path.write_text(PROBLEM + "limits: {npv: 1 USD}\n")
    result = run("compare", str(path))
    assert result.exit_code == 1
    assert "limits.npv" in result.stdout


def test_bad_input_is_exit_2(tmp_path: Path, problem: str) -> None:
    """Unknown keys, absent files, unusable limits and places: message, no traceback."""
    path = tmp_path / "bad.yaml"
    path.write_text(PROBLEM + "baseline: {keep: all}\n")
    for arguments in (
        ("compare", str(path)),
        ("compare", str(tmp_path / "absent.yaml")),
        ("compare", problem, "--time-limit", "0"),
        ("compare", problem, "--gap", "-1"),
        ("compare", problem, "--out", str(tmp_path / "no" / "file")),
        ("explain", str(tmp_path / "absent.json")),
        ("explain", problem),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert "Traceback" not in result.output


def test_explain_answers_in_words_and_json(plan: str) -> None:
    """The dearer GPU is priced by solving again: 3 instead of 2 USD/h is 50 % more."""
    result = run("explain", plan, "why", "not", "B")
    assert result.exit_code == 0
    assert "8,760.00 USD (50 %) dearer" in result.stdout
    document = json.loads(run("explain", plan, "B", "--no-resolve", "-o", "json").stdout)
    assert "--no-resolve" in document["answer"][0]["value"]


def test_explain_of_an_unknown_name_is_exit_2(plan: str) -> None:
    """Near names are offered."""
    result = run("explain", plan, "clod")
    assert result.exit_code == 2
    assert 'did you mean "cloud"' in result.stderr


def test_output_goes_to_a_file_whole(plan: str, tmp_path: Path) -> None:
    """`--out` writes the answer and nothing to standard output."""
    path = tmp_path / "answer.json"
    result = run("explain", plan, "-o", "json", "--out", str(path))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert json.loads(path.read_text())["next"]
