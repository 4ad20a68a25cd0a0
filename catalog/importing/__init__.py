"""Price files of others turned into offers of the catalog: what is kept, what is dropped, and why."""

from catalog.importing.offers import ImportRun, Settings
from catalog.importing.run import FORMS, import_prices
from catalog.importing.writing import offers_csv

__all__ = ["FORMS", "ImportRun", "Settings", "import_prices", "offers_csv"]
