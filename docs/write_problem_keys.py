"""Writes the list of keys in docs/problem-files.md, and docs/gpumix.schema.json, from the schema."""

from pathlib import Path
from typing import Any

from optimizer.problem.publish import problem_schema, schema_text

PAGE = Path(__file__).parent / "problem-files.md"
SCHEMA = Path(__file__).parent / "gpumix.schema.json"
MARK = "<!-- keys: written by docs/write_problem_keys.py -->\n"


def key_tables() -> str:
    """One table per mapping of the schema: key, what it takes, default, meaning."""
    schema, kinds = problem_schema(), problem_schema(manual=False)
    parts = [_table("Problem (top level)", schema, kinds)]
    for name, part in schema["definitions"].items():
        if "properties" in part:
            parts.append(_table(name, part, kinds["definitions"][name]))
    return "\n".join(parts)


def page_with_current_keys(page: str) -> str:
    """The page with everything after the mark replaced by the current tables."""
    return page.partition(MARK)[0] + MARK + "\n" + key_tables()


def _table(name: str, part: dict[str, Any], kinds: dict[str, Any]) -> str:
    """Table of one mapping: meanings from the schema with the manual, what a key takes from the one without."""
    required = part.get("required", [])
    fields = kinds["properties"]
    rows = [_row(key, field, fields[key], key in required) for key, field in part["properties"].items()]
    lead = f"{part['description']}\n\n" if part.get("description") and name != "Problem (top level)" else ""
    return f"### {name}\n\n{lead}| key | takes | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _row(key: str, field: dict[str, Any], kind: dict[str, Any], required: bool) -> str:
    default = "required" if required else _default(kind)
    meaning = " ".join(field.get("description", "").split())
    takes = _takes(kind)
    if meaning and meaning in takes:
        meaning = ""
    cells = (f"`{key}`", takes, default, meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value is None or value == {} or value == []:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{_with_unit(value, _takes(field))}`" if isinstance(value, float) else f"`{value}`"


def _with_unit(value: float, takes: str) -> str:
    """A default as a buyer would write it: `0 months`, `5 %`."""
    if takes.startswith("a share"):
        return f"{100 * value:g} %"
    unit = next((unit for kind, unit in _UNITS.items() if takes.startswith(kind)), "")
    return f"{value:g} {unit}".strip()


def _takes(field: dict[str, Any]) -> str:
    choices = [_takes(one) for one in field.get("anyOf", field.get("oneOf", field.get("allOf", [])))]
    if choices:
        return " or ".join(choice for choice in dict.fromkeys(choices) if choice != "nothing")
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "enum" in field or "const" in field:
        return ", ".join(f"`{one}`" for one in field.get("enum", [field.get("const")]))
    return _plain(field)


def _plain(field: dict[str, Any]) -> str:
    kind = field.get("type")
    if isinstance(kind, list):
        return str(field.get("description", "a number or a text"))
    if kind == "array":
        return f"list of {_takes(field['items'])}"
    if kind == "object":
        return f"name: {_takes(field.get('additionalProperties', {}))}"
    if field.get("format") == "date":
        return "date"
    limits = [f"{sign} {field[key]:g}" for key, sign in _LIMITS.items() if field.get(key, _SLIP) < _SLIP]
    return " ".join([_WORDS.get(str(kind), str(kind or "anything")), *limits])


_UNITS = {
    "a duration, e.g. 4 months": "months",
    "months or": "months",
    "a duration": "h",
    "a start": "h",
    "a growth": "%/month",
}
_SLIP = 1e6
"""Bounds from here on only catch slips of the pen; the schema and the messages name them."""
_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "nothing"}


if __name__ == "__main__":
    PAGE.write_text(page_with_current_keys(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
