"""Points per second of the deployment search: (model, GPU, deployment, class) with its operating batch, on one core.

python benchmarks/estimator_speed.py
"""

import time

from catalog import load_catalog
from optimizer.estimator.search import best_batches
from optimizer.estimator.services import analytic_services
from optimizer.estimator.workloads import Service

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "mixtral-8x7b", "gpt-oss-120b")
NODE = 8
ROUNDS = 3


def main() -> None:
    """Print the rate of the search alone and with its records."""
    catalog = load_catalog()
    cards = [(gpu, NODE) for gpu in catalog.gpus() if gpu.bf16_dense_tflop_per_s]
    service = Service.model_validate(
        {
            "name": "chat",
            "kind": "service",
            "weights": ["bf16", "fp8", "int4"],
            "classes": [
                {"name": "short", "share": 0.5, "input": 500, "output": 200},
                {"name": "long", "share": 0.5, "input": 3000, "output": 400},
            ],
            "latency": {"p95_ttft": "2 s", "p95_tpot": "60 ms"},
        }
    )
    best_batches(service, catalog.model(MODELS[0]), cards)
    for name in MODELS:
        model = catalog.model(name)
        start = time.process_time()
        for _ in range(ROUNDS):
            found = best_batches(service, model, cards)
        searched = (time.process_time() - start) / ROUNDS
        for gpu, node in cards:
            analytic_services(service, gpu, model, node, found)
        recorded = (time.process_time() - start) - (ROUNDS - 1) * searched
        points = len(found.choices)
        rates = f"search {points / searched:,.0f} points/s, with records {points / recorded:,.0f} points/s"
        print(f"{name}: {points} points, {rates}")


if __name__ == "__main__":
    main()
