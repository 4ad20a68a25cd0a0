"""`gpumix check`: what is wrong with a problem file, all at once."""

from typing import Any

import typer

from catalog.load import load_catalog
from optimizer.cli import EXIT_BAD_INPUT
from optimizer.cli.common import Common, Format, ProblemFile, records_text, with_common_options
from optimizer.cli.output import check_outputs, check_spared
from optimizer.errors import Finding, ProblemFileError
from optimizer.problem.load import load_problem
from optimizer.report.words import counted

KEYS = ("file", "line", "column", "path", "message", "hint")


@with_common_options
def check(file: ProblemFile, common: Common) -> None:
    """Validate a problem file: all errors at once, each with file:line:column, what was found, what to write."""
    check_outputs({"--out": common.out}, {"the problem file": file})
    try:
        loaded = load_problem(file, load_catalog())
    except ProblemFileError as error:
        _report(error.findings, common)
        raise typer.Exit(EXIT_BAD_INPUT) from None
    check_spared({"--out": common.out}, file, loaded)
    if common.output is not Format.TABLE:
        common.write(records_text([], common.output, KEYS))
    problem = loaded.problem
    common.say(f"{file}: ok: {problem.name}, {counted(len(problem.workloads), 'workload')}")


def _report(findings: tuple[Finding, ...], common: Common) -> None:
    if common.output is Format.TABLE:
        typer.echo("\n".join(str(finding) for finding in findings), err=True)
    else:
        common.write(records_text([_record(finding) for finding in findings], common.output, KEYS))
    common.say(counted(len(findings), "error"))


def _record(finding: Finding) -> dict[str, Any]:
    return {key: getattr(finding, key) for key in KEYS}
