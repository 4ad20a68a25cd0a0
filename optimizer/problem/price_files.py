"""Files of offers that a problem names (`options.price_files`): found, hashed, and laid over the catalog."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path as FilePath
from typing import Any

from catalog.errors import CatalogFileError, UnknownNameError
from catalog.load import Catalog
from optimizer.problem.positions import Findings, Path


@dataclass(frozen=True, slots=True)
class PriceFiles:
    """Where the price files of a problem are, by the names it gives them, and their SHA-256 by path."""

    paths: Mapping[str, FilePath] = field(default_factory=dict)
    digests: tuple[tuple[str, str], ...] = ()


def read_price_files(data: Mapping[str, Any], folder: FilePath, findings: Findings) -> PriceFiles:
    """The price files that a problem's data name, looked for in `folder`; what cannot be read is a finding."""
    paths: dict[str, FilePath] = {}
    digests: dict[str, str] = {}
    for place, name in _names(data):
        path = folder / name
        if name in paths:
            findings.add(place, f'"{name}" a second time', "name each file once")
            continue
        try:
            digests[str(path)] = _digest(path)
            paths[name] = path
        except (OSError, ValueError) as error:
            reason = (
                "no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None) or error
            )
            hint = "name a file of offers, relative to the problem file; gpumix catalog import writes them"
            findings.add(place, f"{name}: {reason}", hint)
    return PriceFiles(paths, tuple(sorted(digests.items())))


def _names(data: Mapping[str, Any]) -> Iterable[tuple[Path, str]]:
    options = data.get("options")
    names = options.get("price_files") if isinstance(options, dict) else None
    for index, name in enumerate(names if isinstance(names, list) else ()):
        if isinstance(name, str) and name:
            yield ("options", "price_files", index), name


def _digest(path: FilePath) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def lay_over(
    catalog: Catalog, prices: PriceFiles, data: Mapping[str, Any], findings: Findings, today: date | None = None
) -> Catalog:
    """The catalog with the price files on it, alone where `options.catalog` is false; their mistakes are findings.

    `today` (by UTC) is the last day that a price can be of.
    """
    if not prices.paths:
        return catalog
    options = data.get("options") or {}
    stock = catalog.with_price_files(prices.paths, only=options.get("catalog") is False)
    places = {name: place for place, name in _names(data)}
    try:
        gpus = stock.price_file_gpus()
    except CatalogFileError as error:
        findings.add(places.get(error.file, ("options", "price_files")), str(error), "see gpumix catalog check FILE")
        return catalog
    own = data.get("gpus")
    for name, (file, line) in gpus.items():
        hint = "" if isinstance(own, dict) and name in own else _hint(stock, name)
        if hint:
            findings.add(places[file], f'{file}:{line}: unknown GPU id "{name}"', hint)
    last = today or datetime.now(UTC).date()
    for text, (file, line) in stock.price_file_days().items():
        if text > last.isoformat() and _is_day(text):
            message = f"{file}:{line}: priced_on {text} is still to come (today is {last}, UTC)"
            findings.add(places[file], message, "write the day on which the price was read")
    return stock


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _hint(catalog: Catalog, name: str) -> str:
    """What to write for a GPU id that is none; empty for one that is."""
    found = catalog.gpu_candidates(name)
    if name in found:
        return ""
    if found:
        return f"write {' or '.join(found)}"
    try:
        return catalog.gpu_id(name)
    except UnknownNameError as error:
        return (
            f"did you mean {' or '.join(error.suggestions)}?" if error.suggestions else "see gpumix catalog list gpus"
        )


def catalog_of_plan(document: Mapping[str, Any], catalog: Catalog) -> tuple[Catalog, tuple[str, ...]]:
    """The catalog with the price files of a plan file on it, and the names of those that are gone or have changed."""
    inputs = document.get("inputs")
    problem, sources = (_part(inputs, "problem"), _part(inputs, "sources"))
    options = _part(problem, "options")
    names: Sequence[Any] = options.get("price_files") or ()
    found = {name: path for name in names if isinstance(name, str) and (path := _unchanged(name, sources))}
    missing = tuple(str(name) for name in names if name not in found)
    if not names or missing:
        return catalog, missing
    return catalog.with_price_files(found, only=options.get("catalog") is False), ()


def _part(data: Any, key: str) -> Mapping[str, Any]:
    part = data.get(key) if isinstance(data, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _unchanged(name: str, sources: Mapping[str, Any]) -> FilePath | None:
    """The file of that name among a plan's sources, if it is still there as it was."""
    for source, digest in sources.items():
        path = FilePath(source)
        if path == FilePath(name) or path.parts[-len(FilePath(name).parts) :] == FilePath(name).parts:
            try:
                if _digest(path) == digest:
                    return path
            except (OSError, ValueError):
                continue
    return None
