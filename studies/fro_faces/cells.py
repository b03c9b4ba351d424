"""FRO on faces in small (the paper's Figure 6): pool and students, judged on people whom nobody trained on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from studies.shared.cells import Cell, CellStore
from studies.shared.face_data import same_class_pairs, split_people, verify, write_middles
from veilkit.datasets.lfw import Lfw
from veilkit.datasets.soft_labels import Views
from veilkit.errors import ConfigError
from veilkit.methods.fro.method import Fro, FroConfig
from veilkit.methods.fro.pool import load_synthetic, views_of
from veilkit.metrics import ssim
from veilkit.networks.reid import ReidNetwork, load_reid
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.training.loop import Decay
from veilkit.training.pixels import read_pixels
from veilkit.training.reid import train_reid
from veilkit.training.reid_config import PLAIN, ReidConfig
from veilkit.types import Split

MODELS = ("pool", "originals", "student")


@dataclass(frozen=True, slots=True)
class FaceStudyConfig:
    """people: how many are trained on, those with the most pictures outside the test folds, at least `fewest` each.

    shots: of one person at most, in training and test. folds: whose pairs, and people, are for the test alone.
    middle: side of the square in the middle of a stored picture that is used, in pixels; it is resized to `size`.
    epochs, rate: of pool and students, by Adam; the rate falls to zero by a cosine. steps, scale: of the synthesis.
    frozen: leading parts of the backbone that stay as the weights they start from have them. replay: temperature at
    which students match the pool's logits. pairs: at most so many
    for SSIM.
    """

    people: int = 300
    fewest: int = 4
    shots: int = 6
    folds: tuple[int, ...] = (8, 9, 10)
    middle: int = 120
    backbone: str = "mobilenetv2"
    size: tuple[int, int] = (96, 96)
    epochs: int = 16
    rate: float = 1e-3
    frozen: int = 0
    batch: int = 16
    replay: float = 4.0
    preset: str = "varied"
    steps: int = 40
    scale: float = 1.0
    pairs: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if len(set(self.folds)) < 2:
            raise ConfigError(f"folds must name two or more, to choose a threshold on others, but got {self.folds}")
        if self.people < 2 or not 2 <= self.fewest <= self.shots or self.pairs < 1:
            raise ConfigError(
                "expected people >= 2, 2 <= fewest <= shots and pairs >= 1, "
                f"but got {self.people}, {self.fewest}, {self.shots} and {self.pairs}"
            )

    def recipe(self, *, pretrained: bool) -> ReidConfig:
        """Of the pool and of both students: cross-entropy alone, as in the paper, at a rate for a few epochs."""
        return replace(
            PLAIN, backbone=self.backbone, size=self.size, epochs=self.epochs, rate=self.rate, warmup=1,
            decay=Decay.COSINE, frozen=self.frozen if pretrained else 0, identities=self.batch, seed=self.seed,
        )  # fmt: skip


class FaceCells:
    """The cells of the study: verification by three models, and similarity. Nothing is computed twice."""

    def __init__(
        self, lfw: Lfw, folder: Path, config: FaceStudyConfig, cells: CellStore, *, init: Path | None, workers: int
    ) -> None:
        self.lfw, self.folder, self.config, self._cells = lfw, folder, config, cells
        self._init, self._workers = init, workers
        self._recipe = config.recipe(pretrained=init is not None)
        self._pool_file = folder / "pool.safetensors"

    def cell(self, name: str) -> Cell:
        """A cell by its name, `faces/MODEL` or `faces/ssim`."""
        last = name.removeprefix("faces/")
        return self._cells.get(name, self.similarity if last == "ssim" else lambda: self.verified(last))

    def draw(self) -> None:
        """There are no figures."""

    def verified(self, model: str) -> dict[str, Any]:
        """Verification of the test people by pool, originals (their student) or student (of FRO)."""
        pictures, network = self._network(model)
        config = self.config
        found = verify(
            network, self.lfw, self._splits()[1], folds=config.folds, middle=config.middle, size=config.size,
            seed=config.seed,
        )  # fmt: skip
        return {"pictures": pictures, **found}

    def similarity(self) -> dict[str, Any]:
        """Mean SSIM over pairs of a synthetic picture and an original of the same class."""
        made, originals = self._synthetic()[0], self._originals()
        rng = Randomness.from_seed(self.config.seed).child("ssim").numpy()
        order = rng.permutation(len(made))[: self.config.pairs]
        pairs = same_class_pairs(made, originals, order.tolist(), rng.random(len(order)).tolist())
        ours, theirs = (read_pixels(split, self.config.size) for split in pairs)
        values = torch.cat(
            [
                ssim(ours[start : start + 64].float().div(255), theirs[start : start + 64].float().div(255))
                for start in range(0, len(ours), 64)
            ]
        )
        return {"pairs": len(values), "ssim": float(values.mean()), "deviation": float(values.std())}

    def _splits(self) -> tuple[Split, Split]:
        config = self.config
        return split_people(
            self.lfw, config.folds, people=config.people, fewest=config.fewest, shots=config.shots
        )  # fmt: skip

    def _originals(self) -> Split:
        return write_middles(self._splits()[0], self.folder / "originals", self.config.middle)

    def _fro(self) -> Fro:
        if not self._pool_file.exists():
            fro = Fro(FroConfig(pool=self._recipe))
            work = self.folder / "work" / "pool"
            fro.fit(self._originals(), work_dir=work, init=self._init).save(self._pool_file)
        return Fro.load(self._pool_file)

    def _synthetic(self) -> tuple[Split, Tensor]:
        self._fro()
        target = self.folder / "releases" / "fro"
        protect(
            self._originals().root, target, "fro", model=self._pool_file, preset=self.config.preset,
            settings={"scale": self.config.scale, "assembly.steps": self.config.steps}, seed=self.config.seed,
            names="kept", labels="folder", workers=self._workers,
        )  # fmt: skip
        return load_synthetic(target)

    def _network(self, model: str) -> tuple[int, ReidNetwork]:
        """A model, and how many pictures it was trained on."""
        originals = self._originals()
        if model == "pool":
            network = self._fro().pool.network
            assert network is not None
            return len(originals), network
        if model == "student":
            split, logits = self._synthetic()
            targets = views_of(split, logits)
        else:
            split = originals
            targets = Views.seen_by(self._fro().pool.logits, read_pixels(split, self.config.size))
        out = self.folder / "students" / f"{model}.safetensors"
        out.parent.mkdir(exist_ok=True)
        if not out.exists():
            recipe = replace(self._recipe, temperature=self.config.replay)
            work = self.folder / "work" / model
            train_reid(split, recipe, out, work_dir=work, init=self._init, targets=targets)
        return len(split), load_reid(out)
