"""What a buyer says of a workload: the schemas of services and jobs, and of measurements that replace estimates."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from optimizer.estimator.inline_model import Architecture as Architecture
from optimizer.estimator.inline_model import InlineModel as InlineModel
from optimizer.estimator.redundancy import SpareNodes
from optimizer.quantities import (
    Amount,
    Bytes,
    BytesPerS,
    Count,
    CountOrZero,
    Fraction,
    GrowthPerMonth,
    Headroom,
    Hours,
    Measured,
    Milliseconds,
    Model,
    Multiplier,
    NonNegative,
    PerDay,
    PerSecond,
    Positive,
    ShareAboveZero,
    StartHours,
)

Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"]
WeightFormat = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4"]
KvFormat = Literal["bf16", "fp16", "fp8", "int8"]


class TokenLengths(Model):
    """Tokens of one request."""

    input: CountOrZero
    """Prompt tokens."""
    output: CountOrZero
    """Generated tokens."""


class RequestClass(Model):
    """Requests of a kind within a service: its share or rate, and its lengths."""

    name: str | None = None
    share: Fraction | None = None
    """Share of the service's rate; give shares for all classes, or rates for all."""
    requests_per_s: PerSecond | None = None
    """Rate at base (times the slice's and period's multipliers)."""
    input: CountOrZero | None = None
    output: CountOrZero | None = None


class Traffic(Model):
    """How many requests come, and when."""

    requests_per_day: PerDay | None = None
    mean_requests_per_s: PerSecond | None = None
    peak_requests_per_s: PerSecond | None = None
    profile: str | list[NonNegative] = "flat"
    """flat | office-hours | global | a CSV path | 24 numbers (hours of a day) | 48 (weekday, then weekend)."""
    peak_to_mean: Positive | None = None
    """Rescales the profile so that its peak is that many times its mean."""
    growth: GrowthPerMonth = 0.0
    by_slice: dict[str, Multiplier] | None = None
    """Multiplier per slice name, where the problem lists its own slices."""
    by_period: list[Multiplier] | None = None
    """Multiplier per period, in order."""


class Latency(Model):
    """Targets that 95 % of requests must meet."""

    p95_ttft: Milliseconds | None = None
    """Time to first token."""
    p95_tpot: Milliseconds | None = None
    """Time per output token after the first."""
    p95_end_to_end: Milliseconds | None = None


class DataPlace(Model):
    """Where a workload's data may go."""

    regions: list[str] = Field(default_factory=list)
    """Region patterns (eu-*); nothing listed means anywhere. Owned hardware stands at the site, which always counts."""


class Workload(Model):
    """What every workload may say."""

    name: Annotated[str, Field(min_length=1)]
    model: str | InlineModel | None = None
    """A name of the model catalog, or an architecture; needless where every allowed GPU is measured."""
    gpus: list[str] | None = None
    """GPU types this workload may use; all of the problem's by default."""
    data: DataPlace = Field(default_factory=DataPlace)
    headroom: Headroom = 0.0
    """Extra capacity planned on top of the demand (0.33 plans for 1.33 times the rate)."""
    plan_for: Literal["middle", "low"] = "middle"
    """Which end of an estimate's range is planned for: its middle, or the low end of rates that 95 % of cases reach.

    `low` also holds latencies against their targets at the high end of their range. Measured rates are as they are.
    """
    estimate_by: Literal["analytic", "rule-of-thumb"] = "analytic"
    """`rule-of-thumb` uses the article's back-of-envelope rule for this kind, exact to its printed arithmetic."""


class Speculation(Model):
    """Speculative decoding (arXiv 2211.17192): a draft of several tokens is checked in one step."""

    draft: Count
    """Tokens drafted per step."""
    accepted: Annotated[float, Field(ge=1)]
    """Tokens gained per step on average, from 1 to draft + 1; measure it on your own requests."""
    time_share: Headroom = 0.0
    """Time that drafting adds, relative to a step of the model."""

    @model_validator(mode="after")
    def _no_more_than_drafted(self) -> "Speculation":
        if self.accepted > self.draft + 1:
            msg = f"found accepted {self.accepted:g} with draft {self.draft}: a step gains {self.draft + 1} at most"
            raise ValueError(msg)
        return self


class Service(Workload):
    """An online service: a rate of requests that must be served within latency targets (a `rate` demand)."""

    kind: Literal["service"]
    traffic: Traffic = Field(default_factory=Traffic)
    tokens: TokenLengths | None = None
    """Lengths of the only request class."""
    classes: list[RequestClass] | None = None
    """Request classes, where there is more than one."""
    latency: Latency = Field(default_factory=Latency)
    weights: WeightFormat | list[WeightFormat] = "bf16"
    """Weight format; a list is a choice that the solver makes."""
    kv: KvFormat = "fp16"
    gpus_per_replica: Count | list[Count] | None = None
    """Tensor-parallel sizes to consider; all legal ones by default."""
    pipeline_parallel: Count | list[Count] = 1
    """Pipeline stages to consider, each of that many GPUs; a list is a choice that the solver makes."""
    expert_parallel: Count | list[Count] = 1
    """GPUs over which the routed experts of a mixture are spread whole; 1 splits every expert over the GPUs.

    Attention is split over the same GPUs, or repeated on groups of them. A list is a choice that the solver makes.
    """
    prefix_cache_share: Fraction = 0.0
    """Share of prompt tokens that are found in the prefix cache, so that they need no prefill."""
    speculation: Speculation | None = None
    """Speculative decoding."""
    max_batch: Count | None = None
    """Most sequences a replica runs at once (an engine setting)."""
    utilisation_cap: ShareAboveZero | None = None
    """Highest busy share of a replica; from the latency targets by default (queueing), 1 for measured rates."""
    disaggregated: Literal["never", "allowed", "required"] = "never"
    """Whether prompts and outputs may run on replicas of their own (prefill and decode stages), of any GPU types.

    Stages hand requests over within one provider and region, or within the own site.
    """
    kv_transfer: BytesPerS | None = None
    """Rate per GPU at which a prefill stage sends KV caches over the network; a node of 8 shares 100 Gbit/s by default.
    """

    @model_validator(mode="after")
    def _stages_are_estimated(self) -> "Service":
        if self.disaggregated == "never" and self.kv_transfer is not None:
            msg = "kv_transfer is of no use where no stages hand over; write disaggregated: allowed, or leave it out"
            raise ValueError(msg)
        if self.disaggregated != "never" and self.estimate_by == "rule-of-thumb":
            msg = f"found disaggregated: {self.disaggregated}: the rule of thumb knows whole deployments only"
            raise ValueError(msg)
        return self

    min_replicas: CountOrZero = 0
    """Replicas that are there whenever requests come, however few (the floor of an autoscaler), of any deployments; in
    slices without requests there may be none."""
    startup: Hours = 0.0
    """Time from starting a replica (its node, loading the weights) until it serves, below 1 h.

    Replicas for the next clock hour hold their GPUs so much earlier. Not beside `slices` of the problem's own.
    """
    redundancy: SpareNodes = 0
    """Nodes that may be lost at any time (`n+1`, `n+2`, or their number): any nodes that host replicas of the service,
    in any slice, and the rest still serves the whole rate."""
    degraded_utilisation_cap: ShareAboveZero | None = None
    """Highest busy share of the replicas that are left after such a loss; 95 % by default (or `utilisation_cap`, if
    that is higher), 1 for measured rates."""


class Window(Model):
    """Hours of the day in which a job may run."""

    daily: Annotated[str, Field(pattern=r"^\d{1,2}:\d{2}-\d{1,2}:\d{2}$")]
    """From-to in clock hours, e.g. "22:00-06:00" (whole hours)."""


class Work(Model):
    """An amount of work in any unit; each GPU's yield then comes from `measurements`."""

    amount: Positive
    unit: str = "units"


class Job(Workload):
    """What every job may say: a volume of work inside a window."""

    start: StartHours = 0.0
    """Earliest start: `month 6`, or a duration after the horizon's start."""
    deadline: Hours | None = None
    """Time allowed after the start; the end of the horizon by default."""
    window: Window | None = None
    repeat: Literal["none", "daily", "weekly", "monthly", "quarterly", "yearly"] = "none"
    """Run again each day, week, … from the start to the end of the horizon."""
    work: Work | None = None
    """Amount in a unit of your own; else from tokens or requests."""
    min_gpus: Count = 1
    """Fewest GPUs at once while it runs."""
    max_gpus: Count | None = None
    """Most GPUs at once."""
    spread: Literal["one-pool", "one-gpu-type", "any"] = "one-pool"
    """What may run the job: one pool (offer) of one GPU type, several pools of one type, or any mix."""
    interruptible: bool = True
    """Whether spot capacity may be used."""
    checkpoints: bool = True
    """Whether it goes on after an interruption; false: it starts over, which is refused where it may never end."""
    checkpoint_every: Hours | None = None
    """Time between checkpoints: an interruption loses half of it, and `restart`. Left out: what the offer says
    (`hours_lost`); where that says nothing either, the job starts over."""
    restart: Hours = 0.0
    """Time to go on after an interruption (with `checkpoint_every`)."""


class Dataset(Model):
    """Training data given by size."""

    size: Bytes
    bytes_per_token: Positive = 4.3
    """English web text by default (800 GB = 180e9 tokens in OPT's training set); code and other scripts differ."""
    epochs: Positive = 1.0


class TrainingSettings(Job):
    """Settings that training and fine-tuning share."""

    tokens: Amount | None = None
    """Tokens trained in all (epochs included)."""
    dataset: Dataset | None = None
    sequence: Count | None = None
    precision: Precision = "bf16"
    stack: Literal["tuned", "typical", "naive"] = "typical"
    """How well the training software is tuned."""
    mfu: ShareAboveZero | None = None
    """Model FLOP utilisation against the dense peak of the precision, where you know it."""
    sharding: Literal["none", "zero1", "zero2", "zero3"] = "zero3"
    recompute: Literal["none", "selective", "full"] = "selective"
    """Activation recomputation (checkpointing)."""
    optimizer: Literal["adamw", "adamw-8bit", "adamw-bf16", "adamw-paged", "sgd"] = "adamw"
    """adamw keeps 12 bytes per parameter, adamw-bf16 4, adamw-8bit 2; adamw-paged keeps them in host memory."""
    optimizer_in_backward: bool = False
    """Update each layer as soon as its gradient is there: the gradients of one layer are held at a time."""
    offload: Literal["none", "optimizer", "states", "activations"] = "none"
    """What is kept in host memory; its way over PCIe takes time."""
    chunked_loss: bool = False
    """Take the loss in pieces, so that the logits of a micro-batch are never all in memory."""
    gradient_accumulation: Count = 1
    """Micro-batches per rank and optimizer step."""
    micro_batch: Count = 1
    global_batch_tokens: Amount | None = None
    """Tokens per optimizer step; limits the number of data-parallel GPUs."""


class Training(TrainingSettings):
    """Pre-training or continued training of all parameters (a `volume` demand)."""

    kind: Literal["training"]


class FineTune(TrainingSettings):
    """Fine-tuning: all parameters, LoRA, or QLoRA on 4-bit weights (a `volume` demand)."""

    kind: Literal["finetune"]
    method: Literal["full", "lora", "qlora"] = "lora"
    lora_rank: Count = 16


class BatchRequests(Model):
    """Requests of an offline batch: once, or so many a day."""

    count: Amount | None = None
    per_day: Amount | None = None
    input: CountOrZero = 0
    output: CountOrZero = 0


class Batch(Job):
    """Offline batch inference (a `volume` demand)."""

    kind: Literal["batch"]
    requests: BatchRequests | None = None
    tokens: Amount | None = None
    """Output tokens in all, where requests are not given."""
    weights: WeightFormat | list[WeightFormat] = "bf16"
    kv: KvFormat = "fp16"
    gpus_per_replica: Count | list[Count] | None = None
    pipeline_parallel: Count | list[Count] = 1
    expert_parallel: Count | list[Count] = 1
    prefix_cache_share: Fraction = 0.0
    speculation: Speculation | None = None
    max_batch: Count | None = None


AnyWorkload = Annotated[Service | Training | FineTune | Batch, Field(discriminator="kind")]
AnyJob = Training | FineTune | Batch


class Measurement(Model):
    """A rate measured by the buyer: it replaces the estimate for that workload on that GPU (and offer)."""

    workload: str
    gpu: str | None = None
    """GPU type measured; or name the offer."""
    option: str | None = None
    """Name of the quote it was measured on, where it holds for that offer only."""
    gpus_per_node: Count | None = None
    """Node size it was measured on; any node that holds a replica by default."""
    request_class: str | None = Field(default=None, alias="class")
    """Request class; all classes of the service by default."""
    gpus_per_replica: Count | None = None
    """GPUs behind the measured rate; the whole node by default for a quote, else 1."""
    weights: WeightFormat | None = None
    requests_per_s: Measured | None = None
    """Requests per second of one replica at the latency target."""
    tokens_per_s: Measured | None = None
    """Output tokens per second of one replica (services, batch)."""
    tokens_per_s_per_gpu: Measured | None = None
    """Trained tokens per second and GPU (training, fine-tuning)."""
    per_gpu_hour: Positive | None = None
    """Units of the job's work done per GPU and hour."""
    mfu: ShareAboveZero | None = None
    p95_ttft: Milliseconds | None = None
    p95_tpot: Milliseconds | None = None
    source: str = "buyer's measurement"

    @model_validator(mode="after")
    def _one_rate(self) -> "Measurement":
        rates = ("requests_per_s", "tokens_per_s", "tokens_per_s_per_gpu", "per_gpu_hour", "mfu")
        given = [name for name in rates if getattr(self, name) is not None]
        if len(given) != 1:
            msg = f"give exactly one of {', '.join(rates)}; found {', '.join(given) or 'none'}"
            raise ValueError(msg)
        if (self.gpu is None) == (self.option is None):
            msg = "name what was measured: either gpu or option"
            raise ValueError(msg)
        return self
