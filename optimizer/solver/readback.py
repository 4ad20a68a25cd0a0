"""From a solution back to the buyer's terms: every part of a plan is read off the same model that was solved."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from optimizer.model.build import Milp
from optimizer.model.entities import Server
from optimizer.model.lookup import rate_in
from optimizer.model.rows import Row
from optimizer.model.variables import CellKey, WorkPlace, cell_key
from optimizer.plan import Acquisition, Assignment, CheckedRow, Cost, PricedLine, Rental
from optimizer.solver.milp import relative_gap
from optimizer.solver.readback_jobs import job_assignments
from optimizer.solver.readback_steps import step_schedule, used_gpu_hours
from optimizer.solver.tidy import REPLICA_FAMILIES, with_starting

BINDING = 1e-6
"""A row whose slack is below this share of its size is binding."""
DUST = 1e-9
"""Shares below this are the solver's dust."""
UNUSED = 1e-6
"""Value of a variable up to which it is not used: the solver's tolerance for whole numbers."""
BUDGET_SLACK_ROWS = 20_000
"""Larger models keep only binding rows and limits in the plan file."""


def without_idle_replicas(rows: Sequence[Row], values: Sequence[float]) -> tuple[float, ...]:
    """The same plan without the solver's dust, and without replicas that do nothing (but for spare ones)."""
    tidy = [0.0 if abs(value) <= DUST else value for value in values]
    need: dict[int, float] = defaultdict(float)
    for row in rows:
        if row.family in REPLICA_FAMILIES:
            *used, (replicas, _) = row.terms
            load = sum(coefficient * tidy[column] for column, coefficient in used)
            need[replicas] = max(need[replicas], float(math.ceil(load - DUST * max(1.0, load))), float(load > DUST))
    spare = {column for row in rows if row.family in ("spare_capacity", "replica_floor") for column, _ in row.terms}
    for column, least in need.items():
        tidy[column] = values[column] if column in spare else min(values[column], least)
    return with_starting(rows, values, tidy)


def total_cost(milp: Milp, values: Sequence[float], bound: float, gap: float) -> Cost:
    """Totals of the ledger at the solution."""
    lines = [(line.group, line.amount(values)) for line in milp.ledger]
    npv = math.fsum(line.npv(values) for line in milp.ledger)
    tidied = milp.variables.bills and math.isfinite(bound)  # idle time may have become cheaper
    return Cost(
        npv=npv,
        bound=bound,
        gap=relative_gap(npv, bound) if tidied else gap,
        capex=math.fsum(a for group, a in lines if group == "capex"),
        opex=math.fsum(a for group, a in lines if group == "opex"),
        salvage=-math.fsum(a for group, a in lines if group == "salvage") + 0.0,
    )


def priced_lines(milp: Milp, values: Sequence[float]) -> tuple[PricedLine, ...]:
    """The ledger at the solution, without lines of nothing."""
    priced = (
        PricedLine(
            term=line.term,
            option=line.option_id,
            period=line.period + 1,
            quantity=line.quantity(values),
            unit=line.unit,
            unit_price=line.unit_price,
            amount=line.amount(values),
            npv=line.npv(values),
            source=line.source,
            group=line.group,
            name=line.name,
        )
        for line in milp.ledger
    )
    return tuple(line for line in priced if abs(line.quantity) > DUST)


def checked_rows(rows: Sequence[Row], values: Sequence[float]) -> tuple[CheckedRow, ...]:
    """All rows at the solution, with their slack; of a very large model only binding rows and limits.

    A row binds where it leaves no slack; a row of choices that are not used (`0 <= 0`) does not, nor does an equation.
    """
    found = []
    for row in rows:
        lhs = row.lhs(values)
        slack = {"<=": row.rhs - lhs, ">=": lhs - row.rhs, "=": -abs(lhs - row.rhs)}[row.sense]
        size = max(abs(row.rhs), max((abs(c * values[j]) for j, c in row.terms), default=0.0), 1e-12)
        unused = row.rhs == 0 and all(abs(values[j]) <= UNUSED for j, _ in row.terms)
        binding = row.sense != "=" and not unused and abs(slack) <= BINDING * size
        if binding or len(rows) <= BUDGET_SLACK_ROWS or row.family.startswith(("budget", "supply", "provider")):
            found.append(CheckedRow(row.family, list(row.index), lhs, row.sense, row.rhs, slack, row.unit, binding))
    return tuple(found)


def acquisitions(milp: Milp, values: Sequence[float]) -> tuple[Acquisition, ...]:
    """Orders placed."""
    found = []
    for order in milp.instance.orders:
        option = order.option
        nodes = round(values[milp.variables.acquire[option.option_id, order.period]])
        if nodes:
            bought = option.capex_per_node > 0 or option.purchase_option == "owned"
            found.append(
                Acquisition(
                    option=option.option_id,
                    gpu=option.gpu_id,
                    purchase_option=option.purchase_option,
                    provider=option.provider,
                    region=option.region,
                    nodes=nodes,
                    gpus=nodes * option.gpus_per_node,
                    order_month=order.order_month,
                    start_month=order.arrival_month,
                    term_months=option.term_months,
                    unit_price=option.capex_per_node if bought else option.price_per_node_hour,
                    unit="per node" if bought else "per node and hour",
                    source=option.source,
                )
            )
    return tuple(found)


def _nodes_for_job(place: WorkPlace, values: Sequence[float]) -> int:
    """Nodes rented for a job at one time: the larger of its mean, rounded up, and its least size."""
    if place.nodes is None or values[place.nodes] <= DUST:
        return 0
    mean = place.hired_nodes(values)
    return max(math.ceil(mean - 1e-6), place.least_nodes_at_once)


def _rented_nodes(milp: Milp, values: Sequence[float]) -> dict[tuple[str, CellKey], int]:
    """Nodes rented at one time per option and cell, for services and jobs."""
    rented: dict[tuple[str, CellKey], int] = defaultdict(int)
    for (option_id, key), column in milp.variables.rent.items():
        rented[option_id, key] += round(values[column])
    for place in milp.variables.places:
        rented[place.option.option_id, cell_key(place.cell)] += _nodes_for_job(place, values)
    return rented


def rentals(milp: Milp, values: Sequence[float]) -> tuple[Rental, ...]:
    """What is paid by the hour, per option."""
    peak: dict[str, int] = defaultdict(int)
    for (option_id, _), nodes in _rented_nodes(milp, values).items():
        peak[option_id] = max(peak[option_id], nodes)
    hours: dict[str, float] = defaultdict(float)
    for line in milp.ledger:
        if line.term == "usage_fee":
            hours[line.option_id] += line.quantity(values)
    used = used_gpu_hours(milp, values)
    return tuple(
        Rental(
            option=option.option_id,
            gpu=option.gpu_id,
            purchase_option=option.purchase_option,
            provider=option.provider,
            region=option.region,
            peak_nodes=peak[option.option_id],
            gpu_hours=hours[option.option_id] * option.gpus_per_node,
            used_gpu_hours=used.get(option.option_id),
            unit_price=option.price_per_node_hour,
            unit="per node and hour",
            source=option.source,
        )
        for option in milp.instance.rented_options
        if hours[option.option_id] > DUST
    )


def gpus_at_once(milp: Milp, values: Sequence[float]) -> dict[str, int]:
    """Most GPUs of each type on nodes in service (idle ones too) or rented, over all cells."""
    rented = _rented_nodes(milp, values)
    most: dict[str, int] = {}
    for cell in milp.instance.cells():
        key = cell_key(cell)
        count: dict[str, int] = defaultdict(int)
        for option in milp.instance.options:
            stock = milp.variables.stock.get((option.option_id, key[0]))
            nodes = rented.get((option.option_id, key), 0) + (round(values[stock]) if stock is not None else 0)
            count[option.gpu_id] += nodes * option.gpus_per_node
        for gpu, number in count.items():
            if number:
                most[gpu] = max(most.get(gpu, 0), number)
    return most


# --- who serves what --------------------------------------------------------------------------------------------------


def assignments(milp: Milp, values: Sequence[float]) -> tuple[Assignment, ...]:
    """Per workload, class and option: its share of the whole, most replicas, and use in the peak slice."""
    return (*_service_assignments(milp, values), *job_assignments(milp, values))


def bottleneck(server: Server, request_class: str) -> str:
    """The resource that takes most of a request's replica time; `measured` where the buyer gave the rate."""
    if server.estimate.measured:
        return "measured rate"
    found = next(c for c in server.estimate.classes if c.request_class == request_class)
    seconds = {
        "compute": found.compute_seconds,
        "memory_bandwidth": found.memory_bandwidth_seconds,
        "interconnect": found.interconnect_seconds,
        "overhead": found.overhead_seconds,
    }
    return max(seconds, key=lambda name: seconds[name])


def _service_assignments(milp: Milp, values: Sequence[float]) -> list[Assignment]:
    instance, v = milp.instance, milp.variables
    cells = {cell_key(c): c for c in instance.cells()}
    rates = {(d.workload, d.request_class): d for d in instance.rate_demands}
    served: dict[tuple[int, str], float] = defaultdict(float)
    peak: dict[tuple[int, str], tuple[float, float]] = {}
    load = _server_loads(milp, values)
    for (index, name, key), column in v.serve.items():
        share = values[column]
        if share <= DUST:
            continue
        server = instance.servers[index]
        rate = rate_in(instance, rates[server.workload, name].rate_per_s, cells[key])
        served[index, name] += share * rate * cells[key].hours
        replicas = values[v.replicas[index, key]]
        use = load[index, key] / replicas if replicas else 0.0
        peak[index, name] = max(peak.get((index, name), (0.0, 0.0)), (replicas, use))
    found = []
    for (index, name), amount in served.items():
        server = instance.servers[index]
        demand = rates[server.workload, name]
        total = sum(rate_in(instance, demand.rate_per_s, c) * c.hours for c in cells.values())
        found.append(
            Assignment(
                workload=server.workload,
                request_class=name,
                gpu=server.option.gpu_id,
                option=server.option.option_id,
                deployment=server.estimate.deployment.label,
                replicas_peak=peak[index, name][0],
                gpus_peak=peak[index, name][0] * server.occupied_gpus,
                share=amount / total,
                bottleneck=bottleneck(server, name),
                utilisation=peak[index, name][1],
                measured=server.estimate.measured,
            )
        )
    return found


def _server_loads(milp: Milp, values: Sequence[float]) -> dict[tuple[int, CellKey], float]:
    """Busy replicas per server and cell: rate × replica-seconds, availability included."""
    instance = milp.instance
    rates = {(d.workload, d.request_class): d.rate_per_s for d in instance.rate_demands}
    loads: dict[tuple[int, CellKey], float] = defaultdict(float)
    for (index, name, key), column in milp.variables.serve.items():
        server = instance.servers[index]
        rate = rates[server.workload, name][instance.grid.blocks[key[0]].period][key[1]]
        busy = (server.load(name) or 0.0) * server.estimate.utilisation_cap
        loads[index, key] += values[column] * rate * busy
    return loads


# --- the whole schedule, for audit and explain ------------------------------------------------------------------------


def grid_document(milp: Milp) -> dict[str, Any]:
    """Periods, slices and blocks as plain data."""
    grid = milp.instance.grid
    return {
        "horizon_months": grid.horizon_months,
        "periods": [{"start_month": p.start_month, "months": p.months} for p in grid.periods],
        "slices": [
            {"name": s.name, "share_of_hours": s.share_of_hours, "hours_of_week": s.hours_of_day}
            | ({} if s.starting is None else {"starting": s.starting})
            for s in grid.slices
        ],
        "blocks": [{"start_month": b.start_month, "end_month": b.end_month, "period": b.period} for b in grid.blocks],
    }


def schedule_document(milp: Milp, values: Sequence[float]) -> dict[str, Any]:
    """What runs where and when: every decision that is not zero, with the numbers of its estimate, block and slice."""
    return {
        "rented": _rented_schedule(milp, values),
        "replicas": _replica_schedule(milp, values),
        "served": _served_schedule(milp, values),
        "work": _work_schedule(milp, values),
        **step_schedule(milp, values),
    }


def _rented_schedule(milp: Milp, values: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {"option": option, "block": key[0], "slice": key[1], "nodes": round(values[column])}
        for (option, key), column in milp.variables.rent.items()
        if values[column] > 0.5
    ]


def _estimate_number(milp: Milp, server: Server) -> int:
    return milp.instance.estimates.services.index(server.estimate)


def _replica_schedule(milp: Milp, values: Sequence[float]) -> list[dict[str, Any]]:
    servers = milp.instance.servers
    return [
        {
            "workload": servers[index].workload,
            "option": servers[index].option.option_id,
            "estimate": _estimate_number(milp, servers[index]),
            "block": key[0],
            "slice": key[1],
            "replicas": round(values[column]),
        }
        for (index, key), column in milp.variables.replicas.items()
        if values[column] > 0.5
    ]


def _served_schedule(milp: Milp, values: Sequence[float]) -> list[dict[str, Any]]:
    instance = milp.instance
    rates = {(d.workload, d.request_class): d.rate_per_s for d in instance.rate_demands}
    found = []
    for (index, name, key), column in milp.variables.serve.items():
        if values[column] <= DUST:
            continue
        server = instance.servers[index]
        rate = rates[server.workload, name][instance.grid.blocks[key[0]].period][key[1]]
        found.append(
            {
                "workload": server.workload,
                "class": name,
                "option": server.option.option_id,
                "estimate": _estimate_number(milp, server),
                "block": key[0],
                "slice": key[1],
                "requests_per_s": values[column] * rate,
            }
        )
    return found


def _work_schedule(milp: Milp, values: Sequence[float]) -> list[dict[str, Any]]:
    found = []
    for place in milp.variables.places:
        free = values[place.free] if place.free is not None else 0.0
        hired = values[place.hired] if place.hired is not None else 0.0
        if free + hired <= DUST:
            continue
        found.append(
            {
                "job": place.demand.workload,
                "run": place.demand.name,
                "option": place.option.option_id,
                "estimate": milp.instance.estimates.jobs.index(place.estimate),
                "alternative": place.demand.alternatives[place.alternative].label,
                "block": place.cell.block,
                "slice": place.cell.slice,
                "amount": (free + hired) * place.demand.amount,
                "gpus_on_free": free * place.gpus_per_share,
                "gpus_on_hired": hired * place.gpus_per_share,
                "hired_nodes": place.hired_nodes(values),
                "hired_nodes_at_once": _nodes_for_job(place, values),
            }
        )
    return found
