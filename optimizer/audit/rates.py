"""Rates of services, from the problem's words: base × share × slice × period × growth × (1 + headroom)."""

import math

from optimizer.audit.calendar import EPSILON_MONTHS
from optimizer.audit.document import GridRecord
from optimizer.estimator.workloads import Service
from optimizer.problem.profiles import base_rate, hourly_profile


def class_names(service: Service) -> list[str]:
    """Names of the request classes; one that has no name is called by its number, a lone one `all`."""
    if not service.classes:
        return ["all"]
    return [c.name or f"class-{number}" for number, c in enumerate(service.classes, start=1)]


def base_rates(service: Service, grid: GridRecord) -> dict[str, float]:
    """Requests per second of each class at multiplier 1."""
    own_slices = service.traffic.by_slice is not None or any(s.hours_of_week is None for s in grid.slices)
    shares = {s.name: s.share_of_hours for s in grid.slices} if own_slices else None
    total = base_rate(service, shares)
    if not service.classes:
        return {"all": total}
    rates = [
        c.requests_per_s if c.requests_per_s is not None else total * (1.0 if c.share is None else c.share)
        for c in service.classes
    ]
    return dict(zip(class_names(service), rates, strict=True))


def slice_multipliers(service: Service, grid: GridRecord) -> list[float]:
    """The profile's value in each slice: of any of its hours, since they must be alike; the largest if they are not."""
    if service.traffic.by_slice is not None:
        return [service.traffic.by_slice.get(s.name, 1.0) for s in grid.slices]
    profile = hourly_profile(service.traffic)
    return [1.0 if s.hours_of_week is None else max(profile[hour] for hour in s.hours_of_week) for s in grid.slices]


def period_multiplier(service: Service, grid: GridRecord, period: int) -> float:
    """The listed multiplier, and growth up to the last month of the period: month m has (1+g)^m."""
    span = grid.periods[period]
    listed = service.traffic.by_period[period] if service.traffic.by_period else 1.0
    last_month = max(math.ceil(span.start_month + span.months - EPSILON_MONTHS), 1) - 1
    return float(listed * (1.0 + service.traffic.growth) ** last_month)


def planned_rates(service: Service, grid: GridRecord) -> dict[tuple[str, int, int], float]:
    """Requests per second to plan for, by (class, period, slice)."""
    slices, bases = slice_multipliers(service, grid), base_rates(service, grid)
    return {
        (name, period, slice_): base * factor * multiplier * (1.0 + service.headroom)
        for period in range(len(grid.periods))
        for factor in [period_multiplier(service, grid, period)]
        for slice_, multiplier in enumerate(slices)
        for name, base in bases.items()
    }
