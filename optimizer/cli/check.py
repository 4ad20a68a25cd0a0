"""`gpumix check`: what is wrong with a problem file, all at once."""

from typing import Any

import typer

from catalog.load import load_catalog
from optimizer.cli import EXIT_BAD_INPUT
from optimizer.cli.common import Common, Format, ProblemFile, records_text, with_common_options
from optimizer.cli.output import check_outputs, check_spared
from optimizer.errors import Finding, ProblemFileError
from optimizer.estimator.types import JobEstimate, ServiceEstimate
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
    for line in _never_works(loaded):
        common.say(f"{file}: {line}")
    common.say(f"{file}: ok: {problem.name}, {counted(len(problem.workloads), 'workload')}")


def _never_works(loaded: LoadedProblem) -> list[str]:
    """Workloads that nothing can run, own offers that nothing can run on: the file is right, but that is known."""
    from optimizer.model.instance import fits
    from optimizer.prepare import prepare
    from optimizer.report.infeasible import no_way_line

    try:
        prepared = prepare(loaded.problem, loaded.catalog or load_catalog())
    except ProblemFileError:
        return []  # said where it is solved: prices that cannot be turned into the currency, and the like
    if not prepared.supply.options:
        return []
    estimates: list[ServiceEstimate | JobEstimate] = [*prepared.estimates.services, *prepared.estimates.jobs]
    able = {estimate.workload for estimate in estimates}
    rejections = [named_record(rejection) for rejection in prepared.estimates.rejections]
    quoted = {quote.name for quote in loaded.problem.options.quotes}
    idle = [o for o in prepared.supply.options if o.option_id in quoted and not any(fits(e, o) for e in estimates)]
    return [
        *(no_way_line(w.name, rejections) for w in loaded.problem.workloads if w.name not in able),
        *(f"{o.option_id}: no workload can run on its {o.gpus_per_node} × {o.gpu_id} (gpumix estimate)" for o in idle),
    ]


def _report(findings: tuple[Finding, ...], common: Common) -> None:
    if common.output is Format.TABLE:
        typer.echo("\n".join(str(finding) for finding in findings), err=True)
    else:
        common.write(records_text([_record(finding) for finding in findings], common.output, KEYS))
    common.say(counted(len(findings), "error"))


def _record(finding: Finding) -> dict[str, Any]:
    return {key: getattr(finding, key) for key in KEYS}
