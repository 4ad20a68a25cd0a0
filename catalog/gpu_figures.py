"""Figures of a GPU that look sparse, cannot be, or differ from the row of the same id in the package's catalog."""

from collections.abc import Iterator, Mapping
from functools import cache

from catalog.errors import CatalogError
from catalog.load import load_catalog
from catalog.schema import Gpu

ERROR, WARNING = "error", "warning"
WITHOUT_FP8 = ("Volta", "Turing", "Ampere")
MOST_DIFFERENCE = 0.05
SAME_RATIO = 0.03
_SIZES = ("memory_usable_bytes", "memory_sold_gb", "memory_bandwidth_gb_per_s")
_PEAKS = (
    "bf16_dense_tflop_per_s", "fp16_dense_tflop_per_s", "fp16_fp16acc_dense_tflop_per_s", "tf32_dense_tflop_per_s",
    "fp32_tflop_per_s", "fp8_dense_tflop_per_s", "int8_dense_tops", "fp4_dense_tflop_per_s",
)  # fmt: skip


def doubtful_figures(gpu: Gpu) -> Iterator[tuple[str, str, str]]:
    """Severity, code and words for each doubtful figure."""
    if gpu.fp8_dense_tflop_per_s and gpu.architecture in WITHOUT_FP8:
        yield ERROR, "sparse-peak", f"{gpu.architecture} has no fp8 unit: is it the int8 figure?"
    for code, message in (*_unlike_packaged(gpu), *(_of_consumer_card(gpu) if gpu.consumer else _unusual_ratios(gpu))):
        yield WARNING, code, message


def _of_consumer_card(gpu: Gpu) -> Iterator[tuple[str, str]]:
    """Consumer cards accumulate in FP32 at half the speed, so that their bf16 peak is below that of fp16."""
    half, loose = gpu.bf16_dense_tflop_per_s, gpu.fp16_fp16acc_dense_tflop_per_s
    if half and loose and abs(half / loose - 1) < SAME_RATIO:
        message = f"bf16 is {half:g} as fp16 with FP16 accumulation; with FP32 consumer cards reach half of it"
        yield "accumulation", message


def _unusual_ratios(gpu: Gpu) -> Iterator[tuple[str, str]]:
    """Peaks whose ratio is that of a sparse figure to a dense one."""
    half = gpu.bf16_dense_tflop_per_s
    if not half:
        return
    for name, peak, usual in (
        ("fp8", gpu.fp8_dense_tflop_per_s, 2.0),
        ("int8", gpu.int8_dense_tops, 2.0),
        ("tf32", gpu.tf32_dense_tflop_per_s, 0.5),
    ):
        ratio = (peak or half * usual) / half
        if any(abs(ratio / usual / wrong - 1) < SAME_RATIO for wrong in (0.5, 2.0)):
            yield "sparse-peak", f"{name} is {ratio:.2f} × bf16, usually {usual:g}: one of them may be sparse"


def _unlike_packaged(gpu: Gpu) -> Iterator[tuple[str, str]]:
    """Code and words for each figure that differs by over 5 % from the package's row of the same id."""
    packaged = _packaged_gpus().get(gpu.gpu_id)
    for name in (*_SIZES, *_PEAKS) if packaged else ():
        here, there = getattr(gpu, name), getattr(packaged, name)
        if not here or here == there:
            continue
        if not there:
            yield "unlike-packaged", f"{name} is {here:g}; the packaged catalog has none: does {gpu.gpu_id} have it?"
        elif name in _PEAKS and abs(here / there / 2 - 1) < SAME_RATIO:
            yield "sparse-peak", f"{name} is {here:g}, twice the {there:g} of the packaged catalog: it looks sparse"
        elif abs(here / there - 1) > MOST_DIFFERENCE:
            yield "unlike-packaged", f"{name} is {here:g}; the packaged catalog says {there:g}"


@cache
def _packaged_gpus() -> Mapping[str, Gpu]:
    try:
        return {gpu.gpu_id: gpu for gpu in load_catalog().gpus()}
    except CatalogError:
        return {}
