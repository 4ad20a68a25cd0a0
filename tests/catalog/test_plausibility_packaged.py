import csv
import io
import shutil
from pathlib import Path

import pytest

from catalog.load import load_catalog
from catalog.plausibility import check_catalog
from tests.catalog.test_plausibility import TODAY, findings, told

PACKAGED = Path(__file__).parents[2] / "catalog"
RESERVED = {"purchase_option": "reserved", "term_months": "12"}


def with_gpu(tmp_path, gpu_id, **cells):
    """Findings of GPUs and of unknown ones, of a copy of the catalog in which one GPU's row has other cells."""
    directory = tmp_path / "catalog"
    shutil.copytree(PACKAGED, directory, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    rows = list(csv.DictReader(io.StringIO((directory / "gpus.csv").read_text(encoding="utf-8"))))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]))
    writer.writeheader()
    writer.writerows(row | (cells if row["gpu_id"] == gpu_id else {}) for row in rows)
    (directory / "gpus.csv").write_text(buffer.getvalue(), encoding="utf-8")
    usual = set(check_catalog(load_catalog(), TODAY))
    found = [f for f in check_catalog(load_catalog(directory), TODAY) if f.message not in {u.message for u in usual}]
    return directory, found


@pytest.mark.parametrize(
    ("changes", "severity", "code"),
    [
        ({"price_usd_per_node_hour": "600", "purchase_option": "spot"}, "error", "high-price"),
        ({"price_usd_per_node_hour": "600", **RESERVED}, "error", "high-price"),
        ({"price_usd_per_node_hour": "600"}, "error", "high-price"),
        ({"price_usd_per_node_hour": "10", "purchase_option": "spot"}, "warning", "high-price"),
        ({"price_usd_per_node_hour": "10", **RESERVED}, "warning", "high-price"),
        ({"price_usd_per_node_hour": "0.01", "purchase_option": "spot"}, "warning", "low-price"),
        ({"price_usd_per_node_hour": "0.01", **RESERVED}, "warning", "low-price"),
    ],
)
def test_all_ways_of_paying_are_held_against_the_median(tmp_path, changes, severity, code):
    """A monthly price in an hourly column is found however the node is bought."""
    assert told(findings(tmp_path, changes)) == [(2, severity, code)]


def test_a_commitment_paid_in_advance_may_be_cheap_by_the_hour(tmp_path):
    """An hourly price near 0 is in order where the rest is paid upfront."""
    advance = {"price_usd_per_node_hour": "0.01", "upfront_usd_per_node": "3000", **RESERVED}
    assert findings(tmp_path, advance) == []


def test_a_commitment_dearer_than_on_demand(tmp_path):
    """A reservation that costs more than the same node on demand is worth a look; one that costs less is not."""
    assert told(findings(tmp_path, {}, {"price_usd_per_node_hour": "1.2", **RESERVED})) == [
        (3, "warning", "reserved-dearer")
    ]
    assert findings(tmp_path, {}, {"price_usd_per_node_hour": "0.7", **RESERVED}) == []


def test_nodes_are_held_against_the_packaged_ones(tmp_path):
    """A known node type has its own number and kind of GPUs, A100 of 40 or 80 GB too."""
    p5 = {"provider": "aws", "instance_type": "p5.48xlarge", "gpu_id": "H100-80GB-SXM"}
    eight = {**p5, "gpus_per_node": "8", "price_usd_per_node_hour": "50"}
    assert findings(tmp_path, eight) == []
    four = {**p5, "gpus_per_node": "4", "price_usd_per_node_hour": "25"}
    (found,) = findings(tmp_path, four)
    assert (found.severity, found.code) == ("error", "count-of-node")
    assert "p5.48xlarge has 8 GPUs, not 4" in found.message
    lambdas = load_catalog().offers(["A100-40GB-SXM", "A100-40GB-PCIe"])
    offer = next(o for o in lambdas if o.provider == "lambda")
    wrong = {
        "provider": "lambda", "instance_type": offer.instance_type, "gpu_id": "A100-80GB-SXM",
        "gpus_per_node": str(offer.gpus_per_node), "price_usd_per_node_hour": str(2.0 * offer.gpus_per_node),
    }  # fmt: skip
    assert [(f.severity, f.code) for f in findings(tmp_path, wrong)] == [("error", "gpu-mixup")]


@pytest.mark.parametrize(
    ("gpu_id", "cells", "code", "words"),
    [
        ("H100-80GB-SXM", {"memory_bandwidth_gb_per_s": "4000"}, "unlike-packaged", "packaged catalog says 3350"),
        (
            "L4",
            {"memory_usable_bytes": "48000000000", "memory_sold_gb": "48"},
            "unlike-packaged",
            "memory_sold_gb is 48",
        ),
        ("H100-80GB-SXM", {"int8_dense_tops": "3958"}, "sparse-peak", "looks sparse"),
        ("RTX-4090", {"bf16_dense_tflop_per_s": "330.3"}, "accumulation", "FP16 accumulation"),
    ],
)
def test_gpus_are_held_against_the_packaged_ones(tmp_path, gpu_id, cells, code, words):
    """A figure that differs from the package's is told, a doubled peak as one that looks sparse."""
    _, found = with_gpu(tmp_path, gpu_id, **cells)
    assert any(f.code == code and words in f.message and f.file.endswith("gpus.csv") for f in found)


def test_a_small_difference_is_none(tmp_path):
    """Sheets round differently."""
    assert with_gpu(tmp_path, "H100-80GB-SXM", memory_bandwidth_gb_per_s="3400")[1] == []


def test_a_faulty_gpu_is_one_finding(tmp_path):
    """The row that cannot be read is told; that its offers are of an unknown GPU is not true. Files name it too."""
    directory, found = with_gpu(tmp_path, "L4", memory_bandwidth_gb_per_s="fast")
    assert [f.file.endswith("gpus.csv") for f in found if f.severity == "error"] == [True]
    sold = next(directory.glob("offers/aws.csv"))
    catalog = load_catalog(directory).with_price_files({"prices.csv": sold})
    errors = [f for f in check_catalog(catalog, TODAY, files=["prices.csv"]) if f.severity == "error"]
    assert [f.file.endswith("gpus.csv") for f in errors] == [True]


def test_a_negative_price_is_called_so(tmp_path):
    """What is wrong with -5 is its sign."""
    (found,) = findings(tmp_path, {"price_usd_per_node_hour": "-5"})
    assert (found.code, "-5 is negative" in found.message) == ("price", True)
