"""Constraints of nodes, limits and budgets, derived from orders, schedule and ledger."""

import math
from collections import defaultdict
from collections.abc import Iterator

from optimizer.audit.billing import step_rows
from optimizer.audit.calendar import EPSILON_MONTHS
from optimizer.audit.carbon import carbon_lines
from optimizer.audit.case import Case, Key, month_label
from optimizer.audit.document import OptionRecord
from optimizer.audit.energy import busy_nodes
from optimizer.audit.fleet import gpus_used, providers_used, site_limits
from optimizer.audit.jobs import Working
from optimizer.audit.lines import Line
from optimizer.audit.rows import DerivedRow, derived_row
from optimizer.audit.rows_of_work import places
from optimizer.audit.services import Place, Station
from optimizer.problem.schema import OWN_PROVIDER


def limit_rows(
    case: Case, stations: dict[Place, Station], works: list[Working], lines: list[Line]
) -> Iterator[DerivedRow]:
    """All constraints of this module."""
    free, hired = _job_places(case)
    yield from _pool_rows(case, stations, works, free)
    yield from _order_rows(case)
    yield from _supply_rows(case, hired)
    yield from _budget_rows(case, lines)
    yield from _carbon_rows(case, stations, works)
    yield from _site_rows(case)
    yield from _vendor_rows(case)
    yield from step_rows(case, works)


def _job_places(case: Case) -> tuple[set[tuple[str, Key]], set[tuple[str, Key]]]:
    """(Option, cell) in which jobs could work on free GPUs, and on hired nodes."""
    free: set[tuple[str, Key]] = set()
    hired: set[tuple[str, Key]] = set()
    for run in case.runs:
        for way in case.ways[run.job.name]:
            for member, key, on_free, on_hired in places(case, run, way):
                free |= {(member.option.option_id, key)} if on_free else set()
                hired |= {(member.option.option_id, key)} if on_hired else set()
    return free, hired


def _pool_rows(
    case: Case, stations: dict[Place, Station], works: list[Working], free: set[tuple[str, Key]]
) -> Iterator[DerivedRow]:
    """GPUs kept by replicas and jobs ≤ GPUs of nodes in service or rented, wherever any could be."""
    used = gpus_used(stations, works)
    for name, key in free | {(option, key) for _, option, _, key in case.servable}:
        option = case.options[name]
        there = case.nodes_for_services(option, key) * option.gpus_per_node
        index = (name, *case.cells[key].index)
        yield derived_row("pool_capacity", index, [used.get((name, key), 0.0), -there], "<=", 0.0, "GPUs")


def _order_rows(case: Case) -> Iterator[DerivedRow]:
    """Nodes in service = existing + arrived and in term; orders of nothing or at least the least."""
    for option in case.options.values():
        for number, block in enumerate(case.plan.grid.blocks) if option.held else ():
            if case.may_be_held(option, number):
                index = (option.option_id, month_label(block.start_month))
                arrived = [-o.nodes for o in case.orders_of(option) if o.usable_at(block.start_month)]
                parts = [case.in_service[option.option_id, number], *arrived]
                existing = case.existing_at(option, block.start_month)
                yield derived_row("fleet_balance", index, parts, "=", existing, "nodes")
    for order in case.orders:
        least, most = order.option.min_nodes, order.option.max_nodes
        if least > 1:
            name, ordered = (order.option.option_id, order.period), int(order.nodes > 0)
            parts = [order.nodes, -least * ordered]
            yield derived_row("minimum_order", (*name, "least"), parts, ">=", 0.0, "nodes")
            if most:
                parts = [order.nodes, -max(most, least) * ordered]
                yield derived_row("minimum_order", (*name, "most"), parts, "<=", 0.0, "nodes")


# --- stock, providers, GPU types --------------------------------------------------------------------------------------


def _supply_rows(case: Case, hired: set[tuple[str, Key]]) -> Iterator[DerivedRow]:
    for option in case.options.values():
        if option.max_nodes is None or option.existing_nodes:
            continue
        if option.held:
            yield from _stock_rows(case, option, option.max_nodes)
        else:
            weights = {option.option_id: 1}
            yield from _cell_rows(case, "supply_limit", option.option_id, weights, option.max_nodes, "nodes", hired)
    for gpu, limit in case.problem.limits.gpus.items():
        weights = {o.option_id: o.gpus_per_node for o in case.options.values() if o.gpu_id == gpu}
        yield from _cell_rows(case, "supply_limit", f"{gpu} GPUs", weights, limit, "GPUs", hired)
    for provider, most in case.problem.limits.providers.items():
        weights = {o.option_id: 1 for o in case.options.values() if o.provider == provider}
        yield from _cell_rows(case, "provider_limit", provider, weights, most.max_nodes, "nodes", hired)


def _stock_rows(case: Case, option: OptionRecord, limit: int) -> Iterator[DerivedRow]:
    for block in case.plan.grid.blocks:
        counted = [order.nodes for order in case.orders_of(option) if order.counts_at(block.start_month)]
        if counted:
            index = (option.option_id, month_label(block.start_month))
            yield derived_row("supply_limit", index, counted, "<=", limit, "nodes")


def _cell_rows(
    case: Case,
    family: str,
    label: str,
    weights: dict[str, int],
    limit: int,
    unit: str,
    hired: set[tuple[str, Key]],
) -> Iterator[DerivedRow]:
    """Σ weight × nodes held, rented and hired (mean) ≤ limit, in every cell in which any could be."""
    for key, cell in case.cells.items():
        parts: list[float] = []
        for name, weight in weights.items():
            option = case.options[name]
            rentable = case.may_be_held(option, key[0]) if option.held else (name, key) in case.rentable
            if rentable:
                parts.append(weight * case.nodes_for_services(option, key))
            if (name, key) in hired:
                parts.append(weight * case.hired.get((name, key), (0.0, 0))[0])
        if parts:
            yield derived_row(family, (label, *cell.index), parts, "<=", limit, unit)


# --- money and power --------------------------------------------------------------------------------------------------


def _budget_rows(case: Case, lines: list[Line]) -> Iterator[DerivedRow]:
    """Budgets: what existing nodes cost whatever is decided stands on the right."""
    limits, currency = case.problem.limits, case.problem.currency
    bought = [line for line in lines if line.group == "capex"]
    if limits.capex is not None:
        yield _budget("budget_capex", "horizon", bought, limits.capex, currency)
    for number, most in enumerate(limits.capex_by_period or ()):
        if most is not None:
            chosen = [line for line in bought if line.period == number]
            yield _budget("budget_capex", f"period-{number + 1}", chosen, most, currency)
    for number, most in enumerate(limits.capex_by_year or ()):
        if most is not None:
            periods = enumerate(case.plan.grid.periods)
            own = {i for i, p in periods if number <= (p.start_month + EPSILON_MONTHS) / 12 < number + 1}
            chosen = [line for line in bought if line.period in own]
            yield _budget("budget_capex", f"year-{number + 1}", chosen, most, currency)
    if limits.opex is not None:
        for number, period in enumerate(case.plan.grid.periods):
            chosen = [line for line in lines if line.group == "opex" and line.period == number]
            name, unit = f"period-{number + 1}", f"{currency}/month"
            yield _budget("budget_opex", name, chosen, limits.opex, unit, period.months)
    if limits.npv is not None:
        fixed = sum(line.fixed_npv for line in lines)
        parts = [line.npv - line.fixed_npv for line in lines]
        yield derived_row("budget_npv", ("horizon",), parts, "<=", limits.npv - fixed, currency)


def _budget(family: str, name: str, lines: list[Line], limit: float, unit: str, months: float = 1.0) -> DerivedRow:
    fixed = sum(line.fixed_amount for line in lines) / months
    parts = [(line.amount - line.fixed_amount) / months for line in lines]
    return derived_row(family, (name,), parts, "<=", limit - fixed, unit)


def _carbon_rows(case: Case, stations: dict[Place, Station], works: list[Working]) -> Iterator[DerivedRow]:
    limit = case.problem.limits.carbon
    if limit is not None:
        emitted = carbon_lines(case, busy_nodes(stations, works))
        fixed = math.fsum(line.fixed_quantity for line in emitted)
        parts = [line.quantity - line.fixed_quantity for line in emitted]
        yield derived_row("carbon_limit", ("horizon",), parts, "<=", limit - fixed, "t CO2e")


def _site_rows(case: Case) -> Iterator[DerivedRow]:
    for _, (family, *label), limit, unit, per_node in site_limits(case):
        by_block: dict[int, list[float]] = defaultdict(list)
        for option in case.options.values():
            for number in range(len(case.plan.grid.blocks)):
                if option.held and option.purchase_option == "owned" and case.may_be_held(option, number):
                    by_block[number].append(per_node(option) * case.in_service[option.option_id, number])
        for number, parts in by_block.items():
            index = (month_label(case.plan.grid.blocks[number].start_month), *label)
            yield derived_row(family, index, parts, "<=", limit, unit)


def _vendor_rows(case: Case) -> Iterator[DerivedRow]:
    limit = case.problem.limits.vendors
    already, chosen = providers_used(case)
    others = {option.provider for option in case.options.values()} - already - {OWN_PROVIDER}
    if limit is not None and others:
        parts = [1.0] * len(chosen)
        yield derived_row("vendor_limit", ("most",), parts, "<=", limit.max - len(already), "providers")
