"""Methods that change the faces of a picture, however many, and leave the rest: pictures, not crops."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.configs import as_dict, digest
from veilkit.errors import RefusedImage
from veilkit.experts.base import Detections, Detector, PointOrder
from veilkit.experts.bodies import BodyDetector, heads
from veilkit.experts.finders import FaceSettings, load_bodies, load_finder, load_second
from veilkit.experts.names import is_file_name
from veilkit.experts.pixel_detector import PixelDetector, Pixels, as_pixels
from veilkit.experts.thorough import ThoroughFinder
from veilkit.media.arrays import as_tensor
from veilkit.media.tracks import Seen
from veilkit.media.writing import to_pixels
from veilkit.methods.base import FrameLook, Method
from veilkit.methods.faces.frames import seen_in, treated
from veilkit.methods.faces.pasting import Box, hidden, pixelated
from veilkit.methods.faces.people import People
from veilkit.rng import Randomness
from veilkit.types import Guarantee, ImageBatch, PictureReport, Region, Release

_OVERLAP = 0.3  # of two boxes (intersection over union), from which on they are one face
_COVERED = 0.6  # of a doubtful box, from which on it is a part of the known face over it
_WELL_INSIDE = 0.25  # of a box's sides, from its edges


@dataclass(frozen=True, slots=True)
class Missed:
    """A box in which there is, or may be (`doubtful`), a face that the first finder did not see.

    body: it is the head of somebody whose face nobody saw.
    """

    box: Box
    doubtful: bool
    body: bool = False

    @property
    def outcome(self) -> str:
        """What is told of it."""
        return BODY if self.body else DOUBTFUL if self.doubtful else MISSED


def missed_faces(found: Detections, known: Sequence[Box], certain: float) -> list[Missed]:
    """The faces of a second finder that are none of the known ones; certain: the score below which they are doubtful.

    Of boxes that overlap, the certain ones come first, and then the largest.
    """
    boxes = [(box, score) for box, score in zip(as_boxes(found), found.scores.tolist(), strict=True) if area(box) > 0]
    boxes.sort(key=lambda each: (each[1] < certain, -area(each[0]), each[0]))
    missed: list[Missed] = []
    for box, score in boxes:
        duplicate = any(overlap(box, each.box) > _OVERLAP for each in missed)
        doubtful = score < certain
        if not duplicate and not any(same_face(box, each) or (doubtful and _part(box, each)) for each in known):
            missed.append(Missed(box, doubtful))
    return missed


def faceless_heads(bodies: Detections, faces: Sequence[Box]) -> list[Missed]:
    """The heads of people (boxes of whole bodies) on which no face lies."""
    found: list[Missed] = []
    for body in as_boxes(bodies):
        ends = heads(body)
        if not any(shared(face, end) >= 0.5 * min(area(face), area(end)) for face in faces for end in ends):
            found += [Missed(end, doubtful=True, body=True) for end in ends if area(end) > 0]
    return found


def as_boxes(found: Detections) -> list[Box]:
    """The boxes of detections, as numbers."""
    return [(left, top, right, bottom) for left, top, right, bottom in found.boxes.tolist()]


def distinct(boxes: Sequence[Box]) -> list[int]:
    """The places of boxes, the largest first, without those that are a larger one's again or empty."""
    chosen: list[int] = []
    for place in sorted(range(len(boxes)), key=lambda place: (-area(boxes[place]), boxes[place])):
        box = boxes[place]
        if area(box) > 0 and not any(overlap(box, boxes[other]) > _OVERLAP for other in chosen):
            chosen.append(place)
    return chosen


def area(box: Box) -> float:
    """Square pixels; 0 where the sides are crossed."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    both = shared(one, other)
    return both / max(area(one) + area(other) - both, 1e-9)


def shared(one: Box, other: Box) -> float:
    """Square pixels that lie in both."""
    return area((max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])))


def _part(box: Box, known: Box) -> bool:
    """Whether what may be a face is an eye or a mouth of a known one, which is changed with it."""
    return shared(box, known) >= _COVERED * area(box)


def same_face(box: Box, known: Box) -> bool:
    """Whether two finders mean one face: their boxes overlap, or the middle of one lies well inside of the other."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    wide, high = _WELL_INSIDE * (known[2] - known[0]), _WELL_INSIDE * (known[3] - known[1])
    # Near a corner it may be another head, behind or before the known one, whose face the new one does not cover.
    inside = known[0] + wide < x < known[2] - wide and known[1] + high < y < known[3] - high
    return overlap(box, known) > _OVERLAP or (inside and area(box) <= 2 * area(known))


_CELLS = 8  # of a picture in which no face was found, along its shorter side

NO_FACE = {
    "pixelate": "no face was found: pixelated as a whole",
    "keep": "no face was found: released as it is",
}
ASKED_HIDDEN = "hidden as asked"
SPARED = "left as it is, as asked"
KNOWN = "left as it is: a person who is to be spared"
MISSED = "a face that only the second finder saw: hidden"
DOUBTFUL = "a region that may be a face: hidden"
BODY = "the head of a person whose face was not seen: hidden"
DOUBTED = "something in it may be a face: pixelated as a whole"
_REFUSED = "something in it may be a face: look at it, or choose on_doubt=hide"


@dataclass(frozen=True, slots=True, eq=False)
class FoundFace:
    """box: left, top, right, bottom in pixels. points: float64 (P, 2), or None from a finder without.

    order: which points they are (see `Detections`). number: of the face in its picture. person: who is in the
    picture, if that is known and this is its largest face.
    """

    box: Box
    points: Tensor | None
    order: PointOrder
    number: int
    person: str | None

    @property
    def side(self) -> float:
        """The shorter side of the box."""
        return min(self.box[2] - self.box[0], self.box[3] - self.box[1])


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """The picture with one face changed, and the word for it; or None, and why the face could not be changed.

    note: what the owner must know of a face that was changed, if anything.
    """

    picture: Tensor | None
    outcome: str
    note: str = ""


C = TypeVar("C", bound=FaceSettings)


class FaceMethod(Method[C]):
    """Finds faces, lets a subclass change each (`change`), hides what cannot be changed, and reports all of it.

    finder, second: detectors of your own in place of the configuration's; see `veilkit.experts.finders` for what they
    must answer. Faces are changed one after the other, the largest first, each in the picture as it then is, so that
    no crop brings back a neighbour's face; hiding comes last, for the same reason.
    """

    videos = True
    reach: ClassVar[float] = 1.5
    """How far beyond the box of a face `change` looks and writes, in longer sides of the box."""

    def __init__(
        self, config: C | None = None, *, finder: Detector | None = None, second: Detector | None = None
    ) -> None:
        super().__init__(config)
        self._brought = finder, second
        self._finder, self._second = finder, second
        self._quick: Detector | None = None
        self._bodies: BodyDetector | None = None
        self.people: People | None = None

    def for_people(self, spare: Sequence[Path], only: Sequence[Path]) -> Self:
        """The same method, which leaves some people's faces as they are; see `ChangesFaces`."""
        chosen = copy(self)
        chosen.people = People.of(spare, only, lambda picture: self.look(picture, twice=False)[0])
        return chosen

    @property
    def finder(self) -> Detector:
        """The face finder, loaded at first use."""
        if self._finder is None:
            self._finder = load_finder(self.config.finder)
        return self._finder

    @property
    def second(self) -> Detector | None:
        """The finder that looks for missed faces, if any; `auto` is nobody beside a finder that was brought."""
        if self._second is None and not (self.config.second == "auto" and self._brought[0] is not None):
            self._second = load_second(self.config.second, self.config.finder, self.config.search)
        return self._second

    @property
    def quick_second(self) -> Detector | None:
        """The second finder in its quick search; one that was brought stays as it is."""
        if self._quick is None and self.second is not None and self._brought[1] is None:
            self._quick = load_second(self.config.second, self.config.finder, "quick")
        return self._quick or self.second

    @property
    def bodies(self) -> BodyDetector | None:
        """Who finds people whose face nobody saw, if anybody; nobody where there is no second finder."""
        if self._bodies is None and self.second is not None and self._brought == (None, None):
            self._bodies = load_bodies(self.config.bodies)
        return self._bodies

    @abstractmethod
    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        """Change one face of a picture (3, H, W) in [0, 1]; random values derive from `item` and its number."""

    def seen_in(self, pixels: NDArray[np.uint8], look: FrameLook) -> list[Seen]:
        """What is, or may be, a face in a frame of a video; see `FollowsFaces`."""
        return seen_in(self, pixels, look)

    def treated(
        self, pixels: NDArray[np.uint8], tracks: Sequence[tuple[int, Seen]], item: str, *, rng: Randomness
    ) -> tuple[NDArray[np.uint8], dict[int, str]]:
        """A frame of a video with the face of each track changed or hidden; see `FollowsFaces`."""
        return treated(self, pixels, tracks, item, rng=rng)

    def faceless(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """A frame of a video in which no face was found at all; see `FollowsFaces`."""
        return self.pixelated_frame(pixels) if self.config.unfound == "pixelate" else None

    @staticmethod
    def pixelated_frame(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A frame (H, W, 3) of a video, pixelated as a picture is in which no face was found."""
        return to_pixels(pixelated(as_tensor(pixels), _CELLS))

    def guarantee(self) -> Guarantee | None:
        """What is claimed for a release."""
        return None

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Change the faces of each picture by itself; `reports` tell what became of each face."""
        made = [
            self._one(picture, item, person, regions, rng=rng)
            for picture, item, person, regions in zip(
                batch.images, batch.items, batch.identities, batch.regions, strict=True
            )
        ]
        return Release(
            images=torch.stack([picture for picture, _ in made]) if made else batch.images.clone(),
            source_index=tuple(range(len(batch))),
            guarantee=self.guarantee(),
            reports=tuple(report for _, report in made),
        )

    @torch.no_grad()
    def look(
        self,
        picture: Tensor,
        person: str | None = None,
        *,
        pixels: Pixels | None = None,
        twice: bool = True,
        quick: bool = False,
    ) -> tuple[list[FoundFace], list[Missed]]:
        """The faces of a picture (3, H, W) that can be changed, and what must be hidden besides.

        person: who is in the picture, if that is known. pixels: the same picture in 8 bits, where it is at hand.
        twice: whether the second finder looks as well; quick: in its quick search.
        """
        pixels = as_pixels(picture) if pixels is None else pixels
        faces = found_faces(_asked(self.finder, pixels, picture), person)
        if not twice:
            return faces, []
        second = self.quick_second if quick else self.second
        return faces, self._missed(picture, pixels, [face.box for face in faces], second)

    def parts(self) -> Literal["faces"]:
        """See `ChangesParts`."""
        return "faces"

    def count_faces(self, picture: Tensor) -> dict[str, int]:
        """How many faces the finders see in a picture (3, H, W), and how many regions that may be one."""
        faces, missed = self.look(picture)
        doubtful = sum(each.doubtful for each in missed)
        return {"found": len(faces) + len(missed) - doubtful, "doubtful": doubtful}

    @torch.no_grad()
    def _one(
        self, picture: Tensor, item: str, person: str | None, regions: tuple[Region, ...], *, rng: Randomness
    ) -> tuple[Tensor, PictureReport]:
        faces, missed = self.look(picture, person)
        seen = [*(face.box for face in faces), *(each.box for each in missed)]
        kept = [(box, SPARED) for box in seen if asked(box, regions) == "spare"]
        faces, missed, drawn = as_asked(faces, missed, regions)
        if self.people is not None:
            known = self.people.known(picture, faces, regions)
            kept += [(face.box, KNOWN) for face in faces if face.number in known]
            faces = [face for face in faces if face.number not in known]
        doubtful = sum(each.doubtful for each in missed)
        if doubtful and self.config.on_doubt == "refuse":
            raise RefusedImage(_REFUSED)
        report = [_face_report(box, outcome, asked="spare" if outcome == SPARED else "") for box, outcome in kept]
        report += [_face_report(box, ASKED_HIDDEN, asked="hide") for box in drawn]
        notes: list[str] = []
        result, to_hide, changes = picture.clone(), [*drawn, *(each.box for each in missed)], 0
        for face in faces:
            changed = self.change(result, face, item, rng=rng)
            if changed.picture is None:
                to_hide.append(face.box)
                notes.append(f"{changed.outcome}: hidden")
            else:
                result, changes = changed.picture, changes + 1
                notes += [changed.note] * bool(changed.note)
            report.append(
                _face_report(
                    face.box, changed.outcome if changed.picture is not None else f"{changed.outcome}: hidden"
                )
            )
        for box in to_hide:
            result = hidden(result, box, self.config.hide)
        notes += [each.outcome for each in missed]
        report += [_face_report(each.box, each.outcome, doubtful=each.doubtful) for each in missed]
        found = len(faces) + len(missed) - doubtful + len(drawn) + len(kept)
        if doubtful and self.config.on_doubt == "pixelate-picture":
            notes.append(DOUBTED)
            result = pixelated(picture, _CELLS)
        if not found and self.config.unfound == "pixelate":  # what may be a face is none to rely on
            notes.append(NO_FACE["pixelate"])
            result = pixelated(picture, _CELLS)
        elif not found and not doubtful:
            notes.append(NO_FACE["keep"])
        counts = {"found": found, "changed": changes, "hidden": found - changes - len(kept), "doubtful": doubtful}
        counts |= {"spared": len(kept)} if kept else {}
        return result, PictureReport(tuple(sorted(set(notes))), details={"faces": report, "counts": counts})

    def _missed(self, picture: Tensor, pixels: Pixels, known: list[Box], second: Detector | None) -> list[Missed]:
        """What the second finder saw that is none of the first one's faces, and heads without a face."""
        if second is None:
            return []
        certain = second.certain if isinstance(second, ThoroughFinder) else 0.0
        missed = missed_faces(_asked(second, pixels, picture), known, certain)
        if self.bodies is None:
            return missed
        return missed + faceless_heads(self.bodies.find(pixels), [*known, *(each.box for each in missed)])

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same method under other settings; finders that were loaded by name are loaded anew."""
        changed = super().reconfigured(preset, settings)
        changed._finder, changed._second = self._brought
        changed._bodies = changed._quick = None
        return changed

    def check(self) -> None:
        """Load the finders."""
        _ = self.finder, self.second, self.bodies

    def finders_fingerprint(self) -> str:
        """What the finders are, wherever their files lie."""
        others = ("none" if each is None else each.info.fingerprint for each in (self.second, self.bodies))
        return " ".join([self.finder.info.fingerprint, *others])

    def public_config(self) -> dict[str, Any]:
        """The configuration with the finders' names in place of paths."""
        names = {"finder": self.finder.name}
        if self.second is not None and is_file_name(self.config.second):
            names["second"] = self.second.name.removesuffix("-thorough")  # who looks so, and not how
        names |= {} if self.bodies is None else {"bodies": self.bodies.name}
        return {**as_dict(self.config), **names, **({} if self.people is None else self.people.public())}

    def fingerprint(self) -> str:
        """A hash of the configuration and of the finders."""
        plain = replace(self.config, finder="", second="none", bodies="none")
        people = "" if self.people is None else f":{digest_text(self.people.fingerprint())}"
        return f"{self.name}:{digest(plain)}:{digest_text(self.finders_fingerprint())}{people}"


def digest_text(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def found_faces(found: Detections, person: str | None) -> list[FoundFace]:
    """Detections as faces, the largest first; a box that is one of a larger face's again is left out."""
    boxes = as_boxes(found)
    chosen: list[FoundFace] = []
    for place in distinct(boxes):
        points = found.points[place].double()
        known = len(points) in (5, 68) and bool(points.isfinite().all())
        whose = None if chosen else person
        chosen.append(FoundFace(boxes[place], points if known else None, found.order, len(chosen), whose))
    return chosen


def asked(box: Box, regions: Sequence[Region]) -> str | None:
    """What somebody asked for a found box, by the regions that it lies in; of several, what protects more."""
    actions = {each.action for each in regions if _part(box, each.box)}
    return next((action for action in ("hide", "protect", "spare") if action in actions), None)


def as_asked(
    faces: Sequence[FoundFace], missed: Sequence[Missed], regions: Sequence[Region]
) -> tuple[list[FoundFace], list[Missed], list[Box]]:
    """Faces to change, boxes to hide as they were found, and boxes to hide as they were drawn."""
    left = [face for face in faces if asked(face.box, regions) in (None, "protect")]
    number = max((face.number for face in faces), default=-1) + 1
    for each in regions:
        if each.action == "protect" and not any(_part(face.box, each.box) for face in left):
            left.append(FoundFace(each.box, None, "five", number + len(left), None))
    drawn = [each.box for each in regions if each.action == "hide" and area(each.box) > 0]
    return left, [each for each in missed if asked(each.box, regions) in (None, "protect")], drawn


def _asked(detector: Detector, pixels: Pixels, picture: Tensor) -> Detections:
    """What a detector finds in one picture, given in both forms; the pixels are made once for all detectors."""
    return detector.find(pixels) if isinstance(detector, PixelDetector) else detector.detect(picture[None])[0]


def _face_report(box: Box, outcome: str, *, doubtful: bool = False, asked: str = "") -> dict[str, Any]:
    more = {"doubtful": True} if doubtful else {}
    return {"box": [round(value) for value in box], "outcome": outcome, **more, **({"asked": asked} if asked else {})}
