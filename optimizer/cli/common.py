"""What the verbs share: output options, where data and talk go, files that are written whole or not at all."""

import contextlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optimizer.errors import OptimizerError, OutputError

if TYPE_CHECKING:
    from rich.console import Console


class Format(StrEnum):
    """Forms of output."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    MARKDOWN = "md"


ProblemFile = Annotated[str, typer.Argument(metavar="FILE", help="Problem file (YAML); - reads standard input.")]
CatalogDirectory = Annotated[
    Path | None,
    typer.Option(
        "--catalog",
        metavar="DIR",
        envvar="GPUMIX_CATALOG",
        exists=True,
        file_okay=False,
        help="Directory of another catalog (the same CSV files); the one that comes with gpumix by default.",
    ),
]


@dataclass(frozen=True, slots=True)
class Common:
    """The options of every verb, and what follows from them."""

    output: Format = Format.TABLE
    out: Path | None = None
    quiet: bool = False
    verbose: bool = False
    progress: bool = True
    color: bool = True

    def write(self, text: str) -> None:
        """Give out the data: to `--out`, else to standard output."""
        write_output(text, self.out)

    def say(self, text: str) -> None:
        """Tell the person something (standard error), unless `-q`."""
        if not self.quiet:
            sys.stderr.write(f"{text}\n")

    def detail(self, text: str) -> None:
        """Tell the person more (standard error), with `-v` only."""
        if self.verbose:
            self.say(text)

    @property
    def show_progress(self) -> bool:
        """Whether to show progress: on a terminal only, and not with `-q` or `--no-progress`."""
        return self.progress and not self.quiet and sys.stderr.isatty()

    def console(self, *, stderr: bool = False) -> "Console":
        """A rich console on standard output or error that honours `--no-color` and NO_COLOR."""
        from rich.console import Console

        return Console(stderr=stderr, no_color=not self.color or None, highlight=False)


def with_common_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Give `verb`, which takes a parameter `common: Common`, the options of every verb in its place."""
    signature = inspect.signature(verb, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "common"]
    shared = list(inspect.signature(_common_options, eval_str=True).parameters.values())

    def wrapped(**arguments: Any) -> None:
        options = {parameter.name: arguments.pop(parameter.name) for parameter in shared}
        verb(**arguments, common=_common_options(**options))

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *shared)]
    wrapped.__name__, wrapped.__doc__, wrapped.__module__ = verb.__name__, verb.__doc__, verb.__module__
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
    wrapped.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    return wrapped


def _common_options(
    output: Annotated[
        Format, typer.Option("--output", "-o", envvar="GPUMIX_OUTPUT", help="Form of the output.")
    ] = Format.TABLE,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write to a file, whole or not at all.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", envvar="GPUMIX_QUIET", help="No talk, only data.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", envvar="GPUMIX_VERBOSE", help="More talk.")] = False,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", envvar="GPUMIX_NO_PROGRESS", help="No progress display.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", envvar="GPUMIX_NO_COLOR", help="No colours (also NO_COLOR).")
    ] = False,
) -> Common:
    color = not no_color and not os.environ.get("NO_COLOR")
    return Common(output, out, quiet, verbose, not no_progress, color)


def write_output(text: str, out: Path | None) -> None:
    """Write `text`, ended by a newline, to the file `out` (whole or not at all) or to standard output.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    text = text if text.endswith("\n") else f"{text}\n"
    if out is None or str(out) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_file(text, out)


def write_file(text: str, path: Path) -> None:
    """Replace the content of `path` by `text` in one step: readers see the old content or the new, never a part.

    Raises
    ------
    OutputError
        If the file cannot be written; the old content is then untouched.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_text(text, encoding="utf-8")  # a device or pipe cannot be replaced
            return
        with _replacement(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        msg = f"{path}: error: cannot write the output: {reason}; choose another file with --out"
        raise OutputError(msg) from error


@contextlib.contextmanager
def _replacement(target: Path) -> Iterator[Path]:
    """A file beside `target` that takes its place when the block ends well, and goes away when it does not."""
    if target.is_dir():
        raise IsADirectoryError(21, "it is a directory")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def records_text(records: Sequence[dict[str, Any]], form: Format, keys: Sequence[str] = ()) -> str:
    """Records with the same keys as text in any form but `table`, which is each verb's own.

    `keys` are the headings where there may be no record.

    Raises
    ------
    OptimizerError
        If asked for a table.
    """
    import json

    match form:
        case Format.JSON:
            return json.dumps(list(records), indent=2, ensure_ascii=False)
        case Format.YAML:
            from optimizer.problem.load import dump_yaml

            return dump_yaml(list(records))
        case Format.CSV:
            return _csv_text(records, keys or _keys(records))
        case Format.MARKDOWN:
            return _markdown_text(records, keys or _keys(records))
    msg = f"no general form for {form}"
    raise OptimizerError(msg)


def _keys(records: Sequence[dict[str, Any]]) -> list[str]:
    return list(records[0]) if records else []


def _csv_text(records: Sequence[dict[str, Any]], keys: Sequence[str]) -> str:
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, keys, lineterminator="\n")
    if keys:
        writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


def _markdown_text(records: Sequence[dict[str, Any]], keys: Sequence[str]) -> str:
    if not keys:
        return ""
    cells = [["" if record[key] is None else str(record[key]) for key in keys] for record in records]
    return "\n".join(_markdown_row(row) for row in (list(keys), ["---"] * len(keys), *cells))


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"
