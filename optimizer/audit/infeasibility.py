"""What a plan file says where there is no plan: limits as the problem has them, demands as they follow from it."""

from collections.abc import Iterator
from typing import Any

from optimizer.audit.calendar import EPSILON_MONTHS, HOURS_PER_DAY, HOURS_PER_MONTH, clock_hours
from optimizer.audit.document import Answer, ShortfallRecord
from optimizer.audit.rates import planned_rates
from optimizer.audit.report import Checker
from optimizer.estimator.workloads import AnyWorkload, Service
from optimizer.problem.schema import Problem

CHECK = "infeasibility"
CHOICE = "choice"
KINDS = ("limit", "conflict", "demand", "cut")
_OF_OFFERS = {"max_nodes": "max_nodes", "min_nodes": "min_nodes", "lead_time": "lead_months"}


def check_infeasibility(answer: Answer, problem: Problem, checker: Checker) -> None:
    """Sums of every shortfall; limits and demands re-derived; the cheapest fix is the least cost of those stated."""
    for number, short in enumerate(answer.infeasibility):
        where = f"infeasibility[{number}]"
        missing = abs(short.required - short.attainable)
        checker.equal(CHECK, f"{where}.short_by", short.short_by, missing, size=short.required)
        checker.holds(CHECK, f"{where}.kind", short.kind in KINDS, f"unknown kind {short.kind}")
        if short.at_least or short.kind == "cut" or (short.kind == "limit" and short.alone):
            either = (short.npv is None) == short.at_least
            checker.holds(CHECK, f"{where}.npv", either, "has to be there, unless `at_least` says that nobody knows it")
        if short.kind in ("limit", "conflict") and short.change:
            _check_limit(answer, problem, short, where, checker)
        elif short.kind in ("demand", "cut"):
            _check_demand(answer, problem, short, where, checker)
    _check_fixes(answer, checker)


def _check_limit(answer: Answer, problem: Problem, short: ShortfallRecord, where: str, checker: Checker) -> None:
    """A limit is what the problem says; one that holds or does not is 0, and 1 when lifted."""
    if short.unit == CHOICE:
        lifted = 1.0 if short.kind == "limit" else 0.0
        checker.equal(CHECK, f"{where}.attainable", short.attainable, 0.0)
        checker.equal(CHECK, f"{where}.required", short.required, lifted)
        return
    value = limit_value(answer, problem, short.change)
    if value is None:
        checker.fail(CHECK, f"{where}.change", f"the problem has no limit called {short.change}")
        return
    checker.equal(CHECK, f"{where}.attainable", short.attainable, value, short.unit)
    if short.kind == "conflict":
        checker.equal(CHECK, f"{where}.required", short.required, value, short.unit)


def limit_value(answer: Answer, problem: Problem, key: str) -> float | None:
    """The value of a limit by its key in the problem file; None where there is none."""
    group, _, rest = key.partition(".")
    if group == "workloads":
        return next((v for w in problem.workloads for v in _of_workload(w, rest)), None)
    if group == "options" or rest.startswith("stock."):
        return _of_offer(answer, rest)
    field, _, name = rest.partition(".")
    found = getattr(getattr(problem, group, None), field, None)
    return _figure(_part(found, name) if name else found)


def _part(holder: Any, name: str) -> Any:
    """An entry of a limit that is given by name, by number (from 1), or as a key of its own."""
    if isinstance(holder, dict):
        found = holder.get(name)
        return getattr(found, "max_nodes", found)
    if isinstance(holder, list):
        return holder[int(name) - 1] if name.isdigit() and 0 < int(name) <= len(holder) else None
    return getattr(holder, name, None)


def _figure(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _of_workload(workload: AnyWorkload, rest: str) -> Iterator[float]:
    """The value of a workload's key, if the key is about this workload."""
    field = rest.removeprefix(f"{workload.name}.")
    if not rest.startswith(f"{workload.name}."):
        return
    if field == "window.daily" and not isinstance(workload, Service) and workload.window is not None:
        yield float(len(clock_hours(workload.window.daily)))
    value = _figure(getattr(workload, field, None))
    if value is not None:
        yield value


def _of_offer(answer: Answer, rest: str) -> float | None:
    if rest.startswith("stock."):
        name, field = rest.removeprefix("stock."), "max_nodes"
    else:
        name, _, field = rest.removeprefix("quotes.").rpartition(".")
    found = next((o for o in answer.inputs.options if o.option_id == name), None)
    return None if found is None else _figure(getattr(found, _OF_OFFERS.get(field, field), None))


# --- demands ----------------------------------------------------------------------------------------------------------


def _check_demand(answer: Answer, problem: Problem, short: ShortfallRecord, where: str, checker: Checker) -> None:
    asked = _asked(answer, problem, short)
    if asked is None:
        checker.fail(CHECK, f"{where}.index", f"the problem has no demand called {', '.join(short.index)}")
    else:
        checker.equal(CHECK, f"{where}.required", short.required, asked, short.unit)


def _asked(answer: Answer, problem: Problem, short: ShortfallRecord) -> float | None:
    """The rate or the work of a row, or (for a cut) the peak over all classes or the work of one run.

    After a loss of nodes, all of the rate (a share of 1) is asked of the rest.
    """
    workload = next((w for w in problem.workloads if _is_about(w.name, short.index[0])), None)
    if workload is None:
        return None
    if not isinstance(workload, Service):
        return _work(answer, workload.name, short)
    rates = planned_rates(workload, answer.grid)
    if short.unit == "share":
        return 1.0
    if short.kind == "cut":
        cells = {(period, slice_) for _, period, slice_ in rates}
        return max((sum(rate for key, rate in rates.items() if key[1:] == cell) for cell in cells), default=0.0)
    place = _place(answer, short.index[2:])
    return None if place is None else rates.get((short.index[1], *place))


def _is_about(name: str, run: str) -> bool:
    return run == name or run.startswith((f"{name}#", f"{name}@"))


def _work(answer: Answer, name: str, short: ShortfallRecord) -> float | None:
    """Work of one run; of daily work, of the days of its block."""
    demand = next((d for d in answer.inputs.estimates.demands if d.workload == name), None)
    if demand is None or demand.amount is None:
        return None
    if not demand.per_day:
        return demand.amount
    start = float(short.index[0].rpartition("@")[2]) if "@" in short.index[0] else answer.grid.blocks[0].start_month
    block = next((b for b in answer.grid.blocks if abs(b.start_month - start) < 1e-5), None)
    if block is None:
        return None
    return demand.amount * (block.end_month - block.start_month) * HOURS_PER_MONTH / HOURS_PER_DAY


def _place(answer: Answer, index: tuple[str, ...]) -> tuple[int, int] | None:
    """(period, slice) of a row's place in time."""
    month = float(index[0].removeprefix("month-"))
    names = [s.name for s in answer.grid.slices]
    block = next((b for b in answer.grid.blocks if abs(b.start_month - month) < 1e3 * EPSILON_MONTHS), None)
    return None if block is None or index[1] not in names else (block.period, names.index(index[1]))


# --- fixes ------------------------------------------------------------------------------------------------------------


def _check_fixes(answer: Answer, checker: Checker) -> None:
    """Every limit that is enough alone names the same cheapest fix: the one of least cost among them."""
    alone = [s for s in answer.infeasibility if s.kind == "limit" and s.alone and s.npv is not None]
    if not alone:
        return
    first = min(alone, key=lambda s: s.npv or 0.0)
    figures = {"from": first.attainable, "to": first.required, "by": first.short_by, "npv": first.npv}
    for number, short in enumerate(answer.infeasibility):
        where = f"infeasibility[{number}].cheapest_fix"
        if short in alone and short.change and checker.holds(CHECK, where, bool(short.cheapest_fix), "is missing"):
            fix = short.cheapest_fix
            found = {} if fix is None else {"from": fix.from_, "to": fix.to, "by": fix.by, "npv": fix.npv}
            for key, value in figures.items():
                checker.equal(CHECK, f"{where}.{key}", found.get(key), value, size=abs(first.required))
