"""Releases through one ledger by processes that are killed: run by a test, in a process of its own that may fork.

`python killed_releases.py FOLDER` writes every vector that was handed out to a file `published`, and checks nothing.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import torch

from veilkit.privacy import Budget, Ledger, PrivUnit, SystemNoise, unit
from veilkit.privacy.store import Store

PEOPLE, EACH, EPSILON, KILLS = 30, 4, 2.0, 20
MECHANISM = PrivUnit(dimension=16, epsilon=EPSILON)
DIGITS = 16 * 4 * 2  # of a vector of 32-bit numbers, as hexadecimal text
BUDGET = Budget(epsilon=EACH * EPSILON, delta=0.0)


def vectors(person: int) -> torch.Tensor:
    return unit(torch.randn(EACH, 16, generator=torch.Generator().manual_seed(person)))


def publish(folder: Path, *, noise: SystemNoise | None = None, seed: int | None = None) -> None:
    """Release everything that there is, as after any interruption, in the order of people or in one of a seed."""
    people = list(range(PEOPLE))
    if seed is not None:
        random.Random(seed).shuffle(people)
    with Ledger(folder / "ledger", budget=BUDGET, per="person", noise=noise) as ledger:
        for person in people:
            records = [f"{person}-{shot}" for shot in range(EACH)]
            released = ledger.release(MECHANISM, vectors(person), records=records, persons=[str(person)] * EACH)
            lines = [
                f"{record} {row.tobytes().hex()}\n" for record, row in zip(records, released.numpy(), strict=True)
            ]
            out = os.open(folder / "published", os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if (end := os.fstat(out).st_size) and os.pread(out, 1, end - 1) != b"\n":
                os.write(out, b"\n")  # killed in the middle of a line
            os.write(out, "".join(lines).encode())
            os.close(out)


def lines(folder: Path) -> int:
    """How many vectors have been handed out, some of them more than once."""
    file = folder / "published"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DeadlyNoise(SystemNoise):
    """The process dies while noise is drawn: inside of the transaction."""

    def normal(self, *shape: int) -> np.ndarray:
        die()
        return super().normal(*shape)


@contextmanager
def deadly_commit(store: Store) -> Iterator[None]:
    """The process dies right after the charge was committed, before anything is handed out."""
    with _TRANSACTION(store):
        yield
    die()


_TRANSACTION = Store.transaction


def in_a_child(work: Callable[[], None], *, kill_at: int | None = None, folder: Path | None = None) -> None:
    """Do some work in a process of its own, killed at whatever it does once so many lines were published."""
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    if kill_at is not None and folder is not None:
        deadline = time.monotonic() + 60.0
        while lines(folder) < kill_at and time.monotonic() < deadline:
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main(folder: Path) -> None:
    before, after, often = (folder / name for name in ("before", "after", "often"))
    for part in (before, after, often):
        part.mkdir()
    in_a_child(lambda: publish(before, noise=DeadlyNoise()))

    def dying_after_commit() -> None:
        Store.transaction = deadly_commit  # type: ignore[method-assign,assignment]
        publish(after)

    in_a_child(dying_after_commit)
    chance = random.Random(0)
    for kill in range(KILLS):
        kill_at = lines(often) + chance.randint(1, 4 * EACH)
        in_a_child(partial(publish, often, seed=kill), kill_at=kill_at, folder=often)
        with (often / "kills").open("a") as log:
            log.write(f"{lines(often)}\n")
    publish(often)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
