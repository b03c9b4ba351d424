"""The swapper: AdaIN against a plain formula, shapes, gradients, and the paper's size."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from veilkit.errors import ConfigError, DataError
from veilkit.methods.disguise.swapper import Swapper, SwapperConfig, adain
from veilkit.methods.faces.pasting import feather

SMALL = SwapperConfig(size=32, width=4, halvings=2, blocks=2, dim=6)


def test_adain_against_a_plain_formula() -> None:
    maps, scale, shift = torch.randn(2, 3, 5, 4), torch.randn(2, 3), torch.randn(2, 3)
    expected = torch.empty_like(maps)
    for n in range(2):
        for c in range(3):
            values = maps[n, c]
            spread = ((values - values.mean()) ** 2).mean() + 1e-5
            expected[n, c] = (values - values.mean()) / spread.sqrt() * (1 + scale[n, c]) + shift[n, c]
    torch.testing.assert_close(adain(maps, scale, shift), expected)


def test_crops_in_crops_out_and_gradients_to_crop_and_identity() -> None:
    torch.manual_seed(0)
    swapper = Swapper(SMALL)
    crops = torch.rand(3, 3, 32, 32, requires_grad=True)
    identity = F.normalize(torch.randn(3, 6)).requires_grad_()
    made = swapper(crops, identity)
    assert made.shape == crops.shape
    assert 0 <= made.min() <= made.max() <= 1
    made.square().sum().backward()
    for given in (crops, identity):
        assert given.grad is not None
        assert given.grad.isfinite().all()
        assert given.grad.abs().flatten(1).sum(1).min() > 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in swapper.parameters())


def test_each_answer_depends_on_its_own_crop_and_identity() -> None:
    torch.manual_seed(0)
    swapper = Swapper(SMALL).eval()
    crops, identity = torch.rand(2, 3, 32, 32), F.normalize(torch.randn(2, 6))
    both = swapper(crops, identity)
    torch.testing.assert_close(swapper(crops[:1], identity[:1]), both[:1])
    assert not torch.allclose(swapper(crops, identity.flip(0)), both, atol=1e-4)


def test_a_masked_swapper_leaves_the_crop_alone_outside_of_the_face() -> None:
    config = SwapperConfig(size=32, width=4, halvings=2, blocks=1, dim=6)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        plain = Swapper(config).eval()
        crops, identities = torch.rand(2, 3, 32, 32), F.normalize(torch.randn(2, 6))
    masked = Swapper(replace(config, masked=True)).eval()
    masked.load_state_dict(plain.state_dict())  # the mask is no weight
    mask, drawn, made = feather(32), plain(crops, identities), masked(crops, identities)
    torch.testing.assert_close(made, mask * drawn + (1 - mask) * crops)
    assert torch.equal(made[:, :, mask == 0], crops[:, :, mask == 0])
    assert (mask == 0).any()
    assert (mask == 1).any()


def test_the_papers_size() -> None:
    """SimSwap at 224: 64 channels, three halvings to 512 at 28 x 28, nine blocks."""
    with torch.device("meta"):
        swapper = Swapper(SwapperConfig())
        assert len(swapper.blocks) == 9
        convolutions = [layer for layer in swapper.modules() if isinstance(layer, nn.Conv2d)]
        assert max(layer.out_channels for layer in convolutions) == 512
        assert swapper.encoder(torch.empty(1, 3, 224, 224)).shape == (1, 512, 28, 28)
        assert swapper(torch.empty(2, 3, 224, 224), torch.empty(2, 512)).shape == (2, 3, 224, 224)


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(ConfigError, match="multiple of 8, but got 100"):
        SwapperConfig(size=100)
    with pytest.raises(DataError, match="crops of 32 x 32 pixels and as many identities of 6"):
        Swapper(SMALL)(torch.rand(1, 3, 32, 40), torch.rand(1, 6))
    with pytest.raises(DataError, match="as many identities"):
        Swapper(SMALL)(torch.rand(2, 3, 32, 32), torch.rand(1, 6))
