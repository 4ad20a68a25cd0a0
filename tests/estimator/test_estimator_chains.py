"""Chains of estimates: what is printed beside a figure is enough to work it out again."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import pytest

from catalog import load_catalog
from optimizer.estimator.estimate import estimate_all
from optimizer.estimator.types import JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import Batch, FineTune, Service, Training
from optimizer.report.words import beyond_context
from optimizer.trace import BEYOND_CONTEXT, Step

CATALOG = load_catalog()
CARDS = ("H200-SXM", "L40S", "RTX-4090", "A100-80GB-SXM")
Figures = Mapping[str, float]


def chains(workload: Any) -> list[tuple[Step, ...]]:
    """Chains of all estimates of a workload on four cards of the catalog."""
    cards = [CATALOG.gpu(name) for name in CARDS]
    found = estimate_all([workload], cards, {g.gpu_id: (1, 2, 4, 8) for g in cards}, CATALOG.model, [], {})
    every: tuple[ServiceEstimate | JobEstimate, ...] = (*found.services, *found.jobs)
    assert every
    return [estimate.steps for estimate in every]


def service(**changes: Any) -> Service:
    fields = {"name": "chat", "kind": "service", "tokens": {"input": 1000, "output": 100}}
    return Service.model_validate(fields | changes)


def training(**changes: Any) -> Training:
    return Training.model_validate({"name": "run", "kind": "training", "tokens": 1e9} | changes)


WORKLOADS = {
    "dense": service(model="llama-3.1-8b", weights=["bf16", "int4"]),
    "mixture": service(model="mixtral-8x7b", weights="fp8"),
    "spread, latent": service(model="deepseek-v3", weights="fp8", expert_parallel=[8]),
    "few KV heads": service(model="qwen2.5-7b", kv="fp8"),
    "apart": service(model="llama-3.1-8b", disaggregated="required"),
    "batch": Batch.model_validate(
        {"name": "b", "kind": "batch", "model": "mixtral-8x7b", "requests": {"count": 1e5, "input": 500, "output": 250}}
    ),
    "training": training(model="llama-3.1-8b", recompute="full"),
    "wide heads": training(model="qwen3-32b", precision="fp8", gpus=["H200-SXM"]),
    "mixture trained": training(model="mixtral-8x7b", stack="tuned"),
    "adapters": FineTune.model_validate(
        {"name": "tune", "kind": "finetune", "method": "qlora", "model": "llama-3.1-70b", "tokens": 1e8}
    ),
    "offload": training(model="llama-3.1-8b", offload="optimizer"),
}


def _weights(i: Figures, _: Figures) -> float:
    return i["parameters"] * i["bits"] / 8 / 1e9 + (i.get("DP", 1) - 1) * i.get("dense", 0)


def _flop(i: Figures, adapters: bool) -> float:
    matrix, attention = (4, 9.6) if adapters else (6, 12)
    return matrix * i["N"] + attention * i["L"] * i["h"] * i["s"]


def _kv(i: Figures, _: Figures) -> float:
    two = 1 if "kv_lora_rank" in i else 2
    width = i["kv_lora_rank"] + i["rope_head_dim"] if "kv_lora_rank" in i else i["kv_heads"] * i["head_dim"]
    return two * i["layers"] * width * i["bytes"] * i["copies"]


RULES: Mapping[str, Callable[[Figures, Figures], float]] = {
    "W": _weights,
    "k": _kv,
    "free": lambda i, of: i["usable"] - of["W"] - i["workspace"],
    "C": lambda i, _: prod(i.values()),
    "BW": lambda i, _: prod(i.values()),
    "R": lambda i, _: i["c"] * (2 * i["N"] + 4 * i["L"] * i["h"] * i["s"]) if i else 0.0,
    "peak": lambda i, _: min(i["peak16"], i["bandwidth"] * i["c"]),
    "eff": lambda i, _: i["e"] * (i["h"] / i["tp"]) / (i["h"] / i["tp"] + i["w"]) * i["stack"] * i["experts"],
    "MFU": lambda i, of: of["F"] / i["time"] / i["peak"],
}
SUMS = ("r[",)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_figure_follows_from_what_is_printed_beside_it(name: str) -> None:
    """Weights, KV cache, ceilings, FLOP, utilisation and yield, worked out again from the inputs of their steps."""
    for steps in chains(WORKLOADS[name]):
        of = {step.symbol: step.value for step in steps}
        for step in steps:
            given = dict(step.inputs)
            if step.symbol in RULES:
                assert step.value == pytest.approx(RULES[step.symbol](given, of), rel=1e-9), step
            elif step.symbol.startswith(SUMS):
                assert step.value == pytest.approx(sum(given.values()), rel=1e-9), step
            elif step.symbol == "F":
                assert step.value == pytest.approx(_flop(given, name == "adapters"), rel=1e-9), step
            elif step.symbol == "y":
                assert step.value == pytest.approx(_yield(given, of), rel=1e-9), step


def _yield(i: Figures, of: Figures) -> float:
    if "launch" not in i:
        return 3600 * i["units_per_request"] / (of["r[all]"] * i["GPUs"])
    return float(3600 / ((i["products"] + i["launch"] + i["offload"]) * (i["GPUs"] / 8) ** i["x"]))


def test_a_batch_has_no_latency_or_cap_in_its_chain() -> None:
    """An offline batch keeps its engine full: neither a cap on use nor latencies that decide nothing are printed."""
    for steps in chains(WORKLOADS["batch"]):
        assert {step.symbol.split("[")[0] for step in steps} == {"W", "k", "free", "C", "BW", "B", "r", "y"}


def test_width_of_the_attention_is_that_of_its_heads() -> None:
    """Qwen3 32B: 64 heads of 128 are wider (8192) than the model (5120), and so is the attention's work."""
    printed = dict(next(s for s in chains(WORKLOADS["wide heads"])[0] if s.symbol == "F").inputs)
    assert printed["h"] == 64 * 128


@pytest.mark.parametrize(("prompt", "told"), [(130_000, False), (131_072, True)])
def test_requests_beyond_the_models_context_are_pointed_out(prompt: int, told: bool) -> None:
    """Llama 3.1 is published for 131,072 tokens, prompt and output together; services and batches are told alike."""
    lengths = {"input": prompt, "output": 100}
    batch = {"name": "chat", "kind": "batch", "model": "llama-3.1-8b", "requests": {"count": 10, **lengths}}
    for workload in (service(model="llama-3.1-8b", tokens=lengths), Batch.model_validate(batch)):
        card = CATALOG.gpu("H200-SXM")
        found = estimate_all([workload], [card], {card.gpu_id: (1,)}, CATALOG.model, [], {})
        listed = [a for a in found.assumptions if a.name == f"chat: {BEYOND_CONTEXT}"]
        assert [(a.value, "131,072" in a.source) for a in listed] == ([(prompt + 100, True)] if told else [])
        records = [{"name": a.name, "value": a.value, "source": a.source} for a in listed]
        assert len(beyond_context(records)) == told


@pytest.mark.parametrize(
    ("gpu", "weights", "reason"),
    [
        ("T4", "bf16", "T4 has no bf16 unit; fp16 would do"),
        ("Gaudi2", "fp16", "Gaudi2 has no fp16 unit; bf16 would do"),
        ("Gaudi2", "int8", "Gaudi2 has no int8 unit"),
    ],
)
def test_a_card_without_a_format_names_the_other_16_bits(gpu: str, weights: str, reason: str) -> None:
    """Turing and Volta have fp16 only, Gaudi 2 bf16 only: the rejection says what to write."""
    card = CATALOG.gpu(gpu)
    chat = service(model="llama-3.1-8b", weights=weights)
    found = estimate_all([chat], [card], {card.gpu_id: (1,)}, CATALOG.model, [], {})
    assert [r.reason for r in found.rejections] == [reason]


def test_a_card_that_is_not_described_says_which_figures_count() -> None:
    """A name without a record (half described, or only quoted): the rejection names all three that are needed."""
    found = estimate_all([service(model="llama-3.1-8b", gpus=["Mine"])], [], {"Mine": (1,)}, CATALOG.model, [], {})
    assert ["memory, bandwidth and bf16" in r.reason for r in found.rejections] == [True]
