"""Pydantic's errors as findings: one clear message per mistake, at its place in the file."""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from optimizer.errors import Finding
from optimizer.problem.manual import field_manual
from optimizer.problem.positions import Findings, Path, Source

MAX_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Located:
    """An error's path in the data, the schema around it, and the union members that it speaks for."""

    path: Path
    owner: Any
    annotation: Any
    members: tuple[tuple[Path, Any, Any], ...]
    """(path of the union, the union, the member that was tried), outermost first; unions told apart by `kind` aside."""


def note_errors(error: ValidationError, schema: type[BaseModel], data: Any, findings: Findings) -> None:
    """Add the findings of a failed validation; unions speak with the voice of the member that was meant."""
    known = {path for path, _ in findings.items}
    for details in error.errors(include_url=False):
        located = locate(schema, details["loc"])
        misfit = next((found for found in located.members if not _fits(found, data)), None)
        path = located.path if misfit is None else misfit[0]
        if path in known or (details["type"] == "value_error" and _holds(path, data, known)):
            continue
        if misfit is None:
            known.add(path)
            findings.items.append((path, _finding(details, located, data, findings.source)))
        elif not any(_kind(value_at(data, path)) == _member_kind(member) for member in _members(misfit[1])):
            known.add(path)
            findings.add(path, f"expected {describe(misfit[1])}, found {shown(value_at(data, path))}")


def _holds(path: Path, data: Any, known: set[Path]) -> bool:
    """Whether the mapping at `path` has a mistake inside: then what it seems to lack may be just that."""
    inside = isinstance(value_at(data, path), dict)
    return inside and any(len(one) > len(path) and one[: len(path)] == path for one in known)


def _fits(member: tuple[Path, Any, Any], data: Any) -> bool:
    path, _, annotation = member
    return _kind(value_at(data, path)) == _member_kind(annotation)


def locate(schema: type[BaseModel], loc: Sequence[str | int]) -> Located:
    """Follow pydantic's `loc` through the schema, leaving out the tags of unions."""
    annotation: Any = schema
    owner: Any = schema
    path: Path = ()
    members: list[tuple[Path, Any, Any]] = []
    for part in loc:
        annotation = bare(annotation)
        if len(_members(annotation)) > 1:
            member, by_kind = _member_tagged(annotation, str(part))
            if not by_kind:
                members.append((path, annotation, member))
            annotation = member
            continue
        if part == "[key]":
            continue
        path, owner, annotation = (*path, part), annotation, _child(annotation, part)
    return Located(path, owner, bare(annotation), tuple(members))


def bare(annotation: Any) -> Any:
    """`annotation` without Annotated (unless that describes its text) and without `| None`."""
    while True:
        if get_origin(annotation) is Annotated and _described(annotation) is None:
            annotation = get_args(annotation)[0]
            continue
        members = _members(annotation)
        if len(members) == 1 and members[0] is not annotation:
            annotation = members[0]
            continue
        return annotation


def _described(annotation: Any) -> str | None:
    for note in getattr(annotation, "__metadata__", ()):
        if isinstance(note, WithJsonSchema) and note.json_schema:
            return str(note.json_schema.get("description"))
    return None


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [member for member in get_args(annotation) if member is not type(None)]
    return [annotation]


def _member_tagged(union: Any, tag: str) -> tuple[Any, bool]:
    """The member of `union` that pydantic calls `tag`, and whether it was chosen by its `kind`."""
    members = _members(union)
    for member in members:
        plain = bare(member)
        if _is_model(plain):
            kind = plain.model_fields.get("kind")
            if kind is not None and tag in get_args(kind.annotation):
                return member, True
            if tag == plain.__name__:
                return member, False
    wanted = {"dict": "mapping", "list": "list"}.get(tag.partition("[")[0], "scalar")
    return next((member for member in members if _member_kind(member) == wanted), members[0]), False


def _member_kind(annotation: Any) -> str:
    plain = bare(annotation)
    if _is_model(plain) or get_origin(plain) is dict:
        return "mapping"
    return "list" if get_origin(plain) is list else "scalar"


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "mapping"
    return "list" if isinstance(value, list) else "scalar"


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _child(annotation: Any, part: str | int) -> Any:
    if _is_model(annotation):
        for name, field in annotation.model_fields.items():
            if part in (field.alias, name):
                kept = tuple(note for note in field.metadata if isinstance(note, WithJsonSchema))
                return Annotated[field.annotation, *kept] if kept else field.annotation
        return Any
    arguments = get_args(annotation)
    return arguments[-1] if arguments else Any


def keys_of(model: type[BaseModel]) -> list[str]:
    """Keys that a mapping of this schema may hold."""
    return [field.alias or name for name, field in model.model_fields.items()]


def value_at(data: Any, path: Path) -> Any:
    """The value at `path`, None where there is none."""
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def shown(value: Any) -> str:
    """A value as a message shows it."""
    if isinstance(value, str):
        return f'"{value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "…"}"'
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    return {dict: "a mapping", list: "a list", type(None): "nothing"}.get(type(value), f"{value!r}"[:MAX_SHOWN])


def describe(annotation: Any) -> str:
    """What may stand where `annotation` is asked, in words."""
    text = _described(annotation)
    if text is not None:
        return text
    annotation = bare(annotation)
    members = _members(annotation)
    if len(members) > 1 and all(_is_model(member) and "kind" in member.model_fields for member in members):
        return f"a mapping with name and kind ({', '.join(_kinds(annotation))})"
    if len(members) > 1:
        return " or ".join(describe(member) for member in members)
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(map(str, get_args(annotation)))}"
    if _is_model(annotation):
        return f"a mapping (keys: {', '.join(keys_of(annotation))})"
    if get_origin(annotation) is list:
        return f"a list of {_described_plural(get_args(annotation)[0])}"
    if get_origin(annotation) is dict:
        return f"a mapping from names to {describe(get_args(annotation)[1])}"
    return _WORDS.get(str(getattr(annotation, "__name__", "")), "a value")


def _described_plural(annotation: Any) -> str:
    """`describe`, of several."""
    one = describe(annotation)
    if one.startswith("a mapping"):
        return one.replace("a mapping", "mappings", 1)
    return _PLURALS.get(one) or (f"values, each {one}" if one != "a value" else "values")


_WORDS = {"str": "text", "float": "a number", "int": "a whole number", "bool": "true or false"}
_PLURALS = {"text": "texts", "a number": "numbers", "a whole number": "whole numbers"}


def suggestion(word: str, choices: Sequence[str], noun: str = "") -> str:
    """`did you mean "x"?`, or what there is to choose from."""
    folded = {choice.lower(): choice for choice in choices}
    close = get_close_matches(word.lower(), folded, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(f'"{folded[match]}"' for match in close) + "?"
    if not choices:
        return f"there are no {noun}" if noun else ""
    listed = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
    return f"{noun or 'choices'}: {listed}"


Parts = tuple[str, str, bool]
"""Message, hint, and whether the place is the key's."""


def _finding(details: ErrorDetails, located: Located, data: Any, source: Source) -> Finding:
    value = value_at(data, located.path)
    explain = _EXPLAIN.get(details["type"], _other)
    message, hint, at_key = explain(details, located, value)
    path = located.path
    if details["type"] == "union_tag_invalid":
        path = (*path, "kind")
    return source.finding(path, message, hint, at_key=at_key)


def _unknown_key(details: ErrorDetails, located: Located, value: Any) -> Parts:
    key = str(located.path[-1])
    if value is None and key.isdigit():
        return f'unknown key "{key}"', "inside { } a comma ends a value: write 1_000, not 1,000", True
    return f'unknown key "{key}"', suggestion(key, keys_of(located.owner), "keys"), True


def _missing(details: ErrorDetails, located: Located, value: Any) -> Parts:
    return f'missing key "{located.path[-1]}"', f"write {describe(located.annotation)}", True


def _expected(details: ErrorDetails, located: Located, value: Any) -> Parts:
    hint = ""
    if value is None:
        hint = "leave the key out for the default"
    elif bare(located.annotation) is str and isinstance(value, int | float):
        hint = f'put it in quotes: "{str(value).lower()}"'
    elif get_origin(located.annotation) is list and isinstance(value, str):
        hint = f"write [{value}]"
    return f"expected {describe(located.annotation)}, found {shown(value)}", hint, False


def _choice(details: ErrorDetails, located: Located, value: Any) -> Parts:
    choices = [str(choice) for choice in get_args(located.annotation)]
    hint = suggestion(str(value), choices) if len(choices) > 1 else ""
    return f"expected {describe(located.annotation)}, found {shown(value)}", hint if "mean" in hint else "", False


def _unknown_kind(details: ErrorDetails, located: Located, value: Any) -> Parts:
    tag = str(details.get("ctx", {}).get("tag", ""))
    kinds = _kinds(located.annotation)
    return f'unknown kind "{tag}"', suggestion(tag, kinds, "kinds"), False


def _missing_kind(details: ErrorDetails, located: Located, value: Any) -> Parts:
    if not isinstance(value, dict):
        return f"expected a mapping with name and kind, found {shown(value)}", "", False
    return 'missing key "kind"', f"write one of {', '.join(_kinds(located.annotation))}", True


def _kinds(union: Any) -> list[str]:
    return [str(get_args(member.model_fields["kind"].annotation)[0]) for member in _members(union)]


def _limit(sign: str) -> Callable[[ErrorDetails, Located, Any], Parts]:
    def explain(details: ErrorDetails, located: Located, value: Any) -> Parts:
        limit = f"{next(iter(details.get('ctx', {'': 0}).values())):g}"
        share = (_described(located.annotation) or "").startswith("a share") and sign == "≤"
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        hint = f'write "{value} %" for a percentage' if share and plain and value <= 100 else ""
        return f"expected {describe(located.annotation)} {sign} {limit}, found {shown(value)}", hint, False

    return explain


def _too_short(details: ErrorDetails, located: Located, value: Any) -> Parts:
    what = "text" if isinstance(value, str) else "list"
    return f"an empty {what}", "write at least one item" if what == "list" else "write a text", False


def _pattern(details: ErrorDetails, located: Located, value: Any) -> Parts:
    manual = field_manual(located.owner) if _is_model(located.owner) else {}
    return f"cannot use {shown(value)}", manual.get(str(located.path[-1]), ""), False


def _said(details: ErrorDetails, located: Located, value: Any) -> Parts:
    message, _, hint = details["msg"].removeprefix("Value error, ").partition("; ")
    return message, hint, False


def _other(details: ErrorDetails, located: Located, value: Any) -> Parts:
    return f"{details['msg'][:1].lower()}{details['msg'][1:]}, found {shown(value)}", "", False


_EXPLAIN: Mapping[str, Callable[[ErrorDetails, Located, Any], Parts]] = {
    "extra_forbidden": _unknown_key,
    "missing": _missing,
    "literal_error": _choice,
    "union_tag_invalid": _unknown_kind,
    "union_tag_not_found": _missing_kind,
    "greater_than": _limit(">"),
    "greater_than_equal": _limit("≥"),
    "less_than": _limit("<"),
    "less_than_equal": _limit("≤"),
    "too_short": _too_short,
    "string_too_short": _too_short,
    "string_pattern_mismatch": _pattern,
    "value_error": _said,
} | dict.fromkeys(
    ("string_type", "float_type", "int_type", "bool_type", "list_type", "dict_type", "model_type",
     "model_attributes_type", "finite_number"),
    _expected,
)  # fmt: skip
