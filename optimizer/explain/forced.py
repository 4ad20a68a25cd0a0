"""Re-solving the problem of a plan file with a GPU type forced: by how much it is dearer."""

from catalog import Catalog
from optimizer.explain.gpus import Forced, ForceHook
from optimizer.explain.reading import Record
from optimizer.problem.load import problem_from_json
from optimizer.problem.schema import Problem
from optimizer.report.infeasible import shortfall_line
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings


def force_with(document: Record, catalog: Catalog, settings: SolverSettings) -> ForceHook:
    """A hook that re-solves the problem in a plan document with some of its workloads restricted to one GPU type."""
    problem = problem_from_json(document["inputs"]["problem"])

    def force(gpu: str, workloads: list[str]) -> Forced:
        plan = solve(restricted(problem, gpu, workloads), catalog, settings)
        cost = plan.cost
        short = "" if plan.status != "infeasible" else shortfall_line(plan.document())
        notes = _catalog_note(document, catalog)
        if cost is None:
            return Forced(plan.status, short=short, notes=notes)
        return Forced(plan.status, cost.npv, plan.document()["cost"]["gap"], notes=notes)

    return force


def restricted(problem: Problem, gpu: str, workloads: list[str]) -> Problem:
    """The problem with the named workloads allowed on one GPU type only."""
    changed = [w.model_copy(update={"gpus": [gpu]}) if w.name in workloads else w for w in problem.workloads]
    return problem.model_copy(update={"workloads": changed})


def _catalog_note(document: Record, catalog: Catalog) -> tuple[str, ...]:
    if document["catalog_version"] == catalog.version:
        return ()
    return (
        f"the plan was made with catalog {document['catalog_version']}, the re-solve with {catalog.version}: part of "
        "the difference may be prices",
    )
