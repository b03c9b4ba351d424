"""What is audited: pairs of pictures that can be read, who is in them, and who is searched for among whom."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.search import Search, plan_search
from veilkit.audit.cache import Cache
from veilkit.audit.pairing import Pairing, choose_key, pair
from veilkit.audit.pictures import File, FilePictures, scan
from veilkit.audit.result import Input
from veilkit.datasets.folder import load_folder
from veilkit.datasets.labels import MARKET_FOLDERS, is_market_layout, labeller
from veilkit.datasets.market1501 import JUNK
from veilkit.errors import DataError
from veilkit.methods import METHODS
from veilkit.pipeline.manifest import Manifest, read_manifest
from veilkit.pipeline.reading import Limits

_TRAIN, _QUERY, _GALLERY = (f"{folder}/" for folder in MARKET_FOLDERS)


@dataclass(frozen=True, slots=True)
class _Item:
    """A protected picture with its original (None where unknown) and what is known of who is in it."""

    original: str | None
    protected: str
    identity: str | None
    camera: str | None

    @property
    def labelled_path(self) -> str:
        """The path that its labels come from."""
        return self.protected if self.original is None else self.original


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The pictures of an audit, in one order; originals is None where no pairs were found, people where unknown.

    notes: what a reader must be told of them. no_search: why people cannot be searched for, where search is None.
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


def load_subject(
    originals: Path, protected: Path, *, key: Path | None, seed: int | None, labels: str, limits: Limits, cache: Cache
) -> Subject:
    """Find pairs, labels and the search; raises DataError where nothing at all could be measured."""
    originals_paths = [record.path for record in load_folder(originals, "none").records]
    protected_paths = [record.path for record in load_folder(protected, "none").records]
    manifest = read_manifest(protected)
    secret, key_notes = choose_key(protected, manifest, key, seed)
    synthetic = is_synthetic(manifest)
    if synthetic:
        pairing, labels = Pairing((), "nothing", key_notes), "folder"
    else:
        pairing = pair(originals_paths, protected_paths, secret, key_notes)
    market = _is_market(originals if pairing.pairs else protected, labels)
    items, notes = _items(originals, protected, protected_paths, pairing, labels)
    if synthetic:
        notes = [
            "a synthetic release: its pictures belong to no original, and each stands for the person of its class"
        ]
    if market:
        items, market_notes = _test_part(items)
        notes += market_notes
    items, files, inputs = _readable(originals, protected, items, limits, cache)
    refused = [sum(each.unreadable.values()) for each in inputs]
    notes += [
        f"{count} of the {what} could not be read and {'is' if count == 1 else 'are'} left out"
        for what, count in zip(("originals", "protected pictures"), refused, strict=True)
        if count
    ]
    query, gallery = _parts(items, market)
    search, search_notes = plan_search([i.identity for i in items], [i.camera for i in items], query, gallery)
    if search is not None and not market:
        notes.append("a plain folder: each picture is searched for among all others, itself excluded")
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
        notes=(*pairing.notes, *notes, *(search_notes if search is not None else ())),
    )


def is_synthetic(manifest: Manifest | None) -> bool:
    """Whether the pictures of a release belong to no original, as its manifest's method says."""
    return manifest is not None and manifest.method in METHODS and METHODS[manifest.method].unpaired


def _is_market(root: Path, labels: str) -> bool:
    """Whether the official query and gallery parts are to be used; both must hold pictures."""
    return (
        labels in ("auto", "market")
        and is_market_layout(root)
        and all(any((root / folder).iterdir()) for folder in (_QUERY, _GALLERY))
    )


def _items(
    originals: Path, protected: Path, protected_paths: Sequence[str], pairing: Pairing, labels: str
) -> tuple[list[_Item], list[str]]:
    if pairing.pairs:
        label = labeller(labels, originals)
        return [_Item(original, path, *label(original)) for original, path in pairing.pairs], []
    label = labeller(labels, protected)
    items = [_Item(None, path, *label(path)) for path in sorted(protected_paths, key=os.fsencode)]
    if all(item.identity is None for item in items):
        why = "; ".join(pairing.notes) or "no path or file name occurs in both folders"
        raise DataError(
            f"nothing can be measured: no protected picture could be paired with an original ({why}), and the "
            "protected pictures do not say who is in them. Give the key of the release (--key), keep the paths or "
            "file names of the originals, or say who is in the protected pictures (--labels)"
        )
    return items, ["no protected picture could be paired with an original: only the protected ones are measured"]


def _test_part(items: list[_Item]) -> tuple[list[_Item], list[str]]:
    """Query and gallery of the Market-1501 layout, without its junk detections."""
    tested = [item for item in items if item.labelled_path.startswith((_QUERY, _GALLERY)) and item.identity != JUNK]
    notes = ["the layout of Market-1501: its query pictures are searched for in its gallery"]
    if train := sum(item.labelled_path.startswith(_TRAIN) for item in items):
        notes.append(f"{train} pictures of the training part are not measured")
    if not tested:
        raise DataError(
            f"nothing can be measured: none of the {len(items)} pairs lies in the query or gallery folder of the "
            "Market-1501 layout; protect those folders too, or audit the training folder by itself"
        )
    return tested, notes


def _readable(
    originals: Path, protected: Path, items: list[_Item], limits: Limits, cache: Cache
) -> tuple[list[_Item], tuple[list[File], list[File]], tuple[Input, Input]]:
    raw_paths = [item.original for item in items if item.original is not None]
    raw, raw_refused = scan(originals, raw_paths, limits, cache, "originals")
    made, made_refused = scan(protected, [item.protected for item in items], limits, cache, "protected pictures")
    kept = [item for item in items if item.protected in made and (item.original is None or item.original in raw)]
    if not kept:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in (raw_refused + made_refused).most_common(3))
        raise DataError(f"nothing can be measured: none of the {len(items)} pictures could be read: {reasons}")
    files = ([raw[i.original] for i in kept if i.original is not None], [made[i.protected] for i in kept])
    inputs = tuple(
        Input(root.name, len(used), digest([file.sha256 for file in used]), dict(refused.most_common()))
        for root, used, refused in ((originals, files[0], raw_refused), (protected, files[1], made_refused))
    )
    return kept, files, (inputs[0], inputs[1])


def _parts(items: Sequence[_Item], market: bool) -> tuple[list[int], list[int]]:
    if not market:
        return list(range(len(items))), list(range(len(items)))
    asking = [index for index, item in enumerate(items) if item.labelled_path.startswith(_QUERY)]
    return asking, [index for index, item in enumerate(items) if item.labelled_path.startswith(_GALLERY)]


def _people(items: Sequence[_Item]) -> NDArray[np.int64] | None:
    known = sorted({item.identity for item in items if item.identity is not None})
    if not known:
        return None
    numbers = {identity: code for code, identity in enumerate(known)}
    return np.array(
        [len(known) + place if item.identity is None else numbers[item.identity] for place, item in enumerate(items)],
        dtype=np.int64,
    )


def digest(hashes: Sequence[str]) -> str:
    """One hash for many files, whatever their names and order."""
    return hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()
