"""GPUs, models, cloud offers and servers as CSV data, and their typed reader."""

from catalog.errors import AmbiguousNameError, CatalogError, CatalogFileError, UnknownNameError
from catalog.load import Catalog, load_catalog
from catalog.schema import CloudOffer, Gpu, LlmArchitecture, ServerOffer, SiteCost, SourceRef

__all__ = [
    "AmbiguousNameError",
    "Catalog",
    "CatalogError",
    "CatalogFileError",
    "CloudOffer",
    "Gpu",
    "LlmArchitecture",
    "ServerOffer",
    "SiteCost",
    "SourceRef",
    "UnknownNameError",
    "load_catalog",
]
