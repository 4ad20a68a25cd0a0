"""Catalogs and price files of the buyer's own, from the command line: their days, and GPUs that only they know."""

import json
from datetime import date

import pytest
from typer.testing import CliRunner

from catalog import CatalogFileError, load_catalog
from optimizer.cli import app
from optimizer.prepare import prepare
from optimizer.problem.load import load_problem

HEADER = (
    "offer_id,provider,region,instance_type,gpu_id,gpus_per_node,purchase_option,term_months,price_usd_per_node_hour,"
    "upfront_usd_per_node,billing_step,vcpus,ram_gib,confidence,source,priced_on,notes"
)
PROBLEM = """
name: own
horizon: {{months: 1, periods: once}}
workloads: [{{name: chat, kind: service, traffic: {{mean_requests_per_s: 1}}}}]
{own}
measurements: [{{workload: chat, gpu: {gpu}, requests_per_s: 10, gpus_per_replica: 1}}]
options: {{{options}}}
"""


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), prog_name="gpumix")


def problem(folder, gpu, options, own=""):
    path = folder / "p.yaml"
    path.write_text(PROBLEM.format(gpu=gpu, options=options, own=own), encoding="utf-8")
    return path


def offers(path, gpu, day="2026-11-01"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEADER}\nx,acme,r,n,{gpu},1,on-demand,,1,0,hour,,,read,a list,{day},\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("limit", ["", ", price_age_limit: 30 days"])
def test_a_catalog_with_a_day_to_come_is_refused(tmp_path, limit):
    """Such a price would pass every limit on age: an error with file, line and column, as for price files."""
    offers(tmp_path / "own" / "offers" / "acme.csv", "L4", "2099-11-01")
    done = run("solve", problem(tmp_path, "L4", f"gpus: [L4]{limit}"), "--catalog", tmp_path / "own")
    assert done.exit_code == 2
    assert "acme.csv:2, column priced_on: 2099-11-01 is still to come" in done.stderr
    found = json.loads(run("catalog", "check", "--catalog", tmp_path / "own", "-o", "json").stdout)["findings"]
    assert [(f["severity"], f["code"]) for f in found if f["code"] == "future"] == [("error", "future")]


def test_a_price_file_may_name_gpus_that_the_problem_describes(tmp_path):
    """The names under `gpus:` are taken as they are; solve, audit and explain agree."""
    offers(tmp_path / "prices.csv", "A")
    for options in ("price_files: [prices.csv]", "gpus: [A], price_files: [prices.csv], catalog: false"):
        path = problem(tmp_path, "A", options, "gpus: {A: {}}")
        done = run("solve", path, "--plan", tmp_path / "plan.json", "-o", "json")
        assert json.loads(done.stdout)["cost"]["npv"] == pytest.approx(730)
        assert run("audit", tmp_path / "plan.json").exit_code == 0
        assert "A is in the plan" in run("explain", tmp_path / "plan.json", "A").stdout


def test_a_price_file_with_a_gpu_that_nobody_knows_is_refused(tmp_path):
    """Neither the catalog nor the problem has it."""
    offers(tmp_path / "prices.csv", "B")
    path = problem(tmp_path, "A", "price_files: [prices.csv]", "gpus: {A: {}}")
    done = run("solve", path)
    assert done.exit_code == 2
    assert 'prices.csv:2: unknown GPU id "B"' in done.stderr


def test_own_figures_of_a_gpu_keep_the_catalogs_offers(tmp_path):
    """A GPU described under its name in the catalog is rented at the catalog's prices, and the audit finds the rows."""
    path = problem(tmp_path, "RTX-4090", "gpus: [RTX-4090]", "gpus: {RTX-4090: {}}")
    done = run("solve", path, "--plan", tmp_path / "plan.json", "-o", "json")
    assert json.loads(done.stdout)["rentals"]
    assert run("audit", tmp_path / "plan.json").exit_code == 0


def test_a_gpu_of_ones_own_that_nothing_offers_is_said(tmp_path):
    """No error of the catalog's about an unknown name: the measurement is of no use, and that is said at its place."""
    done = run("solve", problem(tmp_path, "A", "gpus: [A]", "gpus: {A: {}}"))
    assert done.exit_code == 2
    assert "nothing offers A (add a quote for it)" in done.stderr


def test_a_slow_clock_does_not_stop_the_packaged_catalog(tmp_path):
    """Its newest prices may be of a day that a wrong clock has not reached; those of own offers beside it count."""
    offers(tmp_path / "own" / "offers" / "acme.csv", "L4", "2025-01-01")
    site = "site: {electricity: 0.1 USD/kWh}"
    loaded = load_problem(problem(tmp_path, "L4", "gpus: [L4]", site), load_catalog(tmp_path / "own"))
    early = date(2025, 2, 1)
    assert prepare(loaded.problem, load_catalog(), early).supply.options
    assert prepare(loaded.problem, load_catalog(tmp_path / "own"), early).supply.options
    with pytest.raises(CatalogFileError, match="2025-01-01 is still to come"):
        prepare(loaded.problem, load_catalog(tmp_path / "own"), date(2024, 12, 31))
