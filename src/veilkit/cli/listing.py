"""`veilkit methods` and `veilkit attacks`: what there is, and what can be set."""

from __future__ import annotations

import json
from typing import Annotated

import typer

methods_app = typer.Typer(help="List and show protection methods.", no_args_is_help=True)


@methods_app.command("list")
def list_methods(
    markdown: Annotated[bool, typer.Option("--markdown", help="As a page with a table: docs/methods.md.")] = False,
) -> None:
    """List the methods."""
    from veilkit.methods import METHODS, Learns
    from veilkit.methods.base import WorksUnfitted

    if markdown:
        typer.echo("# Methods\n\nWritten by `veilkit methods list --markdown`.\n")
        typer.echo("| method | what it does | needs a fitted model | undone by |\n|---|---|---|---|")
        for name, method in METHODS.items():
            undone = f"`{method.undone_by}`" if method.undone_by else ""
            needs = "" if not issubclass(method, Learns) else "or not" if issubclass(method, WorksUnfitted) else "yes"
            typer.echo(f"| `{name}` | {method.summary} | {needs} | {undone} |")
        return
    for name, method in METHODS.items():
        unsafe = f"; UNSAFE: the attack {method.undone_by} undoes it" if method.undone_by else ""
        typer.echo(f"{name:<12} {method.summary}{unsafe}")


@methods_app.command("show")
def show_method(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A method of `veilkit methods list`.")],
) -> None:
    """Show a method's presets and what can be set."""
    import inspect

    from veilkit.configs import as_dict
    from veilkit.methods import METHODS

    method = METHODS[name]
    typer.echo(f"{name}: {inspect.cleandoc(method.__doc__ or '')}\n")
    typer.echo(f"settings: {inspect.cleandoc(type(method.default).__doc__ or '')}\n")
    for preset, config in method.preset_table().items():
        typer.echo(f"preset {preset}: {json.dumps(as_dict(config))}")


attacks_app = typer.Typer(help="List and show attacks.", no_args_is_help=True)


@attacks_app.command("list")
def list_attacks(
    markdown: Annotated[bool, typer.Option("--markdown", help="As a page of tables: docs/attacks.md.")] = False,
) -> None:
    """List the attacks: name, level and what they do."""
    from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS

    width = max(len(name) for name in (*ATTACKS, *UNPAIRED_ATTACKS))
    if markdown:
        typer.echo("# Attacks\n\nWritten by `veilkit attacks list --markdown`.")
    for title, table in (("On protected pictures:", ATTACKS), ("On synthetic releases:", UNPAIRED_ATTACKS)):
        if markdown:
            rows = [f"| `{name}` | {attack.level} | {attack.summary} |" for name, attack in table.items()]
            typer.echo(
                "\n".join(
                    ["", f"## {title.rstrip(':')}", "", "| attack | level | what it does |", "|---|---|---|", *rows]
                )
            )
            continue
        typer.echo(title)
        for name, attack in table.items():
            typer.echo(f"  {name:<{width}}  {attack.level}  {attack.summary}")


@attacks_app.command("show")
def show_attack(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An attack of `veilkit attacks list`.")],
) -> None:
    """Show what an attack does, what its adversary knows, and what it needs."""
    import inspect

    from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS, Attack, UnpairedAttack
    from veilkit.lookup import Lookup

    known: list[tuple[str, type[Attack] | type[UnpairedAttack]]] = [*ATTACKS.items(), *UNPAIRED_ATTACKS.items()]
    attack = Lookup("attack", known)[name]
    typer.echo(f"{name}: {inspect.cleandoc(attack.__doc__ or '')}\n")
    typer.echo(f"level: {attack.level}")
    typer.echo(f"needs: {', '.join(sorted(attack.needs))}")
    typer.echo(f"gates: {'none, a baseline' if attack.baseline else 'identity transform, independent noise'}")
