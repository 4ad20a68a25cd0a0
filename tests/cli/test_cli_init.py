import pytest
from typer.testing import CliRunner

from catalog.load import load_catalog
from optimizer.cli import app
from optimizer.problem.load import load_problem


def init(*arguments):
    return CliRunner().invoke(app, ["init", *arguments], prog_name="gpumix")


@pytest.mark.parametrize("name", ["", " ", "a/b", "../zz", "/", "...", ".yaml", "\u3000"])
def test_names_that_give_no_file_name_are_refused(tmp_path, monkeypatch, name):
    """What is neither a name nor the path of a YAML file writes nothing, and the message says what to write."""
    monkeypatch.chdir(tmp_path)
    result = init(name)
    assert result.exit_code == 2
    assert f'"{name}" is no name of a problem; write a name such as "Shop bot", or a path such as ' in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "file"), [("Shop bot", "shop-bot.yaml"), ("sub/My case.yaml", "sub/My case.yaml")])
def test_the_file_written_is_said(tmp_path, monkeypatch, name, file):
    """A name becomes a file here, a path stays where it points; the message names the file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    result = init(name)
    assert result.exit_code == 0
    assert f"{file} written" in result.stderr
    problem = load_problem(tmp_path / file, load_catalog()).problem
    assert problem.name == name.removeprefix("sub/").removesuffix(".yaml")


def test_a_choice_that_is_none_is_told_in_plain_words():
    """An unknown form of output names the forms, without the words of the libraries below."""
    result = CliRunner().invoke(app, ["init", "--list", "-o", "xml"], prog_name="gpumix")
    assert result.exit_code == 2
    assert "'xml' is not one of 'table', 'json'" in result.stderr.replace("\n", " ")
    assert "Value error" not in result.stderr
