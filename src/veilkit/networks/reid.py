"""The Re-ID network: normalisation, backbone, pooling over bands, BNNeck and classifiers; and its model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.checkpoint import built, half_precision, load_checkpoint, load_weights, save_checkpoint, understood
from veilkit.configs import check_lengths, check_range, check_ranges, from_json
from veilkit.errors import ConfigError
from veilkit.networks.backbones import build_backbone


def generalised_mean(maps: Tensor, p: Tensor, floor: float = 1e-6) -> Tensor:
    """(N, C, H, W) -> (N, C): (mean of x^p)^(1/p) over the map, of values raised to at least `floor`."""
    return maps.clamp(min=floor).pow(p).mean((2, 3)).pow(1 / p)


class GeM(nn.Module):
    """Generalised-mean pooling with a learned exponent, started at AGW's 3."""

    def __init__(self, p: float = 3.0) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor([p]))

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C)."""
        return generalised_mean(maps, self.p)


REID_KIND = "reid"
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
LEAST_SIDE, MOST_SIDE, MOST_PIXELS = 16, 1024, 512 * 512  # of an input; maps of larger ones take gigabytes
MOST_BANDS = 64  # in all; each has a head of its own
MOST_FEATURES, MOST_IDENTITIES = 2**16, 2**24


@dataclass(frozen=True, slots=True)
class ReidNetworkConfig:
    """What a Re-ID network is built from.

    size: (height, width) the images are resized to. last_stride: of the backbone's last stage; AGW's is 1.
    bands: into how many horizontal bands the last map is cut, once per entry: (1,) is one global feature as in AGW,
    (1, 2) adds one feature for the upper and one for the lower body. reduced: length that each band's feature is
    projected to; 0 keeps the backbone's. identities: classifier outputs; 0 for a network that only embeds.
    cosine: where positive, logits are this many times the cosine to each class instead of a plain product.
    feature: what `embed` gives, "neck" (after BNNeck) or "pooled" (before it). projection: length that these
    features, all bands in a row, are projected to in the end; 0 leaves them.
    """

    backbone: str = "mobilenetv2"
    size: tuple[int, int] = (128, 64)
    last_stride: int = 1
    bands: tuple[int, ...] = (1,)
    reduced: int = 0
    identities: int = 0
    cosine: float = 0.0
    feature: Literal["neck", "pooled"] = "neck"
    projection: int = 0
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __post_init__(self) -> None:
        check_input_size("size", self.size)
        if self.feature not in ("neck", "pooled"):
            raise ConfigError(f"feature must be neck or pooled, but got {self.feature!r}")
        if self.last_stride not in (1, 2):
            raise ConfigError(f"last_stride must be 1 or 2, but got {self.last_stride}")
        check_bands(self.bands)
        check_ranges(self, {
            "reduced projection": (0, MOST_FEATURES), "identities": (0, MOST_IDENTITIES), "cosine": (0, 1e6)
        })  # fmt: skip
        for mean, std in zip(self.mean, self.std, strict=True):
            check_range("mean", mean, -1e6, 1e6)
            check_range("std", std, 1e-6, 1e6)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "the file") -> Self:
        """The config of the model file `source`, where tuples are lists."""
        with understood(source):
            return from_json(cls(), values)


def check_input_size(name: str, size: tuple[int, int]) -> None:
    """Raise unless pictures of this (height, width) fit a network and the memory."""
    if not all(LEAST_SIDE <= side <= MOST_SIDE for side in size) or size[0] * size[1] > MOST_PIXELS:
        raise ConfigError(
            f"{name} must be {LEAST_SIDE} to {MOST_SIDE} pixels a side and at most {MOST_PIXELS:,} in all, "
            f"but got {size[0]} x {size[1]}"
        )


def check_bands(bands: tuple[int, ...]) -> None:
    """Raise for no bands, and for more than there are rows in a map."""
    check_lengths("bands", bands, MOST_BANDS, MOST_BANDS)
    if sum(bands) > MOST_BANDS:
        raise ConfigError(f"bands must be at most {MOST_BANDS} in all, but got {sum(bands)}")


class ReidOutput(NamedTuple):
    """What training needs. pooled: (N, D) of each band, before BNNeck. logits: (N, identities) of each band."""

    pooled: list[Tensor]
    logits: list[Tensor]


class BandHead(nn.Module):
    """Pooling, an optional projection, BNNeck without bias and a classifier without bias, for one band."""

    def __init__(self, channels: int, reduced: int, identities: int) -> None:
        super().__init__()
        features = reduced or channels
        self.pool = GeM()
        self.reduce = nn.Linear(channels, reduced, bias=False) if reduced else nn.Identity()
        self.neck = nn.BatchNorm1d(features)
        self.neck.bias.requires_grad_(False)
        self.classifier = nn.Linear(features, identities, bias=False) if identities else None
        if self.classifier is not None:
            nn.init.normal_(self.classifier.weight, std=0.001)

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """(N, C, H, W) -> features before and after BNNeck, each (N, D)."""
        pooled = cast(Tensor, self.reduce(self.pool(maps)))
        return pooled, cast(Tensor, self.neck(pooled))


class ReidNetwork(nn.Module):
    """Images float NCHW in [0, 1] of any size; resizing and normalisation happen inside."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: ReidNetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("mean", torch.tensor(config.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(config.std)[:, None, None], persistent=False)
        self.backbone = build_backbone(config.backbone, size=config.size, last_stride=config.last_stride)
        self.heads = nn.ModuleList(
            BandHead(self.backbone.channels, config.reduced, config.identities) for _ in range(sum(config.bands))
        )
        length = (config.reduced or self.backbone.channels) * sum(config.bands)
        self.projection = nn.Linear(length, config.projection) if config.projection else nn.Identity()

    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> (N, D) features, all bands in a row; not L2-normalised."""
        which = 1 if self.config.feature == "neck" else 0
        return cast(
            Tensor, self.projection(torch.cat([each[which] for each in self._features(images, self.config.size)], 1))
        )

    def projected(self, weight: Tensor, bias: Tensor) -> ReidNetwork:
        """This network, in evaluation mode, with its features projected by weight (count, D) and bias (count,)."""
        network = ReidNetwork(replace(self.config, projection=len(weight)))
        load_weights(
            network, {**self.state_dict(), "projection.weight": weight, "projection.bias": bias}, "projected network"
        )
        return channels_last(network.eval())

    def forward(self, images: Tensor, size: tuple[int, int] | None = None) -> ReidOutput:
        """Features and logits for training; `size` replaces the config's for progressive resizing."""
        features = self._features(images, size or self.config.size)
        classifiers = [cast(BandHead, head).classifier for head in self.heads]
        logits = [
            _logits(neck, classifier.weight, self.config.cosine)
            for classifier, (_, neck) in zip(classifiers, features, strict=True)
            if classifier is not None
        ]
        return ReidOutput([pooled for pooled, _ in features], logits)

    def _features(self, images: Tensor, size: tuple[int, int]) -> list[tuple[Tensor, Tensor]]:
        if images.shape[2:] != torch.Size(size):
            shrinks = images.shape[2] > size[0]
            images = F.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=shrinks)
        normalised = ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)
        maps = self.backbone(normalised)
        bands = [band for count in self.config.bands for band in split_bands(maps, count)]
        return [head(band) for head, band in zip(self.heads, bands, strict=True)]


def _logits(features: Tensor, weights: Tensor, cosine: float) -> Tensor:
    if cosine:
        return cosine * F.linear(F.normalize(features), F.normalize(weights))
    return F.linear(features, weights)


def channels_last(network: ReidNetwork) -> ReidNetwork:
    """The same network with its weights laid out for speed on a CPU."""
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def split_bands(maps: Tensor, count: int) -> list[Tensor]:
    """(N, C, H, W) -> `count` horizontal bands of nearly equal height that together cover the map."""
    height = maps.shape[2]
    edges = [round(i * height / count) for i in range(count + 1)]
    return [maps[:, :, top:bottom] for top, bottom in pairwise(edges)]


def save_reid(path: Path, network: ReidNetwork, *, half: bool = False) -> str:
    """Write the network without its classifiers (they name the training people) and return the SHA-256."""
    tensors = {name: t for name, t in network.state_dict().items() if ".classifier." not in name}
    config = {**asdict(network.config), "identities": 0}
    return save_checkpoint(path, half_precision(tensors) if half else tensors, config, REID_KIND)


def load_reid(path: Path, expected_sha256: str | None = None) -> ReidNetwork:
    """The network of a model file, in evaluation mode and float32, without classifiers."""
    checkpoint = load_checkpoint(path, REID_KIND, expected_sha256)
    source = Path(path).name
    config = ReidNetworkConfig.from_dict(checkpoint.config, source)
    network = built(lambda: ReidNetwork(config), checkpoint.tensors, source)
    return channels_last(network.eval())
