"""Tests of a gallery run on a file and on a server: the one of VEILKIT_MILVUS_URL, or milvus-lite's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from veilkit.gallery import Gallery
from veilkit.privacy import Budget, PrivUnit

URL = "VEILKIT_MILVUS_URL"
DIMENSION, EPSILON = 16, 4.0
pytest.importorskip("pymilvus", reason="needs the extra: pip install 'veilkit[gallery]'")
pytest.importorskip("milvus_lite", reason="needs the extra: pip install 'veilkit[gallery]'")


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if given := os.environ.get(URL):
        yield given
        return
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, db, port = start_server_in_thread(str(tmp_path_factory.mktemp("server") / "all.db"))
    yield f"http://127.0.0.1:{port}"
    server.stop(grace=2)
    db.close()


@pytest.fixture(params=["file", "server"])
def url(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("server_url") if request.param == "server" else None


@pytest.fixture
def make(tmp_path: Path, url: str | None) -> Iterator[Callable[..., Gallery]]:
    """Makes galleries, two releases to a budget; what they leave on a server is taken away."""
    made: list[Gallery] = []

    def create(name: str = "gallery", **changed: object) -> Gallery:
        asked = {
            "mechanism": PrivUnit(dimension=DIMENSION, epsilon=EPSILON),
            "budget": Budget(epsilon=2 * EPSILON, delta=0.0),
            "per": "person",
            "url": url,
        } | changed
        made.append(Gallery.create(tmp_path / name, **asked))  # type: ignore[arg-type]
        return made[-1]

    yield create
    for gallery in made:
        if gallery.facts.url:
            with Gallery.open(gallery.folder) as opened:
                opened._store.drop()


def some(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, DIMENSION, generator=torch.Generator().manual_seed(seed))


def described(count: int) -> dict[str, list[str]]:
    """Names, two records to a person, two cameras, one record a minute."""
    return {
        "records": [f"person{row // 2}/{row}.jpg" for row in range(count)],
        "persons": [f"person{row // 2}" for row in range(count)],
        "cameras": [f"c{row % 2}" for row in range(count)],
        "times": [f"2024-05-01T12:{row:02}:00Z" for row in range(count)],
    }
