"""`gpumix schema`: the JSON Schema of problem files."""

import json
from pathlib import Path
from typing import Annotated

import typer

from optimizer.cli.common import Common, Format, with_common_options, write_output
from optimizer.cli.output import check_outputs, only_forms
from optimizer.problem.publish import schema_text
from optimizer.report.forms import yaml_text


@with_common_options
def schema(
    common: Common,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write it to a file (as --out does).")
    ] = None,
) -> None:
    """Print the JSON Schema (draft 7) of problem files: the manual of every key, for editors."""
    only_forms(common, "the JSON Schema", Format.JSON, Format.YAML)
    check_outputs({"--write": write, "--out": common.out})
    target = write or common.out
    text = schema_text()
    write_output(yaml_text(json.loads(text)) if common.output is Format.YAML else text, target)
    if target is not None and str(target) != "-":
        common.say(f"{target} written; first line of a problem file: # yaml-language-server: $schema={target}")
