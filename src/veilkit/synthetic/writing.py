"""Writing many files: each whole or absent, by one process or by several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import cv2

from veilkit.errors import WorkerError


def write_whole(path: Path, data: bytes) -> None:
    """Write through a temporary name: a file that is there is whole."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)


def _start_worker() -> None:
    """One thread per worker process: the processes are the parallelism."""
    cv2.setNumThreads(1)


def each(job: Callable[[int], int], numbers: Sequence[int], workers: int, what: str) -> Iterator[int]:
    """What `job` returns for each of `numbers`, in order, done here or in worker processes that draw `what`."""
    if workers == 1:
        yield from map(job, numbers)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker) as pool:
        waiting = [pool.submit(job, number) for number in numbers]
        try:
            for done in waiting:
                yield done.result()
        except BrokenProcessPool:
            raise WorkerError(f"a process that draws {what} died; try again with fewer workers") from None
        finally:
            pool.shutdown(cancel_futures=True)
