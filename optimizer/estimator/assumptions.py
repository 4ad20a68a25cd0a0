"""What an estimate rests on and somebody may want to change, listed for the answer."""

from collections.abc import Iterator, Sequence

from catalog.schema import LlmArchitecture
from optimizer.estimator.constants import CONSTANTS
from optimizer.estimator.demands import batch_lengths
from optimizer.estimator.engines import default_engine
from optimizer.estimator.inference import pessimism_of, request_shapes
from optimizer.estimator.jobs import training_plan
from optimizer.estimator.ranges import range_of
from optimizer.estimator.redundancy import DEGRADED_UTILISATION_CAP
from optimizer.estimator.services import THROUGHPUT_RANGE
from optimizer.estimator.training import model_flop_per_token
from optimizer.estimator.types import JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import AnyWorkload, Batch, FineTune, Service, Training
from optimizer.trace import BEYOND_CONTEXT, Assumption

_FILE = "problem file"


def assumptions_of(
    workload: AnyWorkload,
    model: LlmArchitecture | None,
    services: tuple[ServiceEstimate, ...],
    jobs: tuple[JobEstimate, ...],
) -> Iterator[Assumption]:
    """Assumptions of one workload, those of its measurements included; `model` is None if none was needed."""
    for estimate in _both(services, jobs):
        if estimate.measured:
            yield _measured(workload.name, estimate)
    if isinstance(workload, Service) and workload.redundancy:
        cap = workload.degraded_utilisation_cap or DEGRADED_UTILISATION_CAP
        said = _said(workload, "degraded_utilisation_cap")
        yield Assumption(f"{workload.name}: utilisation cap of estimated rates after a loss of nodes", cap, "1", *said)
    if model is None or all(estimate.measured for estimate in _both(services, jobs)):
        return
    yield from _low_end(workload)
    if workload.estimate_by == "rule-of-thumb":
        yield Assumption(f"{workload.name}: estimated by", "rule of thumb", "", _FILE, "user")
    elif isinstance(workload, Service):
        yield from _beyond_context(workload, model)
        yield from _serving(workload)
        yield from _of_service(workload)
    elif isinstance(workload, Batch):
        yield from _beyond_context(workload, model)
        yield from _serving(workload)
        prompt, output = batch_lengths(workload)
        said = _said(workload, "requests")
        yield Assumption(f"{workload.name}: tokens per request", f"{prompt:.0f} + {output:.0f}", "tokens", *said)
    else:
        yield from _of_training(workload, model, jobs)


def _both(
    services: tuple[ServiceEstimate, ...], jobs: tuple[JobEstimate, ...]
) -> tuple[ServiceEstimate | JobEstimate, ...]:
    return (*services, *jobs)


def _said(workload: AnyWorkload, field: str) -> tuple[str, str]:
    """Source and kind of what the file says, or leaves to its default."""
    return (_FILE, "user") if field in workload.model_fields_set else ("default", "default")


def _measured(name: str, estimate: ServiceEstimate | JobEstimate) -> Assumption:
    place = estimate.option or estimate.gpu_id
    if isinstance(estimate, JobEstimate):
        rate, unit = estimate.units_per_gpu_hour, "units per GPU-hour"
    else:
        rate, unit = max((1 / c.replica_seconds_per_request for c in estimate.classes), default=0.0), "requests/s"
    return Assumption(f"{name}: rate on {place}", rate, unit, estimate.source, "measured")


def _constant(name: str, label: str, kind: str = "estimate") -> Assumption:
    found = CONSTANTS[name]
    return Assumption(label, found.value, found.unit, found.source, kind, found.date)


def _serving(workload: Service | Batch) -> Iterator[Assumption]:
    name = workload.name
    yield Assumption(f"{name}: weights", _text(workload.weights), "format", *_said(workload, "weights"))
    yield Assumption(f"{name}: KV cache", workload.kv, "format", *_said(workload, "kv"))
    if workload.max_batch is not None:
        yield Assumption(f"{name}: most sequences at once", workload.max_batch, "sequences", _FILE, "user")
    else:
        engine = default_engine()
        caps = {"cards of 80 GB and more": engine.batch_cap_large, "smaller cards": engine.batch_cap_small}
        for cards, cap in caps.items():
            label = f"{name}: most sequences at once ({cards})"
            yield Assumption(label, cap, "sequences", engine.source, "default", engine.date)
    spread = THROUGHPUT_RANGE
    planned = spread.low_factor if workload.plan_for == "low" else 1.0
    low, high = spread.low_factor / planned, spread.high_factor / planned
    yield Assumption(f"{name}: throughput ÷ estimate", 1.0, "1", spread.source, "estimate", spread.date, low, high)
    if workload.prefix_cache_share:
        label = f"{name}: prompt tokens found in the prefix cache"
        yield Assumption(label, workload.prefix_cache_share, "1", _FILE, "user")
    if workload.speculation is not None:
        label = f"{name}: tokens gained per step (speculative decoding)"
        yield Assumption(label, workload.speculation.accepted, "tokens", _FILE, "user")
    if workload.expert_parallel != 1:
        yield _constant("expert_popularity_factor", f"{name}: tokens of the busiest GPU of experts ÷ mean", "default")
    yield _constant("serving_memory_share", f"{name}: share of memory an engine fills")


def _beyond_context(workload: Service | Batch, model: LlmArchitecture) -> Iterator[Assumption]:
    """Engines refuse requests longer than the model's published context unless they are told to stretch it."""
    longest = _longest_request(workload)
    if model.max_context_tokens and longest > model.max_context_tokens:
        place = f"{model.ref.file}:{model.ref.line}"
        source = f"{model.model_id} is published for {model.max_context_tokens:,} tokens ({place})"
        yield Assumption(f"{workload.name}: {BEYOND_CONTEXT}", longest, "tokens", source, "user")


def _longest_request(workload: Service | Batch) -> float:
    """Tokens of prompt and output of the longest request class, by its means."""
    if isinstance(workload, Batch):
        return sum(batch_lengths(workload))
    return max(shape.prompt + shape.output for shape in request_shapes(workload))


def _low_end(workload: AnyWorkload) -> Iterator[Assumption]:
    if workload.plan_for == "low":
        yield Assumption(f"{workload.name}: rates planned for", "low end of their range", "", _FILE, "user")


def _text(weights: str | Sequence[str]) -> str:
    return weights if isinstance(weights, str) else " or ".join(weights)


def _of_service(service: Service) -> Iterator[Assumption]:
    for shape in request_shapes(service):
        lengths = f"{shape.prompt:.0f} + {shape.output:.0f}"
        yield Assumption(f"{service.name}: tokens per request, class {shape.name}", lengths, "tokens", _FILE, "user")
    if service.utilisation_cap is not None:
        yield Assumption(f"{service.name}: utilisation cap", service.utilisation_cap, "1", _FILE, "user")
    else:
        yield _constant("highest_utilisation", f"{service.name}: highest utilisation cap", "default")
    if service.plan_for == "low":
        yield from _high_end_of_times(service)
    if service.disaggregated != "never":
        yield from _of_stages(service)


def _high_end_of_times(service: Service) -> Iterator[Assumption]:
    spread = pessimism_of(service)
    for label, target, factor in (("TTFT", "ttft_ms", spread.ttft), ("TPOT", "tpot_ms", spread.tpot)):
        found = range_of(target, seen=False)
        name = f"{service.name}: {label} held against its target ÷ estimate"
        yield Assumption(name, factor, "1", found.source, "estimate", found.date)


def _of_stages(service: Service) -> Iterator[Assumption]:
    label = f"{service.name}: rate per GPU of handing KV caches over"
    if service.kv_transfer is None:
        yield _constant("kv_transfer_bytes_per_s", label, "default")
    else:
        yield Assumption(label, service.kv_transfer, "bytes/s", _FILE, "user")
    if service.latency.p95_end_to_end is not None and service.latency.p95_ttft is None:
        label = f"{service.name}: share of the end-to-end target for prompts done apart"
        yield _constant("stage_prefill_share", label, "default")


def _of_training(
    job: Training | FineTune, model: LlmArchitecture, jobs: tuple[JobEstimate, ...]
) -> Iterator[Assumption]:
    name, plan = job.name, training_plan(job, model)
    if job.dataset is not None and job.tokens is None:
        kind = "user" if "bytes_per_token" in job.dataset.model_fields_set else "default"
        source = "OPT: 800 GB of text were 180e9 tokens (arXiv 2205.01068)" if kind == "default" else _FILE
        yield Assumption(f"{name}: bytes per token", job.dataset.bytes_per_token, "bytes/token", source, kind)
    yield Assumption(f"{name}: sequence", plan.sequence, "tokens", *_said(job, "sequence"))
    for field in ("precision", "stack", "sharding", "optimizer"):
        yield Assumption(f"{name}: {field}", getattr(job, field), "", *_said(job, field))
    for field in ("offload", "optimizer_in_backward", "chunked_loss", "gradient_accumulation"):
        if field in job.model_fields_set:
            value = getattr(job, field)
            shown = ("yes" if value else "no") if isinstance(value, bool) else value
            yield Assumption(f"{name}: {field}", shown, "", _FILE, "user")
    said = "micro_batch" in job.model_fields_set
    micro_batch = job.micro_batch if said else "largest that fits"
    yield Assumption(f"{name}: micro-batch", micro_batch, "sequences", *_said(job, "micro_batch"))
    yield Assumption(f"{name}: recompute", plan.recompute, "", *_said(job, "recompute"))
    yield Assumption(f"{name}: model FLOP per token", model_flop_per_token(plan), "FLOP", str(model.ref), "estimate")
    if job.mfu is not None:
        yield Assumption(f"{name}: MFU", job.mfu, "1", _FILE, "user")
        return
    source = CONSTANTS["training_dense_low_factor"].source
    for estimate in jobs:
        if estimate.mfu is not None and not estimate.measured:
            size = f"up to {estimate.max_gpus} GPUs" if estimate.max_gpus else "any size"
            label = f"{name}: MFU on {estimate.gpu_id}, {size}"
            mfu = estimate.mfu
            low, high = mfu * estimate.low_factor, min(1.0, mfu * estimate.high_factor)
            yield Assumption(label, mfu, "1", source, "estimate", "", low, high)
    if plan.whole_run:
        yield _constant("real_run_share", f"{name}: productive share of the whole run")
    yield _constant("training_memory_margin", f"{name}: margin on the predicted memory")
