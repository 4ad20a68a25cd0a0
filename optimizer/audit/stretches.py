"""Months and hours that are charged, by the period in which they lie and by how far prices have stepped up."""

import math
from collections import defaultdict

from optimizer.audit.calendar import EPSILON_MONTHS, HOURS_PER_MONTH, monthly_payments, overlap
from optimizer.audit.case import Case, Key
from optimizer.finance import discount_factor

When = tuple[int, float]
"""(period, counted from 0, with the number after the last for what lies past the horizon; level of the price)."""
Charged = dict[When, tuple[float, float]]
"""Months (or hours) charged, and the present value of paying 1 for each."""
FROM_START = (0.0, math.inf)


def months_charged(case: Case, begin: float, stop: float, change: float = 0.0) -> Charged:
    """Months from `begin` to `stop`: each calendar month at the price of its year, (1 + change)^(whole years gone)."""
    found: dict[When, list[tuple[float, float]]] = defaultdict(list)
    periods = case.plan.grid.periods
    stretches = [(p.start_month, p.start_month + p.months) for p in periods] + [(case.horizon, math.inf)]
    for number, stretch in enumerate(stretches):
        if overlap((begin, stop), stretch) <= EPSILON_MONTHS:
            continue
        moment = max(begin, stretch[0])
        for months, paid in monthly_payments(moment, min(stop, stretch[1]), case.horizon):
            level = (1 + change) ** math.floor((moment + EPSILON_MONTHS) / 12) if change else 1.0
            found[number, level].append((months, months * discount_factor(case.rate_per_year, paid)))
            moment += months
    return {when: (math.fsum(m for m, _ in parts), math.fsum(p for _, p in parts)) for when, parts in found.items()}


def hours_charged(case: Case, key: Key, change: float, window: tuple[float, float] = FROM_START) -> Charged:
    """Hours of a cell inside a window: its slice has its share of every month of its block."""
    block = case.plan.grid.blocks[key[0]]
    if not change and window == FROM_START:
        cell = case.cells[key]
        return {(cell.period, 1.0): (cell.hours, cell.present_hours)}
    months = months_charged(case, max(block.start_month, window[0]), min(block.end_month, window[1]), change)
    hours = case.plan.grid.slices[key[1]].share_of_hours * HOURS_PER_MONTH
    return {(block.period, level): (m * hours, p * hours) for (_, level), (m, p) in months.items()}
