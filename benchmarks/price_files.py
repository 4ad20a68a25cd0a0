"""Seconds and peak memory of importing a price file of 200,000 rows, and of reading its offers for one solve.

Run: python benchmarks/price_files.py [ROWS]
"""

import resource
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from catalog import load_catalog
from catalog.importing import Settings, import_prices, offers_csv

HEADER = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,"
    "provider_data"
)
GPUS = (("H100", "80.0"), ("A100", "80.0"), ("L4", "24.0"), ("RTX4090", "24.0"), ("L40S", "48.0"), ("NoSuchGpu", "1.0"))


def write_rows(path: Path, rows: int) -> None:
    """A spreadsheet's file: byte-order mark, CRLF, thousands separators, regions NA and no, cells of mixed types."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        file.write(f"{HEADER}\r\n")
        for number in range(rows):
            name, memory = GPUS[number % len(GPUS)]
            region = ("NA", "no", "eu-1", "us-2")[number % 4]
            price = '"1,234.50"' if number % 1000 == 7 else f"{1 + number % 977 / 100}"
            count = ("1", "8.0", "4", "x")[number % 4] if number % 50 == 3 else "8"
            word = "sxm" if number % 2 else "pcie"
            node = f"host-{number}-{word},{region},{price},64,512.0"
            file.write(f"{node},{count},{name},{memory},{number % 3 == 0},,nvidia,,x86,{{}}\r\n")


def peak_mb() -> float:
    """Most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(rows: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "prices.csv"), Path(folder, "offers.csv")
        write_rows(source, rows)
        catalog = load_catalog()
        start, work = time.perf_counter(), time.process_time()
        run = import_prices("gpuhunt", source.read_bytes(), Settings("vast", date(2026, 12, 1), "prices.csv"), catalog)
        target.write_text(offers_csv(run), encoding="utf-8")
        size = source.stat().st_size / 1e6
        seconds, of_cpu = time.perf_counter() - start, time.process_time() - work
        print(f"import: {rows:,} rows, {size:.0f} MB, {seconds:.2f} s ({of_cpu:.2f} s of CPU), peak {peak_mb():.0f} MB")
        print(f"  {len(run.rows):,} offers; dropped {run.counts()}")
        del run
        start, work = time.perf_counter(), time.process_time()
        offers = catalog.with_price_files({"offers.csv": target}).offers(["L40S"])
        seconds, of_cpu = time.perf_counter() - start, time.process_time() - work
        print(f"solve: {len(offers):,} offers read, {seconds:.2f} s ({of_cpu:.2f} s of CPU), peak {peak_mb():.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
