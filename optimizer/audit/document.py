"""The plan file as typed records, and a finding for everything that is missing or of another kind."""

import dataclasses
import json
from typing import Any

from pydantic import BaseModel, ValidationError

from optimizer.audit.report import Checker
from optimizer.plan_records import (
    AcquisitionRecord,
    Answer,
    AssignmentRecord,
    AssumptionRecord,
    BillRecord,
    BlockRecord,
    CellRecord,
    ConstraintRecord,
    CostRecord,
    EstimatesRecord,
    GridRecord,
    InputsRecord,
    LeftOutRecord,
    LineRecord,
    OptionRecord,
    PeriodRecord,
    PlanDocument,
    RentalRecord,
    RentedRecord,
    ReplicasRecord,
    ScheduleRecord,
    ServedRecord,
    SettingsRecord,
    ShortfallRecord,
    SliceRecord,
    StretchRecord,
    SupplyRecord,
    WorkRecord,
)

__all__ = [
    "AcquisitionRecord",
    "Answer",
    "AssignmentRecord",
    "AssumptionRecord",
    "BillRecord",
    "BlockRecord",
    "CellRecord",
    "ConstraintRecord",
    "CostRecord",
    "EstimatesRecord",
    "GridRecord",
    "InputsRecord",
    "LeftOutRecord",
    "LineRecord",
    "OptionRecord",
    "PeriodRecord",
    "PlanDocument",
    "RentalRecord",
    "RentedRecord",
    "ReplicasRecord",
    "ScheduleRecord",
    "ServedRecord",
    "SettingsRecord",
    "ShortfallRecord",
    "SliceRecord",
    "StretchRecord",
    "SupplyRecord",
    "WorkRecord",
    "plain",
    "read_answer",
]


def plain(record: Any) -> Any:
    """A record as it stands in a plan file: lists for tuples, null for what is not finite."""
    data = record.model_dump() if isinstance(record, BaseModel) else dataclasses.asdict(record)
    return json.loads(json.dumps(data), parse_constant=lambda _: None)


def read_answer(document: dict[str, Any], kind: type[Answer], checker: Checker) -> Answer | None:
    """The document as typed records, or None with a finding for everything that is missing or of another kind."""
    checker.counts["structure"] += 1
    try:
        answer = kind.model_validate_json(json.dumps(document))
        checker.same("structure", "inputs.estimates", document["inputs"]["estimates"], plain(answer.inputs.estimates))
    except ValidationError as error:
        for wrong in error.errors():
            where = ".".join(str(part) for part in wrong["loc"])
            found = wrong["input"] if isinstance(wrong["input"], str | int | float) else None
            checker.fail("structure", where, wrong["msg"], found=found)
        return None
    return answer
