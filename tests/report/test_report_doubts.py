"""What a buyer is warned of on the page of a plan: prices to look at twice, GPUs that idle, figures not to be added."""

import datetime
import json
import pathlib

import pytest

from catalog import load_catalog
from catalog.doubts import prices_worth_a_look
from optimizer.problem.load import parse_problem
from optimizer.report.plan import plan_sections
from optimizer.report.sections import markdown
from optimizer.solve import solve
from tests.report.report_cases import TINY

CATALOG = load_catalog()
PACKAGED = pathlib.Path(__file__).parents[2] / "catalog"


def page(document):
    return markdown(plan_sections(json.loads(json.dumps(document))))


def test_only_offers_asked_for_are_looked_at():
    """Findings carry the ids of the offers, and those of others are not given."""
    today = datetime.date(2026, 12, 1)
    every = {offer.offer_id: offer.gpu_id for offer in CATALOG.offers()}
    found = prices_worth_a_look(CATALOG, every, today)
    assert found
    name, doubt = found[0]
    alone = prices_worth_a_look(CATALOG, {name: every[name]}, today)
    assert next(finding for _, finding in alone) == doubt
    assert {one for one, _ in alone} == {name}
    assert prices_worth_a_look(CATALOG, {"own A": "H100-80GB-SXM", "own B": "a GPU of one's own"}, today) == []
    far = prices_worth_a_look(CATALOG, every, today + datetime.timedelta(days=2000))
    assert {finding.code for _, finding in far} >= {"stale", "undated"}


HEADER = (
    "offer_id,provider,region,instance_type,gpu_id,gpus_per_node,purchase_option,term_months,price_usd_per_node_hour,"
    "upfront_usd_per_node,billing_step,vcpus,ram_gib,confidence,source,priced_on,notes"
)


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("reserved-dearer", ["x,acme,r,n,L4,1,reserved,12,1,0,hour,,,read,a list,2026-11-01,",
                             "y,acme,r,n,L4,1,on-demand,,0.8,0,hour,,,read,a list,2026-11-01,"]),
        ("spot-not-cheaper", ["x,acme,r,n,L4,1,spot,,0.9,0,hour,,,read,a list,2026-11-01,",
                              "y,acme,r,n,L4,1,on-demand,,0.8,0,hour,,,read,a list,2026-11-01,"]),
        ("count-of-node", ["x,aws,r,g6.48xlarge,L4,4,on-demand,,9,0,hour,,,read,a list,2026-11-01,"]),
        ("count-over-node", ["x,acme,r,n,L4,9,on-demand,,9,0,hour,,,read,a list,2026-11-01,"]),
        ("bigger-node-cheaper", ["x,acme,r,big,L4,8,on-demand,,4,0,hour,,,read,a list,2026-11-01,",
                                 "y,acme,r,small,L4,4,on-demand,,7,0,hour,,,read,a list,2026-11-01,"]),
        ("smaller-node-dearer", ["x,acme,r,small,L4,1,on-demand,,1,0,hour,,,read,a list,2026-11-01,",
                                 "y,acme,r,big,L4,2,on-demand,,1.2,0,hour,,,read,a list,2026-11-01,"]),
        ("tier-mix", ["y,acme,r,n,L4,1,on-demand,,0.8,0,hour,,,read,a list,2026-11-01,",
                      "x,acme,r,n,L4,1,on-demand,,0.9,0,hour,,,read,a list,2026-11-01,"]),
        ("price-not-scaled", ["x,acme,r,big,L4,8,on-demand,,0.8,0,hour,,,read,a list,2026-11-01,",
                              "y,acme,r,n,L4,1,on-demand,,0.8,0,hour,,,read,a list,2026-11-01,"]),
        ("low-price", ["x,acme,r,n,L4,1,on-demand,,0.01,0,hour,,,read,a list,2026-11-01,"]),
        ("stale", ["x,acme,r,n,L4,1,on-demand,,0.8,0,hour,,,read,a list,2025-11-01,"]),
    ],
)  # fmt: skip
def test_a_plan_shows_what_the_check_of_prices_finds(tmp_path, code, rows):
    """Each finding of `catalog check` about an offer is told of a plan that uses it."""
    path = tmp_path / "acme.csv"
    path.write_text("\n".join([HEADER, *rows]), encoding="utf-8")
    catalog = CATALOG.with_price_files({"acme.csv": path})
    found = prices_worth_a_look(catalog, {"x": "L4"}, datetime.date(2026, 12, 1))
    assert code in [finding.code for _, finding in found]


def test_a_doubtful_server_is_told(tmp_path):
    """A server at a fifth of the others' price per GPU is worth a look when a plan buys it."""
    for name in ("gpus.csv", "aliases.csv", "servers.csv"):
        (tmp_path / name).write_bytes((PACKAGED / name).read_bytes())
    text = (tmp_path / "servers.csv").read_text(encoding="utf-8")
    (tmp_path / "servers.csv").write_text(text.replace("l4-1x,L4,1,8500", "l4-1x,L4,1,500"), encoding="utf-8")
    found = prices_worth_a_look(load_catalog(tmp_path), {"l4-1x": "L4"}, datetime.date(2026, 12, 1))
    assert [(name, finding.code) for name, finding in found] == [("l4-1x", "low-price")]


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
    spare = CLASSES.replace("    kind: service\n", "    kind: service\n    redundancy: n+1\n")
    document = solve(parse_problem(spare, "classes", catalog=CATALOG).problem, CATALOG).document()
    assert "idle even at the peak, spares for a loss of nodes among them." in page(document)
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
