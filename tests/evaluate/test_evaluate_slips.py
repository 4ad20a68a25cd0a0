"""Tables as people write them: other separators and capitals, nameless rows, units a thousand times off."""

from pathlib import Path

import pytest

from catalog import load_catalog
from optimizer.errors import ProblemFileError
from optimizer.evaluate import training
from optimizer.evaluate.document import evaluation_document
from optimizer.evaluate.rows import MeasuredRow
from optimizer.evaluate.run import Evaluation, evaluate_file, evaluate_rows

CATALOG = load_catalog()
MEMORY = {
    "id": "a", "kind": "mem_full", "model": "Llama-3.1-8B", "method": "full", "weights": "bf16", "seq_len": "2048",
    "micro_batch": "1", "gpu": "A100-SXM-80GB", "n_gpus": "1", "mem_per_gpu": "60", "unit": "GB", "scope": "peak",
    "measured": "measured",
}  # fmt: skip
TRAINING = {
    "id": "a", "kind": "qlora", "record": "real_run", "model": "Llama-3.1-8B", "gpu": "H100-SXM-80GB",
    "n_gpus": "8", "precision": "int4+bf16", "seq_len": "8192", "micro_batch": "1", "act_ckpt": "none",
    "tok_s_gpu": "7000", "eval_use": "yes",
}  # fmt: skip
INFERENCE = {
    "id": "a", "kind": "serve", "model": "Llama-3.1-8B", "gpu": "H100-SXM-80GB", "tp": "1", "weight_precision": "fp16",
    "input_len": "1000", "output_len": "200", "concurrency": "16", "out_tps_replica": "1500", "ttft_ms": "90",
    "tpot_ms": "10", "quality": "ok",
}  # fmt: skip
TABLES = {"memory": MEMORY, "training": TRAINING, "inference": INFERENCE}


def outcome(table, **cells: str) -> Evaluation:
    return evaluate_rows(table, [MeasuredRow(2, TABLES[table] | cells)], CATALOG)


@pytest.mark.parametrize(
    ("kind", "column", "unlike"),
    [
        ("training", "kind", "sft_full"),
        ("training", "record", "benchmark"),
        ("training", "act_ckpt", "full"),
        ("training", "eval_use", "no"),
        ("memory", "measured", "estimated"),
        ("memory", "method", "lora"),
        ("inference", "quality", "suspect"),
        ("inference", "kind", "static"),
    ],
)
def test_capitals_change_nothing(kind, column, unlike):
    """A word means the same in capitals; another word would have given another outcome."""

    def told(word: str) -> list[tuple[float, bool]]:
        return [(p.predicted, p.scored) for p in outcome(kind, **{column: word}).predictions]

    small = TABLES[kind][column]
    assert told(small.upper()) == told(small) != told(unlike)


@pytest.mark.parametrize(
    ("kind", "method"), [("QLoRA", "qlora"), ("sft_lora", "lora"), ("q-lora", "qlora"), ("dpo", "full")]
)
def test_the_method_is_told_by_a_word_in_the_kind(kind, method):
    """A row of adapters is never predicted as training of all weights because its kind has a longer name."""
    (model, gpu) = (training.measured_model(TRAINING, CATALOG), CATALOG.gpu("H100-80GB-SXM"))
    assert training.plan_of(TRAINING | {"kind": kind}, model, gpu).method == method


def test_four_bit_weights_are_trained_over_in_sixteen():
    """QLoRA's precision by the name of its frozen weights is the same run; all weights cannot be trained in nf4."""
    (as_stored,) = outcome("training", precision="nf4").predictions
    (as_computed,) = outcome("training", precision="int4+bf16").predictions
    assert as_stored.predicted == as_computed.predicted
    assert outcome("training", precision="nf4", kind="sft_full").not_predicted


@pytest.mark.parametrize(
    ("kind", "cells", "words"),
    [
        ("training", {"params_total": "8.03"}, "params_total: found '8.03', write the count"),
        ("training", {"params_active": "8"}, "params_active: found '8', write the count"),
        ("memory", {"params_total": "8.03"}, "write the count"),
        ("inference", {"params_total_b": "8.03e9"}, "params_total_b: found '8.03e9', write billions"),
        ("inference", {"params_active_b": "8.03e9"}, "write billions"),
    ],
)
def test_parameters_in_the_wrong_unit_are_refused(kind, cells, words):
    """A count where billions are asked, or the reverse, would pass for a model a billion times off."""
    found = outcome(kind, **cells)
    assert found.unreadable == 1
    assert words in found.not_predicted[0].reason


@pytest.mark.parametrize(("measured", "told"), [("0.09", True), ("90", False), ("900", False)])
def test_a_time_in_seconds_is_pointed_out(measured, told):
    """90 ms written as 0.09 is a thousand times off: the notes name row and target; ten times off is an error only."""
    notes = evaluation_document(outcome("inference", ttft_ms=measured))["notes"]
    assert [("a (ttft_ms)" in note) for note in notes] == ([True] if told else [])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_table_as_a_spreadsheet_saves_it(tmp_path: Path, separator, encoding):
    """Commas, semicolons or tabs, UTF-8 or UTF-16: the same row, named by its line if it has no id."""
    file = tmp_path / "table.csv"
    cells = TRAINING | {"id": ""}
    file.write_text(separator.join(cells) + "\n" + separator.join(cells.values()) + "\n", encoding=encoding)
    (found,) = evaluate_file("training", str(file), CATALOG).predictions
    (expected,) = outcome("training").predictions
    assert (found.id, found.predicted) == ("line 2", expected.predicted)


def test_none_is_said_of_what_a_run_does_not_do(tmp_path: Path):
    """`none` under act_ckpt: adapters that do not recompute, unlike those that say nothing; elsewhere it is empty."""
    file = tmp_path / "table.csv"
    rows = [TRAINING | {"act_ckpt": said, "tp": "None"} for said in ("none", "None", "", "full")]
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    none, capital, empty, full = (p.predicted for p in evaluate_file("training", str(file), CATALOG).predictions)
    assert none == capital > empty == full


def test_a_table_cut_off_is_refused_by_its_encoding(tmp_path: Path):
    """Half a character of UTF-16 is named as such."""
    file = tmp_path / "table.csv"
    file.write_bytes("id,kind\na,b\n".encode("utf-16")[:-1])
    with pytest.raises(ProblemFileError, match="UTF-16"):
        evaluate_file("training", str(file), CATALOG)
