"""What the families of rows and the cost terms mean, in a sentence each."""

FAMILY_MEANINGS = {
    "demand_coverage": "all requests that come are served",
    "compute": "a replica's compute is used up: faster arithmetic would serve more",
    "memory_bandwidth": "a replica's memory bandwidth is used up: faster memory would serve more",
    "replica_time": "replicas are busy up to the utilisation cap that the latency targets leave",
    "whole_replica": "a small load still needs one whole replica",
    "memory_capacity": "a replica's memory for sequences in flight is used up: more memory would hold more",
    "replica_floor": "as few replicas as min_replicas allows",
    "start_up": "replicas for the next hour are started no earlier than their start-up takes",
    "spare_capacity": "after the worst loss of nodes the rest serves the whole rate, and no more",
    "pool_capacity": "all GPUs of the nodes there are in use: whole nodes decide the count",
    "fleet_balance": "nodes in service are those held, and those ordered and arrived",
    "deadline": "the work asked for is done, and no more: it is a demand",
    "single_gpu_type": "a job runs one way",
    "scaling_limit": "the job runs on the fewest or the most GPUs that make sense for it",
    "supply_limit": "all that the offer (or limits.gpus) allows is taken",
    "minimum_order": "the order is as small as the seller allows",
    "interruptible_share": "as much runs on interruptible nodes as limits.spot_share allows",
    "provider_limit": "as many nodes as limits.providers allows",
    "budget_capex": "the capex budget is spent (limits.capex)",
    "budget_opex": "the monthly budget is spent (limits.opex)",
    "budget_npv": "the whole budget is spent (limits.npv)",
    "site_power": "the site's power is used up (site.power_limit_it, site.power_limit_facility)",
    "site_rack_units": "the site's racks are full (site.rack_units_limit)",
    "carbon_limit": "as much CO2e is emitted as limits.carbon allows",
    "billing_step": "whole billing steps are paid, and all of their time is used",
    "vendor_limit": "as many providers are used as limits.vendors allows",
}
TERM_MEANINGS = {
    "usage_fee": "node-hours rented, in whole billing steps, × price",
    "holding_fee": "nodes reserved × price, used or not",
    "upfront_fee": "nodes signed for × upfront fee",
    "capex": "nodes bought × price",
    "installation": "nodes bought × installation",
    "energy": "(idle kW while held + extra kW while busy) × PUE × hours × price of a kWh",
    "hosting": "nameplate kW × months held × fee",
    "maintenance": "price × yearly share ÷ 12, per month held",
    "carbon_fee": "tonnes of CO2e × finance.carbon_price; of rented nodes an estimate (carbon in the problem file)",
    "staff": "your amount (costs in the problem file)",
    "network": "your amount, or per node, GPU or kW (costs in the problem file)",
    "storage": "GB kept × price per GB, or your amount (costs in the problem file)",
    "egress": "GB moved × price per GB, or your amount (costs in the problem file)",
    "support": "your amount, or a share of other costs (costs in the problem file)",
    "insurance": "your amount, or a share of other costs (costs in the problem file)",
    "licences": "your amount, or per node or GPU (costs in the problem file)",
    "tax": "your amount, or a share of other costs, paid with them (costs in the problem file)",
    "other": "your amount (costs in the problem file)",
    "salvage_value": "price × share of it left at the end of the horizon, received then",
}


def family_meaning(family: str) -> str:
    """What it means that rows of a family bind."""
    return FAMILY_MEANINGS.get(family, family.replace("_", " "))


def term_meaning(term: str) -> str:
    """How a cost term is made up."""
    return TERM_MEANINGS.get(term, "quantity × unit price")
