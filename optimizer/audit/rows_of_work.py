"""Constraints of services and jobs, derived from the schedule."""

from collections import defaultdict
from collections.abc import Iterator

from optimizer.audit.case import Case, Key, Run
from optimizer.audit.fitting import Member, Way, kept_per_gpu
from optimizer.audit.jobs import Working
from optimizer.audit.rows import SMALL_LOAD, DerivedRow, derived_row
from optimizer.audit.services import Place, Station, same_network, spot_share
from optimizer.audit.start_up import start_rows
from optimizer.audit.steps import may_fill, may_hire

RESOURCES = ("compute", "memory_bandwidth", "replica_time", "memory_capacity")


def service_rows(case: Case, stations: dict[Place, Station]) -> Iterator[DerivedRow]:
    """What must be served, what replicas can do, and how much of it on spot."""
    served: dict[tuple[str, str, Key], list[float]] = defaultdict(list)
    on_spot: dict[tuple[str, str, Key], list[float]] = defaultdict(list)
    for station in stations.values():
        for name, rate in station.served.items():
            if station.stage != "decode":
                served[station.service, name, station.key].append(rate)
            if station.option.interruptible:
                on_spot[station.service, name, station.key].append(rate)
    for (service, name, key), rate in case.rates.items():
        if rate > 0:
            index = (service, name, *case.cells[key].index)
            yield derived_row("demand_coverage", index, served[service, name, key], "=", rate, "requests/s")
    labels = {(d.service, d.option.option_id, d.number): d.label for d in case.deployments}
    for place, rates in case.servable.items():
        option, estimate = case.options[place[1]], case.service_estimates[place[2]]
        if not rates:
            continue
        station = stations.get(place) or Station(place[0], option, estimate, place[3], 0)
        yield from _replica_rows(case, labels[place[:3]], station, rates)
    yield from _floor_rows(case, stations)
    yield from start_rows(case, stations)
    yield from _handover_rows(case, stations)
    yield from _spot_rows(case, on_spot)


def _floor_rows(case: Case, stations: dict[Place, Station]) -> Iterator[DerivedRow]:
    """Replicas of services with a least number, stages of outputs apart, wherever there could be any."""
    there: dict[tuple[str, Key], list[float]] = defaultdict(list)
    for place in case.servable:
        if not case.servable[place]:
            continue
        if case.services[place[0]].min_replicas and case.service_estimates[place[2]].deployment.stage != "decode":
            there[place[0], place[3]].append(float(stations[place].replicas) if place in stations else 0.0)
    for (name, key), parts in there.items():
        least = float(case.services[name].min_replicas)
        yield derived_row("replica_floor", (name, *case.cells[key].index), parts, ">=", least, "replicas")


def _handover_rows(case: Case, stations: dict[Place, Station]) -> Iterator[DerivedRow]:
    """Prompts done apart less outputs done apart: nothing, wherever either could be done."""
    parts: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for place, rates in case.servable.items():
        option, deployment = case.options[place[1]], case.service_estimates[place[2]].deployment
        if deployment.stage:
            station, sign = stations.get(place), -1.0 if deployment.stage == "decode" else 1.0
            for name in rates:
                at = (place[0], name, *same_network(option), deployment.weights, *case.cells[place[3]].index)
                parts[at].append(sign * station.served.get(name, 0.0) if station else 0.0)
    for index, figures in parts.items():
        yield derived_row("stage_balance", index, figures, "=", 0.0, "requests/s")


def _replica_rows(case: Case, label: str, station: Station, rates: dict[str, float]) -> Iterator[DerivedRow]:
    cell = case.cells[station.key].index
    needs = {name: station.needs(name) for name in rates}
    for resource in ("replica_time",) if station.estimate.measured else RESOURCES:
        parts = [rate * needs[name][resource] for name, rate in station.served.items() if name in needs]
        index = (station.service, label, *cell)
        yield derived_row(resource, index, [*parts, -station.replicas], "<=", 0.0, "replicas")
    for name, rate in rates.items():
        if rate * needs[name]["replica_time"] < SMALL_LOAD:
            parts = [station.served.get(name, 0.0) / rate, -station.replicas]
            yield derived_row("whole_replica", (station.service, name, label, *cell), parts, "<=", 0.0, "replicas")


def _spot_rows(case: Case, on_spot: dict[tuple[str, str, Key], list[float]]) -> Iterator[DerivedRow]:
    """Shares of interruptible capacity, where it could serve and is limited."""
    possible: dict[tuple[str, str, Key], float] = {}
    for (service, option, _, key), rates in case.servable.items():
        if case.options[option].interruptible and spot_share(case, service) < 1:
            possible |= {(service, name, key): rate for name, rate in rates.items()}
    for (service, name, key), rate in possible.items():
        limit = spot_share(case, service) * rate
        index = (service, name, *case.cells[key].index)
        yield derived_row("interruptible_share", index, on_spot[service, name, key], "<=", limit, "requests/s")


# --- jobs -------------------------------------------------------------------------------------------------------------


def places(case: Case, run: Run, way: Way) -> Iterator[tuple[Member, Key, bool, bool]]:
    """Offers and cells in which a run could work one way: on GPUs that services leave free, on hired nodes."""
    for member in way.members:
        option, hire = member.option, may_hire(member.option, run)
        for key in run.keys:
            free = case.may_be_held(option, key[0]) if option.held else (option.option_id, key) in case.rentable
            free = free and may_fill(option, run, case.plan.grid.slices)
            if free or hire:
                yield member, key, free, hire


def job_rows(case: Case, works: list[Working]) -> Iterator[DerivedRow]:
    """Deadlines, shares on spot, the choice of a way, and sizes."""
    by_run: dict[str, list[Working]] = defaultdict(list)
    for work in works:
        by_run[work.run.name].append(work)
    for run in case.runs:
        entries, ways = by_run[run.name], case.ways[run.job.name]
        amounts = [w.record.amount for w in entries]
        yield derived_row("deadline", (run.name,), amounts, "=", run.amount, run.unit)
        yield from _job_spot_rows(case, run, entries)
        if len(ways) > 1:
            yield from _choice_rows(run, entries, len(ways))
        for number, way in enumerate(ways):
            own = [w for w in entries if w.way_number == number]
            yield from _size_rows(case, run, number, own, alone=len(ways) == 1)
            yield from _hired_rows(case, run, number, way, own)


def _job_spot_rows(case: Case, run: Run, entries: list[Working]) -> Iterator[DerivedRow]:
    share = spot_share(case, run.job.name)
    placed = ((m, k) for way in case.ways[run.job.name] for m, k, _, _ in places(case, run, way))
    if share < 1 and any(member.option.interruptible for member, _ in placed):
        amounts = [w.record.amount for w in entries if w.option.interruptible]
        yield derived_row("interruptible_share", (run.name,), amounts, "<=", share * run.amount, run.unit)


def _choice_rows(run: Run, entries: list[Working], ways: int) -> Iterator[DerivedRow]:
    used = {w.way_number for w in entries}
    yield derived_row("single_gpu_type", (run.name,), [1.0] * bool(used), "=", 1.0, "choice")
    for number in range(ways):
        shares = [w.record.amount / run.amount for w in entries if w.way_number == number]
        yield derived_row("single_gpu_type", (run.name, number), [*shares, -float(number in used)], "<=", 0.0, "share")


def _size_rows(case: Case, run: Run, number: int, entries: list[Working], *, alone: bool) -> Iterator[DerivedRow]:
    way = case.ways[run.job.name][number]
    if way.most_gpus is None:
        return
    most = float(way.most_gpus)
    for key in dict.fromkeys(key for _, key, _, _ in places(case, run, way)):
        gpus = [w.gpus for w in entries if w.key == key]
        index = (run.name, number, *case.cells[key].index, "most")
        parts = gpus if alone else [*gpus, -most if entries else 0.0]
        yield derived_row("scaling_limit", index, parts, "<=", most if alone else 0.0, "GPUs")


def _hired_rows(case: Case, run: Run, number: int, way: Way, entries: list[Working]) -> Iterator[DerivedRow]:
    """GPUs at work on hired nodes ≤ what those nodes hold at best, and the line from the last full node to the top."""
    hired = {(w.record.option, w.record.estimate, w.key): w.record for w in entries}
    for member, key, _, hire in places(case, run, way):
        if not hire:
            continue
        per_node, kept = float(member.option.gpus_per_node), kept_per_gpu(member.option, member.estimate)
        record = hired.get((member.option.option_id, member.number, key))
        gpus, nodes = (record.gpus_on_hired * kept, record.hired_nodes) if record else (0.0, 0.0)
        index = (run.name, number, member.option.option_id, *case.cells[key].index)
        useful = 1 / way.nodes_for(member, 1e-3) * 1e-3  # GPUs per node at the foot of the curve
        yield derived_row("pool_capacity", (*index, "hired"), [gpus, -nodes * useful], "<=", 0.0, "GPUs")
        top = None if way.most_gpus is None else way.most_gpus * kept
        if top is not None and useful >= per_node * (1 - 1e-12) and top % per_node > 0:
            rest = top % per_node
            parts, limit = [gpus, -nodes * rest], (top - rest) / per_node * (per_node - rest)
            yield derived_row("pool_capacity", (*index, "last-node"), parts, "<=", limit, "GPUs")
