"""Money over time: pure functions, no imports of the project's other rooms.

Conventions (docs/model.md §Money): month m runs from m to m+1; the factor of a payment at month m is (1+r)^(−m/12) with
r the effective annual rate; running costs of a calendar month are paid at its end.
"""

import math
from collections.abc import Iterator, Sequence

MONTHS_PER_YEAR = 12


def discount_factor(rate_per_year: float, month: float) -> float:
    """Worth today of one unit paid at `month`: (1+r)^(−m/12)."""
    return float((1.0 + rate_per_year) ** (-month / MONTHS_PER_YEAR))


def calendar_parts(start_month: float, end_month: float, horizon_months: float) -> Iterator[tuple[float, float]]:
    """Cut [start, end) at calendar months and at the horizon: yields (length in months, month of payment).

    A part is paid at the end of its calendar month; a last fraction of a month before the horizon, or before `end`
    beyond it, is paid at that end.
    """
    cursor = start_month
    while cursor < end_month - 1e-12:
        month_end = math.floor(cursor + 1e-12) + 1.0
        pay = min(month_end, horizon_months) if cursor < horizon_months - 1e-12 else min(month_end, end_month)
        stop = min(pay, end_month)
        yield stop - cursor, pay
        cursor = stop


def running_factor(rate_per_year: float, start_month: float, end_month: float, horizon_months: float) -> float:
    """Present value of paying 1 per month from `start_month` to `end_month`, each month at its end."""
    if rate_per_year == 0:
        return max(0.0, end_month - start_month)
    parts = calendar_parts(start_month, end_month, horizon_months)
    return sum(length * discount_factor(rate_per_year, pay) for length, pay in parts)


def residual_fraction(age_months: float, points: Sequence[tuple[float, float]], useful_life_months: float) -> float:
    """Share of the purchase price left at an age.

    Linear between the points given, constant from the last point to the useful life, 0 beyond it; a node that has not
    arrived (negative age) is worth its price.
    """
    if age_months < 0:
        return 1.0
    if age_months > useful_life_months:
        return 0.0
    before = points[0]
    for after in points:
        if age_months <= after[0]:
            width = after[0] - before[0]
            return after[1] if width <= 0 else before[1] + (after[1] - before[1]) * (age_months - before[0]) / width
        before = after
    return points[-1][1]


def npv(rate_per_year: float, payments: Sequence[tuple[float, float]]) -> float:
    """Net present value of (month, amount) payments."""
    return sum(amount * discount_factor(rate_per_year, month) for month, amount in payments)
