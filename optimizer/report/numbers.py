"""Numbers as text, for people: thousands separators, and nothing that is not 0 becomes 0."""

import math

NOTHING = "–"
"""What stands for a number that is not known."""
SIGNIFICANT_DIGITS = 4


def number(value: float | None) -> str:
    """A figure with at least four significant digits; two decimals from 100 on, none from 100,000 on.

    >>> [number(x) for x in (12, 4352.6372, 123456.7, 0.00012346, 3.6667e22)]
    ['12', '4,352.64', '123,457', '0.0001235', '3.667e+22']
    """
    if value is None or math.isnan(value):
        return NOTHING
    size = abs(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if size >= 1e15:
        return f"{value:.4g}"
    if value == round(value):
        return f"{value:,.0f}"
    if size >= 1e5:
        return f"{value:,.0f}"
    if size >= 100:
        return _without_zeros(f"{value:,.2f}")
    return f"{value:.{SIGNIFICANT_DIGITS}g}"


def money(value: float | None) -> str:
    """An amount: cents below 100,000, whole units above, four significant digits below 0.1.

    >>> [money(x) for x in (23109.3199, 1234567.8, 2.2, 0.00345, 0.0)]
    ['23,109.32', '1,234,568', '2.20', '0.00345', '0.00']
    """
    if value is None or not math.isfinite(value):
        return NOTHING if value is None or math.isnan(value) else number(value)
    if abs(value) >= 1e5:
        return f"{value:,.0f}"
    if value == 0 or abs(value) >= 0.1:
        return f"{value + 0.0:,.2f}"
    return f"{value:.{SIGNIFICANT_DIGITS}g}"


def unit_price(value: float | None) -> str:
    """A price per unit: as an amount, but with all digits it was quoted in (0.0855, 21.957642)."""
    if value is None or not math.isfinite(value) or abs(value) >= 1000:
        return money(value)
    return max(money(value), f"{value:.7g}", key=len) if abs(value) >= 0.1 else f"{value:.7g}"


def percent(fraction: float | None) -> str:
    """A fraction as a percentage with its sign: one decimal from 10 % on, three significant digits below.

    >>> [percent(x) for x in (0.374877, 1.0, 0.0001, 0.0)]
    ['37.5 %', '100 %', '0.01 %', '0 %']
    """
    if fraction is None or not math.isfinite(fraction):
        return NOTHING
    value = 100 * fraction
    if abs(value) >= 10:
        return f"{_without_zeros(f'{value:,.1f}')} %"
    return f"{value:.3g} %"


def brief(value: float | None) -> str:
    """An estimate that is not known better: three significant digits, whole from 100 on.

    >>> [brief(x) for x in (996.76, 5.5412, 0.012345)]
    ['997', '5.54', '0.0123']
    """
    if value is None or not math.isfinite(value) or abs(value) >= 1e15:
        return number(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def span(low: float | None, high: float | None) -> str:
    """A range low–high, or nothing where there is none."""
    if low is None or high is None or low == high:
        return ""
    return f"{brief(low)}–{brief(high)}"


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
