"""Where sources disagree, the later price counts and the row says what the other source says."""

import re

import pytest

from catalog import load_catalog

CATALOG = load_catalog()
OFFERS = {offer.offer_id: offer for offer in CATALOG.offers()}


@pytest.mark.parametrize(
    ("node", "price", "older"),
    [
        ("Standard_NC48ads_A100_v4", 9.554, "7.346"),
        ("Standard_NC96ads_A100_v4", 19.108, "14.692"),
        ("Standard_NC80adis_H100_v5", 17.64, "13.96"),
    ],
)
def test_a_later_price_replaces_an_earlier_one_and_names_it(node: str, price: float, older: str) -> None:
    """The price of November counts, by its own source; the list of June stands in the note."""
    offer = OFFERS[f"azure/eastus/{node}/on-demand"]
    assert (offer.price_usd_per_node_hour, str(offer.ref.date), offer.confidence) == (price, "2026-11-09", "secondary")
    assert older in offer.notes
    assert "2026-06-18" in offer.notes


def test_no_note_names_a_price_later_than_the_row() -> None:
    """A row whose note dates another price after its own would ship what has been replaced."""
    for offer in OFFERS.values():
        others = re.findall(r"\d [^;(]*\((\d{4}-\d\d-\d\d)\): a rise", offer.notes)
        assert all(day < str(offer.ref.date) for day in others), offer.offer_id


def test_power_and_rates_that_sources_print_differently_are_noted() -> None:
    """A10G draws up to the driver's cap; both figures and both sources stand in the row, as for GB200."""
    a10g, gb200 = CATALOG.gpu("A10G"), CATALOG.gpu("GB200")
    assert a10g.tdp_w == 300
    assert "150 W" in a10g.notes
    assert "DCGM issue 232" in str(a10g.ref)
    assert "gb300-nvl72-architecture" in gb200.notes
    assert "glennklockwood.com" in gb200.notes
