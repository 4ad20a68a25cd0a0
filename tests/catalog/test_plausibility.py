import csv
import io
import shutil
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from catalog.load import load_catalog
from catalog.plausibility import check_catalog
from catalog.schema import CloudOffer

TODAY = date(2026, 12, 1)
PACKAGED = Path(__file__).parents[2] / "catalog"
COLUMNS = [name for name in CloudOffer.__dataclass_fields__ if name != "ref"] + ["source", "priced_on"]
OFFER = {
    "provider": "acme", "region": "r", "instance_type": "node", "gpu_id": "L4", "gpus_per_node": "1",
    "purchase_option": "on-demand", "price_usd_per_node_hour": "1.0", "upfront_usd_per_node": "0",
    "billing_step": "hour", "confidence": "read", "source": "a page", "priced_on": "2026-11-01",
}  # fmt: skip


def findings(tmp_path, *offers, stale_days=365):
    """Findings about a file of offers, each OFFER with some cells changed."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, restval="")
    writer.writeheader()
    for number, changes in enumerate(offers):
        writer.writerow({**OFFER, "offer_id": f"offer-{number}", **changes})
    path = tmp_path / "prices.csv"
    path.write_text(buffer.getvalue(), encoding="utf-8")
    catalog = load_catalog().with_price_files({"prices.csv": path})
    return check_catalog(catalog, TODAY, files=["prices.csv"], stale_days=stale_days)


def told(found):
    return [(finding.line, finding.severity, finding.code) for finding in found]


def test_a_plausible_offer_gives_no_finding(tmp_path):
    """Nothing is said of what is in order."""
    assert findings(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("offers", "expected"),
    [
        ([{}, {"purchase_option": "spot", "price_usd_per_node_hour": "1.2"}], [(3, "warning", "spot-not-cheaper")]),
        ([{}, {"purchase_option": "spot", "price_usd_per_node_hour": "1.0"}], [(3, "warning", "spot-not-cheaper")]),
        ([{}, {"purchase_option": "spot", "price_usd_per_node_hour": "0.2"}], [(3, "warning", "spot-floor")]),
        ([{"price_usd_per_node_hour": "0.05"}], [(2, "warning", "low-price")]),
        ([{"price_usd_per_node_hour": "20"}], [(2, "warning", "high-price")]),
        ([{"price_usd_per_node_hour": "0"}], [(2, "error", "price")]),
        ([{"price_usd_per_node_hour": ""}], [(2, "error", "price")]),
        ([{"gpu_id": "L5"}], [(2, "error", "unknown-gpu")]),
        ([{"gpus_per_node": "12", "price_usd_per_node_hour": "12"}], [(2, "error", "count-over-node")]),
        (
            [{"instance_type": "a"}, {"instance_type": "b", "gpus_per_node": "4"}],
            [(3, "error", "price-not-scaled")],
        ),
        ([{}, {}], [(3, "error", "duplicate")]),
        ([{"priced_on": ""}], [(2, "warning", "undated")]),
        ([{"priced_on": "2024-01-01"}], [(2, "warning", "stale")]),
        ([{"priced_on": "2026-12-24"}], [(2, "error", "future")]),
        ([{"offer_id": "same"}, {"offer_id": "same", "instance_type": "b"}], [(3, "error", "duplicate")]),
        ([{"billing_step": "often"}], [(2, "error", "row")]),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, list) else None,
)  # fmt: skip
def test_each_rule(tmp_path, offers, expected):
    """Each slip gives the finding of its rule, at its line and with its severity."""
    assert told(findings(tmp_path, *offers)) == expected


def test_a_bigger_node_that_is_cheaper(tmp_path):
    """dstack issue 1044: eight GPUs at 4.00 beside four at 7.00 are flagged; a plan may still use them."""
    node = {"gpu_id": "A100-80GB-SXM", "purchase_option": "spot"}
    found = findings(
        tmp_path,
        {**node, "instance_type": "8x", "gpus_per_node": "8", "price_usd_per_node_hour": "4.00"},
        {**node, "instance_type": "4x", "gpus_per_node": "4", "price_usd_per_node_hour": "7.00"},
    )
    assert told(found) == [(2, "warning", "bigger-node-cheaper")]
    assert "8 GPUs at 4, 4 at 7" in found[0].message


def test_a_smaller_node_that_is_dearer_per_gpu(tmp_path):
    """A node of one GPU at more than 1.25 times the price per GPU of the next size."""
    sizes = [
        {"instance_type": f"{n}x", "gpus_per_node": str(n), "price_usd_per_node_hour": p}
        for n, p in ((1, "1.3"), (8, "8"))
    ]
    assert told(findings(tmp_path, *sizes)) == [(2, "warning", "smaller-node-dearer")]


def test_two_tiers_under_one_name(tmp_path):
    """dstack issue 1886: community 0.98 and secure 1.52 under one name are flagged; under two names they are not."""
    one = {"gpu_id": "RTX-4090", "price_usd_per_node_hour": "0.98"}
    two = {**one, "price_usd_per_node_hour": "1.52"}
    assert told(findings(tmp_path, one, two)) == [(3, "warning", "tier-mix")]
    assert findings(tmp_path, one, {**two, "instance_type": "node SECURE"}) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"provider": "aws", "instance_type": "p4d.24xlarge", "gpu_id": "A100-80GB-SXM"}, "error"),
        ({"instance_type": "gpu_8x_a100_80gb", "gpu_id": "A100-40GB-SXM"}, "warning"),
        ({"instance_type": "gpu_8x_a100_80gb", "gpu_id": "A100-80GB-SXM"}, None),
        ({"instance_type": "8gpu-128vcpu-1600gb", "gpu_id": "A100-80GB-SXM"}, None),
    ],
)
def test_gpus_that_the_node_does_not_have(tmp_path, changes, expected):
    """skypilot-catalog PR 15: A100 of 40 and 80 GB are not mixed up, by node type or by the size in a name."""
    found = findings(tmp_path, {"gpus_per_node": "8", "price_usd_per_node_hour": "20", **changes})
    assert [(f.severity, f.code) for f in found] == ([(expected, "gpu-mixup")] if expected else [])


def test_the_age_that_counts_as_stale(tmp_path):
    """A price of 30 days is stale after 20 and not after 40."""
    assert findings(tmp_path, {}, stale_days=40) == []
    assert told(findings(tmp_path, {}, stale_days=20)) == [(2, "warning", "stale")]


@pytest.fixture
def own_catalog(tmp_path):
    shutil.copytree(PACKAGED, tmp_path / "own", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    return tmp_path / "own"


def spoil(path, row, **cells):
    """Change cells of the row whose first cell is `row`."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    for found in rows:
        if next(iter(found.values())) == row:
            found.update(cells)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(buffer.getvalue(), encoding="utf-8")


@pytest.mark.parametrize(
    ("gpu", "cells", "severity"),
    [
        ("H100-80GB-SXM", {"fp8_dense_tflop_per_s": "3958"}, "warning"),
        ("H100-80GB-SXM", {"tf32_dense_tflop_per_s": "989"}, "warning"),
        ("H100-80GB-SXM", {"bf16_dense_tflop_per_s": "1979"}, "error"),
        ("A100-80GB-SXM", {"fp8_dense_tflop_per_s": "624"}, "error"),
    ],
)
def test_sparse_looking_peaks(own_catalog, gpu, cells, severity):
    """A peak at twice its usual ratio to bf16, or of a unit that the architecture lacks, is found."""
    spoil(own_catalog / "gpus.csv", gpu, **cells)
    found = check_catalog(load_catalog(own_catalog), TODAY)
    lines = (own_catalog / "gpus.csv").read_text(encoding="utf-8").splitlines()
    mine = [f for f in found if f.code == "sparse-peak" and lines[f.line - 1].startswith(f"{gpu},")]
    assert mine
    assert {f.severity for f in mine} == {severity}


def test_memory_and_aliases_of_a_catalog(own_catalog):
    """A GPU with the memory of its node and an alias that leads nowhere are errors."""
    spoil(own_catalog / "gpus.csv", "L4", memory_usable_bytes="193273528320")
    with (own_catalog / "aliases.csv").open("a", encoding="utf-8") as file:
        file.write("gpu,L5000,L5\n")
    codes = Counter(f.code for f in check_catalog(load_catalog(own_catalog), TODAY) if f.severity == "error")
    assert codes["memory"] == 1
    assert codes["unknown-alias"] == 1
    assert codes["unknown-gpu"] == 0, "its offers are not of an unknown GPU"


def test_servers_far_from_the_median(own_catalog):
    """A server at a tenth of the usual price per GPU is flagged."""
    row = next(s for s in load_catalog().servers() if len(load_catalog().servers([s.gpu_id])) >= 3)
    price = {"price_usd_per_node": "100", "price_low_usd": "", "price_high_usd": ""}
    spoil(own_catalog / "servers.csv", row.server_id, **price)
    found = check_catalog(load_catalog(own_catalog), TODAY)
    assert any(f.code == "low-price" and f.file.endswith("servers.csv") for f in found)


def test_the_packaged_catalog_has_no_errors():
    """The catalog that comes with gpumix passes its own check: warnings only."""
    found = check_catalog(load_catalog(), TODAY)
    assert [finding for finding in found if finding.severity == "error"] == []
    assert all(finding.line >= 2 for finding in found)
