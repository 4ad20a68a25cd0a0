"""Checks of nodes: orders as the offers allow them, and GPUs used never more than there are."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator

from optimizer.audit.calendar import EPSILON_MONTHS, nearly_in
from optimizer.audit.case import Case, Key
from optimizer.audit.document import AcquisitionRecord, OptionRecord, SupplyRecord
from optimizer.audit.jobs import Working
from optimizer.audit.report import Checker
from optimizer.audit.services import Place, Station
from optimizer.problem.schema import OWN_PROVIDER


def gpus_used(stations: dict[Place, Station], works: list[Working]) -> dict[tuple[str, Key], float]:
    """GPUs kept by replicas, and by jobs on free GPUs, by (option, cell)."""
    used: dict[tuple[str, Key], float] = defaultdict(float)
    for station in stations.values():
        used[station.option.option_id, station.key] += station.replicas * station.gpus_kept
    for work in works:
        used[work.record.option, work.key] += work.record.gpus_on_free * work.kept_per_gpu
    return used


def check_fleet(case: Case, stations: dict[Place, Station], works: list[Working], checker: Checker) -> None:
    """Check orders, rents, and that GPUs used fit the nodes in service or rented, in every cell."""
    for number, acquisition in enumerate(case.plan.acquisitions):
        _check_acquisition(case, f"acquisitions[{number}]", acquisition, checker)
    for number, rented in enumerate(case.plan.schedule.rented):
        where = f"schedule.rented[{number}]"
        by_hour = not case.options[rented.option].held
        checker.holds("rented nodes", where, by_hour, f"{rented.option} is not rented by the hour")
        checker.holds("rented nodes", where, rented.nodes > 0, "is not a number of nodes")
    for (name, key), gpus in gpus_used(stations, works).items():
        option = case.options[name]
        there = case.nodes_for_services(option, key) * option.gpus_per_node
        where = f"{name} in block {key[0]}, slice {case.cells[key].slice_name}"
        checker.at_most("GPUs in service", where, gpus, float(there), "GPUs", option.gpus_per_node)


def check_terms(where: str, record: SupplyRecord, option: OptionRecord, checker: Checker) -> None:
    """Check what an acquisition or a rental repeats of its option."""
    buys = option.purchase_option == "owned" or option.capex_per_node > 0
    expected = {
        "gpu": option.gpu_id,
        "purchase_option": option.purchase_option,
        "provider": option.provider,
        "region": option.region,
        "unit_price": option.capex_per_node if buys else option.price_per_node_hour,
        "unit": "per node" if buys else "per node and hour",
        "source": option.source,
    }
    checker.same("orders", where, {key: getattr(record, key) for key in expected}, expected)


def _check_acquisition(case: Case, where: str, acquisition: AcquisitionRecord, checker: Checker) -> None:
    option = case.options[acquisition.option]
    checker.holds("orders", where, option.held and not option.existing_nodes, "cannot be ordered")
    check_terms(where, acquisition, option, checker)
    checker.equal("orders", f"{where}.gpus", acquisition.gpus, acquisition.nodes * option.gpus_per_node, "GPUs")
    checker.equal("orders", f"{where}.term_months", acquisition.term_months, option.term_months, "months")
    starts = [period.start_month for period in case.plan.grid.periods]
    at_start = nearly_in(acquisition.order_month, starts)
    checker.holds("orders", f"{where}.order_month", at_start, "orders are placed at the start of a listed period only")
    arrival = acquisition.order_month + option.lead_months
    checker.equal("lead time", f"{where}.start_month", acquisition.start_month, arrival, "months", 1.0)
    in_time = acquisition.start_month < case.horizon - EPSILON_MONTHS
    checker.holds("lead time", where, in_time, "arrives after the horizon")
    enough = acquisition.nodes >= max(option.min_nodes, 1)
    checker.holds("minimum order", where, enough, f"is less than the least order of {option.min_nodes}")


def most_gpus(case: Case) -> dict[str, int]:
    """Most GPUs of each type on nodes in service or rented, over all cells; a job's hired nodes as held at one time."""
    most: dict[str, int] = {}
    for key in case.cells:
        count: dict[str, int] = defaultdict(int)
        for option in case.options.values():
            nodes = case.nodes_for_services(option, key) + case.hired.get((option.option_id, key), (0.0, 0))[1]
            count[option.gpu_id] += nodes * option.gpus_per_node
        for gpu, gpus in count.items():
            most[gpu] = max(most.get(gpu, 0), gpus)
    return {gpu: gpus for gpu, gpus in most.items() if gpus}


# --- limits -----------------------------------------------------------------------------------------------------------


def nodes_at(case: Case, option: OptionRecord, key: Key) -> float:
    """Nodes in service or rented in a cell; a job's hired nodes at their mean."""
    return case.nodes_for_services(option, key) + case.hired.get((option.option_id, key), (0.0, 0))[0]


def check_limits(case: Case, works: list[Working], checker: Checker) -> None:
    """Check stock, providers, GPU types and site power."""
    hired = _hired_at_once(works)
    for option in case.options.values():
        if option.max_nodes is not None and not option.existing_nodes:
            if option.held:
                _check_stock_on_order(case, option, option.max_nodes, checker)
            else:
                _check_cells(case, "stock", option.option_id, {option.option_id: 1}, option.max_nodes, hired, checker)
    for gpu, limit in case.problem.limits.gpus.items():
        weights = {o.option_id: o.gpus_per_node for o in case.options.values() if o.gpu_id == gpu}
        _check_cells(case, "GPU limit", gpu, weights, limit, hired, checker)
    for provider, most in case.problem.limits.providers.items():
        weights = {o.option_id: 1 for o in case.options.values() if o.provider == provider}
        _check_cells(case, "provider limit", provider, weights, most.max_nodes, hired, checker)
    _check_power(case, checker)
    _check_vendors(case, checker)


def _hired_at_once(works: list[Working]) -> dict[tuple[str, Key], int]:
    """Most nodes that any one job hires at once, by (option, cell): jobs may take turns, a job's nodes are whole."""
    most: dict[tuple[str, Key], int] = defaultdict(int)
    for work in works:
        if work.hires:
            place = (work.record.option, work.key)
            most[place] = max(most[place], work.nodes_at_once)
    return most


def _check_stock_on_order(case: Case, option: OptionRecord, limit: int, checker: Checker) -> None:
    for block, span in enumerate(case.plan.grid.blocks):
        nodes = sum(order.nodes for order in case.orders_of(option) if order.counts_at(span.start_month))
        checker.at_most("stock", f"{option.option_id} in block {block}", nodes, limit, "nodes")


def _check_cells(
    case: Case,
    check: str,
    label: str,
    weights: dict[str, int],
    limit: int,
    hired: dict[tuple[str, Key], int],
    checker: Checker,
) -> None:
    """Σ weight × nodes ≤ limit in every cell: hired nodes at their mean, and each job's at once beside the rest."""
    for key, cell in case.cells.items():
        options = [(case.options[name], weight) for name, weight in weights.items()]
        held = math.fsum(case.nodes_for_services(option, key) * weight for option, weight in options)
        mean = math.fsum(nodes_at(case, option, key) * weight for option, weight in options)
        at_once = max((hired.get((o.option_id, key), 0) * weight for o, weight in options), default=0)
        where = f"{label} in block {key[0]}, slice {cell.slice_name}"
        checker.at_most(check, where, max(mean, held + at_once), float(limit), "nodes or GPUs", 1.0)


def at_site(case: Case, block: int, per_node: Callable[[OptionRecord], float]) -> float:
    """Sum of a figure of each owned node in service."""
    return math.fsum(
        case.in_service[name, block] * per_node(option)
        for name, option in case.options.items()
        if option.held and option.purchase_option == "owned"
    )


def _check_power(case: Case, checker: Checker) -> None:
    for check, _, limit, unit, per_node in site_limits(case):
        for block in range(len(case.plan.grid.blocks)):
            checker.at_most(check, f"block {block}", at_site(case, block, per_node), limit, unit)


SiteLimit = tuple[str, tuple[str, ...], float, str, Callable[[OptionRecord], float]]
"""What is checked, the name of its rows, the limit with its unit, and what each owned node counts."""


def site_limits(case: Case) -> Iterator[SiteLimit]:
    """Limits of the site that the problem gives."""
    site = case.problem.site
    if site is None:
        return
    if site.power_limit_it is not None:
        yield "site power", ("site_power",), site.power_limit_it, "kW", lambda o: o.nameplate_kw
    if site.power_limit_facility is not None:
        limit = site.power_limit_facility
        yield "site power", ("site_power", "facility"), limit, "kW", lambda o: o.nameplate_kw * o.pue
    if site.rack_units_limit is not None:
        yield "rack units", ("site_rack_units",), site.rack_units_limit, "U", lambda o: o.rack_units or 0.0


# --- providers --------------------------------------------------------------------------------------------------------


def providers_used(case: Case) -> tuple[set[str], set[str]]:
    """Providers of nodes held already, and others that nodes are had from."""
    options = case.options
    already = {o.provider for o in options.values() if o.existing_nodes}
    chosen = {options[a.option].provider for a in case.plan.acquisitions if a.nodes}
    chosen |= {options[r.option].provider for r in case.plan.schedule.rented if r.nodes}
    chosen |= {options[w.option].provider for w in case.plan.schedule.work if w.gpus_on_hired > 0}
    return already - {OWN_PROVIDER}, chosen - already - {OWN_PROVIDER}


def _check_vendors(case: Case, checker: Checker) -> None:
    limit = case.problem.limits.vendors
    if limit is not None:
        already, chosen = providers_used(case)
        checker.at_most("vendors", "providers", float(len(already | chosen)), float(limit.max), "providers")
