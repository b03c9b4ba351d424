"""FRO's comparison in small: a pool, releases, and the students of each, measured on people nobody trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from studies.fro.attacks import attack_synthetic
from studies.fro.plan import CLUSTERED, RIVALS, FroStudyConfig
from studies.fro.shadows import shadow_attack, shadow_parts
from studies.fro.splits import chosen, copied_by_person, hold_back, thinned
from studies.fro.tables import release_name
from studies.shared.cells import Cell, CellStore
from studies.shared.clustering import clustering, draw_plane
from studies.shared.study import by_kind
from veilkit.attacks.intervals import retrieval_scores
from veilkit.datasets.folder import load_folder
from veilkit.datasets.labelled import first_people
from veilkit.datasets.market1501 import Market1501
from veilkit.datasets.soft_labels import Views
from veilkit.experts import Embedder
from veilkit.methods.fro.method import Fro, FroConfig
from veilkit.methods.fro.pool import load_synthetic, views_of
from veilkit.metrics import ssim
from veilkit.networks.reid import ReidNetwork, load_reid
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.training.pixels import read_pixels
from veilkit.training.reid import train_reid
from veilkit.training.retrieval import embed_pixels, evaluate_reid
from veilkit.types import Role, Split


class FroCells:
    """The cells of the study. Nothing is computed before it is asked for, and nothing twice."""

    def __init__(
        self,
        data: Market1501,
        folder: Path,
        config: FroStudyConfig,
        cells: CellStore,
        *,
        judge: Embedder,
        init: Path | None,
        workers: int,
    ) -> None:
        self.config, self.folder, self.data, self.judge = config, folder, data, judge
        self._cells, self._init, self._workers = cells, init, workers
        self._recipe = config.recipe(pretrained=init is not None)
        trained, self.unseen = hold_back(first_people(data.train, config.people), config.held_back)
        self._train = copied_by_person(trained, folder / "originals")
        self._pool_file = folder / "pool.safetensors"
        self._pixels: dict[str, Tensor] = {}
        self._releases: dict[str, tuple[Split, Tensor]] = {}

    def cell(self, name: str) -> Cell:
        """A cell by its name."""
        kinds: dict[str, Callable[..., Cell]] = {
            "pool": self.pool, "student": self._student_cell, "ssim": self.similarity, "clusters": self.clusters,
            "attacks": lambda by: self.shadow_attacks() if by == "shadows" else self.attacks(),
            "mixup": lambda release: self.mixup_clusters(float(release.removeprefix("mixup-"))),
            "grid": self._grid_cell,
        }  # fmt: skip
        return by_kind(name, kinds)

    def draw(self) -> None:
        """Features in the plane by t-SNE, for each pair of `CLUSTERED`."""
        for model, seen in CLUSTERED:
            file = self.folder / f"tsne-{model}-{seen}.svg"
            if not file.exists():
                draw_plane(file, f"{release_name(model)}'s features of {release_name(seen)}",
                           *self.features(model, seen), seed=self.config.seed)  # fmt: skip

    def _student_cell(self, release: str) -> Cell:
        if release == "originals":
            return self.student_of_originals()
        if release == "fro-paper":
            return self.student_of_paper()
        return self.rival(release) if release in RIVALS else self.student(float(release.removeprefix("fro-")))

    def _grid_cell(self, name: str) -> Cell:
        temperature, softening = name.removeprefix("grid-T").split("-e")
        return self.grid(float(temperature), float(softening))

    # The comparison (Table 1 in small)

    def pool(self) -> dict[str, Any]:
        """Rank-1 and mAP of the pool on the test people."""
        return self._cells.get("pool", lambda: self._scored(self._fro().pool.network))

    def student_of_originals(self) -> dict[str, Any]:
        """The same recipe and the same soft targets on the originals: what replay itself costs."""
        return self._cells.get("student/originals", lambda: self._student("originals", self._train))

    def student(self, scale: float) -> dict[str, Any]:
        """The student of FRO's synthetic set at `scale`."""
        name = f"fro-{scale:g}"
        return self._cells.get(f"student/{name}", lambda: self._student(name, *self.synthetic(scale)))

    def student_of_paper(self) -> dict[str, Any]:
        """The student of the paper's own synthesis and replay, without what we added, at `paper_scale`."""

        def compute() -> dict[str, Any]:
            scale = self.config.paper_scale
            made = self._made("fro-paper", self._train.root, scale, {}, preset="paper")
            return self._student("fro-paper", *made, replay=1.0)

        return self._cells.get("student/fro-paper", compute)

    def rival(self, method: str) -> dict[str, Any]:
        """The student of a pixel-level release of the same originals, taught by the pool."""
        return self._cells.get(f"student/{method}", lambda: self._student(method, self._released(method)))

    def grid(self, temperature: float, softening: float) -> dict[str, Any]:
        """One cell of Figure 8."""
        name = f"grid-T{temperature:g}-e{softening:g}"

        def compute() -> dict[str, Any]:
            some = copied_by_person(
                first_people(self._train, self.config.grid_people), self.folder / "grid-originals"
            )
            settings = {"assembly.temperature": temperature, "assembly.softening": softening}
            return self._student(name, *self._made(name, some.root, self.config.grid_scale, settings))

        return self._cells.get(f"grid/{name}", compute)

    # How much is seen (Figure 4), and how features cluster (Figures 3, 5 and 7)

    def similarity(self, release: str) -> dict[str, Any]:
        """Mean SSIM over pairs of an original and a released picture of the same class."""
        return self._cells.get(f"ssim/{release}", lambda: self._similarity(release))

    def clusters(self, model: str, pictures: str) -> dict[str, Any]:
        """Silhouette and ARI of the features that pool, fro-1 or patches give to train, val or a release."""
        return self._cells.get(
            f"clusters/{model}/{pictures}", lambda: clustering(*self.features(model, pictures), self.config.seed)
        )

    def mixup_clusters(self, ratio: float) -> dict[str, Any]:
        """Figure 7: how the pool's features of mix-up pictures cluster by the main person."""
        name = f"mixup-{ratio:g}"

        def compute() -> dict[str, Any]:
            split = self._released("mixup", name, {"ratio": ratio})
            return clustering(*self._features(self._network("pool"), split, name), self.config.seed)

        return self._cells.get(f"mixup/{name}", compute)

    def features(self, model: str, pictures: str) -> tuple[np.ndarray, np.ndarray]:
        """Features (N, D) of some people's pictures, and the people's numbers (N,)."""
        if pictures == "train":
            split = self._train
        elif pictures == "val":
            split = self.data.gallery
        elif pictures.startswith("fro-"):
            split, _ = self.synthetic(float(pictures.removeprefix("fro-")))
        else:
            split = self._released(pictures)
        return self._features(self._network(model), split, pictures)

    # What the release gives away

    def attacks(self) -> dict[str, Any]:
        """What each attack finds in FRO's release at scale 1, its soft labels and its student."""

        def compute() -> dict[str, Any]:
            return attack_synthetic(
                self.members, self.unseen, self.held_out, *self.synthetic(1.0), self._network("fro-1"), self.judge,
                size=self.config.size, seed=self.config.seed,
            )  # fmt: skip

        return self._cells.get("attacks/fro-1", compute)

    def shadow_attacks(self) -> dict[str, Any]:
        """Membership by shadow models, of a study of its own at a tiny scale."""

        def compute() -> dict[str, Any]:
            config = self.config.shadows
            return shadow_attack(
                shadow_parts(self.data.train, config), config, self.judge, self.folder / "shadows", init=self._init,
                workers=self._workers, seed=self.config.seed,
            )  # fmt: skip

        return self._cells.get("attacks/shadows", compute)

    @property
    def members(self) -> Split:
        """The pictures that were trained on."""
        return self._train

    @property
    def held_out(self) -> Split:
        """As many other people of the training part, as far as there are, shown as the members are."""
        train = self.data.train
        others = set(train.identities[self.config.people : 2 * self.config.people])
        records = tuple(record for record in train.records if record.identity in others)
        return hold_back(Split("held out", train.root, records), self.config.held_back)[0]

    # What the cells are computed of

    def _fro(self) -> Fro:
        if not self._pool_file.exists():
            fro = Fro(FroConfig(pool=self._recipe))
            fro.fit(self._train, work_dir=self.folder / "work" / "pool", init=self._init).save(self._pool_file)
        return Fro.load(self._pool_file)

    def synthetic(self, scale: float) -> tuple[Split, Tensor]:
        """FRO's synthetic pictures, their people's names kept, and the pool's logits on them."""
        largest = max(self.config.scales)
        split, targets = self._made(f"fro-{largest:g}", self._train.root, largest, {})
        return (split, targets) if scale == largest else thinned(split, targets, scale / largest)

    def _made(
        self, name: str, source: Path, scale: float, settings: Mapping[str, object], preset: str | None = None
    ) -> tuple[Split, Tensor]:
        if name not in self._releases:
            target = self.folder / "releases" / name
            self._fro()
            protect(
                source, target, "fro", model=self._pool_file, preset=preset or self.config.preset,
                settings={"scale": scale, "assembly.steps": self.config.steps, **settings},
                seed=self.config.seed, names="kept", labels="folder", workers=self._workers,
            )  # fmt: skip
            self._releases[name] = load_synthetic(target)
        return self._releases[name]

    def _released(self, method: str, name: str | None = None, settings: Mapping[str, object] | None = None) -> Split:
        target = self.folder / "releases" / (name or method)
        protect(
            self._train.root, target, method, settings=settings, seed=self.config.seed, names="kept", labels="folder",
            workers=self._workers,
        )  # fmt: skip
        return load_folder(target, "folder", method)

    def _student(
        self, name: str, split: Split, targets: Tensor | None = None, replay: float | None = None
    ) -> dict[str, Any]:
        out = self.folder / "students" / f"{name}.safetensors"
        out.parent.mkdir(exist_ok=True)
        if not out.exists():
            if targets is None:
                labels: Tensor | Views = Views.seen_by(self._fro().pool.logits, read_pixels(split, self.config.size))
            else:
                labels = views_of(split, targets)
            recipe = replace(self._recipe, temperature=replay or self.config.replay)
            work = self.folder / "work" / name
            train_reid(split, recipe, out, work_dir=work, init=self._init, targets=labels)
        return {"pictures": len(split), **self._scored(load_reid(out))}

    def _network(self, model: str) -> ReidNetwork:
        if model == "pool":
            network = self._fro().pool.network
            assert network is not None
            return network
        return load_reid(self.folder / "students" / f"{model}.safetensors")

    def _scored(self, network: ReidNetwork | None) -> dict[str, Any]:
        assert network is not None
        query, gallery = (self._read(split, split.name) for split in (self.data.query, self.data.gallery))
        found = evaluate_reid(network, self.data.query, self.data.gallery, query, gallery)
        people = {name: number for number, name in enumerate(self.data.query.identities)}
        scores = retrieval_scores(
            found, np.array([people[str(record.identity)] for record in self.data.query.records]),
            role=Role.UTILITY, higher_is_better=True, rng=Randomness.from_seed(self.config.seed), chance={},
        )  # fmt: skip
        return {score.metric: [score.value, score.low, score.high] for score in scores}

    def _read(self, split: Split, name: str) -> Tensor:
        if name not in self._pixels:
            self._pixels[name] = read_pixels(split, self.config.size)
        return self._pixels[name]

    def _features(self, network: ReidNetwork, split: Split, name: str) -> tuple[np.ndarray, np.ndarray]:
        some = first_people(split, min(self.config.clusters, len(split.identities)))
        numbers = {person: number for number, person in enumerate(some.identities)}
        features = embed_pixels(network, read_pixels(some, self.config.size), flip=False).numpy()
        return features, np.array([numbers[str(record.identity)] for record in some.records])

    def _similarity(self, release: str) -> dict[str, Any]:
        ours = release.startswith("fro-")
        made = self.synthetic(float(release.removeprefix("fro-")))[0] if ours else self._released(release)
        rng = Randomness.from_seed(self.config.seed).child("ssim").numpy()
        originals: dict[str, list[int]] = {}
        for index, record in enumerate(self._train.records):
            originals.setdefault(str(record.identity), []).append(index)
        order = rng.permutation(len(made))[: self.config.pairs]
        partners = [int(rng.choice(originals[str(made.records[index].identity)])) for index in order]
        released = read_pixels(chosen(made, order.tolist()), self.config.size).float().div(255)
        theirs = read_pixels(chosen(self._train, partners), self.config.size).float().div(255)
        starts = range(0, len(released), 64)
        values = torch.cat([ssim(released[start : start + 64], theirs[start : start + 64]) for start in starts])
        return {"pairs": len(values), "ssim": float(values.mean()), "deviation": float(values.std())}
