"""PrivacyReID: an anonymiser learned together with its decoder and a recogniser (see docs/methods/privacyreid.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from torch import Tensor

from veilkit.checkpoint import built, load_checkpoint, save_checkpoint, understood
from veilkit.configs import as_dict, from_json, read_facts
from veilkit.errors import ConfigError
from veilkit.methods.learned import Decoder, Trained, decoder_beside, expert_beside, generate_each
from veilkit.methods.privacyreid.config import PAPER, SMALL, PrivacyReidConfig
from veilkit.networks.pix2pix import Pix2PixUNet
from veilkit.networks.reid import ReidNetwork, save_reid
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Release, Split

if TYPE_CHECKING:
    from veilkit.methods.privacyreid.training import TrainedAnonymiser


class PrivacyReid(Trained[PrivacyReidConfig]):
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

    @property
    def trained(self) -> bool:
        """Whether there is an anonymiser yet."""
        return self._generator is not None

    def tensors(self) -> dict[str, Tensor]:
        """The anonymiser's weights."""
        return dict(self.generator.state_dict())

    def fit(self, split: Split, *, work_dir: Path | None = None, init: Path | None = None) -> Self:
        """Train anonymiser, decoder and recogniser on the labelled people of `split`, some of whom only validate."""
        if work_dir is None:
            raise ConfigError("privacyreid trains networks, which needs a work folder for its state")
        from veilkit.methods.privacyreid.supervision import desensitiser  # only who trains pays for these imports
        from veilkit.methods.privacyreid.training import train_anonymiser

        supervision = desensitiser(self.config)
        return self.take(train_anonymiser(split, self.config, supervision, work_dir=work_dir, init=init))

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
        save_checkpoint(path, self.tensors(), config, f"method/{self.name}")
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
