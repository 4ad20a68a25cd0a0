"""Why not an offer: what it costs to use it, and the price at which the least-cost plan would use it.

The least cost as a function of the offer's price is concave and piecewise linear as long as no budget bounds it: every
plan is a line (cost of the rest + quantity × price). The largest price at which a plan that uses the offer costs no
more than the best plan without it is found by Dinkelbach's method (Management Science 13, 1967): the plan found at one
price gives the next, which is where that plan breaks even. Where a budget depends on the price, the rest is halved.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from optimizer.model.build import Milp, build
from optimizer.model.lookup import work_columns
from optimizer.model.option import Option
from optimizer.model.rows import Row, row
from optimizer.prepare import Prepared
from optimizer.solver.milp import LinearModel
from optimizer.solver.resolve import Resolver, linear_model

SAME = 1e-7
"""Costs that differ by less than this share are the same."""
CLOSE = 1e-6
"""Relative distance below the entry price at which the offer must be used."""
MOST_STEPS = 60
USED = 1e-7


@dataclass(frozen=True, slots=True)
class Entry:
    """What using offers costs, against the least cost `here`.

    `forced`: least cost with at least one node of them (or one job on them); None: no plan uses them. `without`: least
    cost without them; None: no plan does without. `factor`: the largest share of their prices at which the least-cost
    plan uses them (above 1: they would stay so long); None where no price above 0 will do, or none is too high.
    """

    here: float
    forced: float | None
    without: float | None
    factor: float | None


def price_field(option: Option) -> str:
    """The price that a buyer negotiates: of the node, of its hour, or the fee for signing."""
    if option.capex_per_node > 0:
        return "capex_per_node"
    return "price_per_node_hour" if option.price_per_node_hour > 0 else "upfront_per_node"


def at_factor(prepared: Prepared, names: Sequence[str], factor: float) -> Prepared:
    """The problem with the prices of some offers times a factor."""
    options = tuple(
        replace(o, **{price_field(o): getattr(o, price_field(o)) * factor}) if o.option_id in names else o
        for o in prepared.supply.options
    )
    return replace(prepared, supply=replace(prepared.supply, options=options))


def without(prepared: Prepared, names: Sequence[str]) -> Prepared:
    """The problem without some offers."""
    options = tuple(o for o in prepared.supply.options if o.option_id not in names)
    return replace(prepared, supply=replace(prepared.supply, options=options))


def entry(prepared: Prepared, names: Sequence[str], resolver: Resolver) -> Entry | None:
    """What offers cost and at which share of their prices they enter; None where the problem has no plan at all.

    Raises
    ------
    OutOfTimeError
        If time ends first.
    """
    here = resolver.least_cost(prepared)
    if here is None:
        return None
    rest = resolver.least_cost(without(prepared, names))
    forced = forced_cost(prepared, names, resolver)
    if rest is None:
        return Entry(here.npv, forced, None, None)
    factor = EntrySearch(prepared, tuple(names), rest.npv, resolver).factor()
    return Entry(here.npv, forced, rest.npv, factor)


# --- forced -----------------------------------------------------------------------------------------------------------


def forced_cost(prepared: Prepared, names: Sequence[str], resolver: Resolver) -> float | None:
    """Least cost with at least one whole node of the offers, or one job done on them; None if no plan has that."""
    milp = build(prepared.instance())
    model = linear_model(milp)
    costs = []
    for forcing in forcing_rows(milp, names):
        solution = resolver.run(LinearModel(model.columns, [*model.rows, forcing], model.objective, model.constant,
                                            objective_scale=model.objective_scale))  # fmt: skip
        if solution.values:
            costs.append(solution.objective)
    return min(costs, default=None)


def forcing_rows(milp: Milp, names: Sequence[str]) -> Iterable[Row]:
    """Ways of using the offers: a node ordered or rented for a slice, or all work of one job's run."""
    v = milp.variables
    columns = [column for (name, _), column in (*v.acquire.items(), *v.rent.items()) if name in names]
    if columns:
        yield row("forced", ("nodes",), ((c, 1.0) for c in dict.fromkeys(columns)), ">=", 1.0, "nodes")
    for demand in milp.instance.volume_demands:
        places = [p for p in v.places if p.demand is demand and p.option.option_id in names]
        shares = [(c, 1.0) for place in places for c in work_columns(place)]
        if any(place.hired is not None for place in places):
            yield row("forced", (demand.name,), shares, ">=", 1.0, "share")


# --- the price at which it enters -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """The factor at which a plan breaks even with the rest, and what the offers cost in it at a factor of 1."""

    breaks_even: float
    per_factor: float


@dataclass(frozen=True, slots=True)
class EntrySearch:
    """The largest factor on the prices of some offers at which a plan with them costs less than `rest`."""

    prepared: Prepared
    names: tuple[str, ...]
    rest: float
    resolver: Resolver

    @property
    def same(self) -> float:
        """Costs that differ by less are the same: what re-solves leave open."""
        return max(SAME, 2 * self.resolver.settings.gap) * max(1.0, abs(self.rest))

    def factor(self) -> float | None:
        """The factor; None where no price above 0 will do."""
        low, step = 0.0, self._step(0.0)
        if step is None:
            return None
        for _ in range(MOST_STEPS):
            further = self._step(step.breaks_even)
            if further is None or further.breaks_even <= step.breaks_even * (1 + 1e-12):
                break
            low, step = step.breaks_even, further
        high = step.breaks_even
        visible = 10 * self.same / (step.per_factor * high) if high > 0 else 0.0
        enters = self._step(high * (1 - max(CLOSE, min(visible, 0.5)))) is not None
        return high if enters else self._halved(low, high)

    def _halved(self, low: float, high: float) -> float:
        """Between a factor that enters and one that does not: where a budget depends on the price."""
        while high - low > CLOSE * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._step(middle) is None else (middle, high)
        return low

    def _step(self, factor: float) -> "_Step | None":
        """Where the best plan at `factor` costs as much as the rest; None if it is no better there."""
        found = self.resolver.least_cost(at_factor(self.prepared, self.names, factor))
        if found is None or found.npv >= self.rest - self.same:
            return None
        per_factor = self._paid(found.milp, found.solution.values)
        return None if per_factor <= 0 else _Step(factor + (self.rest - found.npv) / per_factor, per_factor)

    def _paid(self, milp: Milp, values: Sequence[float]) -> float:
        """Present value of the offers' prices in a plan, at a factor of 1."""
        priced = build(at_factor(self.prepared, self.names, 1.0).instance()).objective()
        free = build(at_factor(self.prepared, self.names, 0.0).instance()).objective()
        columns = range(len(milp.variables.columns))
        return sum((priced[0].get(c, 0.0) - free[0].get(c, 0.0)) * values[c] for c in columns) + priced[1] - free[1]
