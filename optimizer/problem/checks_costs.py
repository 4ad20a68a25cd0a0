"""Rules about further costs: how much, of what, when, for what."""

from collections.abc import Callable, Iterator

from optimizer.problem.checks import Case, Complaint, Complaints, exactly_one, no_such
from optimizer.problem.further_costs import FurtherCost
from optimizer.problem.messages import value_at
from optimizer.problem.positions import Path
from optimizer.problem.purchase import USE_BILLED

_AMOUNTS = ("once", "monthly", "per_gb", "percent")
_SELECTORS = ("purchase", "provider", "gpu", "option")


def _costs(case: Case) -> Iterator[tuple[Path, FurtherCost]]:
    for index, cost in enumerate(case.problem.costs):
        yield ("costs", index), cost


def costs_say_how_much(case: Case) -> Complaints:
    """A further cost is an amount paid once, monthly or per GB, or a share of other costs; one of them."""
    for path, cost in _costs(case):
        yield from exactly_one(path, {key: getattr(cost, key) for key in _AMOUNTS}, "say how much, in one way")


def costs_of_one_kind_differ(case: Case) -> Complaints:
    """Two costs of one kind are told apart by name."""
    seen = set()
    for path, cost in _costs(case):
        if (cost.kind, cost.name) in seen:
            where: Path = (*path, "name") if cost.name else path
            yield Complaint(where, f"a second cost called {cost.words}", "give each a name of its own")
        seen.add((cost.kind, cost.name))


def percentages_say_of_what(case: Case) -> Complaints:
    """A share is of purchases, rent or all; an amount is not."""
    for path, cost in _costs(case):
        if cost.percent is None and cost.of is not None:
            yield _without(path, "of", "it goes with percent")
        if cost.percent is None:
            continue
        if cost.of is None:
            yield Complaint((*path, "of"), "a share of what?", "write of: purchases, rent or all", at_key=True)
        for key in ("per", "gb_per_month", "gb_per_1000_requests"):
            if getattr(cost, key) is not None:
                yield _without(path, key, "a share has no quantity of its own")
        for key in ("start_month", "end_month"):
            if key in cost.model_fields_set and getattr(cost, key) not in (0, None):
                yield _without(path, key, "a share is paid when what it is a share of is paid")


def gb_have_a_price(case: Case) -> Complaints:
    """A price per GB needs GB, and GB a price."""
    for path, cost in _costs(case):
        volumes = {"gb_per_month": cost.gb_per_month, "gb_per_1000_requests": cost.gb_per_1000_requests}
        if cost.per_gb is not None:
            yield from exactly_one((*path, "per_gb"), volumes, "say how many GB")
            if cost.per is not None:
                yield _without(path, "per", "a price per GB is per GB")
        elif cost.percent is None and value_at(case.data, (*path, "per_gb")) is None:
            for key in (key for key, value in volumes.items() if value is not None):
                yield _without(path, key, "it goes with per_gb: 0.08 USD/GB")
        services = [service.name for _, service in case.services()]
        if cost.workload is not None and cost.gb_per_1000_requests is None:
            yield _without(path, "workload", "it goes with gb_per_1000_requests")
        elif cost.workload is not None and cost.workload not in services:
            yield no_such((*path, "workload"), cost.workload, services, "service")


def fixed_costs_are_for_all(case: Case) -> Complaints:
    """What is paid whatever is chosen does not depend on what is chosen."""
    for path, cost in _costs(case):
        per_node = cost.per is not None or cost.percent is not None or cost.gb_per_1000_requests is not None
        for key in _SELECTORS if not per_node else ():
            if getattr(cost, key) is not None:
                hint = "add per: node, gpu or kw, or leave it out"
                yield Complaint((*path, key), "an amount paid whatever is chosen is for no nodes", hint, at_key=True)


def costs_can_fall_due(case: Case) -> Complaints:
    """Nodes rented by the hour have no order and no power of the buyer's; a cost ends after it starts."""
    for path, cost in _costs(case):
        ways = cost.purchase
        if ways == []:
            yield Complaint((*path, "purchase"), "an empty list allows nothing", "leave the key out to allow all")
        elif ways and cost.per == "kw" and set(ways) != {"owned"}:
            hint = "write purchase: [owned], or per: node"
            yield Complaint((*path, "purchase"), "the power of rented nodes is not known", hint, at_key=True)
        elif ways and cost.once is not None and cost.per is not None and set(ways) <= set(USE_BILLED):
            hint = "write monthly, or another purchase"
            yield Complaint((*path, "once"), "nodes rented by the hour are not ordered", hint, at_key=True)
        if cost.end_month is not None and cost.end_month <= cost.start_month:
            message = f"it ends at month {cost.end_month:g} and starts at month {cost.start_month:g}"
            yield Complaint((*path, "end_month"), message, "write a later month")
        if cost.start_month >= case.problem.horizon.months:
            yield Complaint((*path, "start_month"), "after the horizon: never paid", "write an earlier month")
        if cost.once is not None and cost.per is None and cost.end_month is not None:
            yield _without(path, "end_month", "an amount paid once is paid at start_month")


def _without(path: Path, key: str, why: str) -> Complaint:
    return Complaint((*path, key), f"{key} has no meaning here", why, at_key=True)


COST_RULES: tuple[Callable[[Case], Complaints], ...] = (
    costs_say_how_much,
    costs_of_one_kind_differ,
    percentages_say_of_what,
    gb_have_a_price,
    fixed_costs_are_for_all,
    costs_can_fall_due,
)
