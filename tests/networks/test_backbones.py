"""Shapes and sizes of the backbones, against the numbers their papers and reference implementations give."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from veilkit.errors import ConfigError, MissingExtraError, UnknownNameError
from veilkit.networks.backbones import BACKBONES, build_backbone
from veilkit.networks.mobile import divisible
from veilkit.networks.resnet import InstanceBatchNorm, NonLocalBlock, ResNet, ResNetConfig

IMAGES = torch.rand(2, 3, 64, 32, generator=torch.Generator().manual_seed(0))


def parameters(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("name", [n for n in BACKBONES if "resnet50" not in n])
def test_map_has_the_promised_shape(name):
    backbone = build_backbone(name, size=(64, 32)).eval()
    with torch.no_grad():
        maps = backbone(IMAGES)
    stride = 8 if name.startswith("vit") else 16
    assert maps.shape == (2, backbone.channels, 64 // stride, 32 // stride)
    assert maps.min() >= 0  # generalised-mean pooling clips below zero


@pytest.mark.parametrize("name", ["mobilenetv2", "efficientnet-lite0", "resnet18"])
def test_last_stride_halves_the_map(name):
    with torch.no_grad():
        assert build_backbone(name, last_stride=2).eval()(IMAGES).shape[2:] == (2, 1)


# Published sizes, with the classifier that a backbone lacks taken off: outputs x 1000 weights and 1000 biases for
# ImageNet networks, and OSNet's last fully connected layer (512 x 512, bias, norm) at width 1.
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("mobilenetv2", 3_504_872 - 1_281_000),
        ("efficientnet-lite0", 4_652_008 - 1_281_000),
        ("resnet18", 11_689_512 - 513_000),
        ("resnet50", 25_557_032 - 2_049_000),
        ("osnet-x1.0", 2_169_768 - 512 * 512 - 512 - 2 * 512),
    ],
)
def test_parameter_counts_are_the_published_ones(name, count):
    assert abs(parameters(build_backbone(name)) - count) < 0.001 * count


def test_agw_adds_five_non_local_blocks_that_start_as_nothing():
    torch.manual_seed(0)
    network = ResNet(ResNetConfig(50, non_local=(0, 2, 3, 0)))
    blocks = [part for part in network.parts() if isinstance(part, NonLocalBlock)]
    assert [block.theta.in_channels for block in blocks] == [512, 512, 1024, 1024, 1024]
    maps = torch.rand(2, 512, 4, 2)
    with torch.no_grad():
        assert torch.equal(blocks[0].eval()(maps), maps)


def test_ibn_normalises_half_of_the_channels_by_instance():
    norm = InstanceBatchNorm(8).train()
    maps = torch.rand(4, 8, 6, 3) * torch.rand(4, 1, 1, 1) + torch.rand(4, 1, 1, 1)
    out = norm(maps).detach()
    assert out[:, :4].mean((2, 3)).abs().max() < 1e-5
    assert out[:, 4:].mean((0, 2, 3)).abs().max() < 1e-5
    assert out[:, 4:].mean((2, 3)).abs().max() > 1e-2


def test_ibn_network_has_the_size_of_the_plain_one():
    assert parameters(build_backbone("resnet50-ibn")) == parameters(build_backbone("resnet50"))


def test_vit_takes_other_sizes():
    backbone = build_backbone("vit-small", size=(64, 32)).eval()
    with torch.no_grad():
        assert backbone(torch.rand(1, 3, 96, 48)).shape == (1, 192, 12, 6)


@pytest.mark.parametrize(("wanted", "given"), [(32, 32.0), (48, 44.8), (16, 12.0), (8, 3.0), (24, 19.3)])
def test_channels_are_rounded_to_eights_but_not_far_down(wanted, given):
    assert divisible(given) == wanted
    assert divisible(given) >= 0.9 * given


def test_unknown_and_unfit_requests_are_refused():
    with pytest.raises(UnknownNameError, match="mobilenetv2"):
        build_backbone("mobilnetv2")
    with pytest.raises(ConfigError, match="no last stride"):
        build_backbone("osnet-x0.25", last_stride=2)
    with pytest.raises(ConfigError, match="18 or 50"):
        ResNetConfig(depth=34)


def test_timm_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtraError, match=r"veilkit\[timm\]"):
        build_backbone("timm:resnet10t")


@pytest.fixture(scope="module")
def converter():
    path = Path(__file__).parents[2] / "models" / "convert_imagenet.py"
    spec = importlib.util.spec_from_file_location("convert_imagenet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def published_mobilenetv2():
    """The names that the published file uses: a flat list per block, whose first one lacks the expansion."""
    tensors = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    for block in range(1, 18):
        for conv in (0, 3) if block == 1 else (0, 3, 6):
            yield f"features.{block}.conv.{conv}.weight"
            yield from (f"features.{block}.conv.{conv + 1}.{t}" for t in tensors)
    for end in (0, 18):
        yield f"features.{end}.0.weight"
        yield from (f"features.{end}.1.{t}" for t in tensors)


def published_lite0():
    tensors = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    for block in range(16):
        for conv, norm in (("expand", 0), ("depthwise", 1), ("project", 2)):
            if block or norm:
                yield f"_blocks.{block}._{conv}_conv.weight"
                yield from (f"_blocks.{block}._bn{norm}.{t}" for t in tensors)
    for conv, norm in (("_conv_stem", "_bn0"), ("_conv_head", "_bn1")):
        yield f"{conv}.weight"
        yield from (f"{norm}.{t}" for t in tensors)


@pytest.mark.parametrize(
    ("published", "name"), [(published_mobilenetv2, "mobilenetv2"), (published_lite0, "efficientnet-lite0")]
)
def test_published_names_map_one_to_one(converter, published, name):
    ours = [converter.rename(theirs) for theirs in published()]
    assert len(ours) == len(set(ours))
    assert set(ours) == set(build_backbone(name).state_dict())


def test_classifier_is_left_out(converter):
    assert converter.rename("_fc.weight") is None
