"""Every row of the packaged catalog: sourced, positive, consistent with the other files."""

import csv
import importlib.util
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from catalog import Catalog, CloudOffer, Gpu, ServerOffer, load_catalog
from catalog.load import GPU_LAYOUT, MODEL_LAYOUT, OFFER_LAYOUT, SERVER_LAYOUT

CATALOG = load_catalog()
DATA = Path(__file__).parents[2] / "catalog"
GPU_CONFIDENCE = {"cross-checked", "single source", "part recalled", "derived", "sources disagree"}
MODEL_CONFIDENCE = {"cross-checked", "single source", "part recalled", "recalled", "sources disagree"}

# Sparse figures that public tables print as 16-bit peaks, by GPU (TFLOP/s).
SPARSE_16_BIT = {
    "A100-40GB-SXM": 624,
    "A100-80GB-SXM": 624,
    "A100-80GB-PCIe": 624,
    "H100-80GB-SXM": 1979,
    "H100-80GB-PCIe": 1513,
    "H100-94GB-NVL": 1671,
    "H200-SXM": 1979,
    "GH200-96GB": 1979,
    "B200-SXM": 4500,
    "L4": 242,
    "L40": 362,
    "L40S": 733,
    "RTX-A6000": 309.7,
    "RTX-4090": 330.3,
    "RTX-6000-Ada": 728.5,
    "RTX-5090": 419,
    "MI300X": 2614,
}


def gpu_id(gpu: Gpu) -> str:
    return gpu.gpu_id


def test_every_row_of_every_file_can_be_read() -> None:
    """Reading everything raises nothing and yields as many records as the files have rows."""
    rows = {name: _count_rows(DATA / name) for name in CATALOG.file_hashes()}
    assert len(CATALOG.gpus()) == rows["gpus.csv"] >= 30
    assert len(CATALOG.models()) == rows["models.csv"] >= 25
    assert len(CATALOG.servers()) == rows["servers.csv"] >= 30
    assert len(CATALOG.site_costs()) == rows["site_costs.csv"] >= 30
    assert len(CATALOG.offers()) == sum(count for name, count in rows.items() if name.startswith("offers/"))


def test_there_are_offers_of_at_least_six_providers() -> None:
    """One file per provider, named after it."""
    by_file = {offer.ref.file for offer in CATALOG.offers()}
    assert len(by_file) >= 6
    assert all(offer.ref.file == f"catalog/offers/{offer.provider}.csv" for offer in CATALOG.offers())


def test_every_row_has_a_source_and_a_plausible_date() -> None:
    """A figure without a source cannot be checked by the buyer."""
    records = [*CATALOG.gpus(), *CATALOG.models(), *CATALOG.offers(), *CATALOG.servers(), *CATALOG.site_costs()]
    for record in records:
        assert record.ref.source, record
        assert record.ref.date is None or date(2020, 1, 1) < record.ref.date < date(2100, 1, 1), record


def test_offer_and_server_gpus_exist_and_fit_a_node() -> None:
    """No offer for an unknown GPU, nor for more GPUs than a node of it can hold."""
    largest = {gpu.gpu_id: gpu.max_gpus_per_node for gpu in CATALOG.gpus()}
    for record in (*CATALOG.offers(), *CATALOG.servers()):
        assert 1 <= record.gpus_per_node <= largest[record.gpu_id], record


def test_offer_ids_say_what_they_are_and_are_unique() -> None:
    """provider/region/instance/option, one of each in all files together."""
    ids = Counter(offer.offer_id for offer in CATALOG.offers())
    assert max(ids.values()) == 1
    for offer in CATALOG.offers():
        parts = offer.offer_id.split("/")
        assert len(parts) == 4
        assert parts[0] == offer.provider
        assert parts[3].startswith(offer.purchase_option)
        assert offer.region


def test_a_known_offer_is_found_by_its_id() -> None:
    """aws p5.48xlarge is 55.04 USD per node-hour with 8 H100 (list of 2026-07-20)."""
    offer = next(offer for offer in CATALOG.offers() if offer.offer_id == "aws/us-east-1/p5.48xlarge/on-demand")
    assert offer.price_usd_per_node_hour == 55.04
    assert (offer.gpu_id, offer.gpus_per_node, offer.ref.date) == ("H100-80GB-SXM", 8, date(2026, 7, 20))


def test_only_prices_that_can_be_had_are_in_the_catalog() -> None:
    """Confidence is read or secondary, and no price is a reserved "from", an estimate or an average."""
    assert {offer.confidence for offer in CATALOG.offers()} == {"read", "secondary"}
    assert not [offer for offer in CATALOG.offers() if "average" in offer.region or offer.provider == "akash"]


def test_a_spot_price_never_equals_the_on_demand_price() -> None:
    """Equal prices mean that there is no spot market; a spot price under a quarter is a floor, not a price."""
    on_demand = {_place(offer): offer.price_usd_per_node_hour for offer in CATALOG.offers() if _is(offer, "on-demand")}
    compared = 0
    for offer in CATALOG.offers():
        if _is(offer, "spot") and _place(offer) in on_demand:
            compared += 1
            assert 0.25 * on_demand[_place(offer)] <= offer.price_usd_per_node_hour != on_demand[_place(offer)]
    assert compared > 20


def test_reserved_offers_have_a_term_and_are_cheaper_than_on_demand() -> None:
    """One- and three-year prices exist, and a longer promise is not dearer."""
    reserved = [offer for offer in CATALOG.offers() if _is(offer, "reserved")]
    assert {offer.term_months for offer in reserved} == {12, 36}
    on_demand = {_place(offer): offer.price_usd_per_node_hour for offer in CATALOG.offers() if _is(offer, "on-demand")}
    for offer in reserved:
        assert offer.price_usd_per_node_hour < on_demand.get(_place(offer), float("inf"))


@pytest.mark.parametrize("gpu", CATALOG.gpus(), ids=gpu_id)
def test_peaks_are_dense(gpu: Gpu) -> None:
    """No 16-bit peak equals the sparse figure that public tables confuse it with."""
    sparse = SPARSE_16_BIT.get(gpu.gpu_id)
    for peak in (gpu.bf16_dense_tflop_per_s, gpu.fp16_dense_tflop_per_s):
        assert peak is None or sparse is None or peak < 0.6 * sparse
    assert gpu.bf16_dense_tflop_per_s not in {1979, 1513, 1671, 733}
    assert gpu.tf32_dense_tflop_per_s is None or gpu.tf32_dense_tflop_per_s <= 0.51 * (gpu.bf16_dense_tflop_per_s or 0)


@pytest.mark.parametrize(
    ("name", "dense"),
    [
        ("A100-80GB-SXM", 312),
        ("H100-80GB-SXM", 989.5),
        ("H100-80GB-PCIe", 756.5),
        ("H100-94GB-NVL", 835.5),
        ("H200-SXM", 989.5),
        ("RTX-4090", 165.2),
        ("RTX-6000-Ada", 364),
        ("L40S", 362),
        ("MI300X", 1307),
    ],
)
def test_dense_peaks_agree_with_the_published_ones(name: str, dense: float) -> None:
    """Dense bf16 peaks read in the reports of the sparse-figure mistake (fms-fsdp 89, Lightning 21743)."""
    assert CATALOG.gpu(name).peak_tflop_per_s("bf16") == pytest.approx(dense, rel=0.002)


def test_h100_and_h200_compute_equally_fast() -> None:
    """They share the compute die: a ratio of 2 would be a table that mixes dense and sparse."""
    assert CATALOG.gpu("H100-80GB-SXM").peak_tflop_per_s("bf16") == CATALOG.gpu("H200-SXM").peak_tflop_per_s("bf16")


def test_a100_has_more_bandwidth_than_rtx_4090() -> None:
    """1555 GB/s against 1008, contrary to a widespread article."""
    assert CATALOG.gpu("A100-40GB-SXM").memory_bandwidth_gb_per_s == 1555
    assert CATALOG.gpu("RTX-4090").memory_bandwidth_gb_per_s == 1008


def test_the_fp16_accumulating_peak_stands_apart() -> None:
    """RTX 4090: 330.3 with fp16 accumulation, 165.2 with the fp32 accumulation that training needs."""
    gpu = CATALOG.gpu("RTX-4090")
    assert gpu.fp16_fp16acc_dense_tflop_per_s == pytest.approx(2 * (gpu.fp16_dense_tflop_per_s or 0), rel=0.001)


@pytest.mark.parametrize("name", ["T4", "V100-32GB-SXM2"])
def test_gpus_without_bf16_have_no_bf16_peak(name: str) -> None:
    """Turing and Volta run fp16 only."""
    assert CATALOG.gpu(name).peak_tflop_per_s("bf16") is None
    assert (CATALOG.gpu(name).peak_tflop_per_s("fp16") or 0) > 60


@pytest.mark.parametrize("gpu", CATALOG.gpus(), ids=gpu_id)
def test_links_are_one_way_and_peer_to_peer_is_honest(gpu: Gpu) -> None:
    """NVLink is half of the advertised total; GeForce 40 and 50 have no peer-to-peer and go through host memory."""
    advertised_total = {
        "A100-80GB-SXM": 600,
        "H100-80GB-SXM": 900,
        "B200-SXM": 1800,
        "H800-SXM": 400,
        "RTX-3090": 112.5,
    }
    if gpu.gpu_id in advertised_total:
        assert gpu.link_gb_per_s == advertised_total[gpu.gpu_id] / 2
    if gpu.link_kind in ("pcie", "none"):
        assert gpu.link_gb_per_s <= gpu.pcie_gb_per_s
    assert gpu.p2p is (gpu.link_kind != "none")
    assert (gpu.link_kind == "none") is (gpu.gpu_id in ("RTX-4090", "RTX-5090"))


def test_consumer_cards_are_the_geforce_ones() -> None:
    """Their licence bars data centres; workstation cards' does not."""
    assert {gpu.gpu_id for gpu in CATALOG.gpus() if gpu.consumer} == {"RTX-3090", "RTX-4090", "RTX-5090"}
    consumer = {gpu.gpu_id: gpu.consumer for gpu in CATALOG.gpus()}
    assert all(server.consumer is consumer[server.gpu_id] for server in CATALOG.servers())


def test_usable_memory_is_what_the_driver_reports() -> None:
    """24564 MiB on RTX 4090, 183359 MiB on B200; where no report was found the row says so."""
    assert CATALOG.gpu("RTX-4090").memory_usable_bytes == 24564 * 2**20
    assert CATALOG.gpu("B200-SXM").memory_usable_bytes == 183359 * 2**20
    for gpu in CATALOG.gpus():
        assert gpu.memory_origin.startswith(("driver-reported", "derived", "recalled")), gpu.gpu_id


def test_confidence_words_are_the_documented_ones() -> None:
    """A figure nobody read twice is marked as such."""
    assert {gpu.confidence for gpu in CATALOG.gpus()} <= GPU_CONFIDENCE
    assert {model.confidence for model in CATALOG.models()} <= MODEL_CONFIDENCE
    assert {server.confidence for server in CATALOG.servers()} <= {"read", "secondary", "derived"}


@pytest.mark.parametrize("server", CATALOG.servers(), ids=lambda server: server.server_id)
def test_derived_servers_say_how_and_draw_at_least_their_cards(server: ServerOffer) -> None:
    """A derived price carries its sum in the notes; a node's nameplate is not below its GPUs' power."""
    assert server.confidence != "derived" or "derived: " in server.notes
    assert server.nameplate_kw >= server.gpus_per_node * CATALOG.gpu(server.gpu_id).tdp_w / 1000


@pytest.mark.parametrize("gpu", ["RTX-4090", "RTX-6000-Ada"])
def test_small_servers_come_in_all_sizes(gpu: str) -> None:
    """1, 2, 4 and 8 cards per node."""
    assert {server.gpus_per_node for server in CATALOG.servers([gpu])} == {1, 2, 4, 8}


def test_headers_carry_units() -> None:
    """Columns of money, power, rates, time and memory end in their unit."""
    dimensioned = {"price", "power", "memory", "upfront", "installation", "life", "lead", "term", "tdp", "link"}
    units = ("_usd", "_per_node", "_per_node_hour", "_kw", "_w", "_bytes", "_gb", "_gib", "_months", "_gb_per_s")
    textual = {"link_kind", "memory_origin"}
    layouts = (GPU_LAYOUT, MODEL_LAYOUT, OFFER_LAYOUT, SERVER_LAYOUT)
    names = {name for layout in layouts for name in layout.record.__slots__ if name.split("_")[0] in dimensioned}
    assert names - textual
    assert not [name for name in names - textual if not name.endswith(units)]


def test_data_files_use_plain_text_and_unix_lines() -> None:
    """Every file reads and writes back unchanged, so that a diff shows one changed row."""
    for name in CATALOG.file_hashes():
        text = (DATA / name).read_text(encoding="utf-8")
        assert "\r" not in text
        assert text.endswith("\n")


def test_region_na_stays_text(tmp_path: Path) -> None:
    """ "NA" is a region (B111), not a missing value."""
    catalog = _copy_with_offer(tmp_path, region="NA", price="1.5")
    assert [offer.region for offer in catalog.offers()] == ["NA"]


def _copy_with_offer(directory: Path, *, region: str, price: str) -> Catalog:
    for name in ("gpus.csv", "aliases.csv"):
        (directory / name).write_bytes((DATA / name).read_bytes())
    (directory / "offers").mkdir()
    header = (DATA / "offers" / "aws.csv").read_text(encoding="utf-8").splitlines()[0]
    row = f"x,x,{region},x,T4,1,on-demand,,{price},0,hour,,,read,a list,,"
    (directory / "offers" / "x.csv").write_text(f"{header}\n{row}\n", encoding="utf-8")
    return load_catalog(directory)


def _count_rows(path: Path) -> int:
    with path.open(encoding="utf-8", newline="") as file:
        return sum(1 for _ in csv.DictReader(file))


def _place(offer: CloudOffer) -> tuple[str, str, str]:
    return offer.provider, offer.region, offer.instance_type


def _is(offer: CloudOffer, purchase_option: str) -> bool:
    return offer.purchase_option == purchase_option


def test_the_rows_that_the_manual_counts_are_todays() -> None:
    """Rows per table, and the shares read, derived and recalled, as docs/write_catalog_rows.py counts them."""
    docs = DATA.parent / "docs"
    spec = importlib.util.spec_from_file_location("write_catalog_rows", docs / "write_catalog_rows.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (docs / "catalog.md").read_text(encoding="utf-8")
    assert script.page_with_current_rows(page) == page, "run: python docs/write_catalog_rows.py"


def test_links_are_also_told_as_advertised_and_licences_for_geforce_only() -> None:
    """450 GB/s one way is the datasheet's 900 both ways; only GeForce cards carry the note on data centres."""
    assert CATALOG.gpu("H100-80GB-SXM").link_both_ways_gb_per_s == 900
    assert all(bool(gpu.licence_note) is gpu.consumer for gpu in CATALOG.gpus())
