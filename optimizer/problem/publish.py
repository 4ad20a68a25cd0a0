"""The JSON Schema of problem files, as editors read it (draft 7: `definitions`, no `prefixItems`)."""

import json
from typing import Any

from pydantic import BaseModel

from optimizer.problem.manual import field_manual
from optimizer.problem.schema import Problem
from optimizer.quantities import Model

DRAFT = "http://json-schema.org/draft-07/schema#"


def problem_schema(*, manual: bool = True) -> dict[str, Any]:
    """JSON Schema of the problem file; descriptions are the docstrings of the fields, or else say the kind of value."""
    schema = Problem.model_json_schema(by_alias=True)
    for name, part in ({Problem.__name__: schema, **schema["$defs"]} if manual else {}).items():
        _add_manual(part, _models()[name])
    schema = _draft_7(schema)
    return {"$schema": DRAFT, "title": "gpumix problem file"} | {k: v for k, v in schema.items() if k != "title"}


def _add_manual(part: dict[str, Any], model: type[BaseModel]) -> None:
    manual = field_manual(model)
    for name, field in model.model_fields.items():
        if name in manual:
            part["properties"][field.alias or name]["description"] = manual[name]


def _models() -> dict[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    waiting: list[type[BaseModel]] = [Model]
    while waiting:
        model = waiting.pop()
        found[model.__name__] = model
        waiting.extend(model.__subclasses__())
    return found


def schema_text() -> str:
    """The schema as text, the same in every run."""
    return json.dumps(problem_schema(), indent=2, ensure_ascii=False) + "\n"


def _draft_7(node: Any) -> Any:
    """`node` with the keywords of draft 7 in place of those of 2020-12."""
    if isinstance(node, list):
        return [_draft_7(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {_KEYWORDS.get(key, key): _draft_7(value) for key, value in node.items() if key not in _DROPPED}
    reference = plain.get("$ref")
    if isinstance(reference, str):
        plain["$ref"] = reference.replace("#/$defs/", "#/definitions/")
        if len(plain) > 1:  # draft 7 ignores what stands beside a $ref
            return {"allOf": [{"$ref": plain.pop("$ref")}], **plain}
    return plain


_KEYWORDS = {
    "$defs": "definitions",
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}
"""Pydantic leaves bounds behind its own parsers under their Python names."""
_DROPPED = ("discriminator",)
