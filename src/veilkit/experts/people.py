"""Re-ID networks of others as judges, from the folder of weights: stronger strangers than what comes with veilkit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.base import ExpertInfo, NetworkEmbedder
from veilkit.experts.names import file_sha256, weights_file
from veilkit.experts.onnx import OnnxEmbedder
from veilkit.experts.openvino_faces import compiled
from veilkit.experts.preprocessing import NORMALISATIONS, Preprocessing

_RETAIL = "person-reidentification-retail-0277"
_SIZE = (256, 128)
_DIM = 256


class RetailPerson(NetworkEmbedder):
    """Intel's largest Re-ID network (Open Model Zoo) by OpenVINO, 256 numbers; no gradient passes it."""

    def __init__(self, network: Any, info: ExpertInfo) -> None:
        super().__init__(info, batch_size=1)
        self._network = network

    @classmethod
    def load(cls, *, flip: bool = False) -> RetailPerson:
        """From the folder of weights."""
        if flip:
            raise ConfigError("this network is used without mirror images: load it without flip")
        weights, network = weights_file(f"{_RETAIL}.bin"), compiled(weights_file(f"{_RETAIL}.xml"))
        info = ExpertInfo(
            "retail-0277", "embedder", _DIM, file_sha256(weights), False, "Apache-2.0",
            f"Open Model Zoo, {_RETAIL}; what it was trained on is not told",
            preprocessing=Preprocessing(_SIZE, *NORMALISATIONS["bytes"], order="bgr"),
        )  # fmt: skip
        return cls(network, info)

    def _features(self, images: Tensor) -> Tensor:
        assert self.info.preprocessing is not None  # `load` gives it
        prepared = self.info.preprocessing(images).contiguous().numpy()
        (out,) = self._network([prepared]).values()
        return torch.from_numpy(np.array(out, dtype=np.float32)).view(len(images), _DIM)


def load_osnet(*, flip: bool = False) -> OnnxEmbedder:
    """OSNet x0.25 (Zhou et al. 2019), trained on MSMT17."""
    return OnnxEmbedder.load(
        weights_file("osnet_x0_25_msmt17.onnx"), Preprocessing(_SIZE, *NORMALISATIONS["imagenet"]), name="osnet-0.25",
        flip=flip, source="public weights, OSNet x0.25 trained on MSMT17",
    )  # fmt: skip
