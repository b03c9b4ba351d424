"""The test part of PEPR-Net's study: pictures in memory, who is in them, and features of them that are kept."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures
from veilkit.attacks.search import Search, plan_search
from veilkit.datasets.labelled import first_people
from veilkit.datasets.market1501 import Market1501
from veilkit.errors import DataError
from veilkit.media.writing import write_atomically
from veilkit.networks.reid import ReidNetwork
from veilkit.training.pixels import read_pixels
from veilkit.training.retrieval import embed_pixels
from veilkit.types import Split

Vectors = NDArray[np.float32]
Codes = NDArray[np.int64]


class PixelPictures(Pictures):
    """Pictures held as uint8 (N, 3, H, W), a quarter of what floats take."""

    def __init__(self, pixels: Tensor) -> None:
        self._pixels = pixels

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""
        return np.tile(np.array(self._pixels.shape[2:], dtype=np.int64), (len(self._pixels), 1))

    def load(self, index: int) -> Tensor:
        """One picture, (3, H, W) float32 in [0, 1]."""
        return self._pixels[index].float().div_(255)


class TestPart:
    """Query, then gallery, of the first `people` by name (None: all), at a size (height, width)."""

    __test__ = False  # of a data set, not of this package

    def __init__(self, data: Market1501, people: int | None, size: tuple[int, int]) -> None:
        query, gallery = data.query, data.gallery
        if people is not None:
            query = first_people(query, people)
            known = set(query.identities)
            kept = tuple(record for record in gallery.records if record.identity in known)
            gallery = Split(gallery.name, gallery.root, kept)
        self.query, self.gallery, self._size = query, gallery, size
        records = (*query.records, *gallery.records)
        names = [record.identity for record in records]
        search, notes = plan_search(
            names, [record.camera for record in records], range(len(query)), range(len(query), len(records))
        )
        if search is None:
            raise DataError(f"the test part cannot be searched: {'; '.join(notes)}")
        self.search: Search = search
        self.notes = notes

    @property
    def people(self) -> Codes:
        """(N,) codes."""
        return self.search.identities

    @cached_property
    def pixels(self) -> Tensor:
        """uint8 (N, 3, H, W)."""
        both = (*self.query.records, *self.gallery.records)
        if self.query.root != self.gallery.root:
            raise DataError("query and gallery must lie below one folder")
        return read_pixels(Split("test", self.query.root, both), self._size)

    @cached_property
    def pictures(self) -> PixelPictures:
        """The same as pictures for attacks."""
        return PixelPictures(self.pixels)

    def first_of_each(self) -> tuple[Codes, Codes]:
        """Of each person one query and one gallery picture by another camera; who has none is left out.

        Positions, (P,) each: the search among as many pictures as people.
        """
        queries, entries = [], []
        for code in np.unique(self.people[self.search.query]):
            own = self.search.gallery[self.people[self.search.gallery] == code]
            for query in self.search.query[self.people[self.search.query] == code]:
                cameras = self.search.cameras
                other = own if cameras is None else own[cameras[own] != cameras[query]]
                if len(other):
                    queries.append(int(query))
                    entries.append(int(np.sort(other)[0]))
                    break
        return np.array(queries, dtype=np.int64), np.array(entries, dtype=np.int64)


class KeptFeatures:
    """Features in files of a study's folder, computed once. They are as private as the pictures."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, Vectors] = {}

    def get(self, name: str, compute: Callable[[], Vectors]) -> Vectors:
        """The features `name`, (N, D)."""
        if name not in self._held:
            file = self._folder / f"{name}.npy"
            if not file.exists():
                buffer = io.BytesIO()
                np.save(buffer, compute())
                self._folder.mkdir(parents=True, exist_ok=True)
                write_atomically(file, buffer.getvalue(), self._folder)
            self._held[name] = np.load(file)
        return self._held[name]


def embedded(network: ReidNetwork, pixels: Tensor) -> Vectors:
    """Raw features (N, D) of uint8 pictures, without mirror images: what a release holds of each."""
    return embed_pixels(network, pixels, flip=False).numpy().astype(np.float32)
