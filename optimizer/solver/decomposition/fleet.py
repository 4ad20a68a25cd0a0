"""The fleet: what is ordered and when, with cells standing for themselves by patterns of the nodes they use.

The fleet model is the planning model's own rows on orders (budgets, power, stock, order sizes) with, for every cell, a
mix of patterns instead of services (Dantzig and Wolfe, 1960). Its duals price a node of every kind in every cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from optimizer.model.constraints import FLEET_FAMILIES
from optimizer.model.costs import build_ledger
from optimizer.model.entities import Instance
from optimizer.model.families.limits import most_nodes
from optimizer.model.rows import Row
from optimizer.model.variables import Variables, add_acquire, add_stock
from optimizer.solver.decomposition.jobs import JobTable
from optimizer.solver.decomposition.pricing import Priced, Pricing
from optimizer.solver.matrix import Floats, MatrixModel, solve_matrix

DUST = 1e-9
Place = tuple[tuple[int, ...], int]
"""States and row: where patterns of one kind are mixed."""
NEVER_USED = 0.9999
"""Nodes that no pattern uses are priced just below what they cost, so that no order seems to pay for itself."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to run a cell: nodes by kind, and what it costs beside them."""

    nodes: Mapping[int, float]
    cost: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """Orders by (option, period), nodes in service by (option, block), and the cost with cells and rents in parts."""

    acquired: Mapping[tuple[str, int], int]
    stock: Mapping[tuple[str, int], int]
    cost: float
    orders_cost: float
    """What the orders cost, and whatever is paid in any plan."""


@dataclass(slots=True)
class FleetModel:
    """Orders of an instance with the patterns found so far."""

    instance: Instance
    pricing: Pricing
    jobs: Sequence[JobTable]
    variables: Variables = field(default_factory=Variables)
    rows: list[Row] = field(default_factory=list)
    objective: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0
    patterns: dict[Place, dict[tuple[tuple[int, float], ...], Pattern]] = field(default_factory=dict)
    active: set[int] = field(default_factory=set)
    most: list[float | None] = field(default_factory=list)
    """Upper bounds of the columns that no plan has reason to pass."""

    def __post_init__(self) -> None:
        """Take the planning model's rows and prices of orders."""
        add_acquire(self.instance, self.variables)
        add_stock(self.instance, self.variables)
        ledger = build_ledger(self.instance, self.variables)
        for line in ledger:
            for column, _, value in line.terms:
                self.objective[column] = self.objective.get(column, 0.0) + value
        self.constant = sum(line.constant_npv for line in ledger)
        made = (row for family in FLEET_FAMILIES for row in family(self.instance, self.variables, ledger))
        self.rows = [row for row in made if row.terms]
        enough = {
            order.option.option_id: most_nodes(self.instance, order.option.option_id) for order in self.instance.orders
        }
        columns = self.variables.columns
        self.most = [
            enough[str(key[1])] if key[0] == "acquire" and upper is None else upper
            for key, upper in zip(columns.keys, columns.upper, strict=True)
        ]

    @property
    def money(self) -> float:
        """Unit of money that keeps prices near 1."""
        return max(1.0, float(np.median([abs(v) for v in self.objective.values()] or [1.0])))

    # --- patterns -----------------------------------------------------------------------------------------------------

    def add(self, priced: Priced) -> int:
        """Take the patterns of all cells at some prices; returns how many are new."""
        new = 0
        for cell, nodes in enumerate(priced.nodes):
            used = np.flatnonzero(nodes > DUST)
            pattern = Pattern({int(k): float(nodes[k]) for k in used}, float(priced.busy[cell]))
            new += self.add_pattern((priced.states, cell), pattern)
        return new

    def add_pattern(self, place: Place, pattern: Pattern) -> bool:
        """Take a pattern of one cell; whether it is new."""
        key = tuple(sorted((kind, round(amount, 6)) for kind, amount in pattern.nodes.items()))
        known = self.patterns.setdefault(place, {})
        if key in known:
            return False
        known[key] = pattern
        self.active.update(pattern.nodes)
        return True

    # --- prices -------------------------------------------------------------------------------------------------------

    def first_prices(self, factor: float = 1.0) -> Floats:
        """Rent, or what a held node costs per hour of service at its best, times a factor."""
        kinds = self.pricing.kinds
        held = np.array([min((self._hourly(o.option_id) for o in kind.held), default=np.inf) for kind in kinds])
        return np.minimum(self.pricing.rent, np.outer(self.pricing.hours, held * factor))

    def _hourly(self, option_id: str) -> float:
        """Present value of an order ÷ present value of its hours in service, for the best period to order."""
        best = np.inf
        for order in self.instance.orders:
            if order.option.option_id == option_id:
                blocks = [b for b in self.instance.grid.blocks if order.in_service(b.start_month)]
                hours = sum(self._block_hours(b.index) for b in blocks)
                cost = self.objective.get(self.variables.acquire[option_id, order.period], 0.0)
                best = min(best, cost / hours if hours > 0 else np.inf)
        return float(max(best, 0.0))

    def _block_hours(self, block: int) -> float:
        return float(self.pricing.hours[self.pricing.blocks == block].sum())

    def prices(self) -> tuple[float, Floats]:
        """Cost of the relaxed fleet on the patterns at hand, and the price of a node by state, cell and kind."""
        model, links = self._model()
        solution = solve_matrix(model, relaxed=True, central=True, money=self.money)
        if solution.status != "optimal":
            solution = solve_matrix(model, relaxed=True, money=self.money)
        unused = self.first_prices(NEVER_USED)
        if solution.status != "optimal":
            return np.inf, self.pricing.split(unused)
        duals = np.zeros((self.pricing.states, *unused.shape))
        for place, row in links.items():
            duals[place] = max(0.0, -solution.duals[row])
        used = sorted(self.active)
        worth = duals.sum(axis=(0, 2))
        after = np.divide(duals[-1].sum(axis=1), worth, out=np.zeros(len(worth)), where=worth > 0)
        prices = self.pricing.split(unused, after[:, None])
        prices[:, :, used] = duals[:, :, used]
        return solution.objective + self.constant, self.affordable(prices)

    def affordable(self, prices: Floats) -> Floats:
        """Prices by state, row and kind, together no more than renting costs."""
        total = prices.sum(axis=0)
        dear = total > self.pricing.rent
        factors: Floats = np.divide(self.pricing.rent, total, out=np.ones(total.shape), where=dear)
        return prices * factors

    def without_gains(self, prices: Floats) -> Floats:
        """Prices by state, row and kind, lowered for kinds of which an order would be worth more than it costs."""
        of_option, total = self._kind_of_option(), prices.sum(axis=0)
        factors = np.ones(total.shape[1])
        for order in self.instance.orders:
            kind = of_option[order.option.option_id]
            there = [b.index for b in self.instance.grid.blocks if order.in_service(b.start_month)]
            worth = float(total[np.isin(self.pricing.blocks, there), kind].sum())
            cost = self.objective.get(self.variables.acquire[order.option.option_id, order.period], 0.0)
            if worth > cost >= 0:
                factors[kind] = min(factors[kind], cost / worth)
        return prices * factors

    def lower_bound(self, prices: Floats, cells: Floats) -> float:
        """What any plan costs at least: cells and jobs at their cheapest, and the fleet that gains most from prices.

        `prices` by cell and kind, `cells` the lower bound of every cell's cost at these.
        """
        gains = dict(self.objective)
        of_option, blocks = self._kind_of_option(), np.zeros((len(self.instance.grid.blocks), prices.shape[1]))
        np.add.at(blocks, self.pricing.blocks, prices)
        for (option_id, block), column in self.variables.stock.items():
            gains[column] = gains.get(column, 0.0) - float(blocks[block, of_option[option_id]])
        model = MatrixModel()
        for column in range(len(self.variables.columns)):
            model.column(gains.get(column, 0.0), self.most[column])
        for row in self.rows:
            model.scaled_row(row)
        fleet = solve_matrix(model, relaxed=True, money=self.money)
        if fleet.status != "optimal":
            return -np.inf
        jobs = sum(job.least_cost(prices) for job in self.jobs)
        return float(cells.sum() + jobs + fleet.objective + self.constant)

    def _kind_of_option(self) -> dict[str, int]:
        return {option.option_id: kind.index for kind in self.pricing.kinds for option in kind.options}

    # --- the model ----------------------------------------------------------------------------------------------------

    def whole(self, gap: float, time_limit_s: float) -> Fleet | None:
        """The fleet in whole nodes, cells and rents in parts; None where none was found in time."""
        model, _ = self._model()
        solution = solve_matrix(model, gap=gap, time_limit_s=time_limit_s, money=self.money)
        if solution.status not in ("optimal", "feasible"):
            return None
        return Fleet(
            {key: round(solution.values[c]) for key, c in self.variables.acquire.items()},
            {key: round(solution.values[c]) for key, c in self.variables.stock.items()},
            solution.objective + self.constant,
            self.constant + sum(price * round(solution.values[c]) for c, price in self.objective.items()),
        )

    def _model(self) -> tuple[MatrixModel, dict[tuple[int, int, int], int]]:
        """Orders, rents, patterns and jobs; and the rows that link a cell's nodes of a kind to the fleet."""
        model, columns = MatrixModel(), self.variables.columns
        for column in range(len(columns)):
            upper, whole = columns.upper[column], columns.integer[column]
            model.column(self.objective.get(column, 0.0), upper, integer=whole)
        for row in self.rows:
            model.scaled_row(row)
        links = self._links(model)
        for (states, cell), patterns in self.patterns.items():
            mix: list[tuple[int, float]] = []
            for pattern in patterns.values():
                column = model.column(pattern.cost)
                mix.append((column, 1.0))
                for kind, nodes in pattern.nodes.items():
                    self._take(model, links, (states, cell, kind), (column, nodes))
            model.row(mix, "=", 1.0)
        for job in self.jobs:
            self._add_job(model, links, job)
        return model, links

    def _links(self, model: MatrixModel) -> dict[tuple[int, int, int], int]:
        """Nodes used in a state of a cell ≤ nodes in service and rented, per kind in use."""
        rent, links = self.pricing.rent, {}
        spare = set(self.pricing.spare_kinds.tolist())
        for index, block in enumerate(self.pricing.blocks.tolist()):
            for kind in sorted(self.active):
                held = (self.variables.stock.get((o.option_id, block)) for o in self.pricing.kinds[kind].held)
                terms = [(column, -1.0) for column in held if column is not None]
                if self.pricing.kinds[kind].rented is not None:
                    terms.append((model.column(float(rent[index, kind])), -1.0))
                for state in range(2 if kind in spare else 1):
                    links[state, index, kind] = model.row(list(terms), "<=", 0.0)
        return links

    @staticmethod
    def _take(
        model: MatrixModel,
        links: Mapping[tuple[int, int, int], int],
        place: tuple[tuple[int, ...], int, int],
        term: tuple[int, float],
    ) -> None:
        """Count nodes in the states given of a (cell, kind)."""
        states, cell, kind = place
        for state in states:
            row = links.get((state, cell, kind))
            if row is not None:
                model.rows[row].append(term)

    def _add_job(self, model: MatrixModel, links: Mapping[tuple[int, int, int], int], job: JobTable) -> None:
        done: list[tuple[int, float]] = []
        spot: list[tuple[int, float]] = []
        for cell, way, nodes, busy, most in job.columns(self.active):
            column = model.column(busy, most)
            done.append((column, 1.0))
            spot += [(column, 1.0)] if way.interruptible else []
            self._take(model, links, (tuple(range(self.pricing.states)), cell, way.kind), (column, nodes))
        model.row(done, "=", 1.0)
        if spot and job.interruptible_share < 1:
            model.row(spot, "<=", job.interruptible_share)
