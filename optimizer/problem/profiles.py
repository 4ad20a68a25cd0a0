"""When requests come: hourly multipliers of a service's mean rate."""

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources

from optimizer.estimator.workloads import Service, Traffic
from optimizer.units import HOURS_PER_DAY, SECONDS_PER_HOUR

HOURS_OF_PROFILE = 2 * HOURS_PER_DAY
"""24 hours of a weekday, then 24 of a weekend day."""
HOUR_WEIGHTS = (5 / 7 / HOURS_PER_DAY,) * HOURS_PER_DAY + (2 / 7 / HOURS_PER_DAY,) * HOURS_PER_DAY
"""Share of all hours that each hour of a profile stands for."""
FLAT = "flat"
_SAME = 1e-12
_LARGEST_EXPONENT = 2.0**60
"""Enough to tell any two different floats apart."""


@cache
def named_profiles() -> Mapping[str, tuple[float, ...]]:
    """The built-in shapes by name (profiles.csv), and `flat`."""
    text = (resources.files("optimizer.problem") / "profiles.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    names = [name for name in rows[0] if name not in ("day", "hour")]
    return {FLAT: (1.0,) * HOURS_OF_PROFILE} | {name: tuple(float(row[name]) for row in rows) for name in names}


def hourly_profile(traffic: Traffic) -> tuple[float, ...]:
    """Multipliers of the mean rate for the 48 hours of a profile; their weighted mean is 1.

    Raises
    ------
    ValueError
        If the profile's name, length or values cannot be used, or `peak_to_mean` cannot be reached.
    """
    shape = _with_mean_one(_shape(traffic.profile))
    if traffic.peak_to_mean is None or math.isclose(traffic.peak_to_mean, max(shape), rel_tol=_SAME):
        return shape
    return _with_peak(shape, traffic.peak_to_mean)


def _shape(profile: str | Sequence[float]) -> tuple[float, ...]:
    if isinstance(profile, str):
        profiles = named_profiles()
        if profile not in profiles:
            msg = f'unknown profile "{profile}"; write {", ".join(profiles)}, a CSV path, or 24 or 48 numbers'
            raise ValueError(msg)
        return profiles[profile]
    if len(profile) not in (HOURS_PER_DAY, HOURS_OF_PROFILE):
        msg = f"expected 24 numbers (hours of a day) or 48 (weekday, then weekend), found {len(profile)}"
        raise ValueError(msg)
    if max(profile) <= 0:
        msg = "expected a profile with requests in at least one hour, found zeros only"
        raise ValueError(msg)
    return tuple(profile) * (HOURS_OF_PROFILE // len(profile))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(weight * value for weight, value in zip(HOUR_WEIGHTS, values, strict=True))


def _with_mean_one(values: Sequence[float]) -> tuple[float, ...]:
    top = max(values)
    scaled = [value / top for value in values]
    mean = _mean(scaled)
    return tuple(value / mean for value in scaled)


@lru_cache(maxsize=256)
def _with_peak(shape: tuple[float, ...], peak: float) -> tuple[float, ...]:
    """Stretch the shape by a power m → m^γ (mean 1 again) so that its largest value is `peak`.

    Powers keep zeros, the order of hours and equal hours equal; the peak grows with γ, from the shape's busy hours
    being all alike (γ → 0) to its top hours carrying everything (γ → ∞).
    """
    low, high = reachable_peaks(shape)
    if not low <= peak <= high:
        range_text = "1 only" if math.isclose(low, high) else f"{low:.3g} to {high:.3g}"
        msg = f"peak_to_mean {peak:g} is out of reach of this profile ({range_text}); choose a profile with a peak"
        raise ValueError(msg)
    least, most = 0.0, 1.0
    while max(_powered(shape, most)) < peak and most < _LARGEST_EXPONENT:
        most *= 2
    for _ in range(200):
        middle = (least + most) / 2
        least, most = (middle, most) if max(_powered(shape, middle)) < peak else (least, middle)
    return _powered(shape, most)


def _powered(shape: tuple[float, ...], exponent: float) -> tuple[float, ...]:
    top = max(shape)
    return _with_mean_one([(value / top) ** exponent if value else 0.0 for value in shape])


def reachable_peaks(shape: tuple[float, ...]) -> tuple[float, float]:
    """Least and most peak-to-mean ratio that rescaling can give a shape."""
    top = max(shape)
    busy = math.fsum(weight for weight, value in zip(HOUR_WEIGHTS, shape, strict=True) if value > 0)
    peak = math.fsum(weight for weight, value in zip(HOUR_WEIGHTS, shape, strict=True) if value == top)
    return 1 / busy, 1 / peak


def base_rate(service: Service, share_of_hours: Mapping[str, float] | None = None) -> float:
    """Requests per second at multiplier 1, of all classes together.

    Without slices of the problem's own the multipliers are `hourly_profile`, so that this is the mean rate. With
    `share_of_hours` (by slice name) they are `traffic.by_slice` (1 where not listed); a mean or daily total is divided
    by their weighted mean, a peak by their largest. Rates given per class count at multiplier 1 as they are.

    Raises
    ------
    ValueError
        If no rate is given, or a profile cannot be used.
    """
    traffic = service.traffic
    class_rates = [one.requests_per_s for one in service.classes or () if one.requests_per_s is not None]
    if class_rates:
        return math.fsum(class_rates)
    mean, peak = _mean_and_peak(traffic, share_of_hours)
    if traffic.requests_per_day is not None:
        return traffic.requests_per_day / (HOURS_PER_DAY * SECONDS_PER_HOUR) / mean
    if traffic.mean_requests_per_s is not None:
        return traffic.mean_requests_per_s / mean
    if traffic.peak_requests_per_s is not None:
        return traffic.peak_requests_per_s / peak
    msg = "a service needs requests_per_day, mean_requests_per_s or peak_requests_per_s"
    raise ValueError(msg)


def _mean_and_peak(traffic: Traffic, share_of_hours: Mapping[str, float] | None) -> tuple[float, float]:
    if share_of_hours is None:
        return 1.0, max(hourly_profile(traffic))
    multipliers = {name: (traffic.by_slice or {}).get(name, 1.0) for name in share_of_hours}
    mean = math.fsum(share * multipliers[name] for name, share in share_of_hours.items())
    if mean <= 0:
        msg = "by_slice leaves no requests in any slice; give at least one a multiplier above 0"
        raise ValueError(msg)
    return mean, max(multipliers.values())
