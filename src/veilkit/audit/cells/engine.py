"""An audit's cells: those that are there and still hold are read, the others computed, here or by worker processes.

A worker reads the folders itself and shares the cache of features and the folder of trainings with the others. It
ends with the process that started it, even where that one was killed.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Self

import torch

from veilkit.audit.cells.prepared import ATTACK, IMAGES, Prepared
from veilkit.audit.cells.store import CellFiles, as_json
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.options import AuditPlan
from veilkit.errors import UsageError, VeilkitError, WorkerError
from veilkit.progress import Progress

FORMAT = "veilkit-audit-cell-1"
_ENDING = 5.0  # seconds that a worker is given to end


def compute_cells(prepared: Prepared, files: CellFiles, workers: int = 1) -> dict[str, dict[str, Any]]:
    """The results of all cells by name.

    A cell is computed again where its facts (inputs, versions, settings, seed) are others than those in its file.
    workers: processes that compute attacks; what all of them need is computed before, in this one. The results are
    the same for any number.
    """
    files.open()
    found: dict[str, dict[str, Any]] = {}
    missing = []
    for cell in prepared.cells:
        held = files.read(cell)
        if held is not None and holds(held, prepared.facts(cell)):
            found[cell] = held["result"]
        else:
            missing.append(cell)
    shared = [cell for cell in missing if workers < 2 or not cell.startswith(ATTACK)]
    for cell in shared:
        found[cell] = compute_cell(prepared, files, cell)
    if rest := [cell for cell in missing if cell not in found]:
        with Progress(len(rest), "attacking") as progress, WorkerPool(prepared.plan, files, workers) as pool:
            for cell in pool.run(rest):
                progress.advance(1, cell)
        for cell in rest:
            held = files.read(cell)
            # A worker that vanished, or a file that somebody took away: this process can do it as well.
            found[cell] = compute_cell(prepared, files, cell) if held is None else held["result"]
    return {cell: found[cell] for cell in prepared.cells}


def compute_cell(prepared: Prepared, files: CellFiles, cell: str) -> dict[str, Any]:
    """Compute one cell and keep it."""
    facts = as_json(prepared.facts(cell))
    begun = time.process_time()
    result = as_json(prepared.compute(cell))
    about = {**_labels(prepared.plan, cell), "processor_seconds": round(time.process_time() - begun, 2)}
    files.write(cell, {"format": FORMAT, "cell": cell, **about, "facts": facts, "result": result})
    return dict(result)


def seconds_of_attacks(files: CellFiles, attacks: Iterable[str]) -> dict[str, float]:
    """Processor time of each attack with its gates, where its cell says it; what another had computed was free."""
    held = {attack: files.read(f"{ATTACK}{attack}") for attack in attacks}
    taken = {attack: each.get("processor_seconds") for attack, each in held.items() if each is not None}
    return {attack: float(seconds) for attack, seconds in taken.items() if isinstance(seconds, int | float)}


def holds(held: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether a cell that was read is one of this version, whole, and of these facts."""
    return (
        held.get("format") == FORMAT and held.get("facts") == as_json(facts) and isinstance(held.get("result"), dict)
    )


def _labels(plan: AuditPlan, cell: str) -> dict[str, Any]:
    """What a reader of the file wants to know, and the numbers do not depend on. No paths of this machine."""
    return {
        "release": plan.protected.name,
        "dataset": plan.originals.name,
        "attack": cell.removeprefix(ATTACK) if cell.startswith(ATTACK) else None,
        "measures": "pictures" if cell == IMAGES else None if cell.startswith(ATTACK) else "recognition",
        "seed": plan.draw_seed,
    }


class WorkerPool:
    """`workers` processes for one plan; each is sent the next cell when it has done one."""

    def __init__(self, plan: AuditPlan, files: CellFiles, workers: int) -> None:
        self._plan, self._files, self._count = plan, files, workers
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        try:
            # As bytes: otherwise torch sends weights through shared memory, which needs the same parent.
            task = pickle.dumps((self._plan, self._files, torch.get_num_threads()))
        except (TypeError, AttributeError, pickle.PicklingError):
            raise UsageError(
                "worker processes must be sent the recognisers: name them or give their files, or use one worker"
            ) from None
        for _ in range(self._count):
            self._workers.append(_Worker(task))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()

    def run(self, cells: Sequence[str]) -> Iterator[str]:
        """Compute cells; each is named when it is done and kept. An error of a worker is raised here."""
        waiting = deque(cells)
        for worker in self._workers[: len(cells)]:
            worker.give(waiting.popleft())
        while busy := {worker.connection: worker for worker in self._workers if worker.cell}:
            for ready in wait(list(busy)):
                worker = busy[ready]  # type: ignore[index]
                yield worker.take()
                if waiting:
                    worker.give(waiting.popleft())


class _Worker:
    """A process, the pipe to it and the cell that it computes."""

    def __init__(self, task: bytes) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy torch's threads, which do not survive it
        self.connection, theirs = context.Pipe()
        self.cell = ""
        self._process = context.Process(target=_serve, args=(theirs, task), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, cell: str) -> None:
        self.cell = cell
        self.connection.send(cell)

    def take(self) -> str:
        cell, self.cell = self.cell, ""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            raise WorkerError(
                f"the worker process that computed {cell} died: is there enough memory? Run the same command again, "
                "with fewer workers; what was done is kept"
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        return cell

    def stop(self) -> None:
        self.connection.close()
        self._process.terminate()
        self._process.join(_ENDING)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _serve(connection: Connection, task: bytes) -> None:
    """Compute cells until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    plan, files, threads = pickle.loads(task)  # noqa: S301 - from the process that started this one
    torch.set_num_threads(threads)  # the number of threads may change the last bits of a result
    try:
        with Cache(plan.features) as cache:
            prepared: Prepared | None = None
            while True:
                try:
                    cell = connection.recv()
                except EOFError:
                    return
                try:
                    prepared = prepared or Prepared.of(plan, cache)
                    compute_cell(prepared, files, cell)
                    connection.send(None)
                except VeilkitError as error:
                    connection.send(error)
    except (BrokenPipeError, ConnectionResetError):
        return


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
