from __future__ import annotations

import pytest
import torch

from veilkit.attacks.features.decoding import DecoderConfig, FeatureDecoder
from veilkit.errors import ConfigError


@pytest.mark.parametrize("size", [(16, 8), (13, 7)])
def test_features_become_images_of_the_size(size: tuple[int, int]) -> None:
    answer = FeatureDecoder(DecoderConfig(5, size, 4, 2)).eval()(torch.randn(3, 5))
    assert answer.shape == (3, 3, *size)
    assert 0 < answer.min() <= answer.max() < 1


def test_other_features_give_another_image() -> None:
    network = FeatureDecoder(DecoderConfig(5, (8, 8), 4, 2)).eval()
    one, other = network(torch.tensor([[0.0] * 5, [1.0] * 5]))
    assert not torch.allclose(one, other)
    with pytest.raises(ConfigError, match="positive"):
        DecoderConfig(0, (8, 8))
