"""Settings of PEPR-Net and of its training, and the networks that they ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from veilkit.configs import check_ranges
from veilkit.datasets.augment import AugmentConfig
from veilkit.errors import ConfigError
from veilkit.methods.peprnet.deid_decoder import DeidDecoderConfig
from veilkit.networks.reid import ReidNetworkConfig, check_input_size

Deid: TypeAlias = Literal["pixelate", "blur", "obfuscate", "clean", "none"]
Adversary: TypeAlias = Literal["none", "uniform", "alternating"]


@dataclass(frozen=True, slots=True)
class PeprNetConfig:
    """The encoder, its decoder and its adversary. Defaults are the paper's (Section 5.2), where it tells them.

    backbone, size, last_stride: of the encoder; size is (height, width). features: length D of a feature (128).
    unit: losses see features of length 1, which is what is released; the paper's have any length.
    margin, mining: of Eq. 1; the paper tells neither (see `hinge_triplet`).
    decoder_width: channels of the De-ID decoder. deid_sum: Eq. 2 as printed, a sum over pictures and values, which
    drowns all else; otherwise its mean, with which the paper's weights can have worked.
    adversary: "uniform", the paper's: a head over the identities of the batch, driven to uniform together with the
    encoder, which zero weights satisfy. "alternating": the head learns to tell the training people from detached
    features, the encoder to leave it without an answer. "none". head_rate: times `rate`, of an alternating head.
    reid_weight, deid_weight, adversary_weight: lambda 1 to 3 of Eq. 4.
    identities, images: of a batch, 32 x 4. rate: Adam's, which decays exponentially to a hundredth.
    frozen: leading parts of the backbone that stay as they start. augment: flip and crop.
    validation: share of the people who are set aside to watch Rank-1 and mAP after each epoch; 0 watches nobody.

    deid: what the decoder learns to draw: `pixelate` (cells of 24 pixels, at 256 of height), `blur` (standard
    deviation 12), `obfuscate` (the paper does not define it; ours is the picture's mean colour all over), `clean`
    (the original itself, an ablation that is no protection), `none` (no decoder).
    own_size: decoded pictures have their originals' size; without it they have the working size.
    """

    backbone: str = "resnet50"
    size: tuple[int, int] = (256, 128)
    last_stride: int = 2
    features: int = 128
    unit: bool = False
    margin: float = 0.3
    mining: Literal["all", "hard"] = "all"
    decoder_width: int = 64
    deid_sum: bool = False
    adversary: Adversary = "uniform"
    head_rate: float = 10.0
    reid_weight: float = 1.0
    deid_weight: float = 0.1
    adversary_weight: float = 0.001
    epochs: int = 120
    identities: int = 32
    images: int = 4
    rate: float = 3e-4
    frozen: int = 0
    augment: AugmentConfig = field(default_factory=lambda: AugmentConfig(erase=0.0))
    validation: float = 0.0
    seed: int = 0
    deid: Deid = "pixelate"
    own_size: bool = True

    def __post_init__(self) -> None:
        check_input_size("size", self.size)
        DeidDecoderConfig(self.features, self.size, self.decoder_width)
        check_ranges(self, {
            "epochs": (1, 100_000), "rate": (1e-9, 1), "head_rate": (1e-6, 1e6), "margin": (0, 1e6),
            "validation": (0, 0.9), "reid_weight deid_weight adversary_weight": (0, 1e9),
        })  # fmt: skip
        if self.frozen < 0:
            raise ConfigError(f"frozen must not be negative, but got {self.frozen}")


PAPER = PeprNetConfig()
# About eight minutes on one core for CUHK03-NP, from ImageNet weights (--init). Mining only the hardest
# triplets brought all features together there, within an epoch.
SMALL = PeprNetConfig(
    backbone="mobilenetv2", size=(128, 64), last_stride=1, unit=True, decoder_width=32, epochs=8, frozen=4
)


def encoder_config(config: PeprNetConfig) -> ReidNetworkConfig:
    """A backbone, pooling and a linear layer to D features; nothing after it."""
    return ReidNetworkConfig(
        backbone=config.backbone, size=config.size, last_stride=config.last_stride, reduced=config.features,
        feature="pooled",
    )  # fmt: skip


def decoder_config(config: PeprNetConfig) -> DeidDecoderConfig:
    """The decoder that goes with the encoder."""
    return DeidDecoderConfig(config.features, config.size, config.decoder_width)
