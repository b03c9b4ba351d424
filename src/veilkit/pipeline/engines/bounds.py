"""What a worker process may spend. The system itself ends what spends more, also in the midst of a library's code."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

OUT_OF_TIME = signal.SIGPROF
"""The signal that ends a process whose processor time is used up."""
_SHARE = 0.8  # of the machine's memory, where nothing is set
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


@contextmanager
def processor_seconds(seconds: float) -> Iterator[None]:
    """End this process by OUT_OF_TIME if what is done within takes longer; waiting for others does not count."""
    signal.signal(OUT_OF_TIME, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def renew_processor_seconds() -> None:
    """Begin anew to count what `processor_seconds` bounds, where it does: a part of something long is done."""
    left, whole = signal.getitimer(signal.ITIMER_PROF)
    if left:
        signal.setitimer(signal.ITIMER_PROF, whole, whole)


def bound_memory(most: int | None) -> None:
    """Let this process hold so many bytes (None: 80 % of what the machine has); asking for more then fails.

    Systems that know no such limit go without.
    """
    wanted = int(_SHARE * _memory_there_is()) if most is None else most
    with suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(
            resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def _memory_there_is() -> int:
    """Bytes of memory of the machine, or of the container if that may have less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        return min(machine, int(_CONTAINER.read_text()))  # "max" where there is no limit
    return machine
