"""Rules about carbon: where emissions count, those of quotes and existing nodes are known; unknown is not nothing."""

from collections.abc import Callable, Iterator

from optimizer.problem.checks import Case, Complaint, Complaints
from optimizer.problem.positions import Path
from optimizer.problem.schema import ExistingNodes, Problem, Quote

_WHY = "limits.carbon or finance.carbon_price counts emissions"


def _offers(problem: Problem) -> Iterator[tuple[Path, Quote | ExistingNodes, bool]]:
    """Path, offer, whether it is owned."""
    for index, quote in enumerate(problem.options.quotes):
        yield ("options", "quotes", index), quote, quote.purchase == "owned"
    for index, nodes in enumerate(problem.options.existing):
        yield ("options", "existing", index), nodes, nodes.term is None


def intensities_are_known(case: Case) -> Complaints:
    """Owned nodes have the site's CO2e per kWh or their own, rented ones their region's or their own."""
    site = case.problem.site
    for path, offer, owned in _offers(case.problem) if case.problem.counts_carbon else ():
        if owned:
            place, default, hint = "its site", site.carbon if site else None, "site: {carbon: 320 g/kWh}"
        else:
            place, default = f'region "{offer.region or ""}"', case.problem.carbon.of_region(offer.region or "")
            region = offer.region or '"*"'
            hint = f"carbon: {{regions: {{{region}: 320 g/kWh}}}}"
        if offer.carbon is None and default is None:
            message = f"{_WHY}, and CO2e per kWh of {place} is not given"
            yield Complaint((*path, "carbon"), message, f"write {hint}, or carbon: 320 g/kWh here", at_key=True)


def powers_are_known(case: Case) -> Complaints:
    """Owned nodes say their power; rented ones may leave it to the TDP of their GPUs, where that is known."""
    for path, offer, owned in _offers(case.problem) if case.problem.counts_carbon else ():
        metered = offer.idle_power is not None and offer.load_power is not None
        own_gpu = case.problem.gpus.get(offer.gpu)
        if owned and offer.power is None and not metered:
            message = f"{_WHY}, and this node says no power"
            yield Complaint((*path, "power"), message, "write e.g. power: 10.2 kW", at_key=True)
        elif not owned and offer.power is None and own_gpu is not None and not own_gpu.tdp:
            message = f"{_WHY}, and neither this node's power nor the TDP of {offer.gpu} is given"
            hint = f"write e.g. power: 10.2 kW here, or gpus: {{{offer.gpu}: {{tdp: 700 W}}}}"
            yield Complaint((*path, "power"), message, hint, at_key=True)


CARBON_RULES: tuple[Callable[[Case], Complaints], ...] = (intensities_are_known, powers_are_known)
