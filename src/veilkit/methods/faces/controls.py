"""Controls for faces: a blurred face, and somebody else's face in its place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from veilkit.configs import check_range
from veilkit.experts.finders import FaceSettings
from veilkit.methods.controls import Blur, BlurConfig
from veilkit.methods.faces.aligning import NOT_ALIGNED
from veilkit.methods.faces.method import Changed, FaceMethod, FoundFace
from veilkit.methods.faces.pasting import feather, paste
from veilkit.methods.faces.photoreal import PhotorealConfig, Strangers
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

_DRAWN = 128  # pixels a side of a drawn portrait
_OUTSIDE = 0.82
_MOST_SIGMA = 10_000.0  # pixels, the most that a blur takes


@dataclass(frozen=True, slots=True)
class FaceBlurConfig(FaceSettings):
    """strength: standard deviation of the Gaussian, as a share of the face's height."""

    strength: float = 0.15

    def __post_init__(self) -> None:
        check_range("strength", self.strength, 0.01, 10.0)


class FaceBlur(FaceMethod[FaceBlurConfig]):
    """Gaussian blur of every face that is found; for crops of standing people (preset `people`) of the head."""

    name = "faceblur"
    summary = "Gaussian blur of every face found, or of the head of a person crop (preset people)"
    default = FaceBlurConfig()
    reach = 0.15
    presets = {"people": FaceBlurConfig(finder="head"), "crops": FaceBlurConfig(finder="whole")}  # noqa: RUF012

    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        """Blur the box, rounded outwards and widened by a tenth."""
        left, top, right, bottom = face.box
        x, y = 0.1 * (right - left), 0.1 * (bottom - top)
        height, width = picture.shape[1:]
        rows = slice(max(0, math.floor(top - y)), min(height, math.ceil(bottom + y)))
        columns = slice(max(0, math.floor(left - x)), min(width, math.ceil(right + x)))
        part = picture[None, :, rows, columns]
        if part.numel():
            sigma = min(_MOST_SIGMA, max(0.5, self.config.strength * (bottom - top)))
            blur = Blur(BlurConfig(sigma=sigma, at_height=0))
            blurred = blur.protect(ImageBatch(part.contiguous(), (item,)), rng=rng).images
            assert blurred is not None
            picture[:, rows, columns] = blurred[0]
        return Changed(picture, "blurred")


@dataclass(frozen=True, slots=True)
class FaceReplaceConfig(FaceSettings):
    """Nothing more can be set: faces are drawn at random, whoever was there."""


# Whoever comes first, with pose and expression of the face that was there: nobody compares them.
FIRST_STRANGER = PhotorealConfig(candidates=0, keep=("none",))


@dataclass(frozen=True, slots=True)
class PhotorealReplaceConfig(FaceSettings):
    """face: how the generator of photoreal faces draws one of nobody, and how it is laid in."""

    face: PhotorealConfig = FIRST_STRANGER


class FaceReplace(FaceMethod[FaceReplaceConfig | PhotorealReplaceConfig]):
    """A generated face of nobody over every face that is found.

    The preset `photoreal` takes an installed generator's, with pose, expression and light of the face that was there;
    the others take veilkit's own, of any pose and expression.
    """

    name = "facereplace"
    summary = "a generated face of nobody over every face found; preset photoreal: of the same pose and expression"
    default = FaceReplaceConfig()
    presets = {  # noqa: RUF012
        "people": FaceReplaceConfig(finder="head"),
        "crops": FaceReplaceConfig(finder="whole"),
        "photoreal": PhotorealReplaceConfig(),
    }
    random = True

    def check(self) -> None:
        """Load the finders, and the generator where one is needed."""
        super().check()
        if isinstance(self.config, PhotorealReplaceConfig):
            self._strangers(self.config).load()

    def _strangers(self, config: PhotorealReplaceConfig) -> Strangers:
        if self._drawing is None or self._drawing.config != config.face:
            self._drawing = Strangers(config.face)
        return self._drawing

    _drawing: Strangers | None = None

    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        """Draw somebody and lay the face over the one that is there."""
        if isinstance(self.config, PhotorealReplaceConfig):
            strangers = self._strangers(self.config)
            points = strangers.landmarks(picture, face)
            if points is None:
                return Changed(None, NOT_ALIGNED)
            return Changed(strangers.replaced(picture, points, rng.child("face", item, face.number)), "replaced")
        made, box = drawn_face(rng.child("face", item, face.number))
        left, top, right, bottom = face.box
        # Same middle, no narrower in either direction, and large enough that the feathered edge lies outside.
        scale = _OUTSIDE * min((box[2] - box[0]) / (right - left), (box[3] - box[1]) / (bottom - top))
        x, y = (box[0] + box[2] - scale * (left + right)) / 2, (box[1] + box[3] - scale * (top + bottom)) / 2
        matrix = torch.tensor([[scale, 0, x], [0, scale, y]], dtype=torch.float64)
        return Changed(paste(picture, made, matrix, feather(made.shape[1])), "replaced")


@lru_cache(maxsize=32)  # the face of a track is asked for in every frame
def drawn_face(node: Randomness) -> tuple[Tensor, tuple[float, float, float, float]]:
    """A portrait of nobody (3, S, S) in [0, 1], cut to its face with some margin, and the box of the face in it."""
    from veilkit.synthetic.faces import Ranges, take  # half a second that only drawing has to pay for
    from veilkit.synthetic.faces.capture import draw_capture
    from veilkit.synthetic.faces.identity import draw_face

    who, moment = draw_face(node.child("who").numpy()), draw_capture(node.child("moment").numpy(), Ranges())
    pixels, truth = take(who, moment, node.child("picture").numpy(), size=_DRAWN)
    left, top, right, bottom = truth.box
    side = round(1.2 * max(right - left, bottom - top))
    x, y = round((left + right - side) / 2), round((top + bottom - side) / 2)
    portrait = torch.from_numpy(pixels).permute(2, 0, 1).float().div(255)
    padded = torch.nn.functional.pad(portrait[None], (side,) * 4, mode="replicate")[0]
    cut = padded[:, y + side : y + 2 * side, x + side : x + 2 * side]
    return cut.contiguous(), (left - x, top - y, right - x, bottom - y)
