"""Rows of the catalog as typed, frozen records. Peaks are dense; memory is usable bytes; money is USD."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class SourceRef:
    """Where a row comes from: the file and line of the catalog, the text it was read in, and the day."""

    file: str
    line: int
    source: str
    date: date | None

    def __str__(self) -> str:
        """`catalog/gpus.csv:7 (vendor datasheet, 2026-02-02)`."""
        day = self.date.isoformat() if self.date else "date unknown"
        return f"{self.file}:{self.line} ({self.source}, {day})"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU variant. Peak fields are dense TFLOP/s (TOPS for int8), None where the GPU has no such unit.

    The bf16 and fp16 peaks are with FP32 accumulation; T4 and V100 have no bf16. `link_kind` is nvlink (all GPUs of
    the node) | nvlink-bridge (pairs only, beyond them PCIe) | infinity-fabric | roce | ici (the torus of TPUs) | pcie |
    none (no peer-to-peer: through host memory); `link_gb_per_s` is one way and per GPU. `pcie_gb_per_s` and `tdp_w` are
    None where they are not published (TPU). `consumer`: the licence bars data centres.
    """

    gpu_id: str
    vendor: str
    architecture: str
    form_factor: str
    memory_usable_bytes: int
    memory_sold_gb: float
    memory_bandwidth_gb_per_s: float
    bf16_dense_tflop_per_s: float | None
    fp16_dense_tflop_per_s: float | None
    fp16_fp16acc_dense_tflop_per_s: float | None
    tf32_dense_tflop_per_s: float | None
    fp32_tflop_per_s: float | None
    fp8_dense_tflop_per_s: float | None
    int8_dense_tops: float | None
    fp4_dense_tflop_per_s: float | None
    link_kind: str
    link_gb_per_s: float
    pcie_gb_per_s: float | None
    p2p: bool
    tdp_w: float | None
    max_gpus_per_node: int
    consumer: bool
    release_year: int | None
    confidence: str
    memory_origin: str
    notes: str
    ref: SourceRef

    @property
    def link_both_ways_gb_per_s(self) -> float:
        """What datasheets advertise: both directions together."""
        return 2 * self.link_gb_per_s

    @property
    def is_tpu(self) -> bool:
        """Whether it is a TPU: the estimator has no model of these (a torus, another compiler), only measurements."""
        return self.link_kind == "ici"

    @property
    def host_gb_per_s(self) -> float:
        """`pcie_gb_per_s` of a GPU that has one. Raises ValueError for one that has not (a TPU)."""
        if self.pcie_gb_per_s is None:
            msg = f"the rate between {self.gpu_id} and its host is not published"
            raise ValueError(msg)
        return self.pcie_gb_per_s

    @property
    def licence_note(self) -> str:
        """What the driver's licence says of where the GPU may run; empty for data-centre and workstation cards."""
        return "GeForce driver licence: no use in data centres, save for blockchain processing" if self.consumer else ""

    def peak_tflop_per_s(self, precision: str) -> float | None:
        """Dense peak for `precision` (fp32, tf32, bf16, fp16, fp8, int8, fp4); None if the GPU has no such unit."""
        return {
            "fp32": self.fp32_tflop_per_s,
            "tf32": self.tf32_dense_tflop_per_s,
            "bf16": self.bf16_dense_tflop_per_s,
            "fp16": self.fp16_dense_tflop_per_s,
            "fp8": self.fp8_dense_tflop_per_s,
            "int8": self.int8_dense_tops,
            "fp4": self.fp4_dense_tflop_per_s,
        }[precision]


@dataclass(frozen=True, slots=True)
class LlmArchitecture:
    """Shape of an open model. `parameters` is the published total; `active_parameters` are used per token (MoE)."""

    model_id: str
    family: str
    parameters: float
    active_parameters: float
    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    ffn_size: int
    gated_ffn: bool
    vocabulary_size: int
    tied_embeddings: bool
    qkv_bias: bool
    experts: int
    experts_per_token: int
    expert_ffn_size: int
    shared_experts: int
    sliding_window_tokens: int | None
    max_context_tokens: int | None
    confidence: str
    notes: str
    ref: SourceRef
    sliding_window_layers: int = 0
    """Layers whose attention sees only the last `sliding_window_tokens`; the others see the whole context."""
    dense_layers: int = 0
    """Layers with a plain feed-forward block of `ffn_size` in a model with experts (DeepSeek: the first ones)."""
    learned_positions: int = 0
    """Rows of a learned position table (GPT-2, OPT); 0 with rotary or ALiBi positions."""
    kv_lora_rank: int = 0
    """Width of the compressed key-value cache (multi-head latent attention, arXiv 2405.04434); 0 without it.

    With it `head_dim` is the width of queries and keys, of which `rope_head_dim` is rotary and shared by the heads.
    """
    q_lora_rank: int = 0
    """Width of the compressed queries; 0 where they are not compressed."""
    rope_head_dim: int = 0
    value_head_dim: int = 0
    """Width of a value head, where it is not `head_dim`."""


BILLING_STEP_HOURS = {
    "second": 1 / 3600,
    "minute": 1 / 60,
    "10 minutes": 1 / 6,
    "hour": 1.0,
    "day": 24.0,
    "week": 168.0,
    "month": 730.0,
    "year": 8760.0,
}
"""Hours of a billing step."""


@dataclass(frozen=True, slots=True)
class CloudOffer:
    """One rentable node type at one provider and place, with one purchase option and price (per NODE, USD)."""

    offer_id: str
    provider: str
    region: str
    instance_type: str
    gpu_id: str
    gpus_per_node: int
    purchase_option: str
    """on-demand | spot | reserved | committed-use."""
    term_months: float | None
    price_usd_per_node_hour: float
    upfront_usd_per_node: float
    billing_step: str
    """One of `BILLING_STEP_HOURS`, the shortest time that is paid, or unknown."""
    vcpus: float | None
    ram_gib: float | None
    confidence: str
    notes: str
    ref: SourceRef


@dataclass(frozen=True, slots=True)
class TypicalDiscount:
    """What the literature gives as the discount of a reservation against on-demand: a range, no price of anybody."""

    discount_id: str
    purchase_option: str
    term_months: float
    low_fraction: float
    mid_fraction: float
    high_fraction: float
    providers: str
    """Providers of whom it may be expected, by spaces."""
    not_offers: str | None
    """Patterns of ids of their offers, by spaces, of which it may not: hosts that are third parties."""
    confidence: str
    notes: str
    ref: SourceRef

    def fraction(self, level: str) -> float:
        """Discount at `level` (low, mid, high), between 0 and 1."""
        return {"low": self.low_fraction, "mid": self.mid_fraction, "high": self.high_fraction}[level]


@dataclass(frozen=True, slots=True)
class ResaleValue:
    """What used servers sell for at an age, as a share of their price: a range from the literature."""

    age_id: str
    age_months: float
    low_fraction: float
    mid_fraction: float
    high_fraction: float
    confidence: str
    notes: str
    ref: SourceRef

    def fraction(self, level: str) -> float:
        """Share of the price at `level` (low, mid, high)."""
        return {"low": self.low_fraction, "mid": self.mid_fraction, "high": self.high_fraction}[level]


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """One node type that can be bought (a card in a host counts as a node), with power and upkeep."""

    server_id: str
    gpu_id: str
    gpus_per_node: int
    price_usd_per_node: float
    price_low_usd: float | None
    price_high_usd: float | None
    nameplate_kw: float
    idle_kw: float
    load_kw: float
    useful_life_months: float
    residual_fraction: float
    maintenance_fraction_per_year: float
    installation_usd_per_node: float
    lead_time_months: float
    consumer: bool
    confidence: str
    notes: str
    ref: SourceRef


@dataclass(frozen=True, slots=True)
class SiteCost:
    """One reference price of a place to run hardware: electricity, colocation, PUE, upkeep, resale, network or staff.

    `value` is in `unit` (kept as published, also EUR); None where the source prints only a range.
    """

    cost_id: str
    kind: str
    item: str
    region: str
    value: float | None
    value_low: float | None
    value_high: float | None
    unit: str
    confidence: str
    notes: str
    ref: SourceRef
