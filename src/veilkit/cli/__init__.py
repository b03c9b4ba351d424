"""The command line: one file per command. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

import click
import typer

from veilkit.cli import demo, generate, methods, protect
from veilkit.errors import VeilkitError

app = typer.Typer(
    name="veilkit",
    help="Protect pictures of people so that they stay useful, and prove how well it worked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("protect")(protect.protect)
app.add_typer(generate.app, name="generate")
app.add_typer(methods.app, name="methods")
app.command("demo")(demo.demo)


def main() -> None:
    """Run the command line; errors that veilkit raises on purpose are told in one line, with exit code 2."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app(standalone_mode=False)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("Interrupted. Nothing is lost: the same command goes on from here.", err=True)
        sys.exit(130)
    except VeilkitError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(2)


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt
