import importlib.util
import re
from pathlib import Path

import pytest

from catalog.load import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.problem.load import parse_problem

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "problem-files.md").read_text(encoding="utf-8")


def test_the_list_of_keys_is_current():
    """The manual's tables are what docs/write_problem_keys.py writes from the schema of today."""
    spec = importlib.util.spec_from_file_location("write_problem_keys", DOCS / "write_problem_keys.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.page_with_current_keys(PAGE) == PAGE, "run: python docs/write_problem_keys.py"
    assert script.SCHEMA.read_text(encoding="utf-8") == script.schema_text(), "run: python docs/write_problem_keys.py"


def test_the_example_of_the_manual_is_right():
    """The file that the manual shows first passes all checks."""
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]
    assert parse_problem(example, catalog=load_catalog()).problem.name == "Shop bot"


def test_the_messages_of_the_manual_are_the_real_ones():
    """The two messages shown come out word for word."""
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]
    shown = re.search(r"```\n(shop.yaml:.*?)```", PAGE, re.DOTALL)[1]
    spoilt = example.replace("    weights: int4\n", "").replace("output: 50", 'output: "50"')
    spoilt = spoilt.replace("    latency: {p95_end_to_end: 5 s}", "    headrom: 20 %")
    with pytest.raises(ProblemFileError) as caught:
        parse_problem(spoilt, "shop.yaml")
    assert str(caught.value) == shown.strip()


def test_every_key_with_a_unit_says_so_beside_its_meaning():
    """A quantity's row has its kind under "takes", its default with a unit, and its meaning."""
    keys = PAGE.partition("## All keys")[2].splitlines()
    rows = [line.split(" | ") for line in keys if line.startswith("| `")]
    found = {row[0].strip("| `"): [cell.strip(" |") for cell in row[1:]] for row in rows}
    assert found["headroom"][:2] == ["a share, e.g. 33 %", "`0 %`"]
    assert found["lead_time"] == ["a duration, e.g. 4 months", "`0 months`", "Order to arrival."]
    assert found["hours_lost"] == ["a duration, e.g. 5 days", "`0 h`", "Work lost per interruption."]
    assert found["discount_rate"][:2] == ["a share per year, e.g. 5 %/year", "`0 %`"]
    assert found["start"][0] == "a start, e.g. month 6"
    assert all(len(row) == 4 for row in rows), "a meaning broke its row"
