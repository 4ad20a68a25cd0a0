"""What an audit says: findings and counts of checks; and the one place where figures are compared."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TOLERANCE = 1e-6
"""Two figures are the same when they differ by no more than this share of the larger one (or of the row's size)."""
DUST = 1e-9
"""Quantities below this are the solver's dust: they need no line, and may have one."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that does not hold. `severity` is error (the audit fails) or notice (something to know)."""

    check: str
    where: str
    expected: Any
    found: Any
    unit: str
    message: str
    severity: str = "error"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit: `checks` counts the comparisons made, by kind."""

    problem: str
    status: str
    findings: tuple[AuditFinding, ...]
    checks: Mapping[str, int]

    @property
    def ok(self) -> bool:
        """Whether everything that was checked holds."""
        return not self.errors

    @property
    def errors(self) -> tuple[AuditFinding, ...]:
        """Findings that make the audit fail."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


def same_figure(found: float | None, expected: float | None, size: float = 0.0) -> bool:
    """Whether two figures agree to the tolerance, relative to the larger of them and of `size`."""
    if found is None or expected is None:
        return found is expected
    if not (math.isfinite(found) and math.isfinite(expected)):
        return found == expected
    return abs(found - expected) <= TOLERANCE * max(abs(found), abs(expected), size) + 1e-14


@dataclass(slots=True)
class Checker:
    """Collects the findings of an audit and counts its comparisons."""

    findings: list[AuditFinding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def fail(self, check: str, where: str, message: str, found: Any = None, expected: Any = None) -> None:
        """Note something that does not hold, already known to be wrong."""
        self.counts[check] += 1
        self.findings.append(AuditFinding(check, where, expected, found, "", message))

    def notice(self, check: str, where: str, message: str) -> None:
        """Note something to know that is no failure."""
        self.findings.append(AuditFinding(check, where, None, None, "", message, "notice"))

    def holds(self, check: str, where: str, condition: bool, message: str) -> bool:
        """Check a condition."""
        self.counts[check] += 1
        if not condition:
            self.findings.append(AuditFinding(check, where, True, False, "", message))
        return condition

    def equal(
        self, check: str, where: str, found: float | None, expected: float | None, unit: str = "", size: float = 0.0
    ) -> bool:
        """Check that a figure of the plan is the one derived here."""
        self.counts[check] += 1
        if same_figure(found, expected, size):
            return True
        self.findings.append(AuditFinding(check, where, expected, found, unit, "differs from what is derived"))
        return False

    def at_most(self, check: str, where: str, found: float, limit: float, unit: str, size: float = 0.0) -> bool:
        """Check that a figure does not pass its limit."""
        self.counts[check] += 1
        if found <= limit + TOLERANCE * max(abs(found), abs(limit), size):
            return True
        self.findings.append(AuditFinding(check, where, limit, found, unit, "is more than the limit"))
        return False

    def same(self, check: str, where: str, found: Any, expected: Any) -> bool:
        """Check that plain data (texts, numbers, lists, mappings) agree; every difference is a finding of its own."""
        self.counts[check] += 1
        differences = list(differing(found, expected, where))
        for place, is_, should in differences:
            self.findings.append(AuditFinding(check, place, should, is_, "", "differs from what is derived"))
        return not differences

    def report(self, problem: str, status: str) -> AuditReport:
        """The report as it stands."""
        return AuditReport(problem, status, tuple(self.findings), dict(self.counts))


def differing(found: Any, expected: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """Places where plain data differ beyond the tolerance, as (place, found, expected)."""
    if _is_number(found) and _is_number(expected):
        if not same_figure(float(found), float(expected)):
            yield where, found, expected
    elif isinstance(found, dict) and isinstance(expected, dict):
        for key in dict.fromkeys((*expected, *found)):
            place = f"{where}.{key}"
            if key in found and key in expected:
                yield from differing(found[key], expected[key], place)
            else:
                yield place, found.get(key, "missing"), expected.get(key, "nothing")
    elif isinstance(found, list | tuple) and isinstance(expected, list | tuple):
        if len(found) != len(expected):
            yield where, f"{len(found)} entries", f"{len(expected)} entries"
        for index, (one, other) in enumerate(zip(found, expected, strict=False)):
            yield from differing(one, other, f"{where}[{index}]")
    elif type(found) is not type(expected) or found != expected:
        yield where, found, expected


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
