"""The main program of the fork server and, after a fork, of each worker.

`python -m veilkit.pipeline.engines.child SOCKET`. A worker takes a job and then tasks from its socket until the other
end is closed, and answers each.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

import torch

from veilkit.errors import UsageError, VeilkitError
from veilkit.pipeline.engines.bounds import bound_memory, processor_seconds
from veilkit.pipeline.engines.forkserver import Socket, serve
from veilkit.pipeline.worker import Worker


def work(connection: Socket) -> None:
    """Answer one caller until it is gone."""
    with suppress(EOFError, ConnectionResetError, BrokenPipeError):
        try:
            worker = Worker(pickle.loads(connection.recv()), connection.send)  # noqa: S301 - from our own parent process
        except (AttributeError, ImportError) as error:
            told = f"the method cannot be sent to worker processes ({error}): define it in a module, or use workers=0"
            connection.send(UsageError(told))
            return
        limits = worker.job.limits
        bound_memory(limits.memory)
        connection.send("ready")
        while True:
            task = connection.recv()
            try:
                with processor_seconds(limits.seconds * len(task.entries)):
                    answer: object = worker.run(task)
            except VeilkitError as error:
                answer = error
            connection.send(answer)


def main() -> None:
    """Interrupts are the caller's business; its end of a socket closing ends the process on this side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    serve(Connection(int(sys.argv[1])), work)
    os._exit(0)  # torch takes its time to say goodbye, and the caller waits for it


if __name__ == "__main__":
    main()
