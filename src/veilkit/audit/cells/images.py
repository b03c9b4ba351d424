"""Pictures as such: how like the originals they are, and how chaotic their pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import mean_score
from veilkit.attacks.pictures import SMALLEST, Pictures, resized
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.faces import face_finder, face_of, find_faces
from veilkit.audit.inputs.pictures import LARGEST, FilePictures
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.inputs.synthetic_subject import UnpairedSubject
from veilkit.audit.result import OTHER_CLASS, SAME_CLASS, Measurement
from veilkit.media.reading import Limits
from veilkit.metrics import anderson_darling, psnr, ssim
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.types import Role

PAIRS = 2000  # synthetic pictures that are compared with an original
_SAME_PLACE = 0.3  # intersection over union of a face found and the original's
_SIMILARITY, _CHAOS = "similarity 1", "chaos 1"


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """Of N pairs: PSNR in dB (infinite where equal), SSIM (NaN where a side is too short); how many were resized."""

    psnr: NDArray[np.float64]
    ssim: NDArray[np.float64]
    resized: int


def similarity(originals: FilePictures, protected: FilePictures, cache: Cache) -> Similarity:
    """PSNR and SSIM of each protected picture against its original, on the fixed [0, 1] scale.

    A protected picture of another size is resized to its original's.
    """
    names = [a.sha256 + b.sha256 for a, b in zip(originals.files, protected.files, strict=True)]
    known = cache.get(_SIMILARITY, names)
    missing = [index for index, name in enumerate(names) if name not in known]
    with Progress(len(names), "comparing pictures", done=len(names) - len(missing)) as progress:
        for part, images in originals.batches(missing):
            size = (images.shape[2], images.shape[3])
            answers = images.new_empty(images.shape)
            for place, index in enumerate(part):
                answers[place] = resized(protected.load(index)[None], size)[0]
            values = np.full((len(part), 2), np.nan, dtype=np.float32)
            values[:, 0] = psnr(answers, images).numpy()
            if min(size) >= SMALLEST:
                values[:, 1] = ssim(answers, images).numpy()
            new = [(names[index], row) for index, row in zip(part, values, strict=True)]
            cache.put(_SIMILARITY, new)
            known.update(new)
            progress.advance(len(part))
    table = np.stack([known[name] for name in names]).astype(np.float64)
    changed = int((originals.sizes != protected.sizes).any(axis=1).sum())
    return Similarity(table[:, 0], table[:, 1], changed)


def chaos(pictures: FilePictures, cache: Cache) -> NDArray[np.float64]:
    """The Anderson-Darling statistic of each picture (N,); infinite for pictures of one single value."""
    names = [file.sha256 for file in pictures.files]
    known = cache.get(_CHAOS, names)
    missing = {name: index for index, name in enumerate(names) if name not in known}
    with Progress(len(names), "measuring chaos", done=len(names) - len(missing)) as progress:
        for part, images in pictures.batches(sorted(missing.values())):
            values = anderson_darling(images).numpy().astype(np.float32)
            new = [(names[index], values[place : place + 1]) for place, index in enumerate(part)]
            cache.put(_CHAOS, new)
            known.update(new)
            progress.advance(len(part))
    return np.array([known[name][0] for name in names], dtype=np.float64)


def one_size(pictures: Pictures) -> bool:
    """Whether all pictures have one size, as the chaos statistic needs to be compared."""
    return len(np.unique(pictures.sizes, axis=0)) <= 1


TO_ORIGINAL = "protected to original"
FACES_FOUND, POINTS_OFF = "faces found", "landmarks off"


def face_scores(subject: Subject, limits: Limits, cache: Cache, rng: Randomness) -> tuple[Measurement, ...]:
    """How many faces are still found where they are in the originals, and how far off their points then are."""
    root, digests = subject.protected.root, {file.path: file.file_sha256 for file in subject.protected.files}
    found = find_faces(root, digests, face_finder(), limits, cache, "protected pictures")
    hits, off = [], []
    for file in subject.protected.files:
        wanted = face_of(file)
        nearest = max(found[file.path], key=wanted.overlap, default=None)
        hit = nearest is not None and wanted.overlap(nearest) >= _SAME_PLACE
        hits.append(float(hit))
        apart = np.nan
        if nearest is not None and hit:
            steps = np.linalg.norm(np.array(nearest.points) - np.array(wanted.points), axis=1)
            apart = float(steps.mean()) / max(wanted.eyes_apart, 1e-6)
        off.append(apart)
    people = subject.people
    measured = [
        Measurement(
            "images", "protected",
            mean_score(FACES_FOUND, np.array(hits), people, role=Role.UTILITY, higher_is_better=True, rng=rng,
                       note="where they are in the originals", rate=True),
        )
    ]  # fmt: skip
    known = np.isfinite(off)
    if known.any():
        note = "of the distance between the eyes, where a face was found"
        score = mean_score(
            POINTS_OFF, np.array(off)[known], None if people is None else people[known], role=Role.UTILITY,
            higher_is_better=False, rng=rng, note=note, rate=True,
        )  # fmt: skip
        measured.append(Measurement("images", "protected", score))
    return tuple(measured)


def image_scores(subject: Subject, cache: Cache, rng: Randomness) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
    """Mean SSIM and PSNR of the pairs, and mean chaos of protected pictures and originals; then notes."""
    measured: list[Measurement] = []
    notes: list[str] = []
    if subject.originals is not None:
        pairs = similarity(subject.originals, subject.protected, cache)
        measured += _mean(subject, TO_ORIGINAL, "SSIM", pairs.ssim, "1 where equal", rng)
        measured += _mean(subject, TO_ORIGINAL, "PSNR", pairs.psnr, "higher is nearer", rng)
        if equal := int(np.isinf(pairs.psnr).sum()):
            notes.append(f"{equal} protected pictures equal their originals, pixel by pixel; PSNR leaves them out")
        if small := int(np.isnan(pairs.ssim).sum()):
            notes.append(f"{small} pictures are too small for SSIM, which needs 11 pixels a side")
        if pairs.resized:
            notes.append(
                f"{pairs.resized} protected pictures were resized to their originals' size before they were compared"
            )
    sides: list[tuple[str, FilePictures]] = [("protected", subject.protected)]
    if subject.originals is not None:
        sides.append(("originals", subject.originals))
    for setting, pictures in sides:
        values = chaos(pictures, cache)
        what = "protected pictures" if setting == "protected" else setting
        about = "0 for normally distributed values; a low value alone proves no privacy"
        measured += _mean(subject, setting, "AD", values, about, rng)
        if flat := int(np.isinf(values).sum()):
            notes.append(f"{flat} of the {what} have one single value, for which chaos (AD) is not defined")
        if not one_size(pictures):
            notes.append(f"the {what} have several sizes, and chaos (AD) grows with a picture's size")
        if (pictures.sizes.prod(axis=1) > 0.99 * LARGEST).any():
            notes.append(
                f"some of the {what} were shrunk to {LARGEST / 1e6:g} million pixels before they were measured"
            )
    return tuple(measured), tuple(notes)


def _mean(
    subject: Subject, setting: str, metric: str, values: NDArray[np.float64], note: str, rng: Randomness
) -> list[Measurement]:
    """The mean of the values that are finite, if any are."""
    finite = np.isfinite(values)
    if not finite.any():
        return []
    score = mean_score(
        metric,
        values[finite],
        None if subject.people is None else subject.people[finite],
        role=Role.PRIVACY,
        higher_is_better=False,
        rng=rng,
        note=note,
    )
    return [Measurement("images", setting, score, reference=setting == "originals")]


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
