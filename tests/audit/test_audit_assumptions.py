import pytest

from optimizer.audit import audit_plan
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.problem.names import canonical_names
from tests.audit.plans import CATALOG, document

TEXT = """\
name: defaults
workloads:
  - {name: chat, kind: service, model: llama-2-7b, traffic: {requests_per_day: 1000}, tokens: {input: 9, output: 9}}
options:
  gpus: [A100-80GB-SXM]
  quotes:
    - {name: hgx, gpu: A100-80GB-SXM, gpus_per_node: 8, purchase: owned, price: 120_000 USD}
    - {name: rent, gpu: A100-80GB-SXM, purchase: reserved, term: 12 months, price: 1.1 USD/h, lead_time: 0 months}
    - {name: low, gpu: A100-80GB-SXM, purchase: spot, price: 0.4 USD/h, max_nodes: 3}
    - {name: counted, gpu: A100-80GB-SXM, purchase: spot, price: 0.6 USD/h, max_nodes: 3, interruptions_per_hour: 0.01}
  existing:
    - {gpu: A100-80GB-SXM, nodes: 1, residual: 5 %, maintenance: 2 %/year, availability: 99 %}
    - {gpu: A100-80GB-SXM, nodes: 1}
"""
LISTED = {
    "worth of hgx at the end of its life": (0.1, "default"),
    "maintenance of hgx": (0.0, "default"),
    "lead time of hgx": (0.0, "default"),
    "availability of hgx": (1.0, "default"),
    "lead time of rent": (0.0, "user"),
    "availability of rent": (1.0, "default"),
    "interruptions of low": (0.0, "default"),
    "interruptions of the catalog's spot offers": (0.0, "default"),
    "worth of existing-2-A100-80GB-SXM at the end of its life": (0.1, "default"),
    "useful life of existing-1-A100-80GB-SXM": (60.0, "default"),
}
NOT_LISTED = (
    "interruptions of counted",
    "maintenance of rent",
    "lead time of low",
    "availability of low",
    "availability of existing-1-A100-80GB-SXM",
    "worth of existing-1-A100-80GB-SXM at the end of its life",
)


@pytest.fixture(scope="module")
def assumptions():
    problem = canonical_names(parse_problem(TEXT).problem, CATALOG)
    return {one.name: one for one in prepare(problem, CATALOG).assumptions}


def test_every_default_of_an_offer_is_an_assumption(assumptions):
    """What an offer leaves open is listed once, as the buyer's word where he wrote it; what does not apply is not."""
    for name, expected in LISTED.items():
        assert (assumptions[name].value, assumptions[name].kind) == expected, name
    assert not set(NOT_LISTED) & assumptions.keys()


def test_a_default_is_not_said_to_be_of_the_problem_file(assumptions):
    """Kind and source agree: what nobody wrote has the source default."""
    assert assumptions["chat: KV cache"].source == "default"
    wrong = [one for one in assumptions.values() if one.kind == "default" and one.source == "problem file"]
    assert wrong == []
    spot = "default: spot capacity is planned as if never taken back"
    assert assumptions["interruptions of low"].source == spot


def test_the_audit_lists_the_same_defaults():
    """The audit works the list out for itself: nothing is missing in the plan, nothing in it is made up."""
    assert audit_plan(document(TEXT), catalog=CATALOG).errors == ()
