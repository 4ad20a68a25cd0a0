import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from optimizer.audit import audit_plan
from optimizer.audit.calendar import clock_hours, monthly_payments, residual_share
from optimizer.audit.fitting import gpus_kept
from optimizer.cli import app
from optimizer.plan import read_plan
from tests.audit.plans import (
    ANALYTIC,
    APART,
    BURDENED,
    CATALOG,
    EVERYTHING,
    HELD,
    LIMITED,
    PROFILE,
    REDUNDANT,
    document,
    solved,
)
from tests.model.builders import owned, planned, problem, serves, service

ROOT = Path(__file__).parents[2]
PEAKED = PROFILE.replace("profile: office-hours", "profile: office-hours, peak_to_mean: 2.5")
FORBIDDEN = ("optimizer.model", "optimizer.solver", "optimizer.solve", "optimizer.prepare", "pulp", "highspy")


def checks_failed(plan):
    """Kinds of checks with an error."""
    return {finding.check for finding in audit_plan(plan, catalog=CATALOG).errors}


GOOD = (EVERYTHING, ANALYTIC, PROFILE, HELD, PEAKED, BURDENED, APART, REDUNDANT, LIMITED)


@pytest.mark.parametrize("text", GOOD, ids=lambda text: text.split()[1])
def test_a_good_plan_passes(text):
    """Everything holds in a plan as it was solved, and every kind of requirement was looked at."""
    report = audit_plan(document(text), catalog=CATALOG)
    assert report.findings == ()
    kinds = {"options", "estimates", "grid", "served", "replica_time", "GPUs in service", "ledger", "totals", "proof"}
    assert kinds <= report.checks.keys()


def test_too_few_spare_replicas_are_caught():
    """One replica less of any deployment with redundancy, its load moved or not, is a finding of the played loss."""
    plan = document(REDUNDANT)
    assert "spare capacity" in audit_plan(plan, catalog=CATALOG).checks
    for entry in plan["schedule"]["replicas"]:
        entry["replicas"] -= 1
    assert "spare capacity" in checks_failed(plan)


def test_the_plans_under_test_have_every_cost_term_and_way_of_paying():
    """Owned, reserved, on-demand and spot nodes, existing ones, jobs on free and on hired nodes, all terms."""
    plans = [document(text) for text in (EVERYTHING, HELD, PROFILE, ANALYTIC, BURDENED)]
    terms = {line["term"] for plan in plans for line in plan["cost_lines"]}
    assert terms == {
        "usage_fee", "holding_fee", "upfront_fee", "capex", "installation", "energy", "hosting", "maintenance",
        "salvage_value", "staff", "network", "support", "insurance", "storage", "egress", "tax", "other",
    }  # fmt: skip
    paid = {entry["purchase_option"] for plan in plans for key in ("acquisitions", "rentals") for entry in plan[key]}
    assert paid == {"owned", "reserved", "on-demand", "spot"}
    work = [entry for plan in plans for entry in plan["schedule"]["work"]]
    assert any(entry["gpus_on_free"] for entry in work)
    assert any(entry["gpus_on_hired"] for entry in work)
    periods = {line["period"] for line in document(HELD)["cost_lines"]}
    assert max(periods) == 3, "a term runs past the horizon"


def test_the_audit_imports_nothing_of_model_and_solver():
    """The audit is a second implementation: no import of what it checks stands in its code."""
    files = list((ROOT / "optimizer" / "audit").glob("*.py"))
    assert len(files) > 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                wrong = [bad for bad in FORBIDDEN if name == bad or name.startswith(f"{bad}.")]
                assert not wrong, f"{file.name} imports {name}"


def test_an_audit_loads_nothing_of_model_and_solver(tmp_path):
    """Not even by way of others: after an audit neither solver nor model-building code is in memory."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document(HELD)), encoding="utf-8")
    code = (
        "import sys\nfrom pathlib import Path\nfrom optimizer.audit import audit_plan\n"
        "from optimizer.plan import read_plan\n"
        f"assert audit_plan(read_plan(Path({str(file)!r}))).ok\n"
        f"print([name for name in {FORBIDDEN!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- what a plan may not do -------------------------------------------------------------------------------------------


def edit_limits(**limits):
    def edit(plan):
        plan["inputs"]["problem"]["limits"] |= limits

    return edit


def fewer_nodes(plan):
    plan["acquisitions"][0]["nodes"] -= 1


def one_replica_less(plan):
    most = max(plan["schedule"]["replicas"], key=lambda entry: entry["replicas"])
    most["replicas"] -= 1


def served_less(plan):
    plan["schedule"]["served"][0]["requests_per_s"] *= 0.9


def work_before_its_window(plan):
    work = next(entry for entry in plan["schedule"]["work"] if entry["job"] == "finetune")
    work["block"] = 0


def work_left_undone(plan):
    for key in ("amount", "gpus_on_free", "gpus_on_hired"):
        plan["schedule"]["work"][0][key] *= 0.5


def arrival_before_delivery(plan):
    plan["acquisitions"][0]["start_month"] = plan["acquisitions"][0]["order_month"]


def order_between_periods(plan):
    plan["acquisitions"][0]["order_month"] += 1.5


def data_in_a_barred_region(plan):
    for workload in plan["inputs"]["problem"]["workloads"]:
        if workload["name"] == "search":
            workload["data"]["regions"] = ["us-*"]


def a_mix_of_gpu_types(plan):
    job = next(entry for entry in plan["schedule"]["work"] if entry["job"] == "finetune")
    other = next(n for n, e in enumerate(plan["inputs"]["estimates"]["jobs"]) if e["gpu_id"] != "A")
    plan["schedule"]["work"].append({**job, "option": "b-spot", "estimate": other, "alternative": "B TP1"})


def cheaper_on_paper(plan):
    plan["cost_lines"].remove(max(plan["cost_lines"], key=lambda line: line["npv"]))


def a_bound_above_the_cost(plan):
    plan["cost"]["bound"] = plan["cost"]["npv"] * 1.01


def another_catalog_file(plan):
    plan["inputs"]["sources"]["catalog/gpus.csv"] = "0" * 64


BREACHES = [
    (edit_limits(capex=100.0), "budget"),
    (edit_limits(opex=100.0), "budget"),
    (edit_limits(npv=100.0), "budget"),
    (edit_limits(spot_share={"chat": 0.01}), "spot share"),
    (edit_limits(providers={"Q": {"max_nodes": 3}}), "provider limit"),
    (edit_limits(gpus={"B": 3}), "GPU limit"),
    (edit_limits(stock={"b-cloud": 1}), "options"),
    (lambda plan: plan["inputs"]["problem"]["site"].update(power_limit_it=1.0), "site power"),
    (fewer_nodes, "GPUs in service"),
    (one_replica_less, "replica_time"),
    (served_less, "served"),
    (work_before_its_window, "window"),
    (work_left_undone, "work"),
    (arrival_before_delivery, "lead time"),
    (order_between_periods, "orders"),
    (data_in_a_barred_region, "data residency"),
    (a_mix_of_gpu_types, "one way"),
    (cheaper_on_paper, "ledger"),
    (a_bound_above_the_cost, "proof"),
    (another_catalog_file, "sources"),
]


@pytest.mark.parametrize(("edit", "check"), BREACHES, ids=[getattr(e, "__name__", "") + c for e, c in BREACHES])
def test_a_breach_is_named_by_its_kind(edit, check):
    """A requirement that does not hold is a finding of its own kind."""
    plan = document(EVERYTHING)
    edit(plan)
    assert check in checks_failed(plan)


def test_a_minimum_order_must_be_kept():
    """One node of an offer that is sold by two is a finding."""
    plan = document(HELD)
    order = next(entry for entry in plan["acquisitions"] if entry["option"] == "eight")
    order["nodes"] = order["gpus"] = 1
    assert "minimum order" in checks_failed(plan)


def test_an_optimal_plan_keeps_the_gap_asked():
    """Optimal is what is proven within the gap asked."""
    plan = document(HELD)
    plan["cost"]["bound"], plan["cost"]["gap"] = plan["cost"]["npv"] * 0.9, 0.1
    assert checks_failed(plan) == {"proof"}
    plan["status"] = "feasible"
    assert checks_failed(plan) == set()


def test_another_catalog_version_is_a_notice():
    """A plan made with another catalog is checked without its rows, and the report says so."""
    plan = document(ANALYTIC)
    plan["catalog_version"] = "1999-01-01+00000000"
    report = audit_plan(plan, catalog=CATALOG)
    assert report.ok
    assert [finding.check for finding in report.findings] == ["estimates"]
    assert report.findings[0].severity == "notice"


def test_an_infeasible_problem_has_no_plan_to_audit():
    """Without a plan the audit says so and fails; the shortfall stated must be what its figures leave."""
    plan = solved(HELD + "limits: {npv: 100 USD}\n")
    assert plan["status"] == "infeasible"
    assert checks_failed(plan) == {"plan"}
    plan["infeasibility"][0]["short_by"] *= 1.1
    assert checks_failed(plan) == {"plan", "infeasibility"}


# --- conventions ------------------------------------------------------------------------------------------------------


def test_months_are_paid_at_their_end_and_the_fraction_before_the_horizon_at_its_end():
    """Running costs of month m are paid at m+1; a fraction of a month before the horizon or the end at that end."""
    assert list(monthly_payments(0.5, 2.5, 2.5)) == [(0.5, 1.0), (1.0, 2.0), (0.5, 2.5)]
    assert list(monthly_payments(2.0, 4.5, 2.5)) == [(0.5, 2.5), (0.5, 3.0), (1.0, 4.0), (0.5, 4.5)]


def test_residual_value_by_age():
    """Full before arrival, linear between points, constant to the useful life, nothing after it."""
    points = [(0.0, 1.0), (12.0, 0.6), (36.0, 0.2)]
    ages = (-1.0, 0.0, 6.0, 24.0, 40.0, 60.0, 60.1)
    assert [residual_share(age, points, 60.0) for age in ages] == pytest.approx([1, 1, 0.8, 0.4, 0.2, 0.2, 0])


def test_replicas_keep_whole_shares_of_nodes():
    """A node of 8 holds two replicas of 3 GPUs; one of 12 fills two nodes."""
    assert [gpus_kept(g, 8) for g in (1, 3, 4, 5, 8, 12)] == [1, 4, 4, 8, 8, 16]


def test_daily_windows_by_the_clock():
    """A window may pass midnight; equal ends are the whole day."""
    assert clock_hours("22:00-06:00") == {22, 23, 0, 1, 2, 3, 4, 5}
    assert clock_hours("06:00-06:00") == set(range(24))


# --- the verb ---------------------------------------------------------------------------------------------------------


def run(*arguments, **settings):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)], prog_name="gpumix", **settings)


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document(HELD)), encoding="utf-8")
    return path


def test_the_verb_says_that_everything_holds(plan_file, tmp_path):
    """Exit code 0, the verdict, the number of checks by kind; with the problem file too."""
    problem = tmp_path / "held.yaml"
    problem.write_text(HELD, encoding="utf-8")
    result = run(plan_file, "--problem", problem)
    assert result.exit_code == 0
    assert "everything holds" in result.stdout
    assert "ledger" in result.stdout


def test_the_verb_fails_with_what_does_not_hold(plan_file):
    """Exit code 1; JSON holds the verdict, the tolerance, and findings with what was expected and found."""
    plan = read_plan(plan_file)
    plan["cost"]["npv"] += 100
    plan_file.write_text(json.dumps(plan), encoding="utf-8")
    result = run(plan_file, "-o", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["ok"] is False
    assert report["tolerance"] == 1e-6
    finding = next(one for one in report["findings"] if one["where"] == "cost.npv")
    assert finding["found"] - finding["expected"] == pytest.approx(100)
    assert "finding" in run(plan_file).stdout


def test_another_problem_file_is_a_finding(plan_file, tmp_path):
    """A problem file that says something else than the embedded problem fails the audit."""
    problem = tmp_path / "other.yaml"
    problem.write_text(HELD.replace("mean_requests_per_s: 30", "mean_requests_per_s: 31"), encoding="utf-8")
    result = run(plan_file, "--problem", problem, "-o", "csv")
    assert result.exit_code == 1
    assert "traffic.mean_requests_per_s,31.0,30.0" in result.stdout


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"schema_version": 99}', "\0"])
def test_what_is_no_plan_file_is_bad_input(content, tmp_path):
    """Exit code 2 with the file's name, no traceback."""
    path = tmp_path / "broken.json"
    path.write_text(content, encoding="utf-8")
    result = run(path)
    assert result.exit_code == 2
    assert "broken.json" in result.stderr
    assert run(tmp_path / "missing.json").exit_code == 2


def test_a_plan_file_of_this_version_without_content_fails():
    """What has the version and nothing else is a finding for everything that is missing, not a crash."""
    report = audit_plan({"schema_version": 1})
    assert not report.ok
    assert {"inputs", "grid"} <= {finding.where for finding in report.findings}


def test_outputs_done_elsewhere_than_their_prompts_are_caught():
    """What a decode stage answers must come from prefill stages of its own provider and region, and no more of it."""
    plan = document(APART)
    stages = [estimate["deployment"]["stage"] for estimate in plan["inputs"]["estimates"]["services"]]
    decoded = [entry for entry in plan["schedule"]["served"] if stages[entry["estimate"]] == "decode"]
    prefilled = [entry for entry in plan["schedule"]["served"] if stages[entry["estimate"]] == "prefill"]
    assert decoded
    assert prefilled
    for entry in (decoded[0], prefilled[0]):
        kept = entry["requests_per_s"]
        entry["requests_per_s"] = 0.9 * kept
        assert "handover" in checks_failed(plan)
        entry["requests_per_s"] = kept
    assert "served" not in checks_failed(plan)


def test_a_plan_from_before_further_costs_is_read_and_audited():
    """Lines without group and name are those of an older file."""
    plan = document(EVERYTHING)
    for line in plan["cost_lines"]:
        del line["group"], line["name"]
    assert plan["inputs"]["problem"].pop("costs") == []
    assert audit_plan(plan, catalog=CATALOG).findings == ()


def test_a_budget_of_net_cost_is_near_its_limit_by_its_own_size() -> None:
    """A node of 1,000,000 sold for nearly all of it: its net cost is what a budget passed by 2 in a million is near."""
    node = owned("own", price=1_000_000.0, residual=0.999)
    data = problem([service()], [node], [serves()], months=1)
    plan = planned(data)
    assert plan.cost is not None
    limited = planned(data | {"limits": {"npv": plan.cost.npv * (1 + 2e-6)}})
    (row,) = [row for row in limited.constraints if row.family == "budget_npv"]
    assert not row.binding
