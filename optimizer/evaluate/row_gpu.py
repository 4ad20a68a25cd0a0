"""GPU of a training run: the row's own peak and bandwidth first, then the catalog's figures."""

from collections.abc import Mapping
from dataclasses import replace

from catalog.load import Catalog
from catalog.schema import Gpu, SourceRef
from optimizer.estimator.constants import constant
from optimizer.estimator.kernels import half_precision_flop_per_s
from optimizer.estimator.training import sustained_peak_flop_per_s
from optimizer.evaluate.rows import gpu_of, positive, predictable, text
from optimizer.evaluate.types import NotPredictableError
from optimizer.units import BYTES_PER_GB, FLOP_PER_TFLOP

PEAK, BANDWIDTH = "peak_bf16_dense_tflops", "memory_bandwidth_gb_per_s"
_BY_PEAK = "row, by its peak alone"


def training_gpu(row: Mapping[str, str], catalog: Catalog) -> Gpu:
    """GPU of a run with the figures of the row's columns; one the catalog does not know needs a peak.

    Raises
    ------
    NotPredictableError
        If the catalog does not know the name and the row lacks a peak, or if it means GPUs of different speed.
    """
    peak, bandwidth = positive(row, PEAK), positive(row, BANDWIDTH)
    if not catalog.gpu_candidates(text(row, "gpu")):
        return _described(row, catalog, peak, bandwidth)
    gpu = _of_catalog(row, catalog, peak)
    if peak is not None:
        gpu = _with_half_precision(gpu, peak)
    return gpu if bandwidth is None else replace(gpu, memory_bandwidth_gb_per_s=bandwidth)


def _of_catalog(row: Mapping[str, str], catalog: Catalog, peak: float | None) -> Gpu:
    """Of several GPUs that a name may mean, the one whose peak is nearest to the row's, if that settles it."""
    choices = [catalog.gpu(gpu_id) for gpu_id in catalog.gpu_candidates(text(row, "gpu"))]
    if len(choices) > 1 and peak is not None:
        off = [abs(half_precision_flop_per_s(gpu) / FLOP_PER_TFLOP - peak) for gpu in choices]
        choices = [gpu for gpu, distance in zip(choices, off, strict=True) if distance == min(off)]
    if len({sustained_peak_flop_per_s(gpu) for gpu in choices}) > 1:
        return gpu_of(row, catalog)
    return predictable(choices[0])


def _with_half_precision(gpu: Gpu, peak: float) -> Gpu:
    """The GPU with the row's peak at 16 bits, in the formats that its 16-bit unit has."""
    known = half_precision_flop_per_s(gpu) / FLOP_PER_TFLOP
    return replace(
        gpu,
        bf16_dense_tflop_per_s=peak if gpu.bf16_dense_tflop_per_s else None,
        fp16_dense_tflop_per_s=peak if gpu.fp16_dense_tflop_per_s == known else gpu.fp16_dense_tflop_per_s,
    )


def is_guessed(gpu: Gpu) -> bool:
    """Whether the catalog does not know a GPU, and its row gave the peak alone."""
    return gpu.confidence == _BY_PEAK


def _described(row: Mapping[str, str], catalog: Catalog, peak: float | None, bandwidth: float | None) -> Gpu:
    """A GPU of which only the row tells; without a bandwidth it is taken to be fed.

    A run in fp8 or fp4 was measured, so the card has the unit: at twice, four times the peak at 16 bits.
    """
    if peak is None:
        try:
            return gpu_of(row, catalog)
        except NotPredictableError as error:
            msg = f"{error}; to predict it by the row alone it lacks {PEAK}"
            raise NotPredictableError(msg) from error
    fed = peak * FLOP_PER_TFLOP / constant("training_flop_per_byte") / BYTES_PER_GB
    confidence = _BY_PEAK if bandwidth is None else "row"
    return Gpu(
        gpu_id=text(row, "gpu") or "not stated", vendor="", architecture="", form_factor="", memory_usable_bytes=0,
        memory_sold_gb=0, memory_bandwidth_gb_per_s=bandwidth or fed, bf16_dense_tflop_per_s=peak,
        fp16_dense_tflop_per_s=peak, fp16_fp16acc_dense_tflop_per_s=None, tf32_dense_tflop_per_s=None,
        fp32_tflop_per_s=None, fp8_dense_tflop_per_s=2 * peak, int8_dense_tops=None, fp4_dense_tflop_per_s=4 * peak,
        link_kind="none", link_gb_per_s=0, pcie_gb_per_s=0, p2p=False, tdp_w=0, max_gpus_per_node=8, consumer=False,
        release_year=None, confidence=confidence, memory_origin="", notes="", ref=SourceRef("row", 0, "", None),
    )  # fmt: skip
