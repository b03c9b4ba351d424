"""PEPR-Net: features for matching with less of who somebody is, and noise on them (see docs/methods/peprnet.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import torch
from torch import Tensor, nn

from veilkit.checkpoint import (
    built,
    half_precision,
    load_checkpoint,
    refuse_tensors,
    save_checkpoint,
    understood,
)
from veilkit.configs import as_dict, from_json, read_facts
from veilkit.errors import ConfigError
from veilkit.methods.learned import Trained, expert_beside, generate_each
from veilkit.methods.peprnet.config import PAPER, SMALL, PeprNetConfig, decoder_config, encoder_config
from veilkit.methods.peprnet.deid_decoder import DeidDecoder, levelled
from veilkit.methods.peprnet.feature_noise import NoiseKind, noise_mechanism, noisy_release
from veilkit.networks.reid import ReidNetwork, channels_last, save_reid
from veilkit.privacy import Ledger, unit
from veilkit.rng import Randomness
from veilkit.training.state import split_prefixes, with_prefix
from veilkit.types import ImageBatch, Release, Split

if TYPE_CHECKING:
    from veilkit.methods.peprnet.training import TrainedPepr

_CHUNK = 64


class PeprNet(Trained[PeprNetConfig]):
    """Privacy-enhancing person Re-ID (Kansal et al., WACV 2024).

    Stage 1 is an encoder of 128 features, trained to match people, to let a decoder draw only a de-identified
    picture, and to leave an identity head without an answer. Stage 2 is noise on the features. `protect` releases
    the decoder's pictures, `protect_features` the features. The default is the preset `small`: `paper` needs a GPU.
    """

    name = "peprnet"
    summary = "features for matching, trained against recognition and with noise on them; pictures decoded from them"
    default = SMALL
    presets = {"paper": PAPER, "small": SMALL}  # noqa: RUF012

    def __init__(
        self,
        config: PeprNetConfig | None = None,
        encoder: ReidNetwork | None = None,
        decoder: DeidDecoder | None = None,
    ) -> None:
        super().__init__(config)
        self._encoder = None if encoder is None else channels_last(encoder.eval().requires_grad_(False))
        self._decoder = None if decoder is None else decoder.eval().requires_grad_(False)

    @property
    def encoder(self) -> ReidNetwork:
        """The encoder; raises where none was trained."""
        if self._encoder is None:
            raise ConfigError(
                "peprnet needs its encoder: train one with `veilkit fit peprnet`, and name it with --model"
            )
        return self._encoder

    @property
    def decoder(self) -> DeidDecoder:
        """The De-ID decoder; raises where the training had none."""
        _ = self.encoder
        if self._decoder is None:
            raise ConfigError(
                "this peprnet was trained without a decoder (deid=none), so it has no pictures to release: release "
                "its features from Python (PeprNet.protect_features), or train with another deid"
            )
        return self._decoder

    @property
    def trained(self) -> bool:
        """Whether there is an encoder yet."""
        return self._encoder is not None

    def tensors(self) -> dict[str, Tensor]:
        """The weights of encoder and decoder."""
        tensors = with_prefix("encoder", self.encoder.state_dict())
        if self._decoder is not None:
            tensors |= with_prefix("decoder", self._decoder.state_dict())
        return tensors

    def fit(self, split: Split, *, work_dir: Path | None = None, init: Path | None = None) -> Self:
        """Train stage 1 on the labelled people of `split`."""
        if work_dir is None:
            raise ConfigError("peprnet trains networks, which needs a work folder for its state")
        from veilkit.methods.peprnet.training import train_peprnet  # only who trains pays for these imports

        return self.take(train_peprnet(split, self.config, work_dir=work_dir, init=init))

    def take(self, trained: TrainedPepr) -> Self:
        """Take over what a training under this configuration has left."""
        self.__dict__.pop("model_sha256", None)
        self._encoder = trained.encoder.eval().requires_grad_(False)
        self._decoder = None if trained.decoder is None else trained.decoder.eval().requires_grad_(False)
        return self

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """What the decoder draws of each picture's features, by itself; nothing is random."""
        drawing = _Drawing(self.encoder, self.decoder, self.config.unit)
        images = generate_each(drawing, batch.images, self.config.size, own_size=self.config.own_size)
        return Release(images=images, source_index=tuple(range(len(batch))))

    @torch.no_grad()
    def raw_features(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] to features (N, D) of any length, without noise: stage 1 alone."""
        return torch.cat([self.encoder.embed(part) for part in torch.split(images, _CHUNK)])

    def features(self, images: Tensor) -> Tensor:
        """The same at length 1. They are as telling as stage 1 left them, and no release."""
        return unit(self.raw_features(images))

    def protect_features(
        self,
        batch: ImageBatch,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: NoiseKind = "privunit",
        ledger: Ledger | None = None,
    ) -> Release:
        """Stage 2: features (N, D) with noise of the operating system, under a claim for each by itself.

        noise: `privunit` and `laplace` are pure (delta 0), `gaussian` needs a delta; `paper` is as printed,
        calibrated to this batch, and has no formal guarantee. Every call draws afresh and costs again, unless a
        ledger is given: it charges, refuses what is past the budget, and gives a picture its old vector again.
        """
        raw = self.raw_features(batch.images)
        mechanism = noise_mechanism(noise, raw, epsilon=epsilon, delta=delta)
        return noisy_release(raw, batch, mechanism, self.model_sha256, ledger)

    def check(self) -> None:
        """Raise where there is nothing to protect a folder with."""
        _ = self.decoder

    def after_fit(self, out: Path) -> tuple[str, ...]:
        """What each of the two files is for."""
        drawn = "" if self._decoder is None else " and draws de-identified pictures (veilkit protect)"
        notes: tuple[str, ...] = (
            f"{out} makes features{drawn}: keep it as private as the pictures, since who has it can match people.",
            f"{expert_beside(out)} is its encoder alone, as an expert (veilkit experts add): its features have no "
            "noise until a mechanism of veilkit.privacy adds some.",
        )
        if self.config.deid == "clean":
            notes += (
                "Warning: the decoder learned to draw the originals (deid=clean): its pictures protect nobody.",
            )
        return notes

    def save(self, path: Path, *, half: bool = False) -> None:
        """Write encoder and decoder to `path`, and the encoder as an expert to a file beside it.

        half: with 16 bits, in both files, so that expert and method give the same features.
        """
        tensors = half_precision(self.tensors()) if half else self.tensors()
        save_checkpoint(path, tensors, {"method": as_dict(self.config)}, f"method/{self.name}")
        save_reid(expert_beside(Path(path)), self.encoder, half=half)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; the expert beside it is not needed."""
        checkpoint, source = load_checkpoint(path, f"method/{cls.name}"), Path(path).name
        with understood(source):
            config = from_json(cls.default, read_facts(checkpoint.config, {"method": dict})["method"])
        (encoder_weights, decoder_weights), others = split_prefixes(("encoder", "decoder"), checkpoint.tensors)
        refuse_tensors(others, source)
        encoder = built(lambda: ReidNetwork(encoder_config(config)), encoder_weights, source)
        decoder = None
        if decoder_weights:
            decoder = built(lambda: DeidDecoder(decoder_config(config)), decoder_weights, source)
        return cls(config, encoder, decoder)


class _Drawing(nn.Module):
    """Encoder and decoder in a row."""

    def __init__(self, encoder: ReidNetwork, decoder: DeidDecoder, unit: bool) -> None:
        super().__init__()
        self._encoder, self._decoder, self._unit = encoder, decoder, unit

    def forward(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> what the decoder draws, of the same shape."""
        raw = self._encoder.embed(images)
        return cast(Tensor, self._decoder(levelled(raw) if self._unit else raw))
