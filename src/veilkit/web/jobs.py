"""Commands that the page has started: a queue on disk, which a server that was killed finds again.

Each job has a folder with job.json, its output and its progress. The process of a job holds a lock there for as long
as it lives, also beyond the server's own end: so a server that starts again knows whether it is still at work. Where
it is gone and its end is not known, the same command runs again, which goes on where it was.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from veilkit.errors import DataError, UsageError

State: TypeAlias = Literal["queued", "running", "done", "refused", "failed", "cancelled", "interrupted"]
ENDED = ("done", "refused", "failed", "cancelled", "interrupted")
_CODES: dict[int, State] = {0: "done", 3: "refused", 130: "cancelled"}
_TAIL = 32_768  # bytes of output that are shown
_POLL = 0.3  # seconds
_GRACE = 15.0  # seconds that a job is given to end
_MOST = 500  # jobs that are remembered


@dataclass
class Job:
    """One command. words: of it; fixed: those that the page added. options: as the page gave them.

    stopping: somebody has asked for its end. pid: of its process, while it runs.
    """

    id: str
    verb: str
    words: list[str]
    fixed: list[str]
    options: dict[str, Any]
    again: bool
    quick: bool
    as_json: bool
    state: State = "queued"
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    code: int | None = None
    pid: int | None = None
    stopping: bool = False
    runs: int = 0


class Jobs:
    """All jobs of a server. folder: private; what is in it are jobs of this or of an earlier start."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self.ending = False
        self._closing = False
        self._lanes: list[asyncio.Task[None]] = []
        self.jobs: dict[str, Job] = {}
        for file in sorted(folder.glob("*/job.json")):
            with suppress(ValueError, TypeError, OSError):  # of another version, or damaged: it stays where it is
                job = Job(**json.loads(file.read_text()))
                self.jobs[job.id] = job

    def __getitem__(self, name: str) -> Job:
        if name not in self.jobs:
            raise DataError("there is no such job")
        return self.jobs[name]

    def place(self, job: Job) -> Path:
        """The folder of a job."""
        return self.folder / job.id

    def add(
        self, verb: str, words: list[str], fixed: list[str], options: Mapping[str, Any],
        *, again: bool, quick: bool, as_json: bool,
    ) -> Job:  # fmt: skip
        """Queue a command."""
        if sum(job.state not in ENDED for job in self.jobs.values()) >= _MOST:
            raise UsageError(f"there are {_MOST} jobs waiting: let some end first")
        name = f"{time.time_ns():019d}-{secrets.token_hex(4)}"
        job = Job(name, verb, words, fixed, dict(options), again, quick, as_json)
        self.place(job).mkdir(mode=0o700)
        self.jobs[name] = job
        self._save(job)
        for old in [each for each in self.jobs.values() if each.state in ENDED][:-_MOST]:
            self.forget(old.id)
        return job

    def cancel(self, name: str) -> Job:
        """End a job; one that waits does not begin."""
        job = self[name]
        if job.state == "queued":
            job.state, job.ended = "cancelled", time.time()
        elif job.state == "running":
            job.stopping = True
            self._signal(job, signal.SIGTERM)
        self._save(job)
        return job

    def resume(self, name: str) -> Job:
        """Queue a job that has ended without being done."""
        job = self[name]
        if job.state not in ENDED:
            raise UsageError("this job has not ended")
        if not job.again and job.state == "done":
            raise UsageError("this job is done, and cannot run a second time")
        job.state, job.stopping, job.ended, job.code = "queued", False, None, None
        self._save(job)
        return job

    def forget(self, name: str) -> None:
        """Take a job that has ended off the list; what it has made stays."""
        job = self[name]
        if job.state not in ENDED:
            raise UsageError("this job has not ended: cancel it first")
        shutil.rmtree(self.place(job), ignore_errors=True)
        del self.jobs[name]

    def told(self, job: Job, *, whole: bool = False) -> dict[str, Any]:
        """What the page shows of a job; whole: with its output."""
        facts = {name: value for name, value in asdict(job).items() if name not in ("pid", "fixed", "as_json")}
        facts["progress"] = self._read(job, "progress.json")
        if whole:
            out, err = (self._tail(job, name) for name in ("out.txt", "err.txt"))
            facts["result"] = None
            if job.as_json and job.state in ("done", "refused"):
                with suppress(ValueError):
                    facts["result"], out = json.loads((self.place(job) / "out.txt").read_text()), ""
            facts["output"], facts["errors"] = out, err
        return facts

    def waits_for(self, folder: Path) -> bool:
        """Whether a job that has not ended names something in a folder."""
        return any(str(folder) in word for job in self.jobs.values() if job.state not in ENDED for word in job.words)

    def start(self) -> None:
        """Begin to work: jobs that run since an earlier start are waited for."""
        for job in self.jobs.values():
            if job.state == "running":
                self._lanes.append(asyncio.create_task(self._adopt(job)))
        self._lanes += [asyncio.create_task(self._lane(quick)) for quick in (False, True)]

    async def close(self) -> None:
        """End what runs; it goes on when a server starts again."""
        self._closing = True
        for job in self.jobs.values():
            if job.state == "running":
                self._signal(job, signal.SIGTERM)
        await asyncio.wait(self._lanes, timeout=_GRACE)
        for job in self.jobs.values():
            if job.state == "running":
                self._signal(job, signal.SIGKILL)
        for lane in self._lanes:
            lane.cancel()

    async def _lane(self, quick: bool) -> None:
        while not self._closing:
            waiting = [job for job in self.jobs.values() if job.state == "queued" and job.quick == quick]
            busy = any(job.state == "running" and job.quick == quick for job in self.jobs.values())
            if waiting and not busy:
                await self._run(waiting[0])
                continue
            await asyncio.sleep(_POLL)

    async def _run(self, job: Job) -> None:
        place = self.place(job)
        lock = self._lock(job)
        if lock is None:  # its process of an earlier start has not ended yet
            job.state = "running"
            await self._adopt(job)
            return
        environment = {**os.environ, "VEILKIT_PROGRESS": str(place / "progress.json"), "PYTHONUNBUFFERED": "1"}
        (place / "progress.json").unlink(missing_ok=True)
        try:
            with _private(place / "out.txt") as out, _private(place / "err.txt") as err:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "veilkit.cli", *job.words, *job.fixed,
                    stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=err, cwd=place, env=environment,
                    start_new_session=True, pass_fds=(lock,),
                )  # fmt: skip
        finally:
            os.close(lock)
        job.state, job.pid, job.started, job.runs = "running", process.pid, time.time(), job.runs + 1
        self._save(job)
        if job.stopping:
            self._signal(job, signal.SIGTERM)
        waiting = asyncio.create_task(process.wait())
        while not waiting.done():
            await asyncio.wait([waiting], timeout=_GRACE if job.stopping else 1.0)
            if job.stopping and not waiting.done():
                self._signal(job, signal.SIGKILL)
        self._end(job, waiting.result())

    async def _adopt(self, job: Job) -> None:
        """Wait for a process of an earlier start, whose end nobody will tell; then run the command again."""
        asked = None
        while not self._closing:
            lock = self._lock(job)
            if lock is not None:
                os.close(lock)
                break
            now = asyncio.get_running_loop().time()
            if job.stopping and asked is None:
                asked = now
            elif asked is not None and now - asked > _GRACE:
                self._signal(job, signal.SIGKILL)
            await asyncio.sleep(_POLL)
        job.pid = None
        if job.stopping:
            job.state, job.ended = "cancelled", time.time()
        elif not self._closing:
            job.state = "queued" if job.again else "interrupted"
        self._save(job)

    def _end(self, job: Job, code: int) -> None:
        job.code, job.pid, job.ended = code, None, time.time()
        if job.stopping:
            job.state = "cancelled" if code != 0 else "done"
        elif self._closing and code not in (0, 3):
            job.state, job.ended = ("queued" if job.again else "interrupted"), None
        else:
            job.state = _CODES.get(code, "failed")
        job.stopping = False
        self._save(job)

    def _lock(self, job: Job) -> int | None:
        """The lock of a job, or None while its process lives."""
        held = os.open(self.place(job) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return None
        return held

    def _signal(self, job: Job, number: signal.Signals) -> None:
        """Send a signal to a job's process, if it is that one and no other which has its number now."""
        lock = self._lock(job)
        if lock is not None:  # nobody holds it: the process is gone
            os.close(lock)
            return
        if job.pid is None or b"veilkit.cli" not in _words_of(job.pid):
            return
        with suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGKILL:
                os.killpg(job.pid, number)
            else:
                os.kill(job.pid, number)

    def _save(self, job: Job) -> None:
        draft = self.place(job) / "job.part"
        with _private(draft) as out:
            out.write(json.dumps(asdict(job)).encode())
            out.flush()
            os.fsync(out.fileno())
        draft.replace(self.place(job) / "job.json")

    def _read(self, job: Job, name: str) -> Any:
        try:
            return json.loads((self.place(job) / name).read_text())
        except (OSError, ValueError):
            return None

    def _tail(self, job: Job, name: str) -> str:
        try:
            with (self.place(job) / name).open("rb") as opened:
                opened.seek(max(0, opened.seek(0, os.SEEK_END) - _TAIL))
                return opened.read().decode("utf-8", "replace")
        except OSError:
            return ""


def _private(file: Path) -> Any:
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")


def _words_of(pid: int) -> bytes:
    """The command of a process; what is not known, as on other systems than Linux, is taken to be a job's."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b"" if Path("/proc/self").exists() else b"veilkit.cli"
    except OSError:
        return b""
