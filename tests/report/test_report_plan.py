import csv
import io
import json
import math
import re

import pytest

from optimizer.problem.load import parse_yaml
from optimizer.report.forms import cost_lines_csv, json_text, yaml_text
from optimizer.report.infeasible import shortfall_line
from optimizer.report.plan import plan_sections, status_line
from optimizer.report.sections import markdown
from optimizer.report.tables import plain_text
from tests.audit.plans import BURDENED, document
from tests.report.report_cases import SHORT, STOCK, TINY, solved

CONTRACT = {
    "": "schema_version problem currency created_at gpumix_version catalog_version status cost gpus acquisitions "
    "rentals assignments cost_lines constraints rejections infeasibility assumptions timing model",
    "cost": "npv bound gap capex opex salvage",
    "acquisitions": "option gpu purchase_option provider region nodes gpus start_month term_months unit_price source",
    "rentals": "option gpu purchase_option provider region peak_nodes gpu_hours unit_price source",
    "assignments": "workload class gpu deployment replicas_peak share bottleneck utilisation",
    "cost_lines": "term option period quantity unit unit_price amount npv source group name",
    "constraints": "family index lhs sense rhs slack unit binding",
    "assumptions": "name value unit source date kind",
    "timing": "read_s estimate_s build_s solve_s report_s",
    "model": "variables integers rows nonzeros",
}


@pytest.fixture(scope="module")
def text():
    return plain_text(plan_sections(solved(TINY), plan_file="p.json", problem_file="tiny.yaml"))


def section(title):
    return next(s for s in plan_sections(solved(TINY)) if s.title == title)


@pytest.mark.parametrize("part", CONTRACT)
def test_json_has_every_key_of_the_contract(part):
    """The JSON of a plan has the documented keys, in every record."""
    document = json.loads(json_text(solved(TINY)))
    found = document[part] if part else document
    for record in found if isinstance(found, list) else [found]:
        assert set(CONTRACT[part].split()) <= set(record)


def test_headline(text):
    """The first lines tell status, cost with currency and horizon, the month's payment, the bound and the gap."""
    cost = solved(TINY)["cost"]
    head = text.split("\n\n")[0]
    for words in ("Optimal", "proven", f"{cost['npv']:,.2f} USD over 12 months at 8 % a year", "gap", "× A", "× B"):
        assert words in head


def test_level_payment_has_the_same_present_value(text):
    """The monthly figure, paid at the end of each month, discounts back to the NPV."""
    line = next(line for line in text.splitlines() if "that is per month" in line)
    payment = float(line.split("month")[1].split()[0].replace(",", ""))
    worth = sum(payment * 1.08 ** (-(m + 1) / 12) for m in range(12))
    assert worth == pytest.approx(solved(TINY)["cost"]["npv"], rel=1e-4)


def test_what_to_buy_and_rent():
    """Orders say when to order and when nodes arrive, rentals how many GPU-hours; both with price and date."""
    rows = {row[1]: row for row in section("What to keep, buy, sign and rent").rows}
    assert rows["buy A"][0] == "buy"
    assert "order at 0" in rows["buy A"][5]
    assert "from 1" in rows["buy A"][5]
    assert rows["buy A"][6] == "40,000.00 per node"
    assert rows["buy A"][7] == "buyer's quote, 2026-11-03"
    assert rows["spot B"][0] == "rent (spot)"
    assert "GPU-hours" in rows["spot B"][5]
    assert rows["spot B"][6] == "2.20 per node and hour"


def test_costs_add_up():
    """Quantity × unit price = amount in every row, rows sum to the totals, and the last is the cost."""
    document = solved(TINY)
    found = section("What it costs")
    plain = [[cell.replace(",", "") for cell in row] for row in found.rows]
    lines, totals = plain[:-4], {row[0]: row for row in plain[-4:]}
    for row in lines:
        assert float(row[2]) * float(row[4]) == pytest.approx(float(row[5]), rel=1e-4)
    assert math.fsum(float(row[6]) for row in lines) == pytest.approx(document["cost"]["npv"], rel=1e-5)
    assert float(totals["total"][6]) == pytest.approx(document["cost"]["npv"], rel=1e-5)
    assert float(totals["total capex"][5]) == pytest.approx(document["cost"]["capex"])
    assert float(totals["total salvage"][5]) == pytest.approx(-document["cost"]["salvage"])


def test_who_serves_what():
    """Each workload is there with its GPU, share, use and whether its rate was measured; shares sum to 100 %."""
    rows = section("Who serves what").rows
    chat = [row for row in rows if row[0] == "chat"]
    assert sum(float(row[6].removesuffix(" %")) for row in chat) == pytest.approx(100, abs=0.2)
    assert {row[-1] for row in rows} == {"measured"}
    assert {row[0] for row in rows} == {"chat", "night"}


def test_limits_reached():
    """A limit that binds is named as in the problem file, with its value and unit."""
    rows = section("Limits reached").rows
    assert [row[:3] for row in rows] == [("stock of spot B", "2", "nodes")]
    assert re.fullmatch(r"\d+ of \d+ times", rows[0][3])


def test_dates_assumptions_and_next_steps(text):
    """The oldest price date, the kind of each assumption and the next commands are on the page."""
    assert "Oldest price in this plan: 2026-10-01" in text
    assert "more in the plan file (`assumptions`)" in text
    assert "prices without a date" in {one["name"] for one in solved(TINY)["assumptions"]}
    assert "default" in text
    for step in ("gpumix explain p.json", "gpumix audit p.json", "gpumix compare tiny.yaml"):
        assert step in text


def test_offers_not_used_are_counted():
    """What was not chosen is counted, with the command that says why."""
    notes = section("Not chosen").notes[0]
    used = {a["option"] for key in ("acquisitions", "rentals") for a in solved(TINY)[key]}
    assert notes.startswith(f"{3 - len(used)} offer")
    assert "gpumix explain" in notes


def test_small_cost_lines_are_summed():
    """Beyond the largest lines the rest stands in one row, and the sum of amounts stays."""
    document = solved(TINY)
    many = [{**document["cost_lines"][0], "option": f"o{i}", "npv": float(i), "amount": float(i)} for i in range(1, 31)]
    rows = next(s for s in plan_sections({**document, "cost_lines": many}) if s.title == "What it costs").rows[:-4]
    assert rows[-1][0] == "16 smaller lines"
    assert sum(float(row[5].replace(",", "")) for row in rows) == sum(range(1, 31))


def test_table_fits_100_columns(text):
    """Piped tables are at most 100 columns wide, without escape codes."""
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    assert "…" not in text


def test_markdown_has_the_same_rows():
    """Markdown carries the same cells as the table, every line of a table with as many bars."""
    text = markdown(plan_sections(solved(TINY)))
    assert text.startswith("# Tiny\n")
    lines = [line for line in text.splitlines() if line.startswith("| capex")]
    assert lines == ["| capex | buy A | 1 | nodes | 40,000.00 | 40,000.00 | 40,000.00 |"]


def test_yaml_reads_back():
    """YAML output read by our own reader is the document."""
    document = json.loads(json_text(solved(TINY)))
    assert parse_yaml(yaml_text(document), "plan.yaml")[0] == document


def test_csv_of_cost_lines():
    """CSV has one line per cost line, in full figures, which sum to the cost."""
    document = solved(TINY)
    rows = list(csv.DictReader(io.StringIO(cost_lines_csv(document))))
    assert len(rows) == len(document["cost_lines"])
    assert math.fsum(float(row["npv"]) for row in rows) == pytest.approx(document["cost"]["npv"], rel=1e-9)
    assert {row["currency"] for row in rows} == {"USD"}


def test_infeasible_names_the_limit_the_shortfall_and_the_fix():
    """Five GPUs are needed and three are there: the page says so, and what would mend it at what cost."""
    document = solved(STOCK)
    text = plain_text(plan_sections(document))
    assert "Infeasible" in text
    assert "Cheapest single change: stock of rent A from 3 to 5 nodes (+2)" in text
    assert "then 50.00 USD" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("stock of rent A"))
    assert row[-7:] == ["3", "nodes", "5", "nodes", "+2", "nodes", "50.00"]
    assert "400,000  documents" in text
    assert shortfall_line(document) == "infeasible: stock of rent A falls short by 2 nodes"


def test_infeasible_for_want_of_any_gpu():
    """A workload that no GPU can run is named, with the rejection."""
    text = plain_text(plan_sections(solved(SHORT)))
    assert "other cannot run on any GPU that the problem allows." in text
    assert "Rejected" in text


def test_status_lines_of_unproven_plans():
    """A plan stopped early says who stopped it and what is proven; without a plan it says so."""
    document = solved(TINY)
    cost = document["cost"]
    stopped = {**document, "status": "feasible", "cost": {**cost, "gap": 0.034}}
    assert status_line(stopped).startswith("Stopped by the time limit")
    assert "more than 3.4 % cheaper" in status_line(stopped)
    assert status_line({**stopped, "interrupted": True}).startswith("Interrupted")
    inputs = {**document["inputs"], "settings": {**document["inputs"]["settings"], "method": "decomposed"}}
    assert status_line({**stopped, "inputs": inputs}).startswith("Planned by prices and cells")
    unknown = {**stopped, "cost": {**cost, "gap": None, "bound": None}}
    assert "not known yet" in status_line(unknown)
    assert "none yet" in plain_text(plan_sections(unknown))
    nothing = {**document, "status": "no_plan", "cost": None}
    assert "before any plan" in plain_text(plan_sections(nothing))


def test_further_costs_stand_in_rows_of_their_own():
    """Each kind is a row however small, prices that rise are one row with their range, and the amounts add up."""
    lines = [line for line in document(BURDENED)["cost_lines"] if line["npv"]]
    section_ = next(s for s in plan_sections(document(BURDENED)) if s.title == "What it costs")
    rows = section_.rows[:-4]
    kinds = {"staff", "network", "support", "insurance", "storage", "egress", "tax", "other"}
    assert kinds <= {row[0] for row in rows}
    team = next(row for row in rows if row[1] == "platform team")
    assert (team[2], team[4]) == ("30", "900–992")
    amounts = sum(float(row[5].replace(",", "")) for row in rows)
    assert amounts == pytest.approx(sum(line["amount"] for line in lines), abs=30)
    assert "Every kind of further cost is given" in section_.notes[1]
