import pytest

from catalog import load_catalog
from optimizer.evaluate import memory, training
from optimizer.evaluate.document import evaluation_document
from optimizer.evaluate.row_gpu import training_gpu
from optimizer.evaluate.rows import MeasuredRow
from optimizer.evaluate.run import evaluate_rows
from optimizer.evaluate.types import NotPredictableError
from optimizer.report.evaluation import evaluation_sections

CATALOG = load_catalog()
MEMORY = {
    "id": "a", "kind": "mem_full", "model": "Llama-3.1-8B", "method": "full", "weights": "bf16", "seq_len": "2048",
    "micro_batch": "1", "gpu": "A100-SXM-80GB", "n_gpus": "1", "mem_per_gpu": "60", "unit": "GB", "scope": "peak",
}  # fmt: skip
TRAINING = {
    "id": "a", "kind": "pretrain_dense", "record": "benchmark", "model": "Llama-3.1-8B", "gpu": "H100-SXM-80GB",
    "n_gpus": "8", "precision": "bf16", "seq_len": "8192", "micro_batch": "1", "tok_s_gpu": "7000",
}  # fmt: skip
INFERENCE = {
    "id": "a", "kind": "static", "model": "Llama-2-7B", "gpu": "A100-SXM-80GB", "tp": "1", "weight_precision": "fp16",
    "input_len": "128", "output_len": "128", "concurrency": "8", "out_tps_replica": "700",
}  # fmt: skip
ROWS = {"memory": (MEMORY, "measured"), "training": (TRAINING, "eval_use"), "inference": (INFERENCE, "quality")}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"gpu": "Abacus-9"}, "GPU not in the catalog"),
        ({"gpu": ""}, "gpu is empty"),
        ({"gpu": "nan"}, "gpu is empty"),
        ({"scope": ""}, "scope '' is not known"),
        ({"scope": "gibberish"}, "scope 'gibberish' is not known"),
        ({"scope": "summary"}, "not known"),
    ],
)
def test_memory_of_an_unknown_gpu_or_scope_is_not_predicted(cells, words):
    """A cell that says nothing known is a reason, as in the other tables, and no default."""
    with pytest.raises(NotPredictableError, match=words):
        memory.predict(MEMORY | cells, CATALOG)


@pytest.mark.parametrize("gpu", ["any", "unstated", "48GB card", "A100"])
def test_memory_of_no_gpu_in_particular_is_predicted(gpu):
    """Memory does not depend on the GPU: a name for none in particular, or for several variants, will do."""
    (found,) = memory.predict(MEMORY | {"gpu": gpu}, CATALOG)
    assert found.gpu == gpu


@pytest.mark.parametrize("kind", ROWS)
def test_a_table_without_marks_says_that_all_is_scored(kind):
    """Without the column that tells comparable rows from others, page and JSON say so; with it they do not."""
    cells, mark = ROWS[kind]
    document = evaluation_document(evaluate_rows(kind, [MeasuredRow(2, cells)], CATALOG))
    assert document["counts"]["scored_without_mark"] == document["counts"]["scored"] > 0
    assert f"no column {mark}" in document["notes"][0]
    assert evaluation_sections(document)[0].notes == tuple(document["notes"])
    marked = evaluation_document(evaluate_rows(kind, [MeasuredRow(2, cells | {mark: ""})], CATALOG))
    assert (marked["notes"], marked["counts"]["scored_without_mark"]) == ([], 0)


def test_an_unknown_gpu_is_predicted_by_the_rows_own_figures():
    """Peak and bandwidth in the row take the place of the catalog: the same figures give the same rate."""
    gpu = CATALOG.gpu("H100-80GB-SXM")
    own = {
        "gpu": "Abacus-9", "peak_bf16_dense_tflops": str(gpu.bf16_dense_tflop_per_s),
        "memory_bandwidth_gb_per_s": str(gpu.memory_bandwidth_gb_per_s),
    }  # fmt: skip
    (known,), (unknown,) = training.predict(TRAINING, CATALOG), training.predict(TRAINING | own, CATALOG)
    assert (unknown.gpu, unknown.predicted) == ("Abacus-9", pytest.approx(known.predicted))
    for missing in ("peak_bf16_dense_tflops", "memory_bandwidth_gb_per_s"):
        with pytest.raises(NotPredictableError, match=f"not in the catalog.*lacks {missing}"):
            training.predict(TRAINING | own | {missing: ""}, CATALOG)
    with pytest.raises(NotPredictableError, match="gives no fp8 peak"):
        training.predict(TRAINING | own | {"precision": "fp8"}, CATALOG)


def test_the_rows_own_figures_come_before_the_catalogs():
    """A run's own peak counts, not the one the catalog has for that name."""
    half = TRAINING | {"peak_bf16_dense_tflops": "495"}
    assert training_gpu(half, CATALOG).bf16_dense_tflop_per_s == 495
    (slow,), (fast,) = training.predict(half, CATALOG), training.predict(TRAINING, CATALOG)
    assert slow.predicted < 0.7 * fast.predicted
