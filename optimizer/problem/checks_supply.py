"""Rules about what may be bought or rented: quotes, existing hardware, limits, currencies."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from optimizer.problem.checks import Case, Complaint, Complaints, no_such, repeated
from optimizer.problem.messages import shown, value_at
from optimizer.problem.periods import order_periods
from optimizer.problem.positions import Path
from optimizer.problem.purchase import USE_BILLED
from optimizer.problem.schema import CATALOG_CURRENCY, OWN_PROVIDER, Offer, Problem, Quote
from optimizer.problem.wording import counted, with_article
from optimizer.quantities import split_quantity

_TERM_PURCHASES = ("reserved", "committed-use")


def _quotes(case: Case) -> list[tuple[Path, Quote]]:
    return [(("options", "quotes", index), quote) for index, quote in enumerate(case.problem.options.quotes)]


def _offers(case: Case) -> list[tuple[Path, Offer]]:
    existing = case.problem.options.existing
    return [*_quotes(case), *((("options", "existing", index), nodes) for index, nodes in enumerate(existing))]


def offer_names(case: Case) -> list[str]:
    """Names of quotes and of existing hardware."""
    return [str(name) for _, offer in _offers(case) if (name := getattr(offer, "name", None))]


def provider_names(problem: Problem) -> list[str]:
    """Providers of quotes and existing hardware; `own` stands for owned nodes."""
    options = problem.options
    rented = {quote.provider or quote.name for quote in options.quotes if quote.purchase != "owned"}
    owned = {offer.provider for offer in (*options.quotes, *options.existing) if offer.provider}
    return sorted(rented | owned | {OWN_PROVIDER})


def offer_names_differ(case: Case) -> Complaints:
    """Quotes and existing hardware can be told apart by name."""
    yield from repeated((((*path, "name"), getattr(offer, "name", None)) for path, offer in _offers(case)), "offer")


def there_is_something_to_choose(case: Case) -> Complaints:
    """Without the catalog there must be a quote or existing hardware."""
    options = case.problem.options
    if not options.has_offers and not options.quotes and not options.existing:
        hint = "add options: quotes, existing or price_files, or allow the catalog"
        yield Complaint(("options", "catalog"), "without the catalog there is nothing to buy or rent", hint)


def quotes_have_a_price(case: Case) -> Complaints:
    """An unknown price is not a free offer: 0 must be written."""
    for path, quote in _quotes(case):
        if quote.price is None:
            unit = "265_000 USD (per node)" if quote.purchase == "owned" else "21.6 USD/h (per node)"
            message = f'quote "{quote.name}" has no price'
            yield Complaint((*path, "price"), message, f"write e.g. {unit}; 0 if it is free", at_key=True)


def price_units_fit_the_purchase(case: Case) -> Complaints:
    """What is owned is paid once; what is rented is paid per time, and the price says per which."""
    if case.normalised:
        return
    for path, quote in _quotes(case):
        raw = value_at(case.data, (*path, "price"))
        if quote.price is None or quote.price == 0:
            continue
        timed = isinstance(raw, str) and "/" in split_quantity(raw)[1]
        if quote.purchase == "owned" and timed:
            message = f"an owned node has one price, found {shown(raw)}"
            yield Complaint((*path, "price"), message, "write the amount alone, e.g. 265_000 USD")
        elif quote.purchase != "owned" and not timed:
            message = f"{with_article(quote.purchase)} node has a price per time, found {shown(raw)}"
            number = raw.strip() if isinstance(raw, str) else f"{raw} {case.problem.currency}"
            yield Complaint((*path, "price"), message, f'write "{number}/h", or /month, /year')


_ONLY_FOR: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("term", _TERM_PURCHASES, None),
    ("cancellable", _TERM_PURCHASES, False),
    ("upfront", _TERM_PURCHASES, 0.0),
    ("lead_time", ("owned", *_TERM_PURCHASES), 0.0),
    ("min_nodes", ("owned", *_TERM_PURCHASES), 1),
    ("billing_step", USE_BILLED, None),
    ("billed_by_clock", USE_BILLED, False),
    ("installation", ("owned",), 0.0),
    ("maintenance", ("owned",), 0.0),
    ("useful_life", ("owned",), None),
    ("residual", ("owned",), None),
)


def terms_fit_the_purchase(case: Case) -> Complaints:
    """A reservation has a term; what belongs to another way of paying would be ignored, so it is refused."""
    for path, quote in _quotes(case):
        if quote.purchase in _TERM_PURCHASES and not quote.term:
            found = "no term" if quote.term is None else "a term of 0"
            message = f'quote "{quote.name}" is {quote.purchase} but has {found}'
            yield Complaint((*path, "term"), message, "write e.g. term: 12 months", at_key=True)
        for key, purchases, default in _ONLY_FOR:
            if quote.purchase not in purchases and getattr(quote, key) != default:
                message = f"{key} has no meaning for purchase: {quote.purchase}"
                yield Complaint((*path, key), message, f"it is for {' and '.join(purchases)}", at_key=True)


def clocks_have_steps(case: Case) -> Complaints:
    """Time billed by the clock is billed in steps."""
    for path, quote in _quotes(case):
        if quote.billed_by_clock and quote.billing_step is None and quote.purchase in USE_BILLED:
            hint = "write e.g. billing_step: hour"
            yield Complaint((*path, "billed_by_clock"), "billed_by_clock without billing_step", hint, at_key=True)


def signed_reservations_have_a_fee(case: Case) -> Complaints:
    """A reservation already signed costs what it costs: 0 must be written."""
    for index, nodes in enumerate(case.problem.options.existing):
        path: Path = ("options", "existing", index)
        if nodes.term is not None and value_at(case.data, (*path, "fee")) is None:
            hint = "write e.g. fee: 14.2 USD/h (per node); 0 if it is paid"
            yield Complaint((*path, "fee"), "a signed reservation without its fee", hint, at_key=True)
        for key in ("maintenance", "useful_life", "residual") if nodes.term is not None else ():
            if getattr(nodes, key) not in (None, 0.0):
                message = f"{key} has no meaning for a signed reservation"
                yield Complaint((*path, key), message, "it is for owned nodes (without term)", at_key=True)
        if nodes.term is None and nodes.fee:
            hint = "write term: the months left"
            yield Complaint((*path, "fee"), "a fee without the term of the reservation", hint, at_key=True)


def order_sizes(case: Case) -> Complaints:
    """The least order is not more than what one can have."""
    for path, quote in _quotes(case):
        if quote.max_nodes and quote.min_nodes > quote.max_nodes:
            message = f"min_nodes {quote.min_nodes} is more than max_nodes {quote.max_nodes}"
            yield Complaint((*path, "min_nodes"), message, "lower one or raise the other")


def residuals_are_in_order(case: Case) -> Complaints:
    """Residual values are points of rising age and of values that do not rise."""
    for path, offer in _offers(case):
        points = offer.residual if isinstance(offer.residual, list) else []
        for index, (before, after) in enumerate(pairwise(points), start=1):
            place: Path = (*path, "residual", index)
            if after.age <= before.age:
                message = f"age {counted(after.age, 'month')} after age {before.age:g}"
                yield Complaint((*place, "age"), message, "list the points from young to old")
            elif after.fraction > before.fraction:
                message = f"worth {after.fraction:g} at {counted(after.age, 'month')}, {before.fraction:g} before"
                yield Complaint((*place, "fraction"), message, "a node does not gain value with age")
        if offer.residual == []:
            yield Complaint((*path, "residual"), "an empty list", "leave the key out for the default")


def power_is_in_order(case: Case) -> Complaints:
    """An idle node draws no more than a busy one, a busy one no more than its nameplate."""
    for path, offer in _offers(case):
        ladder = [(key, getattr(offer, key)) for key in ("idle_power", "load_power", "power")]
        given = [(key, value) for key, value in ladder if value is not None]
        for (low_key, low), (high_key, high) in pairwise(given):
            if low > high:
                message = f"{low_key} {low:g} kW is more than {high_key} {high:g} kW"
                yield Complaint((*path, low_key), message, "swap or correct them")


def measured_offers_exist(case: Case) -> Complaints:
    """A measurement made on an offer names a quote or existing hardware; no two say the same thing twice."""
    seen: set[tuple[Any, ...]] = set()
    names = offer_names(case)
    for index, one in enumerate(case.problem.measurements):
        path: Path = ("measurements", index)
        if one.option is not None and one.option not in names:
            yield no_such((*path, "option"), one.option, names, "offer")
        what = (one.workload, one.gpu, one.option, one.request_class)
        key = (*what, one.gpus_per_node, one.gpus_per_replica, one.weights)
        if key in seen:
            yield Complaint(path, "measured twice, with nothing to tell the two apart", "keep one of them")
        seen.add(key)


def limits_name_workloads(case: Case) -> Complaints:
    """Spot shares by workload name workloads."""
    names = [workload.name for workload in case.problem.workloads]
    shares = case.problem.limits.spot_share
    for name in shares if isinstance(shares, dict) else ():
        if name not in names:
            yield no_such(("limits", "spot_share", name), name, names, "workload", at_key=True)


def limits_name_offers(case: Case) -> Complaints:
    """Without the catalog, stock and provider limits name quotes or existing hardware."""
    if case.problem.options.has_offers:
        return
    providers = provider_names(case.problem)
    for key, names, what in (("stock", offer_names(case), "offer"), ("providers", providers, "provider")):
        for name in getattr(case.problem.limits, key):
            if name not in names:
                yield no_such(("limits", key, name), name, names, what, at_key=True)


def discounts_say_what_and_how_much(case: Case) -> Complaints:
    """A discount names something and gives a share or a price; the same thing is not given twice."""
    seen: set[tuple[str | None, ...]] = set()
    for index, terms in enumerate(case.problem.options.discounts):
        path: Path = ("options", "discounts", index)
        if (terms.percent is None) == (terms.price is None):
            yield Complaint(
                path, "a discount needs either percent or price", "write percent: 12 %, or price: 21.6 USD/h"
            )
        if terms.percent == 1:
            hint = "write price: 0, or the price paid"
            yield Complaint((*path, "percent"), "a discount of 100 % leaves no price", hint)
        if terms.price is not None and terms.purchase == "owned":
            hint = "write a quote (options: quotes), with power and term of life"
            yield Complaint((*path, "price"), "a price of your own for a server", hint, at_key=True)
        if not terms.words:
            yield Complaint(path, "a discount on everything", "name a provider, gpu, option or purchase")
        what = (terms.provider, terms.gpu, terms.option, terms.purchase)
        if what in seen:
            yield Complaint(path, f"a second discount for {terms.words}", "keep one of them")
        seen.add(what)


def own_prices_are_timed(case: Case) -> Complaints:
    """A private price of a rented node is per time."""
    for index in range(len(case.problem.options.discounts)):
        path: Path = ("options", "discounts", index, "price")
        raw = value_at(case.data, path)
        if isinstance(raw, str) and "/" not in split_quantity(raw)[1] and not case.normalised:
            message = f"a rented node has a price per time, found {shown(raw)}"
            yield Complaint(path, message, f'write "{raw.strip()}/h", or /month, /year')


def discounts_have_a_catalog(case: Case) -> Complaints:
    """Discounts and estimates are of the catalog's offers."""
    options = case.problem.options
    for key in ("discounts", "estimated_discounts"):
        if getattr(options, key) and not options.has_offers:
            hint = "leave them out, or allow the catalog"
            yield Complaint(("options", key), f"{key} without the catalog", hint, at_key=True)


def currencies_are_foreign(case: Case) -> Complaints:
    """Exchange rates are for other currencies than the problem's, by their three letters."""
    for code in case.problem.exchange_rates:
        path: Path = ("exchange_rates", code)
        if code == case.problem.currency:
            yield Complaint(path, f"{code} is the problem's currency", "leave its rate out", at_key=True)
        elif not (len(code) == 3 and code.isascii() and code.isalpha() and code.isupper()):
            yield Complaint(path, f'"{code}" is not a currency', "write three capital letters (ISO 4217)", at_key=True)


def catalog_prices_can_be_converted(case: Case) -> Complaints:
    """The catalog's prices are dollars: another currency needs their rate."""
    problem = case.problem
    foreign = problem.currency != CATALOG_CURRENCY and CATALOG_CURRENCY not in problem.exchange_rates
    if problem.options.has_offers and foreign:
        rate = f"{{rate: <{problem.currency} per USD>, date: <YYYY-MM-DD>}}"
        hint = f"add exchange_rates: {{USD: {rate}}}, or options: {{catalog: false}}"
        yield Complaint(("currency",), f"the catalog's prices are in USD, the problem's in {problem.currency}", hint)


def rack_units_are_known(case: Case) -> Complaints:
    """Where rack units are limited, owned nodes say how many they take: unknown is not nothing."""
    site = case.problem.site
    if site is None or site.rack_units_limit is None:
        return
    for path, offer in _offers(case):
        owned = offer.purchase == "owned" if isinstance(offer, Quote) else getattr(offer, "term", None) is None
        if owned and offer.rack_units is None:
            message = "site.rack_units_limit is given, and this node says no rack units"
            yield Complaint((*path, "rack_units"), message, "write e.g. rack_units: 8", at_key=True)


def checkpoints_make_sense(case: Case) -> Complaints:
    """What is said of checkpoints holds together: an interval where there are any, a restart beside it."""
    for path, job in case.jobs():
        if job.checkpoint_every is not None and not job.checkpoints:
            message = "checkpoint_every with checkpoints: false"
            yield Complaint((*path, "checkpoint_every"), message, "leave one of them out", at_key=True)
        if job.restart > 0 and job.checkpoint_every is None:
            message = "restart has a meaning beside checkpoint_every only"
            yield Complaint((*path, "restart"), message, "write e.g. checkpoint_every: 30 min", at_key=True)


def capex_lists_fit_the_horizon(case: Case) -> Complaints:
    """One entry per listed period, or per year; years begin with a period, as orders are paid at its start."""
    limits, periods = case.problem.limits, order_periods(case.problem.horizon)
    years = math.ceil(case.problem.horizon.months / 12 - 1e-9)
    for key, given, expected, what in (
        ("capex_by_period", limits.capex_by_period, len(periods), "period"),
        ("capex_by_year", limits.capex_by_year, years, "year"),
    ):
        if given is not None and len(given) != expected:
            message = f"found {counted(len(given), 'amount')} for {counted(expected, what)}"
            yield Complaint(("limits", key), message, f"write one amount for each {what}, null for no limit")
    starts = [period.start_month for period in periods]
    missing = [12 * year for year in range(years) if all(abs(12 * year - start) > 1e-9 for start in starts)]
    if limits.capex_by_year is not None and missing:
        message = f"no period starts at month {missing[0]}, so that orders of a period may lie in two years"
        yield Complaint(("limits", "capex_by_year"), message, "use capex_by_period, or periods that start each year")


SUPPLY_RULES: tuple[Callable[[Case], Complaints], ...] = (
    offer_names_differ,
    there_is_something_to_choose,
    quotes_have_a_price,
    price_units_fit_the_purchase,
    terms_fit_the_purchase,
    clocks_have_steps,
    signed_reservations_have_a_fee,
    order_sizes,
    residuals_are_in_order,
    power_is_in_order,
    measured_offers_exist,
    limits_name_workloads,
    limits_name_offers,
    discounts_say_what_and_how_much,
    own_prices_are_timed,
    discounts_have_a_catalog,
    currencies_are_foreign,
    catalog_prices_can_be_converted,
    rack_units_are_known,
    checkpoints_make_sense,
    capex_lists_fit_the_horizon,
)
