import csv

import pytest

from catalog.importing import offers_csv
from tests.catalog.import_cases import CATALOG, prices, sample


@pytest.mark.parametrize(
    ("name", "provider", "offers", "dropped"),
    [
        ("skypilot_nebius_vms", "nebius", 17, {"no-gpu": 4}),
        ("skypilot_lambda_vms", "lambda", 12, {"no-gpu": 2}),
        ("skypilot_runpod_vms", "runpod", 8, {"spot-is-on-demand": 8, "duplicate": 2}),
        ("skypilot_gcp_vms", "gcp", 20, {"gpu-without-host": 2, "host-without-gpu": 1}),
        ("skypilot_quirks_verda_vms", "verda", 12, {}),
        ("gpuhunt_aws", "aws", 34, {"no-gpu": 1}),
        ("gpuhunt_azure", "azure", 20, {}),
        ("gpuhunt_lambdalabs", "lambda", 20, {}),
        ("gpuhunt_oci", "oci", 15, {}),
        ("gpuhunt_gcp_tpu", "gcp", 6, {}),
        ("gpuhunt_legacy", "verda", 7, {}),
    ],
)
def test_every_sample_imports_or_is_refused_with_the_reason(name, provider, offers, dropped):
    """Each row of the eleven files becomes an offer or is dropped for a reason that holds."""
    run = sample(name, provider)
    assert (len(run.rows), run.counts()) == (offers, dropped)


@pytest.mark.parametrize(
    ("name", "provider"),
    [("gpuhunt_aws", "aws"), ("gpuhunt_azure", "azure"), ("gpuhunt_oci", "oci"), ("gpuhunt_lambdalabs", "lambda")],
)
def test_gpus_are_those_that_the_catalog_gives_the_same_nodes(name, provider):
    """ "A100", "H100" and "V100" become the variant that the catalog names for that node type."""
    known = {o.instance_type: (o.gpu_id, o.gpus_per_node) for o in CATALOG.offers() if o.provider == provider}
    found = {row.instance_type: (row.gpu_id, row.gpus_per_node) for row in sample(name, provider).rows}
    both = found.keys() & known.keys()
    assert len(both) > 12
    assert {node: found[node] for node in both} == {node: known[node] for node in both}


def test_machines_and_gpus_of_google_are_added():
    """A machine's price and that of its GPUs make the node's, on-demand and spot; 16 GPUs are 16 times one."""
    found = prices(sample("skypilot_gcp_vms", "gcp"))
    assert found["a2-highgpu-1g", "on-demand"] == pytest.approx(0.73948 + 2.93391)
    assert found["a2-highgpu-1g", "spot"] == pytest.approx(0.36975 + 1.4341)
    assert found["a2-megagpu-16g", "on-demand"] == pytest.approx(8.79698 + 16 * 2.93391, rel=1e-6)
    assert found["a3-edgegpu-8g", "on-demand"] == pytest.approx(9.46006 + 78.37241)
    assert found["a2-ultragpu-8g", "on-demand"] == pytest.approx(8.79698 + 35.39358)


def test_the_sums_agree_with_the_catalog():
    """The catalog's own Google prices, added elsewhere, are the same."""
    rows = sample("skypilot_gcp_vms", "gcp").rows
    found = {(row.region, row.instance_type, row.purchase_option): row.price for row in rows}
    known = {
        (o.region, o.instance_type, o.purchase_option): o.price_usd_per_node_hour
        for o in CATALOG.offers()
        if o.provider == "gcp"
    }
    both = found.keys() & known.keys()
    assert len(both) >= 8
    assert {key: found[key] for key in both} == pytest.approx({key: known[key] for key in both}, rel=1e-3)


def test_an_empty_price_with_a_spot_price_is_a_spot_offer():
    """Spot only: no on-demand offer is made up."""
    found = prices(sample("skypilot_quirks_verda_vms", "verda"))
    assert found["8B300.240V", "spot"] == 19.57
    assert ("8B300.240V", "on-demand") not in found
    assert ("1V100.6V", "spot") not in found


def test_offers_are_written_as_the_catalog_reads_them(tmp_path):
    """What is written reads back as offers with price, GPU, date and source, ids unique."""
    run = sample("skypilot_nebius_vms", "nebius")
    path = tmp_path / "nebius.csv"
    path.write_text(offers_csv(run), encoding="utf-8")
    offers = CATALOG.with_price_files({"nebius.csv": path}, only=True).offers()
    assert len(offers) == len(run.rows) == len({offer.offer_id for offer in offers})
    eight = next(o for o in offers if (o.gpus_per_node, o.gpu_id, o.purchase_option) == (8, "H100-80GB-SXM", "spot"))
    assert (eight.price_usd_per_node_hour, eight.ram_gib, eight.vcpus) == (10.0, 1600, 128)
    assert str(eight.ref) == "nebius.csv:5 (prices.csv:7, 2026-11-09)"
    assert offers_csv(run).splitlines()[0].split(",") == next(csv.reader([offers_csv(run).splitlines()[0]]))
