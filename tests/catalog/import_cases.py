"""Small price files for the tests of imports."""

from datetime import date
from pathlib import Path

from catalog.importing import ImportRun, Settings, import_prices
from catalog.load import load_catalog

SAMPLES = Path(__file__).parent / "samples"
CATALOG = load_catalog()
DAY = date(2026, 11, 9)
SKYPILOT = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice,AvailabilityZone"
)
GPUHUNT = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,"
    "provider_data"
)


def imported(form: str, data: bytes | str, provider: str = "acme", **settings: object) -> ImportRun:
    raw = data.encode() if isinstance(data, str) else data
    return import_prices(form, raw, Settings(provider, DAY, "prices.csv", **settings), CATALOG)


def sample(name: str, provider: str) -> ImportRun:
    return imported(name.split("_")[0], (SAMPLES / f"{name}.csv").read_bytes(), provider)


def skypilot(*rows: str, provider: str = "acme", **settings: object) -> ImportRun:
    return imported("skypilot", "\n".join((SKYPILOT, *rows)), provider, **settings)


def gpuhunt(*rows: str, provider: str = "acme", **settings: object) -> ImportRun:
    return imported("gpuhunt", "\n".join((GPUHUNT, *rows)), provider, **settings)


def info(name: str, mib: float, count: float = 1) -> str:
    """A quoted GpuInfo cell as SkyPilot writes it."""
    gpu = {"Name": name, "Manufacturer": "NVIDIA", "Count": count, "MemoryInfo": {"SizeInMiB": mib}}
    return f'"{ {"Gpus": [gpu], "TotalGpuMemoryInMiB": mib * count} }"'


def prices(run: ImportRun) -> dict[tuple[str, str], float]:
    return {(row.instance_type, row.purchase_option): row.price for row in run.rows}


def codes(run: ImportRun) -> list[str]:
    return [note.code for note in run.dropped]
