"""The answer as frozen data, and its JSON form (docs/plan-file.md). No solver objects, no text.

A plan file embeds what it was made from (normalised problem, options, estimates, hashes of the files read), so that it
can be audited and explained on its own.
"""

import dataclasses
import json
import math
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimizer.errors import Finding, ProblemFileError
from optimizer.trace import Assumption

SCHEMA_VERSION = 2
"""Raised where a key changes its name or meaning; files of other versions are refused."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Totals in the problem's currency.

    `npv` is the objective, `bound` proven, `gap` = (npv − bound) ÷ |npv|; `capex` (with installation and upfront fees),
    `opex` and `salvage` (≥ 0) are undiscounted.
    """

    npv: float
    bound: float
    gap: float
    capex: float
    opex: float
    salvage: float


@dataclass(frozen=True, slots=True)
class Acquisition:
    """Nodes bought or signed for in one order. Months count from the start of the horizon; `unit_price` per `unit`."""

    option: str
    gpu: str
    purchase_option: str
    provider: str
    region: str
    nodes: int
    gpus: int
    order_month: float
    start_month: float
    term_months: float | None
    unit_price: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Rental:
    """Nodes of one offer paid by the hour, over the whole horizon.

    `used_gpu_hours` are those of nodes that something runs on, where whole billing steps are paid (else None).
    """

    option: str
    gpu: str
    purchase_option: str
    provider: str
    region: str
    peak_nodes: int
    gpu_hours: float
    unit_price: float
    unit: str
    source: str
    used_gpu_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What serves a request class (or runs a job): `share` of its total, `utilisation` in its peak slice.

    For a job that starts over at every interruption: hours of its part of one run on the GPUs of its peak, without any
    interruption and on average.
    """

    workload: str
    request_class: str | None
    gpu: str
    option: str
    deployment: str
    replicas_peak: float
    gpus_peak: float
    share: float
    bottleneck: str
    utilisation: float
    measured: bool
    hours_undisturbed: float | None = None
    hours_expected: float | None = None


@dataclass(frozen=True, slots=True)
class PricedLine:
    """A line of the ledger at the solution: quantity × unit price = amount (undiscounted), `npv` discounted.

    `period` counts the listed periods from 1; one more than there are means "after the horizon". `group` is the total
    that it counts in (`capex`, `opex`, `salvage`), `name` which of the buyer's further costs it is.
    """

    term: str
    option: str
    period: int
    quantity: float
    unit: str
    unit_price: float
    amount: float
    npv: float
    source: str
    group: str
    name: str


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A constraint at the solution."""

    family: str
    index: list[str]
    lhs: float
    sense: str
    rhs: float
    slack: float
    unit: str
    binding: bool


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What cannot hold: by how much, and the cheapest change of a limit that would mend it.

    `kind` is `limit` (a limit that would have to give if all demand is met: from `attainable`, what it is, to
    `required`), `conflict` (limits that cannot hold together; none of them could be left out), `demand` (so much stays
    unmet if all limits stand) or `cut` (the least cut of one workload that is enough: `attainable` of it stays).
    A limit with `alone` is enough by itself, and `npv` is the least cost then; limits without it would have to give
    together. `change` is the key in the problem file. With `at_least` the figure was found on a part of a large
    problem: no less is needed, and more may be.
    """

    kind: str
    family: str
    index: list[str]
    required: float
    attainable: float
    short_by: float
    unit: str
    cheapest_fix: dict[str, Any] | None
    alone: bool = False
    npv: float | None = None
    change: str = ""
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """One answer. `document` gives the JSON form; its keys are the contract."""

    problem: str
    currency: str
    created_at: str
    gpumix_version: str
    catalog_version: str
    status: str
    cost: Cost | None
    gpus: dict[str, int]
    acquisitions: tuple[Acquisition, ...]
    rentals: tuple[Rental, ...]
    assignments: tuple[Assignment, ...]
    cost_lines: tuple[PricedLine, ...]
    constraints: tuple[CheckedRow, ...]
    rejections: tuple[dict[str, Any], ...]
    left_out: tuple[dict[str, Any], ...]
    infeasibility: tuple[Shortfall, ...]
    assumptions: tuple[Assumption, ...]
    timing: dict[str, float]
    model: dict[str, int]
    grid: dict[str, Any]
    schedule: dict[str, Any]
    inputs: dict[str, Any]
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    """Whether the search was stopped by the user (Ctrl-C); the plan is then the best so far."""

    def document(self) -> dict[str, Any]:
        """The plan as plain JSON data: `schema_version` first, NaN and infinity as null."""
        body: dict[str, Any] = _plain(dataclasses.asdict(self))
        for assignment in body["assignments"]:
            assignment["class"] = assignment.pop("request_class")
        return {"schema_version": SCHEMA_VERSION, **body}


def named_record(value: Any) -> dict[str, Any]:
    """A rejection or an offer left out as a record with the plan's names (`gpu`, `option`)."""
    names = {"gpu_id": "gpu", "option_id": "option"}
    return {names.get(field.name, field.name): getattr(value, field.name) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    """Tuples to lists, non-finite numbers to null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all: a temporary neighbour is renamed over it.

    Raises
    ------
    ProblemFileError
        If the folder does not exist or cannot be written.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        finding = Finding(f"cannot be written: {error.strerror}", file=str(path), hint="name a folder that exists")
        raise ProblemFileError([finding]) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise ProblemFileError([Finding(f"cannot be written: {error.strerror}", file=str(path))]) from error
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan file, whole or not at all."""
    write_whole(path, json.dumps(plan.document(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_plan(path: Path) -> dict[str, Any]:
    """Read a plan file back as plain data.

    Raises
    ------
    ProblemFileError
        If it is missing, not JSON, not a plan of this version, or not whole.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_refuse_constant)
    except OSError as error:
        raise ProblemFileError([Finding(f"cannot be read: {error.strerror}", file=str(path))]) from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise ProblemFileError([Finding(f"is not JSON: {error}", file=str(path), line=line)]) from error
    _check_version(document, str(path))
    _check_whole(text, document, str(path))
    return dict(document)


def _check_version(document: Any, file: str) -> None:
    """Refuse what is no plan file, or one of another version."""
    found = document.get("schema_version") if isinstance(document, dict) else None
    if found == SCHEMA_VERSION and not isinstance(found, bool):
        return
    message, hint = (
        f"is not a plan file of version {SCHEMA_VERSION}",
        "write one with `gpumix solve FILE --plan plan.json`",
    )
    if isinstance(found, int) and not isinstance(found, bool) and found > 0:
        age = "older" if found < SCHEMA_VERSION else "newer"
        message = (
            f"was written by {'an' if age == 'older' else 'a'} {age} gpumix (plan version {found}, this one reads "
        )
        message += f"version {SCHEMA_VERSION})"
        hint = "solve again: gpumix solve FILE --plan plan.json" if age == "older" else "use that gpumix"
    raise ProblemFileError([Finding(message, file=file, hint=hint)])


def _check_whole(text: str, document: dict[str, Any], file: str) -> None:
    """Refuse a file that lacks keys of the contract, or holds them in another kind."""
    from optimizer.plan_structure import structure_errors

    hint = "write it anew: gpumix solve FILE --plan plan.json"
    found = [Finding(f"not a whole plan file: {e}", file=file, hint=hint) for e in structure_errors(text, document)]
    if found:
        raise ProblemFileError(found)


def _refuse_constant(name: str) -> float:
    msg = f"the number {name} is not allowed"
    raise ValueError(msg)
