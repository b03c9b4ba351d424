"""Commands that the page starts: the same as the command line's, and found again by a server that starts anew."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import tree
from tests.web.serving import Serving, serving
from veilkit.audit.options import AuditOptions
from veilkit.cli.bound import bound
from veilkit.pipeline.options import ProtectOptions
from veilkit.web.roots import Roots
from veilkit.web.verbs import VERBS, shown


@pytest.fixture
def web(folder: Path, tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, tmp_path / "state") as found:
        yield found


def test_a_folder_is_protected_as_by_the_command_that_is_shown(web: Serving, tmp_path: Path) -> None:
    (tmp_path / "key-folder").mkdir()
    options = {
        "source": "0/originals",
        "destination": "0/release",
        "method": "pixelate",
        "settings": {"cell": 30},
        "workers": 0,
        "seed": 3,
    }
    job = web.run("protect", **options)
    assert job["state"] == "done", job["errors"]
    assert "12 pictures protected" in job["output"]
    assert job["progress"]["done"] == job["progress"]["total"] == 12
    made = tree(tmp_path / "release")
    shutil.rmtree(tmp_path / "release")
    shutil.rmtree(tmp_path / "release.private")
    words = shlex.split(job["command"])
    assert words[0] == "veilkit"
    subprocess.run([sys.executable, "-m", "veilkit.cli", *words[1:]], check=True, capture_output=True)
    assert tree(tmp_path / "release") == made


def test_refused_pictures_and_errors_are_told(web: Serving, tmp_path: Path) -> None:
    (tmp_path / "originals" / "broken.png").write_bytes(b"no picture")
    job = web.run("check", source="0/originals", faces=0)
    assert job["state"] == "refused"
    assert job["result"]["readable"] == 12
    assert job["result"]["listed"][0][0] == "broken.png"
    wrong = web.run("protect", source="0/originals", destination="0/release", method="pixelat")
    assert wrong["state"] == "failed"
    assert "did you mean 'pixelate'" in wrong["errors"]
    assert web.ask("DELETE", f"/api/jobs/{wrong['id']}").status == 200
    assert web.ask("GET", f"/api/jobs/{wrong['id']}").status == 400


def test_words_are_those_that_the_command_line_reads(tmp_path: Path) -> None:
    for name in ("photos", "release"):
        (tmp_path / name).mkdir()
    (tmp_path / "who.csv").write_text("")
    roots = Roots([tmp_path], tmp_path / "drops")
    given = {
        "source": "0/photos",
        "destination": "0/new",
        "method": "blur",
        "preset": "default",
        "settings": {"sigma": 3.5},
        "names": "folders",
        "labels": "csv:0/who.csv",
        "stretch": True,
        "size": "64x128",
        "quality": 80,
    }
    words = VERBS["protect"].words(given, roots)
    read = _read_back(ProtectOptions, words[1:])
    assert read == {
        **given,
        "source": str(tmp_path / "photos"),
        "destination": tmp_path / "new",
        "settings": {"sigma": "3.5"},
        "labels": f"csv:{tmp_path / 'who.csv'}",
        "workers": -1,
    }
    audit = VERBS["audit"].words({"originals": "0/photos", "protected": "0/release", "budget": "90s"}, roots)
    assert _read_back(AuditOptions, audit[1:])["budget"] == "90s"
    assert shown(["protect", "a b"]) == "veilkit protect 'a b'"
    assert VERBS["ledger-lookup"].words({"release": "0/release", "names": ["-x"]}, roots)[-2:] == [
        str(tmp_path / "release"),
        "-x",
    ]


def _read_back(kind: type, words: list[str]) -> dict[str, object]:
    import typer
    from typer.testing import CliRunner

    seen: dict[str, object] = {}

    @bound(kind)
    def command(given: dict[str, object]) -> None:
        seen.update(given)

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return seen


def test_a_job_is_cancelled_and_goes_on(web: Serving, tmp_path: Path) -> None:
    started = web.ask(
        "POST",
        "/api/jobs",
        {
            "verb": "protect",
            "options": {"source": "0/originals", "destination": "0/release", "method": "noise", "workers": 0},
        },
    ).json
    waiting = web.ask(
        "POST",
        "/api/jobs",
        {
            "verb": "protect",
            "options": {"source": "0/originals", "destination": "0/second", "method": "noise", "workers": 0},
        },
    ).json
    assert web.ask("POST", f"/api/jobs/{waiting['id']}/cancel").json["state"] == "cancelled"
    while web.ask("GET", f"/api/jobs/{started['id']}").json["state"] == "queued":
        time.sleep(0.05)
    web.ask("POST", f"/api/jobs/{started['id']}/cancel")
    assert web.wait(started["id"])["state"] in ("cancelled", "done")
    assert web.ask("POST", f"/api/jobs/{started['id']}/resume").json["state"] == "queued"
    assert web.wait(started["id"])["state"] == "done"
    assert not (tmp_path / "second").exists()


def test_a_server_that_was_killed_finds_its_job_again(folder: Path, tmp_path: Path) -> None:
    """Killed in the midst: nothing is done twice, nothing is lost, and the release is that of a quiet run."""
    for number in range(60):
        shutil.copy(folder / "person0" / "shot1.png", folder / f"more{number}.png")
    state, log = tmp_path / "state", tmp_path / "log"
    words = [
        sys.executable,
        "-m",
        "veilkit.cli",
        "serve",
        "--folder",
        str(tmp_path),
        "--port",
        "0",
        "--state",
        str(state),
        "--token",
        str(tmp_path / "token"),
    ]

    def start() -> tuple[subprocess.Popen[bytes], Serving]:
        with log.open("wb") as out:
            server = subprocess.Popen(words, stdout=out, stderr=out)
        while b"Open " not in log.read_bytes():
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
        port = int(log.read_text().partition("127.0.0.1:")[2].partition("/")[0])
        from veilkit.web.session import Session

        return server, Serving(port, Session.of(tmp_path / "token"), None)

    server, web = start()
    try:
        options = {
            "source": "0/originals",
            "destination": "0/release",
            "method": "noise",
            "settings": {"sigma": 0.4},
            "workers": 0,
            "seed": 5,
        }
        job = web.ask("POST", "/api/jobs", {"verb": "protect", "options": options}).json
        release = tmp_path / "release"
        while not any(release.rglob("*.png")):
            time.sleep(0.01)
        child = web.ask("GET", f"/api/jobs/{job['id']}").json
        pid = int((state / "jobs" / job["id"] / "job.json").read_text().partition('"pid": ')[2].partition(",")[0])
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        os.kill(pid, signal.SIGKILL)  # as at a power cut: the job's process as well
        done = {file: file.stat().st_ctime_ns for file in release.rglob("*.png")}
        assert child["state"] == "running"
        assert not (release / "manifest.json").exists()
        server, web = start()
        ended = web.wait(job["id"])
        assert ended["state"] == "done", ended["errors"]
        assert ended["runs"] == 2
        assert len(list(release.rglob("*.png"))) == 72
        assert all(file.stat().st_ctime_ns == when for file, when in done.items())
    finally:
        server.terminate()
        assert server.wait(30) is not None
    words = shlex.split(ended["command"].replace(str(release), str(tmp_path / "quiet")))
    subprocess.run([sys.executable, "-m", "veilkit.cli", *words[1:]], check=True, capture_output=True)
    assert tree(tmp_path / "quiet") == tree(release)
