"""What is known of an offer's emissions.

What is not known is None, never 0: where emissions count, such offers are left out.
"""

from dataclasses import replace

from optimizer.model.option import Option
from optimizer.problem.schema import Offer, Problem

EMISSIONS_UNKNOWN = (
    "its emissions are not known, and limits.carbon or finance.carbon_price counts them: say CO2e per kWh "
    "(site.carbon, carbon.regions) or, if its GPU has no TDP, quote it with power"
)


def with_emissions(option: Option, offer: Offer | None, problem: Problem, tdp_kw: float | None) -> Option:
    """The option with its CO2e per kWh and, if rented, its estimated kW at the meter, as far as they are known.

    `offer` is the quote or existing node that it is from, `tdp_kw` the power of one of its GPUs.
    """
    own, owned = offer.carbon if offer else None, option.purchase_option == "owned"
    if owned:
        place = problem.site.carbon if problem.site else None
        return replace(option, carbon_g_per_kwh=place if own is None else own)
    power = offer.power if offer else None
    if power is None and tdp_kw:
        power = option.gpus_per_node * tdp_kw * problem.carbon.host_factor
    pue = problem.carbon.pue if offer is None or offer.pue is None else offer.pue
    intensity = problem.carbon.of_region(option.region) if own is None else own
    metered = None if power is None or intensity is None else power * pue
    return replace(option, carbon_g_per_kwh=intensity, metered_kw=metered)


def emissions_unknown(option: Option, problem: Problem) -> bool:
    """Whether emissions count and those of the option are not known."""
    rented = option.purchase_option != "owned"
    unknown = option.carbon_g_per_kwh is None or (rented and option.metered_kw is None)
    return problem.counts_carbon and unknown


def grams_per_node_hour(option: Option, problem: Problem) -> float:
    """What an hour of a rented node emits; 0 where emissions do not count."""
    return (option.metered_kw or 0.0) * (option.carbon_g_per_kwh or 0.0) if problem.counts_carbon else 0.0
