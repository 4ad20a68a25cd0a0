"""The problem of a large buyer, drawn from a seed: the yardstick of the decomposition.

Five services of four request classes, twelve GPU types with six ways of paying each, 36 months in quarters with 48
hours of a week, three jobs, budgets of money and power. Terms are charged whole. Prices are drawn around typical ones
(figures of no provider): read nothing about GPUs into the plans.

    python benchmarks/large_buyer.py [--seeds 1,2,3,4,5] [--time-limit 300] [--threads 2] [--double services]

The relaxed gap is that of rents and replicas in parts (the fleet in whole nodes), with the seconds after which it was
known; the gap after it is that of the plan in whole nodes and replicas against the bound on any plan.
"""

import argparse
import json
import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

GPUS: dict[str, tuple[float, float, float]] = {
    # GPU: on-demand price per GPU-hour, price of a card in a server, kW per card of a server
    "L4": (0.60, 4_000, 0.13),
    "A10": (0.75, 4_500, 0.22),
    "RTX-4090": (0.55, 4_500, 0.62),
    "RTX-5090": (0.85, 5_500, 0.78),
    "RTX-6000-Ada": (1.10, 10_500, 0.45),
    "L40S": (1.25, 11_500, 0.50),
    "A100-40GB-SXM": (1.40, 13_000, 0.65),
    "A100-80GB-SXM": (1.80, 18_000, 0.80),
    "H100-80GB-SXM": (2.90, 34_000, 1.27),
    "H200-SXM": (3.60, 40_000, 1.30),
    "B200-SXM": (6.50, 62_000, 1.75),
    "MI300X": (3.40, 32_000, 1.20),
}
MORE_GPUS: dict[str, tuple[float, float, float]] = {
    "A10G": (0.85, 4_500, 0.24),
    "A40": (0.70, 7_000, 0.42),
    "RTX-3090": (0.35, 2_500, 0.52),
    "RTX-A6000": (0.85, 7_500, 0.42),
    "RTX-PRO-6000-SE": (1.80, 15_000, 0.75),
    "L40": (1.15, 11_000, 0.42),
    "V100-32GB-SXM2": (0.60, 5_000, 0.42),
    "A100-40GB-PCIe": (1.30, 11_500, 0.40),
    "A100-80GB-PCIe": (1.65, 16_000, 0.45),
    "H100-80GB-PCIe": (2.40, 28_000, 0.55),
    "H100-94GB-NVL": (2.60, 31_000, 0.60),
    "H200-NVL": (3.20, 36_000, 0.75),
}
EIGHT_PER_NODE = {"A100-40GB-SXM", "A100-80GB-SXM", "H100-80GB-SXM", "H200-SXM", "B200-SXM", "MI300X"}
Service = tuple[str, str, float]
"""Name, model, requests per second at the first month's mean."""
SERVICES: tuple[Service, ...] = (
    ("chat", "llama-3.1-70b", 280),
    ("assistant", "qwen2.5-32b", 360),
    ("completion", "qwen2.5-7b", 1600),
    ("search", "llama-3.1-8b", 2000),
    ("drafts", "qwen2.5-14b", 700),
)
MORE_SERVICES: tuple[Service, ...] = (
    ("support", "llama-3.1-8b", 1200),
    ("review", "qwen2.5-32b", 240),
    ("translate", "qwen2.5-7b", 1400),
    ("tutor", "qwen2.5-14b", 480),
    ("analyst", "llama-3.1-70b", 160),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How large the problem is."""

    services: int = 1
    gpu_types: int = 1
    monthly: bool = False
    redundancy: bool = True


def large_buyer(seed: int, size: Size = Size()) -> dict[str, Any]:
    """The problem as the data of a problem file."""
    draw = random.Random(seed)
    gpus = GPUS | (MORE_GPUS if size.gpu_types > 1 else {})
    services = SERVICES + (MORE_SERVICES if size.services > 1 else ())
    return {
        "name": f"Platform {seed}",
        "horizon": {"months": 36, "periods": "monthly" if size.monthly else "quarterly"},
        "finance": {"discount_rate": 0.08},
        "site": {"electricity": 0.11, "pue": 1.35, "hosting": 140, "power_limit_it": f"{600 * size.services} kW"},
        "workloads": [*_services(draw, services, size), *_jobs()],
        "options": {
            "catalog": False,
            "quotes": [q for gpu, facts in gpus.items() for q in _quotes(draw, gpu, *facts)],
        },
        "limits": {"capex": 6_000_000 * size.services, "spot_share": 0.3},
    }


def _services(draw: random.Random, services: tuple[Service, ...], size: Size) -> Iterator[dict[str, Any]]:
    for name, model, rate in services:
        yield {
            "name": name,
            "kind": "service",
            "model": model,
            "weights": "fp8",
            "kv": "fp8",
            "traffic": {
                "mean_requests_per_s": round(rate * draw.uniform(0.8, 1.25), 3),
                "profile": _profile(draw),
                "growth": f"{draw.uniform(0.0, 3.0):.2f} %/month",
            },
            "classes": [
                {"name": "short", "share": 0.5, "input": 300, "output": 120},
                {"name": "medium", "share": 0.3, "input": 1200, "output": 250},
                {"name": "long", "share": 0.15, "input": 4000, "output": 400},
                {"name": "document", "share": 0.05, "input": 12000, "output": 600},
            ],
            "latency": {"p95_ttft": "4 s", "p95_tpot": "80 ms"},
            **({"redundancy": "n+1"} if name == "chat" and size.redundancy else {}),
        }


def _profile(draw: random.Random) -> list[float]:
    """48 hours: a day with a peak somewhere, a quieter weekend, no two hours alike."""
    peak, floor, weekend = draw.randint(10, 20), draw.uniform(0.15, 0.5), draw.uniform(0.3, 0.9)
    hours = []
    for day in (1.0, weekend):
        for hour in range(24):
            distance = min((hour - peak) % 24, (peak - hour) % 24) / 12
            hours.append(round(day * (floor + (1 - floor) * (1 - distance) ** 1.5) * draw.uniform(0.93, 1.07), 4))
    return hours


def _jobs() -> list[dict[str, Any]]:
    return [
        {"name": "pretrain", "kind": "training", "model": "llama-3.1-8b", "tokens": 300e9, "sequence": 4096,
         "start": "month 7", "deadline": "60 days", "min_gpus": 16},
        {"name": "adaptation", "kind": "finetune", "method": "lora", "model": "llama-3.1-8b", "tokens": 10e9,
         "start": "month 13", "deadline": "5 days"},
        {"name": "backfill", "kind": "batch", "model": "qwen2.5-14b", "weights": "fp8", "start": "month 19",
         "deadline": "90 days", "requests": {"count": 60_000_000, "input": 2000, "output": 200}},
    ]  # fmt: skip


def _quotes(draw: random.Random, gpu: str, hourly: float, card: float, kw: float) -> Iterator[dict[str, Any]]:
    """Six ways of paying: owned, one and three years, on demand in large and single nodes, spot."""
    hourly *= draw.uniform(0.85, 1.15)
    size = 8 if gpu in EIGHT_PER_NODE else 4
    common = {"gpu": gpu, "gpus_per_node": size, "date": "2026-11-01"}
    node = hourly * size
    yield {**common, "name": f"{gpu} owned", "purchase": "owned", "lead_time": "3 months", "maintenance": 0.05,
           "price": round(card * size * draw.uniform(1.25, 1.45)), "power": f"{kw * size:.2f} kW"}  # fmt: skip
    for term, share in ((12, draw.uniform(0.64, 0.74)), (36, draw.uniform(0.46, 0.56))):
        yield {**common, "name": f"{gpu} {term} months", "provider": "cloud-a", "purchase": "reserved",
               "term": f"{term} months", "price": f"{node * share:.4f} USD/h"}  # fmt: skip
    yield {**common, "name": f"{gpu} on demand", "provider": "cloud-a", "purchase": "on-demand",
           "price": f"{node:.4f} USD/h"}  # fmt: skip
    single = {**common, "gpus_per_node": 1}
    yield {**single, "name": f"{gpu} single", "provider": "cloud-b", "purchase": "on-demand",
           "price": f"{hourly * draw.uniform(1.04, 1.15):.4f} USD/h"}  # fmt: skip
    yield {**common, "name": f"{gpu} spot", "provider": "cloud-a", "purchase": "spot",
           "price": f"{node * draw.uniform(0.4, 0.6):.4f} USD/h", "interruptions_per_hour": 0.02,
           "hours_lost": "0.25 h"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one seed gave."""

    seed: int
    relaxed_gap: float
    relaxed_s: float
    cost: float
    gap: float
    seconds: float
    cpu_s: float
    peak_mb: float


def run(seed: int, size: Size, limit_s: float, threads: int) -> Outcome:
    """Solve one seed in this process."""
    from catalog import load_catalog
    from optimizer.prepare import prepare
    from optimizer.problem.load import parse_problem
    from optimizer.problem.names import canonical_names
    from optimizer.solver.decomposition.run import decompose
    from optimizer.solver.milp import Progress, SolverSettings

    catalog = load_catalog()
    text = json.dumps(large_buyer(seed, size))
    instance = prepare(canonical_names(parse_problem(text).problem, catalog), catalog).instance()
    began, cpu, relaxed_s = time.monotonic(), time.process_time(), [0.0]

    def watch(progress: Progress) -> None:
        if progress.stage == "relaxed rents":
            relaxed_s[0] = progress.seconds

    found = decompose(instance, SolverSettings(gap=1e-3, time_limit_s=limit_s, threads=threads), watch)
    if found is None:
        sys.exit(f"seed {seed}: no plan")
    relaxed, peak = found.relaxed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    gap = (relaxed.cost - relaxed.bound) / relaxed.cost
    seconds, cpu_s = time.monotonic() - began, time.process_time() - cpu
    return Outcome(seed, gap, relaxed_s[0], found.plan.cost, found.gap, seconds, cpu_s, peak)


def main() -> None:
    """One line per seed, each in a process of its own."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--seeds", default="1,2,3,4,5")
    reader.add_argument("--time-limit", type=float, default=300)
    reader.add_argument("--threads", type=int, default=2)
    reader.add_argument("--double", choices=["services", "gpu-types", "months"], action="append", default=[])
    reader.add_argument("--no-redundancy", action="store_true")
    given = reader.parse_args()
    size = Size(
        services=2 if "services" in given.double else 1,
        gpu_types=2 if "gpu-types" in given.double else 1,
        monthly="months" in given.double,
        redundancy=not given.no_redundancy,
    )
    print("seed  relaxed gap %  after s   whole cost   gap %     s  CPU s  peak MB")
    context = multiprocessing.get_context("spawn")
    for seed in map(int, given.seeds.split(",")):
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            o = pool.submit(run, seed, size, given.time_limit, given.threads).result()
        print(
            f"{o.seed:4}  {100 * o.relaxed_gap:13.3f}  {o.relaxed_s:7.0f}  {o.cost:11,.0f}  {100 * o.gap:6.3f}"
            f"  {o.seconds:4.0f}  {o.cpu_s:5.0f}  {o.peak_mb:7.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
