"""Small look-ups shared by the constraint families and cost terms."""

from collections.abc import Iterable, Iterator

from optimizer.model.entities import Instance, Server
from optimizer.model.rows import Term
from optimizer.model.timegrid import Cell
from optimizer.model.variables import CellKey, Variables, WorkPlace, cell_key


def month_label(month: float) -> str:
    """Name of a point in time for row names, told apart from every other point of the grid: `month-3`."""
    return f"month-{round(month, 9):.12g}"


def rate_in(instance: Instance, rate_per_s: tuple[tuple[float, ...], ...], cell: Cell) -> float:
    """Rate of a demand in a cell."""
    return rate_per_s[instance.grid.blocks[cell.block].period][cell.slice]


def cell_index(instance: Instance, key: CellKey) -> tuple[str, str]:
    """Names of a cell for row names: month of the block's start, slice."""
    block, slice_ = key
    return (month_label(instance.grid.blocks[block].start_month), instance.grid.slices[slice_].name)


def place_index(instance: Instance, place: WorkPlace) -> tuple[str, str, str]:
    """Names of a work place for row names: option, month, slice."""
    return (place.option.option_id, *cell_index(instance, cell_key(place.cell)))


def nodes_in_service(v: Variables, option_id: str, key: CellKey) -> int | None:
    """Column of the nodes of an option held in the cell's block, or rented for services in the cell."""
    stock = v.stock.get((option_id, key[0]))
    return v.rent.get((option_id, key)) if stock is None else stock


def work_columns(place: WorkPlace) -> list[int]:
    """Columns that hold a share of the job's work."""
    return [column for column in (place.free, place.hired) if column is not None]


def server_cells(instance: Instance, v: Variables) -> Iterator[tuple[Server, CellKey, list[tuple[str, int, float]]]]:
    """Servers and the cells in which they may serve, each with (class, column, rate)."""
    found: dict[tuple[int, CellKey], list[tuple[str, int, float]]] = {}
    rates = {(d.workload, d.request_class): d.rate_per_s for d in instance.rate_demands}
    for (index, name, key), column in v.serve.items():
        rate = rates[instance.servers[index].workload, name][instance.grid.blocks[key[0]].period][key[1]]
        found.setdefault((index, key), []).append((name, column, rate))
    for (index, key), terms in found.items():
        yield instance.servers[index], key, terms


def summed(terms: Iterable[Term]) -> list[Term]:
    """Terms with one entry per column."""
    total: dict[int, float] = {}
    for column, coefficient in terms:
        total[column] = total.get(column, 0.0) + coefficient
    return list(total.items())
