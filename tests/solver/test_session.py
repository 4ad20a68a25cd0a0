"""Sessions: every answer after a change is the one from scratch, whatever was solved before."""

import copy
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.model.build import build
from optimizer.model.constraints import FAMILIES
from optimizer.model.families.strengthening import CUTS
from optimizer.model.rebuild import LIMITS, rebuilt, touched
from optimizer.model.rows import Columns
from optimizer.prepare import prepare
from optimizer.solver.changes import ChangeError, Price
from optimizer.solver.milp import LinearModel, Solution, SolverSettings, load
from optimizer.solver.resolve import NEAR_A_PLAN
from optimizer.solver.session import Session
from tests.model.builders import (
    Data,
    check_solution,
    close,
    job,
    least_cost,
    on_demand,
    parsed,
    problem,
    reserved,
    serves,
    service,
    solved,
    the_catalog,
    works,
)
from tests.model.strategies import problems

EXACT = SolverSettings(gap=0)
DOCS = Path(__file__).parents[2] / "docs" / "solver.md"
Change = dict[str, dict[str, Any]]


def session(data: Data) -> Session:
    return Session(parsed(data), the_catalog(), EXACT)


def changed(data: Data, change: Change) -> Data:
    """The problem file with a change written into it by hand."""
    out = copy.deepcopy(data)
    for name, factor in change.get("prices", {}).items():
        offer = next(one for one in out["options"]["quotes"] if one["name"] == name)
        amount, _, per = str(offer["price"]).partition("/")
        offer["price"] = f"{float(amount) * factor!r}/{per}" if per else float(amount) * factor
        if "upfront" in offer:
            offer["upfront"] *= factor
    for key, value in change.get("limits", {}).items():
        if key.startswith("options.quotes."):
            offer = next(one for one in out["options"]["quotes"] if one["name"] == key.split(".")[2])
            offer.pop("max_nodes", None)
            offer |= {} if value is None else {"max_nodes": value}
        else:
            _, field, *name = key.split(".")
            holder = out["limits"][field] if name else out["limits"]
            holder.pop(name[0] if name else field, None)
            holder |= {} if value is None else {(name[0] if name else field): value}
    for name, factor in change.get("demand", {}).items():
        one = next(w for w in out["workloads"] if w["name"] == name)
        for entry in one.get("classes", ()):
            entry["requests_per_s"] *= factor
        if "work" in one:
            one["work"]["amount"] *= factor
    return out


@st.composite
def changes(draw: st.DrawFn, data: Data) -> Change:
    """A change of one kind, or of several at once, or none."""
    factors = st.sampled_from((0.5, 0.9, 1.1, 1.5, 3.0))
    found: Change = {}
    if draw(st.booleans()):
        found["prices"] = {draw(st.sampled_from(data["options"]["quotes"]))["name"]: draw(factors)}
    if draw(st.integers(0, 2)) == 0:
        found["demand"] = {draw(st.sampled_from(data["workloads"]))["name"]: draw(factors)}
    keys: list[tuple[str, Any]] = [("limits.capex", 5000.0)]
    keys += [("limits.spot_share", 0.3)] if isinstance(data["limits"].get("spot_share"), float) else []
    keys += [("limits.gpus.B", 5)] if "B" in data["limits"].get("gpus", ()) else []
    limited = data["limits"].get("stock", ())
    quoted = [one for one in data["options"]["quotes"] if one["name"] not in limited]
    stocked = [one["name"] for one in quoted if one.get("max_nodes", 0) > one.get("min_nodes", 1)]
    keys += [(f"options.quotes.{name}.max_nodes", 4) for name in stocked]
    if draw(st.booleans()):
        key, value = draw(st.sampled_from(keys))
        new = key == "limits.capex" and "capex" not in data["limits"]
        found["limits"] = {key: value if new or draw(st.booleans()) else None}
    return found


@settings(max_examples=40)
@given(problems(), st.data())
def test_a_sequence_of_changes_and_back_again_costs_what_it_does_from_scratch(data: Data, draw: st.DataObject) -> None:
    """Nothing that a session remembers moves a cost, and its plans keep every row and add up."""
    warm = session(data)
    first = warm.solve()
    for change in draw.draw(st.lists(changes(data), min_size=1, max_size=4)):
        answer = warm.solve(**change)
        assert close(answer.npv, solved(changed(data, change)).cost), change
        if answer.status != "infeasible":
            check_solution(answer.milp, Solution(answer.status, tuple(answer.values), answer.npv))
    again = warm.solve()
    assert close(again.npv, first.npv)


@settings(max_examples=40)
@given(problems(), st.data())
def test_a_model_rebuilt_in_part_is_the_one_built_anew(data: Data, draw: st.DataObject) -> None:
    """Columns, rows, cuts and prices are the same, number for number."""
    warm = session(data)
    before = build(warm.prepared_for().instance())
    after = warm.prepared_for(**draw.draw(changes(data)))
    part, whole = rebuilt(before, after.instance()), build(after.instance())
    assert part.variables.columns == whole.variables.columns
    assert part.rows == whole.rows
    assert part.cuts == whole.cuts
    assert part.ledger == whole.ledger


@settings(max_examples=25)
@given(problems())
def test_rows_bear_the_name_of_the_function_that_makes_them(data: Data) -> None:
    """Rebuilding takes rows over by that name."""
    milp = build(prepare(parsed(data), the_catalog()).instance())
    for family in FAMILIES:
        rows = family(milp.instance, milp.variables, milp.ledger)
        assert {row.family for row in rows} <= {family.__name__}
    for cut in CUTS:
        assert {row.family for row in cut(milp.instance, milp.variables)} <= {cut.__name__}


def test_every_family_that_is_rebuilt_by_name_exists() -> None:
    """A renamed family would else be left as it was."""
    assert {family.__name__ for family in (*FAMILIES, *CUTS)} >= LIMITS


def two_offers(**limits: Any) -> Data:
    """One service of 10 requests/s on nodes of 1 request/s, rented at 1.0 or reserved at 0.6 for a year."""
    offers = [on_demand("rent", price=1.0), reserved("signed", price=0.6, max_nodes=20)]
    slices = [{"name": "day", "share_of_hours": 0.5}, {"name": "night", "share_of_hours": 0.5}]
    chat = service("chat", 0.0, traffic={"by_slice": {"day": 1.0, "night": 0.2}})
    del chat["traffic"]["mean_requests_per_s"]
    chat["traffic"]["peak_requests_per_s"] = 10.0
    return problem([chat], offers, [serves("chat", 1.0)], slices=slices, limits=limits)


HOURS = 8760.0


def test_prices_limits_and_demand_by_hand() -> None:
    """2 nodes signed all year and 8 rented by day; then dearer, fewer, more: by hand."""
    warm = session(two_offers())
    base = 2 * 0.6 * HOURS + 8 * 1.0 * HOURS / 2
    assert close(warm.solve().npv, base)
    dearer = warm.solve(prices={"signed": 1.5})
    assert close(dearer.npv, 2 * 0.9 * HOURS + 4 * HOURS)
    assert close(warm.solve(prices={"*": 2.0}).npv, 2 * base)
    assert not warm.solve(prices={"*": 2.0}).searched
    assert close(warm.solve(prices={"rent": Price(0.55)}).npv, (10 + 2) / 2 * 0.55 * HOURS)
    assert close(warm.solve(limits={"options.quotes.signed.max_nodes": 1}).npv, 0.6 * HOURS + (9 + 1) / 2 * HOURS)
    assert close(warm.solve(demand={"chat": 2.0}).npv, 2 * base)
    assert close(warm.solve().npv, base)


def test_what_a_known_answer_proves_is_not_searched_for() -> None:
    """A tighter limit that the plan keeps, and a dearer offer that it does not use, leave it the best."""
    warm = session(two_offers())
    base = warm.solve()
    assert base.searched
    tighter = warm.solve(limits={"options.quotes.signed.max_nodes": 3})
    assert not tighter.searched
    assert tighter.rebuilt == tuple(sorted(LIMITS))
    assert close(tighter.npv, base.npv)
    without = warm.solve(prices={"signed": 10.0})
    assert without.searched
    assert not warm.solve(prices={"signed": 20.0}).searched
    assert close(without.npv, (10 + 2) / 2 * HOURS)


def test_a_plan_that_is_impossible_stays_so_under_tighter_limits() -> None:
    """An infeasible answer is infinite, and proves the tighter ones infeasible too."""
    offers = [reserved("signed", price=0.6, max_nodes=20)]
    warm = session(problem([service("chat", 10.0)], offers, [serves("chat", 1.0)]))
    short = warm.solve(limits={"options.quotes.signed.max_nodes": 9})
    assert (short.status, short.npv) == ("infeasible", math.inf)
    shorter = warm.solve(limits={"options.quotes.signed.max_nodes": 5})
    assert (shorter.status, shorter.searched) == ("infeasible", False)
    assert close(warm.solve(limits={"options.quotes.signed.max_nodes": 10}).npv, 6 * HOURS)


def test_an_offer_that_another_one_beat_enters_when_that_one_gets_dearer() -> None:
    """What is left out as beaten at the first prices is considered at others."""
    offers = [on_demand("cheap", price=1.0), on_demand("beaten", price=1.2)]
    warm = session(problem([service("chat", 1.0)], offers, [serves("chat", 1.0)]))
    assert [o.option_id for o in warm.prepared_for().supply.options] == ["cheap"]
    answer = warm.solve(prices={"cheap": 2.0})
    assert close(answer.npv, 1.2 * HOURS)
    assert answer.rebuilt == ("everything",)


def test_a_limit_that_was_not_there_is_added() -> None:
    """A budget new to the problem binds, and nothing else is rebuilt than what limits touch."""
    warm = session(two_offers())
    base = warm.solve()
    answer = warm.solve(limits={"limits.npv": base.npv - 1.0})
    assert answer.status == "infeasible"
    assert "budget_npv" in answer.rebuilt


def test_demand_scaled_by_slice_is_a_scenario_in_pieces() -> None:
    """A slice of its own traffic: the piece that scenarios, a further index of slices, are made of."""
    data = two_offers()
    warm = session(data)
    answer = warm.solve(demand={"chat": {"night": 3.0}})
    other = copy.deepcopy(data)
    other["workloads"][0]["traffic"] = {"peak_requests_per_s": 10.0, "by_slice": {"day": 1.0, "night": 0.6}}
    assert close(answer.npv, least_cost(other))
    assert close(answer.npv, 6 * 0.6 * HOURS + 4 * HOURS / 2)


def test_jobs_are_scaled_and_merged_hours_stay_apart() -> None:
    """A job's work counts times its factor; a service without slices can be scaled in its hours."""
    data = problem([job("train", 100.0), service("chat", 1.0)], [on_demand(price=1.0)], [works(), serves()])
    warm = session(data)
    assert close(warm.solve(demand={"train": 3.0}).npv, 300 + HOURS)
    (only,) = warm.memory.first.instance.grid.slices if warm.memory.first else ()
    assert close(warm.solve(demand={"chat": {only.name: 2.0}}).npv, 100 + 2 * HOURS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prices": {"nothing*": 1.1}}, 'no option is named "nothing*"'),
        ({"prices": {"rent": -1.0}}, "price of rent"),
        ({"prices": {"rent": math.nan}}, "price of rent"),
        ({"limits": {"limits.power": 1.0}}, 'no limit "limits.power"'),
        ({"limits": {"limits.npv": math.inf}}, "limits.npv"),
        ({"demand": {"mail": 1.1}}, 'no workload is named "mail"'),
        ({"demand": {"chat": 0.0}}, "demand of chat"),
        ({"demand": {"chat": {"noon": 2.0}}}, 'no slice is named "noon"'),
        ({"demand": {"chat": {"day": -2.0}}}, "demand of chat in day"),
    ],
)
def test_a_change_without_sense_is_refused_by_name(change: Change, words: str) -> None:
    """The message says what is wrong and what there is."""
    with pytest.raises(ChangeError, match=re.escape(words)):
        session(two_offers()).solve(**change)


def test_touched_families_follow_the_kind_of_change() -> None:
    """Prices touch budgets only, limits their families, demand everything."""
    warm = session(two_offers())
    first = warm.prepared_for().instance()
    prices = touched(first, warm.prepared_for(prices={"rent": 1.1}).instance())
    assert prices == {"budget_capex", "budget_opex", "budget_npv"}
    assert touched(first, warm.prepared_for(limits={"limits.npv": 1e6}).instance()) == LIMITS
    assert touched(first, warm.prepared_for(demand={"chat": 1.1}).instance()) is None


def test_the_example_in_the_manual_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of docs/solver.md does what it says."""
    monkeypatch.chdir(DOCS.parents[1])
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    exec(code, {})


def test_the_search_near_a_known_plan_has_its_options() -> None:
    """HiGHS knows the options by these names and gets them; a solve without a start keeps its defaults."""
    columns = Columns()
    columns.add("x", (), upper=4.0, integer=True)
    plain = LinearModel(columns, [], {0: 1.0})
    near = replace(plain, options=NEAR_A_PLAN)
    for name, value in NEAR_A_PLAN.items():
        assert load(near, near.arrays(), EXACT).getOptionValue(name)[1] == value
        assert load(plain, plain.arrays(), EXACT).getOptionValue(name)[1] != value
