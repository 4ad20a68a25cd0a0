"""One way to have nodes of a GPU type, whoever owns them."""

from dataclasses import dataclass

DEFAULT_USEFUL_LIFE_MONTHS = 60.0
DEFAULT_RESIDUAL_FRACTION = 0.1
DEFAULT_IDLE_SHARE = 0.3
"""Idle power as a share of nameplate where nothing is said (shown as an assumption)."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to have nodes of a GPU type. Money is per node, in the problem's currency.

    `billing_step_hours` is the shortest time that is paid of nodes rented by use, in steps of the clock if
    `billed_by_clock`; None: time is paid as it is used. `metered_kw` is the estimated power of a rented node at the
    meter; None, as of CO2e per kWh: not known.
    """

    option_id: str
    gpu_id: str
    gpus_per_node: int
    provider: str
    region: str
    purchase_option: str
    billing: str
    price_per_node_hour: float = 0.0
    billing_step_hours: float | None = None
    billed_by_clock: bool | None = None
    upfront_per_node: float = 0.0
    capex_per_node: float = 0.0
    installation_per_node: float = 0.0
    term_months: float | None = None
    cancellable: bool = False
    lead_months: float = 0.0
    min_nodes: int = 1
    max_nodes: int | None = None
    existing_nodes: int = 0
    age_months: float = 0.0
    availability: float = 1.0
    interruptible: bool = False
    interruptions_per_node_hour: float = 0.0
    hours_lost_per_interruption: float = 0.0
    useful_life_months: float = DEFAULT_USEFUL_LIFE_MONTHS
    residual_points: tuple[tuple[float, float], ...] = ((0.0, 1.0), (DEFAULT_USEFUL_LIFE_MONTHS, 0.1))
    retire_months: float | None = None
    nameplate_kw: float = 0.0
    idle_kw: float = 0.0
    load_kw: float = 0.0
    pue: float = 1.0
    electricity_per_kwh: float = 0.0
    hosting_per_kw_month: float = 0.0
    maintenance_fraction_per_year: float = 0.0
    rack_units: float | None = None
    carbon_g_per_kwh: float | None = None
    metered_kw: float | None = None
    source: str = ""
    price_date: str = ""

    @property
    def held(self) -> bool:
        """Whether nodes are held for a term or owned (else rented by the hour)."""
        return self.billing == "holding"

    @property
    def long_step(self) -> bool:
        """Whether rented nodes are paid in steps longer than an hour."""
        return (self.billing_step_hours or 0.0) > 1.0

    @property
    def productive_share(self) -> float:
        """Useful share of a node's paid hours: availability ÷ (1 + interruption rate × hours lost each)."""
        return self.availability / (1.0 + self.interruptions_per_node_hour * self.hours_lost_per_interruption)

    @property
    def pool(self) -> tuple[str, int, str, str]:
        """Nodes that can work on one job together: same GPU, node size, provider and region."""
        return (self.gpu_id, self.gpus_per_node, self.provider, self.region)

    def held_until(self, arrival_month: float) -> float:
        """Month at which a node that arrives at `arrival_month` leaves: end of term, retirement, or never."""
        ends = [m for m in (self.term_months, self.retire_months) if m is not None]
        return arrival_month + min(ends) if ends else float("inf")
