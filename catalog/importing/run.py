"""An import from bytes to offers."""

from collections.abc import Callable, Mapping

from catalog.importing.generic import read_generic
from catalog.importing.gpuhunt import read_gpuhunt
from catalog.importing.merging import merge, scale
from catalog.importing.names import GpuMatcher
from catalog.importing.offers import ImportRun, Settings
from catalog.importing.skypilot import read_skypilot
from catalog.importing.tables import TextTable, read_table
from catalog.load import Catalog

Reader = Callable[[TextTable, GpuMatcher, ImportRun], None]
FORMS: Mapping[str, Reader] = {"skypilot": read_skypilot, "gpuhunt": read_gpuhunt, "csv": read_generic}


def import_prices(form: str, data: bytes, settings: Settings, catalog: Catalog) -> ImportRun:
    """Read a price file of the form `skypilot`, `gpuhunt` or `csv` (FORMS).

    Raises CatalogFileError if the text is no CSV or lacks columns; what is wrong with a row drops that row.
    """
    run = ImportRun(settings)
    FORMS[form](read_table(data, settings.label), GpuMatcher(catalog, settings.provider), run)
    if FORMS[form] is not read_generic:
        scale(run)
    merge(run)
    run.dropped.sort(key=lambda note: note.line)
    run.remarks.sort(key=lambda note: note.line)
    return run
