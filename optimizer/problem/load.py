"""Reads problem files: YAML 1.2 scalars, the place of everything, every error at once.

PyYAML composes the nodes (by libyaml where it is there); what the scalars mean is decided here by the core schema of
YAML 1.2.2 (§10.3), with `_` between digits allowed: 1.4e12 is a number, `no` and 12:30 are text.
"""

import hashlib
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path as FilePath
from typing import Any

import yaml

from catalog.load import Catalog
from optimizer.errors import Finding, ProblemFileError
from optimizer.problem.positions import Findings, Path, Place, Source, Span
from optimizer.problem.price_files import lay_over, read_price_files
from optimizer.problem.schema import Problem
from optimizer.problem.texts import MAX_FILE_BYTES, decode, read_file
from optimizer.problem.validate import validated

MAX_NESTING = 100
MAX_NODES = 300_000

_TAG = "tag:yaml.org,2002:"
_LEADING_ZERO = "!leading-zero"
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_SCALARS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    (_LEADING_ZERO, r"[-+]?0[0-9_]*[0-9](?:\.[0-9_]*)?", list("-+0")),
    ("int", rf"[-+]?{_DIGITS}|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", rf"[-+]?(?:\.{_DIGITS}|{_DIGITS}(?:\.(?:{_DIGITS})?)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
    ("merge", r"<<", ["<"]),
)  # fmt: skip


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, firsts in _SCALARS:
        full = tag if tag.startswith("!") else _TAG + tag
        for first in firsts:
            table.setdefault(first, []).append((full, re.compile(rf"^(?:{pattern})$")))
    return table


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers = _resolvers()


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    yaml_implicit_resolvers = _resolvers()

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything in full."""
        return True


@dataclass(frozen=True, slots=True)
class LoadedProblem:
    """A problem with what is needed to speak about its file."""

    problem: Problem
    source: Source
    sha256: str
    path: FilePath | None = None
    files: tuple[tuple[str, str], ...] = ()
    """Other files that were read (traffic profiles, model configurations, prices) and their SHA-256."""
    catalog: Catalog | None = None
    """The catalog that names were settled by, with the problem's price files laid over it."""

    @property
    def text(self) -> str:
        """The file as written."""
        return self.source.text

    @property
    def positions(self) -> Mapping[Path, Place]:
        """Place of every key and value."""
        return self.source.places


def load_problem(path: FilePath | str, catalog: Catalog | None = None) -> LoadedProblem:
    """Read and validate the problem file at `path`; `-` is standard input.

    With a catalog, names of GPUs and models are settled too (see `names.canonical_names`).

    Raises
    ------
    ProblemFileError
        With every finding, in file order.
    """
    if str(path) == "-":
        raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        return _parse_bytes(raw, "<stdin>", None, catalog)
    file = FilePath(path)
    return _parse_bytes(read_file(file), str(path), file, catalog)


def parse_problem(
    text: str,
    name: str = "<text>",
    folder: FilePath | None = None,
    catalog: Catalog | None = None,
    today: date | None = None,
) -> LoadedProblem:
    """Validate a problem given as text; files it names are looked for in `folder` (the working directory).

    Raises
    ------
    ProblemFileError
        With every finding, in file order.
    """
    data, findings = parse_yaml(text, name)
    prices = read_price_files(data, folder or FilePath(), findings)
    stock = None if catalog is None else lay_over(catalog, prices, data, findings, today)
    problem, files = validated(data, findings, folder or FilePath(), catalog=stock, today=today)
    sha256 = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return LoadedProblem(problem, findings.source, sha256, files=(*files, *prices.digests), catalog=stock)


def problem_from_json(data: Mapping[str, Any]) -> Problem:
    """Validate a dumped problem (`Problem.model_dump(mode="json", by_alias=True)`): numbers are in canonical units.

    Raises
    ------
    ProblemFileError
        With every finding, by its path.
    """
    findings = Findings(Source("the embedded problem", ""))
    problem, _ = validated(dict(data), findings, FilePath(), normalised=True)
    return problem


def _parse_bytes(raw: bytes, name: str, path: FilePath | None, catalog: Catalog | None) -> LoadedProblem:
    text = decode(raw, name)
    loaded = parse_problem(text, name, path.parent if path else None, catalog)
    return replace(loaded, sha256=hashlib.sha256(raw).hexdigest(), path=path)


def parse_yaml(text: str, name: str) -> tuple[dict[str, Any], Findings]:
    """Read a YAML mapping as plain data, with the place of everything.

    The findings tell of duplicate keys, ambiguous or unusable scalars, nesting or aliases beyond measure; the data are
    None there.

    Raises
    ------
    ProblemFileError
        If the text is not YAML, or not a mapping.
    """
    bare = Source(name, text)
    root = _compose(text, bare)
    reader = _Reader(bare, Findings(bare))
    data = reader.value(root, ()) if root is not None else None
    if not isinstance(data, dict):
        found = {str: "a text", list: "a list", type(None): "nothing"}.get(type(data), "a number")
        hint = "start with name: and workloads:, or with gpumix init"
        span = _value_span(root) if root is not None else Span(1, 1)
        reader.findings.raise_if_any()
        raise ProblemFileError([bare.finding_at(span, f"expected a mapping of keys, found {found}", hint)])
    return data, Findings(Source(name, text, reader.places), reader.findings.items)


_SYNTAX_HINTS = (
    ("\\t", "a tab cannot indent", "use spaces"),
    ("mapping values are not allowed", "a second `: ` in one line", "put a text that holds a colon in quotes"),
    ("could not find expected ':'", "a key without its colon", "write key: value"),
    ("expected a single document", "a second document (---)", "one problem per file"),
    ("special characters are not allowed", "a control character", "delete it"),
    ("control characters are not allowed", "a control character", "delete it"),
    ("undefined alias", "an alias without its anchor", "write &name where the value is first given"),
    ("cannot start any token", "a character that cannot start a value", "put the text in quotes"),
)


def _compose(text: str, source: Source) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        finding = _syntax_finding(error, source)
    except (RecursionError, MemoryError):
        finding = source.finding_at(None, f"nested deeper than {MAX_NESTING} levels", "write it flatter")
    except ValueError as error:
        finding = source.finding_at(None, f"not readable as YAML: {error}")
    raise ProblemFileError([finding])


def _syntax_finding(error: yaml.YAMLError, source: Source) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    context = getattr(error, "context", None)
    hint = ""
    if mark is not None and source.text[mark.index : mark.index + 1] == "\t":
        problem = "\\t"
    for pattern, message, advice in _SYNTAX_HINTS:
        if pattern in f"{problem} {context}":
            problem, context, hint = message, None, advice
            break
    message = f"YAML syntax: {problem}" + (f" ({context})" if context else "")
    if mark is not None:
        return source.finding_at(Span(mark.line + 1, mark.column + 1), message, hint)
    place = getattr(error, "position", None)
    if not isinstance(place, int):
        return source.finding_at(None, message, hint)
    before = source.text[:place]
    return source.finding_at(Span(before.count("\n") + 1, place - before.rfind("\n")), message, hint)


def _value_span(node: yaml.Node) -> Span:
    start, end = node.start_mark, node.end_mark
    one_line = start.line == end.line and isinstance(node, yaml.ScalarNode)
    return Span(start.line + 1, start.column + 1, end.column + 1 if one_line else None)


@dataclass(slots=True)
class _Reader:
    """Turns nodes into plain data and notes places and findings."""

    source: Source
    findings: Findings
    places: dict[Path, Place] = field(default_factory=dict)
    nodes: int = 0
    open_nodes: set[int] = field(default_factory=set)

    def value(self, node: yaml.Node, path: Path, key: Span | None = None) -> Any:
        self.nodes += 1
        self.places[path] = Place(_value_span(node), key)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        problem = self._too_much(node)
        if problem:
            if self.nodes <= MAX_NODES or not self.findings.items:
                self.report(node, path, *problem)
            return None
        self.open_nodes.add(id(node))
        try:
            return self.mapping(node, path) if isinstance(node, yaml.MappingNode) else self.sequence(node, path)
        finally:
            self.open_nodes.discard(id(node))

    def _too_much(self, node: yaml.Node) -> tuple[str, str] | None:
        if id(node) in self.open_nodes:
            return "an alias that contains itself", "write the value out"
        if len(self.open_nodes) >= MAX_NESTING:
            return f"nested deeper than {MAX_NESTING} levels", "write it flatter"
        if self.nodes > MAX_NODES:
            return f"aliases expand to more than {MAX_NODES:,} values", "write fewer aliases"
        if not node.tag.startswith(_TAG) or node.tag.removeprefix(_TAG) not in ("map", "seq"):
            return f'unknown type "{node.tag}"', "leave the ! tag out"
        return None

    def report(self, node: yaml.Node, path: Path, message: str, hint: str = "") -> None:
        self.findings.items.append((path, self.source.finding_at(_value_span(node), message, hint, path)))

    def sequence(self, node: yaml.Node, path: Path) -> list[Any]:
        return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]

    def mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                self.merge(value_node, path, data, seen)
                continue
            key = self.key(key_node, path)
            if key is None:
                continue
            if key in seen:
                message = f'duplicate key "{key}", first at line {seen[key]}'
                self.report(key_node, (*path, key), message, "keep one of the two")
                continue
            seen[key] = key_node.start_mark.line + 1
            data[key] = self.value(value_node, (*path, key), _value_span(key_node))
        return data

    def merge(self, node: yaml.Node, path: Path, data: dict[str, Any], seen: dict[str, int]) -> None:
        """Fill `data` from a merge key (`<<: *other`, or a list of such): what is written out wins."""
        if not isinstance(node, yaml.MappingNode | yaml.SequenceNode):
            self.report(node, path, "a merge key << takes a mapping", "write <<: *anchor")
            return
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            before = dict(self.places)
            merged = self.value(source, path)
            self.places.update(before)
            if not isinstance(merged, dict):
                self.report(source, path, "a merge key << takes a mapping", "write <<: *anchor")
                continue
            for key, value in merged.items():
                data.setdefault(key, value)

    def key(self, node: yaml.Node, path: Path) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.value:
            return str(node.value)
        found = "nothing" if isinstance(node, yaml.ScalarNode) else "a list or mapping"
        self.report(node, path, f"expected a key, found {found}", "write a text as key")
        return None

    def scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        kind = node.tag.removeprefix(_TAG)
        try:
            return _SCALAR_READERS[kind](node.value)
        except KeyError:
            self.report(node, path, f'unknown type "{node.tag}"', "leave the ! tag out")
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            self.report(node, path, message, hint)
        return None


def _integer(text: str) -> int | float:
    digits = text.replace("_", "")
    if digits[:2] in ("0x", "0o"):
        return int(digits, 0)
    _float(text)
    return int(digits)


def _float(text: str) -> float:
    plain = text.replace("_", "").lower()
    number = float(plain if any(character.isdigit() for character in plain) else "nan")
    if not math.isfinite(number):
        shown = text if len(text) < 40 else f"{text[:20]}…"
        msg = f"expected a finite number, found {shown}; leave the key out where there is no limit or no figure"
        raise ValueError(msg)
    return number


def _leading_zero(text: str) -> float:
    plain = text.lstrip("+-0_") or "0"
    plain = f"0{plain}" if plain.startswith(".") else plain
    msg = f'{text} could be octal or decimal; write {plain} for the number, "{text}" in quotes for the text'
    raise ValueError(msg)


_SCALAR_READERS: Mapping[str, Any] = {
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": _integer,
    "float": _float,
    "str": str,
    _LEADING_ZERO: _leading_zero,
}


def dump_yaml(data: Any, *, leaves_in_line: bool = False) -> str:
    """Write plain data as YAML that reads back as the same data, keys in their order.

    `leaves_in_line` writes lists and mappings of plain values as `{key: value, …}`.
    """
    style = None if leaves_in_line else False
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=style)
