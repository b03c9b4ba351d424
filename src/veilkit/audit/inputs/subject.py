"""What is audited: pairs of pictures that can be read, who is in them, and who is searched for among whom."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.search import Search, plan_search
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.faces import Seen, cut_faces, face_finder, find_faces
from veilkit.audit.inputs.hash_names import named_by_hash
from veilkit.audit.inputs.items import (
    Item,
    is_market,
    items_of_boxes,
    items_of_files,
    market_test_part,
    queries_and_gallery,
    read_boxes,
)
from veilkit.audit.inputs.pictures import File, FilePictures, scan
from veilkit.audit.result import Input
from veilkit.datasets.folder import load_folder
from veilkit.display import counted
from veilkit.errors import DataError, UsageError
from veilkit.media.reading import Limits
from veilkit.pipeline.manifest import Manifest, known_manifest
from veilkit.pipeline.pairing import Pairing, choose_key, pair, swapped
from veilkit.pipeline.synthesis import is_synthetic


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The pictures of an audit, in one order; originals is None where no pairs were found, people where unknown.

    notes: what a reader must know about them. no_search: why people cannot be searched for, where search is None.
    seen: what of the files the pictures are.
    """

    protected: FilePictures
    originals: FilePictures | None
    identities: tuple[str | None, ...]
    people: NDArray[np.int64] | None
    search: Search | None
    market: bool
    no_search: str
    manifest: Manifest | None
    pairing: Pairing
    inputs: tuple[Input, Input]
    notes: tuple[str, ...]
    seen: Seen = "pictures"

    @property
    def whole(self) -> Subject:
        """The same with whole files for pictures, each once, where those are parts of files."""
        if self.seen == "pictures":
            return self
        places = np.unique([file.path for file in self.protected.files], return_index=True)[1]
        some = self.only(places, "")
        return replace(some, originals=some.originals and some.originals.whole(), protected=some.protected.whole(),
                       seen="pictures", notes=self.notes)  # fmt: skip

    def only(self, places: NDArray[np.int64], note: str) -> Subject:
        """Some of the pictures, with a note that says so."""
        chosen = [self.originals, self.protected]
        sides = [None if each is None else each.only(places) for each in chosen]
        assert sides[1] is not None
        search = None if self.search is None else self.search.only(places)
        if search is not None and not search.candidates()[0].any():
            search = None
        inputs = [
            each if side is None else replace(each, pictures=len(side), sha256=_digest_of(side.files))
            for each, side in zip(self.inputs, sides, strict=True)
        ]
        return replace(
            self,
            originals=sides[0],
            protected=sides[1],
            identities=tuple(self.identities[place] for place in places),
            people=None if self.people is None else self.people[places],
            search=search,
            no_search="" if search is not None else self.no_search or "nobody is left who can be found again",
            inputs=(inputs[0], inputs[1]),
            notes=(*self.notes, note),
        )

    def digest(self) -> str:
        """SHA-256 of the pairs, in their order, of who is in them, and of who is searched for among whom."""
        whole = hashlib.sha256()
        for side in (self.originals, self.protected):
            whole.update("\n".join(() if side is None else (file.sha256 for file in side.files)).encode() + b"\n\n")
        for codes in (self.people, *(() if self.search is None else self._search_parts())):
            whole.update(b"-" if codes is None else codes.astype("<i8").tobytes() + b"|")
        return whole.hexdigest()

    def _search_parts(self) -> tuple[NDArray[np.int64] | None, ...]:
        assert self.search is not None
        return self.search.query, self.search.gallery, self.search.identities, self.search.cameras


def load_subject(
    originals: Path,
    protected: Path,
    *,
    key: Path | None,
    seed: int | None,
    labels: str,
    limits: Limits,
    cache: Cache,
    boxes: Path | None = None,
    seen: Seen = "pictures",
) -> Subject:
    """Find pairs, labels and the search; raises DataError where nothing at all could be measured.

    boxes: a file of `boxes.read_boxes`; then each box is a picture, cut out of both sides, and says who is in it.
    seen: what of each file is a picture; of files without originals, which tell where faces are, all.
    """
    originals_paths = [record.path for record in load_folder(originals, "none").records]
    protected_paths = [record.path for record in load_folder(protected, "none").records]
    manifest, manifest_notes = known_manifest(protected)
    secret, key_notes = choose_key(protected, manifest, key, seed)
    synthetic = is_synthetic(manifest)
    if synthetic and boxes is not None:
        raise UsageError("--boxes says where people stand in originals, but the pictures of this release have none")
    if synthetic:
        pairing, labels = Pairing((), "nothing", key_notes), "folder"
    else:
        pairing = pair(
            originals_paths, protected_paths, secret, key_notes,
            lambda: named_by_hash(originals, originals_paths, protected_paths, limits),
        )  # fmt: skip
    if pairing.how == "nothing" and not synthetic and swapped(originals_paths, protected_paths):
        raise UsageError(
            f"the names in ORIGINALS, {originals.name}, are those in PROTECTED with a word added, as tools add it to "
            "what they protect: are the two swapped?"
        )
    market = boxes is None and is_market(originals if pairing.pairs else protected, labels)
    if boxes is None:
        items, notes = items_of_files(originals, protected, protected_paths, pairing, labels)
    else:
        items, notes = items_of_boxes(pairing, read_boxes(boxes))
    if manifest is not None and manifest.parts is not None and boxes is None:
        notes.append(
            f"only {manifest.parts} are protected in these pictures, and what is around them says which is which: "
            "audit the people by their boxes (veilkit ledger boxes PROTECTED FILE, and --boxes FILE)"
        )
    if synthetic:
        notes = [
            "a synthetic release: its pictures belong to no original, and each stands for the person of its class"
        ]
    if market:
        items, market_notes = market_test_part(items)
        notes += market_notes
    if not pairing.pairs:
        seen = "pictures"
    items, files, inputs, box_notes = _readable(
        originals, protected, items, limits, cache, boxed=boxes is not None, seen=seen
    )
    if boxes is not None:
        whole = len({item.original for item in items})
        where = counted(whole, "whole picture", "whole pictures")
        notes.append(
            counted(
                len(items), f"box in {where} is audited as a picture", f"boxes in {where} are audited as pictures"
            )
        )
    notes += box_notes
    refused = [sum(each.unreadable.values()) for each in inputs]
    notes += [
        f"{count} of the {what} could not be read and {'is' if count == 1 else 'are'} left out"
        for what, count in zip(("originals", "protected pictures"), refused, strict=True)
        if count
    ]
    query, gallery = queries_and_gallery(items, market)
    search, search_notes = plan_search([i.identity for i in items], [i.camera for i in items], query, gallery)
    if search is not None and not market:
        how = "boxes" if boxes is not None else "a plain folder" if seen == "pictures" else seen
        notes.append(f"{how}: each picture is searched for among all others, itself excluded")
    paired = items[0].original is not None
    return Subject(
        protected=FilePictures(protected, files[1], limits, cache, "protected pictures"),
        originals=FilePictures(originals, files[0], limits, cache, "originals") if paired else None,
        identities=tuple(item.identity for item in items),
        people=_people(items),
        search=search,
        market=market,
        no_search="" if search is not None else search_notes[0],
        manifest=manifest,
        pairing=pairing,
        inputs=inputs,
        notes=(*manifest_notes, *pairing.notes, *notes, *(search_notes if search is not None else ())),
        seen=seen,
    )


def _readable(
    originals: Path, protected: Path, items: list[Item], limits: Limits, cache: Cache, *, boxed: bool, seen: Seen
) -> tuple[list[Item], tuple[list[File], list[File]], tuple[Input, Input], list[str]]:
    parted = boxed or seen != "pictures"
    raw_paths = [*dict.fromkeys(item.original for item in items if item.original is not None)]
    made_paths = [*dict.fromkeys(item.protected for item in items)]
    raw, raw_refused = scan(originals, raw_paths, limits, cache, "originals", whole=parted)
    made, made_refused = scan(protected, made_paths, limits, cache, "protected pictures", whole=parted)
    kept = [item for item in items if item.protected in made and (item.original is None or item.original in raw)]
    if not kept:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in (raw_refused + made_refused).most_common(3))
        raise DataError(f"nothing can be measured: none of the {len(items)} pictures could be read: {reasons}")
    notes: list[str] = []
    if boxed:
        kept, files = _cut(kept, raw, made, notes)
    elif seen != "pictures":
        digests = {item.original: raw[item.original].sha256 for item in kept if item.original is not None}
        found = find_faces(originals, digests, face_finder(), limits, cache, "originals")
        kept, files, notes = cut_faces(kept, raw, made, found, seen)
    else:
        files = ([raw[i.original] for i in kept if i.original is not None], [made[i.protected] for i in kept])
    inputs = tuple(
        Input(root.name, len(used), _digest_of(used), dict(refused.most_common()))
        for root, used, refused in ((originals, files[0], raw_refused), (protected, files[1], made_refused))
    )
    return kept, files, (inputs[0], inputs[1]), notes


def _cut(
    items: list[Item], raw: dict[str, File], made: dict[str, File], notes: list[str]
) -> tuple[list[Item], tuple[list[File], list[File]]]:
    """The boxes of both sides; those of pictures whose size the protection changed are left out, with a note."""
    kept, files, resized, outside = [], (list[File](), list[File]()), 0, 0
    for item in items:
        assert item.original is not None
        assert item.box is not None
        whole = raw[item.original], made[item.protected]
        if (whole[0].height, whole[0].width) != (whole[1].height, whole[1].width):
            resized += 1
            continue
        parts = [each.cropped(item.box) for each in whole]
        if parts[0] is None or parts[1] is None:
            outside += 1
            continue
        kept.append(item)
        files[0].append(parts[0])
        files[1].append(parts[1])
    for count, why in (
        (resized, "their protected pictures have another size than the originals"),
        (outside, "outside of the picture, there is nothing to cut out"),
    ):
        if count:
            notes.append(f"{counted(count, 'box is left out', 'boxes are left out')}: {why}")
    if not kept:
        raise DataError(
            f"nothing can be measured: of {len(items)} boxes, {resized} lie in pictures whose size the protection "
            f"changed and {outside} outside of their pictures. Without --boxes the whole pictures can be measured"
        )
    return kept, files


def _people(items: Sequence[Item]) -> NDArray[np.int64] | None:
    known = sorted({item.identity for item in items if item.identity is not None})
    if not known:
        return None
    numbers = {identity: code for code, identity in enumerate(known)}
    return np.array(
        [len(known) + place if item.identity is None else numbers[item.identity] for place, item in enumerate(items)],
        dtype=np.int64,
    )


def _digest_of(files: Sequence[File]) -> str:
    return digest([file.sha256 for file in files])


def digest(hashes: Sequence[str]) -> str:
    """One hash for many files, whatever their names and order."""
    return hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()
