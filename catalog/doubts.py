"""What a buyer should know of a price before relying on it: the rules of `catalog check` for the prices of one plan."""

import re
from collections.abc import Iterator, Mapping
from datetime import date

from catalog.gpu_figures import WARNING
from catalog.load import Catalog
from catalog.plausibility import RULES, STALE_DAYS, Finding, Stock, doubtful_gpus, per_gpu, unknown_gpus
from catalog.schema import CloudOffer

ERROR_OF_A_SUM = 0.017
"""So far below the price of the bundle was the sum of its parts: 14.8451 for 15.10 (dstackai/dstack issue 1355)."""
_SUMMED = re.compile(r"rows summed|^machine .+ \+ GPUs ")


def summed_prices(stock: Stock) -> Iterator[Finding]:
    """A price added up from machine and GPUs, with the offers that are too near for it to be surely the cheaper one."""
    for offer in stock.offers:
        if not _SUMMED.search(offer.notes):
            continue
        near = sorted(other.offer_id for other in stock.market if _too_near(offer, other))
        rivals = f"; as near as that are {', '.join(near[:3])}" if near else ""
        message = f"summed from machine and GPUs: bundles have cost up to {ERROR_OF_A_SUM:.1%} more{rivals}"
        yield Finding(offer.ref.file, offer.ref.line, WARNING, "summed-price", message)


def _too_near(offer: CloudOffer, other: CloudOffer) -> bool:
    kind = (offer.gpu_id, offer.gpus_per_node, offer.purchase_option)
    same_kind = kind == (other.gpu_id, other.gpus_per_node, other.purchase_option)
    return other is not offer and same_kind and abs(1 - per_gpu(offer) / per_gpu(other)) <= ERROR_OF_A_SUM


PRICE_RULES = (
    *(rule for rule in RULES if rule not in (doubtful_gpus, unknown_gpus)),
    summed_prices,
)
"""All rules of the check, save those about what a GPU is (a plan has none that the catalog lacks), and one more."""


def prices_worth_a_look(catalog: Catalog, used: Mapping[str, str], today: date) -> list[tuple[str, Finding]]:
    """Findings about the prices of some offers and servers, given by their ids, each with its GPU.

    Only rows of these GPUs are read. What is no entry of the catalog (a quote) has no findings.
    """
    gpus = set(used.values())
    market, servers = catalog.offers(gpus, as_written=True), catalog.servers(gpus, as_written=True)
    names = {(o.ref.file, o.ref.line): o.offer_id for o in market if o.offer_id in used}
    names |= {(s.ref.file, s.ref.line): s.server_id for s in servers if s.server_id in used}
    if not names:
        return []
    known = {gpu.gpu_id: gpu for gpu in catalog.gpus()}
    stock = Stock((), market, servers, market, known, today, STALE_DAYS)
    found = [finding for rule in PRICE_RULES for finding in rule(stock)]
    return [(names[f.file, f.line], f) for f in found if (f.file, f.line) in names]
