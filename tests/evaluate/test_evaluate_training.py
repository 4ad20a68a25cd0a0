import csv
import json
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from catalog import load_catalog
from optimizer.estimator.architecture import counted_parameters
from optimizer.evaluate import memory, training
from optimizer.evaluate.document import evaluation_document
from optimizer.evaluate.run import evaluate_file
from optimizer.evaluate.shapes import measured_model, shape_by_parameters
from optimizer.evaluate.types import NotPredictableError

CATALOG = load_catalog()
MEASUREMENTS = Path(str(files("catalog").joinpath("measurements")))
RECORDED = json.loads((Path(__file__).parent / "recorded_training.json").read_text(encoding="utf-8"))
LIMITS = {"training": (14, 38), "memory": (11, 32)}
"""Median and 90th percentile of the error in percent that the estimator was built to stay below."""
LEAST_PREDICTED = {"training": 0.85, "memory": 0.90}
TOLERANCE_PCT = 0.3
NEVER_INPUTS = (
    "notes", "gpu_hours", "wall_hours", "reported_mfu_pct", "reported_hfu_pct", "reported_tflops_gpu",
    "tflops_convention", "figure_origin",
)  # fmt: skip


@cache
def document(kind):
    return evaluation_document(evaluate_file(kind, str(MEASUREMENTS / f"{kind}.csv"), CATALOG))


def rows(kind):
    with (MEASUREMENTS / f"{kind}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def run(**cells):
    base = {
        "id": "a", "kind": "pretrain_dense", "record": "benchmark", "model": "Llama-3.1-8B", "gpu": "H100-SXM-80GB",
        "n_gpus": "8", "precision": "bf16", "seq_len": "8192", "micro_batch": "1", "tok_s_gpu": "7000",
        "eval_use": "yes",
    }  # fmt: skip
    return base | cells


def rate(**cells):
    (prediction,) = training.predict(run(**cells), CATALOG)
    return prediction.predicted


def used(**cells):
    base = {
        "id": "a", "kind": "mem_full", "model": "Llama-3.1-8B", "method": "full", "weights": "bf16", "seq_len": "2048",
        "micro_batch": "1", "gpu": "A100-SXM-80GB", "n_gpus": "1", "mem_per_gpu": "60", "unit": "GB", "scope": "peak",
        "measured": "measured",
    }  # fmt: skip
    (prediction,) = memory.predict(base | cells, CATALOG)
    return prediction


@pytest.mark.parametrize("kind", sorted(LIMITS))
def test_errors_of_training_and_memory_are_as_recorded(kind):
    """A drift of the estimator, better or worse, must be meant: recorded_training.json is then written anew."""
    found = document(kind)["summary"]["all"]
    assert found["n"] == RECORDED[kind]["n"]
    for figure in ("median_abs_pct", "p90_abs_pct", "bias_pct"):
        assert found[figure] == pytest.approx(RECORDED[kind][figure], abs=TOLERANCE_PCT), figure
    assert document(kind)["range_coverage"] == pytest.approx(RECORDED[kind]["range_coverage"], abs=0.01)


@pytest.mark.parametrize("kind", sorted(LIMITS))
def test_errors_of_training_and_memory_stay_below_their_limits(kind):
    """The promised figures hold on the open rows, and most measurements lie in their range."""
    found, (median, p90) = document(kind), LIMITS[kind]
    assert found["summary"]["all"]["median_abs_pct"] <= median
    assert found["summary"]["all"]["p90_abs_pct"] <= p90
    assert found["range_coverage"] >= 0.88
    assert len(found["not_predicted"]) <= (1 - LEAST_PREDICTED[kind]) * found["counts"]["rows"]


@pytest.mark.parametrize("kind", sorted(LIMITS))
def test_every_row_has_its_source_and_no_text_of_others(kind):
    """The open data are facts with source and date; free notes stay out."""
    for row in rows(kind):
        assert row["source"]
        assert row["source_date"]
        assert "notes" not in row


def test_measured_columns_are_never_inputs():
    """A run is predicted the same whatever was measured or noted of it."""
    bare = rate()
    for column in NEVER_INPUTS:
        assert rate(**{column: "123"}) == bare
    assert rate(tok_s_gpu="1") == bare


@pytest.mark.parametrize(
    ("faster", "slower"),
    [
        ({"precision": "fp8"}, {}),
        ({}, {"act_ckpt": "full"}),
        ({}, {"record": "real_run"}),
        ({}, {"seq_len": "65536"}),
        ({}, {"n_gpus": "1024"}),
        ({"micro_batch": "4"}, {}),
        ({"pp": "1"}, {"pp": "8", "n_gpus": "64", "global_batch_seqs": "64"}),
        ({"kind": "lora", "act_ckpt": "none"}, {}),
        ({"gpu": "H200-SXM-141GB"}, {"gpu": "A100"}),
    ],
)
def test_settings_act_in_their_direction(faster, slower):
    """Each setting of a row makes the predicted rate move as it should."""
    assert rate(**faster) > rate(**slower)


def test_an_ambiguous_gpu_is_settled_by_its_peak_or_left_out():
    """A100 cards train alike, V100 of one peak too; of the RTX PRO 6000 the peak tells the one, else it is open."""
    assert training.training_gpu(run(gpu="V100", peak_bf16_dense_tflops="125"), CATALOG).fp16_dense_tflop_per_s == 125
    assert training.training_gpu(run(gpu="A100"), CATALOG).bf16_dense_tflop_per_s == 312
    settled = training.training_gpu(run(gpu="RTX-PRO-6000-Blackwell", peak_bf16_dense_tflops="503.8"), CATALOG)
    assert settled.gpu_id == "RTX-PRO-6000-WS"
    with pytest.raises(NotPredictableError, match="ambiguous"):
        training.training_gpu(run(gpu="RTX-PRO-6000-Blackwell"), CATALOG)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"gpu": "Abacus-9"}, "not in the catalog"),
        ({"precision": "int3"}, "int3"),
        ({"gpu": "A100-SXM-80GB", "precision": "fp8"}, "no fp8 unit"),
        ({"model": "unheard-of"}, "params_total"),
        ({"tok_s_gpu": ""}, "tok_s_gpu"),
    ],
)
def test_runs_without_an_answer_say_why(cells, words):
    """What the catalog or the row lacks is the reason."""
    with pytest.raises(NotPredictableError, match=words):
        training.predict(run(**cells), CATALOG)


def test_a_model_of_unknown_shape_is_predicted_with_a_wider_range():
    """Parameters alone will do, at a wider range."""
    (known,) = training.predict(run(), CATALOG)
    (bare,) = training.predict(run(model="some-8B", params_total="8e9", params_active="8e9"), CATALOG)
    assert bare.predicted == pytest.approx(known.predicted, rel=0.2)
    assert bare.high / bare.low > 1.3 * known.high / known.low


@pytest.mark.parametrize(("parameters", "layers"), [(7e9, 33), (70e9, 71), (175e9, 96)])
def test_shapes_by_parameters_are_those_of_published_models(parameters, layers):
    """Depth grows with the cube root of the size; twelve squares of the width per layer give the size back."""
    found, width = shape_by_parameters(parameters)
    assert found == layers
    assert 12 * found * width**2 == pytest.approx(parameters, rel=0.02)


def test_own_columns_come_before_the_catalog():
    """Layers and width of the row replace the catalog's; what the row lacks comes from there."""
    found = measured_model(run(layers="40", hidden="5120", heads="40", kv_heads="40"), CATALOG).architecture
    assert (found.layers, found.hidden_size, found.head_dim, found.vocabulary_size) == (40, 5120, 128, 128_256)
    mixture = measured_model({"model": "m", "params_total": "100e9", "params_active": "10e9"}, CATALOG, mixture=True)
    assert mixture.architecture.experts == 10
    assert not mixture.shape_known
    assert counted_parameters(found) > 0


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"optimizer": "AdamW8bit"}, {"optimizer": "AdamW"}),
        ({"optimizer": "AdamW"}, {"optimizer": "Adam fp32"}),
        ({"optimizer": "PagedAdamW8bit+optim-in-bwd"}, {"optimizer": "AdamW8bit"}),
        ({"act_ckpt": "full"}, {"act_ckpt": "none"}),
        ({"method": "lora"}, {}),
        ({"method": "Q-LoRA"}, {"method": "LoRA"}),
        ({"method": "lora r8"}, {"method": "LoRA(emb)"}),
        ({"n_gpus": "8", "sharding": "ZeRO-3"}, {"n_gpus": "8", "sharding": "ZeRO-1"}),
        ({"n_gpus": "8", "sharding": "ZeRO-1 DP=8"}, {"n_gpus": "8", "sharding": "ZeRO-1 DP=2"}),
        ({"scope": "peak"}, {"scope": "peak (nvidia-smi class)"}),
        ({"scope": "model states only"}, {"scope": "peak"}),
        ({"unit": "GiB"}, {"unit": "GB"}),
        ({"weights": "bf16"}, {"weights": "fp32"}),
    ],
)
def test_settings_of_memory_act_in_their_direction(less, more):
    """Each setting of a row makes the predicted memory move as it should."""
    assert used(**less).predicted < used(**more).predicted


def test_a_sum_over_gpus_is_so_many_times_one():
    """The scope SUM covers all GPUs of the run."""
    shard = {"n_gpus": "2", "sharding": "ZeRO-2"}
    assert used(scope="peak SUM over 2 GPUs", **shard).predicted == 2 * used(**shard).predicted


@pytest.mark.parametrize(
    ("cells", "scored"),
    [({}, True), ({"scope": "max context that fits this VRAM"}, False), ({"measured": "theoretical"}, False)],
)
def test_bounds_and_figures_of_models_are_not_scored(cells, scored):
    """They are predicted, and summarised apart."""
    assert used(**cells).scored is scored


@pytest.mark.parametrize(("cells", "words"), [({"unit": "pages"}, "pages"), ({"method": "qlora 2-bit"}, "2-bit")])
def test_memory_that_is_not_estimated_says_why(cells, words):
    """An unknown unit or weight format is the reason."""
    with pytest.raises(NotPredictableError, match=words):
        used(**cells)
