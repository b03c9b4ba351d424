"""People in whole pictures: a method for crops of people, on each part of a picture where somebody is.

A person's crop is a box of whole pixels, cut from the original and laid back without a soft edge: what was made of it
stands in the released picture value by value, for an expert that is shown the same box. Where boxes overlap, a pixel
that any crop changed is released changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import torch
from torch import Tensor

from veilkit.configs import digest, with_settings
from veilkit.errors import ConfigError, RefusedImage, UsageError
from veilkit.experts.base import Detector
from veilkit.experts.bodies import FILE as YOLOX
from veilkit.experts.finders import load_bodies
from veilkit.experts.pixel_detector import nothing
from veilkit.methods.base import Method
from veilkit.methods.faces.method import ASKED_HIDDEN, SPARED, area, as_boxes, asked, overlap, shared
from veilkit.methods.faces.pasting import Box, hidden, pixelated
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, PictureReport, Region, Release

CERTAIN, DOUBTFUL = 0.4, 0.05
"""Least scores of who surely is a person, and of what may be one: see `benchmarks/people_in_scenes.py`."""
TILES = (832, 640, 320)
"""Sides of the parts in which people are looked for: the finder shrinks each to 416 pixels."""
LEAST = 48
"""Pixels of a person's height, below which a method has too few values to work with."""
_MARGIN = 0.1  # of a detection's sides, on each
_SAME = 0.5  # intersection over union with a given box, from which on a detection is that person
_INSIDE = 0.9  # of a detection's own box, likewise
_CELLS = 8  # of a picture in which nobody was found, along its shorter side
_HALF = 0.5 / 255  # a change that an 8-bit file does not show

UNSURE = "what may be a person: hidden"
SMALL = f"a person less than {LEAST} pixels high: hidden"
CUT = "a person cut off by the picture's edge: hidden"
NOBODY = {
    "pixelate": "nobody was found: pixelated as a whole",
    "keep": "nobody was found: released as it is",
}
CROWDED = "people overlap: an expert may match them less well"
_DOUBTED = "somebody in it is doubtful: pixelated as a whole"
_REFUSED = "somebody in it is doubtful: look at it, or choose on_doubt=hide"


@dataclass(frozen=True, slots=True)
class PeopleSettings:
    """How people are found in whole pictures, and what happens where that fails.

    bodies: who finds them beside given boxes: the path of YOLOX's ONNX file, `auto` (`yolox_nano.onnx`, where the
    folder of weights holds it) or `none`. on_doubt: what a picture gets with somebody doubtful, who has a low score,
    is too small or is cut off by its edge: `hide` blackens that part, `pixelate-picture` pixelates all of it,
    `refuse` leaves it out. unfound: what a picture gets in which nobody was found: `pixelate` (8 cells along its
    shorter side), or `keep`, which releases it as it is, but for what may be a person.
    """

    bodies: str = "auto"
    on_doubt: Literal["hide", "pixelate-picture", "refuse"] = "hide"
    unfound: Literal["pixelate", "keep"] = "pixelate"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in a picture. box: left, top, right, bottom. doubt: why they are hidden, if they are."""

    box: tuple[int, int, int, int]
    doubt: str = ""
    identity: str | None = None


class PeopleInPictures(Method[PeopleSettings]):
    """Another method, `crops`, on each person of a picture; its name and settings are that method's.

    boxed: whether boxes of people are given; without, there must be a finder. finder: a detector of bodies of your
    own in place of the settings'.
    """

    name = "people"
    default = PeopleSettings()

    def __init__(
        self,
        crops: Method[Any],
        config: PeopleSettings | None = None,
        *,
        boxed: bool = False,
        finder: Detector | None = None,
    ) -> None:
        super().__init__(config)
        self.crops, self.boxed = crops, boxed
        self.name, self.random = crops.name, crops.random  # type: ignore[misc]  # one class for all methods
        self._brought = self._finder = finder

    @property
    def finder(self) -> Detector | None:
        """Who finds people, loaded at first use; None where given boxes are all there is."""
        if self._finder is None:
            self._finder = load_bodies(self.config.bodies, threshold=DOUBTFUL, tiles=TILES)
        return self._finder

    def check(self) -> None:
        """Load the method and the finder."""
        self.crops.check()
        if self.finder is None and not self.boxed:
            raise UsageError(
                "people must be found before they are protected: give their boxes (--boxes FILE), or name YOLOX's "
                f"ONNX file (--set bodies=FILE, or {YOLOX} in the folder that VEILKIT_WEIGHTS names)"
            )

    def parts(self) -> Literal["people"]:
        """See `ChangesParts`."""
        return "people"

    @property
    def at_once(self) -> int:
        """As many pictures as the method likes crops."""
        return self.crops.at_once

    @property
    def expert_sha256(self) -> str | None:
        """See `Method`."""
        return self.crops.expert_sha256

    def public_config(self) -> dict[str, Any]:
        """The settings of the method for crops, from which an audit can run it again."""
        return self.crops.public_config()

    def fingerprint(self) -> str:
        """A hash of both configurations and of the finder."""
        finder = "none" if self.finder is None else self.finder.info.fingerprint
        return f"{self.crops.fingerprint()}:people:{digest(replace(self.config, bodies=finder))}"

    def reconfigured(
        self, preset: str | None = None, settings: Mapping[str, object] | None = None
    ) -> PeopleInPictures:
        """The same under other settings, of the search for people or of the method for crops."""
        own, others = split_settings(settings)
        crops = self.crops.reconfigured(preset, others) if preset or others else self.crops
        return PeopleInPictures(crops, with_settings(self.config, own), boxed=self.boxed, finder=self._brought)

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Protect the people of each picture; `reports` tell of each box what became of it."""
        return self.protect_many([batch], rng=rng)[0]

    def protect_many(self, batches: Sequence[ImageBatch], *, rng: Randomness) -> list[Release]:
        """The people of all pictures side by side; each one's values derive from picture and box alone."""
        found = [
            [self._people(picture, regions) for picture, regions in zip(batch.images, batch.regions, strict=True)]
            for batch in batches
        ]
        if self.config.on_doubt == "refuse" and any(
            each.doubt for people in found for some in people for each in some
        ):
            raise RefusedImage(_REFUSED)
        crops = [
            ImageBatch(_cut(picture, each.box)[None].contiguous(), (f"{item}\0person {each.box}",), (each.identity,))
            for batch, people in zip(batches, found, strict=True)
            for picture, item, some in zip(batch.images, batch.items, people, strict=True)
            for each in some
            if not each.doubt
        ]
        made = iter(self.crops.protect_many(crops, rng=rng.child("people")) if crops else ())
        releases = []
        for batch, people in zip(batches, found, strict=True):
            done = [
                self._one(picture, some, regions, made)
                for picture, some, regions in zip(batch.images, people, batch.regions, strict=True)
            ]
            images = torch.stack([image for image, _ in done]) if done else batch.images.clone()
            reports = tuple(report for _, report in done)
            releases.append(Release(images=images, source_index=tuple(range(len(batch))), reports=reports))
        return releases

    def _people(self, picture: Tensor, regions: Sequence[Region]) -> list[Person]:
        """Who is to be protected, given boxes first, and who must be hidden."""
        height, width = picture.shape[1:]
        given = [
            Person(box, SMALL if box[3] - box[1] < LEAST else "", each.identity)
            for each in regions
            if each.action == "protect" and (box := whole(each.box, height, width)) is not None
        ]
        drawn = [each.box for each in given]
        seen = nothing() if self.finder is None else self.finder.detect(picture[None])[0]
        for corners, score in zip(as_boxes(seen), seen.scores.tolist(), strict=True):
            box = whole(wider(corners), height, width)
            if box is None or asked(box, regions) == "spare" or any(_same(box, each) for each in drawn):
                continue
            left, top, right, bottom = corners
            cut = left < 1 or top < 1 or right > width - 1 or bottom > height - 1
            doubt = UNSURE if score < CERTAIN else CUT if cut else SMALL if bottom - top < LEAST else ""
            if not (doubt and any(_inside(box, each.box) for each in given if not each.doubt)):  # a part of somebody
                given.append(Person(box, doubt))
        return list({each.box: each for each in reversed(given)}.values())[::-1]

    def _one(
        self, picture: Tensor, people: Sequence[Person], regions: Sequence[Region], made: Iterator[Release]
    ) -> tuple[Tensor, PictureReport]:
        """The picture with all of them laid in, and what became of whom."""
        doubted = [each for each in people if each.doubt]
        laid = [(each, next(made)) for each in people if not each.doubt]
        drawn, kept = ([each.box for each in regions if each.action == action] for action in ("hide", "spare"))
        result = picture.clone()
        for each in doubted:
            result = hidden(result, each.box, "mask")
        for each, release in reversed(laid):  # given boxes, and then the surest, last
            crop, part = _image(release), _cut(result, each.box)
            if crop.shape != part.shape:
                raise ConfigError(f"{self.name} gives crops of another size, which cannot be laid back: see own_size")
            part.copy_(torch.where(_differs(crop, _cut(picture, each.box)), crop, part))
        for box in drawn:
            result = hidden(result, box, "mask")
        notes, limits = [each.doubt for each in doubted], list[bool]()
        boxes = [_told(each.box, each.doubt, each.identity, doubtful=each.doubt == UNSURE) for each in doubted]
        for each, release in laid:
            report = PictureReport() if release.reports is None else release.reports[0]
            notes += report.notes
            twice = any(_inside(each.box, other.box) for other, _ in laid if other is not each)
            if report.within_limit is not None and not twice:
                intact = not bool(_differs(_image(release), _cut(result, each.box)).any())
                notes += [CROWDED] * (not intact)
                limits.append(report.within_limit and intact)
            boxes.append({**report.details, **_told(each.box, "protected", each.identity)})
        boxes += [_told(box, ASKED_HIDDEN, asked="hide") for box in drawn]
        boxes += [_told(box, SPARED, asked="spare") for box in kept]
        unsure = sum(each.doubt == UNSURE for each in people)
        found = len(people) - unsure + len(drawn) + len(kept)
        if doubted and self.config.on_doubt == "pixelate-picture":
            notes, result = [*notes, _DOUBTED], pixelated(picture, _CELLS)
        if not found:
            notes.append(NOBODY[self.config.unfound])
            result = pixelated(picture, _CELLS) if self.config.unfound == "pixelate" else result
        counts = {"found": found, "changed": len(laid), "hidden": found - len(laid) - len(kept), "doubtful": unsure}
        counts |= {"spared": len(kept)} if kept else {}
        details = {"faces": boxes, "counts": counts}
        return result, PictureReport(tuple(sorted(set(notes))), all(limits) if limits else None, details)


def split_settings(settings: Mapping[str, object] | None) -> tuple[dict[str, object], dict[str, object]]:
    """Settings of the search for people, and those of the method for crops."""
    own = {each.name for each in fields(PeopleSettings)}
    given = dict(settings or {})
    return {name: given.pop(name) for name in list(given) if name in own}, given


def wider(box: Box) -> Box:
    """A detection's box with a margin: hair, feet and hands stick out of it."""
    x, y = _MARGIN * (box[2] - box[0]), _MARGIN * (box[3] - box[1])
    return box[0] - x, box[1] - y, box[2] + x, box[3] + y


def whole(box: Box, height: int, width: int) -> tuple[int, int, int, int] | None:
    """The whole pixels of a picture that a box touches; None where it touches none."""
    left, top = max(0, math.floor(box[0])), max(0, math.floor(box[1]))
    right, bottom = min(width, math.ceil(box[2])), min(height, math.ceil(box[3]))
    return (left, top, right, bottom) if right > left and bottom > top else None


def _cut(picture: Tensor, box: tuple[int, int, int, int]) -> Tensor:
    left, top, right, bottom = box
    return picture[:, top:bottom, left:right]


def _image(release: Release) -> Tensor:
    assert release.images is not None  # a method for crops gives a picture for each
    return release.images[0]


def _differs(one: Tensor, other: Tensor) -> Tensor:
    """(H, W): where two crops (3, H, W) differ as 8-bit files show it."""
    return (one - other).abs().amax(0) >= _HALF


def _same(box: Box, given: Box) -> bool:
    """Whether a detection is the person of a given box, or a part of them."""
    return overlap(box, given) > _SAME or _inside(box, given)


def _inside(box: Box, other: Box) -> bool:
    return shared(box, other) >= _INSIDE * area(box)


def _told(
    box: Box, outcome: str, identity: str | None = None, *, doubtful: bool = False, asked: str = ""
) -> dict[str, Any]:
    """A box of the private report, as methods on faces have it."""
    more = {"doubtful": doubtful, "asked": asked, "identity": identity}
    return {
        "box": [round(side) for side in box],
        "outcome": outcome,
        **{name: value for name, value in more.items() if value},
    }
