"""Ambiguous GPU names of price files and measurements, settled by memory, form factor and instance type."""

import pytest

from catalog import AmbiguousNameError, GpuMismatchError, UnknownNameError, load_catalog

CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("name", "memory_gb", "form_factor", "instance_type", "gpu_id"),
    [
        ("A100", 80, "SXM4", None, "A100-80GB-SXM"),
        ("A100", 40, "PCIe", None, "A100-40GB-PCIe"),
        ("A100", None, None, "p4de.24xlarge", "A100-80GB-SXM"),
        ("A100", 80, None, "Standard_NC24ads_A100_v4", "A100-80GB-PCIe"),
        ("H100", 94, None, None, "H100-94GB-NVL"),
        ("H100", 80, None, "gpu_1x_h100_pcie", "H100-80GB-PCIe"),
        ("H100", 80, None, "gpu_8x_h100_sxm5", "H100-80GB-SXM"),
        ("H200", 141, "NVL", None, "H200-NVL"),
        ("V100", 32, None, None, "V100-32GB-SXM2"),
        ("RTX 6000", 48, None, None, "RTX-6000-Ada"),
        ("L4", 22, None, None, "L4"),
        ("B200", 192, None, None, "B200-SXM"),
        ("T4", None, None, None, "T4"),
    ],
)
def test_what_a_row_says_settles_its_gpu(
    name: str, memory_gb: float | None, form_factor: str | None, instance_type: str | None, gpu_id: str
) -> None:
    """Memory of one GPU as sold or as a driver shows it, the socket, and the names of clouds' nodes."""
    assert CATALOG.resolve_gpu(name, memory_gb, form_factor, instance_type) == gpu_id


def test_what_stays_open_is_refused_with_the_choices_left() -> None:
    """80 GB leave two of the four A100; a guess would be wrong by a third of the bandwidth."""
    with pytest.raises(AmbiguousNameError) as caught:
        CATALOG.resolve_gpu("A100", memory_gb=80)
    assert caught.value.choices == ("A100-80GB-PCIe", "A100-80GB-SXM")


@pytest.mark.parametrize(("name", "memory_gb"), [("A100", 24), ("L40S", 384), ("T4", 24)])
def test_a_contradiction_is_told_with_the_sizes_sold(name: str, memory_gb: float) -> None:
    """An A100 of 24 GB is another GPU or a mistake, 384 GB the total of eight (B005)."""
    with pytest.raises(GpuMismatchError, match=rf"'{name}' with {memory_gb} GB is none of .*GB\)"):
        CATALOG.resolve_gpu(name, memory_gb)


def test_an_unknown_name_gets_suggestions() -> None:
    """Nothing that is said of it can settle a name the catalog does not know."""
    with pytest.raises(UnknownNameError, match="did you mean"):
        CATALOG.resolve_gpu("RTX-4091", memory_gb=24)


# Every way in which published measurements write a GPU.
MEASURED = {
    "A100-SXM-80GB": "A100-80GB-SXM",
    "A100-SXM-40GB": "A100-40GB-SXM",
    "A100-PCIe-80GB": "A100-80GB-PCIe",
    "H100-SXM-80GB": "H100-80GB-SXM",
    "H100-PCIe-80GB": "H100-80GB-PCIe",
    "H100-NVL-94GB": "H100-94GB-NVL",
    "H100-SXM-96GB-HBM2e-500W": "H100-96GB-SXM",
    "H800": "H800-SXM",
    "H200-SXM-141GB": "H200-SXM",
    "H200-NVL-141GB": "H200-NVL",
    "GH200-144GB": "GH200-144GB",
    "B200-SXM-180GB": "B200-SXM",
    "B300": "B300-SXM",
    "GB200": "GB200",
    "GB300": "GB300",
    "L40S-48GB": "L40S",
    "L4-24GB": "L4",
    "A40-48GB": "A40",
    "A10G-24GB": "A10G",
    "A10G": "A10G",
    "RTX-3090-24GB": "RTX-3090",
    "RTX-4090-24GB": "RTX-4090",
    "RTX-5090-32GB": "RTX-5090",
    "RTX-A6000-48GB": "RTX-A6000",
    "RTX-6000-Ada-48GB": "RTX-6000-Ada",
    "RTX-PRO-6000-BSE-96GB": "RTX-PRO-6000-SE",
    "MI300X": "MI300X",
    "MI325X": "MI325X",
}


@pytest.mark.parametrize(("name", "gpu_id"), MEASURED.items())
def test_names_of_measurement_sets_are_known(name: str, gpu_id: str) -> None:
    """Benchmarks write size and socket in an order of their own."""
    assert CATALOG.gpu_id(name) == gpu_id


@pytest.mark.parametrize(
    ("name", "count"), [("RTX-PRO-6000-Blackwell", 2), ("A100", 4), ("A100-80GB", 2), ("V100", 3), ("unstated", 0)]
)
def test_names_that_measurements_leave_open(name: str, count: int) -> None:
    """Two sets do not say which variant they ran on; one does not say the GPU at all."""
    assert len(CATALOG.gpu_candidates(name)) == count
