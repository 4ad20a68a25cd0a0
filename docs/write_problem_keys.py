"""Writes the list of keys in docs/problem-files.md, and docs/gpumix.schema.json, from the schema."""

from pathlib import Path
from typing import Any

from optimizer.problem.publish import problem_schema, schema_text

PAGE = Path(__file__).parent / "problem-files.md"
SCHEMA = Path(__file__).parent / "gpumix.schema.json"
MARK = "<!-- keys: written by docs/write_problem_keys.py -->\n"


def key_tables() -> str:
    """One table per mapping of the schema: key, what it takes, default, meaning."""
    schema = problem_schema()
    parts = [_table("Problem (top level)", schema)]
    parts += [_table(name, part) for name, part in schema["definitions"].items() if "properties" in part]
    return "\n".join(parts)


def page_with_current_keys(page: str) -> str:
    """The page with everything after the mark replaced by the current tables."""
    return page.partition(MARK)[0] + MARK + "\n" + key_tables()


def _table(name: str, part: dict[str, Any]) -> str:
    required = part.get("required", [])
    rows = [_row(key, field, key in required) for key, field in part["properties"].items()]
    lead = f"{part['description']}\n\n" if part.get("description") and name != "Problem (top level)" else ""
    return f"### {name}\n\n{lead}| key | takes | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _row(key: str, field: dict[str, Any], required: bool) -> str:
    default = "required" if required else _default(field)
    meaning = field.get("description", "")
    takes = _takes(field)
    if meaning and meaning in takes:
        meaning = ""
    cells = (f"`{key}`", takes, default, meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value is None or value == {} or value == []:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


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
    limits = [f"{sign} {field[key]:g}" for key, sign in _LIMITS.items() if key in field]
    return " ".join([_WORDS.get(str(kind), str(kind or "anything")), *limits])


_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "nothing"}


if __name__ == "__main__":
    PAGE.write_text(page_with_current_keys(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
