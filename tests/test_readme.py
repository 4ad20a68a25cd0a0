"""What the README shows is what the command prints, and what it tells a newcomer to write is valid."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from optimizer.cli import VERBS
from optimizer.problem.load import parse_problem

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"<!-- runs: gpumix (.*?) -->\n```text\n(.*?)```", README, re.S)


def run(arguments: list[str]) -> str:
    """What a command prints at 100 columns; seconds are left out."""
    done = subprocess.run(
        [sys.executable, "-m", "optimizer", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        check=True,
    )
    return steady(done.stdout)


def steady(text: str) -> str:
    """Text without what changes from run to run: seconds, versions of tool and catalog."""
    text = re.sub(r"[\d.]+ s\.", "… s.", text)
    text = re.sub(r"catalog [\w.+-]+;", "catalog …;", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_output_in_the_readme_is_what_the_command_prints(command: str, shown: str) -> None:
    """The worked example is printed by the command above it."""
    assert run(command.split()) == steady(shown)


def test_the_example_problem_is_valid() -> None:
    """The short problem file of the README passes all checks."""
    (text,) = re.findall(r"<!-- problem file, checked by the tests -->\n```yaml\n(.*?)```", README, re.S)
    assert parse_problem(text, "README.md").problem.name == "Shop bot"


def test_every_verb_is_in_the_readme_and_every_link_leads_somewhere() -> None:
    """No verb is left out, no link is dead."""
    assert all(f"gpumix {verb}" in README for verb in VERBS)
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_accuracy_table_is_the_one_of_the_accuracy_page() -> None:
    """Rows, errors, errors with the source left out and coverage are those that docs/accuracy.md was written with."""
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8").split("## Summary")[1].split("##")[0]
    pairs = r"[\d.]+ / [\d.]+"
    row = rf"^\| ([^|]+) \| (\d+) \| ({pairs}) \| ({pairs}) \| ({pairs}) \| (\d+ %) \|$"
    shown = re.findall(row, README, re.M)
    assert shown == re.findall(row, page, re.M)
    assert len(shown) == 7
