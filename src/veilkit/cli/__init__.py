"""The command line: one file per group of commands. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import io
import signal
import sys
import warnings
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from veilkit.errors import VeilkitError
from veilkit.lookup import LazyLookup
from veilkit.secret_file import SecretFileWarning

COMMANDS: LazyLookup[Any] = LazyLookup(
    "command",
    [
        ("check", "veilkit.cli.check:check"),
        ("protect", "veilkit.cli.protect:protect"),
        ("recover", "veilkit.cli.recover:recover"),
        ("withdraw", "veilkit.cli.withdraw:withdraw"),
        ("ledger", "veilkit.cli.ledger:app"),
        ("audit", "veilkit.cli.audit:audit"),
        ("compare", "veilkit.cli.audit:compare"),
        ("serve", "veilkit.cli.serve:serve"),
        ("benchmark", "veilkit.cli.benchmark:benchmark"),
        ("fit", "veilkit.cli.train:fit"),
        ("attacks", "veilkit.cli.listing:attacks_app"),
        ("generate", "veilkit.cli.generate:app"),
        ("train", "veilkit.cli.train:app"),
        ("methods", "veilkit.cli.listing:methods_app"),
        ("experts", "veilkit.cli.experts:app"),
        ("study", "veilkit.cli.study:app"),
        ("gallery", "veilkit.cli.gallery:app"),
        ("keygen", "veilkit.cli.recover:keygen"),
        ("demo", "veilkit.cli.demo:demo"),
    ],
)
"""A function for each command, or a Typer for a group of them; a command's file is imported when it is asked for."""

_COMPARE = ["audit", "compare"]


class _Commands(TyperGroup):
    """The table's commands. Errors that are raised on purpose are one line (exit code 2), interrupts too (130)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, imported now; None where there is none."""
        if self.commands.get(cmd_name) is None and (found := COMMANDS.find(cmd_name)) is not None:
            self.commands[cmd_name] = _built(cmd_name, found)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """`audit compare` is the command compare; any other word after `audit` is a folder, as ever."""
        if args[:2] == _COMPARE:
            return " ".join(_COMPARE), self.get_command(ctx, _COMPARE[1]), args[2:]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except VeilkitError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo(
                "Interrupted. Nothing is lost; protect, recover, withdraw, audit, benchmark, train, gallery go on "
                "with the same command.",
                err=True,
            )
            raise typer.Exit(130) from None


app = typer.Typer(
    name="veilkit",
    cls=_Commands,
    help="Protect pictures of people so that they stay useful, and prove how well it worked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _built(name: str, found: Any) -> Any:
    """What runs a command of the table."""
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return get_command(alone)


def _version(wanted: bool) -> None:
    if wanted:
        from veilkit.version import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Protect pictures of people so that they stay useful, and prove how well it worked."""


def main() -> None:
    """Run the command line. SIGTERM, a polite request to end, is treated like Ctrl-C.

    Ctrl-C counts even where a shell that started the command in the background has set it to be ignored.
    """
    warnings.showwarning = _show_warning
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


_show_any_warning = warnings.showwarning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings in one line, as errors are; others as Python shows them."""
    if issubclass(category, SecretFileWarning):
        typer.echo(f"Warning: {message}", err=True)
    else:
        _show_any_warning(message, category, filename, lineno, file, line)
