"""Mistakes that public price catalogs have made, each with where it was made."""

import pytest

from catalog.importing.basis import Basis
from tests.catalog.import_cases import codes, gpuhunt, imported, info, prices, skypilot


def test_zero_and_missing_prices_are_unknown_not_free():
    """skypilot issues 2496 and 4657: a machine without a price showed 0.00 and won."""
    run = skypilot(
        f"a,L4,1,4,16,,r,{info('L4', 24576)},,",
        f"b,L4,1,4,16,0.0,r,{info('L4', 24576)},,",
        f"c,L4,1,4,16,0.10,r,{info('L4', 24576)},0.00,",
        f"d,L4,1,4,16,-1,r,{info('L4', 24576)},,",
    )
    assert prices(run) == {("c", "on-demand"): 0.10}
    assert codes(run) == ["no-price", "no-price", "no-spot", "no-price"]


def test_memory_of_the_whole_node_is_refused():
    """gpuhunt issue 21: 4 GPUs with 320 GB in the field for one."""
    run = gpuhunt("n,r,10,32,256,4,A100-80GB,320,False,,nvidia,,x86,{}")
    assert codes(run) == ["memory-mismatch"]
    assert "320 is the total of 4" in run.dropped[0].detail


def test_40_and_80_gb_are_not_mixed_up():
    """skypilot-catalog PR 15: Lambda's 80 GB cards marked 40960 MiB."""
    assert codes(skypilot(f"gpu_1x,A100-80GB,1,8,64,1.5,r,{info('A100-80GB', 40960)},,")) == ["memory-mismatch"]
    run = skypilot(
        f"n-sxm4,A100,1,8,64,1.5,r,{info('A100', 40960)},,",
        f"m-sxm4,A100,1,8,64,1.7,r,{info('A100', 81920)},,",
    )  # fmt: skip
    assert [row.gpu_id for row in run.rows] == ["A100-40GB-SXM", "A100-80GB-SXM"]


@pytest.mark.parametrize(
    ("name", "mib", "gpu_id"),
    [
        ("A10G", 22888, "A10G"),
        ("L4", 22888, "L4"),
        ("L40S", 45776, "L40S"),
        ("B200", 183359, "B200-SXM"),
        ("H200-SXM", 144384, "H200-SXM"),
        ("A100-SXM", 80, "A100-80GB-SXM"),
        ("A100-PCIe", 40960, "A100-40GB-PCIe"),
        ("T4", 15360, "T4"),
        ("H100-PCIe", 81559, "H100-80GB-PCIe"),
    ],
)
def test_memory_is_settled_to_the_size_as_sold(name, mib, gpu_id):
    """GiB (40960), decimal GB in MiB (22888, 45776), what drivers report (81559) and plain GB (80) all settle."""
    run = skypilot(f"n,{name},1,8,64,1.5,r,{info(name, mib)},,")
    assert [row.gpu_id for row in run.rows] == [gpu_id]
    assert run.dropped == run.remarks == []


def test_an_l4_of_22_gb_is_an_l4():
    """gpuhunt issue 91: 22 for 24 GB."""
    assert [row.gpu_id for row in gpuhunt("n,r,0.7,4,16,1,L4,22.0,False,,nvidia,,x86,{}").rows] == ["L4"]


def test_wrong_memory_of_a_clear_name_is_kept_and_remarked():
    """gpuhunt says MI325X has 288 GB; it is sold with 256."""
    run = gpuhunt("n,r,16,128,2048,8,MI325X,288,False,,amd,,x86,{}")
    assert [row.gpu_id for row in run.rows] == ["MI325X"]
    assert [note.code for note in run.remarks] == ["memory-differs"]


def test_prices_that_do_not_grow_with_the_gpus():
    """skypilot-catalog PR 44: RunPod's nodes of several GPUs at the price of one."""
    rows = [f"{n}x,L40S,{n},8,64,1.0,r,{info('L40S', 49152, n)},," for n in (1, 2, 8)]
    run = skypilot(*rows)
    assert [row.gpus_per_node for row in run.rows] == [1]
    assert codes(run) == ["price-not-scaled"] * 2


def test_prices_per_gpu_are_multiplied_when_the_file_has_such():
    """Lambda, Nebius, Hyperstack and Crusoe print per GPU: --price-per gpu makes node prices of them."""
    rows = [f"{n}x,L40S,{n},8,64,1.25,r,{info('L40S', 49152, n)},," for n in (1, 8)]
    assert [row.price for row in skypilot(*rows, basis=Basis(per_gpu=True)).rows] == [1.25, 10.0]


def test_more_gpus_than_a_node_holds():
    """skypilot-catalog PR 50: Azure, 12 for 8."""
    assert codes(gpuhunt("n-sxm,r,50,96,1900,12,H100,80,False,,nvidia,,x86,{}")) == ["count-over-node"]


def test_counts_that_disagree():
    """A count in GpuInfo that is not the row's."""
    assert codes(skypilot(f"n-sxm,H100,8,96,1900,50,r,{info('H100', 81920, 4)},,")) == ["count-mismatch"]


def test_the_total_of_gpu_memory_is_never_used():
    """Lambda writes one GPU's memory as total, PrimeIntellect multiplies twice: the field means nothing."""
    gpu = "{'Name': 'A6000', 'Count': 8.0, 'MemoryInfo': {'SizeInMiB': 49152}}"
    text = f"\"{{'Gpus': [{gpu}], 'TotalGpuMemoryInMiB': 7}}\""
    assert [row.gpus_per_node for row in skypilot(f"n,A6000,8.0,8.0,64.0,5.5,r,{text},,").rows] == [8]


def test_gpu_info_as_json_or_not_at_all():
    """JSON, a Python literal, an empty cell and nonsense are all read; nonsense settles nothing."""
    json_text = '"{""Gpus"": [{""Name"": ""A100 PCIe"", ""MemoryInfo"": {""SizeInMiB"": 81920}}]}"'
    run = skypilot(
        f"a,A100,1,8,64,1.5,r,{json_text},,",
        "b,L4,1,8,64,0.5,r,,,",
        "c,L4,1,8,64,0.5,r,__import__('os'),,",
        "d,A100,1,8,64,1.5,r,[[[[,,",
    )
    assert {row.instance_type: row.gpu_id for row in run.rows} == {"a": "A100-80GB-PCIe", "b": "L4", "c": "L4"}
    assert codes(run) == ["ambiguous-gpu"]


def test_spot_equal_to_on_demand_is_no_spot_market():
    """RunPod's file repeats the price."""
    run = skypilot(f"n,L4,1,8,64,1.5,r,{info('L4', 24576)},1.5,")
    assert prices(run) == {("n", "on-demand"): 1.5}
    assert codes(run) == ["spot-is-on-demand"]


def test_spot_dearer_than_on_demand_is_kept_and_said():
    """skypilot issue 4914: it happens, and is no reason to change the figures."""
    run = skypilot(f"n,A40,1,8,64,0.44,r,{info('A40', 49152)},0.49,")
    assert prices(run) == {("n", "on-demand"): 0.44, ("n", "spot"): 0.49}
    assert [note.code for note in run.remarks] == ["spot-dearer"]


def test_the_floor_of_an_auction_is_no_price():
    """skypilot PR 9156: Mithril's bid floor stood as the spot price."""
    run = skypilot(f"n-sxm,H100,8,96,1900,20,r,{info('H100', 81920, 8)},0.08,", provider="mithril")
    assert prices(run) == {("n-sxm", "on-demand"): 20}
    assert codes(run) == ["auction-floor"]


def test_a_commitment_price_of_google_is_left_out():
    """A100-80GB at 1.85 on-demand below its own spot at 1.96: the price of a commitment has leaked."""
    run = skypilot(
        "a2-ultragpu-1g,,,12,170,0.5,us-central1,,0.2,us-central1-a",
        f",A100-80GB,1,,,1.35,us-central1,{info('A100-80GB', 81920)},1.76,us-central1-a",
        provider="gcp",
    )
    assert prices(run) == {("a2-ultragpu-1g", "spot"): pytest.approx(1.96)}
    assert codes(run) == ["commitment-price"]


def test_a_price_far_below_that_of_other_regions():
    """H100 at 4.20 in us-central1 against 9.80 in us-east4: a commitment again; its spot price stays."""
    gpu = info("H100", 81920)
    run = skypilot(
        "a3-highgpu-1g,,,26,234,1.18,us-central1,,0.27,us-central1-a",
        "a3-highgpu-1g,,,26,234,1.18,us-east4,,0.27,us-east4-a",
        f",H100,1,,,4.20,us-central1,{gpu},2.24,us-central1-a",
        f",H100,1,,,9.80,us-east4,{gpu},2.24,us-east4-a",
        provider="gcp",
    )
    found = {(row.region, row.purchase_option): row.price for row in run.rows}
    assert found == {
        ("us-central1", "spot"): pytest.approx(2.51),
        ("us-east4", "on-demand"): pytest.approx(10.98),
        ("us-east4", "spot"): pytest.approx(2.51),
    }
    assert codes(run) == ["commitment-price"]


def test_an_assumed_spot_price_is_remarked():
    """gpuhunt takes OCI's spot price for half of on-demand and flags it so."""
    row = "VM.GPU.A10.1,us-ashburn-1,{},30,240,1,A10,24,{},,nvidia,{},x86,{{}}"
    run = gpuhunt(row.format(2.0, False, ""), row.format(1.0, True, "oci-spot"), provider="oci")
    assert len(run.rows) == 2
    assert [note.code for note in run.remarks] == ["spot-assumed"]


@pytest.mark.parametrize(
    ("name", "gpu_id"),
    [
        ("H100-MEGA", "H100-80GB-SXM"),
        ("H100-NVL", "H100-94GB-NVL"),
        ("H100NVL", "H100-94GB-NVL"),
        ("A6000", "RTX-A6000"),
        ("RTXA6000", "RTX-A6000"),
        ("RTX6000-Ada", "RTX-6000-Ada"),
        ("RTXPRO6000SE", "RTX-PRO-6000-SE"),
        ("NVIDIA H100 NVL", "H100-94GB-NVL"),
    ],
)
def test_one_gpu_has_many_names(name, gpu_id):
    """What SkyPilot, gpuhunt and vendors call a GPU goes through the alias table."""
    assert [row.gpu_id for row in gpuhunt(f"n,r,2.5,8,64,1,{name},,False,,nvidia,,x86,{{}}").rows] == [gpu_id]


def test_gpus_without_a_machine_type_of_their_own():
    """A T4 goes into the cheapest N1 machine of its zone that can feed it, and the sum is told."""
    run = skypilot(
        "n1-standard-2,,,2,7.5,0.095,us-central1,,0.02,us-central1-a",
        "n1-standard-4,,,4,15,0.19,us-central1,,0.04,us-central1-a",
        "n1-standard-8,,,8,30,0.38,us-central1,,0.08,us-central1-a",
        f",T4,1,,,0.35,us-central1,{info('T4', 16384)},,us-central1-a",
        provider="gcp",
    )
    assert prices(run) == {("n1-standard-4+1xT4", "on-demand"): pytest.approx(0.54)}
    assert [note.code for note in run.remarks] == ["summed"]


def test_the_price_of_one_gpu_times_sixteen():
    """gcpinstances.info issue 8: 16 GPUs at 2.00 and a machine at 8.80 cost 40.80."""
    run = skypilot(
        "a2-megagpu-16g,,,96,1360,8.80,r,,,r-a",
        f",A100,1,,,2.00,r,{info('A100', 40960)},,r-a",
        provider="gcp",
    )
    assert [(row.gpus_per_node, row.price) for row in run.rows] == [(16, pytest.approx(40.80))]


def test_tpu_slices_are_nodes_of_their_chips():
    """A slice counts as one in a file: `v5p-8` is named after TensorCores and has four chips, `v5litepod-8` eight."""
    run = gpuhunt(
        "a,r,16.8,208,448,1,v5p-8,95,False,,google,,x86,{}",
        "b,r,9.6,224,384,1,tpu-v5litepod-8,,False,,,,x86,{}",
        "c,r,10.8,180,720,1,v6e-4,128,True,,google,,x86,{}",
    )
    found = [(row.gpu_id, row.gpus_per_node, row.price) for row in run.rows]
    assert found == [("TPU-v5p", 4, 16.8), ("TPU-v5e", 8, 9.6), ("TPU-v6e", 4, 10.8)]


def test_tpu_slices_that_are_no_node_of_the_catalog():
    """Other generations, slices over several hosts, a count or memory that contradicts, and another vendor's."""
    run = gpuhunt(
        "a,r,4.5,96,334,1,v2-8,64,False,,google,,x86,{}",
        "b,r,19.2,224,384,1,v5litepod-16,256,False,,google,,x86,{}",
        "c,r,9.6,224,384,4,v5litepod-8,128,False,,google,,x86,{}",
        "d,r,9.6,224,384,1,v5litepod-8,80,False,,google,,x86,{}",
        "e,r,9.6,224,384,1,v5litepod-8,128,False,,nvidia,,x86,{}",
    )
    assert codes(run) == ["tpu", "tpu-slice", "count-mismatch", "memory-mismatch", "vendor-mismatch"]


def test_tpus_of_google_come_with_their_host():
    """SkyPilot lists a slice without a machine: nothing is added to its price, and one at 0.00 has none."""
    run = skypilot(
        "n1-standard-8,,,8,30,0.38,us-east5,,0.08,us-east5-a",
        ",tpu-v5p-8,1,,,16.8,us-east5,,6.72,us-east5-a",
        ",tpu-v6e-8,1,,,0,us-east5,,0,us-east5-b",
        provider="gcp",
    )
    assert prices(run) == {("v5p-8", "on-demand"): 16.8, ("v5p-8", "spot"): 6.72}
    assert codes(run) == ["no-price", "no-spot"]


def test_placeholders_are_no_prices():
    """SkyPilot writes 700.0 for TPUs whose price it does not know, of one chip as of 256."""
    run = skypilot(
        ",tpu-v6e-1,1,,,700.0,asia-east1,tpu-v6e-1,700.0,asia-east1-c",
        ",tpu-v6e-8,1,,,21.6,southamerica-west1,tpu-v6e-8,700.0,southamerica-west1-a",
        ",tpu-v6e-16,1,,,43.2,us-east1,tpu-v6e-16,8.70733,us-east1-d",
        provider="gcp",
    )
    assert prices(run) == {("v6e-8", "on-demand"): 21.6}
    assert codes(run) == ["placeholder", "placeholder", "tpu-slice"]


@pytest.mark.parametrize(("name", "vendor"), [("MI300X", "nvidia"), ("H100", "amd"), ("Gaudi2", "google")])
def test_a_vendor_that_does_not_make_the_gpu(name, vendor):
    """An H100 of AMD is a mistake in one of two columns: the row is dropped and the reason told."""
    run = gpuhunt(f"n,r,2.5,8,64,1,{name},,False,,{vendor},,x86,{{}}")
    assert codes(run) == ["vendor-mismatch"]
    assert f'"{name}" of {vendor}' in run.dropped[0].detail


def test_unknown_gpus_are_listed_with_what_they_resemble():
    """A name that is not in the catalog is dropped and named, with the nearest ids."""
    run = gpuhunt(
        "a,r,1,8,64,1,RTX4091,24,False,,nvidia,,x86,{}",
        "b,r,1,8,64,1,NPU-7,24,False,,nvidia,,x86,{}",
    )
    assert codes(run) == ["unknown-gpu"] * 2
    assert "RTX-4090" in run.dropped[0].detail


def test_the_turing_rtx_6000_is_not_the_ada_one():
    """RTX6000 of 24 GB (Turing) is neither RTX 6000 Ada nor RTX PRO 6000."""
    assert codes(gpuhunt("a,r,1,8,64,1,RTX6000,24,False,,nvidia,,x86,{}")) == ["memory-mismatch"]


def test_names_are_settled_by_form_factor_and_node_type():
    """ "H100" is told by a word of the node's name or by the provider's node types, else dropped with the choices."""
    run = gpuhunt(
        "gpu_1x_h100_pcie,r,3.29,26,225,1,H100,80,False,,nvidia,,x86,{}",
        "gpu_8x_h100_sxm5,r,31.9,208,1800,8,H100,80,False,,nvidia,,x86,{}",
        "gpu_8x_h100,r,31.9,208,1800,8,H100,80,False,,nvidia,,x86,{}",
    )
    assert [row.gpu_id for row in run.rows] == ["H100-80GB-PCIe", "H100-80GB-SXM"]
    assert codes(run) == ["ambiguous-gpu"]
    assert "H100-80GB-PCIe or H100-80GB-SXM" in run.dropped[0].detail
    node = gpuhunt("p5.48xlarge,us-east-1,55.04,192,2048,8,H100,80,False,,nvidia,,x86,{}", provider="aws")
    assert [row.gpu_id for row in node.rows] == ["H100-80GB-SXM"]


def test_rows_without_gpu_and_fractions_of_one():
    """CPU rows and slices of a GPU are no offers of GPUs."""
    run = skypilot("m5,,,2,8,0.1,r,,,", "nv6,A10,0.1667,6,55,0.45,r,,,", "x,L4,,4,16,0.5,r,,,")
    assert codes(run) == ["no-gpu", "fraction-of-gpu", "no-count"]


def test_the_same_offer_twice():
    """skypilot issue 1367: rows repeated; at two prices the dearer stands, of zones the cheapest, and all is told."""
    run = skypilot(
        f"n,L4,1,8,64,0.5,r,{info('L4', 24576)},,",
        f"n,L4,1,8,64,0.5,r,{info('L4', 24576)},,",
        f"n,L4,1,8,64,0.7,r,{info('L4', 24576)},,",
        f"m,L4,1,8,64,0.9,r,{info('L4', 24576)},,r-a",
        f"m,L4,1,8,64,0.8,r,{info('L4', 24576)},,r-b",
    )  # fmt: skip
    assert prices(run) == {("n", "on-demand"): 0.7, ("m", "on-demand"): 0.8}
    assert codes(run) == ["conflict", "duplicate", "zone"]
    assert next(row for row in run.rows if row.instance_type == "m").notes == "zone r-b"


def test_flags_that_tell_tiers_apart_become_part_of_the_name():
    """dstack issue 1886: the same node in two tiers is two offers, told apart by their names."""
    run = gpuhunt(
        "n,r,0.98,8,64,1,RTX4090,24,False,,nvidia,community,x86,{}",
        "n,r,1.52,8,64,1,RTX4090,24,False,,nvidia,secure,x86,{}",
    )
    assert prices(run) == {("n (community)", "on-demand"): 0.98, ("n (secure)", "on-demand"): 1.52}


def test_a_table_of_ones_own():
    """Our header needs gpu and price; per says what the price is for; other currencies and slips are dropped."""
    run = imported(
        "csv",
        "gpu,gpus_per_node,price,per,region,purchase_option,term_months,currency,priced_on\n"
        "H100 SXM,8,2.10,gpu,NA,reserved,12,USD,2026-10-01\n"
        "L4,1,0.60,node,no,,,,\n"
        "L4,1,0.55,node,x,on demand,,EUR,\n"
        "L4,1,0.55,node,x,sometimes,,,\n"
        "L4,1,0.55,node,x,reserved,,,\n"
        "L4,1,0.55,node,x,,,,soon\n"
        "L4,1,0.55,node,x,,,,2999-01-01\n",
    )  # fmt: skip
    assert [(row.gpu_id, row.region, row.purchase_option, row.price) for row in run.rows] == [
        ("H100-80GB-SXM", "NA", "reserved", 16.8),
        ("L4", "no", "on-demand", 0.6),
    ]
    assert codes(run) == ["currency", *["unreadable"] * 4]


def test_a_table_with_other_headings():
    """A map gives our columns their names in the file; tabs and semicolons separate as well."""
    run = imported("csv", "Karte;Anzahl;Preis\nRTX 4090;2;0,90\nRTX 4090;2;1.90\n", columns=(
        ("gpu", "Karte"), ("gpus_per_node", "Anzahl"), ("price", "Preis"),
    ))  # fmt: skip
    assert [(row.gpu_id, row.gpus_per_node, row.price) for row in run.rows] == [("RTX-4090", 2, 1.9)]
    assert codes(run) == ["unreadable"]
