"""A module of one's own as an expert: what it is shown, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from veilkit.errors import ConfigError
from veilkit.experts.module_embedder import ModuleEmbedder
from veilkit.experts.preprocessing import Preprocessing
from veilkit.experts.trial import try_embedder

PREPARED = Preprocessing((12, 8), (0.5, 0.4, 0.3), (0.2, 0.25, 0.5))


class Small(nn.Module):
    def __init__(self, channels: int = 3) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.conv, self.norm = nn.Conv2d(channels, 5, 3), nn.BatchNorm2d(5)
            self.norm.running_mean = torch.rand(5)

    def forward(self, images: Tensor) -> Tensor:
        return self.norm(self.conv(images)).relu().mean((2, 3))


def images(height: int = 12, width: int = 8) -> Tensor:
    return torch.rand(3, 3, height, width, generator=torch.Generator().manual_seed(1))


def test_the_module_sees_normalised_images_in_evaluation_mode() -> None:
    module = Small().train()
    expert = ModuleEmbedder(module, PREPARED)
    mean, std = torch.tensor(PREPARED.mean).view(3, 1, 1), torch.tensor(PREPARED.std).view(3, 1, 1)
    wanted = Small().eval()((images() - mean) / std)
    assert torch.allclose(expert.embed(images()), wanted, atol=1e-5)
    assert module.training  # the caller's own is left as it was
    assert expert.dim == 5
    try_embedder(expert)


def test_one_channel_is_the_luma() -> None:
    expert = ModuleEmbedder(Small(1), PREPARED, channels=1)
    red, green, blue = images().unbind(1)
    luma = (0.299 * red + 0.587 * green + 0.114 * blue)[:, None]
    assert torch.allclose(expert.embed(images()), Small(1).eval()((luma - 0.5) / 0.2), atol=1e-5)


def test_mirror_images_are_averaged_and_gradients_pass() -> None:
    expert = ModuleEmbedder(Small(), PREPARED, flip=True)
    leaf = images(20, 9).requires_grad_()
    features = expert.embed(leaf)
    assert torch.allclose(features, expert.embed(leaf.flip(3)), atol=1e-5)
    features.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.abs().sum() > 0


def test_other_weights_are_another_expert() -> None:
    other = Small()
    with torch.no_grad():
        other.conv.weight[0, 0, 0, 0] += 1
    digests = {ModuleEmbedder(module, PREPARED).sha256 for module in (Small(), Small(), other)}
    assert len(digests) == 2


def test_a_module_that_gives_no_vectors_is_refused() -> None:
    with pytest.raises(ConfigError, match="one image gave"):
        ModuleEmbedder(nn.Conv2d(3, 2, 1), PREPARED)


def test_a_module_of_other_images_is_refused_with_what_to_check() -> None:
    with pytest.raises(ConfigError, match=r"takes images \(1, 3, 12, 8\).*check channels"):
        ModuleEmbedder(Small(channels=1), PREPARED)
