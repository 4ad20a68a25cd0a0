"""The claims of the practitioner's article: what was measured, and what gpumix says."""

from collections.abc import Callable, Sequence

from catalog import load_catalog
from optimizer.estimator.architecture import architecture_of
from optimizer.estimator.engines import engine_named
from optimizer.estimator.inference import RequestShape, mean_context, prefill_time, saturated_seconds
from optimizer.estimator.kernels import kernel_for
from optimizer.estimator.memory import weight_bytes
from optimizer.estimator.roofline import Replica, attention_flop, replica_of
from optimizer.estimator.steady_state import decode_tokens_per_s, saturated_tokens_per_s
from optimizer.estimator.training import gpu_seconds_per_token, model_flop_per_token
from optimizer.estimator.training_memory import TrainingPlan
from optimizer.estimator.workloads import InlineModel
from optimizer.units import BYTES_PER_GB, MS_PER_S

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
CHAT = RequestShape("all", 500, 250)
GPT_3_TOKENS = 300e9
BYTES_PER_TOKEN = 4.3
SECONDS_PER_DAY = 86_400.0
SECONDS_PER_YEAR = 365 * SECONDS_PER_DAY
CATALOG = load_catalog()


def replica(gpu: str, model: str, weights: str, gpus: int = 1, engine: str = "vllm") -> Replica:
    """Replica by catalog names."""
    card, shape = CATALOG.gpu(gpu), CATALOG.model(model)
    kernel = kernel_for(card, weights)
    assert kernel is not None
    return replica_of(card, shape, weights, "fp16", kernel, gpus, engine=engine_named(engine))


def stream_ms(copy: Replica) -> float:
    """Milliseconds per token of a lone stream."""
    return MS_PER_S / decode_tokens_per_s(copy, CHAT, 1)


def claims_table(table: Table) -> str:
    """One line per claim."""
    ada, ampere = replica("RTX-4090", "llama-7b", "fp16"), replica("A100-80GB-SXM", "llama-7b", "fp16")
    home = replica("RTX-4090", "llama-7b", "fp16", engine="llama.cpp")
    server = replica("A100-80GB-SXM", "llama-7b", "fp16", engine="llama.cpp")
    eight = replica("RTX-4090", "llama-3.1-8b", "fp16")
    packed = replica("RTX-4090", "llama-7b", "int4", engine="llama.cpp")
    large = replica("RTX-4090", "llama-2-70b", "int4", 2)
    gain = saturated_tokens_per_s(ampere, CHAT, 32) / saturated_tokens_per_s(ampere, CHAT, 1)
    prompt = prefill_time(ampere, CHAT.prompt).total
    attention = attention_flop(ampere.model, CHAT.prompt, CHAT.prompt) / ampere.attention_flop_per_s
    step = saturated_seconds(ampere, CHAT, 32).total
    cache = mean_context(CHAT) * ampere.kv_bytes_per_token / ampere.kv_bytes_per_s * CHAT.output
    held = weight_bytes(large.model, "int4") / BYTES_PER_GB
    rows = [
        [
            "RTX 4090: LLaMA-7B at about 19 ms per token, comparable to A100",
            "weights ÷ bandwidth + overhead",
            "16.2 ms (4090, HF); llama.cpp 18.4 (4090) and 18.3–18.8 (A100), 8B; A100 with LMDeploy 10 ms",
            f"llama.cpp {stream_ms(home):.1f} (4090), {stream_ms(server):.1f} (A100); batching engine "
            f"{stream_ms(ada):.1f} and {stream_ms(ampere):.1f}: true of single-stream engines only",
        ],
        [
            "25 tokens/s per RTX 4090 as planning figure",
            "batch ÷ step time",
            "54–62 in one stream, 1,112–1,460 at 30–67 at once (8B)",
            f"{decode_tokens_per_s(eight, CHAT, 1):.0f} in one stream, "
            f"{saturated_tokens_per_s(eight, CHAT, 32):.0f} at 32 at once: far too low when batched",
        ],
        [
            "150 tokens/s for a quantised 7B",
            "weights ÷ bandwidth + vector units",
            "113–207, median 198 (8 rows)",
            f"{decode_tokens_per_s(packed, CHAT, 1):.0f} (llama.cpp, 4 bit): holds",
        ],
        [
            "70B in 4 bit: 140 → 35 GB, 500 → 90 ms per token at batch 8",
            "parameters · bits ÷ 8",
            "141 → 37.5–42.5 GB; two RTX 4090 needed, 29 ms (TP2) to 52 ms",
            f"{weight_bytes(large.model, 'fp16') / BYTES_PER_GB:.0f} → {held:.1f} GB, two RTX 4090, "
            f"{MS_PER_S * 8 / decode_tokens_per_s(large, CHAT, 8):.0f} ms at batch 8: does not fit one card",
        ],
        [
            "dynamic batching (vLLM): 5 times",
            "throughput at batch B ÷ at batch 1",
            "21 times at batch 32 (A100, 7B: 102 → 2,125 tokens/s)",
            f"{gain:.0f} times at 32 (500 + 250 tokens): not a constant, the batch decides",
        ],
        [
            "FlashAttention: 30 %",
            "attention FLOP and KV reads ÷ request",
            "no inference measurement found",
            f"attention is {100 * attention / prompt:.0f} % of a 500-token prompt and KV reads "
            f"{100 * cache / step:.0f} % of a request's share of a batch of 32: unsupported at such lengths",
        ],
    ]
    return table(["claim", "formula", "measured", "gpumix"], [*training_rows(), *rows])


def plan_of(model: str, sequence: int) -> TrainingPlan:
    """Pre-training of all weights in bf16, states sharded."""
    shape = CATALOG.model(model)
    return TrainingPlan(shape, sequence, 1, "bf16", "full", "zero3", "selective", "adamw", "typical", whole_run=True)


def training_rows() -> list[list[str]]:
    """Claims on hardware and training: precision, FLOP of a run, GPUs in time, bandwidth, requests by FLOP."""
    ada, a100 = CATALOG.gpu("RTX-4090"), CATALOG.gpu("A100-80GB-SXM")
    gpt, llama = plan_of("gpt-3-175b", 2048), plan_of("llama-33b", 2048)
    flop = model_flop_per_token(gpt) * GPT_3_TOKENS
    years = gpu_seconds_per_token(a100, gpt, 8, 1024) * GPT_3_TOKENS / SECONDS_PER_YEAR
    tokens = 50e9 / BYTES_PER_TOKEN
    cards = tokens * gpu_seconds_per_token(a100, llama, 1, 64) / (5 * SECONDS_PER_DAY)
    bot = InlineModel.model_validate({"architecture": {"layers": 96, "hidden": 1280, "heads": 20}, "name": "article"})
    shape = architecture_of(bot)
    kernel = kernel_for(a100, "fp16")
    assert kernel is not None
    copy = replica_of(a100, shape, "fp16", "fp16", kernel, 1)
    lengths = RequestShape("all", 2000, 200)
    served = 1 / saturated_seconds(copy, lengths, 256).total
    older = CATALOG.gpu("A100-40GB-SXM")
    return [
        [
            "RTX 4090: 83 TFLOP/s in FP32, 330 in FP16; precision is worth several times",
            "dense peak by precision and accumulation",
            "training products accumulate in FP32",
            f"{ada.fp32_tflop_per_s:.1f} FP32, {ada.fp16_dense_tflop_per_s:.1f} FP16 summed up in FP32 (training), "
            f"{ada.fp16_fp16acc_dense_tflop_per_s:.1f} summed up in FP16: true of the last only",
        ],
        [
            "GPT-3: 1.75e23 FLOP, 285 years of one A100",
            "6·N·D + attention; ÷ (peak · MFU)",
            "3.14e23 FLOP, 300e9 tokens (arXiv 2005.14165)",
            f"{flop:.3g} FLOP, {years:.0f} A100-years in bf16 on 1,024 GPUs: FLOP too few, FP32 rate too slow",
        ],
        [
            "LLaMA-33B, 50 GB, 5 days: 5 A100 (4.25)",
            "tokens · time per token ÷ 5 days",
            "733 tokens/s per A100 (LLaMA paper): 37",
            f"{cards:.0f} A100 ({tokens / 1e9:.1f}e9 tokens); the rule as printed gives 4,352.6, 4.25 is that ÷ 1,024",
        ],
        [
            "an A100 serves 72,000 requests/s (2,200 tokens, width 1280, depth 96)",
            "2 FLOP per parameter and token; bandwidth; batch",
            "no such rate was ever measured",
            f"{served:.1f} requests/s (2,000 + 200 tokens, 256 at once): the rule counts activations, not weights",
        ],
        [
            "the RTX 4090's 1,008 GB/s far exceed the A100's 1,555",
            "data sheets",
            "1,008 < 1,555",
            f"{ada.memory_bandwidth_gb_per_s:,.0f} against {older.memory_bandwidth_gb_per_s:,.0f} (40 GB) and "
            f"{a100.memory_bandwidth_gb_per_s:,.0f} GB/s (80 GB): false",
        ],
    ]
