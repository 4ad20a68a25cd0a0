"""Rules about discounts and private prices that need the catalog: what they hold for, and per what a price is.

They compare names of GPUs, so they come after these are settled by the catalog.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from catalog.load import Catalog
from catalog.schema import CloudOffer
from optimizer.problem.checks import Case, Complaint, Complaints
from optimizer.problem.positions import Path
from optimizer.problem.schema import CATALOG_CURRENCY, OWN_PROVIDER, Discount, Problem

LEAST_SHARE_OF_LIST = 0.2
"""A private price below this share of the list price is taken for one per GPU that was written as one per node."""
_PER = "write per: gpu or per: node beside the price"


def discount_complaints(case: Case, catalog: Catalog) -> Complaints:
    """What is wrong with discounts, given the offers that they are for."""
    options = case.problem.options
    if not options.discounts or not options.has_offers:
        return
    offers = catalog.offers()
    for index, terms in enumerate(options.discounts):
        path: Path = ("options", "discounts", index)
        if terms.purchase == "owned":
            yield from _servers_exist(path, terms, catalog)
            continue
        meant = [offer for offer in offers if _names(terms, offer)]
        if not meant:
            yield Complaint(path, f"no offer of the catalog is {terms.words}", _offers_near(terms, offers))
        elif terms.price and "per" not in terms.model_fields_set and not case.normalised:
            considered = [offer for offer in meant if _considered(offer, case.problem)] or meant
            yield from _price_says_per_what(path, terms, considered, case.problem)


def _servers_exist(path: Path, terms: Discount, catalog: Catalog) -> Complaints:
    for server in catalog.servers():
        alike = _like(terms.provider, OWN_PROVIDER) and _like(terms.option, server.server_id)
        if alike and terms.gpu in (None, server.gpu_id):
            return
    yield Complaint(path, f"no server of the catalog is {terms.words}", "see gpumix catalog list servers")


def _names(terms: Discount, offer: CloudOffer) -> bool:
    """Whether all that a discount names matches an offer."""
    alike = _like(terms.provider, offer.provider) and _like(terms.option, offer.offer_id)
    return alike and terms.gpu in (None, offer.gpu_id) and terms.purchase in (None, offer.purchase_option)


def _like(pattern: str | None, text: str) -> bool:
    return pattern is None or fnmatchcase(text.lower(), pattern.lower())


def _considered(offer: CloudOffer, problem: Problem) -> bool:
    """Whether the problem's options let an offer in; other offers' sizes need no word on what a price is per."""
    wanted, barred = problem.options, problem.options.providers.deny
    allowed = wanted.providers.allow
    return (
        (wanted.gpus is None or offer.gpu_id in wanted.gpus)
        and (wanted.purchase is None or offer.purchase_option in wanted.purchase)
        and (not allowed or any(_like(pattern, offer.provider) for pattern in allowed))
        and not any(_like(pattern, offer.provider) for pattern in barred)
        and (not wanted.regions or any(_like(pattern, offer.region) for pattern in wanted.regions))
    )


def _price_says_per_what(path: Path, terms: Discount, offers: Sequence[CloudOffer], problem: Problem) -> Complaints:
    """One price for nodes of several sizes, or far below the list, says whether it is per node or per GPU."""
    place: Path = (*path, "price")
    sizes = sorted({offer.gpus_per_node for offer in offers})
    if len(sizes) > 1:
        found = f"one price for nodes of {_listed(sizes)} GPUs ({terms.words})"
        yield Complaint(place, found, f"{_PER}; or name one size by its offer's id (option:)", at_key=True)
        return
    rate = problem.exchange_rates.get(CATALOG_CURRENCY)
    list_price = min(offer.price_usd_per_node_hour for offer in offers) * (rate.rate if rate else 1.0)
    if (terms.price or 0.0) < LEAST_SHARE_OF_LIST * list_price:
        currency = problem.currency
        found = f"{terms.price:g} {currency}/h per node is below {LEAST_SHARE_OF_LIST:.0%} of the list price"
        yield Complaint(place, f"{found} ({list_price:g} {currency}/h for {sizes[0]} GPUs)", _PER, at_key=True)


def _offers_near(terms: Discount, offers: Iterable[CloudOffer]) -> str:
    """What the provider, or whoever has that GPU, does offer."""
    if terms.provider is not None:
        gpus = sorted({offer.gpu_id for offer in offers if _like(terms.provider, offer.provider)})
        if terms.gpu not in (None, *gpus):
            return f"{terms.provider} offers {_some(gpus)}; a price nobody lists is a quote (options: quotes)"
    if terms.purchase is not None:
        rest = terms.model_copy(update={"purchase": None})
        ways = sorted({offer.purchase_option for offer in offers if _names(rest, offer)})
        if ways:
            return f"such offers are {_some(ways)}; a price nobody lists is a quote (options: quotes)"
    return "see gpumix catalog list offers; a price nobody lists is a quote (options: quotes)"


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _listed(sizes: Sequence[int]) -> str:
    return f"{', '.join(str(size) for size in sizes[:-1])} and {sizes[-1]}"
