"""`gpumix check`: what is wrong with a problem file, all at once."""

from typing import Any

import typer

from catalog.load import load_catalog
from optimizer.cli import EXIT_BAD_INPUT
from optimizer.cli.common import Common, Format, ProblemFile, records_text, with_common_options
from optimizer.cli.output import check_outputs, check_spared
from optimizer.errors import Finding, ProblemFileError
from optimizer.plan import named_record
from optimizer.problem.load import LoadedProblem, load_problem
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
    for line in _without_a_way(loaded):
        common.say(f"{file}: {line}")
    common.say(f"{file}: ok: {problem.name}, {counted(len(problem.workloads), 'workload')}")


def _without_a_way(loaded: LoadedProblem) -> list[str]:
    """Workloads that nothing can run, with what is missing: the file is right, but its answer is known to be "no"."""
    from optimizer.prepare import prepare
    from optimizer.report.infeasible import no_way_line

    try:
        prepared = prepare(loaded.problem, loaded.catalog or load_catalog())
    except ProblemFileError:
        return []  # said where it is solved: prices that cannot be turned into the currency, and the like
    if not prepared.supply.options:
        return []
    known = prepared.estimates
    able = {e.workload for e in known.services} | {e.workload for e in known.jobs}
    rejections = [named_record(rejection) for rejection in prepared.estimates.rejections]
    return [no_way_line(w.name, rejections) for w in loaded.problem.workloads if w.name not in able]


def _report(findings: tuple[Finding, ...], common: Common) -> None:
    if common.output is Format.TABLE:
        typer.echo("\n".join(str(finding) for finding in findings), err=True)
    else:
        common.write(records_text([_record(finding) for finding in findings], common.output, KEYS))
    common.say(counted(len(findings), "error"))


def _record(finding: Finding) -> dict[str, Any]:
    return {key: getattr(finding, key) for key in KEYS}
