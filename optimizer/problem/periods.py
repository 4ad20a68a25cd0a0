"""The stretches of the horizon at whose start one can order."""

import math

from optimizer.problem.schema import Horizon, Period
from optimizer.units import HOURS_PER_DAY, HOURS_PER_MONTH

MONTHS_OF = {"monthly": 1.0, "quarterly": 3.0, "yearly": 12.0}
REPEAT_MONTHS = MONTHS_OF | {
    "daily": HOURS_PER_DAY / HOURS_PER_MONTH,
    "weekly": 7 * HOURS_PER_DAY / HOURS_PER_MONTH,
}
"""Months from one run of a repeated job to the next."""


def order_periods(horizon: Horizon) -> tuple[Period, ...]:
    """Listed periods, or equal ones to the end of the horizon (the last may be shorter)."""
    if not isinstance(horizon.periods, str):
        return tuple(horizon.periods)
    length = MONTHS_OF.get(horizon.periods, horizon.months)
    count = max(1, math.ceil(horizon.months / length - 1e-9))
    starts = [index * length for index in range(count)]
    return tuple(Period(start_month=start, months=min(length, horizon.months - start)) for start in starts)


def year_of(month: float) -> int:
    """Number of the year of the horizon (from 0) in which a month lies."""
    return int((month + 1e-9) // 12)
