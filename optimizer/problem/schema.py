"""The problem file as a schema. Every field's docstring is its manual (also in the published JSON Schema)."""

from typing import Annotated, Literal

from pydantic import Field

from optimizer.estimator.workloads import AnyWorkload, Measurement
from optimizer.problem.carbon import Carbon
from optimizer.problem.further_costs import Escalation, FurtherCost
from optimizer.problem.purchase import PURCHASE_OPTIONS as PURCHASE_OPTIONS
from optimizer.problem.purchase import BillingStep
from optimizer.problem.purchase import PurchaseOption as PurchaseOption
from optimizer.quantities import (
    Bytes,
    BytesPerS,
    Count,
    CountOrZero,
    Day,
    Fraction,
    FractionPerYear,
    GramsPerKwh,
    HorizonLength,
    HorizonMonths,
    Hours,
    Kilowatts,
    Model,
    Money,
    MoneyPerHour,
    MoneyPerKwh,
    MoneyPerKwMonth,
    MoneyPerMonth,
    MoneyPerTonne,
    Months,
    Multiplier,
    NonNegative,
    PowerUsage,
    ShareAboveZero,
    TflopPerS,
    Tonnes,
    WorthOfMoney,
)

OWN_PROVIDER = "own"
"""Provider of owned nodes, where none is named; a rented quote without provider is its own provider, by its name."""
CATALOG_CURRENCY = "USD"


class Period(Model):
    """A stretch of the horizon at whose start one can buy or sign."""

    start_month: HorizonMonths
    months: HorizonLength


class Horizon(Model):
    """How far the plan looks and when it may order."""

    months: HorizonLength = 12.0
    """A bare number is months."""
    periods: Literal["monthly", "quarterly", "yearly", "once"] | list[Period] = "quarterly"


class Finance(Model):
    """How money at different times is compared."""

    discount_rate: FractionPerYear = 0.0
    """Effective annual rate."""
    opex_escalation: Escalation = Field(default_factory=Escalation)
    carbon_price: MoneyPerTonne | None = None
    """Price of a tonne of CO2e (a tax, an allowance, or an internal price), a running cost. Emissions must then be
    known: of quotes and existing nodes, else it is an error; other offers are left out without."""


class Site(Model):
    """Where owned hardware stands. Left out: owned hardware is not considered, unless quoted."""

    region: str | None = None
    """Where its electricity is from, e.g. "US CA" or "EU average": the catalog's price there, unless you give yours."""
    electricity: MoneyPerKwh = 0.0
    carbon: GramsPerKwh | None = None
    """CO2e per kWh of that electricity, for `limits.carbon` and `finance.carbon_price`."""
    pue: PowerUsage = 1.0
    hosting: MoneyPerKwMonth = 0.0
    """Colocation fee per kW of nameplate power and month."""
    resale: Literal["low", "mid", "high"] = "mid"
    """What used servers of the catalog sell for: the lower end, middle or upper end of the literature's range by age
    (after 12, 24 and 36 months 65, 37.5 and 27.5 % in the middle). Quotes say it themselves (`residual`)."""
    power_limit_it: Kilowatts | None = None
    """Most nameplate kW of owned nodes."""
    power_limit_facility: Kilowatts | None = None
    """Most kW of owned nodes at the meter: nameplate × PUE."""
    rack_units_limit: NonNegative | None = None
    """Most rack units of owned nodes; quotes and existing nodes must then say theirs (`rack_units`)."""
    consumer_gpus_allowed: bool = True
    """Licence terms of consumer cards (GeForce) bar them from data centres: false leaves them out of owning."""


class TimeSlice(Model):
    """A part of every stretch of time, in its proportion."""

    name: str
    share_of_hours: ShareAboveZero
    hours_of_week: Annotated[list[Annotated[int, Field(ge=0, lt=48)]], Field(min_length=1)] | None = None
    """Clock hours that it stands for (0-23 weekday, 24-47 weekend); the daily windows of jobs select slices by them."""


class ExchangeRate(Model):
    """Worth of one unit of a foreign currency in the problem's currency, and the day it was read."""

    rate: WorthOfMoney
    date: Day
    source: str = ""


class OwnGpu(Model):
    """A GPU the catalog does not have, or that you want to describe yourself. Names are taken verbatim."""

    memory: Bytes | None = None
    """Usable memory."""
    bandwidth: BytesPerS | None = None
    bf16: TflopPerS | None = None
    """Dense peak at 16 bits with FP32 accumulation."""
    fp8: TflopPerS | None = None
    int8: TflopPerS | None = None
    fp4: TflopPerS | None = None
    tf32: TflopPerS | None = None
    fp32: TflopPerS | None = None
    link: Literal["nvlink", "pcie", "none"] = "pcie"
    link_bandwidth: BytesPerS | None = None
    """One way, per GPU."""
    gpus_per_node: Count = 8
    tdp: Kilowatts | None = None


class ResidualPoint(Model):
    """Share of the purchase price that a node is worth at an age."""

    age: Months
    fraction: Fraction


class Offer(Model):
    """What quotes and existing hardware share: a kind of node and what running it costs."""

    gpu: str
    gpus_per_node: Count = 1
    provider: str | None = None
    region: str | None = None
    power: Kilowatts | None = None
    """Nameplate power of a node. Of rented nodes only their emissions depend on it."""
    idle_power: Kilowatts | None = None
    """Drawn by an idle node; 30 % of nameplate by default (owned)."""
    load_power: Kilowatts | None = None
    """Drawn by a busy node; nameplate by default (owned)."""
    rack_units: NonNegative | None = None
    """Rack units that a node takes (owned)."""
    pue: PowerUsage | None = None
    """The site's by default (owned), or `carbon.pue` (rented)."""
    electricity: MoneyPerKwh | None = None
    """The site's by default."""
    carbon: GramsPerKwh | None = None
    """CO2e per kWh; by default the site's (owned), or its region's (`carbon.regions`, rented)."""
    hosting: MoneyPerKwMonth | None = None
    """The site's by default."""
    maintenance: FractionPerYear = 0.0
    """Share of the purchase price per year (support, spares)."""
    availability: ShareAboveZero = 1.0
    """Productive share of the hours of a node."""
    useful_life: Months | None = None
    """Months of service; 60 by default (owned)."""
    residual: list[ResidualPoint] | Fraction | None = None
    """Worth by age, or the share left at the end of the useful life (10 % by default)."""
    retire: Months | None = None
    """Age at which a node is taken out of service; never by default."""
    date: Day | None = None
    """Day of the price."""
    source: str = "buyer's quote"


class Quote(Offer):
    """An offer made to the buyer, beside the catalog's."""

    name: Annotated[str, Field(min_length=1)]
    purchase: PurchaseOption
    price: MoneyPerHour | None = None
    """Owned: per node (`265_000 USD`). Rented: per node and hour (`21.6 USD/h`), or per month or year."""
    per: Literal["node", "gpu"] = "node"
    """Whether the price is per node or per GPU."""
    upfront: Money = 0.0
    """Paid at the order, per node, not refunded (reserved)."""
    installation: Money = 0.0
    """Paid at the order, per node (owned)."""
    billing_step: BillingStep | None = None
    """Shortest time that is paid (on-demand, spot): every use is rounded up to whole steps, from its start. Steps up to
    an hour count for jobs only. Left out: time is paid as it is used."""
    billed_by_clock: bool = False
    """Whether steps are those of the clock: each clock hour, calendar day … begun is paid."""
    term: Months | None = None
    """Length of a reservation."""
    cancellable: bool = False
    """Whether a term that runs past the horizon ends with it at no charge."""
    lead_time: Months = 0.0
    """Order to arrival."""
    min_nodes: Count = 1
    """Least nodes per order."""
    max_nodes: CountOrZero | None = None
    """Most nodes at one time."""
    interruptible: bool | None = None
    """Whether the provider may take the node back; spot is, the rest is not, by default."""
    interruptions_per_hour: Multiplier = 0.0
    """Per node and hour."""
    hours_lost: Hours = 0.0
    """Work lost per interruption."""
    consumer: bool | None = None
    """Whether the licence terms of consumer cards apply; as the catalog says of the GPU by default."""


class ExistingNodes(Offer):
    """Hardware already owned, or a reservation already signed."""

    name: str | None = None
    nodes: Count
    age: Months = 0.0
    """Age at the start of the horizon."""
    paid: Money = 0.0
    """Purchase price per node (sunk): only its residual value counts. What was paid upfront for a reservation is sunk
    whole."""
    term: Months | None = None
    """Months left of a signed reservation; none for owned nodes."""
    fee: MoneyPerHour = 0.0
    """Per node and hour (signed reservation)."""


class Discount(Model):
    """A price of your own for rented offers of the catalog: an enterprise discount, or a private price.

    It holds where all that is named matches; of several that do, the last one counts. Servers of the catalog are meant
    only with `purchase: owned` (a private price of a server, or of a node nobody lists, is a quote).
    """

    provider: str | None = None
    """Provider (a name pattern)."""
    gpu: str | None = None
    """GPU type."""
    option: str | None = None
    """Offer of the catalog, by its id (a pattern: aws/us-*)."""
    purchase: PurchaseOption | None = None
    """Way of paying; every rented one by default."""
    percent: Fraction | None = None
    """Off the list price."""
    price: MoneyPerHour | None = None
    """Instead of the list price, per node and hour (`21.6 USD/h`)."""
    per: Literal["node", "gpu"] = "node"
    """Whether the price is per node or per GPU."""
    date: Day | None = None
    """Day of the price; a discount leaves the list price's."""
    source: str = "buyer's terms"

    @property
    def words(self) -> str:
        """What it holds for, e.g. `aws, H100-80GB-SXM, on-demand`."""
        return ", ".join(part for part in (self.provider, self.gpu, self.option, self.purchase) if part)


class AllowDeny(Model):
    """Names allowed and names barred."""

    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list)


class Options(Model):
    """What may be bought or rented."""

    gpus: list[str] | None = None
    """GPU types of the catalog that are considered, all by default; quotes and existing nodes always count."""
    purchase: list[PurchaseOption] | None = None
    """Ways of paying considered; all by default (owned needs a site or a quote)."""
    providers: AllowDeny = Field(default_factory=AllowDeny)
    """Providers that may be rented from (name patterns); the buyer's own hardware always counts."""
    regions: list[str] | None = None
    """Region patterns (us-*, eu-west-1)."""
    catalog: bool = True
    """Whether the catalog's offers are considered beside quotes and existing hardware."""
    price_files: list[str] = Field(default_factory=list)
    """Files of offers (as `gpumix catalog import` writes them), relative to this file; their rows replace the catalog's
    rows of the same id. With `catalog: false` they are the only offers beside quotes and existing hardware."""
    price_age_limit: Hours | None = None
    """Leave out prices older than this (and prices without a date)."""
    lead_times: bool = True
    """Whether delivery takes its time; false supposes that what is ordered is in service at once."""
    discounts: list[Discount] = Field(default_factory=list)
    """Your own terms for offers of the catalog: discounts and private prices."""
    estimated_discounts: Literal["low", "mid", "high"] | None = None
    """Also consider reservations nobody quoted, priced from on-demand by the discounts that the literature gives
    (12 months: 30, 45 or 60 % off; 36 months: 30, 50 or 70 %); off by default, estimates and no offers."""
    quotes: list[Quote] = Field(default_factory=list)
    existing: list[ExistingNodes] = Field(default_factory=list)

    @property
    def has_offers(self) -> bool:
        """Whether offers of the catalog or of price files are considered."""
        return self.catalog or bool(self.price_files)


class ProviderLimit(Model):
    """Limit on one provider."""

    max_nodes: CountOrZero


class VendorLimit(Model):
    """Limit on how many providers are used."""

    max: Count
    """Most providers that nodes are bought, reserved or rented from; own hardware without a provider is none."""


class Limits(Model):
    """What must not be passed."""

    capex: Money | None = None
    """Purchases, installation and upfront fees over the horizon, undiscounted."""
    capex_by_period: list[Money | None] | None = None
    """The same in each listed period, in order; null leaves one without limit."""
    capex_by_year: list[Money | None] | None = None
    """The same in each year of the horizon, in order; null leaves one without limit."""
    opex: MoneyPerMonth | None = None
    """Running costs per month in every period, undiscounted."""
    npv: Money | None = None
    """The whole cost (net present value, net of salvage)."""
    carbon: Tonnes | None = None
    """CO2e of all electricity over the horizon. Emissions must then be known: of quotes and existing nodes, else it is
    an error; other offers are left out without."""
    spot_share: Fraction | dict[str, Fraction] | None = None
    """Most that interruptible capacity may serve: of each class's rate (services) or of the work (jobs)."""
    providers: dict[str, ProviderLimit] = Field(default_factory=dict)
    vendors: VendorLimit | None = None
    """How many providers may be used."""
    stock: dict[str, CountOrZero] = Field(default_factory=dict)
    """Most nodes at one time, by offer name or id."""
    gpus: dict[str, CountOrZero] = Field(default_factory=dict)
    """Most GPUs held or rented at one time, by GPU type."""


class Baseline(Model):
    """What `compare` measures savings against."""

    keep: Literal["existing", "nothing"] = "existing"
    """Whether hardware that is owned already stays, or is sold; reservations already signed stay."""
    rest: PurchaseOption = "on-demand"
    """How all the rest is had."""


class Problem(Model):
    """One buyer's question."""

    name: Annotated[str, Field(min_length=1)]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    """Currency of every amount in the answer: three capital letters (ISO 4217)."""
    exchange_rates: dict[str, ExchangeRate] = Field(default_factory=dict)
    horizon: Horizon = Field(default_factory=Horizon)
    finance: Finance = Field(default_factory=Finance)
    site: Site | None = None
    carbon: Carbon = Field(default_factory=Carbon)
    """Emissions of rented nodes."""
    slices: list[TimeSlice] | None = None
    """Time slices of your own; from the services' profiles by default."""
    workloads: Annotated[list[AnyWorkload], Field(min_length=1)]
    measurements: list[Measurement] = Field(default_factory=list)
    gpus: dict[str, OwnGpu] = Field(default_factory=dict)
    options: Options = Field(default_factory=Options)
    costs: list[FurtherCost] = Field(default_factory=list)
    """Further costs: staff, network, storage, egress, support, insurance, licences, taxes."""
    limits: Limits = Field(default_factory=Limits)
    baseline: Baseline | None = None
    goal: Literal["cost"] = "cost"
    """Least net present cost."""

    @property
    def counts_carbon(self) -> bool:
        """Whether emissions are limited or have a price."""
        return self.limits.carbon is not None or bool(self.finance.carbon_price)
