"""Where each key and value of a file stands, and findings that point there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from optimizer.errors import Finding, ProblemFileError

Path = tuple[str | int, ...]
"""Keys and indices from the root of the data, e.g. `("workloads", 0, "name")`."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text, counted from 1; `end_column` is the first column after it (same line) or None."""

    line: int
    column: int
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, and the key it stands under (None in a list)."""

    value: Span
    key: Span | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name, its text, and the place of everything in it."""

    name: str
    text: str
    places: Mapping[Path, Place] = field(default_factory=dict)

    def span(self, path: Path, *, at_key: bool = False) -> Span | None:
        """Where `path` stands, or else the nearest thing around it (by its key)."""
        place = self.places.get(path)
        if place is not None:
            return place.key if at_key and place.key else place.value
        while path:
            path = path[:-1]
            place = self.places.get(path)
            if place is not None:
                return place.key or place.value
        return None

    def finding(self, path: Path, message: str, hint: str = "", *, at_key: bool = False) -> Finding:
        """A finding about `path`, with its line, column and a picture of the line."""
        return self.finding_at(self.span(path, at_key=at_key), message, hint, path)

    def finding_at(self, span: Span | None, message: str, hint: str = "", path: Path = ()) -> Finding:
        """A finding about a stretch of text."""
        if span is None:
            return Finding(message, self.name, path=dotted(path), hint=hint)
        snippet = picture(self.text, span)
        return Finding(message, self.name, span.line, span.column, dotted(path), hint, snippet)


@dataclass(slots=True)
class Findings:
    """What is wrong with a file, gathered until all is known."""

    source: Source
    items: list[tuple[Path, Finding]] = field(default_factory=list)

    def add(self, path: Path, message: str, hint: str = "", *, at_key: bool = False) -> None:
        """Note a mistake at `path`."""
        self.items.append((path, self.source.finding(path, message, hint, at_key=at_key)))

    def touch(self, path: Path) -> bool:
        """Whether something at, in or around `path` is wrong already."""
        return any(touching(path, known) for known, _ in self.items)

    def raise_if_any(self) -> None:
        """Raise a ProblemFileError with all of them in file order, if there are any."""
        if self.items:
            found = dict.fromkeys(finding for _, finding in self.items)
            raise ProblemFileError(sorted(found, key=lambda finding: (finding.line or 0, finding.column or 0)))


def touching(one: Path, other: Path) -> bool:
    """Whether one path is the other, or stands in it."""
    return one[: len(other)] == other[: len(one)]


def dotted(path: Path) -> str:
    """`workloads[0].traffic.growth`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def picture(text: str, span: Span, width: int = 100) -> str:
    """The line of `span` with carets below it; a long line is cut around them."""
    lines = text.splitlines()
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    start = max(0, span.column - 1 - width // 2) if len(line) > width else 0
    shown = "".join(character if character.isprintable() else " " for character in line[start : start + width])
    length = max(1, (span.end_column or span.column + 1) - span.column)
    carets = "^" * min(length, max(1, width - (span.column - 1 - start)))
    gutter = f"{span.line:5d} | "
    return f"{gutter}{shown}\n{' ' * (len(gutter) - 2)}| {' ' * (span.column - 1 - start)}{carets}"
