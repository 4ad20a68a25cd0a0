import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from optimizer import cli
from optimizer.cli import VERBS, app
from optimizer.cli.common import Common, Format, records_text, write_file, write_output
from optimizer.errors import OptimizerError, OutputError
from optimizer.problem.load import parse_yaml
from optimizer.problem.templates import template_text, template_texts

ROOT = Path(__file__).parents[2]
WRONG = "name: x\nregoin: y\nworkloads:\n  - {name: j, kind: batch, model: llama-2-7b, tokens: 1,000}\n"


def run(*arguments, **settings):
    return CliRunner().invoke(app, list(arguments), prog_name="gpumix", **settings)


def run_process(*arguments, stdin=b"", **environment):
    command = [sys.executable, "-m", "optimizer", *arguments]
    settings = {"cwd": ROOT, "env": os.environ | environment, "capture_output": True, "timeout": 60}
    return subprocess.run(command, input=stdin, check=False, **settings)


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text(template_text("service"))
    return str(path)


@pytest.fixture
def wrong(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    return str(path)


def test_help_names_every_verb_and_the_exit_codes():
    """The overview lists the verbs in the order of use, and what the exit codes say."""
    result = run("--help")
    assert result.exit_code == 0
    positions = [result.stdout.index(f"\n  {verb} ") for verb in VERBS]
    assert positions == sorted(positions)
    assert "3 stopped by the time limit" in result.stdout.replace("\n  ", " ")


def test_help_imports_no_verb():
    """The overview costs no more than typer: neither schema, catalog, solver nor tables are imported."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom optimizer.cli import app\n"
        "CliRunner().invoke(app, ['--help'])\n"
        "heavy = ('yaml', 'pulp', 'pandas', 'catalog', 'optimizer.problem', 'rich.table')\n"
        "print([module for module in heavy if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_check_imports_neither_pandas_nor_solver(good):
    """Validation starts fast: the heavy packages stay out (estimates, which say what can run, may take numpy)."""
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom optimizer.cli import app\n"
        f"assert CliRunner().invoke(app, ['check', {good!r}]).exit_code == 0\n"
        "print([m for m in ('pulp', 'highspy', 'pandas', 'rich.table') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version():
    """--version prints the version and leaves."""
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, "gpumix 0.1.0\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "Did you mean 'check'?"),
        (["check"], "Missing argument 'FILE'"),
        (["check", "x.yaml", "-o", "xml"], "'xml' is not one of"),
        (["check", "x.yaml", "--fast"], "No such option: --fast"),
    ],
)
def test_bad_usage_is_exit_2_with_the_way_out(arguments, message):
    """Wrong verbs, missing arguments and unknown options end in code 2 on standard error."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_check_of_a_good_file(good):
    """A right file is code 0; the talk goes to standard error, -q leaves none."""
    result = run("check", good)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "ok: Support bot, 1 workload" in result.stderr
    assert run("check", good, "-q").stderr == ""
    assert json.loads(run("check", good, "-o", "json").stdout) == []


def test_check_tells_all_mistakes_with_their_places(wrong):
    """A wrong file is code 2, each mistake with file:line:column, on standard error."""
    result = run("check", wrong)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f'{wrong}:2:1: error regoin: unknown key "regoin"' in result.stderr
    assert f"{wrong}:4:" in result.stderr
    assert result.stderr.endswith("2 errors\n")


@pytest.mark.parametrize("form", ["json", "yaml", "csv", "md"])
def test_findings_in_every_form(wrong, form):
    """-o gives the same list as data on standard output: file, line, column, path, message, hint."""
    result = run("check", wrong, "-o", form)
    assert result.exit_code == 2
    keys = ["file", "line", "column", "path", "message", "hint"]
    if form == "json":
        assert [list(one) for one in json.loads(result.stdout)] == [keys, keys]
        assert json.loads(result.stdout)[0]["line"] == 2
    elif form == "yaml":
        assert parse_yaml(f"all:\n{result.stdout}", "x")[0]["all"][0]["path"] == "regoin"
    else:
        rows = result.stdout.splitlines()
        assert rows[0].replace(" ", "").strip("|").replace("|", ",") == ",".join(keys)
        assert len(rows) == (4 if form == "md" else 3)


def test_standard_input_is_a_file_too():
    """`-` reads the problem from standard input and says so in the messages."""
    assert run("check", "-", input=template_text("training")).exit_code == 0
    result = run("check", "-", input="name: [")
    assert result.exit_code == 2
    assert result.stderr.startswith("<stdin>:")


def test_the_output_form_has_an_environment_variable(wrong):
    """GPUMIX_OUTPUT is -o; the option wins."""
    assert json.loads(run("check", wrong, env={"GPUMIX_OUTPUT": "json"}).stdout)
    assert run("check", wrong, "-o", "table", env={"GPUMIX_OUTPUT": "json"}).stdout == ""


def test_init_writes_a_file_that_passes_check(tmp_path, monkeypatch):
    """init NAME writes NAME.yaml with that title, once, and check has nothing against it."""
    monkeypatch.chdir(tmp_path)
    result = run("init", "Shop bot", "--template", "platform")
    assert result.exit_code == 0
    assert (tmp_path / "shop-bot.yaml").read_text().count('name: "Shop bot"') == 1
    assert run("check", "shop-bot.yaml").exit_code == 0
    again = run("init", "Shop bot")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert run("init", "Shop bot", "--force").exit_code == 0


def test_init_lists_and_suggests_templates():
    """--list names the templates; a wrong one is answered with the nearest."""
    listed = run("init", "--list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        "cloud-vs-owned", "platform", "service", "training"]  # fmt: skip
    assert len(json.loads(run("init", "--list", "-o", "json").stdout)) == 4
    wrong = run("init", "x", "--template", "servise")
    assert wrong.exit_code == 2
    assert 'did you mean "service"?' in wrong.stderr


def test_init_without_a_name_prints_the_template():
    """Without NAME the file goes to standard output, as it is."""
    assert run("init", "-t", "training").stdout == template_text("training")


def test_schema_is_printed_or_written(tmp_path):
    """schema gives the JSON Schema on standard output, or in a file with --write."""
    printed = run("schema")
    assert json.loads(printed.stdout)["title"] == "gpumix problem file"
    target = tmp_path / "schema.json"
    assert run("schema", "--write", str(target)).exit_code == 0
    assert target.read_text() == printed.stdout


def test_files_are_written_whole_or_not_at_all(tmp_path):
    """A write that fails leaves the old content and no litter; one that ends well keeps the file's rights."""
    target = tmp_path / "out.txt"
    write_file("old\n", target)
    target.chmod(0o640)
    with pytest.raises(UnicodeEncodeError):
        write_file("\ud800", target)
    assert target.read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]
    write_output("new", target)
    assert target.read_text() == "new\n"
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("place", ["no/such/folder/out.txt", "."])
def test_files_that_cannot_be_written_are_told(tmp_path, place):
    """A missing folder or a directory as target is an error that names it."""
    with pytest.raises(OutputError, match="cannot write the output"):
        write_file("x", tmp_path / place)


def test_records_have_no_general_table():
    """Tables are each verb's own; asking for one here is a mistake of ours."""
    with pytest.raises(OptimizerError):
        records_text([], Format.TABLE)


def test_talk_and_detail(capsys):
    """say speaks unless quiet, detail only when verbose, both on standard error."""
    for settings, expected in [({}, "a\n"), ({"quiet": True}, ""), ({"verbose": True}, "a\nb\n")]:
        common = Common(**settings)
        common.say("a")
        common.detail("b")
        assert capsys.readouterr() == ("", expected)
    assert not Common().show_progress


RAISED = [
    (OptimizerError("the reason"), 2, "the reason\n"),
    (KeyboardInterrupt(), 130, "interrupted\n"),
    (ZeroDivisionError("x"), 2, "internal error: ZeroDivisionError: x\n"),
    (typer.Exit(3), 3, ""),
]


@pytest.mark.parametrize(("error", "code", "message"), RAISED)
def test_what_a_verb_raises_becomes_a_message_and_a_code(error, code, message, monkeypatch):
    """Our errors are code 2, Ctrl-C 130, faults of ours a short message; no traceback."""

    def verb() -> None:
        raise error

    monkeypatch.delenv("GPUMIX_DEBUG", raising=False)
    monkeypatch.setattr(cli, "verb_command", lambda name: typer.main.get_command(_single(verb)))
    result = run("solve")
    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.output


def _single(verb):
    single = typer.Typer()
    single.command()(verb)
    return single


def test_the_process_ends_with_the_code_and_without_traceback(tmp_path):
    """As a process: 0 for a right file on standard input, 2 for a missing one; standard output stays empty."""
    good = run_process("check", "-", stdin=template_text("service").encode())
    assert (good.returncode, good.stdout) == (0, b"")
    missing = run_process("check", str(tmp_path / "none.yaml"))
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert b"no such file" in missing.stderr
    assert b"Traceback" not in missing.stderr


def test_a_reader_that_leaves_early_is_no_error_to_tell():
    """`gpumix schema | head -1` ends quietly."""
    command = f"{sys.executable} -m optimizer schema | head -1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "{\n"
    assert done.stderr == ""


def test_a_terminal_without_unicode_gets_text_all_the_same():
    """Messages with ≤ or é are written even where the terminal cannot show them."""
    done = run_process("check", "-", stdin="é: 1".encode(), PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert b"unknown key" in done.stderr


@pytest.mark.parametrize("name", template_texts())
def test_templates_solve_as_they_are(name, tmp_path):
    """What init writes has a plan: solve ends with code 0."""
    path = tmp_path / "p.yaml"
    path.write_text(template_text(name))
    result = run("solve", str(path), "-o", "json", "--gap", "0.05")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["status"] == "optimal"
