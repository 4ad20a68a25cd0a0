"""Decision variables: one function per family, made only where they can matter.

`serve` and `work` are shares (of a class's rate in a cell, of a job's work), so that a load of any size, also far below
the solver's tolerance, is a number between 0 and 1. An option that cannot be used has no variable, never a row that
forbids it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from optimizer.estimator.types import JobEstimate
from optimizer.model.billing import Stretch, days_of_slices, hires_in_steps, may_fill, may_hire, stretches, used_options
from optimizer.model.entities import Alternative, Instance, Server, VolumeDemand
from optimizer.model.options import Option
from optimizer.model.places import Bill, make_bill
from optimizer.model.places import WorkPlace as WorkPlace
from optimizer.model.rows import Columns
from optimizer.model.spare import SpareNeed, loss_label, spare_needs
from optimizer.model.timegrid import Cell
from optimizer.problem.schema import OWN_PROVIDER

CellKey = tuple[int, int]
SMALL_LOAD = 1e-3
"""Loads below this many replicas or GPUs get a row of their own, so that no solver tolerance can lose their machine."""


@dataclass(slots=True)
class Variables:
    """Columns by meaning. Keys: option ids, period numbers, (block, slice) cells, server numbers.

    Slices whose nodes of an option are paid in the same steps share one column in `rent`, that of `there` by option,
    kind of days and block.
    """

    columns: Columns = field(default_factory=Columns)
    acquire: dict[tuple[str, int], int] = field(default_factory=dict)
    ordered: dict[tuple[str, int], int] = field(default_factory=dict)
    stock: dict[tuple[str, int], int] = field(default_factory=dict)
    rent: dict[tuple[str, CellKey], int] = field(default_factory=dict)
    replicas: dict[tuple[int, CellKey], int] = field(default_factory=dict)
    serve: dict[tuple[int, str, CellKey], int] = field(default_factory=dict)
    runs: dict[tuple[str, int], int] = field(default_factory=dict)
    working: dict[tuple[str, int, CellKey], int] = field(default_factory=dict)
    places: list[WorkPlace] = field(default_factory=list)
    stretches: list[tuple[Stretch, int]] = field(default_factory=list)
    there: dict[tuple[str, str, int], int] = field(default_factory=dict)
    bills: list[Bill] = field(default_factory=list)
    vendors: dict[str, int] = field(default_factory=dict)
    spare: dict[tuple[object, ...], int] = field(default_factory=dict)
    spare_needs: list[SpareNeed] = field(default_factory=list)


def cell_key(cell: Cell) -> CellKey:
    """(block, slice)."""
    return (cell.block, cell.slice)


def make_variables(instance: Instance) -> Variables:
    """All variables of an instance."""
    variables = Variables()
    add_acquire(instance, variables)
    add_stock(instance, variables)
    add_serve(instance, variables)
    add_rent(instance, variables)
    add_spare(instance, variables)
    add_vendors(instance, variables)
    add_runs(instance, variables)
    add_work(instance, variables)
    add_bills(instance, variables)
    return variables


def add_acquire(instance: Instance, v: Variables) -> None:
    """Nodes ordered per held option and period, and whether anything is ordered where an order has a least size."""
    for order in instance.orders:
        option = order.option
        key = (option.option_id, order.period)
        v.acquire[key] = v.columns.add("acquire", key, upper=option.max_nodes, integer=True)
        if option.min_nodes > 1:
            v.ordered[key] = v.columns.add("ordered", key, upper=1, integer=True)


def add_stock(instance: Instance, v: Variables) -> None:
    """Nodes of a held option in service in a block."""
    for option in instance.held_options:
        arrivals = [o for o in instance.orders if o.option is option]
        for block in instance.grid.blocks:
            if any(o.in_service(block.start_month) for o in arrivals) or instance.existing_in_service(
                option, block.start_month
            ):
                key = (option.option_id, block.index)
                v.stock[key] = v.columns.add("stock", key)


def served_cells(instance: Instance, workload: str) -> Iterator[tuple[Cell, list[tuple[str, float]]]]:
    """Cells in which a service has any load, with its classes' rates."""
    demands = [d for d in instance.rate_demands if d.workload == workload]
    for cell in instance.cells():
        period = instance.grid.blocks[cell.block].period
        rates = [(d.request_class, d.rate_per_s[period][cell.slice]) for d in demands]
        loads = [(name, rate) for name, rate in rates if rate > 0]
        if loads:
            yield cell, loads


def _available(instance: Instance, v: Variables, server: Server, cell: Cell) -> bool:
    if instance.placements is not None and server.index not in instance.placements.get(cell_key(cell), ()):
        return False
    return not server.option.held or (server.option.option_id, cell.block) in v.stock


def add_serve(instance: Instance, v: Variables) -> None:
    """Replicas, and the share of each class's rate that they serve, per server and cell."""
    by_workload: dict[str, list[Server]] = {}
    for server in instance.servers:
        by_workload.setdefault(server.workload, []).append(server)
    for workload, servers in by_workload.items():
        for cell, loads in served_cells(instance, workload):
            key = cell_key(cell)
            for server in servers:
                names = [name for name, _ in loads if server.load(name) is not None]
                if not names or not _available(instance, v, server, cell):
                    continue
                v.replicas[server.index, key] = v.columns.add("replicas", (server.index, *key), integer=True)
                same = hour_key(instance, workload, key)
                for name in names:
                    if same is None:
                        v.serve[server.index, name, key] = v.columns.add("serve", (server.index, name, *key), upper=1)
                    else:  # what starts up serves nothing yet: the shares of the hour go on
                        v.serve[server.index, name, key] = v.serve[server.index, name, same]
        _add_first_starts(instance, v, servers)


def hour_key(instance: Instance, workload: str, key: CellKey) -> CellKey | None:
    """Cell with the rest of the hour at whose end replicas of a service are starting; None where none are."""
    slice_ = instance.grid.slices[key[1]]
    if slice_.starting is None or not slice_.starts(instance.startup_hours(workload)):
        return None
    return (key[0], slice_.hour_slice)


def _add_first_starts(instance: Instance, v: Variables, servers: Sequence[Server]) -> None:
    """Replicas that start in an hour without requests."""
    for cell in instance.cells():
        key, after = cell_key(cell), instance.grid.slices[cell.slice].next_slices
        for server in servers if hour_key(instance, servers[0].workload, key) else ():
            if (server.index, key) not in v.replicas and any((server.index, (key[0], s)) in v.replicas for s in after):
                v.replicas[server.index, key] = v.columns.add("replicas", (server.index, *key), integer=True)


def add_rent(instance: Instance, v: Variables) -> None:
    """Nodes of a use-billed option rented for services, whole in every cell.

    Of options paid in steps longer than an hour: nodes rented for whoever uses them, in every stretch of whole steps.
    """
    add_stretches(instance, v)
    options = {s.index: s.option for s in instance.servers}
    for server, key in v.replicas:
        option = options[server]
        if not option.held and not option.long_step and (option.option_id, key) not in v.rent:
            column = v.columns.add("rent", (option.option_id, *key), upper=option.max_nodes, integer=True)
            v.rent[option.option_id, key] = column


def add_stretches(instance: Instance, v: Variables) -> None:
    """Nodes of options paid in steps longer than an hour: by stretch, and there in each block and kind of days."""
    used = used_options(instance)
    for option in instance.rented_options:
        if not option.long_step or option.option_id not in used:
            continue
        for stretch in stretches(instance.grid, option):
            key = (option.option_id, stretch.days, stretch.first, stretch.last)
            v.stretches.append((stretch, v.columns.add("paid", key, integer=True)))
        days = days_of_slices(instance.grid, option)
        for block in instance.grid.blocks:
            for slice_, named in days.items():
                place = (option.option_id, named, block.index)
                if place not in v.there:
                    v.there[place] = v.columns.add("there", place, upper=option.max_nodes)
                v.rent[option.option_id, (block.index, slice_)] = v.there[place]


def add_bills(instance: Instance, v: Variables) -> None:
    """Node-steps paid for the nodes that a run hires of an option, where those are paid in whole steps."""
    groups: dict[tuple[str, int, str], list[WorkPlace]] = {}
    for place in v.places:
        if place.nodes is not None and hires_in_steps(place.option, place.demand, place.most_node_hours):
            groups.setdefault((place.demand.name, place.alternative, place.option.option_id), []).append(place)
    v.bills += [make_bill(v.columns, key, tuple(places), instance.grid) for key, places in groups.items()]


def add_vendors(instance: Instance, v: Variables) -> None:
    """Whether a provider is used, where their number is limited and nothing of it is held already."""
    if instance.problem.limits.vendors is not None:
        held = providers_held(instance)
        for provider in dict.fromkeys(o.provider for o in instance.options):
            if provider != OWN_PROVIDER and provider not in held:
                v.vendors[provider] = v.columns.add("uses", (provider,), upper=1, integer=True)


def providers_held(instance: Instance) -> set[str]:
    """Providers of nodes that are held already."""
    return {o.provider for o in instance.options if o.existing_nodes and o.provider != OWN_PROVIDER}


def add_spare(instance: Instance, v: Variables) -> None:
    """What is left of the replicas when nodes are lost, whether there is any, and the worst loss (`spare_capacity`)."""
    v.spare_needs = list(spare_needs(instance, v.replicas))
    for need in v.spare_needs:
        here = (need.service, need.cell)
        for group in need.groups:
            if need.by_routes or need.share(group) > 0:
                for lost in range(1, need.nodes + 1):
                    _add_spare(v, ("left", *here, group.label, lost))
                    _add_spare(v, ("more", *here, group.label, lost), upper=1, integer=True)
        if need.by_routes:
            _add_routes(v, need)
        else:
            _add_spare(v, ("threshold", *here))
            for kind in need.kinds if need.nodes > 1 else ():
                for lost in range(1, need.nodes + 1):
                    _add_spare(v, ("excess", *here, kind, lost))


def _add_routes(v: Variables, need: SpareNeed) -> None:
    for loss in need.losses():
        for group in need.groups:
            for name in need.rates:
                if name in group.loads:
                    _add_spare(v, ("route", need.service, need.cell, loss_label(loss), group.label, name), upper=1)


def _add_spare(v: Variables, key: tuple[object, ...], *, upper: float | None = None, integer: bool = False) -> None:
    flat = [part for one in key[1:] for part in (one if isinstance(one, tuple) else (one,))]
    v.spare[key] = v.columns.add(f"spare_{key[0]}", flat, upper=upper, integer=integer)


def add_runs(instance: Instance, v: Variables) -> None:
    """Which alternative a job uses, where it has more than one."""
    for demand in instance.volume_demands:
        if len(demand.alternatives) > 1:
            for i in range(len(demand.alternatives)):
                v.runs[demand.name, i] = v.columns.add("runs", (demand.name, i), upper=1, integer=True)


def add_work(instance: Instance, v: Variables) -> None:
    """Share of a job's work per alternative, option and cell."""
    group_sizes = _group_sizes(instance)
    for demand in instance.volume_demands:
        for i, alternative in enumerate(demand.alternatives):
            made = [
                _work_place(instance, v, demand, i, option, estimate, share, cell, group_sizes)
                for (option, estimate), share in zip(alternative.members, alternative.shares, strict=True)
                for cell in demand.cells
                if alternative.tried
            ]
            v.places.extend(place for place in made if place is not None)
            cells = dict.fromkeys(cell_key(place.cell) for place in made if place and place.slots is not None)
            for key in cells:
                column = v.columns.add("working", (demand.name, i, *key), upper=1, integer=True)
                v.working[demand.name, i, key] = column


def _group_sizes(instance: Instance) -> dict[str, set[float]]:
    sizes: dict[str, set[float]] = {}
    for server in instance.servers:
        sizes.setdefault(server.option.option_id, set()).add(server.occupied_gpus)
    return sizes


def _work_place(
    instance: Instance,
    v: Variables,
    demand: VolumeDemand,
    index: int,
    option: Option,
    estimate: JobEstimate,
    share: float,
    cell: Cell,
    group_sizes: dict[str, set[float]],
) -> WorkPlace | None:
    key = (demand.name, index, option.option_id, cell.block, cell.slice)
    gpu_hours = demand.amount / (estimate.units_per_gpu_hour * share)
    place = WorkPlace(demand, index, option, estimate, cell, gpu_hours / cell.hours)
    on_free = (option.option_id, cell.block) in v.stock or (option.option_id, cell_key(cell)) in v.rent
    on_free = on_free and may_fill(instance.grid, option, demand)
    hire = may_hire(option, demand)
    if not on_free and not hire:
        return None
    add = v.columns.add
    alternative = demand.alternatives[index]
    whole = on_free and _needs_whole_sizes(alternative, place, group_sizes.get(option.option_id, set()))
    limits = instance.problem.limits
    limited = option.max_nodes is not None or option.provider in limits.providers or option.gpu_id in limits.gpus
    return WorkPlace(
        demand,
        index,
        option,
        estimate,
        cell,
        place.gpus_per_share,
        free=add("work", (*key, "free"), upper=1) if on_free else None,
        hired=add("work", (*key, "hired"), upper=1) if hire else None,
        nodes=add("hired", key) if hire else None,
        hired_on=add("hired_on", key, upper=1, integer=True)
        if hire and limited and place.least_nodes_at_once > 1
        else None,
        at_once=add("at_once", key, integer=True) if hire and option.gpu_id in limits.gpus else None,
        slots=add("slots", key, integer=True) if whole else None,
    )


def _needs_whole_sizes(alternative: Alternative, place: WorkPlace, sizes: set[float]) -> bool:
    """Whether averages could hide that a job's least size, or its GPU groups, do not fit the free GPUs.

    Free GPUs are multiples of every size in use on the option; where the job's least size divides them all, none can.
    """
    group = place.estimate.deployment.gpus_per_replica * place.occupied_per_gpu
    least = alternative.min_gpus * place.occupied_per_gpu
    if max(group, least) <= 1:
        return False
    return any(size % group or size % least for size in (*sizes, float(place.option.gpus_per_node)))
