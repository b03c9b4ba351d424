"""Networks from pictures to pictures: pix2pix against what is published of it, and the U-Net."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from veilkit.errors import ConfigError, DataError
from veilkit.methods.privacyreid.run import quantised_through
from veilkit.networks.pix2pix import (
    PatchGan,
    PatchGanConfig,
    Pix2PixConfig,
    Pix2PixUNet,
    discriminator_loss,
    generator_loss,
)
from veilkit.networks.unet import UNet, UNetConfig


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def test_sizes_are_those_that_pix2pix_prints() -> None:
    """The public code prints 54.414 M with 8 halvings, and 2.769 M for the discriminator of pairs.

    One halving less is one inner layer less: a convolution of 512 to 512 channels, one back from the 1024 beside each
    other, and two norms.
    """
    with torch.device("meta"):
        eight, seven = (parameters(Pix2PixUNet(Pix2PixConfig(depth=depth))) for depth in (8, 7))
        judge = parameters(PatchGan(PatchGanConfig()))
    assert (round(eight / 1e6, 3), round(judge / 1e6, 3)) == (54.414, 2.769)
    assert eight - seven == 16 * (512 * 512 + 1024 * 512) + 2 * 2 * 512


@pytest.mark.parametrize(("config", "size"), [(Pix2PixConfig(4, 3), (32, 16)), (Pix2PixConfig(2, 7), (256, 128))])
def test_pictures_in_pictures_out(config: Pix2PixConfig, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    generator = Pix2PixUNet(config)
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter.mul_(20)  # far enough to reach the ends of tanh
        made = generator(torch.rand(2, 3, *size))
    assert made.shape == (2, 3, *size)
    assert made.min() >= 0
    assert made.max() <= 1
    assert made.max() - made.min() > 0.5


def test_first_weights_after_he_keep_the_size_of_a_signal() -> None:
    """A rectifier halves the mean square of a centred signal: a layer has to double it."""
    torch.manual_seed(0)
    for layer in Pix2PixUNet(Pix2PixConfig(16, 4, start="he")).modules():
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            with torch.no_grad():
                made = layer(torch.randn(4, layer.in_channels, 32, 32))[:, :, 2:-2, 2:-2]  # away from the padding
            assert made.square().mean().item() == pytest.approx(2.0, rel=0.15)


def test_unknown_first_weights_are_refused() -> None:
    with pytest.raises(ConfigError, match="normal or he, but got 'zero'"):
        Pix2PixConfig(start="zero")  # type: ignore[arg-type]


def test_first_weights_are_normal() -> None:
    torch.manual_seed(0)
    for network in (Pix2PixUNet(Pix2PixConfig(16, 4)), PatchGan(PatchGanConfig(16, 3))):
        weights, norms = [], []
        for layer in network.modules():
            if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
                weights.append(layer.weight.flatten())
            elif isinstance(layer, nn.BatchNorm2d):
                norms.append(layer.weight)
                assert not layer.bias.any()
        for values, mean in ((torch.cat(weights), 0.0), (torch.cat(norms), 1.0)):
            assert values.mean().item() == pytest.approx(mean, abs=0.004)
            assert values.std().item() == pytest.approx(0.02, rel=0.1)


def test_the_picture_reaches_the_answer_past_the_bottleneck() -> None:
    """A change of one pixel changes its surroundings most: that is what the connections across are for."""
    torch.manual_seed(0)
    generator = Pix2PixUNet(Pix2PixConfig(8, 4)).eval()
    image = torch.rand(1, 3, 32, 32, requires_grad=True)
    generator(image)[0, :, 16, 16].sum().backward()
    assert image.grad is not None
    strength = image.grad.abs().sum((0, 1))
    assert strength[14:19, 14:19].mean() > 10 * strength.mean()


def test_sizes_that_do_not_fit_are_told() -> None:
    with pytest.raises(DataError, match=r"multiples of 8, but got 32 x 20"):
        Pix2PixUNet(Pix2PixConfig(4, 3))(torch.rand(1, 3, 32, 20))
    with pytest.raises(ConfigError, match="depth must be between 2 and 10, but got 1"):
        Pix2PixConfig(depth=1)
    with pytest.raises(ConfigError, match="layers must be between 1 and 8, but got 0"):
        PatchGanConfig(layers=0)


@pytest.mark.parametrize(("layers", "side"), [(3, 70), (2, 34), (1, 16)])
def test_the_discriminator_judges_patches_of_its_size(layers: int, side: int) -> None:
    torch.manual_seed(0)
    judge = PatchGan(PatchGanConfig(8, layers)).eval()
    given, answer = torch.rand(2, 1, 3, 160, 160).unbind(0)
    given.requires_grad_()
    answer.requires_grad_()
    logits = judge(given, answer)
    logits[0, 0, logits.shape[2] // 2, logits.shape[3] // 2].backward()
    for picture in (given, answer):
        assert picture.grad is not None
        seen = picture.grad.abs().sum((0, 1)) > 0
        assert (seen.any(1).sum().item(), seen.any(0).sum().item()) == (side, side)


def test_adversarial_losses_are_binary_cross_entropy() -> None:
    real, made = torch.randn(2, 2, 1, 5, 3, generator=torch.Generator().manual_seed(0)).unbind(0)
    ones, zeros = torch.ones_like(real), torch.zeros_like(real)
    expected = (
        F.binary_cross_entropy(real.sigmoid(), ones) + F.binary_cross_entropy(made.sigmoid(), zeros)
    ) / 2  # fmt: skip
    assert discriminator_loss(real, made).item() == pytest.approx(expected.item(), rel=1e-5)
    wanted = F.binary_cross_entropy(made.sigmoid(), ones)
    assert generator_loss(made).item() == pytest.approx(wanted.item(), rel=1e-5)


def test_the_quantiser_rounds_and_lets_gradients_through() -> None:
    images = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    shown = quantised_through(images)
    steps = shown.detach() * 255
    assert (steps - steps.round()).abs().max() < 1e-4
    assert (shown - images).abs().max() <= 0.5 / 255 + 1e-6
    (shown * torch.arange(96).view(2, 3, 4, 4)).sum().backward()
    assert images.grad is not None
    assert torch.equal(images.grad, torch.arange(96.0).view(2, 3, 4, 4))


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
