"""The pictures of Disguise's study: LFW's test people and public ones, as files and as aligned crops."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.search import Search, plan_search
from veilkit.audit.cache import Cache
from veilkit.audit.pictures import FilePictures, scan
from veilkit.audit.reproduce.aligned_pictures import AlignedPictures
from veilkit.audit.reproduce.face_data import pairs_of
from veilkit.audit.reproduce.study_subject import Released
from veilkit.datasets.lfw import Lfw, Pair, outside_folds
from veilkit.errors import DataError
from veilkit.experts.alignment import WIDE
from veilkit.experts.base import Detector
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.protect import Outcome
from veilkit.pipeline.reading import Limits
from veilkit.progress import Progress
from veilkit.types import Split

_DRAFT = ".draft"
_TESTED, _PUBLIC = "t", "p"  # first letters of the folders of people


def people_of_folds(lfw: Lfw, folds: Collection[int], shots: int, people: int | None) -> Split:
    """Pictures of the people whom the pairs of `folds` show: those in the pairs, and the first `shots` of each."""
    listed = {path for pair in pairs_of(lfw, folds) for path in (pair.first, pair.second)}
    shown = sorted({str(record.identity) for record in lfw.images.records if record.path in listed})
    known = set(shown if people is None else shown[:people])
    seen: Counter[str] = Counter()
    kept = []
    for record in lfw.images.records:
        person = str(record.identity)
        if person in known and (record.path in listed or seen[person] < shots):
            kept.append(record)
        seen[person] += 1
    return Split("test", lfw.images.root, tuple(kept))


def people_outside(lfw: Lfw, folds: Collection[int], people: int, shots: int) -> Split:
    """The first `shots` pictures of the `people` with the most pictures whom no pair of `folds` shows."""
    others = outside_folds(lfw, folds, shots=shots)
    counts = Counter(record.identity for record in lfw.images.records)
    order = sorted(others.identities, key=lambda name: (-counts[name], name))
    if len(order) < people:
        raise DataError(f"expected {people} people outside of the test folds, but got {len(order)}")
    chosen = set(order[:people])
    return Split("public", others.root, tuple(r for r in others.records if r.identity in chosen))


class FaceSubject:
    """Test people, who are attacked, and public ones, who teach; pictures in which no face is found are left out.

    The pictures are copied below `root`, a folder per person, under numbers instead of names.
    """

    def __init__(self, tested: Split, public: Split, root: Path, finder: Detector, side: int, cache: Cache) -> None:
        self.root, self.side, self._cache, self._finder = root, side, cache, finder
        self._limits = Limits()
        self.sources: list[str] = []  # of the tested pictures, as LFW names them
        self.left_out = 0
        self._paths: dict[str, list[str]] = {_TESTED: [], _PUBLIC: []}
        people: dict[str, list[int]] = {_TESTED: [], _PUBLIC: []}
        matrices: dict[str, list[Tensor]] = {_TESTED: [], _PUBLIC: []}
        start = 0
        for part, split in ((_TESTED, tested), (_PUBLIC, public)):
            codes = {name: start + place for place, name in enumerate(split.identities)}
            start += len(codes)
            for index, matrix in enumerate(self._aligned(split)):
                if matrix is None:
                    self.left_out += 1
                    continue
                record = split.records[index]
                self._paths[part].append(self._copied(split.file(index), part, codes[str(record.identity)], index))
                people[part].append(codes[str(record.identity)])
                matrices[part].append(matrix)
                if part == _TESTED:
                    self.sources.append(record.path)
        self._check_others()
        self.people, self.public_people = (np.array(people[part], dtype=np.int64) for part in (_TESTED, _PUBLIC))
        if not len(self.people) or not len(self.public_people):
            raise DataError(f"{finder.name!r} finds no faces in the pictures: is it the right finder?")
        self._matrices = {part: torch.stack(each) for part, each in matrices.items()}
        self.tested = self.read(root, self._paths[_TESTED], "originals")
        self.public = self.read(root, self._paths[_PUBLIC], "public originals")
        names = [str(code) for code in self.people]
        search, notes = plan_search(names, [None] * len(names), range(len(names)), range(len(names)))
        if search is None:
            raise DataError(f"the test people cannot be searched: {'; '.join(notes)}")
        self.search: Search = search

    def released(self, outcome: Outcome) -> Released:
        """The pictures of a finished release of these originals, and the ledger's reports of the tested ones."""
        if outcome.refused:
            raise DataError(f"{sum(outcome.refused.values())} pictures were refused; {outcome.refusals} names them")
        with Ledger(outcome.ledger) as ledger:
            entries = {entry.source: entry for entry in ledger.entries("done")}
        made = {part: [entries[path] for path in paths] for part, paths in self._paths.items()}
        return Released(
            self.read(outcome.destination, [entry.output for entry in made[_TESTED]], "protected pictures"),
            self.read(outcome.destination, [entry.output for entry in made[_PUBLIC]], "public protected pictures"),
            tuple(json.loads(entry.report) for entry in made[_TESTED] if entry.report is not None),
        )

    def crops(self, release: Released | None = None, *, public: bool = False) -> AlignedPictures:
        """Aligned crops of the tested pictures, or of the public ones, of a release or of the originals."""
        whole = self if release is None else release
        pictures = whole.public if public else whole.tested
        assert isinstance(pictures, FilePictures)
        return AlignedPictures(pictures, self._matrices[_PUBLIC if public else _TESTED], self.side, self._cache)

    def strangers(self) -> NDArray[np.int64]:
        """(N,) for each tested picture another one, of somebody else; all of them once."""
        order = np.argsort(self.people, kind="stable")
        most = int(np.bincount(self.people).max())
        if 2 * most > len(order):
            raise DataError("one person has half of all pictures: there are not enough strangers")
        chosen = np.empty(len(order), dtype=np.int64)
        chosen[order] = np.roll(order, most)
        return chosen

    def pairs(self, pairs: Sequence[Pair]) -> list[tuple[int, int, bool, int]]:
        """Official pairs as places of tested pictures, whether they show one person, and the fold."""
        place = {path: index for index, path in enumerate(self.sources)}
        return [
            (place[pair.first], place[pair.second], pair.same, pair.fold)
            for pair in pairs
            if pair.first in place and pair.second in place
        ]

    def read(self, root: Path, paths: Sequence[str], what: str) -> FilePictures:
        """Picture files below a folder, in this order; what: names them in messages."""
        files, refused = scan(root, paths, self._limits, self._cache, what)
        if refused:
            raise DataError(f"{sum(refused.values())} of the {what} cannot be read: {', '.join(refused)}")
        return FilePictures(root, [files[path] for path in paths], self._limits, self._cache, what)

    def _aligned(self, split: Split) -> list[Tensor | None]:
        """For each picture the matrix of its largest face; None where there is none."""
        paths = [record.path for record in split.records]
        pictures = self.read(split.root, paths, f"{split.name} pictures")
        kind = f"wide {self.side} {self._finder.info.fingerprint}"
        known = self._cache.get(kind, [file.sha256 for file in pictures.files])
        with Progress(len(paths), "looking for faces") as progress:
            for index, file in enumerate(pictures.files):
                if file.sha256 not in known:
                    known[file.sha256] = self._matrix(pictures.load(index))
                    self._cache.put(kind, [(file.sha256, known[file.sha256])])
                progress.advance(1)
        rows = [torch.from_numpy(np.array(known[file.sha256])) for file in pictures.files]
        return [row.view(2, 3) if bool(row.isfinite().all()) else None for row in rows]

    def _matrix(self, picture: Tensor) -> NDArray[np.float32]:
        """(6,), or as many NaN."""
        found = self._finder.detect(picture[None])[0]
        place = found.largest()
        if place is None or found.points.shape[1] not in (5, 68):
            return np.full(6, np.nan, dtype=np.float32)
        matrix = WIDE[found.order].matrix(found.points[place][None].double(), self.side)[0]
        return matrix.float().numpy().reshape(6)

    def _copied(self, source: Path, part: str, person: int, index: int) -> str:
        path = f"{part}{person:05}/{index:05}{source.suffix}"
        target = self.root / path
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(target.name + _DRAFT)
            shutil.copyfile(source, draft)
            draft.replace(target)
        return path

    def _check_others(self) -> None:
        wanted = {path for paths in self._paths.values() for path in paths}
        there = {str(file.relative_to(self.root)) for file in self.root.rglob("*") if file.is_file()}
        for leftover in [path for path in there if path.endswith(_DRAFT)]:
            (self.root / leftover).unlink()
            there.discard(leftover)
        if others := there - wanted:
            raise DataError(
                f"{self.root} holds {len(others)} pictures that this study does not choose: give it another folder"
            )
