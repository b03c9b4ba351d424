"""A small network that reads landmarks, gaze and expression off a face; and its model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.checkpoint import half_precision, load_checkpoint, load_weights, save_checkpoint
from veilkit.errors import CheckpointError, ConfigError
from veilkit.networks.resnet import ResidualBlock

FACE_ATTRIBUTES_KIND = "face-attributes"
LANDMARKS = 68
Head = Literal["landmarks", "gaze", "expression"]
HEADS: tuple[Head, ...] = get_args(Head)
_DEGREES = 20.0  # a gaze of this many degrees is 1 inside the network
_SPREAD = 0.25  # landmarks are about this share of the picture from its middle


@dataclass(frozen=True, slots=True)
class FaceAttributesConfig:
    """side: that pictures are resized to. stem, widths: channels at each halving of the map. blocks: of each width.

    kept: channels of which each head sees the whole map. hidden: length of a head's features. expressions: names of
    the classes.
    """

    side: int = 112
    stem: int = 24
    widths: tuple[int, ...] = (32, 64, 96)
    blocks: tuple[int, ...] = (2, 2, 2)
    kept: int = 32
    hidden: int = 96
    expressions: tuple[str, ...] = ("neutral", "happy", "sad", "surprised", "angry", "disgusted", "fearful")

    def __post_init__(self) -> None:
        step = 2 ** (len(self.widths) + 1)
        if self.side < step or self.side % step:
            raise ConfigError(f"side must be a multiple of {step}, but got {self.side}")
        if len(self.blocks) != len(self.widths) or min(*self.widths, *self.blocks, self.kept, self.hidden) < 1:
            raise ConfigError("widths and blocks must be positive and as many, kept and hidden positive")
        if len(set(self.expressions)) != len(self.expressions) or len(self.expressions) < 2:
            raise ConfigError(f"expressions must be two or more different names, but got {self.expressions}")


class Attributes(NamedTuple):
    """landmarks: (N, 68, 2) as shares of the picture's width and height. gaze: (N, 2) yaw and pitch in degrees.

    expression: (N, classes) logits.
    """

    landmarks: Tensor
    gaze: Tensor
    expression: Tensor


class AttributeHead(nn.Module):
    """A map to features and on to numbers; it sees where things are, not only that they are somewhere."""

    def __init__(self, channels: int, kept: int, cells: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, kept, 1)
        self.hidden = nn.Linear(kept * cells, hidden)
        self.out = nn.Linear(hidden, outputs)

    def features(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, hidden)."""
        return F.relu(self.hidden(F.relu(self.reduce(maps)).flatten(1)))

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, outputs)."""
        return cast(Tensor, self.out(self.features(maps)))


class FaceAttributes(nn.Module):
    """Pictures of one upright face, float NCHW in [0, 1] of any size; resizing and normalisation happen inside."""

    def __init__(self, config: FaceAttributesConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = nn.Sequential(
            nn.Conv2d(3, config.stem, 3, 2, 1, bias=False), nn.BatchNorm2d(config.stem), nn.ReLU()
        )
        parts, inputs = [], config.stem
        for width, count in zip(config.widths, config.blocks, strict=True):
            for place in range(count):
                stride = 1 if place else 2
                parts.append(ResidualBlock(inputs, width, stride=stride, bottleneck=False, ibn=False))
                inputs = width
        self.trunk = nn.Sequential(*parts)
        cells = (config.side // 2 ** (len(config.widths) + 1)) ** 2
        outputs = {"landmarks": 2 * LANDMARKS, "gaze": 2, "expression": len(config.expressions)}
        self.heads = nn.ModuleDict(
            {name: AttributeHead(inputs, config.kept, cells, config.hidden, outputs[name]) for name in HEADS}
        )

    def maps(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) -> the map that all heads see."""
        side = self.config.side
        if tuple(images.shape[2:]) != (side, side):
            images = F.interpolate(images, size=(side, side), mode="bilinear", align_corners=False, antialias=True)
        return cast(Tensor, self.trunk(self.stem(images * 2 - 1)))

    def features(self, images: Tensor, head: Head) -> Tensor:
        """(N, 3, H, W) -> (N, hidden), the last features before a head's answer."""
        return cast(AttributeHead, self.heads[head]).features(self.maps(images))

    def answer(self, maps: Tensor, head: Head) -> Tensor:
        """What a head says of a map, in the units of `Attributes`."""
        raw = cast(Tensor, self.heads[head](maps))
        if head == "landmarks":
            return 0.5 + _SPREAD * raw.view(-1, LANDMARKS, 2)
        return _DEGREES * raw if head == "gaze" else raw

    def forward(self, images: Tensor) -> Attributes:
        """(N, 3, H, W) -> what all heads say."""
        maps = self.maps(images)
        return Attributes(*(self.answer(maps, head) for head in HEADS))


def save_face_attributes(
    path: Path, network: FaceAttributes, taught: Mapping[Head, str], *, half: bool = False
) -> str:
    """Write the network, and what taught each head; returns the SHA-256."""
    tensors = network.state_dict()
    config = {"network": asdict(network.config), "taught": dict(taught)}
    return save_checkpoint(path, half_precision(tensors) if half else tensors, config, FACE_ATTRIBUTES_KIND)


def load_face_attributes(path: Path) -> tuple[FaceAttributes, dict[Head, str]]:
    """The network of a model file, in evaluation mode and float32, and what taught each of its heads."""
    checkpoint = load_checkpoint(path, FACE_ATTRIBUTES_KIND)
    try:
        fields: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in checkpoint.config["network"].items()
        }
        config = FaceAttributesConfig(**fields)
        taught = {head: str(checkpoint.config["taught"].get(head, "")) for head in HEADS}
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise CheckpointError(f"{path.name}: its config is not understood: {error}") from error
    network = FaceAttributes(config)
    load_weights(network, checkpoint.tensors, Path(path).name)
    return network.eval(), taught
