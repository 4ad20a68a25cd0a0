"""Prices of electricity by region, as buyers name regions."""

import re
from collections.abc import Iterable
from datetime import date

from catalog.errors import UnknownNameError
from catalog.schema import SiteCost

BUSINESS = ("commercial", "non-household")
"""What a business pays; of a region without such a row the household price is taken."""


def electricity_of(costs: Iterable[SiteCost], region: str) -> SiteCost:
    """The newest price of electricity for businesses in a region ("US CA", "us-ca", "EU").

    Raises
    ------
    UnknownNameError
        With regions that look like it.
    """
    rows = [cost for cost in costs if cost.kind == "electricity" and cost.value is not None]
    wanted = _key(region)
    found = [row for row in rows if _key(row.region) in (wanted, f"{wanted} average")]
    if not found:
        names = sorted({row.region for row in rows})
        near = [name for name in names if set(_key(name).split()) & set(wanted.split())] or names
        raise UnknownNameError(region, near[:6], "electricity region")
    return max(found, key=lambda row: (row.item in BUSINESS, row.ref.date or date.min))


def _key(region: str) -> str:
    return " ".join(re.findall(r"\w+", re.sub(r"\(.*?\)", "", region.casefold())))
