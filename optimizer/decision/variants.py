"""Variants of a problem. Each is the same frozen problem with a part exchanged; nothing else is told to the solver."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer.estimator.workloads import AnyWorkload
from optimizer.finance import residual_fraction
from optimizer.model.instance import class_base_rates, slice_multiplier
from optimizer.model.options import from_existing
from optimizer.model.timegrid import SAME_MONTH, Slice, list_slices
from optimizer.problem.scaling import with_slices, with_work
from optimizer.problem.schema import PURCHASE_OPTIONS, ExistingNodes, Period, Problem, PurchaseOption, TimeSlice
from optimizer.units import HOURS_PER_MONTH

CLOUD_ONLY, OWNED_ONLY, HYBRID, BASELINE = "cloud-only", "owned-only", "hybrid", "baseline"


@dataclass(frozen=True, slots=True)
class Variant:
    """A problem to solve under a name, and in words what it allows.

    `sold_at_start` is what the owned hardware it leaves out is worth at the start of the horizon: it is sold then, else
    the variants that keep it would have its worth at the end as a present.
    """

    name: str
    meaning: str
    problem: Problem
    sold_at_start: float = 0.0


def list_variants(problem: Problem) -> tuple[Variant, ...]:
    """The variants that are compared; the baseline last, where the problem states one."""
    found = [
        Variant(CLOUD_ONLY, "everything rented or reserved", cloud_only(problem), worth_now(problem)),
        Variant(OWNED_ONLY, _owned_words(problem), owned_only(problem)),
        Variant(HYBRID, "as the problem is written", problem),
    ]
    if problem.baseline is not None:
        kept = "what is held now" if problem.baseline.keep == "existing" else "nothing held now"
        meaning = f"{kept}, and the rest {problem.baseline.rest}"
        sold = 0.0 if problem.baseline.keep == "existing" else worth_now(problem)
        found.append(Variant(BASELINE, meaning, stated_baseline(problem), sold))
    return tuple(found)


def _owned_words(problem: Problem) -> str:
    signed = any(nodes.term is not None for nodes in problem.options.existing)
    return f"everything on owned nodes{', and on what is signed already' if signed else ''}"


def worth_now(problem: Problem) -> float:
    """Residual value at the start of the horizon of all hardware that is owned then."""
    held = [from_existing(nodes, i, problem.site) for i, nodes in enumerate(problem.options.existing)]
    return sum(
        option.existing_nodes
        * option.capex_per_node
        * residual_fraction(option.age_months, option.residual_points, option.useful_life_months)
        for option in held
        if option.purchase_option == "owned"
    )


def cloud_only(problem: Problem) -> Problem:
    """Rented nodes and signed reservations only; owned nodes, those already there too, are left out."""
    return _supplied(problem, lambda purchase: purchase != "owned")


def owned_only(problem: Problem) -> Problem:
    """Owned nodes only, those already there and those that can be bought; nothing is rented or reserved anew.

    Reservations signed already stay: their fee is owed whatever is planned, so no variant may be rid of it.
    """
    owned = _supplied(problem, lambda purchase: purchase == "owned")
    return _holding(owned, problem.options.existing)


def stated_baseline(problem: Problem) -> Problem:
    """What is kept of the hardware held now, and one purchase option for the rest (`baseline:` of the problem).

    Reservations signed already are kept in any case: they cannot be sold, and their fee is owed.
    """
    stated = problem.baseline
    if stated is None:
        return problem
    bare = _supplied(problem, lambda purchase: purchase == stated.rest)
    existing = problem.options.existing
    return _holding(
        bare, existing if stated.keep == "existing" else [held for held in existing if held.term is not None]
    )


def _holding(problem: Problem, existing: Sequence[ExistingNodes]) -> Problem:
    return problem.model_copy(update={"options": problem.options.model_copy(update={"existing": list(existing)})})


def _supplied(problem: Problem, allowed: Callable[[PurchaseOption], bool]) -> Problem:
    """The problem with only those purchase options, quotes and nodes held that `allowed` admits."""
    options = problem.options
    purchases = PURCHASE_OPTIONS if options.purchase is None else options.purchase
    changes: dict[str, Any] = {
        "purchase": [purchase for purchase in purchases if allowed(purchase)],
        "quotes": [quote for quote in options.quotes if allowed(quote.purchase)],
        "existing": [held for held in options.existing if allowed("owned" if held.term is None else "reserved")],
    }
    return problem.model_copy(update={"options": options.model_copy(update=changes)})


def without_lead_times(problem: Problem) -> Problem:
    """The problem as if what is ordered were in service at once."""
    return problem.model_copy(update={"options": problem.options.model_copy(update={"lead_times": False})})


# --- the workloads run in a share of the hours only -------------------------------------------------------------------


def with_duty(problem: Problem, share_of_hours: float) -> Problem:
    """The problem with its workloads running in a share u of the hours only; exact, no demand is averaged.

    Every time slice of the problem is cut in two: services have their demand unchanged in the share u of its hours,
    and none in the rest. Jobs keep their windows and have u times their work to do. Kinds of days stay
    apart where offers may be paid by the day: hours off are then paid as the rest of a day that is.
    """
    if share_of_hours >= 1:
        return problem
    problem = problem.model_copy(update={"workloads": [_ready_at_once(one) for one in problem.workloads]})
    by_day = bool(problem.options.price_files) or any(q.billing_step == "day" for q in problem.options.quotes)
    slices = list_slices(problem, days_apart=by_day)
    workloads = [_with_duty(workload, slices, share_of_hours) for workload in problem.workloads]
    halves = [half for one in slices for half in _halves(one, share_of_hours)]
    return problem.model_copy(update={"slices": halves, "workloads": workloads})


def _ready_at_once(workload: AnyWorkload) -> AnyWorkload:
    """A service whose replicas take no time to start: the halves of an hour do not say which comes first."""
    return workload.model_copy(update={"startup": 0.0}) if workload.kind == "service" else workload


def _halves(one: Slice, share: float) -> tuple[TimeSlice, TimeSlice]:
    hours = None if one.hours_of_day is None else list(one.hours_of_day)
    on, off = one.share_of_hours * share, one.share_of_hours * (1 - share)
    return (
        TimeSlice(name=one.name, share_of_hours=on, hours_of_week=hours),
        TimeSlice(name=_off(one), share_of_hours=off, hours_of_week=hours),
    )


def _off(one: Slice) -> str:
    return f"{one.name} (off)"


def _with_duty(workload: AnyWorkload, slices: Sequence[Slice], share: float) -> AnyWorkload:
    if workload.kind != "service":
        return with_work(workload, share)
    rates = class_base_rates(workload, slices)
    by_slice = {one.name: slice_multiplier(workload, one) for one in slices} | {_off(one): 0.0 for one in slices}
    return with_slices(workload, by_slice, rates)


# --- a shorter horizon ------------------------------------------------------------------------------------------------


def cut_at(problem: Problem, months: float) -> Problem | None:
    """The problem up to a month, the jobs that end later left out; None where no workload is left."""
    if months >= problem.horizon.months - SAME_MONTH:
        return problem
    workloads = [w for w in problem.workloads if ends_at(w, problem) <= months + SAME_MONTH]
    if not workloads:
        return None
    periods = problem.horizon.periods
    if not isinstance(periods, str):
        periods = [
            Period(start_month=one.start_month, months=min(one.months, months - one.start_month))
            for one in periods
            if one.start_month < months - SAME_MONTH
        ]
    horizon = problem.horizon.model_copy(update={"months": months, "periods": periods})
    return problem.model_copy(update={"horizon": horizon, "workloads": workloads})


def ends_at(workload: AnyWorkload, problem: Problem) -> float:
    """Month from which on a workload is whole: 0 for services, repeated and daily work, a job's deadline else."""
    if workload.kind == "service" or workload.repeat != "none":
        return 0.0
    if workload.kind == "batch" and workload.requests is not None and workload.requests.per_day is not None:
        return 0.0
    if workload.deadline is None:
        return problem.horizon.months
    return (workload.start + workload.deadline) / HOURS_PER_MONTH
