"""Worker processes on this machine.

A decoder that crashes on a hostile file takes one worker with it, not the run.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from types import TracebackType
from typing import Self, TypeAlias

import torch

from veilkit.errors import WorkerError
from veilkit.pipeline.engines.bounds import OUT_OF_TIME
from veilkit.pipeline.engines.forkserver import ForkServer, take
from veilkit.pipeline.job import Job, Task, refused_entry
from veilkit.pipeline.ledger import Entry
from veilkit.pipeline.worker import Worker
from veilkit.progress import Say, silent

Handler: TypeAlias = Callable[[tuple[Entry, ...]], None]
_AHEAD = 2  # tasks that a worker holds, so that it never waits for the next
_SHORT = 16  # pictures of a task whose answer fits into a socket's buffer, however long their paths
_DEATHS = 20  # deaths in a row, with no task done between them, that are not the pictures' fault


class LocalEngine:
    """Does tasks of one job in `workers` processes, or with 0 in this one."""

    def __init__(self, job: Job, workers: int) -> None:
        self._job, self._workers = job, workers
        self._processes: list[_Process] = []
        self.say: Say = silent

    def __enter__(self) -> Self:
        if self._workers:
            self._server = take()
            try:
                for _ in range(self._workers):
                    self._processes.append(_Process(self._server, self._job))
            except BaseException:
                self._stop()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for process in self._processes:
            process.stop()
        if self._workers:
            self._server.stop()

    def run(self, tasks: Iterator[Task], handle: Handler) -> None:
        """Do all tasks; `handle` is called in this process with each result."""
        if self._processes:
            _Pool(self._processes, tasks, handle, self._job.limits.seconds, self.say).run()
            return
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as in the workers: the number of threads may change the last bits of a result
        try:
            worker = Worker(self._job, self.say)
            for task in tasks:
                handle(worker.run(task))
        finally:
            torch.set_num_threads(threads)


class _Pool:
    """Deals tasks to processes and results to the handler; replaces processes that die."""

    def __init__(
        self,
        processes: list[_Process],
        tasks: Iterator[Task],
        handle: Handler,
        seconds: int = 0,
        say: Say = lambda _: None,
    ) -> None:
        self._processes, self._tasks, self._handle, self._seconds, self._say = processes, tasks, handle, seconds, say
        self._again: deque[Task] = deque()
        self._deaths = 0

    def run(self) -> None:
        for process in self._processes:
            self._feed(process)
        while busy := {process.connection: process for process in self._processes if process.held}:
            for ready in wait(list(busy)):
                process = busy[ready]  # type: ignore[index]
                try:
                    result = process.take()
                except (EOFError, OSError):  # OSError: in the midst of an answer
                    self._bury(process)
                else:
                    self._deaths = 0
                    if isinstance(result, str):
                        self._say(result)
                        continue
                    self._handle(result)
                self._feed(process)

    def _feed(self, process: _Process) -> None:
        # Two long messages that cross would wait for each other for ever, each in a full socket.
        while len(process.held) < (1 if process.held and len(process.held[0].entries) > _SHORT else _AHEAD):
            task = self._again.popleft() if self._again else next(self._tasks, None)
            if task is None:
                return
            process.give(task)

    def _bury(self, process: _Process) -> None:
        """Try the dead worker's tasks again; the one that it died on, only once."""
        code = process.stop()
        late, cause = code == -OUT_OF_TIME, _how(code)
        self._deaths += not late
        if self._deaths >= _DEATHS:
            raise WorkerError(
                f"worker processes died {self._deaths} times in a row ({cause}): is there enough memory? "
                "Run the same command again, with fewer workers"
            )
        culprit, *others = process.held
        process.held.clear()
        self._again.extend(others)
        if culprit.apart and len(culprit.entries) > 1:  # only one of them is to blame
            self._again.extendleft(replace(culprit, entries=(entry,)) for entry in reversed(culprit.entries))
        elif late:
            reason = (
                f"it took more than {self._seconds} seconds of processor time: "
                "allow more (--max-seconds), or make it smaller"
            )
            self._handle(tuple(refused_entry(entry, reason) for entry in culprit.entries))
        elif culprit.retried:
            reason = f"a worker process died on it twice ({cause})"
            self._handle(tuple(refused_entry(entry, reason) for entry in culprit.entries))
        else:
            self._again.appendleft(replace(culprit, retried=True))
        process.start()


def _how(code: int | None) -> str:
    if code is None:
        return "its server died"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


class _Process:
    """One worker process, and the tasks that it has been given and has not answered, oldest first."""

    def __init__(self, server: ForkServer, job: Job) -> None:
        self._server, self._job = server, job
        self.held: deque[Task] = deque()
        self._number: int | None = None
        self.start()

    def start(self) -> None:
        try:
            self._number, self.connection = self._server.fork()
            # As bytes: otherwise torch sends a method's weights through shared memory, which needs the same parent.
            self._send(pickle.dumps(self._job))
            answer = self.connection.recv()
        except (EOFError, OSError):
            raise WorkerError("worker processes cannot be started: is there enough memory?") from None
        if isinstance(answer, BaseException):
            raise answer

    def give(self, task: Task) -> None:
        self.held.append(task)
        self._send(task)

    def take(self) -> tuple[Entry, ...] | str:
        """The result of the oldest task, or how far it is; errors that end the run are raised as they were there."""
        result = self.connection.recv()
        if isinstance(result, BaseException):
            raise result
        if isinstance(result, str):
            return result
        self.held.popleft()
        entries: tuple[Entry, ...] = result
        return entries

    def stop(self) -> int | None:
        """End the process; returns its exit code, below 0 for a signal, or None where that cannot be known."""
        if self._number is None:
            return None
        number, self._number = self._number, None
        self.connection.close()
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGTERM)
        try:
            return self._server.wait(number)
        except (EOFError, OSError):
            return None

    def _send(self, message: object) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died: reading its answer will say so
            self.connection.send(message)
