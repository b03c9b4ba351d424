"""The experts that have names: they come with veilkit, with an extra, or lie in the folder of weights."""

from __future__ import annotations

import hashlib
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.base import Embedder, ExpertInfo, check_images, refuse_gradient
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.names import BUILT_IN_NAMES, packaged_weights
from veilkit.experts.outfits import OutfitsEmbedder
from veilkit.experts.people import RetailPerson, load_osnet
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.lookup import Lookup

BINS = 8  # per colour: 512 in all
STRIPES = 8
_STRIPE_ROWS = 8  # to which a stripe is brought
_LEAST_SPREAD = 0.02  # of a picture's colours: without it, one of a single colour would be noise
_CHUNK = 256  # images counted at a time, which bounds the memory for bin numbers


def colour_histogram(images: Tensor, bins: int = BINS) -> Tensor:
    """(N, 3, H, W) in [0, 1] -> shares of pixels in each of bins^3 joint colour bins, (N, bins^3), rows summing to 1.

    Bin (r * bins + g) * bins + b counts the pixels with r <= bins * red < r + 1 and so on; 1.0 is in the last bin.
    """
    places = (images * bins).long().clamp_(0, bins - 1)
    joint = ((places[:, 0] * bins + places[:, 1]) * bins + places[:, 2]).flatten(1)
    offsets = torch.arange(len(joint), device=images.device)[:, None] * bins**3
    counts = torch.bincount((joint + offsets).flatten(), minlength=len(joint) * bins**3)
    return counts.view(len(joint), bins**3).float() / joint.shape[1]


class HistogramEmbedder(Embedder):
    """Joint RGB histogram of 8 x 8 x 8 hard bins, of length one. It knows colours and nothing of shape or place."""

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is; as it has no weights, its hash is that of its definition."""
        return ExpertInfo(
            name="histogram",
            kind="embedder",
            dim=BINS**3,
            sha256=hashlib.sha256(f"veilkit joint RGB histogram, {BINS} hard bins each, L2".encode()).hexdigest(),
            differentiable=False,
            licence="Apache-2.0",
            source="veilkit; nothing is learned",
            origin="built-in",
        )

    def embed(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1], any size -> (N, 512) with rows of length one."""
        check_images(images)
        refuse_gradient(images, self)
        if not len(images):
            return images.new_zeros(0, self.dim)
        return torch.cat([F.normalize(colour_histogram(chunk)) for chunk in torch.split(images.detach(), _CHUNK)])


def stripe_statistics(images: Tensor, stripes: int = STRIPES) -> Tensor:
    """(N, 3, H, W) in [0, 1] -> (N, 12 stripes): colours of horizontal stripes, about the picture's own.

    Of each stripe the middle half of the columns counts, where a standing person is: mean, half the deviation and
    halves of the tenth and ninetieth percentile of each colour.
    """
    spread = images.std(dim=(2, 3), keepdim=True, correction=0) + _LEAST_SPREAD
    scaled = (images - images.mean(dim=(2, 3), keepdim=True)) / spread
    wide = F.interpolate(scaled, (_STRIPE_ROWS * stripes, 4 * _STRIPE_ROWS), mode="bilinear", antialias=True)
    middle = wide[..., _STRIPE_ROWS : 3 * _STRIPE_ROWS]
    parts = middle.reshape(len(images), 3, stripes, -1)  # rows of a stripe follow each other
    ends = torch.quantile(parts, torch.tensor([0.1, 0.9]), dim=3)
    found = [parts.mean(dim=3), 0.5 * parts.std(dim=3, correction=0), 0.5 * ends[0], 0.5 * ends[1]]
    return torch.cat([each.flatten(1) for each in found], dim=1)


class StripesEmbedder(Embedder):
    """Colours of eight horizontal stripes, after a picture's own light: who wears what, from head to foot.

    Nothing is learned. Among 200 generated people it finds 17 % across cameras, where a colour histogram finds 1 %.
    """

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is; as it has no weights, its hash is that of its definition."""
        return ExpertInfo(
            name="stripes",
            kind="embedder",
            dim=12 * STRIPES,
            sha256=hashlib.sha256(
                f"veilkit colours of {STRIPES} stripes, middle half, 12 each, L2".encode()
            ).hexdigest(),
            differentiable=False,
            licence="Apache-2.0",
            source="veilkit; nothing is learned",
            origin="built-in",
        )

    def embed(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1], any size -> (N, 96) with rows of length one."""
        check_images(images)
        refuse_gradient(images, self)
        if not len(images):
            return images.new_zeros(0, self.dim)
        parts = torch.split(images.detach(), _CHUNK)
        return torch.cat([F.normalize(stripe_statistics(part)) for part in parts])


class BuiltIn(Protocol):
    """How a built-in expert is made; `flip` as `load_expert` takes it."""

    def __call__(self, *, flip: bool = False) -> Embedder:
        """The expert."""


def load_people(*, flip: bool = False) -> TorchEmbedder:
    """The packaged Re-ID embedder, trained on generated people."""
    with packaged_weights("people", "people") as (path, card):
        source = "trained by veilkit on generated people"
        return TorchEmbedder.load(
            path, name="people", licence="Apache-2.0", source=source, origin="built-in", card=card, flip=flip
        )


def load_histogram(*, flip: bool = False) -> HistogramEmbedder:
    """The colour histogram."""
    if flip:
        raise ConfigError("a picture and its mirror image have the same colour histogram; load it without flip")
    return HistogramEmbedder()


def load_stripes(*, flip: bool = False) -> StripesEmbedder:
    """Colours of stripes."""
    if flip:
        raise ConfigError("a picture and its mirror image have the same stripes; load it without flip")
    return StripesEmbedder()


def load_dlib(*, flip: bool = False) -> DlibIdentity:
    """dlib's face identity network, where the extra faces is installed."""
    return DlibIdentity.load(flip=flip)


BUILT_IN: Lookup[BuiltIn] = Lookup(
    "expert",
    list(
        zip(
            BUILT_IN_NAMES,
            (
                load_people,
                OutfitsEmbedder.load,
                load_histogram,
                load_stripes,
                load_dlib,
                RetailPerson.load,
                load_osnet,
            ),
            strict=True,
        )
    ),
)
