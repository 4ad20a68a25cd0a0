"""Why there is no plan: every limit that is enough alone, with what it costs, or a set that is enough together."""

from catalog import load_catalog
from optimizer.plan import Shortfall
from optimizer.problem.load import parse_problem
from optimizer.solve import solve
from optimizer.solver.milp import SolverSettings

TEXT = """
name: ten units
horizon: {{months: 1, periods: once}}
gpus: {{A10: {{}}, L20: {{}}}}
workloads:
  - {{name: s, kind: service, traffic: {{mean_requests_per_s: 10}}}}
measurements:
  - {{workload: s, gpu: A10, requests_per_s: 1}}
  - {{workload: s, gpu: L20, requests_per_s: 3}}
options:
  catalog: false
  quotes:
    - {{name: a10, gpu: A10, purchase: on-demand, price: 1.00 USD/h, max_nodes: {a10}}}
    - {{name: l20, gpu: L20, purchase: on-demand, price: 2.70 USD/h, max_nodes: {l20}}}
limits: {limits}
"""


def shortfalls(a10: int, l20: int, limits: str = "{}") -> list[Shortfall]:
    problem = parse_problem(TEXT.format(a10=a10, l20=l20, limits=limits)).problem
    plan = solve(problem, load_catalog(), SolverSettings(gap=0))
    assert plan.status == "infeasible"
    return list(plan.infeasibility)


def test_each_limit_that_is_enough_alone_is_listed_cheapest_first() -> None:
    """6 + 3 of 10 units: one more L20 (9.40 per hour) or one more A10 (9.70 per hour); 1 unit stays unmet else."""
    found = shortfalls(6, 1)
    limits = [(s.index, s.short_by, s.alone, round(s.npv or 0)) for s in found if s.kind == "limit"]
    assert limits == [(["l20"], 1, True, round(9.40 * 730)), (["a10"], 1, True, round(9.70 * 730))]
    (unmet,) = [s for s in found if s.kind == "demand"]
    assert round(unmet.short_by, 6) == 1


def test_limits_that_are_not_enough_alone_are_listed_as_one_set() -> None:
    """Neither stock nor budget is enough alone: both are named, with one cost for all of them."""
    found = [s for s in shortfalls(3, 1, "{npv: 3_000, providers: {a10: {max_nodes: 3}, l20: {max_nodes: 1}}}")
             if s.kind == "limit"]  # fmt: skip
    assert len(found) > 1
    assert all(not s.alone and s.cheapest_fix is None for s in found)
    assert len({s.npv for s in found}) == 1
