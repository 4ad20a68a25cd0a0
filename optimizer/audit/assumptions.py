"""Checks of the assumptions: what the problem's words, the options and the estimates say is what the plan lists."""

from collections.abc import Iterator
from typing import Any

from catalog.schema import ResaleValue, TypicalDiscount
from optimizer.audit.carbon import counted
from optimizer.audit.document import Answer, plain
from optimizer.audit.report import Checker
from optimizer.audit.sources import CatalogRows
from optimizer.audit.supply import IDLE_SHARE, RESIDUAL_AT_END, USEFUL_LIFE_MONTHS
from optimizer.estimator.types import Estimates
from optimizer.problem.schema import ExistingNodes, Problem, Quote


def check_assumptions(
    answer: Answer, problem: Problem, rows: CatalogRows, anew: Estimates | None, checker: Checker
) -> None:
    """Check every assumption; whether a value was given or left to its default is not in the plan."""
    found = {one.name: one for one in answer.assumptions}
    checker.holds("assumptions", "assumptions", len(found) == len(answer.assumptions), "a name is listed twice")
    given = _derived(answer, problem)
    expected: dict[str, dict[str, Any]] = {name: {"value": value, "low": None, "high": None} for name, value in given}
    expected |= _of_the_literature(rows, problem) if rows.usable else {}
    for assumption in map(plain, anew.assumptions if anew else ()):
        expected[assumption["name"]] = {key: assumption[key] for key in ("value", "unit", "low", "high")}
    for name, figures in expected.items():
        where = f"assumptions[{name}]"
        if checker.holds("assumptions", where, name in found, "is missing"):
            checker.same("assumptions", where, {key: getattr(found[name], key) for key in figures}, figures)
    for name in found.keys() - expected.keys() if anew else ():
        checker.fail("assumptions", f"assumptions[{name}]", "nothing in the problem or its estimates rests on this")


def _of_the_literature(rows: CatalogRows, problem: Problem) -> dict[str, dict[str, Any]]:
    """Value and range of what nobody quoted: discounts of reservations, resale values of servers on sale."""
    level = problem.options.estimated_discounts
    found = {
        f"estimated discount {row.discount_id}": _range(row, level or "") for row in rows.typical_discounts(problem)
    }
    if problem.options.catalog and problem.site and rows.servers(problem):
        for row in rows.catalog.resale_values():
            found[f"resale of servers after {row.age_months:g} months"] = _range(row, problem.site.resale)
    return found


def _range(row: TypicalDiscount | ResaleValue, level: str) -> dict[str, Any]:
    return {"value": getattr(row, f"{level}_fraction"), "low": row.low_fraction, "high": row.high_fraction}


def _derived(answer: Answer, problem: Problem) -> Iterator[tuple[str, float | str]]:
    """Name and value of what does not come from the estimator."""
    yield "horizon", problem.horizon.months
    yield "discount rate", problem.finance.discount_rate
    for workload in problem.workloads:
        yield f"headroom of {workload.name}", workload.headroom
    if problem.site:
        yield "electricity", problem.site.electricity
        yield "PUE", problem.site.pue
    yield from _of_carbon(answer, problem)
    yield from _of_own_offers(answer, problem)
    for terms in problem.options.discounts:
        named = ", ".join(part for part in (terms.provider, terms.gpu, terms.option, terms.purchase) if part)
        if terms.price is None:
            yield f"discount: {named}", terms.percent or 0.0
        else:
            yield f"own price: {named}", terms.price
    for cost in problem.costs:
        named = f"cost: {cost.kind}: {cost.name}" if cost.name else f"cost: {cost.kind}"
        amounts = (cost.once, cost.monthly, cost.per_gb, cost.percent)
        yield from ((named, amount) for amount in amounts if amount is not None)
    rises = problem.finance.opex_escalation.model_dump()
    yield from ((f"escalation of {what}", change) for what, change in rises.items() if change != 0)
    dates = [option.price_date for option in answer.inputs.options if option.price_date]
    if dates:
        yield "oldest price considered", min(dates)
    undated = sum(not option.price_date and not option.existing_nodes for option in answer.inputs.options)
    if undated:
        yield "prices without a date", float(undated)


def _of_carbon(answer: Answer, problem: Problem) -> Iterator[tuple[str, float]]:
    """Intensities as given; what the emissions of rented nodes are estimated by, where they count."""
    own = _own_by_name(problem)
    if problem.site is not None and problem.site.carbon is not None:
        yield "carbon of the site", problem.site.carbon
    yield from ((f"carbon of region {pattern}", grams) for pattern, grams in problem.carbon.regions.items())
    yield from ((f"carbon of {name}", offer.carbon) for name, offer in own.items() if offer.carbon is not None)
    rented = [option.option_id for option in answer.inputs.options if option.purchase_option != "owned"]
    if counted(problem) and rented:
        yield "load of rented nodes", 1.0
        if any(name not in own or own[name].power is None for name in rented):
            yield "power of rented nodes", problem.carbon.host_factor
        if any(name not in own or own[name].pue is None for name in rented):
            yield "PUE of rented nodes", problem.carbon.pue


def _own_by_name(problem: Problem) -> dict[str, Quote | ExistingNodes]:
    own: dict[str, Quote | ExistingNodes] = {quote.name: quote for quote in problem.options.quotes}
    for index, nodes in enumerate(problem.options.existing):
        own[nodes.name or f"existing-{index + 1}-{nodes.gpu}"] = nodes
    return own


def _of_own_offers(answer: Answer, problem: Problem) -> Iterator[tuple[str, float]]:
    """What quotes, existing nodes and spot offers leave open, by the name of the option."""
    own = _own_by_name(problem)
    options = {option.option_id: option for option in answer.inputs.options}
    for name, offer in own.items():
        owned = offer.term is None if isinstance(offer, ExistingNodes) else offer.purchase == "owned"
        if owned and offer.useful_life is None:
            yield f"useful life of {name}", USEFUL_LIFE_MONTHS
        if owned and offer.power and offer.idle_power is None:
            yield f"idle power of {name}", IDLE_SHARE
        if name in options:
            yield from _of_delivery(name, offer, owned=owned)
    spot = [option for option in options.values() if option.interruptible and not option.interruptions_per_node_hour]
    yield from ((f"interruptions of {option.option_id}", 0.0) for option in spot if option.option_id in own)
    if any(option.option_id not in own for option in spot):
        yield "interruptions of the catalog's spot offers", 0.0


def _of_delivery(name: str, offer: Quote | ExistingNodes, *, owned: bool) -> Iterator[tuple[str, float]]:
    """Worth at the end of life, maintenance, lead time and availability that count as nothing said."""
    if owned and offer.residual is None:
        yield f"worth of {name} at the end of its life", RESIDUAL_AT_END
    if owned and offer.maintenance == 0:
        yield f"maintenance of {name}", 0.0
    by_the_hour = isinstance(offer, Quote) and offer.purchase in ("on-demand", "spot")
    if isinstance(offer, Quote) and not by_the_hour and offer.lead_time == 0:
        yield f"lead time of {name}", 0.0
    if not by_the_hour and offer.availability == 1:
        yield f"availability of {name}", 1.0
