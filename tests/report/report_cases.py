"""Small problems with measured rates and quotes, and their plans, for the tests of reports and of the command line."""

import functools
import random

from catalog import load_catalog
from optimizer.problem.load import dump_yaml, parse_problem
from optimizer.solve import solve

TINY = """
name: Tiny
horizon: {months: 12, periods: quarterly}
finance: {discount_rate: 8 %}
workloads:
  - name: chat
    kind: service
    traffic: {mean_requests_per_s: 10, profile: office-hours, peak_to_mean: 3}
  - {name: night, kind: batch, work: {amount: 50_000, unit: documents}, start: month 2, deadline: 1 month}
measurements:
  - {workload: chat, gpu: A, requests_per_s: 2.5, gpus_per_replica: 1}
  - {workload: chat, gpu: B, requests_per_s: 5, gpus_per_replica: 1}
  - {workload: night, gpu: A, per_gpu_hour: 20}
  - {workload: night, gpu: B, per_gpu_hour: 35}
gpus: {A: {}, B: {}}
options:
  catalog: false
  quotes:
    - {name: buy A, gpu: A, gpus_per_node: 4, purchase: owned, price: 40_000 USD, power: 2 kW,
       electricity: 0.15 USD/kWh, max_nodes: 3, lead_time: 1 month, date: 2026-11-03}
    - {name: spot B, gpu: B, gpus_per_node: 2, purchase: spot, price: 2.2 USD/h, provider: Y, date: 2026-10-01}
    - {name: rent A, gpu: A, gpus_per_node: 4, purchase: on-demand, price: 6 USD/h, provider: Y}
limits: {capex: 200_000 USD, stock: {spot B: 2}}
"""

SHORT = """
name: Short
workloads:
  - {name: fill, kind: batch, work: {amount: 1_000_000, unit: documents}, deadline: 10 h, gpus: [A]}
  - {name: other, kind: batch, model: llama-2-7b, tokens: 10, gpus: [C]}
measurements: [{workload: fill, gpu: A, per_gpu_hour: 20_000}]
gpus: {A: {}, C: {}}
options:
  catalog: false
  quotes:
    - {name: rent A, gpu: A, purchase: on-demand, price: 1 USD/h, max_nodes: 3}
    - {name: rent C, gpu: C, purchase: on-demand, price: 1 USD/h}
"""

STOCK = SHORT.replace("  - {name: other, kind: batch, model: llama-2-7b, tokens: 10, gpus: [C]}\n", "")
"""Two GPUs of rent A are missing; all can run."""


def hard_problem(seed=3, types=4, services=2):
    """A problem with many plans of nearly the same cost: HiGHS has one soon and needs long to prove the least."""
    draw = random.Random(seed)
    gpus = [f"G{i}" for i in range(types)]
    workloads = [
        {
            "name": f"s{i}",
            "kind": "service",
            "traffic": {
                "mean_requests_per_s": round(draw.uniform(8, 40), 2),
                "profile": [round(draw.uniform(0.2, 2), 2) for _ in range(24)],
                "growth": "3 %/month",
            },
        }
        for i in range(services)
    ]
    measurements = [
        {"workload": w["name"], "gpu": g, "requests_per_s": round(draw.uniform(0.7, 6), 3), "gpus_per_replica": n}
        for w in workloads
        for g in gpus
        for n in [draw.choice([1, 2, 3])]
    ]
    return dump_yaml(
        {
            "name": "Hard",
            "horizon": {"months": 24, "periods": "quarterly"},
            "finance": {"discount_rate": "8 %"},
            "workloads": workloads,
            "measurements": measurements,
            "gpus": {gpu: {} for gpu in gpus},
            "options": {"catalog": False, "quotes": [q for gpu in gpus for q in hard_quotes(gpu, draw)]},
            "limits": {"capex": "300_000 USD"},
        }
    )


def hard_quotes(gpu, draw):
    nodes = draw.choice([3, 4, 6, 8])
    price = round(draw.uniform(1, 3) * nodes, 2)
    node = {"gpu": gpu, "gpus_per_node": nodes}
    return [
        {"name": f"rent {gpu}", **node, "purchase": "on-demand", "price": f"{price} USD/h", "max_nodes": 6},
        {"name": f"sign {gpu}", **node, "purchase": "reserved", "term": "6 months", "price": f"{price * 0.6:.2f} USD/h",
         "max_nodes": 4},
        {"name": f"buy {gpu}", **node, "purchase": "owned", "price": f"{price * 7000:.0f} USD", "power": "3 kW",
         "electricity": "0.2 USD/kWh", "max_nodes": 3},
    ]  # fmt: skip


@functools.cache
def solved(text):
    """The plan document of a problem given as text."""
    catalog = load_catalog()
    return solve(parse_problem(text, catalog=catalog).problem, catalog).document()
