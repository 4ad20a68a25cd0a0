"""The catalog: GPUs, models, cloud offers and servers, read from CSV files when asked for."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from catalog.aliases import Alias, AliasTable, read_aliases
from catalog.checks import GPU_RULES, MODEL_RULES, OFFER_RULES, SERVER_RULES
from catalog.rows import Layout, Record, Table
from catalog.schema import CloudOffer, Gpu, LlmArchitecture, ServerOffer, SiteCost

DEFAULT_DIRECTORY: Traversable = files("catalog")

GPU_LAYOUT = Layout(Gpu, "gpu_id", "accessed_on", GPU_RULES)
MODEL_LAYOUT = Layout(LlmArchitecture, "model_id", "accessed_on", MODEL_RULES)
OFFER_LAYOUT = Layout(CloudOffer, "offer_id", "priced_on", OFFER_RULES)
SERVER_LAYOUT = Layout(ServerOffer, "server_id", "priced_on", SERVER_RULES)
SITE_COST_LAYOUT = Layout(SiteCost, "cost_id", "priced_on")


class Catalog:
    """GPUs, models, offers, servers and reference prices of one directory; parses only what is asked for.

    Every method raises CatalogFileError (file, line, column) for a cell it cannot use. Names go through the alias
    table: UnknownNameError gives suggestions, AmbiguousNameError the choices.
    """

    def __init__(self, directory: Traversable, label: str) -> None:
        self._directory = directory
        self._label = label

    def gpu(self, name: str) -> Gpu:
        """The GPU of that name, id or alias."""
        return self._gpu_table.get(self.gpu_id(name))

    def gpus(self) -> tuple[Gpu, ...]:
        """All GPUs, in the order of the file."""
        return self._gpu_table.where("gpu_id")

    def gpu_id(self, name: str) -> str:
        """The id that a GPU's name means."""
        return self._gpu_aliases.resolve(name)

    def gpu_candidates(self, name: str) -> tuple[str, ...]:
        """All GPU ids that a name may mean: one, several ("A100") or none."""
        return self._gpu_aliases.candidates(name)

    def model(self, name: str) -> LlmArchitecture:
        """The model of that name, id or alias (Hugging Face names too)."""
        return self._model_table.get(self._model_aliases.resolve(name))

    def models(self) -> tuple[LlmArchitecture, ...]:
        """All models, in the order of the file."""
        return self._model_table.where("model_id")

    def model_candidates(self, name: str) -> tuple[str, ...]:
        """All model ids that a name may mean."""
        return self._model_aliases.candidates(name)

    def offers(self, gpus: Collection[str] | None = None) -> tuple[CloudOffer, ...]:
        """Cloud offers with one of `gpus` (names or ids; all offers for None), by provider."""
        wanted = self._ids(gpus)
        return tuple(offer for table in self._offer_tables for offer in table.where("gpu_id", wanted))

    def servers(self, gpus: Collection[str] | None = None) -> tuple[ServerOffer, ...]:
        """Servers on sale with one of `gpus` (names or ids; all servers for None)."""
        return self._server_table.where("gpu_id", self._ids(gpus))

    def site_costs(self) -> tuple[SiteCost, ...]:
        """Reference prices of electricity, colocation, PUE, upkeep, resale, network, staff and egress."""
        return self._table("site_costs.csv", SITE_COST_LAYOUT).where("cost_id")

    @cached_property
    def version(self) -> str:
        """Date of the newest row and a short hash of all files, e.g. `2026-12-01+1f3a9c04`."""
        dates = [self._gpu_table.latest_date(), self._model_table.latest_date(), self._server_table.latest_date()]
        newest = max(dates + [table.latest_date() for table in self._offer_tables])
        text = "\n".join(f"{name} {digest}" for name, digest in self.file_hashes().items())
        return f"{newest}+{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def file_hashes(self) -> dict[str, str]:
        """SHA-256 of every CSV file by its name within the catalog, sorted."""
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self._csv_files()}

    def _csv_files(self) -> Iterator[tuple[str, Traversable]]:
        found = {path.name: path for path in self._directory.iterdir() if path.name.endswith(".csv")}
        found.update({f"offers/{path.name}": path for path in self._offer_files()})
        yield from sorted(found.items())

    def _offer_files(self) -> list[Traversable]:
        folder = self._directory.joinpath("offers")
        if not folder.is_dir():
            return []
        return sorted((path for path in folder.iterdir() if path.name.endswith(".csv")), key=lambda path: path.name)

    def _ids(self, gpus: Collection[str] | None) -> frozenset[str] | None:
        return None if gpus is None else frozenset(self.gpu_id(name) for name in gpus)

    def _table(self, name: str, layout: Layout[Record]) -> Table[Record]:
        return Table(self._directory.joinpath(*name.split("/")), f"{self._label}/{name}", layout)

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
    def _gpu_aliases(self) -> AliasTable:
        return self._alias_table("GPU", "gpu", self._gpu_table.rows)

    @cached_property
    def _model_aliases(self) -> AliasTable:
        return self._alias_table("model", "model", self._model_table.rows)

    def _alias_table(self, noun: str, kind: str, ids: Iterable[str]) -> AliasTable:
        pairs = [(alias.name, alias.target) for alias in self._alias_rows if alias.kind == kind]
        words = [alias.name for alias in self._alias_rows if alias.kind == f"{kind}-word"]
        return AliasTable(noun, ids, pairs, words)

    @cached_property
    def _alias_rows(self) -> tuple[Alias, ...]:
        return read_aliases(self._directory.joinpath("aliases.csv"), f"{self._label}/aliases.csv")


def load_catalog(directory: Path | None = None) -> Catalog:
    """The catalog in `directory`, or the one that comes with the package. Reads nothing yet."""
    return Catalog(directory, str(directory)) if directory else Catalog(DEFAULT_DIRECTORY, "catalog")
