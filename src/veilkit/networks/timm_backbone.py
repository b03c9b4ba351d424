"""Any convolutional network of the timm library as a backbone (extra: timm)."""

from __future__ import annotations

import importlib
from typing import Any, cast

from torch import Tensor, nn

from veilkit.errors import ConfigError, MissingExtraError


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
