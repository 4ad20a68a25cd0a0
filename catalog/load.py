"""The catalog: GPUs, models, cloud offers and servers, read from CSV files when asked for."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from catalog.aliases import Alias, AliasTable, read_aliases
from catalog.checks import DISCOUNT_RULES, GPU_RULES, MODEL_RULES, OFFER_RULES, RESALE_RULES, SERVER_RULES
from catalog.errors import CatalogFileError
from catalog.places import electricity_of
from catalog.resolve import settle_gpu
from catalog.rows import Layout, Record, Table
from catalog.schema import CloudOffer, Gpu, LlmArchitecture, ResaleValue, ServerOffer, SiteCost, TypicalDiscount

DEFAULT_DIRECTORY: Traversable = files("catalog")
_DATE_CELL = re.compile(rb"(?<=,)\d{4}-\d{2}-\d{2}(?=[,\r\n])")
"""A cell that is a date, without reading the rows (`version` is asked for at every solve)."""

GPU_LAYOUT = Layout(Gpu, "gpu_id", "accessed_on", GPU_RULES)
MODEL_LAYOUT = Layout(LlmArchitecture, "model_id", "accessed_on", MODEL_RULES)
OFFER_LAYOUT = Layout(CloudOffer, "offer_id", "priced_on", OFFER_RULES)
SERVER_LAYOUT = Layout(ServerOffer, "server_id", "priced_on", SERVER_RULES)
SITE_COST_LAYOUT = Layout(SiteCost, "cost_id", "priced_on")
RESALE_LAYOUT = Layout(ResaleValue, "age_id", "priced_on", RESALE_RULES)
DISCOUNT_LAYOUT = Layout(TypicalDiscount, "discount_id", "priced_on", DISCOUNT_RULES)


class Catalog:
    """GPUs, models, offers, servers and reference prices of one directory; parses only what is asked for.

    Every method raises CatalogFileError (file, line, column) for a cell it cannot use. Names go through the alias
    table: UnknownNameError gives suggestions, AmbiguousNameError the choices.
    """

    def __init__(
        self,
        directory: Traversable,
        label: str,
        price_files: Mapping[str, Traversable] | None = None,
        *,
        only_price_files: bool = False,
    ) -> None:
        self._directory = directory
        self._label = label
        self._price_files = dict(price_files or {})
        self._only_price_files = only_price_files

    def with_price_files(self, files: Mapping[str, Traversable], *, only: bool = False) -> "Catalog":
        """The catalog with more files of offers, by the names that messages and sources give them.

        Their rows take the place of the catalog's rows of the same id; `version` and `file_hashes` do not know them.
        With `only` the catalog's own offers and servers are left out.
        """
        return Catalog(self._directory, self._label, {**self._price_files, **files}, only_price_files=only)

    @property
    def is_packaged(self) -> bool:
        """Whether the tables are those that come with the package, price files aside."""
        return self._directory is DEFAULT_DIRECTORY

    @property
    def price_files(self) -> tuple[str, ...]:
        """Names of the price files laid over the catalog."""
        return tuple(self._price_files)

    def gpu(self, name: str) -> Gpu:
        """The GPU of that name, id or alias."""
        return self._gpu_table.get(self.gpu_id(name))

    def gpus(self) -> tuple[Gpu, ...]:
        """All GPUs, in the order of the file."""
        return self._gpu_table.where("gpu_id")

    def gpu_id(self, name: str) -> str:
        """The id that a GPU's name means."""
        return name if name in self._gpu_table.rows else self._gpu_aliases.resolve(name)

    def gpu_candidates(self, name: str) -> tuple[str, ...]:
        """All GPU ids that a name may mean: one, several ("A100") or none."""
        return (name,) if name in self._gpu_table.rows else self._gpu_aliases.candidates(name)

    def resolve_gpu(
        self,
        name: str,
        memory_gb: float | None = None,
        form_factor: str | None = None,
        instance_type: str | None = None,
    ) -> str:
        """The id that a GPU's name means in a price file or measurement, which says more of it (memory of one GPU).

        Raises GpuMismatchError where that contradicts the name, AmbiguousNameError where several GPUs are left.
        """
        ids = self.gpu_candidates(name) or (self.gpu_id(name),)
        choices = [self._gpu_table.get(gpu_id) for gpu_id in ids]
        return settle_gpu(name, choices, memory_gb, form_factor, instance_type)

    def gpu_suggestions(self, name: str) -> tuple[str, ...]:
        """Ids of GPUs whose names look like `name`."""
        return self._gpu_aliases.suggestions(name)

    def model(self, name: str) -> LlmArchitecture:
        """The model of that name, id or alias (Hugging Face names too)."""
        model_id = name if name in self._model_table.rows else self._model_aliases.resolve(name)
        return self._model_table.get(model_id)

    def models(self) -> tuple[LlmArchitecture, ...]:
        """All models, in the order of the file."""
        return self._model_table.where("model_id")

    def model_candidates(self, name: str) -> tuple[str, ...]:
        """All model ids that a name may mean."""
        return self._model_aliases.candidates(name)

    def offers(self, gpus: Collection[str] | None = None, *, as_written: bool = False) -> tuple[CloudOffer, ...]:
        """Cloud offers with one of `gpus` (names or ids; all offers for None), by provider, then of price files.

        With `as_written` the names are taken for ids, and one that the catalog lacks is that of a GPU of the buyer's
        own, which only price files can have.
        """
        wanted = self._ids(gpus, as_written=as_written)
        if self._only_price_files:
            return self._price_file_offers(wanted)
        replaced = {offer_id for table in self._price_tables for offer_id in table.rows}
        tables = (table for table in self._offer_tables if wanted is None or table.mentions(wanted))
        packaged = (offer for table in tables for offer in table.where("gpu_id", wanted))
        return (*(offer for offer in packaged if offer.offer_id not in replaced), *self._price_file_offers(wanted))

    def provider_files(self) -> tuple[str, ...]:
        """Providers by the names of their files (`offers/<provider>.csv`), without reading any."""
        return () if self._only_price_files else tuple(path.name.removesuffix(".csv") for path in self._offer_files())

    def _price_file_offers(self, wanted: Collection[str] | None) -> tuple[CloudOffer, ...]:
        found = (offer for table in self._price_tables for offer in table.where("gpu_id", wanted))
        return tuple({offer.offer_id: offer for offer in found}.values())

    def price_file_gpus(self) -> dict[str, tuple[str, int]]:
        """GPU ids as the price files write them, each with the file and line where it first stands."""
        return self._first_in_price_files("gpu_id")

    def price_file_days(self) -> dict[str, tuple[str, int]]:
        """Days of prices as the price files write them, each with the file and line where it first stands."""
        return self._first_in_price_files("priced_on")

    def _first_in_price_files(self, column: str) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        for name, table in zip(self._price_files, self._price_tables, strict=True):
            for row in table.rows.values():
                found.setdefault(row[column], (name, row.line))
        return found

    def servers(self, gpus: Collection[str] | None = None, *, as_written: bool = False) -> tuple[ServerOffer, ...]:
        """Servers on sale with one of `gpus` (names or ids, or ids `as_written`; all servers for None)."""
        if self._only_price_files:
            return ()
        return self._server_table.where("gpu_id", self._ids(gpus, as_written=as_written))

    def unknown_alias_targets(self) -> Iterator[tuple[str, str, str]]:
        """Kind, name and target of every alias that leads nowhere."""
        for kind, table in (("gpu", self._gpu_aliases), ("model", self._model_aliases)):
            yield from ((kind, name, target) for name, target in table.unknown_targets().items())

    def other_names(self, kind: str, row_id: str) -> tuple[str, ...]:
        """Names that the alias table gives a GPU or model (kind `gpu` or `model`), also those it shares."""
        return tuple(alias.name for alias in self._alias_rows if (alias.kind, alias.target) == (kind, row_id))

    def scan(self) -> Iterator[tuple[str, Any]]:
        """Every row of every file as a record, or as the CatalogFileError it gives; with the name of its kind."""
        tables: list[tuple[str, Table[Any]]] = [("gpu", self._gpu_table), ("model", self._model_table)]
        tables += [("server", self._server_table), ("site cost", self._table("site_costs.csv", SITE_COST_LAYOUT))]
        tables += [("resale value", self._table("resale_values.csv", RESALE_LAYOUT))]
        tables += [("typical discount", self._table("typical_discounts.csv", DISCOUNT_LAYOUT))]
        tables += [("offer", table) for table in (*self._offer_tables, *self._price_tables)]
        for kind, table in tables:
            yield from ((kind, found) for found in table.scan())

    def typical_discounts(self) -> tuple[TypicalDiscount, ...]:
        """Ranges from the literature of what reservations cost less than on-demand."""
        return self._table("typical_discounts.csv", DISCOUNT_LAYOUT).where("discount_id")

    def resale_values(self) -> tuple[ResaleValue, ...]:
        """What used servers sell for by age, from young to old."""
        return tuple(
            sorted(self._table("resale_values.csv", RESALE_LAYOUT).where("age_id"), key=lambda v: v.age_months)
        )

    def electricity(self, region: str) -> SiteCost:
        """What businesses pay for electricity in a region, newest row; UnknownNameError gives regions like it."""
        return electricity_of(self.site_costs(), region)

    def site_costs(self) -> tuple[SiteCost, ...]:
        """Reference prices of electricity, colocation, PUE, upkeep, resale, network, staff and egress."""
        return self._table("site_costs.csv", SITE_COST_LAYOUT).where("cost_id")

    @cached_property
    def version(self) -> str:
        """Date of the newest row and a short hash of all files, e.g. `2026-12-01+1f3a9c04`."""
        days = (day for _, path in self._csv_files() for day in _DATE_CELL.findall(path.read_bytes()))
        newest = max(days, default=b"")
        text = "\n".join(f"{name} {digest}" for name, digest in self.file_hashes().items())
        return f"{newest.decode()}+{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of every CSV file by its name within the catalog, sorted."""
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self._csv_files()}

    def _csv_files(self) -> Iterator[tuple[str, Traversable]]:
        """Every file that is read, by its name within the catalog."""
        folders = (self._directory,) if self._is_whole else (DEFAULT_DIRECTORY, self._directory)
        found = {path.name: path for folder in folders for path in folder.iterdir() if path.name.endswith(".csv")}
        found.update({f"offers/{path.name}": path for path in self._offer_files()})
        yield from sorted(found.items())

    @cached_property
    def _is_whole(self) -> bool:
        """Whether the directory is a catalog; else it holds only `offers/`, and the packaged catalog has the rest."""
        has_gpus = self._directory.joinpath("gpus.csv").is_file()
        return has_gpus or not self._directory.joinpath("offers").is_dir()

    def _place(self, name: str) -> tuple[Traversable, str]:
        """Where a file is read, and its name in messages."""
        path = self._directory.joinpath(*name.split("/"))
        if self._is_whole or path.is_file():
            return path, f"{self._label}/{name}"
        return DEFAULT_DIRECTORY.joinpath(name), f"catalog/{name}"

    def _offer_files(self) -> list[Traversable]:
        folder = self._directory.joinpath("offers")
        if not folder.is_dir():
            return []
        return sorted((path for path in folder.iterdir() if path.name.endswith(".csv")), key=lambda path: path.name)

    def _ids(self, gpus: Collection[str] | None, *, as_written: bool = False) -> frozenset[str] | None:
        return None if gpus is None else frozenset(name if as_written else self.gpu_id(name) for name in gpus)

    def _table(self, name: str, layout: Layout[Record]) -> Table[Record]:
        return Table(*self._place(name), layout)

    @cached_property
    def _gpu_table(self) -> Table[Gpu]:
        return self._table("gpus.csv", GPU_LAYOUT)

    @cached_property
    def _model_table(self) -> Table[LlmArchitecture]:
        return self._table("models.csv", MODEL_LAYOUT)

    @cached_property
    def _server_table(self) -> Table[ServerOffer]:
        return self._table("servers.csv", SERVER_LAYOUT)

    @cached_property
    def _offer_tables(self) -> tuple[Table[CloudOffer], ...]:
        return tuple(self._table(f"offers/{path.name}", OFFER_LAYOUT) for path in self._offer_files())

    @cached_property
    def _price_tables(self) -> tuple[Table[CloudOffer], ...]:
        return tuple(Table(path, name, OFFER_LAYOUT) for name, path in self._price_files.items())

    @cached_property
    def _gpu_aliases(self) -> AliasTable:
        return self._alias_table("GPU", "gpu", self._gpu_table.rows)

    @cached_property
    def _model_aliases(self) -> AliasTable:
        return self._alias_table("model", "model", self._model_table.rows)

    def _alias_table(self, noun: str, kind: str, ids: Iterable[str]) -> AliasTable:
        pairs = [(alias.name, alias.target) for alias in self._alias_rows if alias.kind == kind]
        words = [alias.name for alias in self._alias_rows if alias.kind == f"{kind}-word"]
        others = [(alias.name, alias.target) for alias in self._alias_rows if alias.kind == f"{kind}-other"]
        return AliasTable(noun, ids, pairs, words, others)

    @cached_property
    def _alias_rows(self) -> tuple[Alias, ...]:
        return read_aliases(*self._place("aliases.csv"))


def load_catalog(directory: Path | None = None) -> Catalog:
    """The catalog in `directory`, or the one that comes with the package. Reads nothing yet.

    Raises
    ------
    CatalogFileError
        If the directory holds neither a table of the catalog nor a folder of offers.
    """
    if directory is None:
        return Catalog(DEFAULT_DIRECTORY, "catalog")
    if not (directory / "offers").is_dir() and not any(directory.glob("*.csv")):
        message = "no such file or folder: a catalog directory holds offers/<provider>.csv or tables like gpus.csv"
        raise CatalogFileError(str(directory), 0, None, message)
    return Catalog(directory, str(directory))
