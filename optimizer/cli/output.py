"""Sections and documents to standard output or a file, in the form asked for."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from optimizer.cli.common import Common, Format
from optimizer.report.forms import json_text, yaml_text
from optimizer.report.sections import Section, markdown

if TYPE_CHECKING:
    from optimizer.problem.load import LoadedProblem


def write_answer(document: Any, sections: Sequence[Section], csv: str, common: Common) -> None:
    """Give out an answer: JSON and YAML are the document, table and Markdown its sections, CSV its lines."""
    match common.output:
        case Format.JSON:
            common.write(json_text(document))
        case Format.YAML:
            common.write(yaml_text(document))
        case Format.CSV:
            common.write(csv)
        case Format.MARKDOWN:
            common.write(markdown(sections))
        case Format.TABLE:
            _write_tables(sections, common)


def _write_tables(sections: Sequence[Section], common: Common) -> None:
    """Colours on a terminal only; plain text in files, pipes, with --no-color, NO_COLOR and TERM=dumb."""
    from optimizer.report.tables import PLAIN_WIDTH, plain_text, renderables

    if common.out is not None:
        common.write(plain_text(sections))
        return
    terminal = sys.stdout.isatty()
    if terminal and common.color and os.environ.get("TERM") != "dumb":
        console = common.console()
        for part in renderables(sections):
            console.print(part)
        return
    width = common.console().width if terminal else PLAIN_WIDTH
    common.write(plain_text(sections, width=width, encoding=sys.stdout.encoding or "utf-8"))


def only_forms(common: Common, what: str, *forms: Format) -> None:
    """Refuse forms that an answer cannot take; the table is always allowed and stands for the answer's own form.

    Raises
    ------
    typer.BadParameter
        For every other form.
    """
    if common.output not in (Format.TABLE, *forms):
        names = " or ".join(str(form.value) for form in forms)
        msg = f"{what} cannot be given as {common.output.value}; write -o {names}, or leave it out"
        raise typer.BadParameter(msg, param_hint="--output")


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, str | Path | None] | None = None) -> None:
    """Refuse places for output before the work begins: such as cannot be written, are inputs, or are one place.

    `outputs` by their options, `inputs` by what they are.

    Raises
    ------
    typer.BadParameter
        If an output cannot be written to, or would overwrite an input or another output.
    """
    for flag, output in outputs.items():
        check_writable(output, flag)
    check_distinct(outputs, inputs or {})


def check_distinct(outputs: Mapping[str, Path | None], inputs: Mapping[str, str | Path | None]) -> None:
    """Refuse outputs that would overwrite an input or each other.

    Raises
    ------
    typer.BadParameter
        If two of them are the same file.
    """
    taken = {path: name for name, given in inputs.items() if (path := _place(given)) is not None}
    for flag, output in outputs.items():
        path = _place(output)
        if path is None:
            continue
        if path in taken:
            msg = f"{output} is {taken[path]} as well and would be overwritten; name another file"
            raise typer.BadParameter(msg, param_hint=flag)
        taken[path] = f"the file of {flag}"


def check_spared(outputs: Mapping[str, Path | None], file: str, loaded: "LoadedProblem") -> None:
    """Refuse outputs that would overwrite a file which the problem names: traffic, model configurations, prices.

    Raises
    ------
    typer.BadParameter
        If an output is one of them.
    """
    folder = Path() if file == "-" else Path(file).parent
    inputs: dict[str, str | Path | None] = {}
    for name, _ in loaded.files:
        beside = folder / name
        inputs[f"a file of the problem ({name})"] = beside if beside.exists() else name
    check_distinct(outputs, inputs)


def _place(given: str | Path | None) -> Path | None:
    """The file itself, behind links; None for the standard streams, devices and pipes."""
    if given is None or str(given) == "-":
        return None
    path = Path(given).resolve()
    return None if path.exists() and not path.is_file() else path


def check_writable(path: Path | None, flag: str) -> None:
    """Refuse a place for output before the work begins.

    Raises
    ------
    typer.BadParameter
        If it is a directory, or its directory does not exist or may not be written to.
    """
    if path is None or str(path) == "-":
        return
    if path.is_dir():
        msg = f"{path} is a directory; name a file in it"
        raise typer.BadParameter(msg, param_hint=flag)
    if not path.resolve().parent.is_dir():
        msg = f"the directory of {path} does not exist; create it first"
        raise typer.BadParameter(msg, param_hint=flag)
    if not path.exists() and not os.access(path.resolve().parent, os.W_OK):
        msg = f"no right to write in the directory of {path}"
        raise typer.BadParameter(msg, param_hint=flag)
