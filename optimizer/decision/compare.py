"""Cloud-only, owned-only, hybrid and a stated baseline side by side, with where owning breaks even."""

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import Any

from catalog import Catalog
from optimizer.decision.breakeven import BreakEven, Point, Ways, break_even_month, break_even_utilisation
from optimizer.decision.runner import OutOfTimeError, Runner, SayHook
from optimizer.decision.variants import (
    BASELINE,
    CLOUD_ONLY,
    OWNED_ONLY,
    Variant,
    list_variants,
    without_lead_times,
)
from optimizer.finance import running_factor
from optimizer.model.timegrid import SAME_MONTH
from optimizer.plan import SCHEMA_VERSION, Plan
from optimizer.prepare import prepare
from optimizer.problem.further_costs import COST_KINDS
from optimizer.problem.schema import Problem
from optimizer.report.infeasible import shortfall_line
from optimizer.solver.milp import SolverSettings

BREAK_EVEN_SOLVES = 32
"""Re-solves that both break-even searches may take together."""
BOUGHT = {"owned": "owned", "reserved": "reserved", "committed-use": "reserved"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a variant: its plan, or why it has none."""

    variant: Variant
    plan: Plan | None
    reason: str = ""
    notes: tuple[str, ...] = ()
    lead_times_set_aside: bool = False

    @property
    def cost(self) -> float | None:
        """Net present cost, less what hardware that is given up is sold for at the start; None without a plan."""
        if self.plan is None or self.plan.cost is None:
            return None
        return self.plan.cost.npv - self.variant.sold_at_start

    @property
    def stopped(self) -> bool:
        """Whether a limit (or Ctrl-C) stopped it before its proof."""
        return self.plan is None or self.plan.status in ("feasible", "no_plan")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The variants of one problem, and the two break-even searches (None where they were not asked for)."""

    problem: Problem
    outcomes: tuple[Outcome, ...]
    utilisation: BreakEven | None
    month: BreakEven | None
    solves: int
    interrupted: bool
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The comparison as plain JSON data."""
        baseline = self.problem.baseline
        return {
            "schema_version": SCHEMA_VERSION,
            "problem": self.problem.name,
            "currency": self.problem.currency,
            "horizon_months": self.problem.horizon.months,
            "discount_rate_per_year": self.problem.finance.discount_rate,
            "variants": {outcome.variant.name: _variant_document(outcome, self.problem) for outcome in self.outcomes},
            "baseline": None if baseline is None else {"keep": baseline.keep, "rest": baseline.rest},
            "savings": {
                "against_baseline": _savings(self.outcomes, _cost_of(self.outcomes, BASELINE)),
                "against_dearest": _savings(self.outcomes, _dearest(self.outcomes)),
            },
            "break_even": {
                "utilisation": _break_even_document(self.utilisation),
                "month": _break_even_document(self.month),
            },
            "solves": self.solves,
            "interrupted": self.interrupted,
            "notes": list(self.notes),
        }


def compare(
    problem: Problem,
    catalog: Catalog,
    settings: SolverSettings | None = None,
    *,
    break_even: bool = True,
    say: SayHook = lambda _: None,
) -> Comparison:
    """Solve the variants of a problem and search where owning breaks even against renting.

    The time limit of `settings` is for everything together. Names in `problem` are canonical. `say` is told what is
    being solved.

    Raises
    ------
    ProblemFileError
        If the problem cannot be prepared.
    """
    runner = Runner(catalog, settings or SolverSettings(), say)
    variants = list_variants(problem)
    runner.expected = 2 * len(variants)  # half of the time is for the break-even searches
    outcomes = tuple(_outcome(variant, runner) for variant in variants)
    runner.expected = BREAK_EVEN_SOLVES
    utilisation, month = _break_even(outcomes, runner) if break_even else (None, None)
    return Comparison(problem, outcomes, utilisation, month, runner.solves, runner.interrupted, _unproven_note(runner))


def _unproven_note(runner: Runner) -> tuple[str, ...]:
    if not runner.unproven:
        return ()
    return (
        f"{runner.unproven} of the re-solves for the break-even were stopped by the time limit: their costs are upper "
        "bounds; give more time (--time-limit) or a larger gap (--gap).",
    )


# --- variants ---------------------------------------------------------------------------------------------------------


def _outcome(variant: Variant, runner: Runner) -> Outcome:
    try:
        if variant.name == OWNED_ONLY:
            return _owned_outcome(variant, runner)
        return _explained(Outcome(variant, runner.plan(variant.problem, variant.name)))
    except OutOfTimeError:
        return Outcome(variant, None, "no time was left to solve it (--time-limit)")


def _owned_outcome(variant: Variant, runner: Runner) -> Outcome:
    """Owned-only as if hardware were in place when it is ordered.

    Whoever starts to own has nothing until the first delivery: with lead times the answer would be "infeasible", or
    whatever happens to be on the shelf. The hybrid keeps them and bridges.
    """
    options = prepare(variant.problem, runner.catalog).supply.options
    longest = max((option.lead_months for option in options), default=0.0)
    if longest <= SAME_MONTH:
        return _explained(Outcome(variant, runner.plan(variant.problem, variant.name)))
    prompt = replace(variant, problem=without_lead_times(variant.problem))
    note = (
        f"lead times (up to {longest:g} months) are set aside: it supposes hardware in place when it is ordered; the "
        "hybrid keeps them"
    )
    plan = runner.plan(prompt.problem, variant.name)
    return _explained(Outcome(prompt, plan, notes=(note,), lead_times_set_aside=True))


def _explained(outcome: Outcome) -> Outcome:
    """The outcome with the reason why there is no plan."""
    plan = outcome.plan
    if plan is None or plan.cost is not None:
        return outcome
    if plan.status == "no_plan":
        return replace(outcome, reason="stopped by the limit before any plan was found (--time-limit)")
    return replace(outcome, reason=_no_supply(outcome) or shortfall_line(plan.document()).removeprefix("infeasible: "))


def _no_supply(outcome: Outcome) -> str:
    """What to write where a variant has nothing to choose from; empty where it has."""
    if outcome.plan is None or outcome.plan.inputs["options"]:
        return ""
    options = outcome.variant.problem.options
    barred = [entry for entry in outcome.plan.left_out if not entry["reason"].startswith("purchase option")]
    if barred:
        return f"no option is left: {barred[0]['option']}: {barred[0]['reason']}"
    if not options.purchase and outcome.variant.name != BASELINE:
        return "no option: options.purchase of the problem leaves this way of paying out"
    if outcome.variant.name == OWNED_ONLY:
        return "no owned option: give a site (site:) or quotes of owned nodes (options.quotes)"
    if outcome.variant.name == CLOUD_ONLY:
        return "no rented option: allow the catalog's offers (options) or give quotes of rented nodes"
    return "no option: no offer or quote of this purchase option is left"


# --- break-even -------------------------------------------------------------------------------------------------------


def _break_even(outcomes: tuple[Outcome, ...], runner: Runner) -> tuple[BreakEven, BreakEven]:
    by_name = {outcome.variant.name: outcome for outcome in outcomes}
    owned, cloud = by_name[OWNED_ONLY], by_name[CLOUD_ONLY]
    ways = Ways(owned.variant.problem, cloud.variant.problem, cloud.variant.sold_at_start)
    in_full = Point(1.0, owned.cost, cloud.cost)
    at_end = replace(in_full, at=ways.cloud_only.horizon.months)
    notes = _missing_notes(owned, cloud)
    utilisation = break_even_utilisation(ways, runner, in_full)
    month = break_even_month(ways, runner, at_end)
    return _with_notes(utilisation, notes), _with_notes(month, notes)


def _with_notes(found: BreakEven, notes: tuple[str, ...]) -> BreakEven:
    return replace(found, notes=(*found.notes, *notes))


def _missing_notes(owned: Outcome, cloud: Outcome) -> tuple[str, ...]:
    return tuple(
        f"{outcome.variant.name} has no plan over the whole horizon: {outcome.reason}"
        for outcome in (owned, cloud)
        if outcome.cost is None
    )


# --- as plain data ----------------------------------------------------------------------------------------------------


def _variant_document(outcome: Outcome, problem: Problem) -> dict[str, Any]:
    plan = outcome.plan
    cost = None if plan is None or plan.cost is None else plan.document()["cost"]
    horizon = problem.horizon.months
    factor = running_factor(problem.finance.discount_rate, 0.0, horizon, horizon)
    return {
        "meaning": outcome.variant.meaning,
        "status": "no_plan" if plan is None else plan.status,
        "cost": cost,
        "further_costs": {} if plan is None else further_costs(plan),
        "sold_at_start": outcome.variant.sold_at_start,
        "compared_npv": outcome.cost,
        "per_month": None if outcome.cost is None else outcome.cost / factor,
        "gpus": {} if plan is None else plan.gpus,
        "fleet": {} if plan is None or cost is None else fleet(plan),
        "reason": outcome.reason,
        "lead_times_set_aside": outcome.lead_times_set_aside,
        "infeasibility": [] if plan is None else [asdict(shortfall) for shortfall in plan.infeasibility],
        "notes": list(outcome.notes),
    }


def further_costs(plan: Plan) -> dict[str, float]:
    """The buyer's further costs by kind, undiscounted: parts of capex and opex."""
    found: dict[str, float] = {}
    for line in plan.cost_lines:
        if line.term in COST_KINDS:
            found[line.term] = found.get(line.term, 0.0) + line.amount
    return found


def fleet(plan: Plan) -> dict[str, dict[str, int]]:
    """GPUs by how they are had (owned, reserved, rented) and type, at most at once (rented: each offer at its peak)."""
    found: dict[str, dict[str, int]] = {"owned": {}, "reserved": {}, "rented": {}}
    spans: dict[tuple[str, str], list[tuple[float, float, int]]] = defaultdict(list)
    for option in plan.inputs["options"]:
        if option["existing_nodes"]:
            ends = [m for m in (option["term_months"], option["retire_months"]) if m is not None]
            key = (BOUGHT[option["purchase_option"]], option["gpu_id"])
            gpus = option["existing_nodes"] * option["gpus_per_node"]
            spans[key].append((0.0, min(ends, default=float("inf")), gpus))
    for order in plan.acquisitions:
        end = float("inf") if order.term_months is None else order.start_month + order.term_months
        spans[BOUGHT[order.purchase_option], order.gpu].append((order.start_month, end, order.gpus))
    for (way, gpu), held in spans.items():
        found[way][gpu] = max(_held_at(month, held) for month, _, _ in held)
    sizes = {option["option_id"]: option["gpus_per_node"] for option in plan.inputs["options"]}
    for rental in plan.rentals:
        rented = found["rented"]
        rented[rental.gpu] = rented.get(rental.gpu, 0) + rental.peak_nodes * sizes[rental.option]
    return found


def _held_at(month: float, spans: list[tuple[float, float, int]]) -> int:
    return sum(gpus for start, end, gpus in spans if start <= month + SAME_MONTH and month < end - SAME_MONTH)


def _cost_of(outcomes: tuple[Outcome, ...], name: str) -> float | None:
    return next((outcome.cost for outcome in outcomes if outcome.variant.name == name), None)


def _dearest(outcomes: tuple[Outcome, ...]) -> float | None:
    return max((outcome.cost for outcome in outcomes if outcome.cost is not None), default=None)


def _savings(outcomes: tuple[Outcome, ...], reference: float | None) -> dict[str, Any] | None:
    """Reference cost − cost of each variant, and as a share of the reference."""
    if reference is None:
        return None
    saved = {o.variant.name: reference - o.cost for o in outcomes if o.cost is not None}
    return {
        name: {"amount": amount, "share": amount / abs(reference) if reference else None}
        for name, amount in saved.items()
    }


def _break_even_document(found: BreakEven | None) -> dict[str, Any] | None:
    if found is None:
        return None
    key = "month" if found.unit == "month" else "utilisation"
    return {
        "status": found.status,
        "definition": found.definition,
        "method": found.method,
        key: found.estimate if key == "utilisation" else _first_month_that_pays(found),
        "cheaper_above": found.cheaper_above,
        "below": _point_document(found.below, key),
        "above": _point_document(found.above, key),
        "points": [_point_document(point, key) for point in found.points],
        "notes": list(found.notes),
    }


def _first_month_that_pays(found: BreakEven) -> float | None:
    """The month from which on owning costs no more."""
    if found.status == "always":
        return found.points[0].at
    return found.above.at if found.above is not None and found.cheaper_above == "owned-only" else None


def _point_document(point: Point | None, key: str) -> dict[str, Any] | None:
    if point is None:
        return None
    return {key: point.at, "owned_only": point.owned_only, "cloud_only": point.cloud_only}
