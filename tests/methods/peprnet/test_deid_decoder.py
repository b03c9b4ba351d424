from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from veilkit.errors import ConfigError
from veilkit.methods.peprnet.deid_decoder import DeidDecoder, DeidDecoderConfig, levelled


@pytest.mark.parametrize(("features", "size"), [(128, (256, 128)), (128, (128, 64)), (512, (33, 20)), (8, (5, 4))])
def test_features_become_pictures_of_the_size(features: int, size: tuple[int, int]) -> None:
    network = DeidDecoder(DeidDecoderConfig(features, size, 4))
    assert network(torch.randn(2, features)).shape == (2, 3, *size)
    assert sum(isinstance(part, nn.Conv2d) for part in network.modules()) == 3  # as the paper counts them


def test_each_picture_depends_on_its_own_features() -> None:
    network = DeidDecoder(DeidDecoderConfig(16, (16, 8), 4))
    features = torch.randn(3, 16)
    together = network(features)
    assert not torch.allclose(together[0], together[1])
    torch.testing.assert_close(network(features[1:2])[0], together[1])


def test_levelled_features_keep_their_direction_alone() -> None:
    features = torch.randn(4, 16)
    found = levelled(features)
    torch.testing.assert_close(found.norm(dim=1), torch.full((4,), 4.0))
    torch.testing.assert_close(levelled(7 * features), found)
    assert math.isclose(float((found[0] @ features[0]) / (4 * features[0].norm())), 1.0, rel_tol=1e-5)


def test_a_length_that_cannot_be_reshaped_is_refused() -> None:
    with pytest.raises(ConfigError, match="multiple of 8, but got 100"):
        DeidDecoderConfig(100, (16, 8))
    with pytest.raises(ConfigError, match="size must be between 4 and 1024"):
        DeidDecoderConfig(16, (2, 8))
