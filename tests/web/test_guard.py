"""Who may ask the server, and what it answers to everybody else."""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import random_picture
from tests.web.serving import Serving, serving
from veilkit.errors import DataError, UsageError
from veilkit.web import guard
from veilkit.web import server as server_module
from veilkit.web.roots import Roots, check_name, refuse_links
from veilkit.web.session import Session


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("web") / "root"
    (place / "photos").mkdir(parents=True)
    Image.fromarray(random_picture(1)).save(place / "photos" / "one.png")
    outside = place.parent / "outside"
    outside.mkdir()
    Image.fromarray(random_picture(2)).save(outside / "secret.png")
    (place / "links").mkdir()
    (place / "links" / "out").symlink_to(outside)
    (place / "links" / "secret.png").symlink_to(outside / "secret.png")
    (place / "photos" / "page.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    )
    return place


@pytest.fixture(scope="module")
def web(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(root, tmp_path_factory.mktemp("state")) as found:
        yield found


def _cookie(web: Serving) -> str:
    return f"veilkit-{web.port}={web.session.cookie}"


def _page(web: Serving, **more: str) -> dict[str, str]:
    """Headers as the page's own requests have them."""
    return {
        "cookie": _cookie(web),
        "origin": f"http://{web.host}",
        "x-veilkit-form": web.session.form,
        **more,
    }


def test_the_one_time_address_signs_one_browser_in(web: Serving) -> None:
    path = f"/?code={web.session.code}"
    first = web.ask("GET", path, headers={})
    assert first.status == 303
    assert first.headers["location"] == "/"
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert web.announced
    assert web.ask("GET", path, headers={}).status == 401
    page = web.ask("GET", "/", headers={"cookie": cookie.partition(";")[0]})
    assert page.status == 200
    assert web.session.form.encode() in page.body
    assert web.session.token.encode() not in page.body


@pytest.mark.parametrize(
    "path",
    [
        "/api/about",
        "/api/folder?place=0",
        "/api/picture?place=0/photos/one.png",
        "/api/events",
        "/api/jobs",
        "/api/openapi.json",
        "/",
        "/nothing",
    ],
)
def test_nothing_is_told_without_a_token(web: Serving, path: str) -> None:
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"cookie": f"veilkit-{web.port}=wrong"},
        {"authorization": "Bearer "},
    ):
        answer = web.ask("GET", path, headers=headers)
        assert answer.status == 401
        assert b"one.png" not in answer.body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "", "[::1]"])
def test_another_name_of_the_machine_is_refused(web: Serving, host: str) -> None:
    answer = web.ask("GET", "/api/about", headers={"authorization": f"Bearer {web.session.token}", "host": host})
    assert answer.status in (400, 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
def test_other_pages_are_refused_even_with_the_cookie(web: Serving, headers: dict[str, str]) -> None:
    assert web.ask("GET", "/api/about", headers={"cookie": _cookie(web), **headers}).status == 403
    assert web.ask("POST", "/api/drops", headers=_page(web) | headers).status == 403


def test_changes_need_origin_and_the_pages_own_token(web: Serving) -> None:
    whole = _page(web)
    assert (
        web.ask("POST", "/api/command", {"verb": "check", "options": {"source": "0/photos"}}, headers=whole).status
        == 200
    )
    for missing in ("origin", "x-veilkit-form", "cookie"):
        headers = {name: value for name, value in whole.items() if name != missing}
        assert web.ask("POST", "/api/drops", headers=headers).status in (401, 403)


def test_every_answer_carries_the_headers_that_bind_a_browser(web: Serving) -> None:
    for path in (
        "/api/about",
        "/api/picture?place=0/photos/one.png",
        "/static/style.css",
        "/nothing",
        "/api/jobs/none",
    ):
        answer = web.ask("GET", path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "place",
    [
        "0/../outside/secret.png",
        "0/links/out/secret.png",
        "0/links/secret.png",
        "/etc/passwd",
        "1",
        "0//etc/passwd",
        "0/./photos/one.png",
        "drop-0000000000000000/x.png",
        "-1/x",
        "0/%00",
        "",
    ],
)
def test_nothing_outside_of_the_folders_is_read(web: Serving, place: str) -> None:
    answer = web.ask("GET", f"/api/picture?place={place}")
    assert answer.status in (400, 422)
    assert answer.headers["content-type"] == "application/json"


def test_pictures_are_written_anew_and_drawings_are_not_shown(web: Serving) -> None:
    answer = web.ask("GET", "/api/picture?place=0/photos/one.png")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.body.startswith(b"\xff\xd8")
    drawing = web.ask("GET", "/api/picture?place=0/photos/page.svg")
    assert drawing.status == 400
    assert b"<svg" not in drawing.body


def test_links_are_neither_listed_nor_given_to_commands(web: Serving, root: Path) -> None:
    listed = web.ask("GET", "/api/folder?place=0/links").json
    assert listed["folders"] == listed["pictures"] == []
    with pytest.raises(DataError, match="links"):
        refuse_links(root / "links")
    answer = web.ask("POST", "/api/jobs", {"verb": "check", "options": {"source": "0/links"}})
    assert answer.status == 400
    assert "links" in answer.json["error"]


@pytest.mark.parametrize(
    "options",
    [
        {"source": "0/photos", "destination": "0/../x", "method": "pixelate"},
        {"source": "0/photos", "destination": "0/links/out/x", "method": "pixelate"},
        {"source": "0/photos", "destination": "0", "method": "pixelate"},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate", "key": "/tmp/key"},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate", "model": "/etc/passwd"},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate", "settings": {"finder": "/etc/passwd"}},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate", "labels": "csv:/etc/passwd"},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate", "seal_to": ["../x"]},
        {"source": "0/photos", "destination": "0/-x", "method": "pixelate"},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate\n--seed=1"},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate", "workers": "1 --seed=1"},
        {"source": "0/photos", "destination": "0/x", "method": "pixelate", "nothing": 1},
        {"source": "0/photos", "method": "pixelate"},
    ],
)
def test_commands_are_given_no_other_places_or_words(web: Serving, options: dict[str, object]) -> None:
    answer = web.ask("POST", "/api/jobs", {"verb": "protect", "options": options})
    assert answer.status == 400
    assert web.ask("GET", "/api/jobs").json == []


def test_uploads_are_pictures_within_limits(web: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    place = web.ask("POST", "/api/drops").json["place"]
    assert web.parts.drops.folder.joinpath(place).stat().st_mode & 0o777 == 0o700
    assert web.ask("POST", f"/api/drops/{place}?file=a.png", b"x" * 10).json["name"] == "a.png"
    assert web.ask("POST", f"/api/drops/{place}?file=a.png", b"x" * 10).json["name"] == "a (2).png"
    for name in ("../a.png", "a/b.png", "%3Cscript%3E.png", ".hidden.png", "-rf.png", "x%00.png"):
        assert web.ask("POST", f"/api/drops/{place}?file={name}", b"x").json["name"].startswith("picture")
    for name in ("a.svg", "a.html", "a.zip", "a.png.exe", "png", "manifest.json"):
        assert web.ask("POST", f"/api/drops/{place}?file={name}", b"x").status == 400
    files = list(web.parts.drops.folder.joinpath(place).iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    monkeypatch.setattr("veilkit.web.drops._FILES", len(files))
    full = web.ask("POST", f"/api/drops/{place}?file=b.png", b"x")
    assert full.status == 507
    assert "full" in full.json["error"]
    monkeypatch.setattr(guard, "UPLOAD", 5)
    assert web.ask("POST", f"/api/drops/{place}?file=b.png", b"x" * 6).status == 413
    assert web.ask("DELETE", f"/api/drops/{place}").status == 200
    assert not web.parts.drops.folder.joinpath(place).exists()


def test_bodies_are_bounded(web: Serving) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as raw:
        head = f"POST /api/jobs HTTP/1.1\r\nHost: {web.host}\r\nAuthorization: Bearer {web.session.token}\r\n"
        raw.sendall((head + f"Content-Length: {guard.SMALL_BODY + 1}\r\n\r\nx").encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as raw:  # without a length
        head = f"POST /api/jobs HTTP/1.1\r\nHost: {web.host}\r\nAuthorization: Bearer {web.session.token}\r\n"
        raw.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        for _ in range(40):
            try:
                raw.sendall(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
            except OSError:
                break
        assert raw.recv(100).startswith(b"HTTP/1.1 413")


def test_slow_clients_are_hung_up_on(web: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_HEADERS", 0.3)
    monkeypatch.setattr(guard, "_PATIENCE", 0.3)
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as raw:
        raw.sendall(b"GET / HT")
        began = time.monotonic()
        assert raw.recv(100) == b""
        assert time.monotonic() - began < 10
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as raw:
        head = f"POST /api/jobs HTTP/1.1\r\nHost: {web.host}\r\nAuthorization: Bearer {web.session.token}\r\n"
        raw.sendall((head + "Content-Length: 10\r\n\r\nx").encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 408")


def test_a_token_file_is_made_for_its_owner_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "token"
    first, second = Session.of(file), Session.of(file)
    assert first.token == second.token
    assert first.code != second.code
    assert file.stat().st_mode & 0o777 == 0o600
    assert Session().token != Session().token


def test_names_that_are_new(tmp_path: Path) -> None:
    for name in ("release", "Straße 5", "a b"):
        assert check_name(name) == name
    for name in ("", ".", "..", "a/b", "-x", "~x", "a\nb", "x" * 121, "a.", "\udcff"):
        with pytest.raises((UsageError, IndexError)):
            check_name(name)
    with pytest.raises(UsageError):
        Roots([tmp_path / "nowhere"], tmp_path)


def test_who_hangs_up_in_the_midst_leaves_nothing_behind(web: Serving, caplog: pytest.LogCaptureFixture) -> None:
    place = web.ask("POST", "/api/drops").json["place"]
    head = f"Host: {web.host}\r\nAuthorization: Bearer {web.session.token}\r\nContent-Length: 500\r\n\r\nabc"
    for path in (f"/api/drops/{place}?file=a.png", "/api/jobs"):
        with socket.create_connection(("127.0.0.1", web.port), timeout=20) as raw:
            raw.sendall(f"POST {path} HTTP/1.1\r\n{head}".encode())
            time.sleep(0.3)
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as raw:
        raw.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n")
        raw.recv(100)
    time.sleep(0.5)
    assert web.ask("GET", "/api/about").status == 200
    assert not list(web.parts.drops.folder.joinpath(place).iterdir())
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.exc_info]
