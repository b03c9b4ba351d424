"""The decoder of a learned anonymiser: the secret half, which makes originals of released pictures, nearly."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.checkpoint import built, content_sha256, load_checkpoint, save_checkpoint, understood
from veilkit.configs import from_json, read_facts
from veilkit.errors import CheckpointError, ConfigError
from veilkit.networks.pix2pix_unet import Pix2PixConfig, Pix2PixUNet
from veilkit.networks.reid import check_input_size

DECODER_KIND = "decoder"
_FACTS = {"generator": dict, "size": tuple[int, int], "method": str, "model": str}


class Decoder:
    """A generator from released pictures to originals, at the working size (height, width).

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
