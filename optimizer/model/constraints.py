"""All constraint families, in the order in which their rows are built: a new one is one function and one entry here."""

from collections.abc import Callable, Iterator

from optimizer.model.entities import Instance
from optimizer.model.families.billing import billing_step
from optimizer.model.families.capacity import fleet_balance, pool_capacity
from optimizer.model.families.jobs import deadline, scaling_limit, single_gpu_type
from optimizer.model.families.limits import (
    budget_capex,
    budget_npv,
    budget_opex,
    carbon_limit,
    interruptible_share,
    minimum_order,
    provider_limit,
    supply_limit,
)
from optimizer.model.families.redundancy import spare_capacity
from optimizer.model.families.services import (
    compute,
    demand_coverage,
    memory_bandwidth,
    memory_capacity,
    replica_floor,
    replica_time,
    stage_balance,
    start_up,
    whole_replica,
)
from optimizer.model.families.site import site_power, site_rack_units
from optimizer.model.families.vendors import vendor_limit
from optimizer.model.rows import CostLine, Row
from optimizer.model.variables import Variables

Family = Callable[[Instance, Variables, tuple[CostLine, ...]], Iterator[Row]]
FAMILIES: tuple[Family, ...] = (
    demand_coverage,
    stage_balance,
    compute,
    memory_bandwidth,
    replica_time,
    whole_replica,
    memory_capacity,
    replica_floor,
    start_up,
    spare_capacity,
    pool_capacity,
    fleet_balance,
    deadline,
    single_gpu_type,
    scaling_limit,
    supply_limit,
    provider_limit,
    interruptible_share,
    minimum_order,
    budget_capex,
    budget_opex,
    budget_npv,
    site_power,
    site_rack_units,
    vendor_limit,
    carbon_limit,
    billing_step,
)

FLEET_FAMILIES: tuple[Family, ...] = (
    fleet_balance,
    supply_limit,
    provider_limit,
    minimum_order,
    budget_capex,
    budget_opex,
    budget_npv,
    site_power,
)
"""Families with rows on orders and nodes in service alone: what a decomposed plan asks of its fleet before its cells
are known. One that is missing here only makes the bound of a decomposed plan weaker."""
