"""A small network that reads landmarks, gaze and expression off a face; and its model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.checkpoint import built, half_precision, load_checkpoint, save_checkpoint, understood
from veilkit.configs import check_lengths, check_ranges, from_json, read_facts
from veilkit.errors import ConfigError
from veilkit.networks.resnet import ResidualBlock

FACE_ATTRIBUTES_KIND = "face-attributes"
LANDMARKS = 68
Head = Literal["landmarks", "gaze", "expression"]
HEADS: tuple[Head, ...] = get_args(Head)
_DEGREES = 20.0  # a gaze of this many degrees is 1 inside the network
_EYE, _EYE_BOX = 32, 0.6
_LONGEST_TAUGHT = 1000  # characters of what taught a head
_SPREAD = 0.25  # landmarks are about this share of the picture from its middle


@dataclass(frozen=True, slots=True)
class FaceAttributesConfig:
    """side: that pictures are resized to. stem, widths: channels at each halving of the map. blocks: of each width.

    kept: channels of which each head sees the whole map. hidden: length of a head's features. eye: of one eye's.
    expressions: names of the classes.
    """

    side: int = 112
    stem: int = 24
    widths: tuple[int, ...] = (32, 64, 96)
    blocks: tuple[int, ...] = (2, 2, 2)
    kept: int = 32
    hidden: int = 96
    eye: int = 64
    expressions: tuple[str, ...] = ("neutral", "happy", "sad", "surprised", "angry", "disgusted", "fearful")

    def __post_init__(self) -> None:
        check_lengths("widths", self.widths, 8, 4096)
        check_lengths("blocks", self.blocks, 8, 64)
        check_ranges(self, {"stem kept hidden eye": (1, 4096), "side": (4, 1024)})
        step = 2 ** (len(self.widths) + 1)
        if self.side < step or self.side % step:
            raise ConfigError(f"side must be a multiple of {step}, but got {self.side}")
        if len(self.blocks) != len(self.widths):
            raise ConfigError(f"expected as many blocks as widths, but got {self.blocks} and {self.widths}")
        if len(set(self.expressions)) != len(self.expressions) or not 2 <= len(self.expressions) <= 1024:
            raise ConfigError(f"expressions must be 2 to 1024 different names, but got {self.expressions[:16]}")

    @property
    def cells(self) -> int:
        """Side of the last map."""
        return self.side >> (len(self.widths) + 1)


class Attributes(NamedTuple):
    """landmarks: (N, 68, 2) as shares of the picture's width and height. gaze: (N, 2) yaw and pitch in degrees.

    expression: (N, classes) logits.
    """

    landmarks: Tensor
    gaze: Tensor
    expression: Tensor


class AttributeHead(nn.Module):
    """A map to features and on to numbers; it sees where things are, not only that they are somewhere.

    more: length of further features that it is given beside the map.
    """

    def __init__(self, channels: int, config: FaceAttributesConfig, outputs: int, more: int = 0) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, config.kept, 1)
        self.hidden = nn.Linear(config.kept * config.cells**2 + more, config.hidden)
        self.out = nn.Linear(config.hidden, outputs)

    def features(self, maps: Tensor, more: Tensor | None = None) -> Tensor:
        """(N, C, H, W) -> (N, hidden)."""
        seen = F.relu(self.reduce(maps)).flatten(1)
        return F.relu(self.hidden(seen if more is None else torch.cat([seen, more], 1)))


class EyeNet(nn.Module):
    """(N, 3, 32, 32) of an eye -> (N, features)."""

    def __init__(self, features: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, stride in ((3, 16, 1), (16, 32, 2), (32, 48, 2), (48, 64, 2)):
            layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * (_EYE // 8) ** 2, features), nn.ReLU())

    def forward(self, eyes: Tensor) -> Tensor:
        """Pictures in [-1, 1]."""
        return cast(Tensor, self.layers(eyes))


class FaceAttributes(nn.Module):
    """Pictures of one upright face, float NCHW in [0, 1] of any size; resizing and normalisation happen inside.

    Gaze also sees both eyes from near, cut from the picture as it comes by the landmarks that were found.
    """

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
        self.eye = EyeNet(config.eye)
        outputs = {"landmarks": 2 * LANDMARKS, "gaze": 2, "expression": len(config.expressions)}
        more = {"gaze": 2 * config.eye}
        self.heads = nn.ModuleDict(
            {name: AttributeHead(inputs, config, outputs[name], more.get(name, 0)) for name in HEADS}
        )

    def forward(self, images: Tensor) -> Attributes:
        """(N, 3, H, W) -> what all heads say."""
        maps = self._maps(images)
        landmarks = self._answer("landmarks", self._features(images, maps, "landmarks"))
        gaze = self._answer("gaze", self._features(images, maps, "gaze", landmarks))
        return Attributes(landmarks, gaze, self._answer("expression", self._features(images, maps, "expression")))

    def predict(self, images: Tensor, head: Head) -> Tensor:
        """(N, 3, H, W) -> what one head says."""
        return self._answer(head, self.features(images, head))

    def features(self, images: Tensor, head: Head) -> Tensor:
        """(N, 3, H, W) -> (N, hidden), the last features before a head's answer."""
        return self._features(images, self._maps(images), head)

    def _maps(self, images: Tensor) -> Tensor:
        side = self.config.side
        if tuple(images.shape[2:]) != (side, side):
            images = F.interpolate(images, size=(side, side), mode="bilinear", align_corners=False, antialias=True)
        return cast(Tensor, self.trunk(self.stem(images * 2 - 1)))

    def _features(self, images: Tensor, maps: Tensor, head: Head, landmarks: Tensor | None = None) -> Tensor:
        module = cast(AttributeHead, self.heads[head])
        if head != "gaze":
            return module.features(maps)
        if landmarks is None:
            landmarks = self._answer("landmarks", self._features(images, maps, "landmarks"))
        left, right = eye_crops(images, landmarks.detach())
        seen = self.eye(torch.cat([left, right.flip(3)]) * 2 - 1)
        return module.features(maps, torch.cat(seen.chunk(2), 1))

    def _answer(self, head: Head, features: Tensor) -> Tensor:
        """In the units of `Attributes`."""
        raw = cast(Tensor, cast(AttributeHead, self.heads[head]).out(features))
        if head == "landmarks":
            return 0.5 + _SPREAD * raw.view(-1, LANDMARKS, 2)
        return _DEGREES * raw if head == "gaze" else raw


def eye_crops(images: Tensor, landmarks: Tensor) -> tuple[Tensor, Tensor]:
    """The eye on the left and on the right of pictures (N, 3, H, W) with landmarks (N, 68, 2) in shares.

    Each is (N, 3, 32, 32), a square of 0.6 times the way from between the eyes to the mouth.
    """
    eyes = torch.stack([landmarks[:, 36:42].mean(1), landmarks[:, 42:48].mean(1)], 1)
    mouth = landmarks[:, (48, 54)].mean(1)
    side = (_EYE_BOX * (eyes.mean(1) - mouth).norm(dim=1)).clamp(0.02, 1)
    zoom = torch.diag_embed(side[:, None].expand(-1, 2))
    crops = []
    for eye in eyes.unbind(1):
        theta = torch.cat([zoom, (2 * eye - 1)[:, :, None]], 2)
        grid = F.affine_grid(theta, [len(images), 3, _EYE, _EYE], align_corners=False)
        crops.append(F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False))
    return crops[0], crops[1]


def save_face_attributes(
    path: Path, network: FaceAttributes, taught: Mapping[Head, str], *, half: bool = False
) -> str:
    """Write the network, and what taught each head; returns the SHA-256."""
    tensors = network.state_dict()
    config = {"network": asdict(network.config), "taught": dict(taught)}
    return save_checkpoint(path, half_precision(tensors) if half else tensors, config, FACE_ATTRIBUTES_KIND)


def load_face_attributes(path: Path) -> tuple[FaceAttributes, dict[Head, str]]:
    """The network of a model file, in evaluation mode and float32, and what taught each of its heads."""
    checkpoint, source = load_checkpoint(path, FACE_ATTRIBUTES_KIND), Path(path).name
    with understood(source):
        facts = read_facts(checkpoint.config, {"network": dict, "taught": dict})
        config = from_json(FaceAttributesConfig(), facts["network"])
        taught = {head: str(facts["taught"].get(head, ""))[:_LONGEST_TAUGHT] for head in HEADS}
    network = built(lambda: FaceAttributes(config), checkpoint.tensors, source)
    return network.eval(), taught
