"""The main program of a worker process: `python -m veilkit.pipeline.engines.child SOCKET`.

It takes a job and then tasks from the socket until its other end is closed, and answers each.
"""

from __future__ import annotations

import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

import cv2
import torch

from veilkit.errors import VeilkitError
from veilkit.pipeline.work import Worker


def main() -> None:
    """Serve one parent. Interrupts are the parent's business; its end of the socket closing ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    connection: Connection[Any, Any] = Connection(int(sys.argv[1]))
    try:
        worker = Worker(connection.recv())
        while True:
            task = connection.recv()
            try:
                connection.send(worker.run(task))
            except VeilkitError as error:
                connection.send(error)
    except (EOFError, ConnectionResetError, BrokenPipeError):
        return


if __name__ == "__main__":
    main()
