"""Rules about sizes that no single field can hold: dates that have not come, growth beyond measure."""

import math
from collections.abc import Callable, Iterator
from datetime import date

from optimizer.problem.checks import Case, Complaint, Complaints
from optimizer.problem.positions import Path
from optimizer.problem.wording import duration
from optimizer.quantities import MOST_PER_S
from optimizer.units import HOURS_PER_DAY, SECONDS_PER_HOUR


def _dates(case: Case) -> Iterator[tuple[Path, date | None]]:
    options = case.problem.options
    for key in ("quotes", "existing", "discounts"):
        for index, one in enumerate(getattr(options, key)):
            yield ("options", key, index, "date"), one.date
    for code, rate in case.problem.exchange_rates.items():
        yield ("exchange_rates", code, "date"), rate.date


def dates_have_come(case: Case) -> Complaints:
    """Prices and exchange rates were read today or before; a plan file is not judged by the day it is read."""
    for path, day in _dates(case):
        if day is not None and day > case.today and not case.normalised:
            message = f"the date {day} is still to come (today is {case.today}, UTC)"
            yield Complaint(path, message, "write the day on which the price was read")


def rates_stay_countable(case: Case) -> Complaints:
    """The rate of a service at its highest, growth and multipliers included, stays within what can be planned."""
    for path, service in case.services():
        traffic = service.traffic
        base = math.fsum(one.requests_per_s or 0.0 for one in service.classes or ())
        base += traffic.mean_requests_per_s or traffic.peak_requests_per_s or 0.0
        base += (traffic.requests_per_day or 0.0) / (HOURS_PER_DAY * SECONDS_PER_HOUR)
        most = max((traffic.by_slice or {}).values(), default=1.0) * max(traffic.by_period or [], default=1.0)
        grown = math.log(base * most or 1.0) + case.problem.horizon.months * math.log1p(traffic.growth)
        if grown > math.log(MOST_PER_S):
            key = "growth" if traffic.growth > 0 else "by_period" if traffic.by_period else "by_slice"
            message = f"the rate passes {MOST_PER_S:g} requests/s within the horizon"
            yield Complaint((*path, "traffic", key), message, "lower it, or shorten the horizon")


def start_up_by_the_hour(case: Case) -> Complaints:
    """Replicas start in less than an hour, and before clock hours."""
    for path, service in case.services():
        if service.startup >= 1:
            message = f"found a start-up of {duration(service.startup)}: only times below 1 h are planned"
            yield Complaint((*path, "startup"), message, "write e.g. 50 min")
        elif service.startup > 0 and case.problem.slices is not None:
            message = "the problem lists its own slices, which do not say which hour follows which"
            hint = "leave slices out and give traffic.profile, or leave startup out"
            yield Complaint((*path, "startup"), message, hint, at_key=True)


BOUND_RULES: tuple[Callable[[Case], Complaints], ...] = (dates_have_come, rates_stay_countable, start_up_by_the_hour)
