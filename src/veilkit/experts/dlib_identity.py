"""dlib's face identity network as a torch expert (extra: faces): 128 numbers per face, differentiable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.errors import CheckpointError
from veilkit.experts.base import ExpertInfo, NetworkEmbedder, check_images
from veilkit.experts.dlib_files import IDENTITY, LICENCES, DlibLayer, DlibNetwork, dlib_model, read_dlib_network
from veilkit.experts.names import file_sha256
from veilkit.experts.preprocessing import Preprocessing

SIDE = 150
LENGTH = 128
MEAN = (122.782, 117.001, 104.298)  # of red, green and blue in [0, 255]; a network's file has its own
_SCALE = 256.0
STEM = 32
# Filters of each block, in the order the image meets them; a block that halves the map is marked.
BLOCKS = (
    *((32, False),) * 3,
    (64, True),
    *((64, False),) * 3,
    (128, True),
    *((128, False),) * 2,
    (256, True),
    *((256, False),) * 2,
    (256, True),
)


class DlibBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut; one that halves strides without padding and averages the shortcut.

    Where the two differ in size or channels, the smaller is taken as zero beyond its end, as dlib does.
    """

    def __init__(self, inputs: int, outputs: int, *, halves: bool) -> None:
        super().__init__()
        self.halves = halves
        self.first = nn.Conv2d(inputs, outputs, 3, 2 if halves else 1, 0 if halves else 1)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H, W), or half of H and W."""
        found = self.second(F.relu(self.first(maps)))
        shortcut = F.avg_pool2d(maps, 2) if self.halves else maps
        size = [max(one, other) for one, other in zip(found.shape[1:], shortcut.shape[1:], strict=True)]
        return F.relu(_padded(found, size) + _padded(shortcut, size))


class DlibResNet(nn.Module):
    """Images (N, 3, 150, 150), RGB in [0, 1] -> raw features (N, 128); normalisation is inside.

    29 convolutions in residual blocks, as in dlib's `face_recognition_model_v1` (D. King, 2017): He et al. 2016 with
    fewer layers and half the filters. Each affine layer, a batch norm at rest, is part of the convolution before it.
    """

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None])
        self.stem = nn.Conv2d(3, STEM, 7, 2)
        inputs = STEM
        blocks = []
        for outputs, halves in BLOCKS:
            blocks.append(DlibBlock(inputs, outputs, halves=halves))
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, LENGTH, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Of aligned faces, as dlib's `get_face_chip` cuts them."""
        maps = F.relu(self.stem((images * 255 - self.mean) / _SCALE))
        maps = self.blocks(F.max_pool2d(maps, 3, 2))
        return cast(Tensor, self.head(maps.mean((2, 3))))


def _padded(maps: Tensor, size: list[int]) -> Tensor:
    """`maps` (N, C, H, W) with zeros behind, up to `size` = [C, H, W]."""
    more = [want - have for want, have in zip(size, maps.shape[1:], strict=True)]
    return F.pad(maps, (0, more[2], 0, more[1], 0, more[0])) if any(more) else maps


_STD = 256 / 255


class DlibIdentity(NetworkEmbedder):
    """Features of aligned faces, of which dlib's authors call two within 0.6 of each other the same person.

    Images are square chips as `alignment.CHIP` cuts them; other sizes are resized to 150x150.
    """

    def __init__(self, network: DlibResNet, info: ExpertInfo, *, flip: bool = False, batch_size: int = 32) -> None:
        super().__init__(info, flip=flip, batch_size=batch_size)
        self._network = network

    @classmethod
    def load(cls, path: Path | None = None, *, flip: bool = False) -> DlibIdentity:
        """From dlib's own file; without a path, from the one that face_recognition_models ships."""
        path = dlib_model(IDENTITY) if path is None else Path(path)
        network = torch_network(read_dlib_network(path), path.name)
        red, green, blue = (value / 255 for value in network.mean.flatten().tolist())
        preprocessing = Preprocessing((SIDE, SIDE), (red, green, blue), (_STD, _STD, _STD))
        info = ExpertInfo(
            "dlib", "embedder", LENGTH, file_sha256(path), True, LICENCES[IDENTITY],
            "dlib, 29-layer ResNet, read from its own file", "built-in", preprocessing,
        )  # fmt: skip
        return cls(network, info, flip=flip)

    def embed(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1] -> (N, 128), not L2-normalised; gradients reach the images."""
        check_images(images)
        if len(images) and tuple(images.shape[2:]) != (SIDE, SIDE):
            images = F.interpolate(images, size=(SIDE, SIDE), mode="bilinear", align_corners=False, antialias=True)
        return super().embed(images)

    def _features(self, images: Tensor) -> Tensor:
        return cast(Tensor, self._network(images))


def torch_network(read: DlibNetwork, source: str) -> DlibResNet:
    """The torch network of what was read from the file `source`, frozen; every layer must be where it is expected."""
    found = tuple(layer.kind for layer in read.layers)
    if read.size != (SIDE, SIDE) or found != _expected():
        raise CheckpointError(f"{source}: this is another network than dlib's 29-layer face network")
    network = DlibResNet()
    layers = iter([layer for layer in read.layers if layer.kind in ("con_4", "affine_", "fc_2")])
    with torch.no_grad():
        network.mean.copy_(torch.tensor(read.mean)[:, None, None])
        _fill(network.stem, layers, source)
        for block in network.blocks:
            _fill(cast(DlibBlock, block).first, layers, source)
            _fill(cast(DlibBlock, block).second, layers, source)
        last = next(layers)
        if last.sizes != (LENGTH, network.head.in_features, 1):
            raise CheckpointError(f"{source}: expected a last layer to {LENGTH} numbers, but got {last.sizes}")
        network.head.weight.copy_(last.values.view(network.head.in_features, LENGTH).T)
    network.requires_grad_(False).eval()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's stubs
    return network


def _expected() -> tuple[str, ...]:
    """The kinds of all layers in the order of the file."""
    kinds = ["con_4", "affine_", "relu_", "max_pool_2"]
    for block in DlibResNet().blocks:
        kinds += ["con_4", "affine_", "relu_", "con_4", "affine_"]
        kinds += ["avg_pool_2"] if cast(DlibBlock, block).halves else []
        kinds += ["add_prev_", "relu_"]
    return (*kinds, "avg_pool_2", "fc_2")


def _fill(convolution: nn.Conv2d, layers: Iterator[DlibLayer], source: str) -> None:
    """Take the next convolution and the affine layer behind it into one:  g (W x + b) + h."""
    plain, affine = next(layers), next(layers)
    filters, shape = convolution.out_channels, convolution.weight.shape
    wanted = (filters, *convolution.kernel_size, *convolution.stride, *cast(tuple[int, int], convolution.padding))
    if plain.sizes != wanted or len(plain.values) != shape.numel() + filters or len(affine.values) != 2 * filters:
        raise CheckpointError(f"{source}: expected a convolution of {wanted}, but got {plain.sizes}")
    weights, biases = plain.values[:-filters].view(shape).double(), plain.values[-filters:].double()
    factors, terms = affine.values[:filters].double(), affine.values[filters:].double()
    convolution.weight.copy_(weights * factors[:, None, None, None])
    assert convolution.bias is not None  # torch's default
    convolution.bias.copy_(biases * factors + terms)
