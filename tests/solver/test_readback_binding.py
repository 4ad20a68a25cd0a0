"""Which rows of a plan are called binding."""

import pytest

from catalog import load_catalog
from optimizer.audit import audit_plan
from optimizer.plan import CheckedRow
from optimizer.problem.load import parse_problem
from optimizer.solve import solve
from tests.report.report_cases import TINY


@pytest.fixture(scope="module")
def plan():
    return solve(parse_problem(TINY, "tiny", catalog=load_catalog()).problem, load_catalog())


def test_rows_of_unused_choices_do_not_bind(plan):
    """`0 <= 0` says nothing; rows with figures and no slack still bind, equations never do."""
    rows: tuple[CheckedRow, ...] = plan.constraints
    assert any(row.lhs == row.rhs == 0 and row.sense != "=" for row in rows)
    assert not any(row.binding for row in rows if row.sense == "=")
    binding = [row for row in rows if row.binding]
    assert binding
    assert all(abs(row.slack) <= 1e-6 * max(abs(row.rhs), abs(row.lhs), 1) for row in binding)
    single_figures = [row for row in binding if row.family.startswith(("supply", "budget", "provider", "minimum"))]
    assert all(row.lhs or row.rhs for row in single_figures)


def test_the_audit_refuses_a_row_of_nothing_that_is_called_binding(plan):
    """The flag is derived on its own."""
    document = plan.document()
    assert audit_plan(document).ok
    empty = [r for r in document["constraints"] if r["lhs"] == r["rhs"] == 0 and r["sense"] != "="]
    found = 0
    for one in empty:
        one["binding"] = True
        found += any("though nothing in it is used" in f.message for f in audit_plan(document).findings)
        one["binding"] = False
        if found:
            break
    assert found
