"""What was learned of the generator's styles from its own faces: landmarks, traits, and early pictures.

`models/fit_photoreal.py` writes the file. Points are 68 landmarks (iBUG) in the frame of the generator's pictures, as
shares of their side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from veilkit.checkpoint import built, load_checkpoint, save_checkpoint
from veilkit.errors import CheckpointError, ConfigError
from veilkit.synthetic.photoreal.network import CHANNELS, EARLY, EarlyImage

KIND = "photoreal style space"
_FARTHEST = 1.25  # of a style's coordinates, root mean square; those of random faces have about 1
_FIRM = 3.0  # how much a trait that moves weighs beside landmarks
_FILE = "space.safetensors"
_PARTS = ("mean", "basis", "shape", "shape_by_style", "rows", "within", "box", "centre", "traits", "trait_bias",
          "told", "told_bias", "features_by_style", "features",
          "fringe_by_style", "fringe")  # fmt: skip
TRAITS = ("sex", "age", "glasses", "tone")
"""Read off a style, roughly: how male (-1 to 1), how old (children -1, up to 45 years 0, older 1), glasses (0 to 1),
and how light the skin is (CIELAB's L less 65, over 20)."""


@dataclass(frozen=True, eq=False)
class StyleSpace:
    """mean (512,): of styles. basis (K, 512): their principal components, each as long as its standard deviation.

    shape (136,), shape_by_style (K, 136): landmarks of the mean style, and what a unit of a component adds, after the
    similarity that takes them nearest to `mean_shape`. rows (R, 136): combinations of landmarks, of standard
    deviation 1 in people: how wide and how open the mouth is and how open the eyes are, then in the order of how much
    more they vary within a person (pose, expression) than from person to person; within (R,): that share. box (4,):
    where a face detector sees the face. centre (128,): mean features of dlib's identity network. features (128,),
    features_by_style (K, 128): those features of the mean style's face, and what a unit of a component adds. traits
    (4, 512), told (4, 128): `TRAITS` by style, and by those features. fringe, fringe_by_style (K,): the share of hair
    above the brows.
    """

    tensors: Mapping[str, Tensor]
    early: dict[int, EarlyImage]

    @classmethod
    def load(cls, path: Path | None = None) -> Self:
        """From its file; without a path, the one that comes with veilkit."""
        if path is not None:
            return cls._read(path)
        packaged = resources.files(__package__) / _FILE
        if not packaged.is_file():
            raise CheckpointError(f"this installation lacks {_FILE} of photoreal faces; install veilkit again")
        with resources.as_file(packaged) as file:
            return cls._read(file)

    @classmethod
    def _read(cls, path: Path) -> Self:
        tensors = dict(load_checkpoint(path, KIND).tensors)
        early = {}
        for side, block in EARLY.items():
            start = f"early{side}."
            own = {name.removeprefix(start): tensors.pop(name) for name in list(tensors) if name.startswith(start)}
            inputs = CHANNELS[block - 1]
            network: nn.Module = built(lambda inputs=inputs: EarlyImage(inputs), own, path.name)  # type: ignore[misc]
            early[side] = network.eval().requires_grad_(False)
        if missing := [name for name in _PARTS if name not in tensors]:
            raise CheckpointError(f"{path.name}: expected {', '.join(missing)}; fit it again")
        return cls({name: tensor.float() for name, tensor in tensors.items()}, early)  # type: ignore[arg-type]

    def save(self, path: Path) -> str:
        """Write the file, in half precision; returns its SHA-256."""
        networks = {f"early{side}.{name}": value for side, each in self.early.items()
                    for name, value in each.state_dict().items()}  # fmt: skip
        return save_checkpoint(path, {name: t.half() for name, t in {**self.tensors, **networks}.items()}, {}, KIND)

    @property
    def mean_shape(self) -> Tensor:
        """(68, 2)."""
        return self.tensors["shape"].view(68, 2)

    def coordinates(self, styles: Tensor) -> Tensor:
        """Styles (N, 512) -> (N, K), of standard deviation 1 each."""
        basis = self.tensors["basis"]
        return (styles - self.tensors["mean"]) @ (basis / basis.square().sum(1, keepdim=True)).T

    def shapes(self, styles: Tensor) -> Tensor:
        """The landmarks that styles (N, 512) are expected to have, (N, 68, 2)."""
        told = self.tensors["shape"] + self.coordinates(styles) @ self.tensors["shape_by_style"]
        return told.view(-1, 68, 2)

    def moved(self, styles: Tensor, by: Tensor, components: int, *, ridge: float = 0.05) -> Tensor:
        """The styles nearest to `styles` (N, 512) whose landmarks differ by `by` (N, 68, 2) in the first components.

        Least squares with a penalty: of all ways to move the landmarks the one that is least unlikely in faces.
        Traits stay, or a smile would bring long hair along.
        """
        push, rows = self._push(components, ridge)
        moved = styles + (by.flatten(1) @ rows.T) @ push
        # Too far from the average face there are no faces.
        lengths = self.coordinates(moved).norm(dim=1, keepdim=True) / self.components_of_style**0.5
        mean = self.tensors["mean"]
        shortened: Tensor = mean + (moved - mean) * (_FARTHEST / lengths.clamp(min=_FARTHEST))
        return shortened

    def _push(self, components: int, ridge: float) -> tuple[Tensor, Tensor]:
        rows = self.tensors["rows"]
        if not 0 <= components <= len(rows):
            raise ConfigError(f"components must be 0 to {len(rows)}, but is {components}")
        rows = rows[:components]
        traits = _FIRM * self.tensors["basis"] @ self.tensors["traits"].T
        effect = torch.cat([self.tensors["shape_by_style"] @ rows.T, traits], 1)  # (K, R + traits)
        gram = effect.T @ effect + ridge * torch.eye(effect.shape[1])
        return torch.linalg.solve(gram, effect.T)[:components] @ self.tensors["basis"], rows

    def traits(self, styles: Tensor) -> Tensor:
        """(N, 4): `TRAITS` of styles (N, 512)."""
        return styles @ self.tensors["traits"].T + self.tensors["trait_bias"]

    def told(self, features: Tensor) -> Tensor:
        """(N, 4): `TRAITS`, as far as they can be told from dlib's features (N, 128) of a face."""
        return features @ self.tensors["told"].T + self.tensors["told_bias"]

    def features(self, styles: Tensor) -> Tensor:
        """dlib's features that the faces of styles (N, 512) are expected to have, (N, 128)."""
        return self.tensors["features"] + self.coordinates(styles) @ self.tensors["features_by_style"]

    def fringe(self, styles: Tensor) -> Tensor:
        """(N,): the share of hair that is expected a little above the brows, of styles (N, 512)."""
        return self.tensors["fringe"] + self.coordinates(styles) @ self.tensors["fringe_by_style"]

    @property
    def components_of_style(self) -> int:
        """K, how many principal components of styles there are."""
        return len(self.tensors["basis"])
