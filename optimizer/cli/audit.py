"""`gpumix audit`: a plan re-checked from what its file embeds, without the solver and the model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optimizer.cli.common import CatalogDirectory, Common, with_common_options
from optimizer.cli.output import check_outputs, write_answer
from optimizer.report.forms import csv_text
from optimizer.report.sections import Section, columns
from optimizer.report.words import counted

if TYPE_CHECKING:
    from optimizer.audit import AuditFinding, AuditReport

EXIT_NO = 1
COLUMNS = ("severity", "check", "where", "expected", "found", "unit", "message")
MOST_FINDINGS_SHOWN = 40
STANDARD_INPUT = Path("/dev/stdin")


@with_common_options
def audit(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="Plan file (JSON); - reads standard input.")],
    common: Common,
    problem: Annotated[
        Path | None,
        typer.Option("--problem", metavar="FILE", help="The problem file that the plan was made from: compared too."),
    ] = None,
    catalog: CatalogDirectory = None,
) -> None:
    """Re-derive every requirement and every cost line of a plan from its file, by code of its own.

    Exit codes: 0 everything holds; 1 something does not, or there is no plan in the file; 2 a file that cannot be read.
    """
    check_outputs({"--out": common.out}, {"the plan file": plan, "the problem file": problem})
    from catalog.load import load_catalog
    from optimizer.audit import audit_plan
    from optimizer.plan import read_plan

    document = read_plan(STANDARD_INPUT if plan == "-" else Path(plan))
    report = audit_plan(document, problem, load_catalog(catalog))
    found = audit_document(report)
    write_answer(found, audit_sections(report, plan), csv_text(found["findings"], COLUMNS), common)
    if not report.ok:
        raise typer.Exit(EXIT_NO)


def audit_document(report: "AuditReport") -> dict[str, Any]:
    """The report as plain data."""
    from optimizer.audit.report import TOLERANCE

    return {
        "problem": report.problem,
        "status": report.status,
        "ok": report.ok,
        "tolerance": TOLERANCE,
        "checks": dict(report.checks),
        "findings": [{name: _plain(getattr(finding, name)) for name in COLUMNS} for finding in report.findings],
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def audit_sections(report: "AuditReport", name: str) -> list[Section]:
    """The verdict, what does not hold, and how much was checked."""
    total = sum(report.checks.values())
    errors = len(report.errors)
    verdict = "everything holds" if report.ok else counted(errors, "finding")
    head = Section(f"Audit of {name}: {verdict}", notes=(f"{report.problem} ({report.status}), {total:,} checks",))
    shown = report.findings[:MOST_FINDINGS_SHOWN]
    more = len(report.findings) - len(shown)
    found = Section(
        "Findings",
        columns("Check", "Where", ">Expected", ">Found", "What"),
        tuple(_row(finding) for finding in shown),
        (f"{more:,} more; -o json lists all",) if more else (),
    )
    counts = tuple((check, f"{count:,}") for check, count in sorted(report.checks.items()))
    return [head, *([found] if shown else []), Section("Checks made", columns("Check", ">Number"), counts)]


def _row(finding: "AuditFinding") -> tuple[str, ...]:
    message = finding.message if finding.severity == "error" else f"notice: {finding.message}"
    unit = f" {finding.unit}" if finding.unit else ""
    return (finding.check, finding.where, _shown(finding.expected, unit), _shown(finding.found, unit), message)


def _shown(value: Any, unit: str) -> str:
    if value is None or isinstance(value, bool):
        return ""
    return f"{value:,.9g}{unit}" if isinstance(value, int | float) else str(value)
