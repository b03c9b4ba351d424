"""The command line: one file per group of commands. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import signal
import warnings
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from veilkit.cli import (
    audit,
    check,
    demo,
    experts,
    gallery,
    generate,
    ledger,
    listing,
    protect,
    recover,
    study,
    train,
    withdraw,
)
from veilkit.errors import VeilkitError
from veilkit.secret_file import SecretFileWarning

_COMPARE = ["audit", "compare"]


class _Commands(TyperGroup):
    """Prints errors that are raised on purpose in one line (exit code 2), and interrupts too (130)."""

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
                "Interrupted. Nothing is lost; protect, recover, withdraw, audit, train, gallery go on with the same "
                "command.",
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
app.command("check")(check.check)
app.command("protect")(protect.protect)
app.command("recover")(recover.recover)
app.command("withdraw")(withdraw.withdraw)
app.add_typer(ledger.app, name="ledger")
app.command("audit")(audit.audit)
app.command("compare")(audit.compare)
app.command("fit")(train.fit)
app.add_typer(listing.attacks_app, name="attacks")
app.add_typer(generate.app, name="generate")
app.add_typer(train.app, name="train")
app.add_typer(listing.methods_app, name="methods")
app.add_typer(experts.app, name="experts")
app.add_typer(study.app, name="study")
app.add_typer(gallery.app, name="gallery")
app.command("keygen")(recover.keygen)
app.command("demo")(demo.demo)


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
