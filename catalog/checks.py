"""Rules that a row must hold to be used; each gives the column at fault and what is wrong, or None."""

from catalog.schema import (
    BILLING_STEP_HOURS,
    CloudOffer,
    Gpu,
    LlmArchitecture,
    ResaleValue,
    ServerOffer,
    TypicalDiscount,
)

Fault = tuple[str, str] | None

LINK_KINDS = ("nvlink", "nvlink-bridge", "infinity-fabric", "roce", "ici", "pcie", "none")
PURCHASE_OPTIONS = ("on-demand", "spot", "reserved", "committed-use")
BILLING_STEPS = (*BILLING_STEP_HOURS, "unknown")

# A card shows its driver between 0.93 × (decimal GB, error correction on) and 1.08 × (GiB) the bytes it is sold with.
LEAST_USABLE_SHARE = 0.93
MOST_USABLE_SHARE = 1.08


def gpu_memory_is_per_gpu(gpu: Gpu) -> Fault:
    """Usable bytes near the size one GPU is sold with, not the total of a node."""
    share = gpu.memory_usable_bytes / (gpu.memory_sold_gb * 1e9)
    if LEAST_USABLE_SHARE <= share <= MOST_USABLE_SHARE:
        return None
    return "memory_usable_bytes", f"{gpu.memory_usable_bytes} is {share:.2f} × the {gpu.memory_sold_gb:g} GB of one GPU"


def gpu_figures_are_positive(gpu: Gpu) -> Fault:
    """Bandwidth, link, power and every peak given are above 0."""
    names = [name for name in gpu.__slots__ if name.endswith(("_per_s", "_tops", "_w"))]
    for name in (*names, "max_gpus_per_node"):
        value = getattr(gpu, name)
        if value is not None and value <= 0:
            return name, f"{value:g} is not above 0; leave it empty if the GPU has no such unit"
    return None


def gpu_has_a_tensor_peak(gpu: Gpu) -> Fault:
    """A peak in bf16 or fp16."""
    if gpu.bf16_dense_tflop_per_s is None and gpu.fp16_dense_tflop_per_s is None:
        return "bf16_dense_tflop_per_s", "empty, as fp16_dense_tflop_per_s is; give one of the two"
    return None


def gpu_peaks_are_dense(gpu: Gpu) -> Fault:
    """The 8-bit peak is twice the 16-bit one; equal to it, the 16-bit figure is the sparse one."""
    half, eight = gpu.bf16_dense_tflop_per_s, gpu.int8_dense_tops
    if gpu.vendor == "nvidia" and half and eight and abs(eight / half - 1) < 0.01:
        return "bf16_dense_tflop_per_s", f"{half:g} equals the int8 peak: that is the sparse figure; halve it"
    return None


def gpu_link_is_known(gpu: Gpu) -> Fault:
    """`link_kind` is one of LINK_KINDS, and `none` exactly where there is no peer-to-peer."""
    if gpu.link_kind not in LINK_KINDS:
        return "link_kind", f"{gpu.link_kind!r} is not one of {', '.join(LINK_KINDS)}"
    if (gpu.link_kind == "none") == gpu.p2p:
        return "p2p", "must be false exactly where link_kind is none"
    return None


def gpu_power_and_host_are_known(gpu: Gpu) -> Fault:
    """`tdp_w` and `pcie_gb_per_s` may be left open of a TPU only: nobody can buy one, and none is published."""
    for name in ("tdp_w", "pcie_gb_per_s"):
        if getattr(gpu, name) is None and gpu.link_kind != "ici":
            return name, "empty; write a number (only a TPU may leave it open)"
    return None


def model_counts_fit(model: LlmArchitecture) -> Fault:
    """Heads divide into groups, active parameters and experts do not exceed the totals."""
    if model.attention_heads % model.kv_heads:
        return "kv_heads", f"{model.kv_heads} does not divide attention_heads {model.attention_heads}"
    if not 0 < model.active_parameters <= model.parameters:
        return "active_parameters", f"must lie above 0 and at most at parameters ({model.parameters:g})"
    if not 1 <= model.experts_per_token <= model.experts:
        return "experts_per_token", f"must lie between 1 and experts ({model.experts})"
    if model.sliding_window_layers > model.layers:
        return "sliding_window_layers", f"more than layers ({model.layers})"
    return None


def offer_price_is_positive(offer: CloudOffer) -> Fault:
    """A price of 0 is a missing price, never a gift."""
    if offer.price_usd_per_node_hour < 0:
        price = offer.price_usd_per_node_hour
        return "price_usd_per_node_hour", f"{price:g} is negative; leave the row out if the price is unknown"
    if offer.price_usd_per_node_hour <= 0 and offer.upfront_usd_per_node <= 0:
        return "price_usd_per_node_hour", "0 is not a price; leave the row out if the price is unknown"
    if offer.gpus_per_node < 1:
        return "gpus_per_node", f"{offer.gpus_per_node}; an offer has at least one GPU"
    return None


def offer_terms_are_known(offer: CloudOffer) -> Fault:
    """Purchase option and billing step by name; a term exactly for reserved and committed-use offers."""
    if offer.purchase_option not in PURCHASE_OPTIONS:
        return "purchase_option", f"{offer.purchase_option!r} is not one of {', '.join(PURCHASE_OPTIONS)}"
    if offer.billing_step not in BILLING_STEPS:
        return "billing_step", f"{offer.billing_step!r} is not one of {', '.join(BILLING_STEPS)}"
    wants_term = offer.purchase_option in ("reserved", "committed-use")
    if wants_term != bool(offer.term_months):
        return "term_months", "give a term for reserved and committed-use offers, and for no others"
    return None


def server_price_is_positive(server: ServerOffer) -> Fault:
    """The price is above 0 and within its range."""
    price = server.price_usd_per_node
    if price <= 0 or server.gpus_per_node < 1:
        return "price_usd_per_node", "a server has a price above 0 and at least one GPU"
    low, high = server.price_low_usd or price, server.price_high_usd or price
    if not low <= price <= high:
        return "price_usd_per_node", f"{price:g} lies outside its range {low:g} to {high:g}"
    return None


def server_power_is_ordered(server: ServerOffer) -> Fault:
    """0 ≤ idle ≤ load ≤ nameplate, and shares between 0 and 1."""
    if not 0 <= server.idle_kw <= server.load_kw <= server.nameplate_kw or server.nameplate_kw <= 0:
        return "load_kw", "power must be 0 ≤ idle_kw ≤ load_kw ≤ nameplate_kw"
    for name in ("residual_fraction", "maintenance_fraction_per_year"):
        if not 0 <= getattr(server, name) <= 1:
            return name, "a fraction lies between 0 and 1 (5 % is 0.05)"
    if server.useful_life_months <= 0:
        return "useful_life_months", "must be above 0"
    return None


def resale_values_are_ordered(value: ResaleValue) -> Fault:
    """0 ≤ low ≤ mid ≤ high ≤ 1, at an age above 0."""
    if not 0 <= value.low_fraction <= value.mid_fraction <= value.high_fraction <= 1:
        return "mid_fraction", "resale values must be 0 ≤ low ≤ mid ≤ high ≤ 1 (5 % is 0.05)"
    return None if value.age_months > 0 else ("age_months", "must be above 0")


def discounts_are_ordered(discount: TypicalDiscount) -> Fault:
    """0 ≤ low ≤ mid ≤ high < 1, for a purchase option with a term."""
    if not 0 <= discount.low_fraction <= discount.mid_fraction <= discount.high_fraction < 1:
        return "mid_fraction", "discounts must be 0 ≤ low ≤ mid ≤ high < 1 (5 % is 0.05)"
    if discount.purchase_option not in ("reserved", "committed-use") or discount.term_months <= 0:
        return "term_months", "give a term for reserved or committed-use"
    return None


GPU_RULES = (
    gpu_memory_is_per_gpu,
    gpu_figures_are_positive,
    gpu_has_a_tensor_peak,
    gpu_peaks_are_dense,
    gpu_link_is_known,
    gpu_power_and_host_are_known,
)
MODEL_RULES = (model_counts_fit,)
OFFER_RULES = (offer_price_is_positive, offer_terms_are_known)
SERVER_RULES = (server_price_is_positive, server_power_is_ordered)
DISCOUNT_RULES = (discounts_are_ordered,)
RESALE_RULES = (resale_values_are_ordered,)
