"""`veilkit attacks`: what the audit attacks with."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="List and show attacks.", no_args_is_help=True)


@app.command("list")
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


@app.command()
def show(name: Annotated[str, typer.Argument(help="An attack of `veilkit attacks list`.")]) -> None:
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
