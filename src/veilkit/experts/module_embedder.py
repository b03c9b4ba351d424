"""Any torch module as an expert, from Python: a network of your own that turns images into feature vectors."""

from __future__ import annotations

import copy
import hashlib
from typing import Literal, cast

import torch
from torch import Tensor, nn

from veilkit.errors import ConfigError
from veilkit.experts.base import Embedder, ExpertInfo, check_images
from veilkit.experts.folding import folded_copy
from veilkit.experts.preprocessing import Preprocessing

_LUMA = (0.299, 0.587, 0.114)  # of red, green and blue (ITU-R BT.601)


class ModuleEmbedder(Embedder):
    """A module (N, channels, H, W), normalised -> (N, D), with the preparation that it needs.

    channels: 1 for networks of infrared or grey pictures; pictures have three, which become their luma, and
    `preprocessing` then normalises by its first mean and std. flip: average the features of each image and its mirror
    image. The module is copied, frozen and set to evaluation mode, its batch norms are folded where that can be done.
    """

    def __init__(
        self,
        module: nn.Module,
        preprocessing: Preprocessing,
        *,
        name: str = "module",
        channels: Literal[1, 3] = 3,
        licence: str = "not stated",
        source: str = "",
        flip: bool = False,
    ) -> None:
        if channels not in (1, 3):
            raise ConfigError(f"channels must be 1 or 3, but got {channels}")
        self._channels = channels
        frozen = copy.deepcopy(module).eval()
        example = torch.rand(1, channels, *preprocessing.size, generator=torch.Generator().manual_seed(0))
        try:
            with torch.no_grad():
                answer = frozen(example)
        except Exception as error:  # whatever a module of one's own raises
            raise ConfigError(
                f"{name}: expected a module that takes images {tuple(example.shape)}, but it failed on one: {error}; "
                "check channels and the size of the preprocessing"
            ) from error
        if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != 1:
            got = tuple(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
            raise ConfigError(
                f"a module must turn (N, {channels}, H, W) into features (N, D), but one image gave {got}; "
                "wrap it so that it returns the features alone"
            )
        self._module = folded_copy(frozen, example).requires_grad_(False)
        self._module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's stubs
        self._info = ExpertInfo(
            name=name,
            kind="embedder",
            dim=answer.shape[1],
            sha256=_digest(module, channels),
            differentiable=True,
            licence=licence,
            source=source,
            origin="user",
            preprocessing=preprocessing,
            flip=flip,
        )

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is; sha256 is that of its weights and of its printed structure."""
        return self._info

    def embed(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1], any size -> (N, D), not L2-normalised; gradients reach the images."""
        check_images(images)
        if not len(images):
            return images.new_zeros(0, self.dim)
        features = self._features(images)
        return (features + self._features(images.flip(3))) / 2 if self._info.flip else features

    def _features(self, images: Tensor) -> Tensor:
        preprocessing = cast(Preprocessing, self._info.preprocessing)
        if self._channels == 1:
            luma = (images * images.new_tensor(_LUMA)[:, None, None]).sum(1, keepdim=True)
            mean, std = preprocessing.mean[0], preprocessing.std[0]
            grey = Preprocessing(preprocessing.size, (mean,) * 3, (std,) * 3)
            prepared = grey(luma.expand(-1, 3, -1, -1))[:, :1]
        else:
            prepared = preprocessing(images)
        return cast(Tensor, self._module(prepared.contiguous(memory_format=torch.channels_last)))


def _digest(module: nn.Module, channels: int) -> str:
    """A hash of weights and structure: a module of one's own has no file."""
    total = hashlib.sha256(f"{channels} {module}".encode())
    for name, value in sorted(module.state_dict().items()):
        total.update(name.encode())
        total.update(value.detach().contiguous().cpu().numpy().tobytes())
    return total.hexdigest()
