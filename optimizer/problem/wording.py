"""Small grammar of messages: plurals, articles, durations that a person can picture."""

from optimizer.units import HOURS_PER_DAY, HOURS_PER_MONTH

_DAYS_FROM_HOURS = 2 * HOURS_PER_DAY
_MONTHS_FROM_HOURS = 2 * HOURS_PER_MONTH


def plural(noun: str) -> str:
    """`classes`, `workloads`."""
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def counted(number: float, noun: str) -> str:
    """`1 period`, `4 periods`."""
    return f"{number:g} {noun if number == 1 else plural(noun)}"


def with_article(noun: str) -> str:
    """`an on-demand node`, `a reserved node`."""
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def duration(hours: float) -> str:
    """Hours as a person says them: in days from two days on, in months from two months on."""
    if hours >= _MONTHS_FROM_HOURS:
        return counted(round(hours / HOURS_PER_MONTH, 2), "month")
    if hours >= _DAYS_FROM_HOURS:
        return counted(round(hours / HOURS_PER_DAY, 2), "day")
    return f"{hours:g} h"
