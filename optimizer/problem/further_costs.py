"""Further costs of a buyer beside nodes and power, and how running costs rise over the years, as a schema."""

from typing import Literal

from optimizer.problem.purchase import PurchaseOption
from optimizer.quantities import (
    ChangePerYear,
    Fraction,
    HorizonMonths,
    Model,
    Money,
    MoneyPerGb,
    MoneyPerMonth,
    NonNegative,
)

CostKind = Literal["staff", "network", "storage", "egress", "support", "insurance", "licences", "tax", "other"]
COST_KINDS: tuple[CostKind, ...] = (
    "staff", "network", "storage", "egress", "support", "insurance", "licences", "tax", "other",
)  # fmt: skip


class FurtherCost(Model):
    """A cost beside nodes and power: a line of the ledger of its own, named by its kind.

    It says how much (one of `once`, `monthly`, `per_gb`, `percent`), and of what. Without `per` an amount is paid
    whatever is chosen; `per: node`, `gpu` or `kw` counts the nodes that all of `purchase`, `provider`, `gpu` and
    `option` match.
    """

    kind: CostKind
    """What it is for; `tax` is for taxes and import duties."""
    name: str = ""
    """Tells costs of one kind apart."""
    once: Money | None = None
    """Paid once: at `start_month` or, per node, GPU or kW, at each order (nodes rented by the hour, or held at the
    start, have none). Counts as capex."""
    monthly: MoneyPerMonth | None = None
    """Paid every month or, per node, GPU or kW, for every month that it is held or rented (730 node-hours are a
    month). Counts as opex."""
    per_gb: MoneyPerGb | None = None
    """Paid per GB moved, or kept for a month. Counts as opex."""
    percent: Fraction | None = None
    """A share of other costs, paid when they are, e.g. a tax or a support plan. Counts as what it is a share of."""
    of: Literal["purchases", "rent", "all"] | None = None
    """What `percent` is a share of: prices and installation of bought nodes; fees of rented and reserved ones; or all
    costs except other percentages and salvage."""
    per: Literal["node", "gpu", "kw"] | None = None
    """Paid for each node, GPU, or kW of nameplate power (of owned nodes)."""
    gb_per_month: NonNegative | None = None
    """GB moved or kept, each month."""
    gb_per_1000_requests: NonNegative | None = None
    """GB moved per 1,000 requests served where the selection matches (10^9 bytes; headroom is not served)."""
    workload: str | None = None
    """The service whose requests count; all services by default."""
    purchase: list[PurchaseOption] | None = None
    """Ways of paying that it is for."""
    provider: str | None = None
    """Provider that it is for (a name pattern)."""
    gpu: str | None = None
    """GPU type that it is for."""
    option: str | None = None
    """Offer that it is for, by its name or id (a pattern: aws/us-*)."""
    start_month: HorizonMonths = 0.0
    """Month from which it is paid (per node and once: from which orders count)."""
    end_month: HorizonMonths | None = None
    """Month up to which it is paid; the end of the horizon by default."""
    source: str = "problem file"

    @property
    def words(self) -> str:
        """Its kind, with its name: `staff: platform team`."""
        return f"{self.kind}: {self.name}" if self.name else self.kind

    @property
    def selects(self) -> bool:
        """Whether it is for some nodes only."""
        return any(value is not None for value in (self.purchase, self.provider, self.gpu, self.option))


class Escalation(Model):
    """Yearly change of running costs: prices rise (or fall) in steps, after 12 months, 24 months and so on."""

    electricity: ChangePerYear = 0.0
    hosting: ChangePerYear = 0.0
    maintenance: ChangePerYear = 0.0
    rent: ChangePerYear = 0.0
    """Price per hour of on-demand and spot nodes; terms that are signed keep their price."""
    staff: ChangePerYear = 0.0
    network: ChangePerYear = 0.0
    storage: ChangePerYear = 0.0
    egress: ChangePerYear = 0.0
    support: ChangePerYear = 0.0
    insurance: ChangePerYear = 0.0
    licences: ChangePerYear = 0.0
    tax: ChangePerYear = 0.0
    """Taxes given as amounts; percentages follow what they are a share of."""
    other: ChangePerYear = 0.0

    def change(self, what: str) -> float:
        """Change per year of a price."""
        return float(getattr(self, what))
