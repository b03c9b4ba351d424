"""Running the command line as people do, and the memory of the processes that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_POLL = 0.02  # seconds between looks at the memory


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended, what it wrote, its wall-clock time and the peak memory of its processes."""

    code: int
    output: str
    seconds: float
    megabytes: float


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", "from veilkit.cli import main; main()", *map(str, arguments)]


def run(*arguments: str | Path, watch_memory: bool = False, **environment: str) -> Finished:
    """Run `veilkit ARGUMENTS` to its end, with more variables in its environment."""
    with tempfile.TemporaryFile() as log:
        begun = time.perf_counter()
        child = subprocess.Popen(
            command(*arguments), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environment}
        )
        peak = 0.0
        while watch_memory and child.poll() is None:
            peak = max(peak, tree_megabytes(child.pid))
            time.sleep(_POLL)
        code = child.wait()
        seconds = time.perf_counter() - begun
        log.seek(0)
        return Finished(code, log.read().decode("utf-8", "replace"), seconds, peak)


def tree_megabytes(root: int) -> float:
    """Memory of a process and all below it: proportional set size, which counts shared pages once."""
    return sum(_kilobytes(pid) for pid in tree(root)) / 1024


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
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
