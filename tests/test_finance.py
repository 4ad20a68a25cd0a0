"""Money over time against month-by-month sums and published figures."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.finance import (
    calendar_parts,
    discount_factor,
    npv,
    residual_fraction,
    running_factor,
)

rates = st.sampled_from((0.0, 1e-9, 0.03, 0.08, 0.5))
months = st.floats(0, 60, allow_nan=False).map(lambda x: round(x, 3))


def test_b117_an_annuity_and_its_present_value() -> None:
    """62,614.11 a year for three years at 8 % are worth 161,362.64 today."""
    assert npv(0.08, [(12, 62_614.11), (24, 62_614.11), (36, 62_614.11)]) == pytest.approx(161_362.64, abs=0.01)


@given(rates, st.floats(0, 30, allow_nan=False), months)
def test_factors_multiply(rate: float, first: float, second: float) -> None:
    """Waiting twice is waiting the sum; a year costs the annual rate."""
    assert discount_factor(rate, first + second) == pytest.approx(
        discount_factor(rate, first) * discount_factor(rate, second)
    )
    assert discount_factor(rate, 12) == pytest.approx(1 / (1 + rate))


@given(rates, st.integers(0, 30), st.integers(0, 30))
def test_whole_months_are_paid_at_their_ends(rate: float, start: int, length: int) -> None:
    """Month m is paid at m + 1."""
    expected = sum((1 + rate) ** (-(m + 1) / 12) for m in range(start, start + length))
    assert running_factor(rate, start, start + length, 60) == pytest.approx(expected)


@given(rates, months, months, months, st.sampled_from((24.0, 36.0, 60.0)))
def test_cutting_a_stretch_changes_nothing(rate: float, a: float, b: float, c: float, horizon: float) -> None:
    """Dates of payment do not depend on where the grid is cut."""
    start, cut, end = sorted((a, b, c))
    whole = running_factor(rate, start, end, horizon)
    parts = running_factor(rate, start, cut, horizon) + running_factor(rate, cut, end, horizon)
    assert whole == pytest.approx(parts, abs=1e-9) or end > horizon


@given(months, months, months)
def test_calendar_parts_cover_the_stretch(a: float, b: float, horizon: float) -> None:
    """Parts add up, none is longer than a month, each is paid at or after its end and within the month."""
    start, end = sorted((a, b))
    cursor = start
    for length, paid in calendar_parts(start, end, horizon):
        assert 0 < length <= 1 + 1e-9
        cursor += length
        assert cursor <= paid + 1e-9
        assert paid <= math.ceil(cursor - 1e-9) + 1e-9
    assert cursor == pytest.approx(end, abs=1e-9)


@pytest.mark.parametrize(
    ("horizon", "dates"),
    [(12.0, [11, 12, 13, 13.5]), (10.5, [10.5, 11, 12, 13, 13.5]), (20.0, [11, 12, 13, 14])],
)
def test_fractions_of_months_at_and_past_the_horizon(horizon: float, dates: list[float]) -> None:
    """10.2 to 13.5: a fraction before the horizon is paid there, the last fraction past it at its end."""
    parts = list(calendar_parts(10.2, 13.5, horizon))
    assert [paid for _, paid in parts] == pytest.approx(dates)
    assert sum(length for length, _ in parts) == pytest.approx(3.3)


@pytest.mark.parametrize(
    ("age", "worth"),
    [(-1, 1.0), (0, 1.0), (12, 0.75), (24, 0.5), (36, 0.3), (48, 0.1), (54, 0.1), (60, 0.1), (60.01, 0)],
)
def test_residual_between_its_points(age: float, worth: float) -> None:
    """Linear between points, then constant to the useful life, nothing beyond; the price before arrival."""
    assert residual_fraction(age, ((0, 1.0), (24, 0.5), (48, 0.1)), 60) == pytest.approx(worth)


def test_residual_that_starts_later() -> None:
    """Before the first point the worth is that of the first point; a step of one age takes its last value after it."""
    points = ((12, 0.8), (12, 0.6), (24, 0.2))
    assert residual_fraction(6, points, 36) == 0.8
    assert residual_fraction(18, points, 36) == pytest.approx(0.4)


@given(st.floats(0, 0.3), st.floats(0.01, 0.3))
def test_i29_present_value_falls_as_the_rate_rises(low: float, more: float) -> None:
    """Costs in the future weigh less at a higher rate."""
    assert running_factor(low + more, 0, 24, 24) < running_factor(low, 0, 24, 24)
