"""FRO on faces in small (the paper's Figure 6): pool and students, judged on people whom nobody trained on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from studies.fro_faces.plan import FaceStudyConfig
from studies.shared.cells import Cell, CellStore
from studies.shared.face_data import same_class_pairs, split_people, write_middles
from studies.shared.face_verification import verify
from veilkit.datasets.lfw import Lfw
from veilkit.datasets.soft_labels import Views
from veilkit.methods.fro.method import Fro, FroConfig
from veilkit.methods.fro.pool import load_synthetic, views_of
from veilkit.metrics import ssim
from veilkit.networks.reid import ReidNetwork, load_reid
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.training.pixels import read_pixels
from veilkit.training.reid import train_reid
from veilkit.types import Split


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
