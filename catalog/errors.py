"""Errors of the catalog: a name that is unknown or means several things, and a cell that cannot be read.

ValueError
└── CatalogError
    ├── UnknownNameError
    ├── AmbiguousNameError
    ├── GpuMismatchError
    └── CatalogFileError
"""

from collections.abc import Sequence


class CatalogError(ValueError):
    """Anything wrong with the catalog's files or with a name looked up in it."""


class UnknownNameError(CatalogError):
    """No GPU or model of that name; `suggestions` are the nearest ids."""

    def __init__(self, name: str, suggestions: Sequence[str], kind: str = "GPU") -> None:
        self.name = name
        self.suggestions = tuple(suggestions)
        self.kind = kind
        hint = f"did you mean {_any_of(self.suggestions)}?" if suggestions else f"the catalog has no such {kind}"
        super().__init__(f"unknown {kind} {name!r}: {hint}")


class AmbiguousNameError(CatalogError):
    """A name that several GPUs or models share; `choices` are their ids."""

    def __init__(self, name: str, choices: Sequence[str], kind: str = "GPU") -> None:
        self.name = name
        self.choices = tuple(choices)
        self.kind = kind
        super().__init__(f"{kind} {name!r} is ambiguous: write one of {', '.join(self.choices)}")


class GpuMismatchError(CatalogError):
    """A GPU's name that what else is said of it (`details`) contradicts; `choices` are what the name may mean."""

    def __init__(self, name: str, details: str, choices: Sequence[str]) -> None:
        self.name = name
        self.details = details
        self.choices = tuple(choices)
        super().__init__(f"GPU {name!r} with {details} is none of {', '.join(self.choices)}")


class CatalogFileError(CatalogError):
    """A cell, header or file of the catalog that cannot be used, with where it stands."""

    def __init__(self, file: str, line: int, column: str | None, message: str) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.message = message
        place = f", column {column}" if column else ""
        super().__init__(f"{file}{f':{line}' if line else ''}{place}: {message}")


def _any_of(names: Sequence[str]) -> str:
    return " or ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} or {names[-1]}"
