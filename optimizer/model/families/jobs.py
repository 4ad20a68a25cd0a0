"""Families of volume demands: work done in time, one way of doing it, within sensible sizes.

The docstring of a family is its inequality, then why. Left-hand sides hold variables only, right-hand sides data only,
both in the buyer's units.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from optimizer.model.entities import Instance
from optimizer.model.lookup import (
    cell_index,
    work_columns,
)
from optimizer.model.rows import CostLine, Row, row
from optimizer.model.variables import CellKey, Variables, WorkPlace, cell_key


def deadline(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Work done in the window = work required, for every run of every job: all of it, and none beyond it."""
    done: dict[str, list[int]] = defaultdict(list)
    for place in v.places:
        done[place.demand.name].extend(work_columns(place))
    for demand in instance.volume_demands:
        terms = ((column, demand.amount) for column in done[demand.name])
        yield row("deadline", (demand.name,), terms, "=", demand.amount, demand.unit)


def single_gpu_type(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Σ runs = 1, and work by an alternative ≤ runs: a job runs one way. The bound is the job itself, never a big-M."""
    work: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place in v.places:
        work[place.demand.name, place.alternative].extend(work_columns(place))
    for demand in instance.volume_demands:
        if len(demand.alternatives) < 2:
            continue
        columns = [v.runs[demand.name, i] for i in range(len(demand.alternatives))]
        yield row("single_gpu_type", (demand.name,), ((c, 1.0) for c in columns), "=", 1.0, "choice")
        for i, run in enumerate(columns):
            terms = [*((c, 1.0) for c in work[demand.name, i]), (run, -1.0)]
            yield row("single_gpu_type", (demand.name, i), terms, "<=", 0.0, "share")


def scaling_limit(instance: Instance, v: Variables, _: tuple[CostLine, ...]) -> Iterator[Row]:
    """Least × working ≤ GPUs at once on free capacity, and GPUs ≤ most: per job, alternative, block and slice."""
    by_cell: dict[tuple[str, int, CellKey], list[WorkPlace]] = defaultdict(list)
    for place in v.places:
        by_cell[place.demand.name, place.alternative, cell_key(place.cell)].append(place)
    for (name, i, key), places in by_cell.items():
        alternative = places[0].demand.alternatives[i]
        index = (name, i, *cell_index(instance, key))
        if alternative.max_gpus is not None:
            terms = [(c, p.gpus_per_share) for p in places for c in work_columns(p)]
            run = v.runs.get((name, i))
            bound = [] if run is None else [(run, -float(alternative.max_gpus))]
            limit = float(alternative.max_gpus) if run is None else 0.0
            yield row("scaling_limit", (*index, "most"), [*terms, *bound], "<=", limit, "GPUs")
        working = v.working.get((name, i, key))
        if working is not None:
            yield from _least_size_rows(index, working, places, alternative.min_gpus)


def _least_size_rows(
    index: Iterable[object], working: int, places: Iterable[WorkPlace], min_gpus: int
) -> Iterator[Row]:
    slots = [(p.slots, float(p.estimate.deployment.gpus_per_replica)) for p in places if p.slots is not None]
    yield row("scaling_limit", (*index, "least"), [*slots, (working, -float(min_gpus))], ">=", 0.0, "GPUs")
    for place in places:
        if place.free is not None and place.slots is not None:
            terms = [(place.free, 1.0), (working, -1.0)]
            yield row("scaling_limit", (*index, place.option.option_id, "working"), terms, "<=", 0.0, "share")
