"""`veilkit serve`: the page on this machine, for whoever opens the address that is printed."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from h11 import LocalProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

from veilkit.errors import DestinationError
from veilkit.locks import take_lock
from veilkit.web.app import Parts, make_app
from veilkit.web.drops import Drops
from veilkit.web.guard import Guard
from veilkit.web.helpers import Helpers
from veilkit.web.jobs import Jobs
from veilkit.web.roots import Roots
from veilkit.web.session import Session

_CONNECTIONS = 400
_HEADERS = 15.0  # seconds for the headers of a request
_HEADER_BYTES = 32_768


class PatientProtocol(H11Protocol):
    """HTTP that hangs up on whoever does not send the headers of a request in time."""

    def connection_made(self, transport: Any) -> None:
        """Give a new connection its time."""
        super().connection_made(transport)
        self._headers_due = self.loop.call_later(_HEADERS, self._hang_up)

    def on_response_complete(self) -> None:
        """Give the next request its time."""
        super().on_response_complete()
        self._headers_due.cancel()
        self._headers_due = self.loop.call_later(_HEADERS, self._hang_up)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; where an answer was given already, hang up."""
        try:
            super().send_400_response(msg)
        except LocalProtocolError:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._headers_due.cancel()
        super().connection_lost(exc)

    def _hang_up(self) -> None:
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.close()


def state_folder() -> Path:
    """Where jobs and dropped pictures are kept, unless told otherwise."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "veilkit" / "serve"


def serve(
    folders: Sequence[Path],
    *,
    port: int = 8757,
    host: str = "127.0.0.1",
    token: Path | None = None,
    state: Path | None = None,
) -> None:
    """Serve the page until it is interrupted.

    folders: what it may read and write. port: 0 takes a free one. host: the address that is listened on; whatever it
    is, the page answers under this machine's own names only. token: a file that keeps the token for programs. state:
    where jobs and dropped pictures are kept.
    """
    place = (state or state_folder()).absolute()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
    except OSError as error:
        raise DestinationError(f"{place} cannot be written: {error.strerror}; see --state") from None
    lock = take_lock(
        place / "lock",
        busy="another `veilkit serve` runs with this state: use its page, or give this one a --state of its own",
        unwritable=f"{place} cannot be written",
    )
    try:
        listening = _listening(host, port)
        port = listening.getsockname()[1]
        parts = make_parts(folders, place, Session.of(token))

        def announce() -> None:
            sys.stdout.write(f"Open http://127.0.0.1:{port}/?code={parts.session.code}\n")
            sys.stdout.flush()

        server = make_server(parts, port, lambda: _again(announce))
        if host not in ("127.0.0.1", "localhost", "::1"):
            sys.stdout.write(f"Listening on {host}: whoever reaches this port can try to open the page.\n")
        sys.stdout.write("Folders: " + ", ".join(str(each) for each in parts.roots.folders) + "\n")
        announce()
        sys.stdout.write("The address works once, in one browser; then another is shown. Ctrl-C ends the server.\n")
        sys.stdout.flush()
        asyncio.run(server.serve(sockets=[listening]))
    finally:
        os.close(lock)


def make_parts(folders: Sequence[Path], state: Path, session: Session) -> Parts:
    """What a server consists of. state: the private folder of its jobs and drops."""
    drops = Drops(state / "drops")
    roots = Roots(folders, drops.folder)
    return Parts(roots, session, Jobs(state / "jobs"), drops, Helpers("look", 60.0, 1), Helpers("work", 180.0, 2))


def make_server(parts: Parts, port: int, announce: Callable[[], None]) -> uvicorn.Server:
    """The server, which does not listen yet. announce: is called when the one-time address was used."""
    config = uvicorn.Config(
        Guard(make_app(parts), parts.session, port, announce), log_level="warning", access_log=False,
        server_header=False, date_header=False, proxy_headers=False, ws="none", http=PatientProtocol, loop="asyncio",
        h11_max_incomplete_event_size=_HEADER_BYTES, limit_concurrency=_CONNECTIONS, timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
    )  # fmt: skip
    return _Server(config, parts)


class _Server(uvicorn.Server):
    """A server that ends the streams of events when it ends, which would hold it up."""

    def __init__(self, config: uvicorn.Config, parts: Parts) -> None:
        super().__init__(config)
        self._parts = parts

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let everybody go, then end."""
        self._parts.jobs.ending = True
        await super().shutdown(sockets)


def _again(announce: Callable[[], None]) -> None:
    sys.stdout.write("This browser is signed in. For another one:\n")
    announce()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(_CONNECTIONS)
    except OSError as error:
        found.close()
        raise DestinationError(f"port {port} of {host} cannot be used: {error.strerror}; see --port") from None
    return found
