"""`veilkit methods`: what there is, and what can be set."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(help="List and show protection methods.", no_args_is_help=True)


@app.command("list")
def list_methods(
    markdown: Annotated[bool, typer.Option("--markdown", help="As a page with a table: docs/methods.md.")] = False,
) -> None:
    """List the methods."""
    from veilkit.methods import METHODS, Learns

    if markdown:
        typer.echo("# Methods\n\nWritten by `veilkit methods list --markdown`.\n")
        typer.echo("| method | what it does | needs a fitted model | undone by |\n|---|---|---|---|")
        for name, method in METHODS.items():
            undone = f"`{method.undone_by}`" if method.undone_by else ""
            typer.echo(f"| `{name}` | {method.summary} | {'yes' if issubclass(method, Learns) else ''} | {undone} |")
        return
    for name, method in METHODS.items():
        unsafe = f"; UNSAFE: the attack {method.undone_by} undoes it" if method.undone_by else ""
        typer.echo(f"{name:<12} {method.summary}{unsafe}")


@app.command()
def show(name: Annotated[str, typer.Argument(help="A method of `veilkit methods list`.")]) -> None:
    """Show a method's presets and what can be set."""
    import inspect

    from veilkit.configs import as_dict
    from veilkit.methods import METHODS

    method = METHODS[name]
    typer.echo(f"{name}: {inspect.cleandoc(method.__doc__ or '')}\n")
    typer.echo(f"settings: {inspect.cleandoc(type(method.default).__doc__ or '')}\n")
    for preset, config in method.preset_table().items():
        typer.echo(f"preset {preset}: {json.dumps(as_dict(config))}")
