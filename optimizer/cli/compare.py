"""`gpumix compare`: ways of having the GPUs side by side, and where owning breaks even."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from optimizer.cli import EXIT_INTERRUPTED
from optimizer.cli.common import CatalogDirectory, Common, ProblemFile, with_common_options
from optimizer.cli.output import check_outputs, check_spared, write_answer
from optimizer.cli.search import Gap, Threads, TimeLimit
from optimizer.report.compare import comparison_csv, comparison_sections

if TYPE_CHECKING:
    from optimizer.decision.compare import Comparison

EXIT_NO = 1
EXIT_TIME_LIMIT = 3
SayHook = Callable[[str], None]


@with_common_options
def compare(
    file: ProblemFile,
    common: Common,
    break_even: Annotated[
        bool,
        typer.Option(
            "--break-even/--no-break-even", help="Search the utilisation and month of break-even (some 30 re-solves)."
        ),
    ] = True,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = None,
    catalog: CatalogDirectory = None,
) -> None:
    """Cloud only, owned only, hybrid and a stated baseline side by side; where owning breaks even, by re-solving.

    Exit codes: 0 at least one variant has a plan; 1 none has; 2 bad input; 3 a limit stopped a variant; 130
    interrupted (what is known so far is printed).
    """
    check_outputs({"--out": common.out}, {"the problem file": file})
    from catalog.load import load_catalog
    from optimizer.decision.compare import compare as compare_problem
    from optimizer.problem.load import load_problem
    from optimizer.solver.milp import SolverSettings

    stock = load_catalog(catalog)
    loaded = load_problem(file, stock)
    check_spared({"--out": common.out}, file, loaded)
    problem, stock = loaded.problem, loaded.catalog or stock
    settings = SolverSettings(gap=gap, time_limit_s=time_limit, threads=threads)
    with progress_text(common) as say:
        found = compare_problem(problem, stock, settings, break_even=break_even, say=say)
    document = found.document()
    write_answer(document, comparison_sections(document), comparison_csv(document), common)
    if code := exit_code(found, gap):
        raise typer.Exit(code)


def exit_code(found: "Comparison", gap: float) -> int:
    """130 interrupted, 3 a variant was stopped before the gap asked, 1 no variant has a plan, else 0."""
    if found.interrupted:
        return EXIT_INTERRUPTED
    plans = [outcome.plan for outcome in found.outcomes]
    costs = [None if plan is None else plan.cost for plan in plans]
    waiting = [o.stopped and (cost is None or cost.gap > gap) for o, cost in zip(found.outcomes, costs, strict=True)]
    if any(waiting):
        return EXIT_TIME_LIMIT
    return 0 if any(cost is not None for cost in costs) else EXIT_NO


@contextmanager
def progress_text(common: Common) -> Iterator[SayHook]:
    """A hook for what is being done: a live line on a terminal, a line each with -v, else nothing."""
    if not common.show_progress:
        yield common.detail if common.progress else (lambda _: None)
        return
    from rich.text import Text

    with common.console(stderr=True).status("preparing …") as status:
        yield lambda text: status.update(Text(f"solving: {text}"))
