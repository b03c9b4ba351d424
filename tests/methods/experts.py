"""Small experts for tests: not trained, since what is tested does not depend on how much they know."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from veilkit.experts.preprocessing import Preprocessing
from veilkit.experts.torch_embedder import ModuleEmbedder
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid

_FOLDER = tempfile.TemporaryDirectory(prefix="veilkit-tests-")
SIZE = (8, 6)


@cache
def tiny_expert_file(backbone: str = "osnet-x0.25") -> str:
    """A Re-ID network of random weights at 32 x 16, whose running statistics are those of some noise."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = ReidNetwork(ReidNetworkConfig(backbone=backbone, size=(32, 16))).train()
        with torch.no_grad():
            network.backbone(torch.randn(16, 3, 32, 16))
    file = Path(_FOLDER.name) / f"tiny-{backbone}.safetensors"
    save_reid(file, network.eval())
    return str(file)


class Toy(nn.Module):
    """Two layers, (N, channels, 8, 6) -> (N, 7)."""

    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            self.maps = nn.Conv2d(channels, 6, 3, stride=2)
            self.out = nn.Linear(6 * 3 * 2, 7)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(torch.tanh(self.maps(images)).flatten(1))


def toy_expert(module: nn.Module | None = None, channels: int = 3) -> ModuleEmbedder:
    preprocessing = Preprocessing(SIZE, (0.5, 0.4, 0.3), (0.2, 0.25, 0.3))
    return ModuleEmbedder(module or Toy(channels), preprocessing, name="toy", channels=channels)  # type: ignore[arg-type]


def pictures(count: int, height: int = SIZE[0], width: int = SIZE[1], seed: int = 0) -> Tensor:
    """Random 8-bit pictures in [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, height, width), generator=generator).float() / 255
