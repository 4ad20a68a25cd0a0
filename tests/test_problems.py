"""Every shipped problem: it solves, its cost is the recorded one, and the audit finds nothing.

python tests/test_problems.py --record      writes tests/problem_costs.json anew
"""

import json
import sys
from pathlib import Path

import pytest

from catalog import load_catalog
from optimizer.audit import audit_plan
from optimizer.plan import Plan
from optimizer.problem.load import load_problem
from optimizer.problem.names import canonical_names
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings

ROOT = Path(__file__).parent.parent
RECORDED = Path(__file__).parent / "problem_costs.json"
Costs = dict[str, dict[str, float | str | None]]
FILES = sorted((ROOT / "problems").glob("*.yaml"))


def answer(path: Path) -> Plan:
    catalog = load_catalog()
    loaded = load_problem(path)
    problem = canonical_names(loaded.problem, catalog)
    return solve(problem, catalog, SolverSettings(gap=0))


@pytest.fixture(scope="module")
def recorded() -> Costs:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_problem_has_its_recorded_cost(path: Path, recorded: Costs) -> None:
    """Least cost at gap 0, status, and an audit without findings."""
    plan = answer(path)
    expected = recorded[path.stem]
    assert plan.status == expected["status"]
    if plan.cost is not None:
        assert plan.cost.npv == pytest.approx(expected["npv"], rel=1e-6)
        assert plan.cost.bound <= plan.cost.npv * (1 + 1e-9)
        report = audit_plan(plan.document())
        assert report.ok, report.findings[:3]


def test_there_are_at_least_ten_problems_and_each_is_recorded(
    recorded: Costs,
) -> None:
    """The records and the files belong together."""
    assert len(FILES) >= 10
    assert set(recorded) == {path.stem for path in FILES}


def plan_of(name: str) -> Plan:
    return answer(ROOT / "problems" / f"{name}.yaml")


def test_article_2_rule_of_thumb_gives_4352_64_cards() -> None:
    """The rule's own arithmetic; the article's printed 4.25 is this divided by 1024."""
    (assignment,) = plan_of("article-2-training-rule").assignments
    hours = sum(rental.gpu_hours for rental in plan_of("article-2-training-rule").rentals)
    assert hours / 120 == pytest.approx(4352.64, abs=0.01)
    assert assignment.gpu == "A100-80GB-SXM"


def test_article_2_by_the_default_method_takes_35_to_60_cards() -> None:
    """The same job by 6·N·D, dense BF16 peak and a reachable utilisation, its bytes per token among the assumptions."""
    plan = plan_of("article-2-training")
    hours = sum(rental.gpu_hours for rental in plan.rentals)
    assert 35 <= hours / 120 <= 60
    assert any("bytes" in f"{a.name} {a.unit}" and a.value == 4.3 for a in plan.assumptions)


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("article-3-inference-rule", 2),
        ("article-4-batch", 3),
        ("article-7-shop-bot", 12),
        ("article-7-shop-bot-headroom", 16),
    ],
)
def test_article_counts_of_cards(name: str, cards: int) -> None:
    """§3: 100,000 requests/s at 72,132 each; §4: 2.22 → 3; §7: 11.57 → 12, and 16 with a third of headroom."""
    assert sum(plan_of(name).gpus.values()) == cards


def test_article_5_one_24_gb_card_cannot_hold_70b_in_four_bits() -> None:
    """The rejection says what was required and what was there."""
    plan = plan_of("article-5-quantised-70b")
    found = [r for r in plan.rejections if r["gpu"] == "RTX-4090" and r["resource"] == "memory"]
    assert any(r["required"] > r["available"] for r in found)


def test_the_nightly_batch_fills_what_the_services_leave_idle() -> None:
    """On the platform the summaries run on nodes that are paid anyway."""
    plan = plan_of("platform")
    work = [w for w in plan.schedule["work"] if w["job"] == "summaries"]
    assert sum(w["gpus_on_free"] for w in work) > sum(w["gpus_on_hired"] for w in work)


def record() -> None:
    """Write the costs of all shipped problems."""
    found = {}
    for path in FILES:
        plan = answer(path)
        found[path.stem] = {"status": plan.status, "npv": plan.cost.npv if plan.cost else None}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__" and "--record" in sys.argv:
    record()
