"""Adds to one gallery by processes that are killed: run by a test, in a process of its own that may fork.

`python killed_adds.py FOLDER [URL]` makes galleries and fills them; it checks nothing. Milvus is imported here,
once, but used by the children only: its threads would not survive a fork.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from veilkit.gallery import Gallery, gallery
from veilkit.gallery.milvus import VectorStore
from veilkit.privacy import Budget, PrivUnit
from veilkit.privacy.ledger import Ledger

COUNT, BATCH, DIMENSION, EPSILON, KILLS = 400, 20, 16, 4.0, 4
RECORDS = [f"{row}.jpg" for row in range(COUNT)]
POINTS = ("charging", "charged", "storing", "stored")
_RELEASE, _UPSERT = Ledger.release, VectorStore.upsert


def features() -> torch.Tensor:
    return torch.randn(COUNT, DIMENSION, generator=torch.Generator().manual_seed(0))


def create(folder: Path, url: str | None) -> None:
    Gallery.create(
        folder,
        mechanism=PrivUnit(dimension=DIMENSION, epsilon=EPSILON),
        budget=Budget(epsilon=EPSILON, delta=0.0),
        per="record",
        url=url,
    )


def add(folder: Path) -> None:
    gallery.BATCH = BATCH
    with Gallery.open(folder) as opened:
        opened.add(features(), records=RECORDS, cameras=["c1"] * COUNT)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying_add(folder: Path, point: str) -> None:
    """Die at a point of the third batch."""
    calls = {"release": 0, "upsert": 0}

    def release(ledger: Ledger, *given: object, **named: object) -> torch.Tensor:
        calls["release"] += 1
        if point == "charging" and calls["release"] == 3:
            die()
        found = _RELEASE(ledger, *given, **named)  # type: ignore[arg-type]
        if point == "charged" and calls["release"] == 3:
            die()
        return found

    def upsert(store: VectorStore, names: list[str], *rest: list[object]) -> None:
        calls["upsert"] += 1
        if point == "storing" and calls["upsert"] == 3:
            _UPSERT(store, names[:7], *(part[:7] for part in rest))  # type: ignore[arg-type]
            die()
        _UPSERT(store, names, *rest)  # type: ignore[arg-type]
        if point == "stored" and calls["upsert"] == 3:
            die()

    Ledger.release, VectorStore.upsert = release, upsert  # type: ignore[method-assign,assignment]
    add(folder)


def paid(folder: Path) -> int:
    (ledger,) = folder.with_name(folder.name + ".private").glob("*.ledger")
    books = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
    count = int(books.execute("SELECT COUNT(*) FROM releases").fetchone()[0])
    books.close()
    return count


def in_a_child(work: Callable[[], None], until: Callable[[], bool] | None = None) -> None:
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    if until is not None:
        deadline = time.monotonic() + 60.0
        while not until() and time.monotonic() < deadline:
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main(folder: Path, url: str | None) -> None:
    for point in POINTS:
        in_a_child(lambda point=point: create(folder / point, url))  # type: ignore[misc]
        in_a_child(lambda point=point: dying_add(folder / point, point))  # type: ignore[misc]
    often = folder / "often"
    in_a_child(lambda: create(often, url))
    chance = random.Random(0)
    for _ in range(KILLS):
        target = paid(often) + chance.randint(1, 3 * BATCH)
        in_a_child(lambda: add(often), until=lambda target=target: paid(often) >= target)  # type: ignore[misc]
        with (folder / "kills").open("a") as log:
            log.write(f"{paid(often)}\n")
    in_a_child(lambda: add(often))


if __name__ == "__main__":
    import milvus_lite.adapter.grpc.server  # noqa: F401
    import pymilvus  # noqa: F401

    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
