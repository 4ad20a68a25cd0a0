"""Plain data → a checked `Problem`: files read in, schema, then the rules between fields; all findings at once."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from catalog.load import Catalog
from optimizer.problem.checks import Case, complaints
from optimizer.problem.checks_discounts import discount_complaints
from optimizer.problem.checks_rates import rate_complaints
from optimizer.problem.files import read_in_files
from optimizer.problem.messages import note_errors, value_at
from optimizer.problem.names import settle_names
from optimizer.problem.positions import Findings, Path, touching
from optimizer.problem.schema import Problem
from optimizer.quantities import DEFAULT_CURRENCY, Currencies

_NAMED_THINGS = ("workloads", "classes", "slices", "periods", "quotes", "existing", "gpus", "horizon", "options")
"""What other parts of a file refer to: while one of these is wrong, references to it cannot be judged."""
_LARGEST_RATE = 1e300
_MOST_ROUNDS = 4


def validated(
    data: dict[str, Any],
    findings: Findings,
    folder: FilePath,
    *,
    normalised: bool = False,
    catalog: Catalog | None = None,
    today: date | None = None,
) -> tuple[Problem, tuple[tuple[str, str], ...]]:
    """The problem that `data` describes, and the SHA-256 of the files it named (looked for in `folder`).

    With a catalog, names of GPUs and models become its ids. `today` (by UTC) is the last day that a price can be of.

    Raises
    ------
    ProblemFileError
        With every finding, in file order.
    """
    files = () if normalised else read_in_files(data, folder, findings)
    context = {"currencies": currencies_of(data), "normalised": normalised}
    left_out: set[Path] = set()
    try:
        problem: Problem | None = Problem.model_validate(data, context=context)
    except ValidationError as error:
        note_errors(error, Problem, data, findings)
        problem, left_out = _without_mistakes(data, findings, context)
    if problem is not None:
        case = Case(problem, data, normalised, today or datetime.now(UTC).date())
        problem = _without_contradictions(case, findings, left_out, catalog)
    findings.raise_if_any()
    if problem is None:
        msg = "the schema refused the problem without saying why"
        raise AssertionError(msg)
    return problem, files


def currencies_of(data: Mapping[str, Any]) -> Currencies:
    """Currency and rates as far as they are readable; their own mistakes are the schema's to tell."""
    currency = data.get("currency", DEFAULT_CURRENCY)
    entries = data.get("exchange_rates")
    rates = {}
    for code, entry in entries.items() if isinstance(entries, dict) else ():
        rate: Any = entry.get("rate") if isinstance(entry, dict) else None
        rates[code] = float(rate) if type(rate) in (int, float) and 0 < rate < _LARGEST_RATE else 1.0
    return Currencies(currency if isinstance(currency, str) else DEFAULT_CURRENCY, rates)


def _without_contradictions(case: Case, findings: Findings, left_out: set[Path], catalog: Catalog | None) -> Problem:
    """The problem with its names settled, after noting what contradicts itself or the catalog."""
    unknown = left_out.union(path for path, _ in findings.items)
    if any(path and path[-1] in _NAMED_THINGS for path in unknown):
        return case.problem
    for complaint in complaints(case):
        if not any(touching(complaint.path, path) for path in unknown):
            findings.add(complaint.path, complaint.message, complaint.hint, at_key=complaint.at_key)
    if catalog is None:
        return case.problem
    problem = settle_names(case.problem, catalog, findings)
    settled = replace(case, problem=problem)
    _note_rates(settled, findings, unknown, catalog)
    _note_discounts(settled, findings, unknown, catalog)
    return problem


def _note_discounts(case: Case, findings: Findings, unknown: set[Path], catalog: Catalog) -> None:
    """Note discounts on nothing and prices that do not say per what, where what they name is known."""
    wrong = unknown.union(path for path, _ in findings.items)
    for complaint in discount_complaints(case, catalog):
        if not any(touching(complaint.path[:3], path) for path in wrong):
            findings.add(complaint.path, complaint.message, complaint.hint, at_key=complaint.at_key)


def _note_rates(case: Case, findings: Findings, unknown: set[Path], catalog: Catalog) -> None:
    """Note what is wrong with models, lengths and measurements, where what they refer to could be read."""
    wrong = unknown.union(path for path, _ in findings.items)
    if any("measurements" in path[:1] for path in wrong):
        return
    named = not any(path[-1:] == ("gpu",) or "gpus" in path for path in wrong)
    for complaint in rate_complaints(case, catalog, gpus_too=named):
        if not any(touching(complaint.path, path) for path in wrong):
            findings.add(complaint.path, complaint.message, complaint.hint, at_key=complaint.at_key)


def _without_mistakes(
    data: dict[str, Any], findings: Findings, context: Mapping[str, Any]
) -> tuple[Problem | None, set[Path]]:
    """The problem without what is wrong in it, where it can stand without, and what was left out."""
    rest = copy.deepcopy(data)
    left_out = {path for path, _ in findings.items}
    for _ in range(_MOST_ROUNDS):
        left_out = {_removed(rest, path) for path in sorted(left_out, key=len, reverse=True)}
        try:
            return Problem.model_validate(rest, context=dict(context)), left_out
        except ValidationError as error:
            wrong = Findings(findings.source)
            note_errors(error, Problem, rest, wrong)
            left_out |= {path if value_at(rest, path) is not None else path[:-1] for path, _ in wrong.items}
    return None, left_out


def _removed(data: Any, path: Path) -> Path:
    """Remove what stands at `path`, or the nearest thing around it that is the value of a key; return its path."""
    while path:
        holder = value_at(data, path[:-1])
        if isinstance(holder, dict):
            holder.pop(path[-1], None)
            return path
        path = path[:-1]
    return path
