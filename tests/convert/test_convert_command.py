"""The verb `convert`: files and standard input, messages and exit codes, names that could break a YAML file."""

import json
from pathlib import Path

import pytest
import yaml

from catalog import load_catalog
from optimizer.convert.melange import read_melange
from optimizer.convert.problem_file import problem_text
from optimizer.problem.load import parse_problem
from tests.convert.melange_cases import DATA, answer, gpu, instance, instance_text, run

EXAMPLE = DATA / "o01_repo_example.json"


def test_convert_check_solve_audit(tmp_path: Path) -> None:
    """The way a person goes: the hourly cost of the plan is cost.npv, and the audit agrees."""
    problem, plan = tmp_path / "mix.yaml", tmp_path / "plan.json"
    done = run("convert", "melange", EXAMPLE, "--out", problem)
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"next: gpumix solve {problem}" in done.stderr
    assert run("check", problem).exit_code == 0
    solved = run("solve", problem, "--gap", "0", "--plan", plan, "-o", "json")
    assert json.loads(solved.stdout)["cost"]["npv"] == pytest.approx(4.68)
    assert run("audit", plan).exit_code == 0


def test_the_problem_is_one_hour_of_rented_nodes() -> None:
    """Horizon 1/730 month, no discount, one slice, options billed by use, no catalog."""
    text = run("convert", "melange", EXAMPLE).stdout
    problem = parse_problem(text, catalog=load_catalog()).problem
    assert problem.horizon.months == pytest.approx(1 / 730)
    assert problem.finance.discount_rate == 0
    assert problem.slices is None
    assert {quote.purchase for quote in problem.options.quotes} == {"on-demand"}
    assert not problem.options.has_offers
    assert {quote.source for quote in problem.options.quotes} == {"o01_repo_example.json"}
    assert len(answer(json.loads(EXAMPLE.read_text(encoding="utf-8")))["grid"]["slices"]) == 1


def test_standard_input_and_json() -> None:
    """`-` reads standard input; the problem may be had as JSON, which is the same."""
    text = instance_text("o01_repo_example")
    piped = run("convert", "melange", "-", "--name", "example", stdin=text)
    as_json = run("convert", "melange", "-", "--name", "example", "-o", "json", stdin=text)
    assert piped.exit_code == as_json.exit_code == 0
    assert yaml.safe_load(piped.stdout) == json.loads(as_json.stdout)
    wrong = run("convert", "melange", "-", stdin="{}")
    assert wrong.exit_code == 2
    assert '<stdin>:1:1: error gpu_info: missing key "gpu_info"' in wrong.stderr


def test_what_is_left_out_is_told_and_stands_in_the_file() -> None:
    """Empty buckets, types that serve nothing asked for, and buckets that nobody serves."""
    types = {"small": gpu(1, [[0, 0, 3]]), "big": gpu(4, [[10, 0, 0]])}
    done = run("convert", "melange", "-", stdin=json.dumps(instance(types, [[0.5, 0.5, 0]])))
    assert done.exit_code == 0
    for remark in (
        "Left out: 1 bucket without requests.",
        "Left out: GPU types that serve no bucket with requests: 'small'.",
        "No GPU type serves the bucket 'row 1 column 2', which has requests: the problem is infeasible.",
    ):
        assert remark in done.stderr
        assert f"# {remark}\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("melange", "missing.json"), "missing.json: error: no such file"),
        (("melange", DATA), "this is a directory"),
        (("nothing", EXAMPLE), "melange"),
        (("melange", EXAMPLE, "-o", "csv"), "a problem file cannot be given as csv"),
        (("melange", EXAMPLE, "--out", EXAMPLE), "would be overwritten"),
    ],
)
def test_bad_usage_is_told_with_exit_code_2(arguments: tuple, words: str) -> None:
    """Missing files, directories, unknown formats and forms; the input is never overwritten."""
    before = EXAMPLE.read_bytes()
    done = run("convert", *arguments)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert before == EXAMPLE.read_bytes()


@pytest.mark.parametrize("name", ["no", "1e3", "A: b", "# x", "ü", "a  b", "x" * 300, "A100", "'", '"', "- a", "null"])
def test_any_name_of_a_type_survives(name: str) -> None:
    """Names that mean something in YAML or in the catalog are taken as they are."""
    assert answer(instance({name: gpu(1, [[10]])}, rate=25))["gpus"] == {name: 3}


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "\ud800"])
def test_a_name_that_no_file_can_hold_is_refused(name: str) -> None:
    """Empty names and control characters."""
    done = run("convert", "melange", "-", stdin=json.dumps(instance({name: gpu(1, [[10]])})))
    assert done.exit_code == 2
    assert "of a GPU type cannot be used" in done.stderr


def test_a_file_name_cannot_break_out_of_its_remark() -> None:
    """The remark at the head stays one line, whatever the file is called."""
    text = problem_text(read_melange(json.dumps(instance()), "a\nname: other.json"), "title: x")
    assert parse_problem(text).problem.name == "title: x"
