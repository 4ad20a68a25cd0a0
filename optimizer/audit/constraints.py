"""Checks of the constraints that a plan lists: each row's figures agree, and those that can be derived are derived."""

from collections.abc import Container, Iterable

from optimizer.audit.case import Case
from optimizer.audit.document import ConstraintRecord
from optimizer.audit.jobs import Working
from optimizer.audit.lines import Line
from optimizer.audit.report import TOLERANCE, Checker
from optimizer.audit.rows import DerivedRow
from optimizer.audit.rows_of_limits import limit_rows
from optimizer.audit.rows_of_work import job_rows, service_rows
from optimizer.audit.services import Place, Station

ALL_ROWS_LISTED = 20_000
"""Plans of larger models list only binding rows and limits."""
ROUNDING = 1e-9
DUST_SIZE = 1e-3
"""Rows of nothing may hold the solver's dust: they are compared as if of this size."""
_INNER_ROWS = {
    "pool_capacity": ("on", "groups", "beside", "any", "at-once", "at-once-least"),
    "supply_limit": ("at-once", "take-turns"),
    "provider_limit": ("take-turns",),
    "scaling_limit": ("least", "working"),
    "minimum_order": ("most",),
    "vendor_limit": ("link",),
    "billing_step": ("least", "most", "paid", "in-use"),
    "spare_capacity": ("left", "more", "lost", "busy", "whole", "handover", "served"),
}
"""Rows on helper variables that a plan does not hold, by the last word of their index."""
_AT_ONCE = {"supply_limit": 6, "provider_limit": 6}
"""Rows of a job's least size beside the rest, by the length of their index."""


def check_constraints(
    case: Case, stations: dict[Place, Station], works: list[Working], lines: list[Line], checker: Checker
) -> None:
    """Check every listed row, and that no row that can be derived is missing.

    A decomposed plan lists rows of what it uses only.
    """
    rows: list[DerivedRow] = [*service_rows(case, stations), *job_rows(case, works)]
    rows += limit_rows(case, stations, works, lines)
    derived = {row.key: row for row in rows}
    listed = {(c.family, c.index): c for c in case.plan.constraints}
    for key, record in listed.items():
        where = f"constraints[{' '.join((key[0], *key[1]))}]"
        _check_consistent(where, record, checker)
        if key in derived:
            _check_derived(where, record, derived[key], checker)
        else:
            inner = _is_inner(record)
            checker.holds("constraints", where, inner, "no such row follows from the problem")
    if len(derived) <= ALL_ROWS_LISTED:
        used_only = case.plan.inputs.settings.method == "decomposed"
        _check_complete([row for row in derived.values() if _is_used(row) or not used_only], listed, checker)


def _check_consistent(where: str, record: ConstraintRecord, checker: Checker) -> None:
    """The slack is what the sides leave, and is not below zero."""
    expected = {"<=": record.rhs - record.lhs, ">=": record.lhs - record.rhs, "=": -abs(record.lhs - record.rhs)}
    if not checker.holds("constraints", where, record.sense in expected, f"unknown sense {record.sense}"):
        return
    size = max(abs(record.lhs), abs(record.rhs))
    agrees = abs(record.slack - expected[record.sense]) <= ROUNDING * size
    checker.holds("constraints", where, agrees, f"slack {record.slack:g} is not what the sides leave")
    checker.holds("constraints", where, record.slack >= -TOLERANCE * max(size, 1.0), "does not hold")


def _check_derived(where: str, record: ConstraintRecord, row: DerivedRow, checker: Checker) -> None:
    checker.same("constraints", where, (record.sense, record.unit), (row.sense, row.unit))
    checker.equal("constraints", f"{where}.lhs", record.lhs, row.lhs, row.unit, max(row.size, abs(row.rhs), DUST_SIZE))
    checker.equal("constraints", f"{where}.rhs", record.rhs, row.rhs, row.unit)
    size = max(row.size, abs(row.rhs), 1e-12)  # of single figures: a decision's own may be smaller, their net
    nearest, furthest = abs(record.slack) / size, abs(record.slack) / (abs(row.rhs) or size)
    if row.sense == "=":
        checker.holds("constraints", where, not record.binding, "an equation is not called binding")
    elif row.rhs == 0 and row.size <= DUST_SIZE:  # nothing against nothing; of dust, the listed rounding decides
        unused = row.size > 0 or not record.binding
        checker.holds("constraints", where, unused, "is called binding, though nothing in it is used")
    elif furthest <= TOLERANCE / 4 or nearest >= TOLERANCE * 4:  # between these, the listed rounding decides
        is_binding = furthest <= TOLERANCE
        checker.holds("constraints", where, record.binding == is_binding, "is wrongly called binding, or not binding")


def _is_used(row: DerivedRow) -> bool:
    """Whether there is anything in the row; nodes on which nothing stands are room, not use."""
    idle = row.family == "pool_capacity" and row.rhs == 0 and row.lhs == -row.size
    return row.size > 0 and not idle


def _is_inner(record: ConstraintRecord) -> bool:
    inner = _INNER_ROWS.get(record.family, ())
    return any(last in inner for last in record.index[-1:]) or len(record.index) == _AT_ONCE.get(record.family)


def _check_complete(rows: Iterable[DerivedRow], listed: Container[object], checker: Checker) -> None:
    for row in rows:
        where = f"constraints[{' '.join((row.family, *row.index))}]"
        checker.holds("constraints", where, row.key in listed, "is missing")
