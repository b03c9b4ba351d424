"""Pictures, faces and places that were left as they were while all around them was changed.

Detail tells: what every protection changes is the difference of a picture to its blurred self. Block by block it is
compared with the original's; a block is kept where both agree and are about equally strong. A coding as JPEG, or a
change of brightness, keeps it; blur, cells, noise and other faces do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.audit.alarms.pairs import thumbnails
from veilkit.audit.cells.images import similarity
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.faces import Face, face_finder, find_faces
from veilkit.audit.inputs.pictures import FilePictures, scan
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.datasets.folder import walk
from veilkit.display import counted
from veilkit.media.reading import Limits
from veilkit.methods import METHODS, ChangesParts, ChangesPlace
from veilkit.rng import Randomness

Pixels = NDArray[np.uint8]

_GRID, _BLOCK = 8, 4  # blocks a side, and the fewest pixels of a block's side
_CONTRAST = 2.0  # of 255: blocks whose detail is fainter have nothing to keep
_AGREES, _STRONG = 0.7, 0.5  # correlation of detail, and its strength to the original's, of a block that was kept
_EXACT = 0.9  # correlation where a part is said to be as it was
_ALL, _HARDLY = 0.8, 0.4  # share of blocks kept in a picture that was left, and at most in the others
_NEAR = 25.0  # dB of PSNR at least: any coding of a picture is nearer, a blend with another seldom
_FEW = 0.2  # of the pictures, that may be left for the rest to be called protected
_CANDIDATES, _OTHERS, _EXTRAS = 64, 48, 500  # pictures that are looked at
_PLACE, _CHANGED = 0.8, 0.1  # share of pictures in which a place is kept, and at most where it is changed
_LEAST_PLACES = 0.05  # of all places, that are kept to be an alarm; at least a third must be changed


def check_kept(subject: Subject, cache: Cache, limits: Limits, rng: Randomness) -> Iterator[Alarm]:
    """Look for what was left unprotected among what was not."""
    if subject.originals is None:
        return
    left = [
        *_left(subject, cache, rng),
        *(_left_faces(subject, cache, limits) if subject.seen == "faces" else ()),
        *_strays(subject, limits, cache),
    ]
    if left:
        yield Alarm(
            "left unprotected",
            f"{'; '.join(left)}, while the others are changed: who holds an original finds it at once",
        )
    if not _changes_parts(subject) and (share := _kept_places(subject.whole, rng)):
        yield Alarm(
            "kept background",
            f"{share:.0%} of each picture, always at the same place, is as it was in the original, and most of the "
            "rest is not: by it each original is found, and pictures of one place belong together",
        )


def detail_kept(raw: Pixels, made: Pixels, agrees: float = _AGREES) -> NDArray[np.float64]:
    """(G, G) of two pictures of one size, HWC: 1 for blocks that were kept, 0 for others, NaN for those without
    detail."""
    height, width = raw.shape[:2]
    down, across = (max(1, min(_GRID, side // _BLOCK)) for side in (height, width))
    one, other = (_detail(picture) for picture in (raw, made))
    kept = np.full((down, across), np.nan)
    for row in range(down):
        for column in range(across):
            block = np.s_[row * height // down : (row + 1) * height // down,
                          column * width // across : (column + 1) * width // across]  # fmt: skip
            first, second = one[block].ravel(), other[block].ravel()
            strength, found = float(first.std()), float(second.std())
            if strength >= _CONTRAST:
                alike = float(first @ second) / (len(first) * strength * max(found, 1e-9))
                kept[row, column] = alike >= agrees and _STRONG <= found / strength <= 1 / _STRONG
    return kept


def _detail(picture: Pixels) -> NDArray[np.float32]:
    values = picture.astype(np.float32)
    return np.asarray(values - cv2.GaussianBlur(values, (0, 0), 1.5), dtype=np.float32)


def _share(subject: Subject, place: int) -> float:
    """Of a picture's blocks with detail, those that were kept; NaN where that cannot be said."""
    assert subject.originals is not None
    if (subject.originals.sizes[place] != subject.protected.sizes[place]).any():
        return np.nan
    return _mean(detail_kept(subject.originals.pixels(place), subject.protected.pixels(place)))


def _mean(kept: NDArray[np.float64]) -> float:
    known = kept[~np.isnan(kept)]
    return float(known.mean()) if len(known) >= 2 else np.nan


def _left(subject: Subject, cache: Cache, rng: Randomness) -> list[str]:
    """Pictures much like their originals, of all of them by what was measured anyway, then by their detail."""
    assert subject.originals is not None
    count = len(subject.protected)
    alike = similarity(subject.originals, subject.protected, cache)
    order = np.argsort(-np.nan_to_num(alike.psnr, posinf=1e3))
    closest = order[: max(1, min(_CANDIDATES, int(_FEW * count)))]
    left = [place for place in closest if alike.psnr[place] >= _NEAR and _share(subject, int(place)) >= _ALL]
    rest = order[len(closest) :]
    some = rest[rng.child("others").permutation(len(rest))[:_OTHERS]]
    others = np.array([_share(subject, int(place)) for place in some])
    others = others[~np.isnan(others)]
    if not left or len(others) < 4 or np.median(others) > _HARDLY:
        return []
    what = {"pictures": ("picture", "pictures"), "faces": ("face", "faces")}.get(subject.seen, ("part", "parts"))
    more = " or more" if len(left) == len(closest) else ""
    return [f"{len(left)}{more} of {count} protected {what[1]} show the original"]


def _left_faces(subject: Subject, cache: Cache, limits: Limits) -> list[str]:
    """Faces of groups that are not measured, as the person of the picture is another."""
    assert subject.originals is not None
    whole = subject.whole
    assert whole.originals is not None
    digests = {file.path: file.file_sha256 for file in whole.originals.files}
    found = find_faces(whole.originals.root, digests, face_finder(), limits, cache, "originals")
    shares = []
    for place, file in enumerate(whole.originals.files[: _CANDIDATES * 4]):
        if len(found[file.path]) < 2 or (whole.originals.sizes[place] != whole.protected.sizes[place]).any():
            continue
        raw, made = whole.originals.pixels(place), whole.protected.pixels(place)
        for face in found[file.path]:
            cut = _inside(face, raw.shape[:2])
            if min(raw[cut].shape[:2]) >= 2 * _BLOCK:
                shares.append(_mean(detail_kept(raw[cut], made[cut])))
    known = np.array([share for share in shares if not np.isnan(share)])
    left = int((known >= _ALL).sum())
    if not left or len(known) < 4 or np.median(known) > _HARDLY:
        return []
    return [f"{counted(left, 'face', 'faces')} of {len(known)} in pictures of several people"]


def _inside(face: Face, shape: tuple[int, ...]) -> tuple[slice, slice]:
    """The middle of a face, where every protection of faces works."""
    left, top, right, bottom = face.box
    wide, high = (right - left) / 6, (bottom - top) / 6
    return (
        slice(max(0, round(top + high)), min(shape[0], round(bottom - high))),
        slice(max(0, round(left + wide)), min(shape[1], round(right - wide))),
    )


def _strays(subject: Subject, limits: Limits, cache: Cache) -> list[str]:
    """Pictures of the release that are paired with nothing, but show an original all the same."""
    assert subject.originals is not None
    paired = {file.path for file in subject.protected.files} | {made for _, made in subject.pairing.pairs}
    root = subject.protected.root
    extra = sorted(path for path, is_image in walk(root) if is_image and path not in paired)[:_EXTRAS]
    if not extra:
        return []
    files = list(scan(root, extra, limits, cache, "pictures without an original")[0].values())
    whole = subject.whole
    assert whole.originals is not None
    strays = FilePictures(root, files, limits, cache, "pictures without an original")
    places = np.unique(np.linspace(0, len(whole.originals) - 1, min(len(whole.originals), 2000)).astype(int))
    known = thumbnails([whole.originals.pixels(int(place)) for place in places])
    found = 0
    for index in range(len(files)):
        picture = strays.pixels(index)
        near = places[np.abs(known - thumbnails([picture])).mean(axis=1).argsort()[:3]]
        for place in near:
            raw = whole.originals.pixels(int(place))
            if raw.shape == picture.shape and _mean(detail_kept(raw, picture)) >= _ALL:
                found += 1
                break
    one, many = "picture beside the protected ones shows", "pictures beside the protected ones show"
    return [f"{counted(found, one, many)} an original"] if found else []


def _changes_parts(subject: Subject) -> bool:
    """Whether a method by its nature leaves what is around faces or people, or a given place."""
    manifest = subject.manifest
    if manifest is None or manifest.method not in METHODS:
        return False
    return manifest.parts is not None or issubclass(METHODS[manifest.method], ChangesParts | ChangesPlace)


def _kept_places(subject: Subject, rng: Randomness) -> float:
    """The share of places kept in nearly all pictures that are changed elsewhere; 0 where there are none."""
    assert subject.originals is not None
    order = rng.child("places").permutation(len(subject.protected))[:_OTHERS]
    same = (subject.originals.sizes == subject.protected.sizes).all(axis=1)
    grids = [
        detail_kept(subject.originals.pixels(int(place)), subject.protected.pixels(int(place)), _EXACT)
        for place in order if same[place]
    ]  # fmt: skip
    shapes = [grid.shape for grid in grids]
    alike = [grid for grid in grids if shapes and grid.shape == max(set(shapes), key=shapes.count)]
    return _same_places(alike) if len(alike) >= 8 else 0.0


def _same_places(grids: Sequence[NDArray[np.float64]]) -> float:
    values = np.stack(grids)
    known = (~np.isnan(values)).sum(axis=0)
    means = np.nansum(values, axis=0) / np.maximum(1, known)
    usable = known >= len(grids) / 4
    kept, changed = (means >= _PLACE) & usable, (means <= _CHANGED) & usable
    if kept.sum() < max(2, _LEAST_PLACES * means.size) or changed.sum() < means.size / 3:
        return 0.0
    return float(kept.mean())
