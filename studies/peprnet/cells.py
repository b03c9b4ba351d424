"""PEPR-Net in small: what encoders keep and give away, what noise does to that, and what attackers get."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studies.peprnet.data import Codes, KeptFeatures, TestPart, Vectors, embedded
from studies.peprnet.feature_attacks import feature_membership
from studies.peprnet.figures import draw_figures
from studies.peprnet.measures import (
    averaging,
    changes,
    curve,
    identified,
    mechanism_of,
    noised,
    plane,
    searched,
    stage2,
)
from studies.peprnet.plan import BASELINE, HEADLESS, NOISY, PAPERS_NOISE, STAGE1, PeprStudyConfig, cell_names
from studies.peprnet.rivals import heads_blurred, train_head
from studies.shared.attacks import described
from studies.shared.cells import Cell, CellStore
from studies.shared.figures import sheet
from studies.shared.measures import likeness_and_chaos, matching
from studies.shared.originals import Originals
from studies.shared.people_data import chosen_people, few_of_each, laid_out
from studies.shared.study import by_kind
from veilkit.attacks import AttackTarget, Budget, run_gated
from veilkit.attacks.features.decoding import DecodingConfig
from veilkit.attacks.features.inversion import FeatureReconstruction
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.people_split import divide, pixels, some_people
from veilkit.attacks.person_search import StockRecogniser
from veilkit.attacks.recovered import mean_of
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.labelled import first_people
from veilkit.datasets.market1501 import Market1501
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.methods.peprnet.feature_noise import KINDS, NoiseKind
from veilkit.methods.peprnet.method import PeprNet
from veilkit.networks.reid import ReidNetwork, load_reid
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.training.pixels import read_pixels
from veilkit.types import Role, Split

_COLUMNS = 10  # pictures on a sheet
_PICTURED = (200, 2, 2)  # people, queries and gallery pictures of each, whose pictures are drawn
_MEMBERS = 8  # pictures of a training person that membership looks at


class PeprCells:
    """The cells of the study. Nothing is computed before it is asked for, and nothing twice.

    judge: independent of all that is trained; it judges pictures. init: weights that the encoders' backbones start
    from. public_init: of the rivals that learn on a frozen backbone, if others: it must not have seen the training
    people, or what DP-SGD promises about them would not hold.
    """

    def __init__(
        self,
        data: Market1501,
        folder: Path,
        config: PeprStudyConfig,
        cells: CellStore,
        *,
        judge: Embedder,
        cache: Cache,
        init: Path | None,
        public_init: Path | None = None,
    ) -> None:
        self.config, self.folder, self.data, self.judge = config, folder, data, judge
        self._cells, self._cache = cells, cache
        self._init, self._public_init = init, public_init or init
        self._kept = KeptFeatures(folder / "features")
        self._rng = Randomness.from_seed(config.seed).child("pepr study")

    def cell(self, name: str) -> Cell:
        """A cell by its name."""
        kinds: dict[str, Callable[..., Cell]] = {
            "training": self.training, "model": self.model, "rival": self.rival, "change": self.change,
            "stage2": lambda encoder, kind, epsilon: self.stage2(encoder, kind, float(epsilon)),
            "curve": lambda dimension, kind: self.curve(int(dimension), kind),
            "averaging": self.averaging, "reconstruction": self.reconstruction, "membership": self.membership,
            "plane": self.plane, "pictures": self.pictures,
        }  # fmt: skip
        return by_kind(name, kinds)

    def draw(self) -> None:
        """The three figures, and a sheet of reconstructed pictures."""
        draw_figures(self.folder, self.config, {name: self.cell(name) for name in cell_names(self.config)})
        file = self.folder / "sheets" / "reconstructed.png"
        decoded = [self.reconstruction(name) for name in self.config.decoded]
        if not file.exists() and all(cell["applicable"] for cell in decoded):
            sheet(file, self.shown(_COLUMNS))

    # What encoders keep and give away (Table 1, and the baselines of Tables 2 to 4)

    def training(self, name: str) -> dict[str, Any]:
        """The losses of each epoch of one encoder's training. Trainings have nothing to do with each other."""

        def compute() -> dict[str, Any]:
            from veilkit.methods.peprnet.training import train_peprnet

            config, work = self.config.trained(name), self.folder / "training" / name
            trained = train_peprnet(self.training_split, config, work_dir=work, init=self._init)
            PeprNet(config).take(trained).save(self._model_file(name))
            return {"history": list(trained.history)}

        return self._cells.get(f"training/{name}", compute)

    def model(self, name: str) -> dict[str, Any]:
        """Search and identification by features of one encoder, without noise."""
        return self._cells.get(f"model/{name}", lambda: self._judged(self.features(name)))

    def rival(self, name: str) -> dict[str, Any]:
        """The same of a rival: DP-SGD, its head without noise, or the baseline on pictures with blurred heads."""

        def compute() -> dict[str, Any]:
            if name == HEADLESS:
                return self._judged(embedded(self._encoder(BASELINE), heads_blurred(self.part.pixels)))
            file = self.folder / "models" / f"{name}.safetensors"
            trained = train_head(name, self.training_split, self.config, self._public_init, file)
            return {**self._judged(embedded(load_reid(file), self.part.pixels)), "training": trained}

        return self._cells.get(f"rival/{name}", compute)

    def change(self, name: str) -> dict[str, Any]:
        """An encoder minus the baseline: paired differences of Rank-1, mAP and identification."""

        def compute() -> dict[str, Any]:
            one, other = ((self.features(each), self.model(each)["identification"]) for each in (name, BASELINE))
            return changes(self.part, one, other, self._rng)

        return self._cells.get(f"change/{name}", compute)

    # What noise does (Tables 2 to 4, and Rank-1 against epsilon)

    def stage2(self, name: str, kind: NoiseKind, epsilon: float) -> dict[str, Any]:
        """A protected gallery: search by clean queries, and identification."""

        def compute() -> dict[str, Any]:
            clean = self.features(BASELINE)
            return stage2(self.part, self.features(name), clean, kind, epsilon, self.config, self._rng)

        return self._cells.get(f"stage2/{name}/{kind}/{epsilon:g}", compute)

    def curve(self, dimension: int, kind: NoiseKind) -> dict[str, Any]:
        """Rank-1 at each epsilon, of features of one length under one kind of noise."""

        def compute() -> dict[str, Any]:
            config = self.config
            epsilons = config.paper_epsilons if kind == PAPERS_NOISE else config.curve_epsilons
            return curve(self.part, self.features(config.dimensions[dimension]), kind, epsilons, config)

        return self._cells.get(f"curve/{dimension}/{kind}", compute)

    def averaging(self, kind: NoiseKind) -> dict[str, Any]:
        """Several releases of stage 1's features with fresh noise, averaged."""
        return self._cells.get(
            f"averaging/{kind}", lambda: averaging(self.part, self.features(STAGE1), kind, self.config)
        )

    # What attackers get

    def reconstruction(self, name: str) -> dict[str, Any]:
        """Pictures decoded from features by somebody who learned on other people; `NOISY`: from noisy ones."""

        def compute() -> dict[str, Any]:
            return described(run_gated(self._decoder, self._target(name)))

        return self._cells.get(f"reconstruction/{name}", compute)

    def membership(self, name: str) -> dict[str, Any]:
        """How well training people are told from others by how close together their features lie."""

        def compute() -> dict[str, Any]:
            inside = embedded(self._encoder(name), self._members[0])
            scores, chance = feature_membership(
                inside, self._members[1], self.features(name), self.part.people + 10**6, self._rng
            )
            return {
                "scores": {each.metric: [each.value, each.low, each.high] for each in scores}, "chance": chance,
            }  # fmt: skip

        return self._cells.get(f"membership/{name}", compute)

    def plane(self, name: str) -> dict[str, Any]:
        """Features of some people in the plane by t-SNE, without and with PrivUnit's noise (Figure 6)."""

        return self._cells.get(f"plane/{name}", lambda: plane(self.part, self.features(name), self.config))

    def pictures(self, name: str) -> dict[str, Any]:
        """The decoder's pictures as a release of files: likeness, and what a stranger recognises in them."""

        def compute() -> dict[str, Any]:
            self.training(name)
            outcome = protect(
                self.originals.root, self.folder / "releases" / name, "peprnet", model=self._model_file(name),
                seed=self.config.seed, names="kept", labels="market",
            )  # fmt: skip
            release = self.originals.released(outcome)
            target = AttackTarget(
                rng=self._rng, protected=release.tested, originals=self.originals.tested,
                people=self.originals.people,
                search=self.originals.search, recogniser=self.judge,
            )  # fmt: skip
            return {
                "judge": matching(self.originals, release, self.judge, Role.PRIVACY, self._rng),
                "pictures": likeness_and_chaos(self.originals, release, self._cache, self._rng),
                **{each.name: described(run_gated(each, target)) for each in (StockRecogniser, OwnOriginal)},
            }

        return self._cells.get(f"pictures/{name}", compute)

    def shown(self, count: int) -> dict[str, torch.Tensor]:
        """Rows of some attacked pictures, uint8 (N, 3, H, W): originals, and what was decoded of their features."""
        rows: dict[str, torch.Tensor] = {}
        for name in self.config.decoded:
            target = self._target(name)
            division = divide(target)
            public = pixels(division.public.originals, division.size)
            made = self._decoder().invert(target, division, public, mean_of(public, division.size))
            chosen = np.unique(np.linspace(0, len(made.answers) - 1, count).astype(np.int64))
            assert division.victims.originals is not None
            rows.setdefault("original", pixels(division.victims.originals, division.size)[chosen])
            rows[name] = (made.answers[chosen] * 255).round().byte()
        return rows

    # What the cells are computed of

    @cached_property
    def part(self) -> TestPart:
        """The test part."""
        return TestPart(self.data, self.config.people, self.config.method.size)

    @cached_property
    def training_split(self) -> Split:
        """The people that all trainings learn from."""
        people = self.config.training_people
        return self.data.train if people is None else first_people(self.data.train, people)

    @cached_property
    def originals(self) -> Originals:
        """Pictures of some test people, copied into the study's folder, for the release of pictures."""
        people = min(_PICTURED[0], len(self.part.query.identities))
        some = chosen_people(self.data, people, *_PICTURED[1:], 0, 0)
        return Originals(laid_out(some, self.folder / "originals"), self._cache)

    @cached_property
    def _members(self) -> tuple[torch.Tensor, Codes]:
        split = few_of_each(self.training_split, _MEMBERS)
        codes = {name: code for code, name in enumerate(split.identities)}
        people = np.array([codes[str(record.identity)] for record in split.records], dtype=np.int64)
        return read_pixels(split, self.config.method.size), people

    def features(self, name: str) -> Vectors:
        """Raw features (N, D) of the test part by one encoder."""
        return self._kept.get(name, lambda: embedded(self._encoder(name), self.part.pixels))

    def _encoder(self, name: str) -> ReidNetwork:
        self.training(name)
        file = self._model_file(name)
        if not file.exists():  # the cell came from elsewhere, without its model
            raise ConfigError(f"{file} is not there, though its training is: delete that cell to train it again")
        return PeprNet.load(file).encoder

    def _model_file(self, name: str) -> Path:
        return self.folder / "models" / f"{name}.safetensors"

    def _judged(self, features: Vectors) -> dict[str, Any]:
        return {
            "utility": searched(self.part, features, features, self._rng),
            "identification": identified(self.part, features, self.features(BASELINE), self._rng),
        }

    def _decoder(self) -> FeatureReconstruction:
        return FeatureReconstruction(DecodingConfig(width=self.config.width))

    def _target(self, name: str) -> AttackTarget:
        config = self.config
        features = self.features(STAGE1 if name == NOISY else name)
        if name == NOISY:
            mechanism = mechanism_of(KINDS[0], features, max(config.epsilons), config)
            features = noised(features, mechanism, config.seed)
        target = AttackTarget(
            rng=self._rng, features=features, clean_features=self.features(BASELINE), originals=self.part.pictures,
            people=self.part.people, search=self.part.search, recogniser=self.judge,
            budget=Budget(config.updates, config.attacked, config.batch, config.seed), work=self.folder / "work",
        )  # fmt: skip
        chosen = some_people(self.part.people, 2 * config.attacked, self._rng.child("attacked"))
        return target.only(chosen)
