"""A buyer's own terms on the catalog's prices, and reservations estimated from on-demand prices."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from catalog.schema import TypicalDiscount
from optimizer.model.emitters import grams_per_node_hour
from optimizer.model.option import Option
from optimizer.problem.further_costs import FurtherCost
from optimizer.problem.schema import Discount, Problem

LIST_PRICE = "; list price "
"""What separates the source of a list price from what became of it, in the source of an option."""


def with_terms(option: Option, problem: Problem) -> Option:
    """The option at the buyer's terms; its source then names the list price and the terms."""
    terms, owned = terms_of(option, problem), option.purchase_option == "owned"
    if terms is None:
        return option
    if terms.price is not None:
        price = terms.price * (option.gpus_per_node if terms.per == "gpu" else 1)
        day = terms.date.isoformat() if terms.date else ""
        return replace(
            option,
            price_per_node_hour=price,
            price_date=day,
            source=_source(option, problem.currency, f"own price {price:g}", terms.source),
        )
    left = 1.0 - (terms.percent or 0.0)
    return replace(
        option,
        price_per_node_hour=option.price_per_node_hour * left,
        upfront_per_node=option.upfront_per_node * left,
        capex_per_node=option.capex_per_node * left if owned else option.capex_per_node,
        source=_source(option, problem.currency, f"{100 * (terms.percent or 0.0):g} % off", terms.source),
    )


def terms_of(option: Option, problem: Problem) -> Discount | None:
    """The buyer's terms for an offer of the catalog: the last of those that match."""
    return next((one for one in reversed(problem.options.discounts) if applies(one, option)), None)


def applies(terms: Discount, option: Option) -> bool:
    """Whether all that `terms` names matches the option; servers only where they say `owned`."""
    if option.purchase_option != (terms.purchase or option.purchase_option):
        return False
    if option.purchase_option == "owned" and terms.purchase != "owned":
        return False
    patterns = ((terms.provider, option.provider), (terms.option, option.option_id))
    named = all(fnmatchcase(text.lower(), pattern.lower()) for pattern, text in patterns if pattern is not None)
    return named and terms.gpu in (None, option.gpu_id)


def meant(cost: FurtherCost, option: Option) -> bool:
    """Whether all that a cost names matches an option."""
    patterns = ((cost.provider, option.provider), (cost.option, option.option_id))
    named = all(fnmatchcase(text.lower(), pattern.lower()) for pattern, text in patterns if pattern is not None)
    paid = cost.purchase is None or option.purchase_option in cost.purchase
    return named and paid and cost.gpu in (None, option.gpu_id)


def cost_signature(option: Option, problem: Problem) -> tuple[int, ...]:
    """Which of the buyer's further costs fall on an option: only offers alike in them can be compared by price."""
    return tuple(i for i, cost in enumerate(problem.costs) if meant(cost, option))


def estimated_reservations(
    offers: Iterable[Option], typical: Sequence[TypicalDiscount], problem: Problem
) -> Iterator[Option]:
    """Reservations that the literature lets one expect: on-demand at list price, less the asked level's discount.

    None where the catalog has a published reservation of that node and term.
    """
    level = problem.options.estimated_discounts
    listed = list(offers)
    published = {(*o.pool, o.term_months) for o in listed if o.purchase_option == "reserved"}
    for offer in listed if level else ():
        for discount in typical if offer.purchase_option == "on-demand" else ():
            if _expected(offer, discount) and (*offer.pool, discount.term_months) not in published:
                yield _estimated(offer, discount, level or "mid", problem.currency)


def _expected(offer: Option, discount: TypicalDiscount) -> bool:
    """Whether the provider sells reservations of such offers, as marketplaces and third parties' hosts do not."""
    barred = (discount.not_offers or "").lower().split()
    named = any(fnmatchcase(offer.option_id.lower(), pattern) for pattern in barred)
    return offer.provider in discount.providers.split() and not named


def _estimated(offer: Option, discount: TypicalDiscount, level: str, currency: str) -> Option:
    fraction, months = discount.fraction(level), discount.term_months
    words = f"{100 * fraction:g} % off for {months:g} months (estimate)"
    return replace(
        offer,
        option_id=f"{offer.option_id.rpartition('/')[0]}/{discount.discount_id}-estimate",
        purchase_option=discount.purchase_option,
        billing="holding",
        billing_step_hours=None,
        billed_by_clock=None,
        price_per_node_hour=offer.price_per_node_hour * (1 - fraction),
        term_months=months,
        source=_source(offer, currency, words, str(discount.ref)),
    )


def cheapest_estimates(estimates: Iterable[Option], problem: Problem) -> tuple[Option, ...]:
    """Of the estimates of one GPU type, node size and term the cheapest, as none of them is an offer to hold on to.

    One for each region where workloads restrict regions, one for each provider where providers are limited, and apart
    where further costs fall on some of them only, or one emits less.
    """
    by_region = any(workload.data.regions for workload in problem.workloads)
    best: dict[tuple[object, ...], Option] = {}
    for option in sorted(estimates, key=lambda o: (o.price_per_node_hour, o.option_id)):
        place = (option.region if by_region else "", option.provider if problem.limits.providers else "")
        alike = (*cost_signature(option, problem), grams_per_node_hour(option, problem))
        best.setdefault((option.gpu_id, option.gpus_per_node, option.term_months, *place, *alike), option)
    return tuple(best.values())


def _source(option: Option, currency: str, words: str, by: str) -> str:
    if option.purchase_option == "owned":
        listed = f"{option.capex_per_node:,.2f} {currency}"
    else:
        listed = f"{option.price_per_node_hour:,.2f} {currency}/h"
    return f"{option.source}{LIST_PRICE}{listed}, {words}: {by}"
