"""A server for tests: in a thread of its own, on a free port, with pictures of nobody below its one folder."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilkit.web.server import make_parts, make_server
from veilkit.web.session import Session


@dataclass
class Answer:
    """Status, headers (lower case) and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Serving:
    """A server that runs. announced: how often it said that its one-time address was used."""

    port: int
    session: Session
    parts: Any
    announced: list[int] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | dict[str, Any] | None = None,
        *,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Ask as a program with the token, unless headers say otherwise (None in their place)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"authorization": f"Bearer {self.session.token}"} if headers is None else headers
        if isinstance(body, dict):
            body, given = json.dumps(body).encode(), {"content-type": "application/json", **given}
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # answered before all was sent
                connection.request(method, path, body, given)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def run(self, verb: str, seconds: float = 120, **options: Any) -> dict[str, Any]:
        """Start a command and wait for its end."""
        started = self.ask("POST", "/api/jobs", {"verb": verb, "options": options})
        assert started.status == 201, started.body
        return self.wait(started.json["id"], seconds)

    def wait(self, name: str, seconds: float = 120) -> dict[str, Any]:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            job = self.ask("GET", f"/api/jobs/{name}").json
            if job["state"] not in ("queued", "running"):
                return job  # type: ignore[no-any-return]
            time.sleep(0.1)
        raise AssertionError(f"job {name} did not end")


@contextmanager
def serving(root: Path, state: Path, token: str | None = None) -> Iterator[Serving]:
    """Run a server until the block ends."""
    state.mkdir(mode=0o700, exist_ok=True)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    session = Session(token)
    parts = make_parts([root], state, session)
    found = Serving(listening.getsockname()[1], session, parts)
    server = make_server(parts, found.port, lambda: found.announced.append(1))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield found
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
