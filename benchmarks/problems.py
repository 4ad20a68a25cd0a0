"""Every shipped problem at gap 0: seconds in HiGHS and around it, and the size of its model.

python benchmarks/problems.py
"""

import time
from pathlib import Path

from catalog import load_catalog
from optimizer.model.build import build
from optimizer.prepare import prepare
from optimizer.problem.load import load_problem
from optimizer.problem.names import canonical_names
from optimizer.solve import linear_model, solve
from optimizer.solver.milp import SolverSettings, solve_model

ROOT = Path(__file__).parent.parent


def main() -> None:
    """One line per problem: total without imports, of which inside HiGHS."""
    print(f"{'problem':32} {'status':10} {'total s':>8} {'outside HiGHS s':>16} {'variables':>10} {'rows':>8}")
    for path in sorted((ROOT / "problems").glob("*.yaml")):
        started = time.perf_counter()
        catalog = load_catalog()
        problem = canonical_names(load_problem(path).problem, catalog)
        plan = solve(problem, catalog, SolverSettings(gap=0))
        total = time.perf_counter() - started
        model = linear_model(build(prepare(problem, catalog).instance()))
        started = time.perf_counter()
        inside = solve_model(model, SolverSettings(gap=0)).seconds
        outside = f"{total - inside:16.2f}" if plan.status == "optimal" else f"{'(diagnosis)':>16}"
        size = f"{plan.model['variables']:10,} {plan.model['rows']:8,}"
        print(f"{path.stem:32} {plan.status:10} {total:8.2f} {outside} {size}")


if __name__ == "__main__":
    main()
