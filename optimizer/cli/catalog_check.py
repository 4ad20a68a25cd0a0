"""`gpumix catalog check`: integrity and plausibility of the catalog or of files of offers."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optimizer.cli.common import CatalogDirectory, Common, with_common_options
from optimizer.cli.output import check_outputs, write_answer
from optimizer.report.forms import csv_text
from optimizer.report.sections import Section, columns
from optimizer.report.words import counted

if TYPE_CHECKING:
    from catalog.plausibility import Finding

EXIT_NO = 1
COLUMNS = ("file", "line", "severity", "code", "message")
MOST_FINDINGS_SHOWN = 40
DEFAULT_STALE_DAYS = 365


@with_common_options
def check(
    common: Common,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILES]", help="Files of offers (as import writes them); the whole catalog by default."
        ),
    ] = None,
    stale_after: Annotated[
        int, typer.Option(metavar="DAYS", min=1, help="Age from which a price counts as stale.")
    ] = DEFAULT_STALE_DAYS,
    catalog: CatalogDirectory = None,
) -> None:
    """Check integrity and plausibility: prices, identities, GPUs, dates, each finding with file:line.

    Exit codes: 0 nothing or warnings only; 1 errors; 2 bad usage.
    """
    from catalog.load import load_catalog
    from catalog.plausibility import check_catalog

    check_outputs({"--out": common.out}, {f"the price file {file}": file for file in files or ()})
    prices = {str(file): _readable(file) for file in files or ()}
    stock = load_catalog(catalog).with_price_files(prices)
    today = datetime.now(UTC).date()
    found = check_catalog(stock, today, files=prices or None, stale_days=stale_after)
    document = check_document(found)
    write_answer(document, check_sections(found, ", ".join(prices)), csv_text(document["findings"], COLUMNS), common)
    common.say(f"{counted(document['errors'], 'error')}, {counted(document['warnings'], 'warning')}")
    if document["errors"]:
        raise typer.Exit(EXIT_NO)


def _readable(file: Path) -> Path:
    if not file.is_file():
        what = "a directory; write its files, or --catalog for a whole catalog" if file.is_dir() else "no such file"
        msg = f"{file}: {what}"
        raise typer.BadParameter(msg, param_hint="FILES")
    return file


def check_document(found: Sequence["Finding"]) -> dict[str, Any]:
    """The findings as plain data."""
    severities = Counter(finding.severity for finding in found)
    return {
        "ok": not severities["error"],
        "errors": severities["error"],
        "warnings": severities["warning"],
        "by_code": dict(Counter(finding.code for finding in found).most_common()),
        "findings": [{name: getattr(finding, name) for name in COLUMNS} for finding in found],
    }


def check_sections(found: Sequence["Finding"], name: str) -> list[Section]:
    """How many there are of each kind, and the first of them, errors before warnings."""
    by_kind = Counter((finding.severity, finding.code) for finding in found)
    kinds = Section(
        f"Check of {name or 'the catalog'}" + ("" if found else ": nothing found"),
        columns("Severity", "Code", ">Findings"),
        tuple((severity, code, f"{count:,}") for (severity, code), count in sorted(by_kind.items())),
    )
    rare = sorted(found, key=lambda f: (f.severity, by_kind[f.severity, f.code], f.code))[:MOST_FINDINGS_SHOWN]
    more = len(found) - len(rare)
    rows = tuple((f"{f.file}:{f.line}", f.severity, f.code, f.message) for f in rare)
    notes = (f"{more:,} more; -o json lists all",) if more else ()
    return [kinds, *([Section("Findings", columns("Place", "Severity", "Code", "What"), rows, notes)] if rows else [])]
