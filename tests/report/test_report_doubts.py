"""What a buyer is warned of on the page of a plan: prices to look at twice, GPUs that idle, figures not to be added."""

import datetime
import json

import pytest

from catalog import load_catalog
from catalog.plausibility import offers_worth_a_look
from optimizer.problem.load import parse_problem
from optimizer.report.plan import plan_sections
from optimizer.report.sections import markdown
from optimizer.solve import solve
from tests.report.report_cases import TINY

CATALOG = load_catalog()


def page(document):
    return markdown(plan_sections(json.loads(json.dumps(document))))


def test_only_offers_asked_for_are_looked_at():
    """Findings carry the ids of the offers, and those of others are not given."""
    today = datetime.date(2026, 12, 1)
    every = [offer.offer_id for offer in CATALOG.offers()]
    found = offers_worth_a_look(CATALOG, every, today)
    assert found
    name, doubt = found[0]
    assert next(finding for _, finding in offers_worth_a_look(CATALOG, [name], today)) == doubt
    assert {one for one, _ in offers_worth_a_look(CATALOG, [name], today)} == {name}
    assert offers_worth_a_look(CATALOG, ["own A"], today) == []
    far = offers_worth_a_look(CATALOG, every, today + datetime.timedelta(days=2000))
    assert {finding.code for _, finding in far} >= {"stale", "undated"}


def test_a_doubtful_price_in_the_plan_is_told():
    """A plan on an undated offer of the catalog says so on its page and in its notes."""
    undated = next(o for o in CATALOG.offers() if o.ref.date is None and o.purchase_option == "on-demand")
    text = f"""
name: doubtful
horizon: {{months: 1, periods: once}}
workloads: [{{name: chat, kind: service, traffic: {{mean_requests_per_s: 1}}}}]
measurements: [{{workload: chat, gpu: {undated.gpu_id}, requests_per_s: 10, gpus_per_replica: 1}}]
options: {{gpus: [{undated.gpu_id}], providers: {{allow: [{undated.provider}]}}, purchase: [on-demand]}}
"""
    document = solve(parse_problem(text, "doubtful", catalog=CATALOG).problem, CATALOG).document()
    used = {rental["option"] for rental in document["rentals"]}
    told = [note for note in document["notes"] if "date unknown" in note]
    assert told
    assert all(any(f"price of {name}: " in note for name in used) for note in document["notes"])
    assert f"Look twice: {told[0]}." in page(document)


def test_quotes_raise_no_doubts():
    """The buyer's own quotes are not the catalog's business."""
    assert solve(parse_problem(TINY, "tiny", catalog=CATALOG).problem, CATALOG).notes == ()


CLASSES = """
name: classes
horizon: {months: 1, periods: once}
workloads:
  - name: chat
    kind: service
    traffic: {mean_requests_per_s: 1}
gpus: {A: {}}
measurements: [{workload: chat, gpu: A, requests_per_s: 10, gpus_per_replica: 1}]
options:
  catalog: false
  quotes: [{name: rent A, gpu: A, gpus_per_node: 8, purchase: on-demand, price: 8 USD/h}]
"""


def test_gpus_that_are_paid_and_idle_are_mentioned():
    """One replica on a node of eight: seven idle at the peak."""
    document = solve(parse_problem(CLASSES, "classes", catalog=CATALOG).problem, CATALOG).document()
    assert "rent A: 8 GPUs paid for, at least 7 of them idle even at the peak." in page(document)
    full = CLASSES.replace("gpus_per_node: 8", "gpus_per_node: 1")
    document = solve(parse_problem(full, "classes", catalog=CATALOG).problem, CATALOG).document()
    assert "idle even at the peak" not in page(document)


@pytest.mark.parametrize("classes", [1, 2])
def test_lines_that_share_gpus_are_not_added_up(classes):
    """Two classes on the same replicas show the same GPUs twice: the note says so."""
    document = solve(parse_problem(CLASSES, "classes", catalog=CATALOG).problem, CATALOG).document()
    line = document["assignments"][0]
    document["assignments"] = [{**line, "class": f"class {i}"} for i in range(classes)]
    text = page(document)
    assert ("share its GPUs: theirs are not to be added up" in text) == (classes == 2)
    assert "at least 7 of them idle" in text
