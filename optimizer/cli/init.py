"""`gpumix init`: a problem file to start from."""

import re
from pathlib import Path
from typing import Annotated

import typer

from optimizer.cli.common import Common, Format, records_text, with_common_options, write_file
from optimizer.cli.output import only_forms
from optimizer.errors import OutputError
from optimizer.problem.templates import template_summaries, template_text


@with_common_options
def init(
    common: Common,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of the problem and its file.")] = None,
    template: Annotated[
        str, typer.Option("--template", "-t", envvar="GPUMIX_TEMPLATE", help="Template to start from (--list).")
    ] = "service",
    list_templates: Annotated[bool, typer.Option("--list", help="Name the templates and leave.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented problem file that solves as it is. Without NAME it goes to standard output."""
    if list_templates:
        _list(common)
        return
    only_forms(common, "a problem file", Format.YAML)
    file_name = None if name is None else _file_name(name)
    text = template_text(template, _title(name))
    target = common.out or (Path(file_name) if file_name else None)
    if target is None or str(target) == "-":
        common.write(text)
        return
    if target.exists() and not force:
        msg = f"{target}: error: the file exists already; choose another NAME or --out, or add --force"
        raise OutputError(msg)
    write_file(text, target)
    common.say(f"{target} written; next: gpumix check {target}, then gpumix solve {target}")


def _list(common: Common) -> None:
    summaries = template_summaries()
    if common.output is Format.TABLE:
        width = max(map(len, summaries))
        common.write("\n".join(f"{name:{width}}  {summary}" for name, summary in summaries.items()))
        return
    records = [{"template": name, "summary": summary} for name, summary in summaries.items()]
    common.write(records_text(records, common.output))


def _file_name(name: str) -> str:
    """`Shop bot` → `shop-bot.yaml`; the path of a YAML file stays as it is.

    Raises
    ------
    OutputError
        For names that give no file name, and for other paths: where the file goes must be said, not guessed.
    """
    if Path(name).suffix in (".yaml", ".yml"):
        return name
    slug = re.sub(r"[^\w.-]+", "-", name.strip().lower()).strip("-.")
    if not slug or name.startswith(".") or "/" in name or "\\" in name:
        path = f"{name.strip().rstrip('/') or 'shop-bot'}.yaml"
        msg = (
            f'init: error: "{name}" is no name of a problem; write a name such as "Shop bot", or a path such as {path}'
        )
        raise OutputError(msg)
    return f"{slug}.yaml"


def _title(name: str | None) -> str | None:
    """The problem's name: that of a path's file."""
    return Path(name).stem if name and Path(name).suffix in (".yaml", ".yml") else name
