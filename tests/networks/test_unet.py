from __future__ import annotations

import pytest
import torch

from veilkit.errors import ConfigError, DataError
from veilkit.networks.unet import UNet, UNetConfig


@pytest.mark.parametrize("size", [(16, 8), (13, 7), (5, 30), (1, 1)])
def test_any_size_keeps_its_size_and_stays_in_range(size: tuple[int, int]) -> None:
    network = UNet(UNetConfig(4, 2)).eval()
    answer = network(torch.rand(2, 3, *size))
    assert answer.shape == (2, 3, *size)
    assert 0 < answer.min() <= answer.max() < 1


def test_padding_repeats_the_edge() -> None:
    """A picture and the same one with its edge repeated by hand are one and the same to the network."""
    network = UNet(UNetConfig(4, 2, places=False)).eval()
    image = torch.rand(1, 3, 6, 8)
    by_hand = torch.cat([image, image[:, :, -1:], image[:, :, -1:]], 2)
    torch.testing.assert_close(network(image), network(by_hand)[:, :, :6])


def test_an_image_does_not_depend_on_its_batch_after_training() -> None:
    network = UNet(UNetConfig(4, 2)).eval()
    images = torch.rand(3, 3, 8, 8)
    torch.testing.assert_close(network(images)[1:2], network(images[1:2]))


def test_features_reach_every_pixel_and_are_asked_for() -> None:
    network = UNet(UNetConfig(4, 2, features=5)).eval()
    image = torch.rand(1, 3, 8, 8)
    one, other = (network(image, torch.full((1, 5), value)) for value in (0.0, 3.0))
    assert ((one - other).abs().amax(1) > 0).float().mean() > 0.9
    with pytest.raises(DataError, match="got none"):
        network(image)
    with pytest.raises(DataError, match="conditioned on 0"):
        UNet(UNetConfig(4, 2))(image, torch.zeros(1, 5))


def test_other_channels_and_widths() -> None:
    network = UNet(UNetConfig(4, 3, widest=2, inputs=4, outputs=1))
    assert network(torch.rand(2, 4, 8, 8)).shape == (2, 1, 8, 8)
    assert network.config.channels(3) == 8
    with pytest.raises(ConfigError, match="positive"):
        UNetConfig(0)
