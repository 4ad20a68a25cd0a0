"""Checks of the estimates: against the measurements, in themselves, and by estimating anew."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from catalog.schema import Gpu, SourceRef
from optimizer.audit.document import Answer, OptionRecord, plain
from optimizer.audit.interruptions import refusals
from optimizer.audit.report import Checker
from optimizer.audit.sources import CatalogRows
from optimizer.errors import OptimizerError
from optimizer.estimator.types import ClassEstimate, Estimates, JobEstimate, ServiceEstimate
from optimizer.estimator.workloads import Measurement, Service
from optimizer.plan import named_record
from optimizer.problem.schema import OwnGpu, Problem
from optimizer.units import BYTES_PER_GB

NVLINK_GB_PER_S = 300.0
PCIE_GB_PER_S = 25.0
"""Link rates of a GPU described by the buyer without one (docs/estimator.md)."""


def check_estimates(
    answer: Answer, problem: Problem, rows: CatalogRows, allowed: Mapping[str, OptionRecord], checker: Checker
) -> Estimates | None:
    """Check all estimates, made for the offers that are allowed.

    Returns what estimating anew gives, or None where the catalog is of another version.
    """
    for number, service in enumerate(answer.inputs.estimates.services):
        _check_service(f"inputs.estimates.services[{number}]", service, problem, checker)
    for number, job in enumerate(answer.inputs.estimates.jobs):
        if job.measured:
            _check_measured_job(f"inputs.estimates.jobs[{number}]", job, problem, checker)
    if _needs_catalog(allowed, problem) and not rows.usable:
        checker.notice("estimates", "inputs.estimates", f"estimates are not made anew: {rows.reason}")
        return None
    try:
        anew = _estimate_anew(allowed, problem, rows)
    except (OptimizerError, ValueError) as error:
        checker.fail("estimates", "inputs.estimates", f"cannot be made anew: {error}")
        return None
    _compare(answer, problem, anew, checker)
    return anew


# --- in themselves ----------------------------------------------------------------------------------------------------


def _check_service(where: str, estimate: ServiceEstimate, problem: Problem, checker: Checker) -> None:
    measured = _by_class(estimate, problem) if estimate.measured else {}
    for found in estimate.classes:
        place = f"{where}.classes[{found.request_class}]"
        if estimate.measured:
            standing = measured.get(found.request_class) or measured.get(None, [])
            _check_measured_class(place, estimate, found, standing, problem, checker)
        else:
            parts = (
                found.compute_seconds,
                found.memory_bandwidth_seconds,
                found.interconnect_seconds,
                found.overhead_seconds,
            )
            checker.equal("estimates", place, found.replica_seconds_per_request, sum(parts), "s")
    if estimate.measured:
        checker.equal("estimates", f"{where}.utilisation_cap", estimate.utilisation_cap, 1.0)


def _holds_for(measurement: Measurement, estimate: ServiceEstimate | JobEstimate) -> bool:
    """Whether a measurement is of this workload, and on this offer or GPU type."""
    if measurement.workload != estimate.workload:
        return False
    if measurement.option is not None:
        return measurement.option == estimate.option
    return estimate.option is None and measurement.gpu == estimate.gpu_id


def _by_class(estimate: ServiceEstimate, problem: Problem) -> dict[str | None, list[Measurement]]:
    """Measurements that hold for an estimate, by the class that they are of (None: of all)."""
    found: dict[str | None, list[Measurement]] = {}
    for measurement in problem.measurements:
        if _holds_for(measurement, estimate):
            found.setdefault(measurement.request_class, []).append(measurement)
    return found


def _check_measured_class(
    where: str,
    estimate: ServiceEstimate,
    found: ClassEstimate,
    standing: Sequence[Measurement],
    problem: Problem,
    checker: Checker,
) -> None:
    """Seconds per request = 1 ÷ a measured rate: of this very class, where there is one."""
    service = next(w for w in problem.workloads if isinstance(w, Service) and w.name == estimate.workload)
    rates = [_requests_per_s(m, service, found.request_class) for m in standing]
    matching = [r for r in rates if r is not None and abs(found.replica_seconds_per_request * r - 1) <= 1e-6]
    checker.holds("estimates", where, bool(matching), "is no rate that the problem's measurements give")


def _requests_per_s(measurement: Measurement, service: Service, class_name: str) -> float | None:
    if measurement.tokens_per_s is None:
        return measurement.requests_per_s
    output = service.tokens.output if service.tokens else 0
    for number, one in enumerate(service.classes or (), start=1):
        if (one.name or f"class-{number}") == class_name and one.output is not None:
            output = one.output
    return measurement.tokens_per_s / output if output else None


def _check_measured_job(where: str, estimate: JobEstimate, problem: Problem, checker: Checker) -> None:
    """A yield given per GPU-hour is the estimate's; other rates are checked by estimating anew."""
    here = [m for m in problem.measurements if _holds_for(m, estimate)]
    checker.holds("estimates", where, bool(here), "is marked as measured and the problem has no such measurement")
    if here and all(m.per_gpu_hour is not None for m in here):
        matching = [m for m in here if abs(estimate.units_per_gpu_hour / (m.per_gpu_hour or 1.0) - 1) <= 1e-6]
        checker.holds("estimates", where, bool(matching), "is no yield that the problem's measurements give")


# --- anew -------------------------------------------------------------------------------------------------------------


def _needs_catalog(allowed: Mapping[str, OptionRecord], problem: Problem) -> bool:
    """Whether estimating asks the catalog for an offer, a GPU or a model."""
    named = {option.gpu_id for option in allowed.values()}
    return (
        problem.options.has_offers
        or not named <= set(problem.gpus)
        or any(isinstance(w.model, str) for w in problem.workloads)
    )


def _estimate_anew(allowed: Mapping[str, OptionRecord], problem: Problem, rows: CatalogRows) -> Estimates:
    from optimizer.estimator.estimate import estimate_all

    sizes: dict[str, set[int]] = {}
    for option in allowed.values():
        sizes.setdefault(option.gpu_id, set()).add(option.gpus_per_node)
    records = [_gpu(name, problem.gpus, rows) for name in sorted(sizes)]
    return estimate_all(
        problem.workloads,
        [record for record in records if record is not None],
        {gpu: tuple(sorted(found)) for gpu, found in sizes.items()},
        rows.model,
        [m for m in problem.measurements if m.option is None or m.option in allowed],
        {option.option_id: (option.gpu_id, option.gpus_per_node) for option in allowed.values()},
    )


def _gpu(name: str, own: Mapping[str, OwnGpu], rows: CatalogRows) -> Gpu | None:
    """Figures of a GPU: the problem's own, which need memory, bandwidth and a 16-bit peak, else the catalog's."""
    if name not in own:
        return rows.gpu(name)
    gpu = own[name]
    if gpu.memory is None or gpu.bandwidth is None or gpu.bf16 is None:
        return None
    figures: dict[str, Any] = {field.name: None for field in dataclasses.fields(Gpu)}
    figures |= dict.fromkeys(("vendor", "architecture", "form_factor", "notes"), "")
    figures |= {
        "gpu_id": name,
        "memory_usable_bytes": int(gpu.memory),
        "memory_sold_gb": gpu.memory / BYTES_PER_GB,
        "memory_bandwidth_gb_per_s": gpu.bandwidth / BYTES_PER_GB,
        "bf16_dense_tflop_per_s": gpu.bf16,
        "fp16_dense_tflop_per_s": gpu.bf16,
        "tf32_dense_tflop_per_s": gpu.tf32,
        "fp32_tflop_per_s": gpu.fp32,
        "fp8_dense_tflop_per_s": gpu.fp8,
        "int8_dense_tops": gpu.int8,
        "fp4_dense_tflop_per_s": gpu.fp4,
        "link_kind": gpu.link,
        "link_gb_per_s": _link_gb_per_s(gpu),
        "pcie_gb_per_s": PCIE_GB_PER_S,
        "p2p": gpu.link != "none",
        "tdp_w": (gpu.tdp or 0.0) * 1000,
        "max_gpus_per_node": gpu.gpus_per_node,
        "consumer": False,
        "confidence": "buyer",
        "memory_origin": "buyer",
        "ref": SourceRef("problem file", 0, "buyer", None),
    }
    return Gpu(**figures)


def _link_gb_per_s(gpu: OwnGpu) -> float:
    if gpu.link_bandwidth:
        return gpu.link_bandwidth / BYTES_PER_GB
    return NVLINK_GB_PER_S if gpu.link == "nvlink" else PCIE_GB_PER_S


def _compare(answer: Answer, problem: Problem, anew: Estimates, checker: Checker) -> None:
    found = answer.inputs.estimates
    for name in ("demands", "services", "jobs"):
        is_, should = _by_key(getattr(found, name)), _by_key(getattr(anew, name))
        for key in dict.fromkeys((*should, *is_)):
            where = f"inputs.estimates.{name}[{key}]"
            if key in is_ and key in should:
                checker.same("estimates", where, is_[key], should[key])
            else:
                message = "is missing" if key in should else "is not what estimating anew gives"
                checker.fail("estimates", where, message)
    refused = refusals(problem, answer.inputs.options, anew.jobs, anew.demands)
    expected = [named_record(r) for r in (*anew.rejections, *refused)]
    checker.same("rejections", "rejections", list(answer.rejections), expected)


def _by_key(records: Iterable[Any]) -> dict[str, Any]:
    """Records by what they are for, numbered where several are for the same."""
    found: dict[str, Any] = {}
    for record in records:
        parts = [record.workload]
        if isinstance(record, ServiceEstimate | JobEstimate):
            parts += [record.option or record.gpu_id, record.deployment.label, str(record.gpus_per_node or "")]
        key = " ".join(part for part in parts if part)
        number = 2
        while key in found:
            key, number = f"{key.split(' ×')[0]} ×{number}", number + 1
        found[key] = plain(record)
    return found
