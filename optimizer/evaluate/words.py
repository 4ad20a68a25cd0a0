"""Words that tables of measurements use: empty cells, number formats and their many spellings, numbers with commas."""

import re

from catalog.schema import Gpu

BLANKS = frozenset({"nan", "none", "null", "n/a", "na", "-", "–", "—"})
"""What stands for an empty cell in any column."""
NOT_SAID = frozenset({"unknown", "unstated", "not stated", "unspecified", "?", "default", "auto"})
"""What stands for an empty cell where a number or a format is meant."""
_GROUPED = re.compile(r"\d{1,3}(?:[,_]\d{3})+(?:\.\d+)?")

_FORMATS = (
    (r"(nv|mx)?fp4|float4|e2m1|w4a4|nvfp4.*|mxfp4.*", "fp4"),
    (r"(mx)?fp8.*|float8.*|f8.*|e4m3.*|e5m2.*|w8a8(fp8|float8)", "fp8"),
    (r"bf16|bfloat16|bfloat", "bf16"),
    (r"fp16|float16|half|f16|fp16(mixed|amp)?", "fp16"),
    (r"tf32", "tf32"),
    (r"fp32|float32|f32|float|single", "fp32"),
    (r"(g?gml)?i?q[1-5]\w*|u?int4.*|4bits?|nf4.*|w4a(16|8).*|g?awq.*|gptq(.*4bits?|.*int4)?", "int4"),
    (r"exl[23].*|autoround.*|hqq.*|marlin", "int4"),
    (r"u?int8.*|8bits?|w8a(8|16).*|smoothquant.*|llmint8|q[68]\w*|gptq.*(8bits?|int8)", "int8"),
)  # fmt: skip
"""Spellings of number formats, written small and without dashes, dots and blanks."""


def is_blank(cell: str) -> bool:
    """Whether a cell says nothing."""
    return not cell or cell.casefold() in BLANKS


def is_unsaid(cell: str) -> bool:
    """Whether a cell of a number or a format says nothing."""
    return is_blank(cell) or cell.casefold() in NOT_SAID


def number_format(word: str) -> str | None:
    """Number format that a word means: fp32 | tf32 | bf16 | fp16 | fp8 | int8 | int4 | fp4; None if none.

    >>> number_format("bfloat16"), number_format("FP8_E4M3"), number_format("AWQ-INT4"), number_format("w8a8")
    ('bf16', 'fp8', 'int4', 'int8')
    """
    plain = re.sub(r"[\s._\-]+", "", word.casefold())
    return next((meant for pattern, meant in _FORMATS if re.fullmatch(pattern, plain)), None)


def sixteen_bits_of(gpu: Gpu, wanted: str) -> str:
    """A 16-bit format as the GPU has it: V100 and T4 know no bf16, Gaudi 2 no fp16; other formats as they are."""
    other = {"bf16": "fp16", "fp16": "bf16"}.get(wanted)
    return other if other is not None and gpu.peak_tflop_per_s(wanted) is None else wanted


def plain_number(cell: str) -> str:
    """A number without the commas or underscores between its thousands, or a sign that it is rounded.

    >>> plain_number("1,024"), plain_number("~3.5"), plain_number("1,5")
    ('1024', '3.5', '1,5')
    """
    bare = cell.lstrip("~≈ ")
    return re.sub("[,_]", "", bare) if _GROUPED.fullmatch(bare) else bare
