"""Errors that a person can cause. The command line prints them without a traceback and exits with code 2.

OptimizerError
├── ProblemFileError   the problem file (or plan file) is wrong: carries every finding with its place
├── CatalogLookupError a GPU, model or offer name that the catalog does not settle
├── OutputError        a file that cannot be written
└── SolverError        the solver refused the model or returned something unusable (a fault of ours)
"""

from dataclasses import dataclass


class OptimizerError(Exception):
    """Root of all errors raised on purpose."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong in an input file: where, what was found, what to write."""

    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None
    path: str = ""
    hint: str = ""
    snippet: str = ""

    def __str__(self) -> str:
        """`file:line:column: error path: message`, the form that editors can jump to."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part not in ("", None))
        head = f"{place}: error" if place else "error"
        where = f" {self.path}:" if self.path else ":"
        tail = f"\n{self.snippet}" if self.snippet else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{head}{where} {self.message}{hint}{tail}"


class ProblemFileError(OptimizerError):
    """A file that cannot be used; `findings` holds all that is wrong with it, in file order."""

    def __init__(self, findings: "list[Finding] | tuple[Finding, ...]") -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


class CatalogLookupError(OptimizerError):
    """A name that the catalog does not know, or that could mean several entries."""


class OutputError(OptimizerError):
    """A file that cannot be written."""


class SolverError(OptimizerError):
    """The solver could not be used or returned an unusable result."""
