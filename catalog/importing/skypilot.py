"""SkyPilot's catalogs (`vms.csv` of a cloud): a row is an instance with its on-demand and its spot price.

Google Cloud's file holds machines without GPU and GPUs without machine: each GPU price is added to the machine types
that carry it (`gcp_machines.csv`), or to the smallest N1 machine for GPUs that are attached.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from catalog.importing.cells import gpu_info, number, optional_number, whole_count
from catalog.importing.names import Clues, GpuMatcher
from catalog.importing.offers import ImportRun, PriceRow
from catalog.importing.tables import Row, TextTable
from catalog.memory_sizes import sizes_of_mib
from catalog.names_of_nodes import read_facts
from catalog.tpu_slices import tpu_slice

REQUIRED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
OPTIONAL = ("SpotPrice", "vCPUs", "MemoryGiB", "GpuInfo", "AvailabilityZone")
AUCTIONS = ("mithril", "akash")
"""Providers whose published spot price is the floor of an auction (skypilot-org/skypilot PR 9156)."""
RAM_MISSTATED = ("runpod",)
"""Providers whose host memory was filled with that of the GPUs (skypilot-org/skypilot PR 6824)."""
SPLIT_CLOUD = "gcp"
PLACEHOLDER_USD = 700.0
"""What stands for a TPU's price that is not known, whatever the size of the slice (catalogs/v8/gcp/vms.csv)."""
LEAST_SHARE_OF_DEAREST = 0.5
"""On-demand prices of regions differ by a third at most; below half of the dearest it is the price of a commitment."""
LEAST_HOST_VCPUS = 4
LEAST_HOST_GIB_PER_GPU = 15


@dataclass(slots=True)
class _Line:
    """A row of the file; prices are None where there is none."""

    line: int
    instance: str
    accelerator: str
    count: float | None
    price: float | None
    spot: float | None
    region: str
    zone: str
    vcpus: float | None
    ram_gib: float | None
    info: str


def read_skypilot(table: TextTable, matcher: GpuMatcher, run: ImportRun) -> None:
    """Add the offers of a SkyPilot catalog to `run`."""
    places = table.columns(REQUIRED, OPTIONAL)
    hosts: list[_Line] = []
    gpus: list[_Line] = []
    split = run.settings.provider == SPLIT_CLOUD
    for number_of_line, cells in table.rows:
        line = _line(number_of_line, cells, places, len(table.header), run)
        if line is None:
            continue
        if not line.accelerator:
            _without_gpu(line, hosts, run, split=split)
        elif split and tpu_slice(line.accelerator):
            _add_slice(line, matcher, run)
        elif split and not line.instance:
            gpus.append(line)
        else:
            _add(line, matcher, run)
    if split:
        _add_split(hosts, gpus, matcher, run)


def _line(number_of_line: int, cells: Row, places: Mapping[str, int], width: int, run: ImportRun) -> _Line | None:
    run.lines_read += 1
    if len(cells) != width:
        run.drop(number_of_line, "ragged", f"{len(cells)} cells, the header has {width}")
        return None

    def cell(name: str) -> str:
        place = places.get(name)
        return "" if place is None else cells[place].strip()

    try:
        count, price, spot = number(cell("AcceleratorCount")), number(cell("Price")), number(cell("SpotPrice"))
    except ValueError as error:
        run.drop(number_of_line, "unreadable", str(error))
        return None
    return _Line(
        number_of_line, cell("InstanceType"), cell("AcceleratorName"), count, price, spot, cell("Region"),
        cell("AvailabilityZone"), optional_number(cell("vCPUs")), optional_number(cell("MemoryGiB")), cell("GpuInfo"),
    )  # fmt: skip


def _without_gpu(line: _Line, hosts: list[_Line], run: ImportRun, *, split: bool) -> None:
    if split and (line.instance in _machines() or line.instance.startswith("n1-")):
        hosts.append(line)
    else:
        run.drop(line.line, "no-gpu", line.instance)


def _add_slice(line: _Line, matcher: GpuMatcher, run: ImportRun) -> None:
    """The offers of a TPU slice: its price holds the host."""
    price, spot = (None if one == PLACEHOLDER_USD else one for one in (line.price, line.spot))
    if (price, spot) != (line.price, line.spot):
        run.drop(line.line, "placeholder", f"{line.accelerator} in {line.zone or line.region}: {PLACEHOLDER_USD:g}")
    if price is not None or spot is not None or (line.price is None and line.spot is None):
        instance = line.accelerator.removeprefix("tpu-")
        _add(replace(line, instance=instance, price=price, spot=spot), matcher, run)


def _add(line: _Line, matcher: GpuMatcher, run: ImportRun, notes: str = "") -> None:
    """The offers of one row, if its GPU can be told."""
    count = _count(line, run)
    if count is None:
        return
    info_name, info_mib, _ = gpu_info(line.info)
    sizes = () if info_mib is None else sizes_of_mib(info_mib)
    match = matcher.match(Clues(line.accelerator, sizes, line.instance, count, info_name))
    if match.code:
        run.drop(line.line, match.code, match.detail)
        return
    if match.remark:
        run.remark(line.line, "memory-differs", match.remark)
    ram_gib = line.ram_gib
    if run.settings.provider in RAM_MISSTATED and ram_gib in (info_mib, *(count * size for size in sizes)):
        run.remark(line.line, "ram-of-gpus", f"{line.instance}: {ram_gib:g}")
        ram_gib = None
    base = PriceRow(
        line.line, line.region, line.zone, line.instance, match.gpu_id, match.count, "on-demand", 0.0, line.vcpus,
        ram_gib, notes,
    )  # fmt: skip
    _add_prices(base, line, run)


def _count(line: _Line, run: ImportRun) -> int | None:
    count = whole_count(line.count)
    if count is None:
        said = "no count" if line.count is None else f"{line.count:g}"
        code = "fraction-of-gpu" if line.count is not None and line.count > 0 else "no-count"
        run.drop(line.line, code, f"{said} of {line.accelerator} on {line.instance}")
        return None
    info_count = gpu_info(line.info)[2]
    if info_count is not None and info_count != count:
        detail = f"AcceleratorCount {count}, GpuInfo {info_count:g} on {line.instance}"
        run.drop(line.line, "count-mismatch", detail)
        return None
    return count


def _add_prices(base: PriceRow, line: _Line, run: ImportRun) -> None:
    price, spot = line.price, line.spot
    if price is not None and price > 0:
        run.rows.append(base.with_price("on-demand", price))
    elif spot is None or price is not None:
        run.drop(line.line, "no-price", f"{base.instance_type or line.accelerator}: {_said(price)}")
    if spot is None:
        return
    if spot <= 0:
        run.drop(line.line, "no-spot", f"{base.instance_type}: {spot:g}")
    elif run.settings.provider in AUCTIONS:
        run.drop(line.line, "auction-floor", f"{base.instance_type}: {spot:g}")
    else:
        run.rows.append(base.with_price("spot", spot))


def _said(price: float | None) -> str:
    return "no price" if price is None else f"{price:g}"


# --- Google Cloud: machines and GPUs apart ----------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _machines() -> dict[str, tuple[str, int]]:
    """Machine types that come with GPUs: the accelerator's name in SkyPilot's file, and how many."""
    return {row["machine_type"]: (row["accelerator"], int(row["gpus"])) for row in read_facts("gcp_machines.csv")}


def _add_split(hosts: list[_Line], gpus: list[_Line], matcher: GpuMatcher, run: ImportRun) -> None:
    dearest: dict[tuple[str, float | None], float] = {}
    for priced in gpus:
        kind = (priced.accelerator, priced.count)
        dearest[kind] = max(dearest.get(kind, 0.0), priced.price or 0.0)
    gpus = [_without_commitment(one, dearest[one.accelerator, one.count], run) for one in gpus]
    prices = {(gpu.accelerator, gpu.count, gpu.zone or gpu.region): gpu for gpu in gpus}
    used: set[int] = set()
    attachable: dict[str, list[_Line]] = {}
    for host in hosts:
        if host.instance not in _machines():
            attachable.setdefault(host.zone or host.region, []).append(host)
            continue
        accelerator, count = _machines()[host.instance]
        gpu = _gpu_price(prices, accelerator, count, host.zone or host.region)
        if gpu is None:
            detail = f"{host.instance} in {host.zone or host.region} needs {count} × {accelerator}"
            run.drop(host.line, "host-without-gpu", detail)
            continue
        used.add(gpu.line)
        _add_sum(host, gpu, count, matcher, run)
    carried = {accelerator for accelerator, _ in _machines().values()}
    for gpu in gpus:
        if gpu.line not in used:
            near = () if gpu.accelerator in carried else attachable.get(gpu.zone or gpu.region, ())
            _attach(gpu, near, matcher, run)


def _without_commitment(gpu: _Line, dearest: float, run: ImportRun) -> _Line:
    """The price row of GPUs without an on-demand price that is far below that of other regions."""
    if gpu.price is None or gpu.price >= LEAST_SHARE_OF_DEAREST * dearest or gpu.price <= 0:
        return gpu
    detail = f"{_said(gpu.count)} × {gpu.accelerator} in {gpu.region}: {gpu.price:g}, elsewhere {dearest:g}"
    run.drop(gpu.line, "commitment-price", detail)
    return replace(gpu, price=None)


def _gpu_price(prices: Mapping[tuple[str, float | None, str], _Line], name: str, count: int, zone: str) -> _Line | None:
    """The price row of that many GPUs, else of one."""
    return prices.get((name, float(count), zone)) or prices.get((name, 1.0, zone))


def _attach(gpu: _Line, hosts: Iterable[_Line], matcher: GpuMatcher, run: ImportRun) -> None:
    """Put GPUs that are no part of a machine type into the cheapest N1 machine that can feed them."""
    count = whole_count(gpu.count) or 1
    least_gib = LEAST_HOST_GIB_PER_GPU * count
    able = [one for one in hosts if (one.vcpus or 0) >= LEAST_HOST_VCPUS and (one.ram_gib or 0) >= least_gib]
    host = min(able, key=lambda one: (one.price or float("inf"), one.instance), default=None)
    if host is None:
        detail = f"{_said(gpu.count)} × {gpu.accelerator} in {gpu.zone or gpu.region}"
        run.drop(gpu.line, "gpu-without-host", detail)
        return
    _add_sum(host, gpu, count, matcher, run, f"{host.instance}+{count}x{gpu.accelerator}")


def _add_sum(
    host: _Line, gpu: _Line, count: int, matcher: GpuMatcher, run: ImportRun, instance: str | None = None
) -> None:
    """One offer from a machine and its GPUs; with the price of one GPU, times the count."""
    times = 1 if gpu.count == count else count
    price, spot = _sum(host.price, gpu.price, times), _sum(host.spot, gpu.spot, times)
    notes = f"machine {_said(host.price)} + GPUs {times} × {_said(gpu.price)} (file line {gpu.line})"
    run.remark(host.line, "summed" if times == 1 else "scaled", f"{instance or host.instance}: {notes}")
    if price is not None and spot is not None and price < spot:
        detail = f"{host.instance}: on-demand {price:g}, spot {spot:g}"
        run.drop(gpu.line, "commitment-price", detail)
        price = None
    whole = _Line(
        host.line, instance or host.instance, gpu.accelerator, float(count), price, spot, host.region, host.zone,
        host.vcpus, host.ram_gib, "" if times > 1 else gpu.info,
    )  # fmt: skip
    _add(whole, matcher, run, notes)


def _sum(host: float | None, gpu: float | None, times: int) -> float | None:
    """Both prices together; None where either is missing or 0."""
    if not host or not gpu:
        return None
    return round(host + times * gpu, 6)
