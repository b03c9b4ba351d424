"""The backbones by name: normalised images in, the last feature map out."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast

from torch import Tensor, nn

from veilkit.errors import ConfigError, MissingExtraError
from veilkit.lookup import Lookup
from veilkit.networks.mobile import efficientnet_lite0, mobilenetv2
from veilkit.networks.osnet import OSNet
from veilkit.networks.resnet import ResNet, ResNetConfig
from veilkit.networks.vit import ViT, ViTConfig

BACKBONE_KIND = "backbone"
TIMM_PREFIX = "timm:"
Size = tuple[int, int]


class Backbone(Protocol):
    """What the Re-ID network asks of a backbone, besides being a torch module."""

    channels: int

    def parts(self) -> list[nn.Module]:
        """The pieces in the order the image meets them; freezing counts them."""

    def __call__(self, images: Tensor) -> Tensor:
        """(N, 3, H, W), normalised -> (N, channels, H', W')."""


Builder = Callable[[Size, int], nn.Module]


def _mobilenetv2(width: float, size: Size, last_stride: int) -> nn.Module:
    return mobilenetv2(width, last_stride=last_stride)


def _efficientnet_lite0(size: Size, last_stride: int) -> nn.Module:
    return efficientnet_lite0(last_stride=last_stride)


def _resnet(depth: int, ibn: bool, agw: bool, size: Size, last_stride: int) -> nn.Module:
    return ResNet(ResNetConfig(depth, last_stride, ibn, (0, 2, 3, 0) if agw else (0, 0, 0, 0)))


def _osnet(width: float, size: Size, last_stride: int) -> nn.Module:
    _only_stride_1("OSNet", last_stride)
    return OSNet(width)


def _vit(size: Size, last_stride: int) -> nn.Module:
    _only_stride_1("ViT", last_stride)
    return ViT(ViTConfig(size))


def _only_stride_1(name: str, last_stride: int) -> None:
    if last_stride != 1:
        raise ConfigError(f"{name} has no last stride to change; leave last_stride at 1 instead of {last_stride}")


BACKBONES: Lookup[Builder] = Lookup(
    "backbone",
    [
        ("mobilenetv2", partial(_mobilenetv2, 1.0)),
        ("mobilenetv2-x0.5", partial(_mobilenetv2, 0.5)),
        ("efficientnet-lite0", _efficientnet_lite0),
        ("osnet-x0.25", partial(_osnet, 0.25)),
        ("osnet-x0.5", partial(_osnet, 0.5)),
        ("osnet-x0.75", partial(_osnet, 0.75)),
        ("osnet-x1.0", partial(_osnet, 1.0)),
        ("resnet18", partial(_resnet, 18, False, False)),
        ("resnet50", partial(_resnet, 50, False, False)),
        ("resnet50-ibn", partial(_resnet, 50, True, False)),
        ("resnet50-agw", partial(_resnet, 50, False, True)),
        ("vit-small", _vit),
    ],
)


def build_backbone(name: str, *, size: Size = (128, 64), last_stride: int = 1) -> Backbone:
    """The backbone `name`, or a network of the timm library as timm:NAME, with random weights.

    size: (height, width) of the images to come, which only a ViT needs. last_stride: 1 or 2, of the last stage.
    """
    if name.startswith(TIMM_PREFIX):
        _only_stride_1(name, last_stride)
        return TimmBackbone(name.removeprefix(TIMM_PREFIX))
    return cast(Backbone, BACKBONES[name](size, last_stride))


class TimmBackbone(nn.Module):
    """A timm network without pooling and classifier: (N, 3, H, W) -> (N, channels, H', W'). Never downloads."""

    def __init__(self, name: str) -> None:
        super().__init__()
        try:
            timm: Any = importlib.import_module("timm")
        except ImportError:
            raise MissingExtraError("timm", "timm") from None
        if name not in timm.list_models():
            raise ConfigError(f"timm has no network {name!r}; timm.list_models() names them")
        self.network = timm.create_model(name, pretrained=False, num_classes=0, global_pool="")
        self.channels = int(self.network.num_features)

    def parts(self) -> list[nn.Module]:
        """The network's own top-level parts."""
        return list(self.network.children())

    def forward(self, images: Tensor) -> Tensor:
        """Normalised images to the last feature map."""
        maps = cast(Tensor, self.network.forward_features(images))
        if maps.ndim != 4 or maps.shape[1] != self.channels:
            raise ConfigError(
                f"expected a timm network with maps (N, {self.channels}, H, W), but got {tuple(maps.shape)}; "
                "take a convolutional one"
            )
        return maps
