"""The contract of the adapter: status, bound, gap and values as HiGHS has them, on both generations of PuLP."""

import gc
import math
import random
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import highspy
import pulp
import pytest

from optimizer.errors import SolverError
from optimizer.model.rows import Columns, Row, row
from optimizer.solver import milp
from optimizer.solver.milp import LinearModel, Progress, Solution, SolverSettings, relative_gap, solve_model

Terms = list[tuple[int, float]]
PROVEN = SolverSettings(gap=0)


def model(
    columns: Sequence[tuple[float | None, bool]], rows: Sequence[tuple[Terms, str, float]], prices: dict[int, float],
    **more: Any,
) -> LinearModel:  # fmt: skip
    """Columns (upper bound, whole), rows (terms, sense, right-hand side), prices to minimise."""
    made = Columns()
    for number, (upper, integer) in enumerate(columns):
        made.add("x", (number,), upper=upper, integer=integer)
    listed = [row("row", (i,), terms, sense, rhs, "units") for i, (terms, sense, rhs) in enumerate(rows)]
    return LinearModel(made, listed, prices, **more)


def hard(seed: int = 1) -> LinearModel:
    """Easy to plan, hard to prove: five equations over 45 binaries, the misses priced (market split)."""
    draw = random.Random(seed)
    rows: list[tuple[Terms, str, float]] = []
    for i in range(5):
        weights = [float(draw.randrange(100)) for _ in range(45)]
        misses = [(45 + 2 * i, 1.0), (46 + 2 * i, -1.0)]
        rows.append(([*enumerate(weights), *misses], "=", float(sum(weights) // 2)))
    columns = [(1.0, True)] * 45 + [(None, False)] * 10
    return model(columns, rows, {j: 1.0 for j in range(45, 55)}, constant=100.0)


def test_optimal() -> None:
    """A proven optimum has whole values, the constant in its cost, and a gap of 0."""
    found = solve_model(model([(None, True)], [([(0, 2.0)], ">=", 3.0)], {0: 5.0}, constant=7.0), PROVEN)
    assert (found.status, found.values, found.objective, found.bound, found.gap) == ("optimal", (2.0,), 17.0, 17.0, 0.0)


def test_b091_infeasible_has_no_values_and_no_cost() -> None:
    """x ≥ 3 and x ≤ 2: no plan, no cost; never "0 GPUs, cost 0"."""
    found = solve_model(model([(None, False)], [([(0, 1.0)], ">=", 3.0), ([(0, 1.0)], "<=", 2.0)], {0: 1.0}), PROVEN)
    assert (found.status, found.values) == ("infeasible", ())
    assert math.isnan(found.objective)
    assert math.isnan(found.bound)


def test_infeasible_with_whole_numbers_only() -> None:
    """2x = 3 has a solution, but none that is whole."""
    found = solve_model(model([(5.0, True)], [([(0, 2.0)], "=", 3.0)], {0: 1.0}), PROVEN)
    assert (found.status, found.values) == ("infeasible", ())


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("rows", [[], [([(0, 1.0)], ">=", 3.0)]], ids=["no rows", "a row"])
def test_case_27c_unbounded_is_an_error_of_the_model(integer: bool, rows: list[tuple[Terms, str, float]]) -> None:
    """Savings without end mean a missing price; "unbounded or infeasible" is not taken for infeasible."""
    with pytest.raises(SolverError, match="unbounded"):
        solve_model(model([(None, integer)], rows, {0: -1.0}), PROVEN)


def test_time_limit_without_a_plan() -> None:
    """No time, no plan: no values, no cost, and no claim of infeasibility."""
    found = solve_model(hard(), SolverSettings(gap=0, time_limit_s=0.0))
    assert (found.status, found.values) == ("no_solution", ())
    assert math.isnan(found.objective)


def test_b090_time_limit_with_a_plan() -> None:
    """The best plan so far is feasible, not optimal; bound ≤ cost, and the gap lies between them."""
    found = solve_model(hard(), SolverSettings(gap=0, time_limit_s=0.5))
    assert found.status == "feasible"
    assert len(found.values) == 55
    assert 100.0 <= found.bound < found.objective
    assert found.gap == pytest.approx((found.objective - found.bound) / found.objective)
    assert not found.interrupted


def test_ctrl_c_keeps_the_best_plan() -> None:
    """Ctrl-C while solving stops the search and returns the plan at hand, marked."""
    found = solve_model(hard(), SolverSettings(gap=0, time_limit_s=30.0), on_incumbent=lambda _values, _cost: press())
    assert (found.status, found.interrupted) == ("feasible", True)
    assert len(found.values) == 55


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_works_as_before_afterwards() -> None:
    """The handler of the caller is put back."""
    before = signal.getsignal(signal.SIGINT)
    solve_model(model([(None, True)], [([(0, 1.0)], ">=", 1.0)], {0: 1.0}), PROVEN)
    assert signal.getsignal(signal.SIGINT) is before


def test_solves_outside_the_main_thread() -> None:
    """Threads other than the main one may solve too (they get no signals)."""
    found: list[Solution] = []
    small = model([(None, True)], [([(0, 1.0)], ">=", 1.0)], {0: 1.0})
    thread = threading.Thread(target=lambda: found.append(solve_model(small, PROVEN)))
    thread.start()
    thread.join()
    assert found[0].values == (1.0,)


def test_progress_and_better_plans_are_reported() -> None:
    """Bounds come from below and costs from above; the last plan reported is the one returned."""
    seen: list[Progress] = []
    costs: list[float] = []
    found = solve_model(
        hard(),
        SolverSettings(gap=0, time_limit_s=0.5),
        on_progress=seen.append,
        on_incumbent=lambda values, cost: costs.append(cost) if len(values) == 55 else None,
    )
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(found.objective)
    assert seen
    for one in seen:
        assert one.bound is None or one.bound <= found.objective + 1e-6
        assert one.best is None or one.best >= found.bound - 1e-6


@pytest.mark.parametrize("hook", ["on_progress", "on_incumbent"])
def test_a_failing_hook_is_not_swallowed(hook: str) -> None:
    """What goes wrong in a callback reaches the caller as it was raised."""

    def fail(*_: object) -> None:
        msg = "disk full"
        raise OSError(msg)

    with pytest.raises(OSError, match="disk full"):
        solve_model(hard(), SolverSettings(gap=0, time_limit_s=5.0), **{hook: fail})  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [1.0, 1e-12, 1e-15, 1e-18, 1e-21])
def test_case_01_flop_or_any_other_unit(factor: float) -> None:
    """B079: 4.2e23 FLOP at 3.6928e20 each need 1,138 GPUs in any unit: rows are scaled by their right-hand side."""
    found = solve_model(
        model([(100_000.0, True)], [([(0, 3.6928e20 * factor)], ">=", 4.2e23 * factor)], {0: 1.0}), PROVEN
    )
    assert (found.values, found.objective) == ((1138.0,), 1138.0)


@pytest.mark.parametrize(
    "unsafe",
    [
        Row("raw", ("a",), ((0, 3.6928e20),), ">=", 4.2e23, "FLOP"),
        Row("raw", ("a",), ((0, 1.0),), ">=", 1e20, "FLOP"),
        Row("raw", ("a",), ((0, math.nan),), ">=", 1.0, "FLOP"),
        Row("raw", ("a",), ((0, 1.0),), "<=", math.inf, "FLOP"),
    ],
    ids=["coefficient", "right-hand side", "NaN", "infinity"],
)
def test_numbers_outside_the_safe_range_are_refused(unsafe: Row) -> None:
    """A row that HiGHS would drop or bend is refused by name before it is solved."""
    refused = model([(None, True)], [], {0: 1.0})
    refused.rows = [unsafe]
    with pytest.raises(SolverError, match="raw__a"):
        solve_model(refused, PROVEN)


@pytest.mark.parametrize("price", [math.inf, math.nan, 1e16])
def test_b089_prices_outside_the_safe_range_are_refused(price: float) -> None:
    """An infinite price is no way to forbid an option."""
    with pytest.raises(SolverError, match="price of x__0"):
        solve_model(model([(None, True)], [([(0, 1.0)], ">=", 1.0)], {0: price}), PROVEN)


def test_b098_a_variable_in_no_row_keeps_its_bounds() -> None:
    """Variables that no row and no price names come back at a bound, not as None; order of columns is kept."""
    rows: list[tuple[Terms, str, float]] = [([(2, 1.0)], ">=", 2.0)]
    found = solve_model(model([(4.0, True), (5.0, False), (None, True)], rows, {1: -1.0, 2: 1.0}), PROVEN)
    assert found.values[1:] == (5.0, 2.0)
    assert 0.0 <= found.values[0] <= 4.0


def test_b096_lower_and_upper_bound_both_hold() -> None:
    """2 ≤ x ≤ 5, least x: 2."""
    rows: list[tuple[Terms, str, float]] = [([(0, 1.0)], ">=", 2.0), ([(0, 1.0)], "<=", 5.0)]
    assert solve_model(model([(None, False)], rows, {0: 1.0}), PROVEN).values == (2.0,)


def test_a_whole_variable_keeps_its_upper_bound() -> None:
    """An upper bound of 5 is not read as that of a binary."""
    assert solve_model(model([(5.0, True)], [], {0: -1.0}), PROVEN).values == (5.0,)


def test_b100_large_values_are_not_rounded() -> None:
    """123,456,789 comes back whole: nothing passes through a text file."""
    assert solve_model(model([(123_456_789.0, True)], [], {0: -1.0}), PROVEN).values == (123_456_789.0,)


@pytest.mark.parametrize(("sense", "rhs", "status"), [("<=", 2, "optimal"), (">=", 2, "infeasible")])
def test_rows_without_variables_hold_or_do_not(sense: str, rhs: float, status: str) -> None:
    """A wish that nothing can serve (0 ≥ 2) makes a problem infeasible, with and without other variables."""
    assert solve_model(model([(None, True)], [([], sense, rhs)], {0: 1.0}), PROVEN).status == status
    assert solve_model(model([], [([], sense, rhs)], {}, constant=3.0), PROVEN).status == status


def test_b087_whole_values_are_whole() -> None:
    """min 2x + 3z, x + z ≥ 4.5, x ≤ 4.5 continuous: integers come back without the solver's dust."""
    rows: list[tuple[Terms, str, float]] = [([(0, 1.0), (1, 1.0)], ">=", 4.5)]
    found = solve_model(model([(None, False), (None, True)], rows, {0: 2.0, 1: 3.0}), PROVEN)
    assert found.objective == pytest.approx(9.0, rel=1e-6)
    assert found.values[1] == round(found.values[1])


def test_an_integer_far_from_whole_is_an_error() -> None:
    """Values are rounded in one place, and only where the solver meant a whole number."""
    with pytest.raises(SolverError, match=r"came back as 0\.5"):
        milp._whole(model([(None, True)], [], {}), [0.5])


def test_b083_a_fixed_fee_cannot_be_escaped() -> None:
    """Case 03: min 500 z + 2 n, n ≥ 3, n ≤ M z is 506 for the tight M and for a round one."""
    for big in (3.0, 10.0, 1e3, 1e6):
        rows: list[tuple[Terms, str, float]] = [([(0, 1.0)], ">=", 3.0), ([(0, 1.0), (1, -big)], "<=", 0.0)]
        assert solve_model(model([(None, False), (1.0, True)], rows, {0: 2.0, 1: 500.0}), PROVEN).objective == 506.0


def test_case_03_fees_with_tight_links() -> None:
    """Four offers with fees, links no larger than their caps: 249.7382, by enumeration of the 16 subsets."""
    draw = random.Random(0)
    fees = [draw.uniform(50, 500) for _ in range(4)]
    costs = [draw.uniform(0.5, 2) for _ in range(4)]
    caps = [draw.uniform(3, 9) for _ in range(4)]
    demand = draw.uniform(4, 12)
    rows: list[tuple[Terms, str, float]] = [([(j, 1.0) for j in range(4)], ">=", demand)]
    rows += [([(j, 1.0), (4 + j, -caps[j])], "<=", 0.0) for j in range(4)]
    columns = [(cap, False) for cap in caps] + [(1.0, True)] * 4
    found = solve_model(model(columns, rows, dict(enumerate([*costs, *fees]))), PROVEN)
    assert found.objective == pytest.approx(249.7382, abs=1e-4)


def test_b082_exclusive_slots() -> None:
    """min 10 d0 + 8 d1; z_i ≤ 1000 x_i; z_i + d_i = 1000; x0 + x1 ≤ 1: 8,000, not 10,000."""
    rows: list[tuple[Terms, str, float]] = [([(4, 1.0), (5, 1.0)], "<=", 1.0)]
    for i in (0, 1):
        rows += [([(2 + i, 1.0), (4 + i, -1000.0)], "<=", 0.0), ([(2 + i, 1.0), (i, 1.0)], "=", 1000.0)]
    columns = [(None, False)] * 4 + [(1.0, True)] * 2
    assert solve_model(model(columns, rows, {0: 10.0, 1: 8.0}), PROVEN).objective == pytest.approx(8000.0)


def test_the_scale_of_the_objective_changes_nothing() -> None:
    """Prices are divided on their way in and multiplied on their way out; bound and gap are in money."""
    for scale in (1e-3, 1.0, 1e5):
        found = solve_model(
            model([(None, True)], [([(0, 3.0)], ">=", 10.0)], {0: 250.0}, constant=-1.0, objective_scale=scale), PROVEN
        )
        assert (found.objective, found.bound) == (pytest.approx(999.0), pytest.approx(999.0))


def loaded(settings: SolverSettings) -> Any:
    """HiGHS as configured for a small model."""
    small = model([(None, True)], [([(0, 1.0)], ">=", 1.0)], {0: 1.0})
    return milp.load(small, small.arrays(), settings)


def test_settings_arrive() -> None:
    """Gap, absolute gap, time limit, threads and seed reach HiGHS as they were given."""
    highs = loaded(SolverSettings(gap=0.03, time_limit_s=12.5, threads=2, seed=7))
    wanted = {"mip_rel_gap": 0.03, "time_limit": 12.5, "threads": 2, "random_seed": 7}
    assert {name: highs.getOptionValue(name)[1] for name in wanted} == wanted
    exact = loaded(SolverSettings(gap=0))
    assert [exact.getOptionValue(name)[1] for name in ("mip_rel_gap", "mip_abs_gap")] == [0.0, 0.0]


def test_a_wide_gap_stops_early_and_says_so() -> None:
    """With 60 % of the whole cost allowed, what cannot be decided counts too: the search ends within the gap asked."""
    found = solve_model(hard(), SolverSettings(gap=0.6, time_limit_s=30.0))
    assert found.status == "optimal"
    assert 0.0 < found.gap <= 0.6


def test_the_gap_is_one_of_the_net_cost() -> None:
    """A resale value that cannot be decided (a negative constant) does not make a wide gap look narrow."""
    rows: list[tuple[Terms, str, float]] = [([(j, 7.0 + j) for j in range(6)], ">=", 40.0)]
    made = model([(3.0, True)] * 6, rows, dict.fromkeys(range(6), 1.0))
    proven = solve_model(made, PROVEN)
    made.constant = 1e-3 - proven.objective
    found = solve_model(made, SolverSettings(gap=0.3))
    assert found.gap <= 0.3
    assert found.objective == pytest.approx(1e-3, rel=1e-6)


def test_threads_may_differ_within_a_process() -> None:
    """HiGHS fixes its threads at the first solve of a process; the adapter starts them anew."""
    small = model([(None, True)], [([(0, 3.0)], ">=", 10.0)], {0: 1.0})
    answers = [solve_model(small, SolverSettings(gap=0, threads=n)).objective for n in (None, 1, 2, 1, 4, None)]
    assert answers == [4.0] * 6


def test_a_solved_model_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of solves in one process keep nothing of HiGHS alive."""
    seen: list[weakref.ref[Any]] = []
    load = milp.load

    def recorded(*given: Any) -> Any:
        highs = load(*given)
        seen.append(weakref.ref(highs))
        return highs

    monkeypatch.setattr(milp, "load", recorded)
    solve_model(model([(None, True)], [([(0, 3.0)], ">=", 10.0)], {0: 1.0}), PROVEN)
    gc.collect()
    assert [one() for one in seen] == [None]


def test_the_same_seed_gives_the_same_values() -> None:
    """One thread and one seed: the same plan among equals."""
    rows: list[tuple[Terms, str, float]] = [([(j, float(j % 3 + 1)) for j in range(12)], ">=", 17.5)]
    equal = model([(3.0, True)] * 12, rows, {j: float(j % 3 + 1) for j in range(12)})
    runs = {solve_model(equal, SolverSettings(gap=0, threads=1, seed=5)).values for _ in range(3)}
    assert len(runs) == 1


def test_nothing_is_printed() -> None:
    """Standard output belongs to the answer: not even the first solve of a process may print its banner there."""
    code = (
        "from optimizer.model.rows import Columns, row\n"
        "from optimizer.solver.milp import LinearModel, SolverSettings, solve_model\n"
        "columns = Columns(); columns.add('x', (), integer=True)\n"
        "made = LinearModel(columns, [row('r', (), [(0, 1.0)], '>=', 1.5, 'u')], {0: 1.0})\n"
        "assert solve_model(made, SolverSettings(gap=0)).values == (2.0,)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_names_of_any_text_reach_pulp() -> None:
    """Names that PuLP or the LP format would refuse, or take for one another, are told apart by number."""
    made = Columns()
    for name in ("a100-80", "a100+80", "ü", "-> [x]", "x" * 300, "__", "e9"):
        made.add(name, (), integer=True)
    rows = [row("row", (made.names[j],), [(j, 1.0)], ">=", float(j), "units") for j in range(len(made))]
    found = solve_model(LinearModel(made, rows, dict.fromkeys(range(len(made)), 1.0)), PROVEN)
    assert found.values == tuple(float(j) for j in range(len(made)))


def test_a_row_names_a_variable_once() -> None:
    """PuLP 3 keeps the last of two equal terms, PuLP 4 their sum: such a row is never made."""
    with pytest.raises(ValueError, match="twice"):
        row("row", (), [(0, 1.0), (0, 1.0)], ">=", 2.0, "units")


def test_b094_rows_hold_plain_floats() -> None:
    """A row has plain floats: a NumPy scalar left of `>=` can turn it into a truth value."""
    import numpy

    made = row("row", (), [(0, numpy.float32(2.0)), (1, 3)], ">=", numpy.float64(34.5), "units")
    assert all(type(c) is float for _, c in made.terms)
    assert type(made.rhs) is float


@pytest.mark.parametrize(
    ("cost", "bound", "gap"), [(100, 90, 0.1), (100, 100, 0), (0, 0, 0), (-50, -60, 0.2), (1e9, 1e9 - 0.5, 0)]
)
def test_relative_gap(cost: float, bound: float, gap: float) -> None:
    """(cost − bound) ÷ |cost|, and 0 for two numbers that are one but for rounding."""
    assert relative_gap(cost, bound) == pytest.approx(gap)


def lp_of(highs: Any) -> tuple[list[float], list[float], list[tuple[float, ...]], list[dict[int, float]]]:
    """Prices, upper bounds, rows' bounds and rows' coefficients as HiGHS holds them."""
    lp = highs.getLp()
    rows: list[dict[int, float]] = [{} for _ in range(lp.num_row_)]
    matrix = lp.a_matrix_
    by_row = matrix.format_ != highspy.MatrixFormat.kColwise
    for major in range(len(matrix.start_) - 1):
        for place in range(matrix.start_[major], matrix.start_[major + 1]):
            row, column = (major, matrix.index_[place]) if by_row else (matrix.index_[place], major)
            rows[row][column] = matrix.value_[place]
    bounds = list(zip(lp.row_lower_, lp.row_upper_, strict=True))
    return list(lp.col_cost_), list(lp.col_upper_), bounds, rows


def test_highs_gets_the_model_that_pulp_holds() -> None:
    """Prices, bounds, integrality, rows and coefficients of the arrays are those of PuLP's own export."""
    columns: list[tuple[float | None, bool]] = [(None, True), (7.0, False), (None, False), (1.0, True)]
    rows = [
        ([(0, 3.0), (1, -2.0)], "<=", 10.0),
        ([(2, 1e-3), (3, 5.0), (0, 1.0)], ">=", -4.0),
        ([(1, 1.0), (3, 2e5)], "=", 0.0),
    ]
    made = model(columns, rows, {0: 2.0, 3: -7.5}, objective_scale=4.0)
    highs = milp.load(made, made.arrays(), PROVEN)
    problem, variables = made.to_pulp()
    solver = pulp.HiGHS(msg=False, output_flag=False)
    solver.createAndConfigureSolver(problem)
    solver.buildSolverModel(problem)
    listed = problem.exported_variables() if milp.PULP_4 else problem.variables()
    assert [v.name for v in listed] == [v.name for v in variables]
    assert lp_of(highs) == lp_of(problem.solverModel)
    wanted = [highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous for _, whole in columns]
    assert list(highs.getLp().integrality_) == list(problem.solverModel.getLp().integrality_) == wanted


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_the_number_outside_the_safe_range_is_named(bad: float) -> None:
    """A coefficient, a right-hand side or a price: the row or variable is told."""
    good: tuple[Terms, str, float] = ([(0, 1.0)], "<=", 1.0)
    with pytest.raises(SolverError, match=r"^row \w+.* has a number outside the solver's safe range: "):
        model([(None, False)], [good, ([(0, bad)], "<=", 1.0)], {0: 1.0}).arrays()
    with pytest.raises(SolverError, match=r"^the price of .* is outside the solver's safe range: "):
        model([(None, False)], [good], {0: bad}).arrays()
