"""What is measured of a synthetic release beside attacks: how like its pictures are to originals of their class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks import UNPAIRED_ATTACKS, UnpairedNeed
from veilkit.attacks.intervals import mean_score
from veilkit.audit.cells.images import similarity
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.audit.inputs.synthetic_subject import UnpairedSubject
from veilkit.audit.result import OTHER_CLASS, SAME_CLASS, Measurement, Unmeasured
from veilkit.media.reading import Limits
from veilkit.rng import Randomness
from veilkit.types import Evidence, Reason, ReasonCode, Role

PAIRS = 2000  # synthetic pictures that are compared with an original
LEFT_OUT = Reason(ReasonCode.NOT_ASKED, "not asked for (--attack)")
SYNTHETIC = Reason(ReasonCode.SYNTHETIC, "its pictures belong to no original")
_GIVE = {
    UnpairedNeed.UNSEEN: "--unseen",
    UnpairedNeed.HELD_OUT: "--held-out",
    UnpairedNeed.NON_MEMBERS: "--unseen or --held-out",
    UnpairedNeed.STUDENT: "--student",
}


def was_not_asked(evidence: Evidence) -> bool:
    """Whether an attack was left out because others were asked for."""
    return any(reason.code is ReasonCode.NOT_ASKED for reason in evidence.missing)


def class_similarity(
    subject: UnpairedSubject, limits: Limits, cache: Cache, rng: Randomness
) -> tuple[Measurement, ...]:
    """Mean SSIM of synthetic pictures to an original of their own class, and as a reference to one of another.

    Each of at most 2,000 synthetic pictures, drawn at random, is compared with one original of each kind, drawn at
    random; where sizes differ, it is resized to the original's. Intervals draw people again.
    """
    if subject.target is None:
        return ()
    people, classes = subject.target.members.people, subject.target.release.classes
    chosen = np.sort(rng.child("class similarity").permutation(len(classes))[:PAIRS])
    measured = []
    for setting, reference in ((SAME_CLASS, False), (OTHER_CLASS, True)):
        partners = _partners(people, classes[chosen], own=not reference, rng=rng.child("class similarity", setting))
        if partners is None:
            continue
        theirs, ours = subject.members.at(partners), subject.synthetic.at(chosen)
        values = similarity(
            FilePictures(theirs.root, theirs.files, limits, cache, "originals"),
            FilePictures(ours.root, ours.files, limits, cache, "synthetic pictures"),
            cache,
        ).ssim
        finite = np.isfinite(values)
        if finite.any():
            score = mean_score(
                "SSIM", values[finite], classes[chosen][finite], role=Role.PRIVACY, higher_is_better=False, rng=rng,
                note=f"1 where equal; {int(finite.sum())} pairs drawn at random",
            )  # fmt: skip
            measured.append(Measurement("images", setting, score, reference=reference))
    return tuple(measured)


def _partners(
    people: NDArray[np.int64], classes: NDArray[np.int64], *, own: bool, rng: Randomness
) -> NDArray[np.int64] | None:
    """(N,) for each class's code the place of somebody's picture: of that person, or of any other; None if nobody."""
    generator = rng.numpy()
    places = {code: np.flatnonzero((people == code) == own) for code in np.unique(classes)}
    if not all(map(len, places.values())):
        return None
    return np.array([generator.choice(places[code]) for code in classes], dtype=np.int64)


def unpaired_gaps(
    subject: UnpairedSubject, images: tuple[Measurement, ...], attacks: tuple[Evidence, ...]
) -> tuple[Unmeasured, ...]:
    """Attacks that were not made, those of one reason together, and what else is not measured."""
    by_reason: dict[str, list[str]] = {}
    for evidence in attacks:
        if not evidence.applicable and not was_not_asked(evidence):
            by_reason.setdefault(evidence.why_missing + _hint(subject, evidence.attack), []).append(evidence.attack)
    gaps = [
        Unmeasured(f"attack{'s' if len(names) > 1 else ''} {', '.join(names)}", reason)
        for reason, names in by_reason.items()
    ]
    if SAME_CLASS not in {each.setting for each in images}:
        small = "every picture is smaller than its window of 11 x 11 pixels"
        gaps.append(Unmeasured("SSIM to originals of the same class", subject.why or small))
    return (
        *gaps,
        Unmeasured(
            "recognition with raw queries or a raw gallery, and similarity to a picture's original", SYNTHETIC.text
        ),
        Unmeasured(
            "what the pictures are good for", "that is what a student learns of them: `veilkit train student`"
        ),
        Unmeasured("attackers who hold the classifier that the pictures were made with (L3)", "it is never released"),
    )


def _hint(subject: UnpairedSubject, attack: str) -> str:
    """The options that would make up for what an attack lacks."""
    target = subject.target
    if target is None or attack not in UNPAIRED_ATTACKS:
        return ""
    needs = UNPAIRED_ATTACKS[attack].needs
    give = [option for need, option in _GIVE.items() if need in needs and target.lacks(need)]
    return f" (see {', '.join(give)})" if give else ""
