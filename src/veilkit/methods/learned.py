"""What methods with trained networks share: drawing with them, settings after the training, and the decoder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.checkpoint import built, content_sha256, load_checkpoint, save_checkpoint, understood
from veilkit.configs import as_dict, digest, from_json, read_facts, with_settings
from veilkit.errors import CheckpointError, ConfigError
from veilkit.methods.base import Method
from veilkit.networks.pix2pix import Pix2PixConfig, Pix2PixUNet
from veilkit.networks.reid import check_input_size

DECODER_KIND = "decoder"
_FACTS = {"generator": dict, "size": tuple[int, int], "method": str, "model": str}


class OwnSize(Protocol):
    """A configuration, frozen, of which `own_size` still counts after the training."""

    @property
    def own_size(self) -> bool:
        """Whether released pictures have their originals' size instead of the working size."""


C = TypeVar("C", bound=OwnSize)


class Trained(Method[C]):
    """A method whose networks redraw pictures, and are told apart by a fingerprint of their weights."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """The weights of its model file; raises ConfigError where nothing was trained."""

    @property
    @abstractmethod
    def trained(self) -> bool:
        """Whether there are networks yet."""

    @cached_property
    def model_sha256(self) -> str:
        """A fingerprint of the weights, by which releases and decoders know the model."""
        return content_sha256(self.tensors(), {}, f"method/{self.name}")

    def public_config(self) -> dict[str, Any]:
        """The configuration, and the fingerprint of the weights."""
        return {**as_dict(self.config), "model": self.model_sha256}

    def fingerprint(self) -> str:
        """A hash of the configuration and of the weights."""
        return f"{self.name}:{digest(self.config)}:{self.model_sha256 if self.trained else 'no model'}"

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same networks under another `own_size`; how they were trained cannot change any more."""
        config = with_settings(self.config if preset is None else self.preset_table()[preset], settings or {})
        if replace(config, own_size=self.config.own_size) != self.config:  # type: ignore[type-var]
            raise ConfigError(f"this {self.name} is trained already: only own_size can still be set")
        changed = copy(self)
        changed.config = config
        return changed


class Decoder:
    """The secret half of a learned anonymiser: a generator from released pictures to, nearly, their originals.

    size: the working size (height, width).
    method: whose pictures it undoes. model: the fingerprint of the anonymiser that it was trained with; it is of no
    use for any other. sha256: of its own file's content.
    """

    def __init__(self, generator: Pix2PixUNet, size: tuple[int, int], method: str, model: str) -> None:
        self.generator = generator.eval().requires_grad_(False)
        self.size, self.method, self.model = size, method, model

    def recover(self, images: Tensor) -> Tensor:
        """Pictures (N, 3, H, W) in [0, 1] as they were released to what the originals looked like, in the same size.

        Each by itself, so that no result depends on its neighbours.
        """
        return generate_each(self.generator, images, self.size)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of what the file holds: it names the decoder in logs."""
        return content_sha256(self._tensors(), self._config(), DECODER_KIND)

    def save(self, path: Path) -> None:
        """Write the decoder. Whoever has the file can undo the protection."""
        save_checkpoint(path, self._tensors(), self._config(), DECODER_KIND)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        try:
            checkpoint = load_checkpoint(path, DECODER_KIND)
        except CheckpointError as error:
            if "expected a model of kind" not in str(error):
                raise
            raise CheckpointError(
                f"{error}; a decoder is the file OUT.decoder.safetensors that `veilkit fit` writes beside the model"
            ) from None
        source = Path(path).name
        with understood(source):
            facts = read_facts(checkpoint.config, _FACTS)
            config = from_json(Pix2PixConfig(), facts["generator"])
            check_input_size("size", facts["size"])
            if any(side % 2**config.depth for side in facts["size"]):
                raise ConfigError(f"size must be multiples of {2**config.depth}, but got {facts['size']}")
        generator = built(lambda: Pix2PixUNet(config), checkpoint.tensors, source)
        return cls(generator, facts["size"], facts["method"], facts["model"])

    def _config(self) -> dict[str, Any]:
        generator = asdict(self.generator.config)
        return {"generator": generator, "size": list(self.size), "method": self.method, "model": self.model}

    def _tensors(self) -> dict[str, Tensor]:
        return dict(self.generator.state_dict())


@torch.no_grad()
def generate_each(generator: nn.Module, images: Tensor, size: tuple[int, int], *, own_size: bool = True) -> Tensor:
    """What a generator in evaluation mode makes of each picture (N, 3, H, W) by itself, at `size` (height, width).

    own_size: bring the answers back to the pictures' own size. Pictures of just `size` are not resized at all.
    """
    before = (images.shape[2], images.shape[3])
    made = [generator(resized(image[None], size)) for image in images]
    answers = torch.cat(made) if made else images
    return (resized(answers, before) if own_size else answers).clamp(0, 1)


def resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Images (N, 3, H, W) at another size (height, width), bilinearly; where they shrink, without aliasing."""
    if (images.shape[2], images.shape[3]) == size:
        return images
    return F.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=True).clamp(0, 1)


def expert_beside(model: Path) -> Path:
    """Where the recogniser that was trained with a model goes."""
    return model.with_name(f"{model.stem}.expert.safetensors")


def decoder_beside(model: Path) -> Path:
    """Where the decoder of a model file goes."""
    return model.with_name(f"{model.stem}.decoder.safetensors")
