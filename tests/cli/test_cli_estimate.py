import csv
import dataclasses
import io
import json

import pytest
from typer.testing import CliRunner

from catalog import load_catalog
from optimizer.cli import app
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.solve import solve
from tests.report.report_cases import SHORT, TINY

CATALOG = load_catalog()
TRAINING_RULE = """
name: Rule
workloads:
  - name: pretrain
    kind: training
    model: {architecture: {layers: 60, hidden: 6656, heads: 52, parameters: 33e9}}
    dataset: {size: 50 GB}
    deadline: 5 days
    estimate_by: rule-of-thumb
options:
  catalog: false
  quotes: [{name: node, gpu: A100-80GB-SXM, gpus_per_node: 8, purchase: on-demand, price: 10 USD/h}]
"""
MEASURED_BATCH = """
name: Batch
workloads: [{name: texts, kind: batch, tokens: 2e6, deadline: 10 h}]
measurements: [{workload: texts, gpu: RTX-4090, tokens_per_s: 25, gpus_per_replica: 1}]
options:
  catalog: false
  quotes: [{name: card, gpu: RTX-4090, purchase: on-demand, price: 0.5 USD/h}]
"""
SERVICE = """
name: Bot
workloads:
  - name: bot
    kind: service
    model: llama-2-70b
    weights: fp16
    traffic: {mean_requests_per_s: 2}
    tokens: {input: 300, output: 50}
options:
  catalog: false
  quotes:
    - {name: big, gpu: A100-80GB-SXM, gpus_per_node: 8, purchase: on-demand, price: 10 USD/h}
    - {name: small, gpu: RTX-4090, gpus_per_node: 1, purchase: on-demand, price: 0.5 USD/h}
"""


def estimate(text, tmp_path, *flags):
    path = tmp_path / "problem.yaml"
    path.write_text(text)
    done = CliRunner().invoke(app, ["estimate", str(path), *flags], prog_name="gpumix")
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_rule_of_thumb_shows_the_printed_figure(tmp_path):
    """The article's 4,352.64 A100 are shown, and 4,353 whole ones, with the derivation of the FLOP."""
    text = estimate(TRAINING_RULE, tmp_path)
    assert "4,353 (4,352.64)" in text
    assert "120 hours" in text
    assert "(parameters ÷ 175e9) · (GB ÷ 45) · 1.75e23 FLOP" in " ".join(text.split())


def test_batch_from_a_measured_rate(tmp_path):
    """2.22 cards by the measured rate are 3 whole ones, marked measured."""
    row = next(line for line in estimate(MEASURED_BATCH, tmp_path).splitlines() if line.startswith("RTX-4090"))
    assert "3 (2.222)" in row
    assert row.split()[-1] == "measured"


def test_counts_at_the_peak(tmp_path):
    """GPUs at the peak are rate ÷ rate of a replica, rounded up: 30/s over 2.5/s and 5/s."""
    document = json.loads(estimate(TINY, tmp_path, "-o", "json"))
    assert {e["gpu"]: e["gpus_at_peak"] for e in document["services"]} == {"A": 12, "B": 6}
    assert {e["gpu"]: e["gpus_at_peak"] for e in document["jobs"]} == {"A": 4, "B": 2}
    need = document["demands"][0]["classes"][0]
    assert need["peak_requests_per_s"] == pytest.approx(30)
    assert need["first_mean_requests_per_s"] == pytest.approx(10)


def test_estimated_service(tmp_path):
    """An estimate shows latencies, the bottleneck and a range; a GPU too small is rejected with both figures."""
    document = json.loads(estimate(SERVICE, tmp_path, "-o", "json"))
    found = document["services"][0]
    one = found["classes"][0]
    assert one["low"] < one["requests_per_s_per_replica"] < one["high"]
    assert one["ttft_ms"] > 0
    assert one["tpot_ms"] > 0
    assert one["bottleneck"] in ("compute", "memory_bandwidth", "interconnect", "overhead")
    assert found["free_memory_bytes"] > 0
    assert found["steps"]
    rejected = next(r for r in document["rejections"] if r["gpu"] == "RTX-4090")
    assert rejected["required"] > rejected["available"] > 0
    text = estimate(SERVICE, tmp_path)
    for words in ("TTFT", "TPOT", "Rejected", "RTX-4090", rejected["reason"].split()[0]):
        assert words in text


def test_all_deployments_with_v(tmp_path):
    """The table shows one deployment per GPU type and says how many more; -v shows all."""
    wide = SERVICE.replace("weights: fp16", "weights: [fp16, int8]")
    short, full = estimate(wide, tmp_path, "-o", "md"), estimate(wide, tmp_path, "-v", "-o", "md")
    count = len(json.loads(estimate(wide, tmp_path, "-o", "json"))["services"])
    assert count > 1
    assert [text.count("\n| A100-80GB-SXM") for text in (short, full)] == [1, count]
    assert f"{count - 1} more deployment" in short


def test_workload_that_nothing_can_run(tmp_path):
    """A workload without any yield says so."""
    assert "No GPU that the problem allows can run it" in estimate(SHORT, tmp_path)


@pytest.mark.parametrize(("form", "start"), [("yaml", "schema_version: 1"), ("md", "# Tiny")])
def test_forms_of_estimates(tmp_path, form, start):
    """YAML and Markdown begin as they do."""
    assert estimate(TINY, tmp_path, "-o", form).startswith(start)


def test_csv_of_estimates(tmp_path):
    """CSV has a line per workload, class, GPU and deployment, with yield and unit."""
    rows = list(csv.DictReader(io.StringIO(estimate(TINY, tmp_path, "-o", "csv"))))
    assert len(rows) == 4
    assert (rows[0]["yield"], rows[0]["unit"]) == ("2.5", "requests/s per replica")
    assert rows[2]["unit"] == "documents per GPU-hour"


def test_e22_all_entry_points_give_the_same_figures(tmp_path):
    """Command line, library and the plan that was solved: one rate, latency and range for every deployment."""
    shown = json.loads(estimate(SERVICE, tmp_path, "--output", "json"))
    problem = parse_problem(SERVICE, catalog=CATALOG).problem
    named = prepare(problem, CATALOG).estimates.services
    planned = solve(problem, CATALOG).document()["inputs"]["estimates"]["services"]
    assert json.dumps(planned) == json.dumps([dataclasses.asdict(one) for one in named])
    assert len(shown["services"]) == len(named) > 0
    for record, found in zip(shown["services"], named, strict=True):
        assert (record["gpu"], record["deployment"]) == (found.gpu_id, found.deployment.label)
        assert (record["low_factor"], record["high_factor"]) == (found.low_factor, found.high_factor)
        assert record["utilisation_cap"] == found.utilisation_cap
        for one, other in zip(record["classes"], found.classes, strict=True):
            assert one["requests_per_s_per_replica"] == 1 / other.replica_seconds_per_request
            assert (one["ttft_ms"], one["tpot_ms"]) == (other.ttft_ms, other.tpot_ms)


def test_stages_are_counted_beside_whole_deployments(tmp_path):
    """A stage alone is no answer: the table shows the best whole, prefill and decode deployment, and says so."""
    text = SERVICE.replace("weights: fp16", "weights: fp16\n    disaggregated: allowed")
    shown = estimate(text, tmp_path)
    assert "add up one of each" in shown
    records = json.loads(estimate(text, tmp_path, "--output", "json"))["services"]
    assert {record["stage"] for record in records} == {None, "prefill", "decode"}
    big = [record for record in records if record["gpu"] == "A100-80GB-SXM"]
    best = {stage: min(r["gpus_at_peak"] for r in big if r["stage"] == stage) for stage in (None, "prefill", "decode")}
    assert best["prefill"] + best["decode"] >= best[None] > 0
    assert "add up" not in estimate(SERVICE, tmp_path)
