"""Ranges of the literature (discounts, resale values) and prices of electricity by region."""

import shutil
from pathlib import Path

import pytest

from catalog import CatalogFileError, UnknownNameError, load_catalog

DATA = Path(__file__).parents[2] / "catalog"
CATALOG = load_catalog()


@pytest.mark.parametrize(
    ("region", "price", "unit"),
    [
        ("US CA", 0.2946, "USD per kWh"),
        ("us-ca", 0.2946, "USD per kWh"),
        ("US", 0.146, "USD per kWh"),
        ("EU", 0.1902, "EUR per kWh"),
        ("Finland", 0.089, "EUR per kWh"),
        ("US TX", 0.1604, "USD per kWh"),
    ],
)
def test_electricity_is_found_by_any_writing_of_a_region(region: str, price: float, unit: str) -> None:
    """The newest business price; the household one only where there is no other (Texas)."""
    row = CATALOG.electricity(region)
    assert (row.value, row.unit) == (price, unit)


@pytest.mark.parametrize(("region", "near"), [("US XX", "US CA"), ("Mars", "Germany")])
def test_an_unknown_region_is_answered_with_known_ones(region: str, near: str) -> None:
    """Those that share a word with it, or the list."""
    with pytest.raises(UnknownNameError, match="electricity region") as caught:
        CATALOG.electricity(region)
    assert near in caught.value.suggestions


def test_resale_falls_with_age_at_every_level() -> None:
    """From the first year to the fifth, and low below mid below high."""
    values = CATALOG.resale_values()
    assert [value.age_months for value in values] == [12, 24, 36, 54]
    for level in ("low", "mid", "high"):
        shares = [value.fraction(level) for value in values]
        assert shares == sorted(shares, reverse=True)
    assert all(value.fraction("low") <= value.fraction("mid") <= value.fraction("high") for value in values)


def test_longer_promises_are_not_expected_to_cost_more() -> None:
    """Discounts grow with the term at every level, for providers that offer both."""
    found = {one.discount_id: one for one in CATALOG.typical_discounts()}
    year, three = found["reserved-12m"], found["reserved-36m"]
    assert all(year.fraction(level) <= three.fraction(level) for level in ("low", "mid", "high"))
    providers = {offer.provider for offer in CATALOG.offers()}
    assert all(set(one.providers.split()) <= providers for one in found.values())


@pytest.mark.parametrize(
    ("name", "good", "bad", "says"),
    [
        ("typical_discounts.csv", ",0.3,0.45,0.6,", ",0.5,0.45,0.6,", "0 ≤ low ≤ mid ≤ high < 1"),
        ("typical_discounts.csv", ",0.3,0.45,0.6,", ",30,45,60,", "0 ≤ low ≤ mid ≤ high < 1"),
        ("typical_discounts.csv", ",reserved,12,", ",on-demand,12,", "give a term for reserved or committed-use"),
        ("resale_values.csv", ",12,0.6,0.65,0.7,", ",12,0.7,0.65,0.6,", "0 ≤ low ≤ mid ≤ high ≤ 1"),
        ("resale_values.csv", ",12,0.6,0.65,0.7,", ",0,0.6,0.65,0.7,", "must be above 0"),
    ],
)
def test_ranges_out_of_order_are_refused(tmp_path: Path, name: str, good: str, bad: str, says: str) -> None:
    """A slip in a range is an error at its row, not a strange price."""
    for path in DATA.glob("*.csv"):
        shutil.copy(path, tmp_path / path.name)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert good in text
    (tmp_path / name).write_text(text.replace(good, bad, 1), encoding="utf-8")
    catalog = load_catalog(tmp_path)
    with pytest.raises(CatalogFileError, match=says) as caught:
        (catalog.typical_discounts if name.startswith("typical") else catalog.resale_values)()
    assert caught.value.line == 2
