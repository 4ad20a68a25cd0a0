"""Options of the verbs that search for plans."""

import math
import os
from enum import StrEnum
from typing import Annotated

import typer


def share_of_cost(value: float) -> float:
    """A gap that can be asked for.

    Raises
    ------
    typer.BadParameter
        If it is negative, 1 or more, or not finite.
    """
    if not math.isfinite(value) or not 0 <= value < 1:
        msg = f"{value:g} is no gap; write a share of the cost from 0 to below 1, e.g. 0.01 for 1 %"
        if math.isfinite(value) and 1 <= value < 100:
            msg += f" ({value / 100:g} for {value:g} %)"
        raise typer.BadParameter(msg)
    return value


def threads_there(value: int | None) -> int | None:
    """A number of threads that the machine can run at once.

    Raises
    ------
    typer.BadParameter
        If it is below 1, or above the number of cores.
    """
    cores = os.cpu_count() or 1
    if value is not None and not 1 <= value <= cores:
        msg = f"{value:,} threads on a machine of {cores:,} cores; write 1 to {cores:,}, or leave it out"
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
    typer.Option(
        "--gap", metavar="G", envvar="GPUMIX_GAP", callback=share_of_cost, help="Gap good enough: 0.01 is 1 %."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        envvar="GPUMIX_THREADS",
        callback=threads_there,
        help="Threads of the solver, at most the machine's cores; its choice by default.",
    ),
]


class HowToSolve(StrEnum):
    """One model of everything, cells priced apart, or whichever fits the size."""

    AUTO = "auto"
    DIRECT = "direct"
    DECOMPOSED = "decomposed"


Method = Annotated[
    HowToSolve,
    typer.Option("--method", envvar="GPUMIX_METHOD", help="One model, prices and cells, or whichever fits."),
]
