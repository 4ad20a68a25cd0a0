"""What the estimator hands over: demands, estimates per GPU and deployment, rejections. Plain frozen data."""

from dataclasses import dataclass, field
from typing import Literal

from optimizer.trace import Assumption, Step

Stage = Literal["", "prefill", "decode"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One way to run a workload on a GPU type.

    `gpus_per_replica` = tensor × pipeline × data parallel GPUs that hold one copy; `batch` the sequences in flight at
    the operating point; `least_gpus_per_node` the smallest node that may host it (1 where replicas may straddle nodes).
    `data_parallel` groups share the routed experts, of which each GPU of `expert_parallel` holds some whole ones.
    `stage`: it does all of a request, or only the prompt (`prefill`) or the output (`decode`).
    """

    gpus_per_replica: int
    tensor_parallel: int
    pipeline_parallel: int = 1
    weights: str = ""
    kv: str = ""
    batch: float = 0.0
    least_gpus_per_node: int = 1
    data_parallel: int = 1
    expert_parallel: int = 1
    stage: Stage = ""

    @property
    def label(self) -> str:
        """Short text for tables, e.g. `fp8 TP4 batch 96`, `prefill fp8 TP1 DP8 EP8 batch 2`."""
        more = (("PP", self.pipeline_parallel), ("DP", self.data_parallel), ("EP", self.expert_parallel))
        parallel = " ".join([f"TP{self.tensor_parallel}", *(f"{name}{size}" for name, size in more if size > 1)])
        batch = f"batch {self.batch:.0f}" if self.batch else ""
        return " ".join(part for part in (self.stage, self.weights, parallel, batch) if part)


@dataclass(frozen=True, slots=True)
class ClassEstimate:
    """One request class on one deployment at its operating point.

    `replica_seconds_per_request` is the time of one replica that a request takes at that batch; the four `*_seconds`
    split it by the resource that sets the pace. `flop_per_request` and `moved_bytes_per_request` are what it needs of
    each resource, `kv_bytes_per_sequence` × `residence_s` its memory by Little's law (0 for measured rates).
    """

    request_class: str
    replica_seconds_per_request: float
    compute_seconds: float = 0.0
    memory_bandwidth_seconds: float = 0.0
    interconnect_seconds: float = 0.0
    overhead_seconds: float = 0.0
    flop_per_request: float = 0.0
    moved_bytes_per_request: float = 0.0
    kv_bytes_per_sequence: float = 0.0
    residence_s: float = 0.0
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    end_to_end_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ServiceEstimate:
    """What one replica of a service yields on a GPU type.

    `measured`: the rate is the buyer's, at its operating point: utilisation cap 1 and no resource rows (rulings 3).
    `option`: the rate holds for that offer only; `gpus_per_node`: for nodes of that size only (None: any that fits).
    A class that is absent from `classes` cannot be served by this deployment.
    `effective_flop_per_s` and `effective_bytes_per_s` are the replica's ceilings (peak × sustained share).
    """

    workload: str
    gpu_id: str
    deployment: Deployment
    classes: tuple[ClassEstimate, ...]
    utilisation_cap: float = 1.0
    free_memory_bytes: float = 0.0
    effective_flop_per_s: float = 0.0
    effective_bytes_per_s: float = 0.0
    measured: bool = False
    option: str | None = None
    gpus_per_node: int | None = None
    source: str = ""
    low_factor: float = 1.0
    high_factor: float = 1.0
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class JobEstimate:
    """What one GPU yields for a job between `min_gpus` and `max_gpus` GPUs at once (None: no limit).

    GPUs come in multiples of `deployment.gpus_per_replica`.
    """

    workload: str
    gpu_id: str
    deployment: Deployment
    units_per_gpu_hour: float
    min_gpus: int = 1
    max_gpus: int | None = None
    mfu: float | None = None
    measured: bool = False
    option: str | None = None
    gpus_per_node: int | None = None
    source: str = ""
    low_factor: float = 1.0
    high_factor: float = 1.0
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a workload cannot run on a GPU type (or one deployment of it): what was required, what was there."""

    workload: str
    gpu_id: str
    reason: str
    resource: str
    required: float
    available: float
    unit: str
    deployment: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """How much of a workload there is to do, in the unit of its estimates.

    Jobs: `amount` units in all (or per day for `per_day`); `unit` names it (tokens, requests, FLOP, …).
    Services: `amount` is None, rates come from the traffic.
    """

    workload: str
    unit: str
    amount: float | None = None
    per_day: bool = False
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimates:
    """Everything the estimator knows of a problem."""

    demands: tuple[Demand, ...] = ()
    services: tuple[ServiceEstimate, ...] = ()
    jobs: tuple[JobEstimate, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    assumptions: tuple[Assumption, ...] = field(default=())
