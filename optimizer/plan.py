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

SCHEMA_VERSION = 1


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
    """Nodes of one offer paid by the hour, over the whole horizon."""

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


@dataclass(frozen=True, slots=True)
class Assignment:
    """What serves a request class (or runs a job): `share` of its total, `utilisation` in its peak slice."""

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


@dataclass(frozen=True, slots=True)
class PricedLine:
    """A line of the ledger at the solution: quantity × unit price = amount (undiscounted), `npv` discounted.

    `period` counts the listed periods from 1; one more than there are means "after the horizon".
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
    """A row that cannot hold: by how much, and the cheapest change of a limit that would mend it.

    `kind` is `limit` (relaxing it alone makes the problem feasible) or `demand` (so much cannot be met at all).
    """

    kind: str
    family: str
    index: list[str]
    required: float
    attainable: float
    short_by: float
    unit: str
    cheapest_fix: dict[str, Any] | None


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
        If it is missing, not JSON, or not a plan of this version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise ProblemFileError([Finding(f"cannot be read: {error.strerror}", file=str(path))]) from error
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise ProblemFileError([Finding(f"is not JSON: {error}", file=str(path), line=line)]) from error
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        hint = "write one with `gpumix solve FILE --plan plan.json`"
        finding = Finding(f"is not a plan file of version {SCHEMA_VERSION}", file=str(path), hint=hint)
        raise ProblemFileError([finding])
    return document


def _refuse_constant(name: str) -> float:
    msg = f"the number {name} is not allowed"
    raise ValueError(msg)
