import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.report import numbers
from optimizer.report.numbers import brief, money, number, percent, span, unit_price


def test_examples_in_docstrings():
    """The examples in the docstrings are true."""
    assert doctest.testmod(numbers).failed == 0


@settings(max_examples=200)
@given(st.floats(min_value=-1e18, max_value=1e18).filter(lambda x: x != 0))
def test_nothing_becomes_zero(value):
    """A number that is not 0 never reads as 0, and reads back within half a percent (a cent for money)."""
    for form, slack in ((number, 0.0006), (brief, 0.006), (money, 0.051), (unit_price, 0.001)):
        text = form(value).replace(",", "")
        assert float(text) == pytest.approx(value, rel=slack)
        assert float(text) != 0
    share = percent(value).removesuffix(" %").replace(",", "")
    assert float(share) != 0


@pytest.mark.parametrize("form", [number, brief, money, unit_price, percent])
def test_unknown_numbers(form):
    """What is not known reads as a dash, not as nan or None."""
    assert form(None) == form(float("nan")) == "–"


def test_quoted_prices_keep_their_digits():
    """A unit price shows all digits of the quote, and cents at least."""
    assert [unit_price(x) for x in (21.957642, 2.2, 0.0855, 265000.0)] == ["21.95764", "2.20", "0.0855", "265,000"]


def test_spans():
    """A range shows both ends, and nothing where there is no range."""
    assert (span(5.541, 10.45), span(None, 1.0), span(2.0, 2.0)) == ("5.54–10.4", "", "")
