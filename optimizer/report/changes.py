"""What does not fit and what would mend it, in a buyer's sentences."""

import re
from collections.abc import Sequence
from typing import Any

from optimizer.problem.wording import duration
from optimizer.report.numbers import number, percent
from optimizer.report.words import limit_words, quantity, workload_words

Record = dict[str, Any]
CHOICE = "choice"
LONG_HOURS = 48.0
"""Spans from which on hours are said in days, too."""
_NAMES = {
    "deadline": "deadline of {0} (deadline)",
    "release": "start of {0} (start)",
    "daily_window": "daily window of {0}, {1} (window.daily)",
    "lead_time": "delivery of {0} (lead_time)",
    "minimum_order": "least order of {0} (min_nodes)",
    "residency": "where data of {0} may go (data.regions)",
    "single_gpu_type": "what {0} may run on together (spread)",
    "start_up": "start-up time of replicas of {0} (startup)",
    "considered": "what is considered ({0})",
}
_SIZES = {"max_gpus": "most GPUs of {0} (max_gpus)", "min_gpus": "fewest GPUs of {0} (min_gpus)"}
_CHOICES = {
    "residency": "data of {0} allowed anywhere",
    "single_gpu_type": "{0} allowed on any mix of GPUs (spread: any)",
    "daily_window": "{0} allowed at all hours",
    "start_up": "{0} ready at once",
    "considered": "{0} left open",
}
_LET_IN = "{0} left open: {1} would then be used"


def limit_name(found: Record) -> str:
    """A limit that would have to give, or takes part in a conflict, with its key: `deadline of train (deadline)`."""
    family, index = found["family"], list(found["index"])
    if family == "interruptible_share" and not index:
        return "spot share (limits.spot_share)"
    if family == "budget_capex" and index and index[0] != "horizon":
        span = index[0].partition("-")[0]
        return f"capex budget of {index[0].replace('-', ' ')} (limits.capex_by_{span})"
    words = _SIZES.get(index[1]) if family == "scaling_limit" and len(index) > 1 else _NAMES.get(family)
    if words is None:
        return limit_words(family, index, found["unit"])
    return words.format(*index, "at all hours")


def change_value(value: float, unit: str, currency: str) -> str:
    """How much a limit gives, with its unit: a share in percentage points."""
    return f"{number(100 * value)} percentage points" if unit == "share" else limit_value(value, unit, currency)


def limit_value(value: float, unit: str, currency: str) -> str:
    """The value of a limit, with its unit: `2 nodes`, `3,100.00 USD/month`, `20 days 20 h`."""
    if unit == CHOICE:
        return "lifted" if value else "as it is"
    if unit == "hours":
        exact = f"{number(value)} h"
        return f"{exact} ({duration(value)})" if value >= LONG_HOURS else exact
    if unit.startswith(currency):
        return f"{value:,.2f} {unit}"
    return percent(value) if unit == "share" else quantity(value, unit)


def change_words(found: Record, currency: str) -> str:
    """The change of a limit: `2 more nodes (stock of A)`, `4 days 4 h more (deadline of train)`."""
    if found["unit"] == CHOICE:
        known = _CHOICES.get(found["family"], limit_name(found) + " lifted")
        words = _LET_IN if found["family"] == "considered" and len(found["index"]) > 1 else known
        return words.format(*found["index"])
    less = found["required"] < found["attainable"]
    amount = change_value(found["short_by"], found["unit"], currency)
    return f"{amount} {'less' if less else 'more'} ({plain_name(found)})"


def plain_name(found: Record) -> str:
    """The name of a limit without the key that stands behind it."""
    return re.sub(r" \((?:limits|site)?\.?[a-z_.]+\)$", "", limit_name(found))


def cut_words(found: Record) -> str:
    """A cut of demand that is enough: `chat asked to serve 30 of 37 requests/s at its peak (−18.9 %)`."""
    if not found["attainable"]:
        return f"{found['index'][0]} left out"
    share = percent(found["short_by"] / found["required"]) if found["required"] else ""
    at = " at its peak" if found["unit"] == "requests/s" else ""
    kept = f"{number(found['attainable'])} of {quantity(found['required'], found['unit'])}"
    return f"{found['index'][0]} cut to {kept}{at} (−{share})"


def unmet_words(found: Record, document: Record) -> str:
    """A shortfall: `chat misses 14 % of its requests in weekday 20:00 of Q3 (month 6): 1.2 of 8.6 requests/s`."""
    share = percent(found["short_by"] / found["required"]) if found["required"] else ""
    amount = f"{number(found['short_by'])} of {quantity(found['required'], found['unit'])}"
    index = found["index"]
    if found["family"] == "spare_capacity":
        when = time_words(index[1:], document)
        return f"{index[0]} misses {share} of its requests{when} after the worst loss of nodes."
    if found["family"] != "demand_coverage":
        return f"{index[0]} leaves {share} of its work undone at its deadline: {amount}."
    who = workload_words(index[0], index[1] if len(index) > 1 else None)
    when = time_words(index[2:], document)
    return f"{who} misses {share} of its requests{when}: {amount}."


def time_words(place: Sequence[str], document: Record) -> str:
    """Where in time a row stands: ` in weekday 20:00 of Q3 (month 6)`; nothing where there is one slice and period."""
    if len(place) < 2:
        return ""
    month = float(place[0].removeprefix("month-"))
    slices, periods = document["grid"]["slices"], document["grid"]["periods"]
    parts = [] if len(slices) == 1 else [_clock(place[1])]
    if len(periods) > 1:
        quarterly = all(abs(p["months"] - 3) < 1e-6 for p in periods)
        parts.append(f"Q{int(month // 3) + 1} (month {number(month)})" if quarterly else f"month {number(month)}")
    return f" in {' of '.join(parts)}" if parts else ""


def _clock(name: str) -> str:
    """`weekday-20` → `weekday 20:00`; names of the buyer's own slices as they are."""
    found = re.fullmatch(r"(weekday|weekend)-(\d\d)", name)
    return f"{found[1]} {found[2]}:00" if found else name
