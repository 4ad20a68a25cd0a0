"""What a buyer should know of a price before relying on it: the rules of `catalog check` for the prices of one plan."""

from collections.abc import Mapping
from datetime import date

from catalog.load import Catalog
from catalog.plausibility import RULES, STALE_DAYS, Finding, Stock, doubtful_gpus, unknown_gpus

PRICE_RULES = tuple(rule for rule in RULES if rule not in (doubtful_gpus, unknown_gpus))
"""All rules, save those about what a GPU is: a plan has none that the catalog lacks."""


def prices_worth_a_look(catalog: Catalog, used: Mapping[str, str], today: date) -> list[tuple[str, Finding]]:
    """Findings about the prices of some offers and servers, given by their ids, each with its GPU.

    Only rows of these GPUs are read. What is no entry of the catalog (a quote) has no findings.
    """
    gpus = {gpu_id for name in set(used.values()) for gpu_id in catalog.gpu_candidates(name)}
    market, servers = catalog.offers(gpus), catalog.servers(gpus)
    names = {(o.ref.file, o.ref.line): o.offer_id for o in market if o.offer_id in used}
    names |= {(s.ref.file, s.ref.line): s.server_id for s in servers if s.server_id in used}
    if not names:
        return []
    known = {gpu.gpu_id: gpu for gpu in catalog.gpus()}
    stock = Stock((), market, servers, market, known, today, STALE_DAYS)
    found = [finding for rule in PRICE_RULES for finding in rule(stock)]
    return [(names[f.file, f.line], f) for f in found if (f.file, f.line) in names]
