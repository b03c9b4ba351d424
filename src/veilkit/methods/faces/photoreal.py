"""A photoreal face of nobody in place of one in a photograph, with its pose, expression, light and colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.configs import check_range
from veilkit.errors import ConfigError
from veilkit.experts.alignment import ARCFACE, CHIP, inverse, moved, similarity, warp
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.methods.faces.blending import (
    BlendConfig,
    Picture,
    Points,
    blended,
    hair_on_forehead,
    nearest_similarity,
    skin_lightness,
)
from veilkit.methods.faces.expression import expressed
from veilkit.methods.faces.method import FoundFace
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal.generator import SIDE, PhotorealFaces
from veilkit.synthetic.photoreal.space import TRAITS

_FRAME = 256  # pixels a side in which landmarks are looked for
_VIEW = 192  # pixels a side in which candidates are compared
_POOL, _ALIKE = 640, 24  # random faces, and how many of them that come nearest to the wanted traits are compared
_GLASSES = 0.08  # of the trait, from which on a drawn face may wear them: half of the faces without have more
_FRINGE = 0.15  # of what is above the brows, foretold, from which on it is hair
_LEAST_POOL = 6
# What weighs beside likeness: a trait off by 1, landmarks off by the frame's side, hair where skin should be.
_TRAIT, _ODD, _HAIR = 0.15, 5.0, 0.3
_EARLY_ENOUGH = 224  # pixels of the photograph that the whole drawing would take, up to which an early one will do
_AROUND = 0.08  # of the drawing, around the landmarks
_WORST = 0.12  # mean distance of landmarks from the mean face's, in shares of the frame, of what is no face


@dataclass(frozen=True, slots=True)
class PhotorealConfig:
    """How a face of nobody is chosen and drawn.

    components: how many combinations of landmarks follow the photograph: how wide and open mouth and eyes are, then
    what varies most within a person (pose, expression); the rest belongs to the new face. rounds: how often the drawn
    landmarks are looked at and corrected. likeness: of the new face to the original, as a recogniser has it (cosine
    of centred features), that is aimed at; it is foretold from the style. candidates: of those that come nearest, how
    many are laid in and looked at; 1 takes the nearest, 0 the first that comes, whatever the original. spread: how
    far faces are from the average one, in (0, 1]. keep: traits that the new face shares with the original, of age and
    sex, as far as a face recogniser's features tell them, or `none`; others are drawn at random.
    """

    components: int = 14
    rounds: int = 0
    candidates: int = 1
    likeness: float = -0.15
    spread: float = 0.7
    keep: tuple[str, ...] = ("age", "sex")
    blend: BlendConfig = field(default_factory=BlendConfig)

    def __post_init__(self) -> None:
        check_range("components", self.components, 0, 29)
        check_range("rounds", self.rounds, 0, 5)
        check_range("candidates", self.candidates, 0, 64)
        check_range("likeness", self.likeness, -1.0, 1.0)
        check_range("spread", self.spread, 0.05, 1.0)
        if (unknown := sorted(set(self.keep) - {"age", "sex"})) and self.keep != ("none",):
            raise ConfigError(f"keep must be of age and sex, or none, but got {', '.join(unknown)}")

    @property
    def kept(self) -> tuple[str, ...]:
        """The traits that are kept."""
        return () if self.keep == ("none",) else self.keep


@dataclass(frozen=True, eq=False)
class _Seen:
    """A face in a photograph. points (68, 2): in its pixels. shape (68, 2): in the generator's frame."""

    points: Tensor
    shape: Tensor
    features: Tensor | None


class Strangers:
    """Draws faces of nobody into photographs. The parts are loaded at first use."""

    def __init__(self, config: PhotorealConfig) -> None:
        self.config = config

    @cached_property
    def faces(self) -> PhotorealFaces:
        """The generator; raises UsageError where its package is not installed."""
        return PhotorealFaces()

    @cached_property
    def finder(self) -> DlibDetector:
        """Who places the 68 landmarks."""
        return DlibDetector(68)

    @cached_property
    def recogniser(self) -> DlibIdentity:
        """Who compares candidates with the original, and tells age and sex."""
        return DlibIdentity.load()

    def load(self) -> None:
        """Load all parts, and raise where one is missing."""
        _ = self.faces.space, self.finder.info, self.recogniser

    @torch.no_grad()
    def landmarks(self, picture: Tensor, face: FoundFace) -> Tensor | None:
        """(68, 2) of a found face in a picture (3, H, W), in its pixels; None where they make no face."""
        if face.points is None:
            return None
        mean = self.faces.space.mean_shape * _FRAME
        points = face.points.float()
        if face.order == "68":
            known, places = points, mean
        else:
            groups = ARCFACE.of_68 if face.order == "five" else CHIP.of_68
            known, places = points, torch.stack([mean[list(group)].mean(0) for group in groups])
        found = points
        for _ in range(2):  # the second look is upright and of the right size
            matrix = similarity(known[None], places[None])
            if not matrix.isfinite().all() or float(matrix[0, 0, :2].abs().sum()) < 1e-6:
                return None
            found = self._in_frame(warp(picture[None], matrix, (_FRAME, _FRAME), beyond="border")[0])
            known, places = moved(found[None], inverse(matrix))[0], mean
        away = (_upright(found.double().numpy(), mean.double().numpy()) - mean.double().numpy()) / _FRAME
        return known if float(np.linalg.norm(away, axis=1).mean()) < _WORST else None

    def _in_frame(self, picture: Tensor) -> Tensor:
        """(68, 2) in a picture (3, S, S) of one face, placed as the generator places faces."""
        box = self.faces.space.tensors["box"] * picture.shape[1]
        return self.finder.points_in(picture, box)

    @torch.no_grad()
    def replaced(self, picture: Tensor, points: Tensor, node: Randomness, person: Randomness | None = None) -> Tensor:
        """A picture (3, H, W) in [0, 1] with another face at these landmarks (68, 2).

        Every random value derives from `node`. person: of somebody who keeps one face in all pictures, who that is;
        then nothing of the photographed face but pose and expression has a say in it.
        """
        config, space = self.config, self.faces.space
        mean = (space.mean_shape * _FRAME).double().numpy()
        shape = torch.from_numpy(_upright(points.double().numpy(), mean) / _FRAME).float()
        seen = _Seen(points, shape, None)
        if person is not None:
            style = self._posed(self._pool(person)[:1], shape)
        else:
            style = self._chosen(picture, seen, node)
        face, face_points = expressed(*self._drawn(style, points), points.double().numpy())
        grain = node.child("grain").numpy()
        made = blended(_hwc(picture), points.double().numpy(), face, face_points, config.blend, grain)
        return torch.from_numpy(made).permute(2, 0, 1).contiguous()

    @torch.no_grad()
    def features(self, picture: Tensor, points: Tensor) -> Tensor:
        """(128,) that the recogniser has for the face at these landmarks."""
        return self._features(*self._view(picture, points))

    def _chosen(self, picture: Tensor, seen: _Seen, node: Randomness) -> Tensor:
        """(1, 512): of the candidates the one whose likeness is nearest to the wanted one."""
        config = self.config
        if config.candidates == 0:
            return self._posed(self._pool(node)[:1], seen.shape)
        view, points = self._view(picture, seen.points)
        own = self._features(view, points)
        tone = skin_lightness(_hwc(view), points)
        pool = self._moved(self._pool(node, own, tone)[:_ALIKE], seen.shape)
        far = (self._likeness(own, self.faces.space.features(pool)) - config.likeness).abs()
        styles = self._corrected(pool[torch.sort(far, stable=True).indices[: config.candidates]], seen.shape)
        if len(styles) == 1:
            return styles
        away = []
        for number, style in enumerate(styles):
            drawn = self.faces.draw(style[None], 128, early=True)[0]
            grain = node.child("grain of candidate", number).numpy()
            made = blended(_hwc(view), points, _hwc(drawn), self._points(drawn), config.blend, grain)
            features = self._features(torch.from_numpy(made).permute(2, 0, 1), points)
            traits = float(self._traits_apart(self.faces.space.told(features[None]), own)[0])
            # What is no face at all is like nobody, and would be chosen.
            odd = float((self._shape(drawn) - seen.shape).norm(dim=1).mean())
            hair = hair_on_forehead(_hwc(drawn), self._points(drawn))
            likeness = float(abs(self._likeness(own, features[None]) - config.likeness))
            away.append(likeness + _TRAIT * traits + _ODD * odd + _HAIR * hair)
        return styles[[int(np.argmin(away))]]

    def _likeness(self, one: Tensor, others: Tensor) -> Tensor:
        """(N,) of features (128,) and others (N, 128)."""
        centre = self.faces.space.tensors["centre"]
        return F.cosine_similarity((one - centre)[None], others - centre)

    def _pool(self, node: Randomness, features: Tensor | None = None, tone: float | None = None) -> Tensor:
        """Random styles without glasses or fringe; those that share kept traits and the skin's tone come first."""
        space = self.faces.space
        styles = self.faces.random_styles(_POOL, node.child("styles"), self.config.spread)
        traits, fringe = space.traits(styles), space.fringe(styles)
        plain = (traits[:, TRAITS.index("glasses")] < _GLASSES) & (fringe < _FRINGE)
        if int(plain.sum()) >= _LEAST_POOL:
            styles, traits = styles[plain], traits[plain]
        apart = torch.zeros(len(styles))
        if features is not None:
            told = space.told(space.features(styles))  # as the original's are told; neither is sure
            apart += self._traits_apart((traits + told) / 2, features)
        if tone is not None:  # a pale face darkened, or a dark one paled, looks like neither
            apart += ((traits[:, TRAITS.index("tone")] - (tone - 65) / 20).abs() / 0.5).floor()
        return styles[torch.sort(apart, stable=True).indices]

    def _traits_apart(self, traits: Tensor, features: Tensor) -> Tensor:
        """(N,): how far traits (N, T) are from the kept ones of a face with these features (128,)."""
        told, apart = self.faces.space.told(features[None])[0], torch.zeros(len(traits))
        for name in self.config.kept:
            place = TRAITS.index(name)
            apart += (traits[:, place] - told[place].clamp(-1, 1)).abs().clamp(max=1.5)
        return apart

    def _posed(self, styles: Tensor, shape: Tensor) -> Tensor:
        """Styles (N, 512) near the given ones, with pose and expression of a shape (68, 2) in the frame."""
        return self._corrected(self._moved(styles, shape), shape)

    def _moved(self, styles: Tensor, shape: Tensor) -> Tensor:
        """Those, as far as styles foretell landmarks."""
        space = self.faces.space
        return space.moved(styles, shape - space.shapes(styles), self.config.components)

    def _corrected(self, styles: Tensor, shape: Tensor) -> Tensor:
        """Those, after looks at what they draw."""
        config = self.config
        for _ in range(config.rounds if config.components else 0):
            found = torch.stack([self._shape(self.faces.draw(s[None], 128, early=True)[0]) for s in styles])
            styles = self.faces.space.moved(styles, shape - found, config.components, ridge=0.15)
        return styles

    def _shape(self, drawn: Tensor) -> Tensor:
        mean = self.faces.space.mean_shape.double().numpy()
        return torch.from_numpy(_upright(self._points(drawn) / drawn.shape[1], mean)).float()

    def _points(self, drawn: Tensor) -> Points:
        """(68, 2) in a drawn face (3, S, S)."""
        small = drawn
        if drawn.shape[1] != _FRAME:
            small = F.interpolate(drawn[None], size=(_FRAME, _FRAME), mode="bilinear", antialias=True)[0]
        return self._in_frame(small).double().numpy() * (drawn.shape[1] / _FRAME)

    def _drawn(self, style: Tensor, points: Tensor) -> tuple[Picture, Points]:
        """The face, at a size that is enough for the photograph, and its landmarks in that drawing."""
        mean = self.faces.space.mean_shape.double().numpy()
        matrix = nearest_similarity(mean, points.double().numpy())
        if float(np.sqrt(abs(np.linalg.det(matrix[:, :2])))) <= _EARLY_ENOUGH:
            drawn = self.faces.draw(style, _FRAME, early=True)[0]
            return _hwc(drawn), self._points(drawn)
        told = self.faces.space.shapes(style)[0]
        (left, top), (right, bottom) = (told.amin(0) - _AROUND).tolist(), (told.amax(0) + _AROUND).tolist()
        top -= float((told[45] - told[36]).norm()) * self.config.blend.forehead
        drawn, corner = self.faces.draw_window(style, (left, top, right, bottom))
        shrink = SIDE // _FRAME
        small = F.avg_pool2d(drawn, shrink)
        (x, y), (height, width) = (corner[0] // shrink, corner[1] // shrink), small.shape[2:]
        framed = F.pad(small, (x, _FRAME - x - width, y, _FRAME - y - height), value=0.5)[0]
        return _hwc(drawn[0]), self._points(framed) * shrink - np.array(corner)

    def _view(self, picture: Tensor, points: Tensor) -> tuple[Tensor, Points]:
        """The face alone, as the generator places faces, and its landmarks there."""
        mean = (self.faces.space.mean_shape * _VIEW).double().numpy()
        matrix = torch.from_numpy(nearest_similarity(points.double().numpy(), mean)).float()
        view = warp(picture[None], matrix[None], (_VIEW, _VIEW), beyond="border")[0].clamp(0, 1)
        return view, moved(points[None], matrix[None])[0].double().numpy()

    def _features(self, view: Tensor, points: Points) -> Tensor:
        chips = CHIP.align(view[None], torch.from_numpy(points).float()[None]).clamp(0, 1)
        return self.recogniser.embed(chips)[0]


def _upright(points: Points, mean: Points) -> Points:
    """Landmarks after the similarity that takes them nearest to the mean face's."""
    matrix = nearest_similarity(points, mean)
    return np.asarray(points @ matrix[:, :2].T + matrix[:, 2])


def _hwc(picture: Tensor) -> Picture:
    return np.ascontiguousarray(picture.permute(1, 2, 0).numpy(), dtype=np.float32)
