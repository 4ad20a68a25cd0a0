import csv
import io
import json

import pytest
from typer.testing import CliRunner

from optimizer.cli import app

HEADER = (
    "id,kind,model,gpu,tp,weight_precision,input_len,output_len,concurrency,engine,out_tps_replica,tpot_ms,ttft_ms,"
    "source\n"
)
ROW = "a,serve,Llama-3.1-8B,H100-SXM-80GB,1,bf16,1000,200,32,vLLM,2000,12,100,some/repo@1 file\n"
STATIC = "b,static,Llama-2-7B,A100-SXM-80GB,1,fp16,128,128,8,LMDeploy TurboMind,700,,,other/repo@2\n"


def evaluate(tmp_path, content, *options):
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="utf-8")
    return CliRunner().invoke(app, ["evaluate", "inference", str(path), *options], prog_name="gpumix")


def test_json_has_the_contracts_keys(tmp_path):
    """Rows, summaries by every grouping, what was not predicted, and the share of measurements in range."""
    unknown = ROW.replace("a,", "c,", 1).replace("H100-SXM-80GB", "H1000")
    done = evaluate(tmp_path, HEADER + ROW + STATIC + unknown, "-o", "json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert {"rows", "summary", "not_predicted", "range_coverage"} <= set(document)
    assert set(document["summary"]) == {"all", "by_target", "by_gpu", "by_kind", "by_model", "by_source"}
    assert [missing["id"] for missing in document["not_predicted"]] == ["c"]
    assert {record["target"] for record in document["rows"]} == {"out_tps", "tpot_ms", "ttft_ms"}
    for record in document["rows"]:
        assert record["error"] == pytest.approx(record["predicted"] / record["measured"] - 1)
    whole = document["summary"]["all"]
    assert {"n", "median_abs_pct", "p90_abs_pct", "bias_pct", "worst"} <= set(whole)
    assert whole["n"] == len(document["rows"]) == 4
    assert set(document["summary"]["by_source"]) == {"some/repo@1", "other/repo@2"}


def test_table_csv_and_markdown(tmp_path):
    """The table shows the errors by group, CSV a line per prediction."""
    text = evaluate(tmp_path, HEADER + ROW).stdout
    for words in ("Scored rows by target", "median error (%)", "tpot_ms", "H100-80GB-SXM"):
        assert words in text
    lines = list(csv.DictReader(io.StringIO(evaluate(tmp_path, HEADER + ROW, "-o", "csv").stdout)))
    assert [line["target"] for line in lines] == ["out_tps", "tpot_ms", "ttft_ms"]
    assert evaluate(tmp_path, HEADER + ROW, "-o", "md").stdout.startswith("# Estimator against measurements")


def test_unreadable_rows_give_exit_code_1(tmp_path):
    """Sound rows are still predicted, the others listed with line, column and what to write."""
    done = evaluate(tmp_path, HEADER + ROW + STATIC.replace(",1,fp16", ",one,fp16"), "-o", "json")
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert document["not_predicted"] == [{"id": "b", "reason": "line 3, column tp: found 'one', write a number"}]
    assert len(document["rows"]) == 3
    assert "1 of 2 rows cannot be read" in done.stderr


def test_a_file_without_its_columns_is_bad_input(tmp_path):
    """Missing columns are named, exit code 2."""
    done = evaluate(tmp_path, "id,gpu\na,L4\n")
    assert done.exit_code == 2
    assert "no column 'kind'" in done.stderr
    assert "Traceback" not in done.stderr


def test_standard_input(tmp_path):
    """`-` reads the table from standard input."""
    done = CliRunner().invoke(app, ["evaluate", "inference", "-", "-o", "json"], input=HEADER + ROW, prog_name="gpumix")
    assert json.loads(done.stdout)["counts"]["rows"] == 1
