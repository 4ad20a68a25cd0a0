"""GPUs, models, cloud offers and servers as CSV data, and their typed reader."""

from catalog.errors import AmbiguousNameError, CatalogError, CatalogFileError, GpuMismatchError, UnknownNameError
from catalog.load import Catalog, load_catalog
from catalog.schema import (
    CloudOffer,
    Gpu,
    LlmArchitecture,
    ResaleValue,
    ServerOffer,
    SiteCost,
    SourceRef,
    TypicalDiscount,
)

__all__ = [
    "AmbiguousNameError",
    "Catalog",
    "CatalogError",
    "CatalogFileError",
    "CloudOffer",
    "Gpu",
    "GpuMismatchError",
    "LlmArchitecture",
    "ResaleValue",
    "ServerOffer",
    "SiteCost",
    "SourceRef",
    "TypicalDiscount",
    "UnknownNameError",
    "load_catalog",
]
