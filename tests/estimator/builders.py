"""GPU and model records for tests: round figures of known cards, changed where a test says so."""

from dataclasses import replace
from typing import Any

from catalog.schema import Gpu, LlmArchitecture, SourceRef

REF = SourceRef("test", 1, "test", None)

A100 = Gpu(
    gpu_id="A100-80GB-SXM",
    vendor="nvidia",
    architecture="Ampere",
    form_factor="SXM4",
    memory_usable_bytes=81_920 * 2**20,
    memory_sold_gb=80,
    memory_bandwidth_gb_per_s=2039,
    bf16_dense_tflop_per_s=312,
    fp16_dense_tflop_per_s=312,
    fp16_fp16acc_dense_tflop_per_s=None,
    tf32_dense_tflop_per_s=156,
    fp32_tflop_per_s=19.5,
    fp8_dense_tflop_per_s=None,
    int8_dense_tops=624,
    fp4_dense_tflop_per_s=None,
    link_kind="nvlink",
    link_gb_per_s=300,
    pcie_gb_per_s=25,
    p2p=True,
    tdp_w=400,
    max_gpus_per_node=8,
    consumer=False,
    release_year=2020,
    confidence="test",
    memory_origin="test",
    notes="",
    ref=REF,
)
H100 = replace(
    A100,
    gpu_id="H100-80GB-SXM",
    architecture="Hopper",
    memory_usable_bytes=81_559 * 2**20,
    memory_bandwidth_gb_per_s=3350,
    bf16_dense_tflop_per_s=989,
    fp16_dense_tflop_per_s=989,
    tf32_dense_tflop_per_s=494.5,
    fp32_tflop_per_s=67,
    fp8_dense_tflop_per_s=1979,
    int8_dense_tops=1979,
    link_gb_per_s=450,
    pcie_gb_per_s=50,
)
H200 = replace(H100, gpu_id="H200-SXM", memory_usable_bytes=143_771 * 2**20, memory_bandwidth_gb_per_s=4800)
RTX_4090 = replace(
    A100,
    gpu_id="RTX-4090",
    architecture="Ada Lovelace",
    memory_usable_bytes=24_564 * 2**20,
    memory_sold_gb=24,
    memory_bandwidth_gb_per_s=1008,
    bf16_dense_tflop_per_s=165.2,
    fp16_dense_tflop_per_s=165.2,
    tf32_dense_tflop_per_s=82.6,
    fp32_tflop_per_s=82.6,
    fp8_dense_tflop_per_s=330.3,
    int8_dense_tops=660.6,
    link_kind="none",
    link_gb_per_s=12,
    p2p=False,
    consumer=True,
)

LLAMA_7B = LlmArchitecture(
    model_id="llama-7b",
    family="llama",
    parameters=6_738_415_616,
    active_parameters=6_738_415_616,
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    kv_heads=32,
    head_dim=128,
    ffn_size=11_008,
    gated_ffn=True,
    vocabulary_size=32_000,
    tied_embeddings=False,
    qkv_bias=False,
    experts=1,
    experts_per_token=1,
    expert_ffn_size=0,
    shared_experts=0,
    sliding_window_tokens=None,
    max_context_tokens=2048,
    confidence="test",
    notes="",
    ref=REF,
)
LLAMA_33B = replace(
    LLAMA_7B,
    model_id="llama-33b",
    parameters=32_528_943_616,
    active_parameters=32_528_943_616,
    layers=60,
    hidden_size=6656,
    attention_heads=52,
    kv_heads=52,
    ffn_size=17_920,
)
LLAMA_8B = replace(
    LLAMA_7B,
    model_id="llama-3.1-8b",
    parameters=8_030_261_248,
    active_parameters=8_030_261_248,
    kv_heads=8,
    ffn_size=14_336,
    vocabulary_size=128_256,
    max_context_tokens=131_072,
)
LLAMA_70B = replace(
    LLAMA_8B,
    model_id="llama-3.1-70b",
    parameters=70_553_706_496,
    active_parameters=70_553_706_496,
    layers=80,
    hidden_size=8192,
    attention_heads=64,
    ffn_size=28_672,
)
MIXTRAL = replace(
    LLAMA_8B,
    model_id="mixtral-8x7b",
    parameters=46_702_792_704,
    active_parameters=12_879_425_536,
    vocabulary_size=32_000,
    experts=8,
    experts_per_token=2,
    expert_ffn_size=14_336,
    max_context_tokens=32_768,
)
MODELS = {m.model_id: m for m in (LLAMA_7B, LLAMA_33B, LLAMA_8B, LLAMA_70B, MIXTRAL)}


def model(**changes: Any) -> LlmArchitecture:
    """LLaMA-7B with changes."""
    return replace(LLAMA_7B, **changes)


def gpu(**changes: Any) -> Gpu:
    """A100-80GB-SXM with changes."""
    return replace(A100, **changes)


def resolve(name: str) -> LlmArchitecture:
    """Model of the tests by name."""
    return MODELS[name]


def no_model(name: str) -> LlmArchitecture:
    """Fail: the test says that no model is needed."""
    raise AssertionError(name)
