"""Worker processes forked from one clean, single-threaded process that has imported torch once.

Importing torch costs seconds of a core; a fork costs milliseconds and shares the memory. Forking the caller's own
process would be unsafe, since it may have threads; `multiprocessing` would import the caller's main module again.
Nothing heavy is imported here, so that a command can start the server while it is still importing torch itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any, NoReturn, TypeAlias

Socket: TypeAlias = "Connection[Any, Any]"
_FORK, _WAIT = "fork", "wait"


class ForkServer:
    """The process that forks workers, seen from the caller's side."""

    def __init__(self) -> None:
        self._control: Socket
        self._control, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                # -P: the folder that a command is given in may hold pictures, and somebody's torch.py.
                [sys.executable, "-P", "-m", "veilkit.pipeline.engines.child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,  # a Ctrl-C on the terminal is for the caller alone
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                    "OPENBLAS_NUM_THREADS": "1",  # forking is safe without threads
                },
            )

    def fork(self) -> tuple[int, Socket]:
        """A new worker: its process number, and the caller's end of its socket."""
        ours, theirs = Pipe()
        with theirs:
            self._control.send((_FORK, 0))
            send_handle(self._control, theirs.fileno(), self._process.pid)
            number: int = self._control.recv()
        return number, ours

    def wait(self, number: int) -> int:
        """How a worker that has ended did so: its exit code, or less than 0 for the signal that ended it."""
        self._control.send((_WAIT, number))
        return os.waitstatus_to_exitcode(self._control.recv())

    def stop(self) -> None:
        """End the server; workers end when their sockets close."""
        self._control.close()
        self._process.wait()


_early: list[ForkServer] = []


def start_early() -> None:
    """Start the server that the next run will need, before that run's own imports."""
    if not _early:
        _early.append(ForkServer())


def take() -> ForkServer:
    """The server that was started early, or a new one."""
    return _early.pop() if _early else ForkServer()


def serve(control: Socket, work: Callable[[Socket], None]) -> None:
    """The server's main loop: fork a worker that does `work`, or say how one ended, until the caller is gone."""
    with suppress(EOFError, ConnectionResetError, BrokenPipeError):
        while True:
            request, number = control.recv()
            if request == _WAIT:
                control.send(_status(number))
                continue
            handle = recv_handle(control)
            number = os.fork()
            if number:
                os.close(handle)
                control.send(number)
                continue
            control.close()
            _run_and_exit(work, Connection(handle))


def _status(number: int) -> int:
    """How a child ended; 0 for one that is no longer there."""
    try:
        return os.waitpid(number, 0)[1]
    except ChildProcessError:
        return 0


def _run_and_exit(work: Callable[[Socket], None], connection: Socket) -> NoReturn:
    """A forked worker ends here: it must never return into the server's loop."""
    code = 1
    try:
        work(connection)
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
