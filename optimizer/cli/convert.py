"""`gpumix convert`: a problem file from another planner's file."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from optimizer.cli.common import Common, Format, with_common_options
from optimizer.cli.output import check_outputs, only_forms


class Form(StrEnum):
    """Formats of other planners."""

    MELANGE = "melange"


@with_common_options
def convert(
    form: Annotated[Form, typer.Argument(metavar="melange", help="Format of the file.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON file of that planner; - reads standard input.")],
    common: Common,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the problem; that of the file by default.")
    ] = None,
) -> None:
    """Turn the JSON of the Mélange solver (gpu_info, workload_distribution, total_request_rate) into a problem file.

    The problem's horizon is one hour, so the cost of its plan (cost.npv) is the hourly cost. Exit codes: 0 written;
    2 a file that cannot be used (every mistake is told, with its place).
    """
    only_forms(common, "a problem file", Format.YAML, Format.JSON)
    check_outputs({"--out": common.out}, {"the file to convert": file})
    from optimizer.convert.melange import read_melange
    from optimizer.convert.problem_file import left_out, problem_data, problem_text
    from optimizer.report.forms import json_text

    label, text = _read(file)
    instance = read_melange(text, label)
    title = name or ("melange" if file == "-" else Path(file).stem)
    common.write(
        json_text(problem_data(instance, title)) if common.output is Format.JSON else problem_text(instance, title)
    )
    for remark in left_out(instance):
        common.say(remark)
    if common.out is not None and str(common.out) != "-":
        common.say(f"{common.out} written; next: gpumix solve {common.out} --gap 0")


def _read(file: str) -> tuple[str, str]:
    """Name and text of the file, or of standard input."""
    from optimizer.problem.texts import MAX_FILE_BYTES, decode, read_file

    if file == "-":
        return "<stdin>", decode(sys.stdin.buffer.read(MAX_FILE_BYTES + 1), "<stdin>")
    return file, decode(read_file(Path(file), "name the JSON file of an instance"), file)
