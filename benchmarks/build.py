"""Building a model of some 40,000 variables and 110,000 nonzeros, against plain PuLP's own time for the same rows.

    python benchmarks/build.py [RUNS]

"Ours" is everything from the instance to the model in HiGHS: variables, ledger, rows, cuts, checks, arrays, hand-over;
"build" is the part of it that makes variables, ledger, rows and cuts. "Plain" makes the same PuLP variables and rows
from ready lists, with `lpSum` and operators as the manual shows, and exports them; "fastest" does so by PuLP's quickest
constructor.
"""

import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pulp

from catalog import load_catalog
from optimizer.model.build import build
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.problem.names import canonical_names
from optimizer.solve import linear_model
from optimizer.solver.milp import PULP_4, LinearModel, SolverSettings, load

ROOT = Path(__file__).parent.parent


def large_problem() -> str:
    """The shipped platform over 57 months, without the fixed replica size and with more providers."""
    text = (ROOT / "problems" / "platform.yaml").read_text(encoding="utf-8")
    changes = {
        "horizon: {months: 12, periods: quarterly}": "horizon: {months: 57, periods: monthly}",
        "    gpus_per_replica: 2\n": "",
        "[cloud-b, lambda, crusoe]": "[cloud-b, lambda, crusoe, verda, runpod]",
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def plain_pulp(model: LinearModel, *, quickest: bool) -> None:
    """The same variables and rows with PuLP alone, exported to HiGHS."""
    problem = pulp.LpProblem("plain", pulp.LpMinimize)
    columns = model.columns
    variables = [
        problem.add_variable(f"x{i}", 0, columns.upper[i], pulp.LpInteger if columns.integer[i] else pulp.LpContinuous)
        for i in range(len(columns))
    ]
    listed = pulp.LpAffineExpression.from_list if PULP_4 else pulp.LpAffineExpression

    def expression(terms: Iterable[tuple[int, float]]) -> pulp.LpAffineExpression:
        if quickest:
            return listed([(variables[c], v) for c, v in terms])
        return pulp.lpSum(v * variables[c] for c, v in terms)

    problem.setObjective(expression(model.objective.items()))
    for number, row in enumerate(model.rows):
        left = expression(row.terms)
        bound = left <= row.rhs if row.sense == "<=" else left >= row.rhs if row.sense == ">=" else left == row.rhs
        problem.addConstraint(bound, f"r{number}")
    export(problem)


def export(problem: pulp.LpProblem) -> None:
    """Hand the model to HiGHS."""
    solver = pulp.HiGHS(msg=False, output_flag=False)
    solver.createAndConfigureSolver(problem)
    solver.buildSolverModel(problem)


def main() -> None:
    """Print sizes, medians and the ratio."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    catalog = load_catalog()
    problem = canonical_names(parse_problem(large_problem(), "large.yaml").problem, catalog)
    instance = prepare(problem, catalog).instance()
    times: dict[str, list[float]] = {"ours": [], "build": [], "plain": [], "fastest": []}
    for _ in range(runs):
        started = time.process_time()
        model = linear_model(build(instance))
        times["build"].append(time.process_time() - started)
        load(model, model.arrays(), SolverSettings())
        times["ours"].append(time.process_time() - started)
        for name, quickest in (("plain", False), ("fastest", True)):
            started = time.process_time()
            plain_pulp(model, quickest=quickest)
            times[name].append(time.process_time() - started)
    nonzeros = sum(len(row.terms) for row in model.rows)
    print(f"PuLP {pulp.__version__}: {len(model.columns):,} variables, {len(model.rows):,} rows, {nonzeros:,} nonzeros")
    for name, found in times.items():
        ratio = statistics.median(o / p for o, p in zip(times["ours"], found, strict=True))
        print(f"{name:8} {statistics.median(found):.2f} s of CPU; ours ÷ {name} {ratio:.2f}")


if __name__ == "__main__":
    main()
