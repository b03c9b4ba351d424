"""`veilkit serve`: the page, for whoever would rather not type commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folders = Annotated[
    list[Path] | None,
    typer.Option("--folder", metavar="ROOT", help="A folder that the page may use, with all below; may be repeated.",
                 show_default="the current folder"),
]  # fmt: skip
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port on this machine; 0 takes a free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on, for containers; the page answers as localhost only.")]
Token = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File with the token for programs (REST), made if absent; browsers stay signed "
                 "in across starts.", show_default="a new token at each start"),
]  # fmt: skip
State = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Private folder for jobs and dropped pictures.",
                 show_default="~/.local/state/veilkit/serve"),
]  # fmt: skip


def serve(
    folder: Folders = None,
    port: Port = 8757,
    host: Host = "127.0.0.1",
    token: Token = None,
    state: State = None,
) -> None:
    """Open a page in the browser that protects, reviews and audits, on this machine alone.

    It prints an address that signs one browser in. Jobs go on when the server is started again.
    """
    try:
        from veilkit.web.server import serve as run
    except ModuleNotFoundError as error:
        from veilkit.errors import MissingExtraError

        if (error.name or "").partition(".")[0] not in ("fastapi", "starlette", "uvicorn", "h11", "jinja2"):
            raise
        raise MissingExtraError(error.name or "fastapi", "web") from None
    run(folder or [Path()], port=port, host=host, token=token, state=state)
