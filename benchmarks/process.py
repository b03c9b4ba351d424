"""Running the command line as people do, killing it, and the memory of the processes that it starts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL = 0.02  # seconds between looks at the memory
_GLANCE = 0.01  # seconds at most between looks at what a run has done, before it is killed


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended, what it wrote, its wall-clock time, and of its processes the peak memory and the time.

    processors: seconds of all of them together, which do not depend on what else the machine does.
    """

    code: int
    output: str
    seconds: float
    megabytes: float
    processors: float = 0.0


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", "from veilkit.cli import main; main()", *map(str, arguments)]


def run(*arguments: str | Path, watch_memory: bool = False, **environment: str) -> Finished:
    """Run `veilkit ARGUMENTS` to its end, with more variables in its environment.

    watch_memory: look again and again how much memory and processor time it and all below it take.
    """
    with tempfile.TemporaryFile() as log:
        begun = time.perf_counter()
        child = subprocess.Popen(
            command(*arguments), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environment}
        )
        peak, spent = 0.0, dict[int, float]()
        while watch_memory and child.poll() is None:
            looked = time.thread_time()
            family = tree(child.pid)
            peak = max(peak, sum(map(_kilobytes, family)) / 1024)
            for pid in family:
                spent[pid] = max(_processor_seconds(pid), spent.get(pid, 0.0))
            time.sleep(max(_POLL, 3 * (time.thread_time() - looked)))  # to look must not be most of the work
        code = child.wait()
        seconds = time.perf_counter() - begun
        log.seek(0)
        return Finished(code, log.read().decode("utf-8", "replace"), seconds, peak, sum(spent.values()))


def completed(*arguments: str | Path, watch_memory: bool = False, **environment: str) -> Finished:
    """As `run`, for a command that must succeed: a failure ends the benchmark with what it wrote."""
    ended = run(*arguments, watch_memory=watch_memory, **environment)
    if ended.code:
        raise SystemExit(f"veilkit {arguments[0]} ended with {ended.code}:\n{ended.output}")
    return ended


def contents(release: Path) -> dict[str, bytes]:
    """Every file that a reader of the release sees."""
    return {
        str(file.relative_to(release)): file.read_bytes()
        for file in release.rglob("*")
        if file.is_file() and ".veilkit" not in file.relative_to(release).parts
    }


def differing(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> list[Any]:
    """The names, in order, under which two hold different things."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def run_and_kill(
    *arguments: str | Path, until: Callable[[], bool], latest: float, alone: bool, rng: random.Random
) -> float:
    """Start `veilkit ARGUMENTS`, and `kill -9` it when `until` holds, after `latest` seconds at the most.

    alone: takes the parent only, so that its orphaned workers still write. Returns the seconds that it had.
    """
    child = subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    begun = time.perf_counter()
    while child.poll() is None and time.perf_counter() - begun < latest and not until():
        time.sleep(rng.uniform(0, _GLANCE))
    family = tree(child.pid)
    for pid in family[:1] if alone else family:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    child.wait()
    return time.perf_counter() - begun


def tree(root: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                fields = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def _kilobytes(pid: int) -> int:
    """Proportional set size, which counts pages that several processes share once among them."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _processor_seconds(pid: int) -> float:
    """Of this process alone, without its children."""
    with suppress(OSError, IndexError):
        user, system = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0
