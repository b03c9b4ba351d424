"""Progress of long work: a bar with rate and remaining time on a terminal, a plain line now and then elsewhere.

Whoever starts a command may also read it from the file that VEILKIT_PROGRESS names: one JSON object, replaced at most
three times a second, with what is done, `done` and `total` steps, and the seconds that are `left`, or null.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO, TypeAlias

from rich import progress as bars
from rich.console import Console

_FILE = os.environ.pop("VEILKIT_PROGRESS", None)  # not for the processes that a command starts itself
_SECONDS = 0.3

Say: TypeAlias = Callable[[str], None]
"""Is told in a few words how far one long piece of work has come."""


def silent(_: str) -> None:
    """Nobody is told."""


class Progress:
    """Reports how far `what` has come.

    total: number of steps; `done` of them before this run (resume), which the rate leaves out.
    stream: where to write, standard error by default. every: seconds between plain lines.

    >>> with Progress(10, "protecting", stream=sys.stdout, clock=lambda: 0.0) as progress:
    ...     progress.advance(10)
    protecting: 10/10 (100 %)
    """

    def __init__(
        self,
        total: int,
        what: str,
        *,
        done: int = 0,
        stream: TextIO | None = None,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._what, self._before, self._done = total, what, done, done
        self._stream = stream if stream is not None else sys.stderr
        self._every, self._clock = every, clock
        self._note = ""
        self._bar: bars.Progress | None = None

    def __enter__(self) -> Self:
        self._started = self._reported_at = self._clock()
        self._reported = -1
        self._noted_at = 0.0
        self._note_file()
        if self._stream.isatty():
            self._bar = bars.Progress(
                bars.TextColumn("{task.description}"),
                bars.BarColumn(),
                bars.MofNCompleteColumn(),
                bars.TextColumn("{task.fields[rate]}"),
                bars.TimeRemainingColumn(),
                bars.TextColumn("{task.fields[note]}", markup=False),
                console=Console(file=self._stream),
            )
            self._task = self._bar.add_task(self._what, total=self._total, completed=self._done, note="", rate="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._reported != self._done:
            self._report()
        self._noted_at = 0.0
        self._note_file()

    def advance(self, steps: int = 1, note: str = "", *, kept: int = 0) -> None:
        """`steps` more are done; `note` (a loss, a count of refusals) stays until the next one.

        kept: so many of them were found done from before (resume), and do not count for the rate.
        """
        self._done += steps
        self._before += kept
        self._note = note or self._note
        self._note_file()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, note=self._note, rate=self._rate_text())
        elif self._clock() - self._reported_at >= self._every:
            self._report()

    def reach(self, done: int, total: int) -> None:
        """`done` steps are done by now."""
        self.advance(done - self._done)

    def say(self, text: str) -> None:
        """A line of its own, above the bar."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            self._write(text)

    def _rate(self) -> float:
        elapsed = self._clock() - self._started
        return (self._done - self._before) / elapsed if elapsed > 0 else 0.0

    def _note_file(self) -> None:
        """Replace the file that somebody reads, who may be gone."""
        now = time.monotonic()
        if _FILE is None or now - self._noted_at < _SECONDS:
            return
        self._noted_at, rate = now, self._rate()
        left = None if rate <= 0 else round((self._total - self._done) / rate, 1)
        state = {"what": self._what, "done": self._done, "total": self._total, "left": left, "note": self._note}
        with suppress(OSError):
            draft = Path(f"{_FILE}.part")
            draft.write_text(json.dumps(state))
            draft.replace(_FILE)

    def _rate_text(self) -> str:
        rate = self._rate()
        if rate <= 0:
            return ""
        return f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.1f} s each"

    def _report(self) -> None:
        self._reported, self._reported_at = self._done, self._clock()
        share = 100 * self._done // self._total if self._total else 100
        parts = [f"{self._done}/{self._total} ({share} %)"]
        rate = self._rate()
        if rate > 0:
            parts.append(self._rate_text())
            if self._done < self._total:
                parts.append(f"{_clock_time((self._total - self._done) / rate)} left")
        if self._note:
            parts.append(self._note)
        self._write(f"{self._what}: {', '.join(parts)}")

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


def _clock_time(seconds: float) -> str:
    """Hours, minutes and seconds as on a clock: 3725 is "1:02:05"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
