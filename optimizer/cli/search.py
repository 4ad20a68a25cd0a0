"""Options of the verbs that search for plans."""

import math
from typing import Annotated

import typer


def not_negative(value: float) -> float:
    """A gap that can be asked for.

    Raises
    ------
    typer.BadParameter
        If it is negative or not finite.
    """
    if not math.isfinite(value) or value < 0:
        msg = f"{value:g} is no gap; write a fraction of the cost from 0 on, e.g. 0.01 for 1 %"
        raise typer.BadParameter(msg)
    return value


def positive_seconds(value: float | None) -> float | None:
    """A time limit that can be kept.

    Raises
    ------
    typer.BadParameter
        If it is not above 0, or not finite.
    """
    if value is not None and (not math.isfinite(value) or value <= 0):
        msg = f"{value:g} is no time limit; write seconds above 0, e.g. 60"
        raise typer.BadParameter(msg)
    return value


TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="S",
        envvar="GPUMIX_TIME_LIMIT",
        callback=positive_seconds,
        help="Seconds to search, for all solves together; no limit by default.",
    ),
]
Gap = Annotated[
    float,
    typer.Option("--gap", metavar="G", envvar="GPUMIX_GAP", callback=not_negative, help="Relative gap good enough."),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", envvar="GPUMIX_THREADS", min=1, help="Threads of the solver; its choice."),
]
