import csv
import dataclasses
from importlib.resources import files

import pytest

from catalog import load_catalog
from optimizer.evaluate.inference import MEASURED_COLUMNS, predict, predicted_targets
from optimizer.evaluate.serving_case import serving_case
from optimizer.evaluate.types import NotPredictableError, NotPredicted, UnreadableCellError

CATALOG = load_catalog()
NEVER_INPUTS = (
    "out_tps_replica", "out_tps_gpu", "total_tps_replica", "req_s_replica", "ttft_ms", "tpot_ms", "notes",
)  # fmt: skip


def open_rows():
    text = files("catalog").joinpath("measurements", "inference.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def row(**cells):
    base = {
        "id": "a", "kind": "serve", "model": "Llama-3.1-8B", "gpu": "H100-SXM-80GB", "tp": "1",
        "weight_precision": "bf16", "input_len": "1000", "output_len": "200", "concurrency": "32", "engine": "vLLM",
        "out_tps_replica": "2000", "tpot_ms": "12", "ttft_ms": "100",
    }  # fmt: skip
    return base | cells


def targets(**cells):
    found = predict(row(**cells), CATALOG)
    assert not isinstance(found, NotPredicted)
    return {p.target: p for p in found}


@pytest.mark.parametrize(
    ("kind", "cells", "expected"),
    [
        ("decode", {"batch": "1"}, {"out_tps_single"}),
        ("prefill", {"output_len": "0"}, {"ttft_prefill_ms"}),
        ("static", {"batch": "8"}, {"out_tps"}),
        ("maxthr", {"concurrency": "inf"}, {"out_tps"}),
        ("mlperf", {"concurrency": "SLO"}, {"out_tps"}),
        ("serve", {}, {"out_tps", "tpot_ms", "ttft_ms"}),
        ("serve_qps", {"request_rate_rps": "4", "concurrency": ""}, {"tpot_ms", "ttft_ms"}),
    ],
)
def test_targets_by_kind(kind, cells, expected):
    """Each kind is scored by its own targets."""
    assert set(targets(kind=kind, **cells)) == expected


def test_a_target_that_was_not_measured_is_left_out():
    """Predictions are made of what the row measured."""
    assert set(targets(tpot_ms="", ttft_ms="")) == {"out_tps"}
    assert predict(row(tpot_ms="", ttft_ms="", out_tps_replica=""), CATALOG) == NotPredicted(
        "a", "the row holds no measurement of kind serve"
    )


def test_measured_columns_and_notes_are_never_inputs():
    """Predictions of the open rows stay the same when everything measured is taken away."""
    for cells in open_rows()[::29]:
        blank = {**cells, **dict.fromkeys(NEVER_INPUTS, "")}
        assert predicted_targets(serving_case(blank, CATALOG)) == predicted_targets(serving_case(cells, CATALOG))


def test_the_rows_own_shape_comes_before_the_catalog():
    """A model of half the layers is twice as fast, nearly; an unknown one is predicted from its own columns."""
    known = targets()["tpot_ms"].predicted
    halved = targets(layers="16", params_total_b="4.0", params_active_b="4.0")["tpot_ms"].predicted
    assert halved < 0.65 * known
    own = {"layers": "32", "hidden": "4096", "heads": "32", "kv_heads": "8", "params_total_b": "8.03"}
    assert targets(model="nobody-has-this", **own)["tpot_ms"].predicted == pytest.approx(known, rel=0.1)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"gpu": "H1000"}, "GPU not in the catalog"),
        ({"gpu": "A100"}, "ambiguous"),
        ({"model": "nobody-has-this"}, "lacks params_total_b, layers, hidden, heads"),
        ({"gpu": "A100-SXM-80GB", "weight_precision": "int8", "gpu_": ""}, ""),
        ({"gpu": "RTX-3090-24GB", "output_len": ""}, "output_len"),
        ({"kind": "serve_qps", "request_rate_rps": ""}, "request_rate_rps is empty"),
        ({"concurrency": "inf"}, "concurrency is empty"),
    ],
)
def test_rows_without_an_answer_say_why(cells, words):
    """What is missing is named; a GPU with the unit that is asked for is predicted."""
    if not words:
        assert targets(**cells)
        return
    with pytest.raises(NotPredictableError, match=words):
        predict(row(**cells), CATALOG)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"kind": "serving"}, "column kind: found 'serving'"),
        ({"tp": "two"}, "column tp: found 'two', write a number"),
        ({"tp": "1.5"}, "write a whole number"),
        ({"input_len": "-1"}, "write tokens from 0 on"),
        ({"weight_precision": "fp17"}, "column weight_precision: found 'fp17'"),
        ({"tpot_ms": "fast"}, "column tpot_ms"),
    ],
)
def test_cells_that_cannot_be_read_are_named(cells, words):
    """The column, what was found and what to write."""
    with pytest.raises(UnreadableCellError, match=words):
        predict(row(**cells), CATALOG)


def test_packed_formats_of_any_name_count_by_their_bits():
    """w3 or Q4_K_M weights are packed integers whose size is the given mean."""
    three = targets(kind="decode", weight_precision="w3", weight_bits="3.0", batch="1")
    four = targets(kind="decode", weight_precision="Q4_K_M", weight_bits="4.9", batch="1")
    assert three["out_tps_single"].predicted > four["out_tps_single"].predicted


def test_an_empty_format_is_told_by_its_bits():
    """8 bits are fp8, fewer are packed, anything else 16 bit."""
    bits = {"8": "fp8", "4.5": "int4", "16": "bf16", "": "bf16"}
    found = {b: serving_case(row(weight_precision="", weight_bits=b), CATALOG).weights for b in bits}
    assert found == bits


def test_ranges_are_wider_where_something_was_not_seen():
    """An engine's or model's first row has the range of left-out sources."""
    seen, unseen = targets()["tpot_ms"], targets(model="qwen2.5-3b")["tpot_ms"]
    assert unseen.high / unseen.predicted >= seen.high / seen.predicted
    assert seen.low < seen.predicted < seen.high


def test_only_sound_rows_are_scored():
    """Rows marked suspect are predicted, but not scored."""
    assert targets(quality="ok")["out_tps"].scored
    assert not targets(quality="suspect")["out_tps"].scored


def test_every_target_has_a_column():
    """Each measured column belongs to the open table."""
    columns = set(open_rows()[0])
    assert set(MEASURED_COLUMNS.values()) <= columns
    assert {field.name for field in dataclasses.fields(serving_case(row(), CATALOG))}.isdisjoint(NEVER_INPUTS)


def test_a_row_of_a_tpu_is_not_predicted():
    """The catalog knows TPUs, the estimator has no model of them."""
    with pytest.raises(NotPredictableError, match="no analytic model for TPU-v6e"):
        serving_case(row(gpu="TPU v6e"), CATALOG)
