"""`gpumix explain`: where a number of a plan comes from, what binds, why not GPU X."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optimizer.cli.common import CatalogDirectory, Common, with_common_options
from optimizer.cli.output import check_outputs, write_answer
from optimizer.cli.search import Threads, TimeLimit
from optimizer.errors import Finding, ProblemFileError
from optimizer.plan import read_plan
from optimizer.report.explain import explanation_csv, explanation_sections, table_csv

if TYPE_CHECKING:
    from catalog import Catalog
    from optimizer.explain.gpus import Forced, ForceHook
    from optimizer.explain.resolves import Resolves

PlanFile = Annotated[str, typer.Argument(metavar="PLAN", help="Plan file (gpumix solve FILE --plan plan.json).")]
What = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WHAT]...",
        help="A number (cost.npv, opex, energy), an offer or a GPU (why not X), a workload, limits, use, bottlenecks, "
        "bindings, assumptions.",
    ),
]


@with_common_options
def explain(
    plan: PlanFile,
    common: Common,
    what: What = None,
    resolve: Annotated[
        bool, typer.Option("--resolve/--no-resolve", help="Re-solve for limits, offers and GPUs.")
    ] = True,
    time_limit: TimeLimit = None,
    threads: Threads = None,
    catalog: CatalogDirectory = None,
) -> None:
    """Trace a number of a plan to prices and formulas; say what binds, and why a GPU is not in it.

    Without WHAT: costs by term, what binds, use, rejections, and what else can be asked. Re-solves say what one unit
    more of a limit saves (limits), what an offer or a GPU would cost, and the price at which it would enter the plan.
    """
    check_outputs({"--out": common.out}, {"the plan file": plan})
    from catalog.load import load_catalog
    from optimizer.explain.explanation import explain as explain_plan
    from optimizer.problem.price_files import catalog_of_plan

    document = read_plan(Path(plan))
    with contradictions_told(plan):
        stock, _ = catalog_of_plan(document, load_catalog(catalog))
        force = _force(document, stock, time_limit, threads, common) if resolve else None
        found = explain_plan(
            document,
            " ".join(what or ()) or None,
            force=force,
            resolves=_resolves(document, stock, time_limit, threads) if resolve else None,
            gpu_name=stock.gpu_candidates,
            plan_file=plan,
        )
    sections = explanation_sections(
        found.problem,
        found.answer,
        depth=found.depth,
        ask_next=found.ask_next,
        plan_file=plan,
        tables=found.tables,
    )
    text = table_csv(found.tables[0]) if found.tables else explanation_csv(found.answer)
    write_answer(found.document(), sections, text, common)


def _resolves(
    document: dict[str, Any], catalog: "Catalog", time_limit: float | None, threads: int | None
) -> "Resolves":
    from optimizer.explain.resolves import Resolves
    from optimizer.solver.milp import SolverSettings

    gap = document["inputs"]["settings"]["gap"]
    return Resolves(document, SolverSettings(gap=gap, time_limit_s=time_limit, threads=threads), catalog)


@contextmanager
def contradictions_told(plan: str) -> Iterator[None]:
    """Where a plan file was edited, its parts may lead nowhere: that is a fault of the file, and is said so.

    Raises
    ------
    ProblemFileError
        In place of a failed look-up or sum, if the audit finds the file wrong; the error itself otherwise.
    """
    try:
        yield
    except (ArithmeticError, LookupError, StopIteration, TypeError, ValueError) as error:
        if not _audit_fails(Path(plan)):
            raise
        hint = f"see what does not hold: gpumix audit {plan}; or solve again"
        message = f"its parts contradict each other ({type(error).__name__}: {error})"
        raise ProblemFileError([Finding(message, file=plan, hint=hint)]) from error


def _audit_fails(plan: Path) -> bool:
    from optimizer.audit import audit_plan

    try:
        return not audit_plan(read_plan(plan)).ok
    except Exception:  # the audit trips over the file as well
        return True


def _force(
    document: dict[str, Any], catalog: "Catalog", time_limit: float | None, threads: int | None, common: Common
) -> "ForceHook":
    """Re-solves only when it is asked to, with the gap of the plan."""

    def force(gpu: str, workloads: list[str]) -> "Forced":
        from optimizer.explain.forced import force_with
        from optimizer.solver.milp import SolverSettings

        gap = document["inputs"]["settings"]["gap"]
        settings = SolverSettings(gap=gap, time_limit_s=time_limit, threads=threads)
        if common.show_progress:
            with common.console(stderr=True).status(f"re-solving with {gpu} …"):
                return force_with(document, catalog, settings)(gpu, workloads)
        return force_with(document, catalog, settings)(gpu, workloads)

    return force
