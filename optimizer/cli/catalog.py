"""`gpumix catalog`: what the catalog holds, filtered, and all facts of one entry."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optimizer.cli.catalog_check import check
from optimizer.cli.catalog_import import import_, refresh
from optimizer.cli.common import CatalogDirectory, Common, with_common_options
from optimizer.cli.output import check_outputs, write_answer
from optimizer.errors import CatalogLookupError
from optimizer.report.forms import csv_text

if TYPE_CHECKING:
    from catalog import Catalog

app = typer.Typer(
    name="catalog",
    help="GPUs, models, offers and servers of the catalog.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)
app.command("check")(check)
app.command("import")(import_)
app.command("refresh")(refresh)
MOST_OFFERS_SHOWN = 10


class Kind(StrEnum):
    """What the catalog holds."""

    GPUS = "gpus"
    OFFERS = "offers"
    MODELS = "models"
    SERVERS = "servers"
    SITE_COSTS = "site-costs"


class Order(StrEnum):
    """What a list of offers is sorted by."""

    PRICE = "price"
    AGE = "age"
    GPU = "gpu"
    PROVIDER = "provider"
    REGION = "region"


class Purchase(StrEnum):
    """Ways to have a node."""

    OWNED = "owned"
    RESERVED = "reserved"
    COMMITTED_USE = "committed-use"
    ON_DEMAND = "on-demand"
    SPOT = "spot"


def _positive(value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        msg = f"{value:g} is no price; write USD above 0"
        raise typer.BadParameter(msg)
    return value


@app.command("list")
@with_common_options
def list_(
    common: Common,
    kind: Annotated[
        Kind, typer.Argument(metavar="[gpus|offers|models|servers|site-costs]", help="What to list.")
    ] = Kind.GPUS,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="GPU type; A100 means all of that name.")] = None,
    provider: Annotated[str | None, typer.Option(metavar="NAME", help="Provider (offers); * and ? match.")] = None,
    region: Annotated[str | None, typer.Option(metavar="PATTERN", help="Region (offers), e.g. eu-*.")] = None,
    purchase: Annotated[Purchase | None, typer.Option(help="Purchase option (offers).")] = None,
    max_price: Annotated[
        float | None,
        typer.Option(metavar="USD", callback=_positive, help="Most per GPU-hour (offers) or per node (servers)."),
    ] = None,
    min_price: Annotated[
        float | None, typer.Option(metavar="USD", callback=_positive, help="Least per GPU-hour (offers) or per node.")
    ] = None,
    max_age: Annotated[
        int | None, typer.Option(metavar="DAYS", min=0, help="Oldest price (offers, servers); undated ones fail.")
    ] = None,
    sort: Annotated[Order, typer.Option(help="Order of offers.")] = Order.PRICE,
    group_by: Annotated[
        str | None, typer.Option(metavar="KEYS", help="Ranges of offers by gpu,provider,region,purchase,nodes.")
    ] = None,
    catalog: CatalogDirectory = None,
) -> None:
    """List GPUs, offers, models, servers or site costs, cheapest first; offers also in groups."""
    check_outputs({"--out": common.out})
    wanted = _Filters(gpu, provider, region, purchase, max_price, min_price, max_age)
    wanted.check(kind)
    keys = _group_keys(group_by, kind)
    entries = _entries(kind, _open(catalog), wanted, sort)
    if keys:
        _write_groups(entries, keys, common)
    else:
        _write_list(kind, entries, sort, common)


def _group_keys(text: str | None, kind: Kind) -> list[str]:
    """The keys that offers are grouped by; none where they are not."""
    from optimizer.report.catalog_groups import GROUP_KEYS

    keys = list(dict.fromkeys(key.strip() for key in (text or "").split(",") if key.strip()))
    wrong = [key for key in keys if key not in GROUP_KEYS]
    if wrong or (text is not None and not keys):
        msg = f'"{", ".join(wrong)}" is no key; write some of {",".join(GROUP_KEYS)}'
        raise typer.BadParameter(msg, param_hint="--group-by")
    if keys and kind is not Kind.OFFERS:
        msg = f"it groups offers, not {kind}; write e.g. `gpumix catalog list offers --group-by gpu,provider`"
        raise typer.BadParameter(msg, param_hint="--group-by")
    return keys


def _write_groups(offers: Sequence[Any], keys: Sequence[str], common: Common) -> None:
    from optimizer.report.catalog_groups import group_columns, grouped_offers, groups_section

    groups = grouped_offers(offers, keys)
    write_answer(groups, [groups_section(groups, keys)], csv_text(groups, group_columns(keys)), common)


@app.command("show")
@with_common_options
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of any entry.")],
    common: Common,
    catalog: CatalogDirectory = None,
) -> None:
    """Show all facts of one entry, with units and sources; of a GPU its offers and servers too."""
    from optimizer.report.catalog_pages import entry_sections, list_section, record

    check_outputs({"--out": common.out})
    read = _open(catalog)
    entry = find_entry(name, read)
    found = record(entry)
    sold = _sold(entry, read)
    related = [list_section(kind, entries) for kind, entries in sold if entries]
    document = {**found, **_context(entry, read), **{kind.value: list(map(record, some)) for kind, some in sold}}
    first = next(iter(found.values()))
    write_answer(document, entry_sections(str(first), entry, related), csv_text([found], list(found)), common)


def _open(directory: Path | None) -> "Catalog":
    from catalog.load import load_catalog

    return load_catalog(directory)


@dataclass(frozen=True, slots=True)
class _Filters:
    """What to leave in a list."""

    gpu: str | None
    provider: str | None
    region: str | None
    purchase: Purchase | None
    max_price: float | None
    min_price: float | None = None
    max_age_days: int | None = None

    def check(self, kind: Kind) -> None:
        """Refuse filters that mean nothing for a kind.

        Raises
        ------
        typer.BadParameter
            Naming the first of them, and the kinds it is for.
        """
        offers = (Kind.OFFERS,)
        rules: tuple[tuple[str, object, Sequence[Kind]], ...] = (
            ("--gpu", self.gpu, (Kind.GPUS, Kind.OFFERS, Kind.SERVERS)),
            ("--provider", self.provider, offers),
            ("--region", self.region, offers),
            ("--purchase", self.purchase, offers),
            ("--max-price", self.max_price, (Kind.OFFERS, Kind.SERVERS)),
            ("--min-price", self.min_price, (Kind.OFFERS, Kind.SERVERS)),
            ("--max-age", self.max_age_days, (Kind.OFFERS, Kind.SERVERS)),
        )
        for flag, value, kinds in rules:
            if value is not None and kind not in kinds:
                example = f"gpumix catalog list {kinds[-1]} {flag} …"
                msg = f"it filters {' and '.join(kinds)}, not {kind}; write e.g. `{example}`"
                raise typer.BadParameter(msg, param_hint=flag)

    def offer(self, offer: Any) -> bool:
        """Whether an offer stays."""
        per_gpu = offer.price_usd_per_node_hour / offer.gpus_per_node
        return (
            _matches(self.provider, offer.provider)
            and _matches(self.region, offer.region)
            and self.purchase in (None, offer.purchase_option)
            and self._priced(per_gpu)
            and self._young(offer.ref.date)
        )

    def server(self, server: Any) -> bool:
        """Whether a server stays."""
        return self._priced(server.price_usd_per_node) and self._young(server.ref.date)

    def _priced(self, price: float) -> bool:
        above = self.min_price is None or price >= self.min_price
        return above and (self.max_price is None or price <= self.max_price)

    def _young(self, day: date | None) -> bool:
        """Whether a price is of the last days; one without a date is not."""
        if self.max_age_days is None:
            return True
        return day is not None and (datetime.now(UTC).date() - day).days <= self.max_age_days


def _matches(pattern: str | None, text: str) -> bool:
    return pattern is None or fnmatchcase(text.lower(), pattern.lower())


def _entries(kind: Kind, catalog: "Catalog", wanted: _Filters, order: Order = Order.PRICE) -> list[Any]:
    gpus = None if wanted.gpu is None else _gpu_ids(wanted.gpu, catalog)
    match kind:
        case Kind.GPUS:
            return [gpu for gpu in catalog.gpus() if gpus is None or gpu.gpu_id in gpus]
        case Kind.MODELS:
            return list(catalog.models())
        case Kind.SITE_COSTS:
            return list(catalog.site_costs())
        case Kind.SERVERS:
            servers = [server for server in catalog.servers(gpus) if wanted.server(server)]
            return sorted(servers, key=lambda s: (s.price_usd_per_node / s.gpus_per_node, s.server_id))
        case Kind.OFFERS:
            offers = [offer for offer in catalog.offers(gpus) if wanted.offer(offer)]
            return sorted(sorted(offers, key=_price_per_gpu), key=_ORDERS[order])


_ORDERS: dict[Order, Callable[[Any], Any]] = {
    Order.PRICE: lambda offer: 0,
    Order.AGE: lambda offer: offer.ref.date or date.min,
    Order.GPU: lambda offer: offer.gpu_id,
    Order.PROVIDER: lambda offer: offer.provider,
    Order.REGION: lambda offer: offer.region,
}


def _price_per_gpu(offer: Any) -> tuple[float, str]:
    return offer.price_usd_per_node_hour / offer.gpus_per_node, offer.offer_id


def _gpu_ids(name: str, catalog: "Catalog") -> tuple[str, ...]:
    """All ids that a name may mean. Raises UnknownNameError (with suggestions) if there is none."""
    return catalog.gpu_candidates(name) or (catalog.gpu_id(name),)


def _write_list(kind: Kind, entries: Sequence[Any], order: Order, common: Common) -> None:
    from optimizer.report.catalog_pages import list_section, record

    records = [record(entry) for entry in entries]
    names = list(records[0]) if records else []
    write_answer(records, [list_section(kind, entries, order)], csv_text(records, names), common)
    if not entries:
        common.say(f"no {kind} in the catalog match")


def find_entry(name: str, catalog: "Catalog") -> Any:
    """The GPU, model, offer, server or site cost of that name.

    Raises
    ------
    CatalogLookupError
        If nothing has that name (with the nearest ids), or several have.
    """
    gpus, models = catalog.gpu_candidates(name), catalog.model_candidates(name)
    if len(gpus) + len(models) > 1:
        choices = ", ".join((*gpus, *models))
        msg = f'"{name}" could mean several entries: write one of {choices}'
        raise CatalogLookupError(msg)
    if gpus:
        return catalog.gpu(gpus[0])
    if models:
        return catalog.model(models[0])
    sold: list[Any] = [*catalog.offers(), *catalog.servers(), *catalog.site_costs()]
    for entry in sold:
        if name.lower() == _id_of(entry).lower():
            return entry
    raise CatalogLookupError(_unknown(name, catalog, [_id_of(entry) for entry in sold]))


def _id_of(entry: Any) -> str:
    return str(next(getattr(entry, name) for name in ("offer_id", "server_id", "cost_id") if hasattr(entry, name)))


def _unknown(name: str, catalog: "Catalog", sold: Sequence[str]) -> str:
    from difflib import get_close_matches

    ids = [*(g.gpu_id for g in catalog.gpus()), *(m.model_id for m in catalog.models()), *sold]
    known = {one.lower(): one for one in ids}
    near = [known[match] for match in get_close_matches(name.lower(), known, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`gpumix catalog list offers` names what there is"
    return f'nothing in the catalog is called "{name}"; {hint}'


def _sold(entry: Any, catalog: "Catalog") -> list[tuple[Kind, Sequence[Any]]]:
    """Of a GPU: its cheapest offers and its servers; of a server: the offers of the same GPU."""
    from catalog.schema import Gpu, ServerOffer

    if not isinstance(entry, Gpu | ServerOffer):
        return []
    offers = sorted(catalog.offers([entry.gpu_id]), key=_price_per_gpu)[:MOST_OFFERS_SHOWN]
    servers = catalog.servers([entry.gpu_id]) if isinstance(entry, Gpu) else ()
    return [(Kind.OFFERS, offers), *([(Kind.SERVERS, servers)] if servers else [])]


def _context(entry: Any, catalog: "Catalog") -> dict[str, Any]:
    """What can be said of an entry beside its own facts: of a GPU or model its other names, of an offer per GPU."""
    if hasattr(entry, "offer_id"):
        return {"price_usd_per_gpu_hour": entry.price_usd_per_node_hour / entry.gpus_per_node}
    if hasattr(entry, "memory_sold_gb"):
        return {"also_called": list(catalog.other_names("gpu", entry.gpu_id))}
    if hasattr(entry, "model_id"):
        return {"also_called": list(catalog.other_names("model", entry.model_id))}
    return {}
