"""Whether a plan file is whole: what it lacks, or holds in another kind."""

import json
from typing import Any

from pydantic import ValidationError

from optimizer.plan_records import (
    AcquisitionRecord,
    Answer,
    AssignmentRecord,
    ConstraintRecord,
    LineRecord,
    Part,
    PlanDocument,
    RentalRecord,
)


class RejectionRecord(Part):
    """A deployment that cannot be had, and why."""

    workload: str
    gpu: str
    deployment: str
    reason: str
    resource: str
    required: float | None
    available: float | None
    unit: str


class Besides(Part):
    """Parts of every plan file that the audit derives anew and an explanation reads."""

    gpumix_version: str
    rejections: tuple[RejectionRecord, ...]
    timing: dict[str, float]
    model: dict[str, int]
    notes: tuple[str, ...] = ()
    interrupted: bool = False


class NoPlan(Part):
    """What stands for the plan where there is none."""

    cost: None
    gpus: dict[str, int]
    acquisitions: tuple[AcquisitionRecord, ...]
    rentals: tuple[RentalRecord, ...]
    assignments: tuple[AssignmentRecord, ...]
    cost_lines: tuple[LineRecord, ...]
    constraints: tuple[ConstraintRecord, ...]
    schedule: dict[str, Any]


# --- whole or not -----------------------------------------------------------------------------------------------------

WITH_PLAN, WITHOUT_PLAN = ("optimal", "feasible"), ("infeasible", "no_plan")
STATUSES = (*WITH_PLAN, *WITHOUT_PLAN)
MOST_SHOWN = 8


def structure_errors(text: str, document: dict[str, Any]) -> list[str]:
    """What a plan file (its text, and the same as data) lacks or holds in another kind; empty where it is whole."""
    status = document.get("status")
    if status not in STATUSES:
        found = "status is missing" if "status" not in document else f"status is {_shown(status)}"
        return [f"{found}: expected {', '.join(STATUSES[:-1])} or {STATUSES[-1]}"]
    kinds: tuple[type[Part], ...] = (PlanDocument, Besides) if status in WITH_PLAN else (Answer, NoPlan, Besides)
    found_errors: dict[str, None] = {}
    for kind in kinds:
        try:
            kind.model_validate_json(text)
        except ValidationError as error:
            found_errors |= dict.fromkeys(_sentence(wrong) for wrong in error.errors(include_url=False))
    errors = list(found_errors)
    more = len(errors) - MOST_SHOWN
    return [*errors[:MOST_SHOWN], f"{more:,} more of the kind"] if more > 0 else errors


def _sentence(wrong: Any) -> str:
    where = ".".join(str(part) for part in wrong["loc"]) or "the file"
    if wrong["type"] == "missing":
        return f"{where} is missing"
    expected = wrong["msg"].replace("Input should be", "expected").replace("None", "null")
    return f"{where} is {_shown(wrong['input'])}: {expected}"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return "a group of keys" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) < 40 else f"{text[:39]}…"
