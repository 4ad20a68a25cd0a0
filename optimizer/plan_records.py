"""The plan file as typed records: every key that audit and explain read, with its kind."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from optimizer.estimator.types import Demand, JobEstimate, ServiceEstimate


class Part(BaseModel):
    """A part of a plan file: strict kinds, keys unknown to this version are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class OptionRecord(Part):
    """One way to have nodes of a GPU type; money is per node, in the problem's currency."""

    option_id: str
    gpu_id: str
    gpus_per_node: int = Field(ge=1)
    provider: str
    region: str
    purchase_option: str
    billing: str
    price_per_node_hour: float
    billing_step_hours: float | None = Field(None, gt=0)
    billed_by_clock: bool | None = None
    upfront_per_node: float
    capex_per_node: float
    installation_per_node: float
    term_months: float | None
    cancellable: bool
    lead_months: float
    min_nodes: int
    max_nodes: int | None
    existing_nodes: int
    age_months: float
    availability: float = Field(gt=0)
    interruptible: bool
    interruptions_per_node_hour: float = Field(ge=0)
    hours_lost_per_interruption: float = Field(ge=0)
    useful_life_months: float
    residual_points: tuple[tuple[float, float], ...] = Field(min_length=1)
    retire_months: float | None
    nameplate_kw: float
    idle_kw: float
    load_kw: float
    pue: float
    electricity_per_kwh: float
    hosting_per_kw_month: float
    maintenance_fraction_per_year: float
    rack_units: float | None = None
    carbon_g_per_kwh: float | None = None
    metered_kw: float | None = None
    source: str
    price_date: str

    @property
    def held(self) -> bool:
        """Whether its nodes are paid from arrival to the end of term (else by the hour rented)."""
        return self.billing == "holding"

    @property
    def long_step(self) -> bool:
        """Whether rented nodes are paid in steps longer than an hour."""
        return (self.billing_step_hours or 0.0) > 1.0

    @property
    def productive_share(self) -> float:
        """Useful share of paid hours: availability a, interruptions λ of c lost hours each: a ÷ (1 + λc)."""
        return self.availability / (1 + self.interruptions_per_node_hour * self.hours_lost_per_interruption)

    @property
    def months_in_service(self) -> float:
        """Months from arrival to the end of term or to retirement (infinite without either)."""
        return min((m for m in (self.term_months, self.retire_months) if m is not None), default=float("inf"))


class EstimatesRecord(Part):
    """What the estimator handed over."""

    demands: tuple[Demand, ...]
    services: tuple[ServiceEstimate, ...]
    jobs: tuple[JobEstimate, ...]


class SettingsRecord(Part):
    """What was asked of the solver."""

    gap: float
    method: str = "auto"
    """How the plan was found; absent from older plans."""


class InputsRecord(Part):
    """What the answer was made from."""

    problem: dict[str, Any]
    options: tuple[OptionRecord, ...]
    estimates: EstimatesRecord
    sources: dict[str, str]
    settings: SettingsRecord


class PeriodRecord(Part):
    """A listed period."""

    start_month: float
    months: float


class SliceRecord(Part):
    """A slice, with its hours of a representative week (48: weekday, then weekend) or None.

    `starting`: which part of each hour it is, if replicas start in it for the next hour; other slices hold the rest.
    """

    name: str
    share_of_hours: float
    hours_of_week: tuple[int, ...] | None
    starting: tuple[float, float] | None = None


class BlockRecord(Part):
    """A stretch of time without events inside; `period` counts from 0."""

    start_month: float
    end_month: float
    period: int = Field(ge=0)


class GridRecord(Part):
    """The time grid."""

    horizon_months: float
    periods: tuple[PeriodRecord, ...] = Field(min_length=1)
    slices: tuple[SliceRecord, ...] = Field(min_length=1)
    blocks: tuple[BlockRecord, ...] = Field(min_length=1)


class CellRecord(Part):
    """Anything that happens on an option in one block and slice."""

    option: str
    block: int = Field(ge=0)
    slice: int = Field(ge=0)


class RentedRecord(CellRecord):
    """Nodes rented for services."""

    nodes: int


class ReplicasRecord(CellRecord):
    """Replicas of a deployment of a service."""

    workload: str
    estimate: int = Field(ge=0)
    replicas: int


class ServedRecord(CellRecord):
    """Requests of a class served by a deployment."""

    workload: str
    request_class: str = Field(alias="class")
    estimate: int = Field(ge=0)
    requests_per_s: float


class WorkRecord(CellRecord):
    """Work of one run of a job: on GPUs that are free there, and on nodes hired for it."""

    job: str
    run: str
    estimate: int = Field(ge=0)
    alternative: str
    amount: float
    gpus_on_free: float
    gpus_on_hired: float
    hired_nodes: float
    hired_nodes_at_once: int


class StretchRecord(Part):
    """Nodes rented from the start of a block to the end of one, on some days, paid in steps longer than an hour."""

    option: str
    days: str
    first_block: int = Field(ge=0)
    last_block: int = Field(ge=0)
    nodes: int


class BillRecord(Part):
    """Node-steps paid for the nodes that one run of a job hires of an offer."""

    option: str
    run: str
    estimate: int = Field(ge=0)
    days: str
    piece: str
    node_steps: int


class ScheduleRecord(Part):
    """What runs where and when; absent from plans without such steps are stretches and bills."""

    rented: tuple[RentedRecord, ...]
    replicas: tuple[ReplicasRecord, ...]
    served: tuple[ServedRecord, ...]
    work: tuple[WorkRecord, ...]
    stretches: tuple[StretchRecord, ...] = ()
    bills: tuple[BillRecord, ...] = ()


class CostRecord(Part):
    """Totals; bound and gap are null where none was proven."""

    npv: float
    bound: float | None
    gap: float | None
    capex: float
    opex: float
    salvage: float


class SupplyRecord(Part):
    """What acquisitions and rentals share."""

    option: str
    gpu: str
    purchase_option: str
    provider: str
    region: str
    unit_price: float
    unit: str
    source: str


class AcquisitionRecord(SupplyRecord):
    """Nodes of one order."""

    nodes: int
    gpus: int
    order_month: float
    start_month: float
    term_months: float | None


class RentalRecord(SupplyRecord):
    """Nodes of one offer paid by the hour."""

    peak_nodes: int
    gpu_hours: float
    used_gpu_hours: float | None = None


class AssignmentRecord(Part):
    """What serves a request class, or runs a job."""

    workload: str
    request_class: str | None = Field(alias="class")
    gpu: str
    option: str
    deployment: str
    replicas_peak: float
    gpus_peak: float
    share: float
    bottleneck: str
    utilisation: float
    measured: bool
    hours_undisturbed: float | None = None
    hours_expected: float | None = None


_GROUPS_OF_TERMS = {"capex": "capex", "installation": "capex", "upfront_fee": "capex", "salvage_value": "salvage"}


class LineRecord(Part):
    """A line of the ledger."""

    term: str
    option: str
    period: int
    quantity: float
    unit: str
    unit_price: float
    amount: float
    npv: float
    source: str
    group: str = ""
    name: str = ""

    @model_validator(mode="after")
    def _in_its_group(self) -> Self:
        """Files of before further costs do not say the group: it follows from the term."""
        if not self.group:
            object.__setattr__(self, "group", _GROUPS_OF_TERMS.get(self.term, "opex"))
        return self


class ConstraintRecord(Part):
    """A constraint at the solution."""

    family: str
    index: tuple[str, ...]
    lhs: float
    sense: str
    rhs: float
    slack: float
    unit: str
    binding: bool


class FixRecord(Part):
    """The cheapest change of one limit; `from` is what the limit is."""

    change: str
    from_: float = Field(alias="from")
    to: float
    by: float
    unit: str
    npv: float


class ShortfallRecord(Part):
    """What falls short where there is no plan, or a change that is enough."""

    kind: str
    family: str
    index: tuple[str, ...]
    required: float
    attainable: float
    short_by: float
    unit: str
    cheapest_fix: FixRecord | None
    alone: bool
    npv: float | None
    change: str = ""
    at_least: bool = False


class LeftOutRecord(Part):
    """An offer that was not considered."""

    option: str
    gpu: str
    reason: str


class AssumptionRecord(Part):
    """A figure that the answer rests on."""

    name: str
    value: float | str
    unit: str
    source: str
    kind: str
    date: str
    low: float | None
    high: float | None


class Answer(Part):
    """What every plan file holds, with or without a plan in it."""

    problem: str
    currency: str
    created_at: str
    catalog_version: str
    status: str
    grid: GridRecord
    inputs: InputsRecord
    rejections: tuple[dict[str, Any], ...]
    left_out: tuple[LeftOutRecord, ...]
    assumptions: tuple[AssumptionRecord, ...]
    infeasibility: tuple[ShortfallRecord, ...]


class PlanDocument(Answer):
    """A plan file with a plan in it."""

    cost: CostRecord
    gpus: dict[str, int]
    acquisitions: tuple[AcquisitionRecord, ...]
    rentals: tuple[RentalRecord, ...]
    assignments: tuple[AssignmentRecord, ...]
    cost_lines: tuple[LineRecord, ...]
    constraints: tuple[ConstraintRecord, ...]
    schedule: ScheduleRecord
