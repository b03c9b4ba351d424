"""Every request passes here first: who asks, from which page, by which name of this machine, how much they send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from h11 import LocalProtocolError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from veilkit.web.session import Session, same

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

SMALL_BODY, UPLOAD = 2**20, 256 * 2**20  # bytes of a request; of a file that is dropped
UPLOADS = "/api/drops/"
_PUBLIC = "/static/"
_PATIENCE, _WHOLE_SMALL, _WHOLE_UPLOAD = 20.0, 60.0, 1_800.0  # seconds between two parts of a body, and for all of it
_UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_METHODS = _UNSAFE | {"GET", "HEAD"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    "content-security-policy": POLICY,
}


class TooMuchError(HTTPException):
    """A body that is larger, or slower, than is taken."""


class Guard:
    """The application behind all checks. port: the one that the server listens on."""

    def __init__(self, app: App, session: Session, port: int, announce: Callable[[], None]) -> None:
        self._app, self._session, self._announce = app, session, announce
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        if port == 80:
            self._hosts |= {"127.0.0.1", "localhost", "[::1]"}
        self.cookie = f"veilkit-{port}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer what is refused, and pass on the rest."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing else is spoken here: the server closes the connection
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        begun = False

        async def send_on(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                given = {name.lower() for name, _ in message.setdefault("headers", [])}
                more = [(n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in given]
                message["headers"] = [*message["headers"], *more]
            with suppress(LocalProtocolError):  # the server has refused the rest of this request already
                await send(message)

        if scope["path"] == "/" and scope["method"] == "GET" and b"code=" in scope["query_string"]:
            await self._sign_in(scope, headers, send_on)
            return
        refused = self._refusal(scope, headers)
        if refused is not None:
            await _answer(send_on, *refused)
            return
        try:
            await self._app(scope, self._bounded(scope, headers, receive), send_on)
        except ClientDisconnect:
            return  # whoever asked has gone, in the midst of what was sent
        except TooMuchError as error:
            if not begun:
                await _answer(send_on, error.status_code, error.detail, close=True)

    def _refusal(self, scope: Message, headers: dict[str, list[str]]) -> tuple[int, str] | None:
        """Status and text of what is refused before anything is looked at."""
        if (refused := self._foreign(headers)) is not None:
            return refused
        if scope["method"] not in _METHODS:
            return 405, "this method is not used here"
        path: str = scope["path"]
        if path.startswith(_PUBLIC) and scope["method"] in ("GET", "HEAD"):
            return None
        by_token = self._has_token(headers)
        if not by_token and not self._has_cookie(headers):
            if path == "/" and scope["method"] == "GET":
                return 401, "Open the address that `veilkit serve` printed in its terminal: it signs this browser in."
            return 401, "sign in first: open the address that `veilkit serve` printed, or send the token"
        if scope["method"] in _UNSAFE and not by_token:
            if headers.get("origin", [""])[0] == "":
                return 403, "a request that changes something must come from this page"
            if not same(headers.get("x-veilkit-form", [""])[0], self._session.form):
                return 403, "the page is out of date: load it again"
        return None

    def _foreign(self, headers: dict[str, list[str]]) -> tuple[int, str] | None:
        """Requests under another name of this machine, or from another page."""
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "open this page as localhost or 127.0.0.1, with its port"
        own = f"http://{hosts[0].lower()}"
        origins = headers.get("origin", [])
        if len(origins) > 1 or any(origin.lower() != own for origin in origins):
            return 403, "requests from other pages are not answered"
        if headers.get("sec-fetch-site", ["none"])[0] not in ("none", "same-origin"):
            return 403, "requests from other pages are not answered"
        return None

    def _has_token(self, headers: dict[str, list[str]]) -> bool:
        kind, _, token = headers.get("authorization", [""])[0].partition(" ")
        return kind.lower() == "bearer" and same(token.strip(), self._session.token)

    def _has_cookie(self, headers: dict[str, list[str]]) -> bool:
        try:
            found = SimpleCookie("; ".join(headers.get("cookie", []))).get(self.cookie)
        except CookieError:
            return False
        return found is not None and same(found.value, self._session.cookie)

    async def _sign_in(self, scope: Message, headers: dict[str, list[str]], send: Send) -> None:
        """Exchange the code of the address for a cookie; another code takes its place."""
        if (refused := self._foreign(headers)) is not None:
            await _answer(send, *refused)
            return
        codes = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])
        if not self._session.exchange(codes[0]):
            await _answer(
                send, 401, "This address was used already, or is of an earlier start. The terminal shows a new one."
            )
            return
        self._announce()
        cookie = f"{self.cookie}={self._session.cookie}; HttpOnly; SameSite=Strict; Path=/"
        await send(
            {
                "type": "http.response.start",
                "status": 303,
                "headers": [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")],
            }
        )
        await send({"type": "http.response.body", "body": b""})

    def _bounded(self, scope: Message, headers: dict[str, list[str]], receive: Receive) -> Receive:
        """The body as it comes, until it is too much or takes too long."""
        upload = scope["path"].startswith(UPLOADS) and scope["method"] == "POST"
        most, until = (UPLOAD, _WHOLE_UPLOAD) if upload else (SMALL_BODY, _WHOLE_SMALL)
        too_much = TooMuchError(413, f"too large: at most {most // 2**20} MB are taken")
        length = headers.get("content-length", ["0"])[0]
        if not length.isdecimal() or int(length) > most:
            raise too_much
        deadline = asyncio.get_running_loop().time() + until
        got, done = 0, False

        async def bounded() -> Message:
            nonlocal got, done
            if done:
                return await receive()  # waits for the end of the connection
            left = min(_PATIENCE, deadline - asyncio.get_running_loop().time())
            try:
                message = await asyncio.wait_for(receive(), max(0.0, left))
            except TimeoutError:
                raise TooMuchError(408, "the request came too slowly") from None
            got += len(message.get("body", b""))
            if got > most:
                raise too_much
            done = not message.get("more_body", False)
            return message

        return bounded


async def _answer(send: Send, status: int, text: str, *, close: bool = False) -> None:
    """A short answer; plain text, so that nothing of it is ever taken for a page."""
    body = json.dumps({"error": text}).encode() if status not in (401, 421) else (text + "\n").encode()
    kind = b"application/json" if status not in (401, 421) else b"text/plain; charset=utf-8"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
