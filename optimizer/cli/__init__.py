"""The command `gpumix`: its verbs, its errors and its exit codes. Verbs are imported when they are used.

Exit codes: 0 done; 1 the answer is "no" (infeasible, audit failed, limit passed); 2 bad usage or bad input; 3 stopped
by the time limit; 130 interrupted.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from optimizer import __version__
from optimizer.errors import OptimizerError

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command line: where its function (or typer app) is, and its line in the overview."""

    module: str
    attribute: str
    help: str


VERBS = {
    "init": Verb("optimizer.cli.init", "init", "Write a commented problem file that solves as it is."),
    "check": Verb("optimizer.cli.check", "check", "Validate a problem file: all errors at once, each with its place."),
    "estimate": Verb("optimizer.cli.estimate", "estimate", "What each workload needs and what each GPU yields."),
    "solve": Verb("optimizer.cli.solve", "solve", "The cheapest mix of GPUs, with its proof."),
    "audit": Verb("optimizer.cli.audit", "audit", "Re-check a plan without the solver."),
    "explain": Verb("optimizer.cli.explain", "explain", "Trace a number of a plan; binding limits; why not GPU X."),
    "compare": Verb("optimizer.cli.compare", "compare", "Cloud only, owned only and hybrid side by side; break-even."),
    "evaluate": Verb("optimizer.cli.evaluate", "evaluate", "The estimator against measurements: errors and ranges."),
    "catalog": Verb("optimizer.cli.catalog", "app", "GPUs, models, offers and servers of the catalog."),
    "convert": Verb("optimizer.cli.convert", "convert", "A problem file from another planner's file."),
    "schema": Verb("optimizer.cli.schema", "schema", "JSON Schema of problem files, for editors."),
}

_USAGE_ERROR: type[BaseException] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)
_CONTROL_FLOW = (_USAGE_ERROR, typer.Exit, typer.Abort)


def verb_command(name: str) -> Any:
    """Import the verb `name` and return its command."""
    verb = VERBS[name]
    target = getattr(import_module(verb.module), verb.attribute)
    if isinstance(target, typer.Typer):
        return typer.main.get_command(target)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, help=target.__doc__ or verb.help)(target)
    return typer.main.get_command(single)


class LazyGroup(TyperGroup):
    """A group whose verbs are placeholders until one is called; it also turns our errors into text and exit codes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, verb in VERBS.items():
            self.add_command(TyperCommand(name, help=verb.help, rich_markup_mode=None), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Replace the placeholder by the verb itself."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in VERBS:
            command = verb_command(name)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; what a person can cause ends in a message and an exit code, never in a traceback."""
        return _guarded(lambda: super(LazyGroup, self).invoke(ctx))


def _guarded(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except _CONTROL_FLOW as error:
        if hasattr(error, "message"):
            error.message = str(error.message).removeprefix("Value error, ")  # pydantic's words, in newer typers
        raise
    except KeyboardInterrupt:
        _leave("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  the reader has gone: nothing more to flush
        _leave("", EXIT_BROKEN_PIPE)
    except OptimizerError as error:
        _leave(str(error), EXIT_BAD_INPUT)
    except Exception as error:
        if _is_catalog_error(error):
            _leave(f"error: {error}", EXIT_BAD_INPUT)
        if os.environ.get("GPUMIX_DEBUG"):
            raise
        kind = type(error).__name__
        _leave(
            f"internal error: {kind}: {error}\nThis is a fault of gpumix, not of your input; please report it "
            "(GPUMIX_DEBUG=1 shows the traceback).",
            EXIT_BAD_INPUT,
        )


def _is_catalog_error(error: Exception) -> bool:
    """Whether the catalog's files, or a name looked up in them, are at fault."""
    from catalog.errors import CatalogError

    return isinstance(error, CatalogError)


def _leave(message: str, code: int) -> NoReturn:
    if message:
        sys.stderr.write(f"{message}\n")
    raise typer.Exit(code) from None


app = typer.Typer(
    name="gpumix",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's help costs more than all the rest of the start
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpumix {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 done; 1 the answer is no (infeasible, audit failed); 2 bad usage or input; "
    "3 stopped by the time limit; 130 interrupted."
)
def gpumix(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Which GPUs, how many, bought or rented, for how long, at what cost, and why."""


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="gpumix")
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
