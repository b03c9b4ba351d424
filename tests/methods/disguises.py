"""Small Disguises and stand-ins of their experts for tests: not trained, or seconds at most."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from tests.methods.experts import tiny_expert_file
from veilkit.experts import load_expert
from veilkit.experts.base import Detections, Detector, ExpertInfo
from veilkit.experts.preprocessing import Preprocessing
from veilkit.experts.torch_embedder import ModuleEmbedder
from veilkit.methods.disguise.critics import CriticsConfig
from veilkit.methods.disguise.identity import IdentityEncoder, new_ensemble
from veilkit.methods.disguise.identity_transforms import TransformConfig, make_transform
from veilkit.methods.disguise.method import Disguise, DisguiseConfig
from veilkit.methods.disguise.model import DisguiseModel
from veilkit.methods.disguise.swapper import Swapper, SwapperConfig
from veilkit.rng import Randomness
from veilkit.synthetic.faces import render_group

_FOLDER = tempfile.TemporaryDirectory(prefix="veilkit-tests-")
TINY = DisguiseConfig(
    finder="whole",
    transform=TransformConfig(dim=12, mlp=(16, 16), ved=(16, 16), latent=8, noise=1.0),
    swapper=SwapperConfig(size=32, width=4, halvings=2, blocks=2, dim=12),
    critics=CriticsConfig(count=2, width=4, layers=2),
    ensemble_steps=3,
    swapper_steps=4,
    joint_steps=4,
    batch=4,
    rate=1e-3,
    check_every=4,
    save_every=2,
    validation=0.2,
    least_side=8,
)


class TinyFace(nn.Module):
    """(N, 3, 16, 16) -> (N, dim): a stand-in for a network of faces, through which gradients pass."""

    def __init__(self, dim: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.maps = nn.Conv2d(3, 8, 5, stride=3)
            self.out = nn.Linear(8 * 16, dim)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(torch.tanh(2 * self.maps(images)).flatten(1))


@cache
def tiny_identity(dim: int = 12, seed: int = 0) -> ModuleEmbedder:
    """An identity or utility expert."""
    return ModuleEmbedder(TinyFace(dim, seed), Preprocessing((16, 16), (0.5,) * 3, (0.25,) * 3), name=f"face{seed}")  # type: ignore[arg-type]


class KnownFaces(Detector):
    """The ground truth of one picture as a finder; it knows no other picture."""

    def __init__(self, boxes: Sequence[Sequence[float]], points: Tensor | None = None) -> None:
        self._boxes = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
        self._points = torch.zeros(len(self._boxes), 0, 2) if points is None else points.float()

    @property
    def info(self) -> ExpertInfo:
        return ExpertInfo(
            name="truth", kind="detector", dim=0, sha256="0" * 64, differentiable=False, licence="none",
            source="truth", origin="user",
        )  # fmt: skip

    def detect(self, images: Tensor) -> list[Detections]:
        return [Detections(self._boxes, torch.ones(len(self._boxes)), self._points)] * len(images)


@cache
def group_picture() -> tuple[Tensor, tuple[tuple[float, ...], ...], Tensor]:
    """Three generated people: the picture (3, H, W) in [0, 1], their boxes, their five points (3, 5, 2)."""
    pixels, truths = render_group(3, [1, 2, 3], 1, size=80)
    picture = torch.from_numpy(pixels).permute(2, 0, 1).float().div(255)
    points = torch.from_numpy(np.stack([truth.five for truth in truths]))
    return picture, tuple(truth.box for truth in truths), points


def tiny_model(
    config: DisguiseConfig = TINY, identity: Sequence[ModuleEmbedder] = (), seed: int = 0
) -> DisguiseModel:
    """Random networks, with weights large enough that identities matter."""
    experts = identity or (tiny_identity(),)
    dim = config.transform.dim
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        swapper, transform = Swapper(config.swapper), make_transform(config.transform)
        with torch.no_grad():
            for block in swapper.blocks:
                for layer in (block.first_style, block.second_style):
                    layer.weight.mul_(8)
            swapper.train()(torch.rand(8, 3, 32, 32), nn.functional.normalize(torch.randn(8, dim)))
    encoder = IdentityEncoder(experts, dim)
    ensemble = None
    if encoder.needs_ensemble:
        ensemble = new_ensemble(experts, dim, Randomness.from_seed(seed)).eval().requires_grad_(False)
    return DisguiseModel(
        swapper.eval().requires_grad_(False), transform.eval().requires_grad_(False), ensemble, encoder.fingerprint,
        tuple(expert.dim for expert in experts), 5.0, torch.zeros(0, dim),
    )  # fmt: skip


def tiny_disguise(config: DisguiseConfig = TINY, **parts: object) -> Disguise:
    """A method with its stand-in expert."""
    return Disguise(config, tiny_model(config), identity=(tiny_identity(),), **parts)  # type: ignore[arg-type]


@cache
def tiny_disguise_file() -> str:
    """A model file whose identity expert is a file, too, joined to 12 numbers by an ensemble."""
    from dataclasses import replace

    config = replace(TINY, identity=(tiny_expert_file("vit-small"),))
    expert = load_expert(config.identity[0])
    file = Path(_FOLDER.name) / "disguise.safetensors"
    Disguise(config, tiny_model(config, (expert,))).save(file)  # type: ignore[arg-type]
    return str(file)
