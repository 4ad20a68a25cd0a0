import pytest

from catalog import load_catalog
from optimizer.evaluate import memory, training
from optimizer.evaluate.document import evaluation_document
from optimizer.evaluate.row_gpu import training_gpu
from optimizer.evaluate.rows import MeasuredRow
from optimizer.evaluate.run import evaluate_file, evaluate_rows
from optimizer.evaluate.types import NotPredictableError
from optimizer.evaluate.words import number_format
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
    with pytest.raises(NotPredictableError, match=r"not in the catalog.*lacks peak_bf16_dense_tflops"):
        training.predict(TRAINING | own | {"peak_bf16_dense_tflops": ""}, CATALOG)
    (fed,) = training.predict(TRAINING | own | {"memory_bandwidth_gb_per_s": ""}, CATALOG)
    assert fed.predicted == pytest.approx(known.predicted), "H100 has bandwidth to spare"
    assert fed.high / fed.low == pytest.approx(1.2**2 * known.high / known.low)
    (quicker,) = training.predict(TRAINING | own | {"precision": "fp8"}, CATALOG)
    assert quicker.predicted > 1.2 * known.predicted


def test_the_rows_own_figures_come_before_the_catalogs():
    """A run's own peak counts, not the one the catalog has for that name."""
    half = TRAINING | {"peak_bf16_dense_tflops": "495"}
    assert training_gpu(half, CATALOG).bf16_dense_tflop_per_s == 495
    (slow,), (fast,) = training.predict(half, CATALOG), training.predict(TRAINING, CATALOG)
    assert slow.predicted < 0.7 * fast.predicted


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("FP16", "fp16"), ("float16", "fp16"), ("half", "fp16"), ("bfloat16", "bf16"), ("FP8_E4M3", "fp8"),
        ("fp8-e5m2", "fp8"), ("MXFP8", "fp8"), ("NVFP4", "fp4"), ("mxfp4", "fp4"), ("W4A16", "int4"), ("AWQ", "int4"),
        ("gptq-int4", "int4"), ("Q4_K_M", "int4"), ("IQ3_XS", "int4"), ("nf4", "int4"), ("EXL2", "int4"),
        ("W8A8", "int8"), ("w8a8-fp8", "fp8"), ("INT8", "int8"), ("Q8_0", "int8"), ("tf32", "tf32"), ("fp32", "fp32"),
        ("fp17", None), ("", None), ("fast", None),
    ],
)  # fmt: skip
def test_formats_are_known_by_their_usual_spellings(word, meant):
    """Tables write formats in many ways; what means none stays unknown."""
    assert number_format(word) == meant


@pytest.mark.parametrize(
    ("cells", "same"),
    [
        ({"kv_precision": "auto"}, {"kv_precision": "fp16"}),
        ({"kv_precision": "nan", "act_precision": "unknown"}, {"kv_precision": "", "act_precision": ""}),
        ({"weight_precision": "bfloat16"}, {"weight_precision": "bf16"}),
        ({"input_len": "1,024"}, {"input_len": "1024"}),
        ({"kind": "Static"}, {"kind": "static"}),
    ],
    ids=str,
)
def test_odd_cells_mean_what_they_say(cells, same):
    """Spellings, commas between thousands and words for nothing give the prediction of the plain row."""
    rows = [MeasuredRow(i, INFERENCE | changed) for i, changed in enumerate((cells, same))]
    one, other = ([p.predicted for p in evaluate_rows("inference", [row], CATALOG).predictions] for row in rows)
    assert one == other
    assert one


def test_a_card_computes_in_the_sixteen_bits_that_it_has():
    """bf16 rows of V100 and T4, fp16 rows of Gaudi 2: a 16-bit format is a 16-bit format."""
    for gpu, word in (("V100-SXM-32GB", "bf16"), ("T4", "bf16"), ("Gaudi2", "fp16")):
        row = INFERENCE | {"gpu": gpu, "weight_precision": word}
        assert evaluate_rows("inference", [MeasuredRow(2, row)], CATALOG).predictions
        run = TRAINING | {"gpu": gpu, "precision": f"{word}-mixed", "peak_bf16_dense_tflops": ""}
        assert evaluate_rows("training", [MeasuredRow(2, run)], CATALOG).predictions


def test_units_of_memory_in_any_case():
    """GB and GiB, MB and MiB, however written."""
    (gib,) = memory.predict(MEMORY | {"unit": "gib"}, CATALOG)
    (mib,) = memory.predict(MEMORY | {"unit": "MiB"}, CATALOG)
    assert mib.predicted == pytest.approx(1024 * gib.predicted)


def test_experts_of_an_unknown_mixture_are_guessed_from_its_parameters():
    """As Mixtral's shape by another name: within a fifth of it, and with a wider range."""
    shape = CATALOG.model("mixtral-8x7b")
    cells = {
        "params_total_b": f"{shape.parameters / 1e9}", "params_active_b": f"{shape.active_parameters / 1e9}",
        "layers": str(shape.layers), "hidden": str(shape.hidden_size), "heads": "32", "kv_heads": "8", "tp": "2",
    }  # fmt: skip
    known, guessed = (
        evaluate_rows("inference", [MeasuredRow(2, INFERENCE | cells | {"model": name})], CATALOG).predictions
        for name in ("Mixtral-8x7B", "Sparse-Unknown-47B")
    )
    for one, other in zip(known, guessed, strict=True):
        assert other.predicted == pytest.approx(one.predicted, rel=0.2)
        assert other.high / other.low > 1.4 * one.high / one.low


def test_headers_in_any_case(tmp_path):
    """Column names are read without regard to case, blanks and dashes."""
    names = [name.replace("_", " ").title() for name in INFERENCE]
    file = tmp_path / "rows.csv"
    file.write_text(",".join(names) + "\n" + ",".join(INFERENCE.values()) + "\n", encoding="utf-8")
    assert evaluate_file("inference", str(file), CATALOG).predictions
