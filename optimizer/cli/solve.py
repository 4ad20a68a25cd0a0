"""`gpumix solve`: the cheapest mix of GPUs, with its proof."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optimizer.cli import EXIT_INTERRUPTED
from optimizer.cli.common import CatalogDirectory, Common, ProblemFile, with_common_options
from optimizer.cli.output import check_outputs, check_spared, write_answer
from optimizer.cli.search import Gap, HowToSolve, Method, Threads, TimeLimit
from optimizer.report.forms import cost_lines_csv
from optimizer.report.infeasible import shortfall_line
from optimizer.report.numbers import money, percent
from optimizer.report.plan import plan_sections, status_line

if TYPE_CHECKING:
    from catalog import Catalog
    from optimizer.plan import Plan
    from optimizer.problem.load import LoadedProblem
    from optimizer.solver.milp import Progress

EXIT_NO = 1
EXIT_TIME_LIMIT = 3
SECONDS_BETWEEN_LINES = 5.0
"""Progress lines with -v where standard error is no terminal."""
ProgressHook = Callable[["Progress"], None]


@with_common_options
def solve(
    file: ProblemFile,
    common: Common,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="PLAN",
            envvar="GPUMIX_PLAN",
            help="Write the plan file (JSON), better plans as they come.",
        ),
    ] = None,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-4,
    threads: Threads = None,
    method: Method = HowToSolve.AUTO,
    catalog: CatalogDirectory = None,
) -> None:
    """Find the cheapest mix of GPUs that does all the work, with its proof; or say what stands in the way.

    Exit codes: 0 a plan within the gap; 1 infeasible; 2 bad input; 3 stopped by the time limit with a larger gap or
    without a plan; 130 interrupted (the best plan so far is printed and written).
    """
    check_outputs({"--plan": plan, "--out": common.out}, {"the problem file": file})
    run = _Run(file, plan, time_limit, gap, threads, method, catalog, common)
    found = run.solved()
    document = found.document()
    sections = plan_sections(
        document, plan_file=str(plan) if plan else None, problem_file="FILE" if file == "-" else file
    )
    write_answer(document, sections, cost_lines_csv(document), common)
    _tell(document, plan, common)
    if code := exit_code(found, gap):
        raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Run:
    """One call: what to solve, and how hard to try."""

    file: str
    plan_path: Path | None
    time_limit: float | None
    gap: float
    threads: int | None
    method: HowToSolve
    directory: Path | None
    common: Common

    def solved(self) -> "Plan":
        """Read, solve and write the plan file; every better plan on the way."""
        from catalog.load import load_catalog
        from optimizer.plan import write_plan
        from optimizer.problem.load import load_problem
        from optimizer.solve import solve as solve_problem
        from optimizer.solver.milp import SolverSettings

        started = time.monotonic()
        catalog = load_catalog(self.directory)
        loaded = load_problem(self.file, catalog)
        check_spared({"--plan": self.plan_path, "--out": self.common.out}, self.file, loaded)
        catalog = loaded.catalog or catalog
        settings = SolverSettings(self.gap, self.time_limit, self.threads, method=self.method.value)
        path = self.plan_path
        latest = _Latest()
        with _progress(self.common) as on_progress:
            plan = solve_problem(
                loaded.problem,
                catalog,
                settings,
                sources=_sources(loaded, catalog, self.directory),
                read_s=time.monotonic() - started,
                on_progress=latest.watched(on_progress),
                on_plan=None if path is None else lambda better: write_plan(latest.with_bound(better), path),
            )
        if path is not None:
            write_plan(plan, path)
        return plan


@dataclass(slots=True)
class _Latest:
    """The bound last proven, for plans written while the search goes on."""

    bound: float | None = None

    def watched(self, on_progress: ProgressHook | None) -> ProgressHook:
        """A hook that keeps the bound and passes the news on."""

        def hook(progress: "Progress") -> None:
            self.bound = progress.bound
            if on_progress is not None:
                on_progress(progress)

        return hook

    def with_bound(self, plan: "Plan") -> "Plan":
        """The plan with the bound known so far, where there is one."""
        from optimizer.solver.milp import relative_gap

        if plan.cost is None or self.bound is None:
            return plan
        bound = min(self.bound, plan.cost.npv)
        return replace(plan, cost=replace(plan.cost, bound=bound, gap=relative_gap(plan.cost.npv, bound)))


def exit_code(plan: "Plan", gap: float) -> int:
    """0 within the gap, 1 infeasible, 130 interrupted, 3 stopped by the limit."""
    if plan.status == "infeasible":
        return EXIT_NO
    if plan.status == "optimal" or (plan.cost is not None and plan.cost.gap <= gap):
        return 0
    return EXIT_INTERRUPTED if plan.interrupted else EXIT_TIME_LIMIT


def _sources(loaded: "LoadedProblem", catalog: "Catalog", directory: Path | None) -> dict[str, str]:
    """SHA-256 of the problem file, the files it names, and the catalog files that its answer rests on."""
    label = str(directory or "catalog")
    with_prices = loaded.problem.options.catalog
    used = {
        f"{label}/{name}": digest
        for name, digest in catalog.file_hashes().items()
        if with_prices or name in ("gpus.csv", "models.csv", "aliases.csv")
    }
    return {loaded.source.name: loaded.sha256, **dict(loaded.files), **used}


def _tell(document: dict[str, Any], plan: Path | None, common: Common) -> None:
    """What a reader of standard error should know."""
    if document["status"] == "infeasible":
        common.say(shortfall_line(document))
    elif document["status"] != "optimal":
        common.say(status_line(document))
    if plan is not None:
        common.detail(f"plan written to {plan}")


# --- progress ---------------------------------------------------------------------------------------------------------


@contextmanager
def _progress(common: Common) -> Iterator[ProgressHook | None]:
    """A live line on a terminal; a line every few seconds with -v; else nothing."""
    if common.show_progress:
        with _live_line(common) as hook:
            yield hook
    elif common.verbose and common.progress:
        yield _line_by_line(common)
    else:
        yield None


@contextmanager
def _live_line(common: Common) -> Iterator[ProgressHook]:
    from rich.live import Live

    line = _LiveLine()
    with Live(line, console=common.console(stderr=True), transient=True, refresh_per_second=4):
        yield line.show


class _LiveLine:
    """The last news and the seconds since the start, drawn again and again by rich."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.news = "preparing"

    def show(self, progress: "Progress") -> None:
        """Take in news of the search."""
        self.news = progress_line(progress)

    def __rich__(self) -> str:
        """The line as of now."""
        return f"{time.monotonic() - self.started:.0f} s  {self.news}"


def _line_by_line(common: Common) -> ProgressHook:
    last = -math.inf

    def hook(progress: "Progress") -> None:
        nonlocal last
        if progress.seconds - last >= SECONDS_BETWEEN_LINES:
            last = progress.seconds
            common.detail(f"{progress.seconds:.1f} s  {progress_line(progress)}")

    return hook


def progress_line(progress: "Progress") -> str:
    """`best 23,109.32  bound 22,950.00  gap 0.69 %  1,204 nodes`, or the stage of a large problem for the nodes."""
    best, bound, gap = money(progress.best), money(progress.bound), percent(progress.gap)
    return f"best {best}  bound {bound}  gap {gap}  {progress.stage or f'{progress.nodes:,} nodes'}"
