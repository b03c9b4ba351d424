"""PrivacyReID: an anonymiser learned together with its decoder and a recogniser (see docs/methods/privacyreid.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from torch import Tensor

from veilkit.checkpoint import built, content_sha256, load_checkpoint, save_checkpoint, understood
from veilkit.configs import as_dict, digest, from_json, read_facts, with_settings
from veilkit.errors import ConfigError
from veilkit.methods.base import Method
from veilkit.methods.controls import Blur, Noise, Pixelate
from veilkit.methods.decoder import Decoder, decoder_beside, expert_beside, generate_each
from veilkit.methods.privacyreid.patchgan import PatchGanConfig
from veilkit.methods.privacyreid.training.config import AnonymiserConfig
from veilkit.methods.privacyreid.training.data import Desensitiser
from veilkit.networks.pix2pix_unet import Pix2PixConfig, Pix2PixUNet
from veilkit.networks.reid import ReidNetwork, save_reid
from veilkit.rng import Randomness
from veilkit.training.reid_config import AGW
from veilkit.training.schedule import Decay
from veilkit.types import ImageBatch, Release, Split

if TYPE_CHECKING:
    from veilkit.methods.privacyreid.training.train import TrainedAnonymiser

Kind: TypeAlias = Literal["blur", "pixelate", "noise"]
_CONTROLS: Mapping[Kind, type[Method[Any]]] = {"blur": Blur, "pixelate": Pixelate, "noise": Noise}


@dataclass(frozen=True, slots=True)
class PrivacyReidConfig(AnonymiserConfig):
    """Settings of PrivacyReID, beside those of its training.

    desensitise: the control that the training starts from, at its default strength (blur: standard deviation 12
    pixels; pixelate: cells of 24; noise: 0.5), where lengths are those at 256 pixels of height and shrink with the
    working size. own_size: released pictures have their originals' size; without it they have the working size, as in
    the paper.
    """

    desensitise: Kind = "pixelate"
    own_size: bool = True


PAPER = PrivacyReidConfig()
# For two hours on two cores, with a backbone that starts from ImageNet's weights (--init). What makes so few updates
# enough, seen on validation people of CUHK03-NP: after 300 updates of width 32 at rate 1e-3, recovered SSIM was 0.62
# from pix2pix's first weights and 0.71 from He's; width 16 at rate 2e-3 had 0.83 after 800, each three times as fast.
SMALL = PrivacyReidConfig(
    reid=replace(
        AGW, backbone="mobilenetv2", size=(128, 64), epochs=30, identities=8, warmup=1, rate=7e-4, decay=Decay.COSINE
    ),
    generator=Pix2PixConfig(width=16, depth=6, start="he"),
    discriminator=PatchGanConfig(width=16, layers=2),
    rate=2e-3,
    weight_decay=0.0,
    baseline_epochs=10,
)


class PrivacyReid(Method[PrivacyReidConfig]):
    """Learnable privacy-preserving anonymisation (Zhang et al., ACM Multimedia 2022).

    A generator makes anonymised pictures that look like blurred, pixelated or noisy ones, yet hold what a recogniser
    and a decoder need, which are trained along with it. The default is the preset `small`.
    """

    name = "privacyreid"
    summary = "a learned look of blur, cells or noise that its own recogniser matches and its secret decoder undoes"
    default = SMALL
    presets = {"paper": PAPER, "small": SMALL}  # noqa: RUF012

    def __init__(self, config: PrivacyReidConfig | None = None, generator: Pix2PixUNet | None = None) -> None:
        super().__init__(config)
        self._generator = None if generator is None else generator.eval().requires_grad_(False)
        self._recogniser: ReidNetwork | None = None
        self._decoder: Decoder | None = None
        self._private: bool | None = None

    @property
    def generator(self) -> Pix2PixUNet:
        """The anonymiser G_X; raises where none was trained."""
        if self._generator is None:
            raise ConfigError(
                "privacyreid needs its anonymiser: train one with `veilkit fit privacyreid`, and name it with --model"
            )
        return self._generator

    @property
    def decoder(self) -> Decoder:
        """The decoder G_Y, which only `fit` leaves here; a model file does not hold it."""
        if self._decoder is None:
            raise ConfigError(
                "this model holds the anonymiser only: the decoder has a file of its own, OUT.decoder.safetensors, "
                "for `veilkit recover --model` and Decoder.load"
            )
        return self._decoder

    @cached_property
    def model_sha256(self) -> str:
        """A fingerprint of the anonymiser's weights, by which releases and decoders know it."""
        return content_sha256(self.generator.state_dict(), {}, f"method/{self.name}")

    def fit(self, split: Split, *, work_dir: Path | None = None, init: Path | None = None) -> Self:
        """Train anonymiser, decoder and recogniser on the labelled people of `split`, some of whom only validate."""
        if work_dir is None:
            raise ConfigError("privacyreid trains networks, which needs a work folder for its state")
        from veilkit.methods.privacyreid.training.train import (
            train_anonymiser,  # only who trains pays for these imports
        )

        return self.take(
            train_anonymiser(split, self.config, desensitiser(self.config), work_dir=work_dir, init=init)
        )

    def take(self, trained: TrainedAnonymiser) -> Self:
        """Take over what a training under this configuration has left."""
        self.__dict__.pop("model_sha256", None)
        self._generator, self._recogniser = trained.anonymise.requires_grad_(False), trained.reid
        self._decoder = Decoder(trained.recover, self.config.size, self.name, self.model_sha256)
        self._private = bool(trained.decisions[-1]["private"])
        return self

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Anonymise each picture by itself; nothing is random."""
        images = generate_each(self.generator, batch.images, self.config.size, own_size=self.config.own_size)
        return Release(images=images, source_index=tuple(range(len(batch))))

    def recover(self, images: Tensor, *, rng: Randomness) -> Tensor:
        """What the decoder makes of released pictures (N, 3, H, W); nothing is random."""
        return self.decoder.recover(images)

    def check(self) -> None:
        """Raise where no anonymiser was trained."""
        _ = self.generator

    def public_config(self) -> dict[str, Any]:
        """The configuration, and the fingerprint by which a decoder is known to be the right one."""
        return {**as_dict(self.config), "model": self.model_sha256}

    def fingerprint(self) -> str:
        """A hash of the configuration and of the anonymiser."""
        model = "no model" if self._generator is None else self.model_sha256
        return f"{self.name}:{digest(self.config)}:{model}"

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same anonymiser under another `own_size`; how it was trained cannot change any more."""
        config = with_settings(self.config if preset is None else self.preset_table()[preset], settings or {})
        if replace(config, own_size=self.config.own_size) != self.config:
            raise ConfigError("the anonymiser is trained already: only own_size can still be set")
        return type(self)(config, self._generator)

    def after_fit(self, out: Path) -> tuple[str, ...]:
        """Who may have which of the three files, and whether the anonymiser kept its own limits."""
        notes: tuple[str, ...] = (
            f"{out} protects: keep it as private as the pictures, since who has it can learn to undo what it does.",
            f"{decoder_beside(out)} undoes the protection: keep it apart, where `veilkit recover --model` is run.",
            f"{expert_beside(out)} recognises people in raw and protected pictures (veilkit experts add).",
        )
        if self._private is False:
            notes += (
                "Warning: at the last check its pictures were closer to the originals than the limits allow; "
                "decisions.jsonl in the work folder has the numbers.",
            )
        return notes

    def save(self, path: Path) -> None:
        """Write the anonymiser to `path`; after `fit`, also decoder and recogniser, each to its file beside it."""
        # All 32 bits: what the decoder reads is hidden in small differences.
        config = {"method": as_dict(self.config)}
        save_checkpoint(path, self.generator.state_dict(), config, f"method/{self.name}")
        if self._decoder is not None:
            self._decoder.save(decoder_beside(Path(path)))
        if self._recogniser is not None:
            save_reid(expert_beside(Path(path)), self._recogniser, half=True)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the anonymiser that `save` wrote, without decoder and recogniser."""
        checkpoint, source = load_checkpoint(path, f"method/{cls.name}"), Path(path).name
        with understood(source):
            config = from_json(cls.default, read_facts(checkpoint.config, {"method": dict})["method"])
        return cls(config, built(lambda: Pix2PixUNet(config.generator), checkpoint.tensors, source))


def desensitiser(config: PrivacyReidConfig) -> Desensitiser:
    """The control that a configuration names, as the first supervision of its training."""
    control = _CONTROLS[config.desensitise]()
    rng = Randomness.from_seed(config.reid.seed).child("desensitise")

    def apply(images: Tensor, names: Sequence[str]) -> Tensor:
        made = control.protect(ImageBatch(images, tuple(names)), rng=rng).images
        assert made is not None
        return made

    return Desensitiser(control.fingerprint(), apply)
