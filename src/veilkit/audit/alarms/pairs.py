"""Whether the originals are those of the release: numbers on wrong pairs look like protection."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm, AuditResult
from veilkit.display import counted
from veilkit.methods import METHODS, Calibrates, Learns, Mixes, Synthesiser
from veilkit.pipeline.ledger_queries import remembered_sources
from veilkit.pipeline.manifest import Manifest
from veilkit.pipeline.synthesis import is_synthetic

NO_PAIRS, WRONG_PAIRS = "no pairs", "wrong pairs"
UNCONFIRMED = (
    "nothing here shows that these pairs belong together: no ledger of the release is at hand, and its pictures are "
    "too few, or too unlike all originals, to tell by. If ORIGINALS is another folder, no number on pairs counts"
)
_LOOKED_AT = 64  # pairs whose pixels are compared, evenly chosen


def check_pairs(subject: Subject, private: Sequence[Path], unpaired: str = "") -> tuple[tuple[Alarm, ...], str]:
    """Alarms where the originals are not those of the release, and a note where nobody can tell.

    private: folders in which a ledger of the release may lie. unpaired: why a synthetic release cannot be brought
    together with the originals, where that is so.
    """
    alarm, note = _doubt(subject, private, unpaired)
    return () if alarm is None else (alarm,), note


def _doubt(subject: Subject, private: Sequence[Path], unpaired: str) -> tuple[Alarm | None, str]:
    if is_synthetic(subject.manifest):
        return _no_pairs(unpaired) if unpaired else None, ""
    if subject.originals is None:
        why = "no path or file name occurs in both folders" if not subject.pairing.notes else subject.pairing.notes[0]
        return _no_pairs(why), ""
    known, wrong = _remembered(subject, private)
    if wrong:
        return _wrong(
            f"{counted(wrong, 'original is', 'originals are')} not what {known} protected pictures were made of, as "
            "the ledger of the release says: edited since, or of another folder"
        ), ""
    paired, left = len(subject.pairing.pairs), subject.pairing.left
    if subject.pairing.how != "key" and left > paired:
        return _wrong(f"only {paired} of {paired + left} protected pictures have an original of their name here"), ""
    if 2 * known >= len(subject.protected):
        return None, ""
    seen = Related.UNKNOWN if _may_be_unlike(subject.manifest) else _by_pixels(subject)
    if seen is Related.NO:
        return _wrong(
            "the protected pictures show something, and are no more like the originals that they are paired with "
            "than like others"
        ), ""
    return None, UNCONFIRMED if seen is Related.UNKNOWN else ""


def not_of_these(result: AuditResult) -> bool:
    """Whether nothing that an audit says of the originals counts."""
    return any(alarm.name in (NO_PAIRS, WRONG_PAIRS) for alarm in result.alarms)


def _no_pairs(why: str) -> Alarm:
    return Alarm(
        NO_PAIRS,
        f"the release and the originals could not be brought together ({why}): what it gives away of them was not "
        "measured. Are these its originals?",
    )


def _wrong(why: str) -> Alarm:
    return Alarm(
        WRONG_PAIRS,
        f"{why}. Numbers on wrong pairs look like protection, and none of them counts. Give the originals that the "
        "release was made of",
    )


def _remembered(subject: Subject, private: Sequence[Path]) -> tuple[int, int]:
    """How many pairs the release's ledgers know, and how many of them have another original."""
    assert subject.originals is not None
    released = {file.path: file.file_sha256 for file in subject.protected.files}
    originals = {
        made.path: raw.file_sha256 for raw, made in zip(subject.originals.files, subject.protected.files, strict=True)
    }
    known: dict[str, str] = {}
    for folder in private:
        known = remembered_sources(folder, released) | known
    return len(known), sum(originals[path] != digest for path, digest in known.items())


def _may_be_unlike(manifest: Manifest | None) -> bool:
    """Whether a picture of this method may rightly be more like other originals than like its own."""
    kind = None if manifest is None or manifest.method not in METHODS else METHODS[manifest.method]
    return kind is not None and issubclass(kind, Mixes | Synthesiser | Learns | Calibrates)


def _by_pixels(subject: Subject) -> Related:
    subject = subject.whole
    assert subject.originals is not None
    count = len(subject.protected)
    places = np.unique(np.linspace(0, count - 1, min(count, _LOOKED_AT)).astype(int))
    sides = [[side.pixels(int(place)) for place in places] for side in (subject.originals, subject.protected)]
    return related(sides[0], sides[1], None if subject.people is None else subject.people[places])


_SIDE = 8  # pixels of the thumbnails that are compared
_SPREAD = 12**-0.5  # of a rank drawn evenly from [0, 1]
_SURELY, _HARDLY = 3.0, 2.0  # such spreads of the mean rank above one half
_FEWEST_ALIKE, _FEWEST_APART = 4, 8  # people, or pictures, that a verdict by ranks needs
_ALIKE, _APART = 0.7, 0.2  # correlation of the pictures of pairs that are too few for ranks
_SMOOTH = 0.5  # correlation of neighbouring pixels; of noise it is 0, of pictures near 1
_FLAT = 2.0  # of 255: a picture whose values spread less shows nothing


class Related(Enum):
    """What pixels say of pairs."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def related(
    originals: Sequence[NDArray[np.uint8]],
    protected: Sequence[NDArray[np.uint8]],
    people: NDArray[np.int64] | None = None,
) -> Related:
    """Judge pairs of pictures (HWC uint8) by whether each protected one is more like its own original than others.

    NO needs protected pictures that show something: noise and black pictures are like nothing, whatever they were
    made of. people: (N,) codes; then others are pictures of other people.
    """
    if not originals:
        return Related.UNKNOWN
    shown = float(np.median([smoothness(picture) for picture in protected])) > _SMOOTH
    known = people is not None and len(np.unique(people)) >= _FEWEST_ALIKE
    codes = people if known and people is not None else np.arange(len(originals), dtype=np.int64)
    count = len(np.unique(codes))
    ranks = own_ranks(thumbnails(originals), thumbnails(protected), codes)
    if len(ranks) and count >= _FEWEST_ALIKE:
        above = (float(ranks.mean()) - 0.5) * count**0.5 / _SPREAD
        if above >= _SURELY:
            return Related.YES
        if count >= _FEWEST_APART:
            return Related.NO if shown and above < _HARDLY else Related.UNKNOWN
    alike = [_correlation(*pair) for pair in zip(originals, protected, strict=True)]
    mean = float(np.mean(alike))
    if mean >= _ALIKE:
        return Related.YES
    return Related.NO if shown and mean < _APART else Related.UNKNOWN


def own_ranks(
    originals: NDArray[np.float64], protected: NDArray[np.float64], codes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Of each protected row (N, D) the share of others' originals that are less like it than its own; ties by half.

    Of pairs drawn at random the mean is one half. Rows that are the mean of all, and so like none, are left out.

    >>> rows = np.eye(4)
    >>> own_ranks(rows, rows, np.arange(4)).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    first, second = _unit(originals), _unit(protected)
    alike = second @ first.T
    own = np.diagonal(alike)[:, None]
    others = codes[:, None] != codes[None, :]
    usable = others.any(axis=1) & (np.abs(second).sum(axis=1) > 0) & (np.abs(first).sum(axis=1) > 0)
    less = np.where(np.isclose(alike, own), 0.5, (alike < own).astype(np.float64))
    shares = (less * others).sum(axis=1) / np.maximum(1, others.sum(axis=1))
    return np.asarray(shares[usable], dtype=np.float64)


def smoothness(picture: NDArray[np.uint8]) -> float:
    """Correlation of neighbouring pixels of a picture (HWC uint8); 0 for one that shows nothing."""
    grey = picture.astype(np.float64).mean(axis=2)
    if min(grey.shape) < 2 or grey.std() < _FLAT:
        return 0.0
    return min(_of(grey[:, 1:], grey[:, :-1]), _of(grey[1:], grey[:-1]))


def thumbnails(pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """(N, 192): pictures (HWC uint8) at 8 x 8 pixels."""
    return np.stack([_thumbnail(picture).ravel() for picture in pictures])


def _thumbnail(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.asarray(cv2.resize(picture, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA), dtype=np.float64)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = rows - rows.mean(axis=0)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.where(norms > 1e-6, centred / np.maximum(norms, 1e-6), 0.0)


def _correlation(original: NDArray[np.uint8], protected: NDArray[np.uint8]) -> float:
    """Of two thumbnails over their places, each colour's own mean taken away."""
    one, other = (_thumbnail(each) - _thumbnail(each).mean(axis=(0, 1)) for each in (original, protected))
    return _of(one, other)


def _of(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    one, other = one.ravel() - one.mean(), other.ravel() - other.mean()
    return float(one @ other / (np.sqrt((one @ one) * (other @ other)) + 1e-9))
