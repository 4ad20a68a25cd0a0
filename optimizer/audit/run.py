"""The audit of a plan file: everything re-derived from what the file embeds, without solver and model-building code."""

from pathlib import Path
from typing import Any

from catalog import Catalog, load_catalog
from optimizer.audit.assumptions import check_assumptions
from optimizer.audit.billing import check_steps
from optimizer.audit.case import Case
from optimizer.audit.constraints import check_constraints
from optimizer.audit.document import Answer, PlanDocument, read_answer
from optimizer.audit.estimates import check_estimates
from optimizer.audit.fleet import check_fleet, check_limits
from optimizer.audit.grid import check_grid
from optimizer.audit.infeasibility import check_infeasibility
from optimizer.audit.jobs import check_jobs, workings
from optimizer.audit.ledger import check_budgets, check_ledger, derive_ledger
from optimizer.audit.left_out import allowed_offers, check_left_out
from optimizer.audit.references import check_references, embedded_problem
from optimizer.audit.report import AuditReport, Checker
from optimizer.audit.services import check_services, stations
from optimizer.audit.sources import CatalogRows, check_sources
from optimizer.audit.spare import check_spare
from optimizer.audit.start_up import check_start_up
from optimizer.audit.summaries import check_summaries
from optimizer.audit.supply import check_supply
from optimizer.errors import ProblemFileError
from optimizer.problem.price_files import catalog_of_plan
from optimizer.problem.schema import Problem

PLAN_STATUSES = ("optimal", "feasible")
NO_PLAN_STATUSES = ("infeasible", "no_plan")


def audit_plan(
    document: dict[str, Any], problem_file: Path | None = None, catalog: Catalog | None = None
) -> AuditReport:
    """Audit a plan file (`plan.read_plan`); with `problem_file`, also compare that file with the embedded problem.

    `catalog` is the package's by default; a plan made with another version of it is checked without its rows.

    Raises
    ------
    ProblemFileError
        If `problem_file` cannot be read.
    """
    checker = Checker()
    status = str(document.get("status"))
    kind = PlanDocument if status in PLAN_STATUSES else Answer
    answer = read_answer(document, kind, checker)
    if answer is not None:
        rows = CatalogRows(answer.catalog_version, *catalog_of_plan(document, catalog or load_catalog()))
        check_sources(answer, problem_file, rows, checker)
        try:
            _check_answer(answer, rows, checker)
        except (ArithmeticError, ValueError, LookupError, StopIteration) as error:
            checker.fail("plan", "plan", f"holds figures that nothing can be derived from ({error!r})")
    return checker.report(str(document.get("problem")), status)


def _check_answer(answer: Answer, rows: CatalogRows, checker: Checker) -> None:
    problem = _problem_of(answer, checker)
    if problem is None:
        return
    offers = check_supply(answer, problem, rows, checker)
    allowed = allowed_offers(answer, problem, rows, offers)
    check_left_out(answer, problem, rows, offers, allowed, checker)
    anew = check_estimates(answer, problem, rows, allowed, checker)
    check_assumptions(answer, problem, rows, anew, checker)
    grid_holds = check_grid(answer, problem, checker)
    if not isinstance(answer, PlanDocument):
        _check_no_plan(answer, problem, checker)
    elif grid_holds:
        _check_plan(Case(answer, problem), checker)
    else:
        checker.notice("grid", "grid", "the rest was not checked: everything rests on the time grid")


def _problem_of(answer: Answer, checker: Checker) -> Problem | None:
    try:
        return embedded_problem(answer.inputs.problem)
    except ProblemFileError as error:
        for finding in error.findings:
            checker.fail("structure", f"inputs.problem.{finding.path}", finding.message)
    return None


def _check_no_plan(answer: Answer, problem: Problem, checker: Checker) -> None:
    check_infeasibility(answer, problem, checker)
    known = answer.status in NO_PLAN_STATUSES
    message = f"there is no plan to audit (status {answer.status})" if known else f"unknown status {answer.status}"
    checker.fail("plan", "status", message)


def _check_plan(case: Case, checker: Checker) -> None:
    if not check_references(case, checker):
        checker.notice("references", "schedule", "the rest was not checked: entries lead nowhere")
        return
    serving = stations(case)
    works = workings(case, checker)
    check_services(case, serving, checker)
    check_start_up(case, serving, checker)
    check_spare(case, serving, checker)
    check_jobs(case, works, serving, checker)
    check_fleet(case, serving, works, checker)
    check_limits(case, works, checker)
    check_steps(case, works, checker)
    lines = derive_ledger(case, serving, works)
    check_ledger(case, lines, checker)
    check_budgets(case, lines, checker)
    check_summaries(case, serving, works, lines, checker)
    check_constraints(case, serving, works, lines, checker)
