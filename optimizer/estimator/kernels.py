"""What a GPU multiplies with and talks over: its kernels by weight format, its link to the next GPU."""

from dataclasses import dataclass

from catalog.schema import Gpu
from optimizer.estimator.constants import constant
from optimizer.units import BYTES_PER_GB, FLOP_PER_TFLOP

_US_PER_S = 1e6
_HALF = ("bf16", "fp16")
_SWITCHED = ("nvlink", "infinity-fabric", "roce")


def half_precision_flop_per_s(gpu: Gpu) -> float:
    """Dense peak at 16 bits: bf16, or fp16 on cards without it (V100, T4)."""
    return (gpu.bf16_dense_tflop_per_s or gpu.fp16_dense_tflop_per_s or 0.0) * FLOP_PER_TFLOP


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a GPU multiplies weights of a format: the dense peak it is bound by and the share it keeps of it."""

    peak_flop_per_s: float
    share: float
    label: str


def kernel_for(gpu: Gpu, weights: str, activations: str | None = None) -> Kernel | None:
    """Kernel for a weight format; None if the GPU has no unit for it.

    4-bit integers are unpacked to 16 bits (W4A16, Marlin kernels: arXiv 2408.11743), and so are fp8 and fp4 where the
    GPU lacks them, and these and int8 where `activations` are of 16 bits. int4 with int8 activations (W4A8, QServe:
    arXiv 2405.04532) keeps to the int8 units.
    """
    kept = {"fp4": constant("fp4_kernel_share"), "int8": constant("int8_kernel_share")}
    unit = _unit(weights, activations)
    peak = None if unit is None else gpu.peak_tflop_per_s(unit)
    if unit is not None and peak is not None:
        return Kernel(peak * FLOP_PER_TFLOP, kept.get(unit, 1.0), weights if unit == weights else f"{weights}, {unit}")
    if weights in {"int4", "fp8", "fp4"} or (weights == "int8" and activations in _HALF):
        share = constant("weight_only_kernel_share")
        return Kernel(half_precision_flop_per_s(gpu), share, "weight-only, 16-bit products")
    return None


def _unit(weights: str, activations: str | None) -> str | None:
    """Unit that multiplies: that of the wider of weights and activations; None for weight-only kernels."""
    if weights == "int4":
        return "int8" if activations == "int8" else None
    if weights in {"fp8", "fp4", "int8"} and activations in _HALF:
        return None
    return "fp8" if weights == "fp4" and activations == "fp8" else weights


@dataclass(frozen=True, slots=True)
class Link:
    """What an all-reduce costs: a fixed time and a sustained rate, one way and per GPU."""

    kind: str
    latency_s: float
    bytes_per_s: float


def link_of(gpu: Gpu) -> Link:
    """Link between the GPUs of a replica.

    Cards that can carry an NVLink bridge are taken without one: it is an extra, and published runs on two such cards
    (A100 PCIe, H100 PCIe, H100 NVL) are met over PCIe, but over-estimated by half with the bridge.
    """
    if gpu.link_kind in _SWITCHED:
        return _link("nvlink", gpu.link_kind, gpu.link_gb_per_s)
    if gpu.link_kind == "none":
        return _link("pcie", "pcie without peer-to-peer", gpu.link_gb_per_s or gpu.host_gb_per_s / 2)
    bridged = gpu.link_kind == "nvlink-bridge"
    return _link("pcie", "pcie", gpu.host_gb_per_s if bridged else gpu.link_gb_per_s or gpu.host_gb_per_s)


def _link(name: str, kind: str, gb_per_s: float) -> Link:
    sustained = gb_per_s * constant(f"{name}_share") * BYTES_PER_GB
    return Link(kind, constant(f"{name}_latency_us") / _US_PER_S, sustained)
