"""The problem file of a converted instance: one service, one hour, on-demand nodes of one GPU each.

The horizon is one hour (1/730 of a month) at no discount, so that the cost of the plan is the hourly cost.
"""

from typing import Any

from optimizer.convert.melange import MelangeGpu, MelangeInstance
from optimizer.problem.load import dump_yaml

SERVICE = "requests"
Data = dict[str, Any]


def problem_data(instance: MelangeInstance, title: str) -> Data:
    """The problem as plain data, without empty buckets and without GPU types that serve none of the others."""
    gpus = instance.serving_types
    return {
        "name": title,
        "currency": "USD",
        "horizon": {"months": "1 h", "periods": "once"},
        "finance": {"discount_rate": 0},
        "workloads": [{"name": SERVICE, "kind": "service", "classes": _classes(instance)}],
        "measurements": [row for gpu in gpus for row in _measurements(instance, gpu)],
        "gpus": {gpu.name: {} for gpu in gpus},
        "options": {"catalog": False, "quotes": [_quote(instance, gpu) for gpu in gpus]},
    }


def problem_text(instance: MelangeInstance, title: str) -> str:
    """The problem file with remarks on what was left out."""
    remarks = [
        f"Converted from {instance.source!r}; cost.npv of its plan is the cost in USD per hour.",
        *left_out(instance),
    ]
    head = "".join(f"# {remark}\n" for remark in remarks)
    return head + dump_yaml(problem_data(instance, title), leaves_in_line=True)


def left_out(instance: MelangeInstance) -> list[str]:
    """What does not appear in the problem, or makes it impossible; one sentence each."""
    kept = instance.serving_types
    remarks = []
    empty = sum(len(row) for row in instance.shares) - len(instance.buckets)
    if empty:
        remarks.append(f"Left out: {empty} {'bucket' if empty == 1 else 'buckets'} without requests.")
    idle = [gpu.name for gpu in instance.gpus if gpu not in kept]
    if idle:
        remarks.append(f"Left out: GPU types that serve no bucket with requests: {', '.join(map(repr, idle))}.")
    return [*remarks, *unservable(instance)]


def unservable(instance: MelangeInstance) -> list[str]:
    """One sentence for each bucket with requests that no GPU type serves."""
    return [
        f"No GPU type serves the bucket {bucket_name(bucket)!r}, which has requests: the problem is infeasible."
        for bucket in instance.buckets
        if instance.requests_per_s > 0 and not instance.serving(bucket)
    ]


def bucket_name(bucket: tuple[int, int]) -> str:
    """`row 3 column 2`, counted from 1."""
    return f"row {bucket[0] + 1} column {bucket[1] + 1}"


def _classes(instance: MelangeInstance) -> list[Data]:
    rate = instance.requests_per_s
    return [{"name": bucket_name((i, j)), "requests_per_s": rate * instance.shares[i][j]} for i, j in instance.buckets]


def _quote(instance: MelangeInstance, gpu: MelangeGpu) -> Data:
    price = f"{gpu.price_per_hour!r} USD/h"
    quote: Data = {"name": gpu.name, "gpu": gpu.name, "purchase": "on-demand", "price": price}
    if gpu.most is not None:
        quote["max_nodes"] = gpu.most
    return quote | {"source": instance.source}


def _measurements(instance: MelangeInstance, gpu: MelangeGpu) -> list[Data]:
    return [
        {
            "workload": SERVICE,
            "gpu": gpu.name,
            "class": bucket_name(bucket),
            "requests_per_s": _rate(gpu, bucket),
            "source": instance.source,
        }
        for bucket in instance.buckets
        if _rate(gpu, bucket) > 0
    ]


def _rate(gpu: MelangeGpu, bucket: tuple[int, int]) -> float:
    return gpu.requests_per_s[bucket[0]][bucket[1]]
