"""Time and cost of the sliced formulation of Mélange (arXiv 2404.14527) against the model of gpumix.

The paper cuts every bucket of requests into equal slices, gives each slice to one GPU type by a binary variable, and
counts whole machines whose time covers the slices given to their type. It is written here from that description and
solved by CBC (comes with PuLP 3, so on Python 3.11) and by HiGHS, both at gap 0 on one thread. gpumix splits buckets
freely and solves to gap 0. Seconds are CPU seconds, all in one run on one machine: of the slices those inside the
solver, of gpumix those of its whole search, from built rows to a plan. Below 2 s they are medians of five.

    python benchmarks/peer.py [--cap 60] [--factors 4,8] [--solvers cbc,highs] [INSTANCE …]
"""

import argparse
import logging
import math
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import highspy
import pulp

from catalog import load_catalog
from optimizer.convert.melange import MelangeInstance, read_melange
from optimizer.convert.problem_file import problem_text
from optimizer.model.build import build
from optimizer.prepare import prepare
from optimizer.problem.load import parse_problem
from optimizer.solve import linear_model
from optimizer.solver.known_start import solve_from_start
from optimizer.solver.milp import LinearModel, SolverSettings

DATA = Path(__file__).parents[1] / "tests" / "convert" / "data"
GOAL = 50
REPEATS = 5
LONG_S = 2.0
CBC_RESOLUTION_S = 0.01
CBC_SECONDS = re.compile(r"Total time \(CPU seconds\):\s*(\S+)")
NO_SOLUTION = 1e29


@dataclass(frozen=True)
class Run:
    """What a solver made of an instance. `cost` is infinite without a solution."""

    seconds: float
    cost: float
    proven: bool
    variables: int


def sliced(instance: MelangeInstance, factor: int) -> pulp.LpProblem:
    """The paper's model: slices to types (binary), machines per type (whole), least price per hour."""
    problem = pulp.LpProblem("sliced", pulp.LpMinimize)
    machines = [
        problem.add_variable(f"machines_{g}", 0, gpu.most, pulp.LpInteger) for g, gpu in enumerate(instance.gpus)
    ]
    problem.setObjective(pulp.lpSum(gpu.price_per_hour * n for gpu, n in zip(instance.gpus, machines, strict=True)))
    busy: list[list[tuple[pulp.LpVariable, float]]] = [[] for _ in instance.gpus]
    for i, j in instance.buckets:
        load = instance.requests_per_s * instance.shares[i][j] / factor
        for part in range(factor):
            given = []
            for g, gpu in enumerate(instance.gpus):
                if gpu.requests_per_s[i][j] > 0:
                    chosen = problem.add_variable(f"given_{i}_{j}_{part}_{g}", 0, 1, pulp.LpInteger)
                    busy[g].append((chosen, load / gpu.requests_per_s[i][j]))
                    given.append(chosen)
            problem += pulp.lpSum(given) == 1
    for count, parts in zip(machines, busy, strict=True):
        problem += pulp.lpSum(time * chosen for chosen, time in parts) <= count
    return problem


def by_cbc(problem: pulp.LpProblem, cap: float) -> Run:
    """CPU seconds as CBC's own log gives them, to 0.01 s: writing and reading its files do not count."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "cbc.log"
        problem.solve(
            pulp.PULP_CBC_CMD(msg=False, timeLimit=cap, timeMode="cpu", threads=1, gapRel=0, logPath=str(log))
        )
        text = log.read_text(encoding="utf-8")
    values = [variable.varValue for variable in problem.variables()]
    cost = pulp.value(problem.objective) if all(value is not None for value in values) else math.inf
    seconds = max(float(CBC_SECONDS.findall(text)[-1]), CBC_RESOLUTION_S / 2)
    return Run(seconds, cost, "Optimal solution found" in text, len(values))


def by_highs(problem: pulp.LpProblem, cap: float) -> Run:
    """CPU seconds inside HiGHS: handing the model over does not count."""
    solver = pulp.HiGHS(msg=False, threads=1, gapRel=0, gapAbs=0.0, output_flag=False)
    solver.createAndConfigureSolver(problem)
    solver.buildSolverModel(problem)
    highs = problem.solverModel
    started = time.process_time()

    def stop(_kind: Any, _message: str, _out: Any, data_in: Any, _user: Any) -> None:
        if time.process_time() - started > cap:
            data_in.user_interrupt = True

    highs.setCallback(stop, None)
    highs.startCallback(highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
    highs.run()
    seconds = time.process_time() - started
    highs.setCallback(None, None)
    info, status = highs.getInfo(), highs.modelStatusToString(highs.getModelStatus())
    cost = info.objective_function_value if abs(info.objective_function_value) < NO_SOLUTION else math.inf
    return Run(seconds, cost, status == "Optimal", highs.getNumCol())


def ours(instance: MelangeInstance) -> Run:
    """Median of a few runs of our search at gap 0, all of it: reading the rows into arrays too."""
    catalog = load_catalog()
    problem = parse_problem(problem_text(instance, "instance"), catalog=catalog).problem
    model = linear_model(build(prepare(problem, catalog).instance()))
    return median(lambda: _ours(model))


def _ours(model: LinearModel) -> Run:
    started = time.process_time()
    found = solve_from_start(model, SolverSettings(gap=0))
    return Run(time.process_time() - started, found.objective, found.status == "optimal", len(model.columns))


def median(run: Callable[[], Run]) -> Run:
    """The middle one of a few runs; the first alone if it takes long."""
    first = run()
    if first.seconds > LONG_S:
        return first
    return sorted([first, *(run() for _ in range(REPEATS - 1))], key=lambda one: one.seconds)[REPEATS // 2]


SOLVERS = {"cbc": by_cbc, "highs": by_highs}


def _sliced(solver: Callable[[pulp.LpProblem, float], Run], instance: MelangeInstance, factor: int, cap: float) -> Run:
    return solver(sliced(instance, factor), cap)


def solvers_here(wanted: list[str]) -> list[str]:
    """Those of the solvers that this Python has."""
    there = {"cbc": hasattr(pulp, "PULP_CBC_CMD") and pulp.PULP_CBC_CMD(msg=False).available(), "highs": True}
    return [name for name in wanted if there[name]]


def compared(path: Path, factors: list[int], solvers: list[str], cap: float) -> Iterator[tuple[str, float, bool]]:
    """Print a line per instance, factor and solver; give solver, ratio of seconds, whether our cost is not above."""
    instance = read_melange(path.read_text(encoding="utf-8"), path.name)
    own = ours(instance)
    print(f"{path.stem:20} gpumix      {own.seconds:9.4f} s {own.cost:10.3f}  {own.variables:6} variables", flush=True)
    for factor in factors:
        for name in solvers:
            run = median(partial(_sliced, SOLVERS[name], instance, factor, cap))
            ratio = run.seconds / own.seconds
            above = "" if math.isinf(run.cost) else f" (+{100 * (run.cost / own.cost - 1):.2f} %)"
            ended = "proven" if run.proven else "stopped"
            print(
                f"{'':20} {name:5} × {factor:2}  {run.seconds:9.4f} s {run.cost:10.3f}{above}  "
                f"{run.variables:6} variables, {ended}; ratio {ratio:.1f}",
                flush=True,
            )
            yield f"{name} × {factor}", ratio, own.cost <= run.cost * (1 + 1e-6)


def main() -> None:
    """Compare on all packaged instances, or those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instances", nargs="*", metavar="INSTANCE", help="names of files in tests/convert/data")
    parser.add_argument("--cap", type=float, default=60.0, help="CPU seconds for each solve of the slices")
    parser.add_argument("--factors", default="4,8")
    parser.add_argument("--solvers", default="cbc,highs")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    solvers = solvers_here(asked.solvers.split(","))
    names = asked.instances or sorted(path.stem for path in DATA.glob("*.json"))
    found = [
        one
        for name in names
        for one in compared(DATA / f"{name}.json", [int(x) for x in asked.factors.split(",")], solvers, asked.cap)
    ]
    print(f"PuLP {pulp.__version__}, cap {asked.cap:g} s, {len(names)} instances")
    for label in dict.fromkeys(label for label, _, _ in found):
        print(f"{label}: geometric mean of the ratios {geometric([r for one, r, _ in found if one == label]):.1f}")
    print(f"all: {geometric([ratio for _, ratio, _ in found]):.1f} (goal {GOAL})")
    print(f"cost never above: {all(fine for _, _, fine in found)}")


def geometric(ratios: list[float]) -> float:
    """Geometric mean."""
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


if __name__ == "__main__":
    main()
