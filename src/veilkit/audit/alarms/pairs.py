"""Whether the originals are those of the release: numbers on wrong pairs look like protection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from veilkit.audit.inputs.relatedness import Related, related
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm, AuditResult
from veilkit.methods import METHODS, Calibrates, Learns, Mixes, Synthesiser
from veilkit.pipeline.manifest import Manifest
from veilkit.pipeline.remembered import remembered_sources
from veilkit.pipeline.synthesis import is_synthetic
from veilkit.text import counted

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
    if is_synthetic(subject.manifest):
        return ((_no_pairs(unpaired),), "") if unpaired else ((), "")
    if subject.originals is None:
        why = "no path or file name occurs in both folders" if not subject.pairing.notes else subject.pairing.notes[0]
        return (_no_pairs(why),), ""
    known, wrong = _remembered(subject, private)
    if wrong:
        return (
            _wrong(
                f"{counted(wrong, 'original is', 'originals are')} not what {known} protected pictures were made of, "
                "as the ledger of the release says: edited since, or of another folder"
            ),
        ), ""
    paired, left = len(subject.pairing.pairs), subject.pairing.left
    if subject.pairing.how != "key" and left > paired:
        return (
            _wrong(f"only {paired} of {paired + left} protected pictures have an original of their name here"),
        ), ""
    if 2 * known >= len(subject.protected):
        return (), ""
    seen = Related.UNKNOWN if _may_be_unlike(subject.manifest) else _by_pixels(subject)
    if seen is Related.NO:
        return (
            _wrong(
                "the protected pictures show something, and are no more like the originals that they are paired with "
                "than like others"
            ),
        ), ""
    return (), UNCONFIRMED if seen is Related.UNKNOWN else ""


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
    assert subject.originals is not None
    count = len(subject.protected)
    places = np.unique(np.linspace(0, count - 1, min(count, _LOOKED_AT)).astype(int))
    sides = [[side.pixels(int(place)) for place in places] for side in (subject.originals, subject.protected)]
    return related(sides[0], sides[1], None if subject.people is None else subject.people[places])
