"""A Re-ID network as an expert: frozen, quick, and differentiable to the image."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from veilkit.experts.base import Embedder, ExpertInfo, Origin, check_images
from veilkit.experts.folding import folded_copy
from veilkit.experts.preprocessing import Preprocessing
from veilkit.experts.weights_files import file_sha256
from veilkit.networks.backbones import Backbone
from veilkit.networks.reid import ReidNetwork, load_reid


class TorchEmbedder(Embedder):
    """Features after BNNeck of a Re-ID network; resize and normalisation are inside the network.

    The network is copied, frozen and set to evaluation mode, its batch norms are folded into its convolutions and its
    weights laid out channels last. flip: average the features of each image and its mirror image, at twice the cost;
    `info` says so. batch_size: images that go through the network at a time.
    """

    def __init__(self, network: ReidNetwork, info: ExpertInfo, *, flip: bool = False, batch_size: int = 64) -> None:
        self._info, self._batch_size = replace(info, flip=flip), batch_size
        frozen = copy.deepcopy(network).eval()
        example = torch.rand(1, 3, *network.config.size, generator=torch.Generator().manual_seed(0))
        # A backbone is a module with two more attributes, which the copy keeps.
        frozen.backbone = cast(Backbone, folded_copy(cast(nn.Module, frozen.backbone), example))
        frozen.requires_grad_(False)
        frozen.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's stubs
        self._network = frozen

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        name: str | None = None,
        licence: str = "not stated",
        source: str = "",
        origin: Origin = "file",
        card: str = "",
        flip: bool = False,
        batch_size: int = 64,
    ) -> TorchEmbedder:
        """The expert of a model file that Re-ID training wrote; its name is the file's, unless given."""
        path = Path(path)
        network = load_reid(path)
        config = network.config
        info = ExpertInfo(
            name=name or path.stem,
            kind="embedder",
            dim=feature_length(network),
            sha256=file_sha256(path),
            differentiable=True,
            licence=licence,
            source=source,
            origin=origin,
            preprocessing=Preprocessing(config.size, config.mean, config.std),
            card=card,
        )
        return cls(network, info, flip=flip, batch_size=batch_size)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return self._info

    def embed(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1], any size -> (N, D), not L2-normalised; gradients reach the images."""
        check_images(images)
        if not len(images):
            return images.new_zeros(0, self.dim)
        return torch.cat([self._embed_chunk(chunk) for chunk in torch.split(images, self._batch_size)])

    def _embed_chunk(self, images: Tensor) -> Tensor:
        features = self._network.embed(images)
        return (features + self._network.embed(images.flip(3))) / 2 if self._info.flip else features


def feature_length(network: ReidNetwork) -> int:
    """D of the network's features: all bands in a row, or what they are projected to."""
    config = network.config
    return config.projection or sum(config.bands) * (config.reduced or network.backbone.channels)
