"""The pictures of Disguise's study: LFW's test people and public ones, as files and as aligned crops."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studies.shared.aligned_pictures import AlignedPictures
from studies.shared.face_data import pairs_of
from studies.shared.originals import Released
from veilkit.attacks.search import Search, plan_search
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures, scan
from veilkit.datasets.lfw import Lfw, Pair, outside_folds
from veilkit.errors import DataError
from veilkit.experts.alignment import WIDE
from veilkit.experts.base import Detector
from veilkit.media.reading import Limits
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.protect import Outcome
from veilkit.progress import Progress
from veilkit.types import Split

_DRAFT = ".draft"
Part = Literal["tested", "public", "elsewhere"]
_LETTERS: dict[Part, str] = {"tested": "t", "public": "p", "elsewhere": "e"}  # begin the folders of people


@dataclass(frozen=True, slots=True, eq=False)
class FaceRelease(Released):
    """A release read back. elsewhere: pictures of another set, where there is one."""

    elsewhere: FilePictures | None = None


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


class FaceOriginals:
    """Test people, who are attacked, public ones, who teach, and people of another set, who may teach in their place.

    Pictures in which no face is found are left out. The others are copied below `root`, a folder per person, under
    numbers instead of names.
    """

    def __init__(self, splits: Mapping[Part, Split], root: Path, finder: Detector, side: int, cache: Cache) -> None:
        self.root, self.side, self._cache, self._finder = root, side, cache, finder
        self._limits = Limits()
        self.sources: list[str] = []  # of the tested pictures, as LFW names them
        self.left_out = 0
        self._paths: dict[Part, list[str]] = {}
        self._matrices: dict[Part, Tensor] = {}
        self.codes: dict[Part, NDArray[np.int64]] = {}
        start = 0
        for part, split in splits.items():
            numbers = {name: start + place for place, name in enumerate(split.identities)}
            start += len(numbers)
            self._take(part, split, numbers)
        self._check_others()
        self.pictures: dict[Part, FilePictures] = {
            part: self.read(root, paths, f"{part} originals") for part, paths in self._paths.items()
        }
        names = [str(code) for code in self.people]
        search, notes = plan_search(names, [None] * len(names), range(len(names)), range(len(names)))
        if search is None:
            raise DataError(f"the test people cannot be searched: {'; '.join(notes)}")
        self.search: Search = search

    @property
    def tested(self) -> FilePictures:
        """The originals of the test people."""
        return self.pictures["tested"]

    @property
    def people(self) -> NDArray[np.int64]:
        """(N,) codes of the people in the tested pictures."""
        return self.codes["tested"]

    def released(self, outcome: Outcome) -> FaceRelease:
        """The pictures of a finished release of these originals, and the ledger's reports of the tested ones."""
        if outcome.refused:
            raise DataError(f"{sum(outcome.refused.values())} pictures were refused; {outcome.refusals} names them")
        with Ledger(outcome.ledger) as ledger:
            entries = {entry.source: entry for entry in ledger.entries("done")}
        made = {
            part: self.read(outcome.destination, [entries[path].output for path in paths], f"{part} pictures")
            for part, paths in self._paths.items()
        }
        held = [entries[path].report for path in self._paths["tested"]]
        reports = tuple(json.loads(report) for report in held if report is not None)
        return FaceRelease(made["tested"], made["public"], reports, made.get("elsewhere"))

    def counts(self, release: FaceRelease) -> dict[str, Any]:
        """How many pictures and people there are, and what became of the faces of a release."""
        outcomes = [face["outcome"] for report in release.reports for face in report["faces"]]
        return {
            "pictures": len(self.people),
            "people": len(np.unique(self.people)),
            "public pictures": len(self.codes["public"]),
            "public people": len(np.unique(self.codes["public"])),
            "without a face": self.left_out,
            "outcomes": {name: outcomes.count(name) for name in sorted(set(outcomes))},
            "no face found": sum(not report["faces"] for report in release.reports),
        }

    def crops(self, release: FaceRelease | None = None, part: Part = "tested") -> AlignedPictures:
        """Aligned crops of one part, of a release or of the originals."""
        pictures = self.pictures[part] if release is None else getattr(release, part)
        assert isinstance(pictures, FilePictures)
        return AlignedPictures(pictures, self._matrices[part], self.side, self._cache)

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

    def _take(self, part: Part, split: Split, numbers: Mapping[str, int]) -> None:
        paths: list[str] = []
        people: list[int] = []
        matrices: list[Tensor] = []
        for index, matrix in enumerate(self._aligned(split)):
            if matrix is None:
                self.left_out += 1
                continue
            person = numbers[str(split.records[index].identity)]
            paths.append(self._copied(split.file(index), part, person, index))
            people.append(person)
            matrices.append(matrix)
            if part == "tested":
                self.sources.append(split.records[index].path)
        if not paths:
            raise DataError(f"{self._finder.name!r} finds no face in the {part} pictures: is it the right finder?")
        self._paths[part], self.codes[part] = paths, np.array(people, dtype=np.int64)
        self._matrices[part] = torch.stack(matrices)

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

    def _copied(self, source: Path, part: Part, person: int, index: int) -> str:
        path = f"{_LETTERS[part]}{person:05}/{index:05}{source.suffix}"
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
