"""`gpumix catalog import` and `refresh`: price files of others become files of offers that `solve` uses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optimizer.cli.common import CatalogDirectory, Common, Format, with_common_options, write_file
from optimizer.cli.output import check_distinct, write_answer
from optimizer.report.sections import Section, columns
from optimizer.report.words import counted

if TYPE_CHECKING:
    from catalog import Catalog
    from catalog.importing import ImportRun

EXIT_NO = 1
MOST_BYTES_FROM_INPUT = 500_000_000
UNKNOWN_DATE = "unknown"


class Form(StrEnum):
    """Formats of price files."""

    SKYPILOT = "skypilot"
    GPUHUNT = "gpuhunt"
    CSV = "csv"


class PricePer(StrEnum):
    """What the prices of a file are for."""

    NODE = "node"
    GPU = "gpu"
    NODE_MONTH = "node-month"
    GPU_MONTH = "gpu-month"
    NODE_YEAR = "node-year"
    GPU_YEAR = "gpu-year"


def _provider(name: str) -> str:
    """A provider's name that can stand in ids and file names, as the catalog writes it."""
    from catalog.importing.names import provider_name
    from optimizer.problem.schema import OWN_PROVIDER

    plain = provider_name(name)
    if plain == OWN_PROVIDER:
        msg = f'"{name}" stands for your own hardware; give the provider another name'
        raise typer.BadParameter(msg)
    if not plain or not all(sign.isascii() and (sign.isalnum() or sign in ".-_") for sign in plain):
        msg = f'"{name}" is no provider name; write letters, digits, dots and dashes, e.g. lambda'
        raise typer.BadParameter(msg)
    return plain.lstrip(".") or "provider"


def _day(text: str | None) -> date | None:
    """A date that has come (by UTC), or None for `unknown`."""
    if text is None or text == UNKNOWN_DATE:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        msg = (
            f'"{text}" is no date; write YYYY-MM-DD, or unknown if the file does not say (it then fails any age limit)'
        )
        raise typer.BadParameter(msg) from None
    today = datetime.now(UTC).date()
    if day > today:
        msg = f"the date {day} is still to come (today is {today}, UTC); write the day on which the prices were read"
        raise typer.BadParameter(msg, param_hint="--priced-on")
    return day


def _pair(text: str) -> tuple[str, str]:
    ours, _, theirs = text.partition("=")
    if not ours.strip() or not theirs.strip():
        msg = f'"{text}" is no pair; write our column = theirs, e.g. price="USD per hour"'
        raise typer.BadParameter(msg, param_hint="--column")
    return ours.strip(), theirs.strip()


PricedOn = typer.Option(
    "--priced-on", metavar="DATE", help="Day of the prices, YYYY-MM-DD; unknown if the file does not say."
)


@with_common_options
def import_(
    form: Annotated[Form, typer.Argument(metavar="skypilot|gpuhunt|csv", help="Format of the file.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Price file; - reads standard input.")],
    common: Common,
    provider: Annotated[str, typer.Option(metavar="NAME", callback=_provider, help="Whose prices they are.")],
    priced_on: Annotated[str, PricedOn],
    price_per: Annotated[
        PricePer, typer.Option(help="What a price of the file is for, where it does not say; months and years: csv.")
    ] = PricePer.NODE,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="OURS=THEIRS", help="Name of a column in the file (csv), e.g. price='USD/h'; repeatable."),
    ] = None,
    catalog: CatalogDirectory = None,
) -> None:
    """Turn a price file of SkyPilot, gpuhunt or your own into offers that `solve` uses.

    Use the result as `options: {price_files: [FILE]}` in a problem file, or a directory of them as `--catalog DIR`.
    What is dropped is counted by reason (-v and -o json list every row). Exit codes: 0 offers were found; 1 none was;
    2 a file that cannot be read.
    """
    from catalog.importing import Settings, import_prices
    from catalog.importing.basis import Basis, price_basis
    from catalog.load import load_catalog

    pairs = tuple(_pair(text) for text in column or ())
    if pairs and form is not Form.CSV:
        msg = f"--column is for the form csv; {form} files name their columns themselves"
        raise typer.BadParameter(msg, param_hint="--column")
    basis = price_basis(price_per) or Basis()
    if basis.hours > 1 and form is not Form.CSV:
        msg = f"prices of {form} files are per hour; write node or gpu"
        raise typer.BadParameter(msg, param_hint="--price-per")
    check_distinct({"--out": common.out}, {"the price file": file})
    label = "<stdin>" if file == "-" else Path(file).name
    settings = Settings(provider, _day(priced_on), label, basis, pairs)
    run = import_prices(form, _read(file), settings, load_catalog(catalog))
    found = _Imported(run, form, _written(run, common.out))
    _tell(found, common)
    _answer([found], common)
    if not run.rows:
        raise typer.Exit(EXIT_NO)


def _read(file: str) -> bytes:
    from catalog.importing.tables import read_price_file

    if file == "-":
        import sys

        return sys.stdin.buffer.read(MOST_BYTES_FROM_INPUT)
    return read_price_file(Path(file), file)


@with_common_options
def refresh(
    common: Common,
    provider: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Whose prices; all that have an archive by default.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="GPUMIX_PRICES_URL", help="Where the archives are; gpuhunt's by default."),
    ] = None,
    priced_on: Annotated[str | None, PricedOn] = None,
    timeout: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds to wait for an answer.")] = 30.0,
    catalog: CatalogDirectory = None,
) -> None:
    """Fetch current prices (archives of gpuhunt, one per provider) and write them as files of offers to `--out DIR`.

    Needs a network, and `pip install gpumix[live]` unless `--url` is given. Exit codes: 0 all were fetched; 1 some were
    not; 2 none was.
    """
    from catalog.importing.refresh import archive_url, archives
    from catalog.load import load_catalog

    if common.out is None or common.out.suffix == ".csv":
        msg = "name a directory for the files of offers, e.g. --out prices"
        raise typer.BadParameter(msg, param_hint="--out")
    base, names = archive_url(url), archives(provider or ())
    stock, day = load_catalog(catalog), _day(priced_on)
    results = [_refreshed(name, base, timeout, day, stock, common) for name in names]
    found = [result for result in results if result is not None]
    _answer(found, common)
    if len(found) < len(results):
        raise typer.Exit(EXIT_NO if found else 2)


def _refreshed(
    archive: str, base: str, timeout: float, day: date | None, stock: "Catalog", common: Common
) -> "_Imported | None":
    """One provider's prices, fetched, imported and written; None, and said, where that fails."""
    from catalog.errors import CatalogError
    from catalog.importing import Settings, import_prices
    from catalog.importing.refresh import fetch

    try:
        fetched = fetch(base, archive, timeout)
        provider = _provider(archive)
        settings = Settings(provider, day or fetched.day, f"gpuhunt {archive} {fetched.version}")
        run = import_prices(Form.GPUHUNT, fetched.data, settings, stock)
    except CatalogError as error:
        common.say(f"{archive}: error: {error}")
        return None
    found = _Imported(run, Form.GPUHUNT, _written(run, common.out))
    _tell(found, common)
    return found


# --- what came of it --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Imported:
    """An import and where its offers were written."""

    run: "ImportRun"
    form: str
    path: Path | None


def _written(run: "ImportRun", out: Path | None) -> Path | None:
    """Write the offers to `out`, a file or a directory; None if there are none or they go to standard output."""
    from catalog.importing import offers_csv

    if out is None or str(out) == "-" or not run.rows:
        return None
    path = out
    if out.is_dir() or out.suffix != ".csv":
        path = out / "offers" / f"{run.settings.provider}.csv"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{path.parent}: {error.strerror or error}; choose another directory"
        raise typer.BadParameter(msg, param_hint="--out") from None
    write_file(offers_csv(run), path)
    return path


def _tell(found: _Imported, common: Common) -> None:
    """Say what was imported and what was dropped, by reason; every row with -v."""
    from catalog.importing.offers import DROPPED, REMARKS

    run = found.run
    where = f", written to {found.path}" if found.path else ""
    offers = counted(len(run.rows), "offer")
    common.say(f"{run.settings.label}: {counted(run.lines_read, 'row')}, {offers} of {run.settings.provider}{where}")
    if run.unread_columns:
        common.say(f"  not read: {counted(len(run.unread_columns), 'column')}: {', '.join(run.unread_columns)}")
    for counts, words, verb in ((run.counts(), DROPPED, "dropped"), (run.remark_counts(), REMARKS, "note")):
        for code, count in counts.items():
            common.say(f"  {verb} {count:,}: {words[code]}")
    for note in (*run.dropped, *run.remarks):
        common.detail(f"  line {note.line}: {note.code}: {note.detail}")
    if found.path:
        common.detail(f"check them: gpumix catalog check {found.path}")


def _answer(found: Sequence[_Imported], common: Common) -> None:
    """Offers as CSV where they go nowhere else; in the other forms the account of the import."""
    from catalog.importing import offers_csv

    to_file = common.out is not None and str(common.out) != "-"
    if common.output in (Format.TABLE, Format.CSV):
        if not to_file:
            common.write("".join(offers_csv(one.run) for one in found if one.run.rows))
        return
    documents = [import_document(one, with_offers=not to_file) for one in found]
    document = documents[0] if len(documents) == 1 else documents
    sections = [section for one in found for section in _sections(one)]
    write_answer(document, sections, "", replace(common, out=None))


def import_document(found: _Imported, *, with_offers: bool) -> dict[str, Any]:
    """The account of an import as plain data."""
    from catalog.importing.offers import DROPPED, REMARKS

    run = found.run
    settings = run.settings
    return {
        "form": str(found.form),
        "file": settings.label,
        "provider": settings.provider,
        "priced_on": settings.priced_on.isoformat() if settings.priced_on else None,
        "rows_read": run.lines_read,
        "offer_count": len(run.rows),
        "unread_columns": run.unread_columns,
        "written_to": str(found.path) if found.path else None,
        "dropped_by_reason": run.counts(),
        "dropped": [
            {"line": n.line, "code": n.code, "reason": DROPPED[n.code], "detail": n.detail} for n in run.dropped
        ],
        "remarks": [
            {"line": n.line, "code": n.code, "meaning": REMARKS[n.code], "detail": n.detail} for n in run.remarks
        ],
        **({"offers": _offer_records(run)} if with_offers else {}),
    }


def _offer_records(run: "ImportRun") -> list[dict[str, str]]:
    import csv

    from catalog.importing import offers_csv

    return list(csv.DictReader(offers_csv(run).splitlines()))


def _sections(found: _Imported) -> list[Section]:
    from catalog.importing.offers import DROPPED

    run = found.run
    rows = tuple((code, DROPPED[code], f"{count:,}") for code, count in run.counts().items())
    notes = (f"{counted(run.lines_read, 'row')} read, {counted(len(run.rows), 'offer')} kept.",)
    title = f"Import of {run.settings.label} ({run.settings.provider})"
    return [Section(title, columns("Code", "Dropped because", ">Rows"), rows, notes)]
