"""PrivacyReID in small: what base, without and with upgradation keep, what comes back, and what attackers get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from torch import Tensor

from studies.privacyreid.feature_distribution import distribution
from studies.privacyreid.plan import (
    BASE,
    LEARNED,
    STAGES,
    STRANGER,
    WITH,
    WITHOUT,
    PrivacyReidStudyConfig,
)
from studies.privacyreid.tables import draw_figures
from studies.privacyreid.training import Trainings
from studies.shared.attacks import described, paired, recovery, rounded
from studies.shared.cells import Cell, CellStore
from studies.shared.figures import sheet
from studies.shared.measures import SETTINGS, likeness_and_chaos, matching, matching_change
from studies.shared.originals import Originals, Released
from studies.shared.people_data import chosen_people, laid_out
from studies.shared.study import by_kind
from veilkit.attacks import ATTACKS, Attack, AttackTarget, Budget, run_gated
from veilkit.attacks.learned.recovery import Recovery, RecoveryConfig
from veilkit.attacks.learned.retrained import RECIPE, Retrained, RetrainedConfig
from veilkit.attacks.people_split import attack_size, pixels
from veilkit.attacks.stolen_decoder import StolenDecoder
from veilkit.audit.cells.images import similarity
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.datasets.labelled import first_people
from veilkit.datasets.market1501 import Market1501
from veilkit.experts import Embedder, load_expert
from veilkit.methods.learned import Decoder, decoder_beside
from veilkit.methods.privacyreid.config import Kind
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover
from veilkit.rng import Randomness
from veilkit.types import Role

_COLUMNS = 10  # pictures on a sheet
_PAIRS = ((WITH, WITHOUT), (WITHOUT, BASE))  # the first is to be the better one


class PrivacyReidCells:
    """The cells of the study. Nothing is computed before it is asked for, and nothing twice.

    judge: independent of all that is trained; what it recognises is what a stranger gets. init: weights that the
    backbones of all recognisers start from. workers: processes that protect; where there are two, two of them train.
    threads: of torch, which those two share.
    """

    def __init__(
        self,
        data: Market1501,
        folder: Path,
        config: PrivacyReidStudyConfig,
        cells: CellStore,
        *,
        judge: Embedder,
        cache: Cache,
        init: Path | None,
        workers: int,
        threads: int = 1,
    ) -> None:
        self.config, self.folder, self.data, self.judge = config, folder, data, judge
        self._cells, self._cache, self._init = cells, cache, init
        self._workers, self._threads = workers, threads
        self._rng = Randomness.from_seed(config.seed).child("privacyreid study")
        self._made: dict[tuple[Kind, str], Released] = {}
        self._restored: dict[tuple[Kind, str], FilePictures] = {}
        self._trained: set[Kind] = set()

    def cell(self, name: str) -> Cell:
        """A cell by its name."""
        kinds: dict[str, Callable[..., Cell]] = {
            "training": self.training, "release": self.release, "recovered": self.recovered, "order": self.order,
            "features": self.features, "attack": self.attack, "lock": self.lock,
        }  # fmt: skip
        return by_kind(name, kinds)

    def draw(self) -> None:
        """The checks of both trainings, Figure 9, and a sheet of pictures."""
        for kind in self.config.desensitise:
            checks = {stage: self.training(kind, stage)["checks"] for stage in LEARNED}
            features = {stage: self.features(kind, stage) for stage in (STRANGER, *STAGES)}
            draw_figures(self.folder, kind, checks, features)
            file = self.folder / "sheets" / f"{kind}.png"
            if not file.exists():
                sheet(file, self.shown(kind, _COLUMNS))

    # What is kept and what is seen (Tables 1, 3, 4 and 5, Figure 9)

    def training(self, kind: Kind, stage: str) -> dict[str, Any]:
        """What was measured and decided at each check of a training, `without` or `with` upgradation."""
        return self._cells.get(f"training/{kind}/{stage}", lambda: {"checks": self.trainings(kind).decisions(stage)})

    def release(self, kind: Kind, stage: str) -> dict[str, Any]:
        """Four settings by the recogniser of this training and by the judge; likeness to the originals."""

        def compute() -> dict[str, Any]:
            return self._measured(self.released(kind, stage), self._expert(kind, stage))

        return self._cells.get(f"release/{kind}/{stage}", compute)

    def recovered(self, kind: Kind, stage: str) -> dict[str, Any]:
        """The same of what the authorised decoder makes of the released files, with each picture's PSNR and SSIM."""

        def compute() -> dict[str, Any]:
            pictures = self.restored(kind, stage)
            each = similarity(self.originals.tested, pictures, self._cache)
            release = Released(pictures, self.released(kind, stage).public, ())
            return {
                **self._measured(release, self._expert(kind, stage)),
                "people": self.originals.people.tolist(),
                "SSIM each": rounded(each.ssim),
                "PSNR each": rounded(each.psnr),
            }

        return self._cells.get(f"recovered/{kind}/{stage}", compute)

    def order(self, kind: Kind) -> dict[str, Any]:
        """Paired differences of Rank-1 and mAP in each setting: with - without, and without - base.

        Each release is searched by the recogniser that was trained with it.
        """

        def compute() -> dict[str, Any]:
            sides = {stage: (self.released(kind, stage), self._expert(kind, stage)) for stage in STAGES}
            return {
                f"{better} - {worse}": {
                    setting: matching_change(self.originals, sides[better], sides[worse], setting, self._rng)
                    for setting in SETTINGS
                }
                for better, worse in _PAIRS
            }

        return self._cells.get(f"order/{kind}", compute)

    def features(self, kind: Kind, stage: str) -> dict[str, Any]:
        """Where features of raw and protected pictures lie, by a stage's recogniser, or by the judge (`STRANGER`)."""

        def compute() -> dict[str, Any]:
            stranger = stage == STRANGER
            release = self.released(kind, BASE if stranger else stage)
            embedder = self.judge if stranger else self._expert(kind, stage)
            return distribution(
                self.originals.tested.features(embedder), release.tested.features(embedder), self.originals.people,
                shown=self.config.shown, seed=self.config.seed,
            )  # fmt: skip

        return self._cells.get(f"features/{kind}/{stage}", compute)

    # What attackers get

    def attack(self, kind: Kind, stage: str, name: str) -> dict[str, Any]:
        """An attack on a release, through its gates."""

        def compute() -> dict[str, Any]:
            target = self._target(kind, stage)
            if name == Recovery.name:
                return recovery(target, self._unet)
            return described(run_gated(self._attacker(name), target))

        return self._cells.get(f"attack/{kind}/{stage}/{name}", compute)

    def lock(self, kind: Kind) -> dict[str, Any]:
        """How much more the authorised decoder recovers than a network that never saw it: paired differences."""

        def compute() -> dict[str, Any]:
            owner, stranger = self.recovered(kind, WITH), self.attack(kind, WITH, Recovery.name)
            pair = {"decoder - U-Net": (owner, stranger)}
            return {metric: paired(pair, f"{metric} each", self._rng) for metric in ("PSNR", "SSIM")}

        return self._cells.get(f"lock/{kind}", compute)

    def shown(self, kind: Kind, count: int) -> dict[str, Tensor]:
        """Rows of some tested pictures, uint8 (N, 3, H, W): before, after, and recovered."""
        chosen = np.unique(np.linspace(0, len(self.originals.tested) - 1, count).astype(np.int64))
        target = self._target(kind, WITH)
        size = attack_size(target)
        rows = {"original": self.originals.tested, "desensitised": self.released(kind, BASE).tested}
        rows |= {f"{stage} U": self.released(kind, stage).tested for stage in LEARNED}
        rows |= {f"recovered {stage} U": self.restored(kind, stage) for stage in LEARNED}
        sheet = {name: pixels(pictures, size)[chosen] for name, pictures in rows.items()}
        if Recovery.name in self.config.attacks:
            _, answers = Recovery(self._unet).recover(target, chosen)
            sheet["stranger's U-Net"] = (answers * 255).round().byte()
        return sheet

    # What the cells are computed of

    @cached_property
    def originals(self) -> Originals:
        """The pictures that all releases are made of, copied into the study's folder."""
        config = self.config
        some = chosen_people(
            self.data, config.people, config.queries, config.gallery, config.public_people, config.public_pictures
        )
        return Originals(laid_out(some, self.folder / "originals"), self._cache)

    def trainings(self, kind: Kind) -> Trainings:
        """The three trainings, done."""
        people = self.config.training_people
        split = self.data.train if people is None else first_people(self.data.train, people)
        trainings = Trainings(
            split, {stage: self.config.trained(kind, stage) for stage in STAGES}, self.folder / "training" / kind,
            self._init, self._threads,
        )  # fmt: skip
        if kind not in self._trained:
            trainings.run(self._workers)
            self._trained.add(kind)
        return trainings

    def released(self, kind: Kind, stage: str) -> Released:
        """A release, made if it is not there yet, and read back; base is the desensitiser itself."""
        if (kind, stage) not in self._made:
            model = None if stage == BASE else self.trainings(kind).model(stage)
            outcome = protect(
                self.originals.root, self._folder(kind, stage), kind if model is None else "privacyreid", model=model,
                seed=self.config.seed, names="kept", labels="market", workers=self._workers,
            )  # fmt: skip
            self._made[kind, stage] = self.originals.released(outcome)
        return self._made[kind, stage]

    def restored(self, kind: Kind, stage: str) -> FilePictures:
        """What `veilkit recover` writes of the tested pictures of a release, with the decoder of its model."""
        if (kind, stage) in self._restored:
            return self._restored[kind, stage]
        released = self.released(kind, stage).tested
        assert isinstance(released, FilePictures)
        names = [file.path for file in released.files]
        target = self.folder / "recovered" / f"{kind}-{stage}"
        decoder = decoder_beside(self.trainings(kind).model(stage))
        recover(self._folder(kind, stage), target, model=decoder, only=names)
        restored = [str(PurePosixPath(name).with_suffix(".png")) for name in names]
        self._restored[kind, stage] = self.originals.read(target, restored, "recovered pictures")
        return self._restored[kind, stage]

    def _folder(self, kind: Kind, stage: str) -> Path:
        return self.folder / "releases" / f"{kind}-{stage}"

    def _expert(self, kind: Kind, stage: str) -> Embedder:
        return load_expert(self.trainings(kind).expert(stage))

    @property
    def _unet(self) -> RecoveryConfig:
        return RecoveryConfig(width=self.config.width)

    def _attacker(self, name: str) -> Callable[[], Attack]:
        if name != Retrained.name:
            return ATTACKS[name]
        recipe = replace(RECIPE, backbone=self.config.method.reid.backbone)
        return partial(Retrained, RetrainedConfig(recipe, init=self._init))

    def _target(self, kind: Kind, stage: str) -> AttackTarget:
        everybody = max(len(self.originals.tested), len(self.originals.public))
        budget = Budget(self.config.updates, everybody, self.config.batch, self.config.seed)
        decoder = None
        if stage != BASE and StolenDecoder.name in self.config.attacks:
            decoder = Decoder.load(decoder_beside(self.trainings(kind).model(stage))).recover
        return self.originals.target(
            self.released(kind, stage), self.judge, self._rng, work=self.folder / "work", budget=budget,
            decoder=decoder,
        )  # fmt: skip

    def _measured(self, release: Released, expert: Embedder) -> dict[str, Any]:
        return {
            "own": matching(self.originals, release, expert, Role.UTILITY, self._rng),
            "judge": matching(self.originals, release, self.judge, Role.PRIVACY, self._rng),
            "pictures": likeness_and_chaos(self.originals, release, self._cache, self._rng),
        }
