"""Disguise in small: who is recognised in swapped faces, what inverts them, what they keep, and what they teach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from studies.disguise.landmarks import POINTS, landmark_error, ratio, trained_on
from studies.disguise.plan import CONTROLS, ORIGINAL, STRANGER, rows_of
from studies.disguise.releases import DisguiseReleases, guarantees
from studies.disguise.tables import draw_recognition, name_of
from studies.disguise.utility import (
    KINDS,
    kept,
    load_judge,
    predicted,
    quality,
)
from studies.disguise.verification import difference, rates_of, verified
from studies.shared.attacks import described, paired
from studies.shared.cells import Cell
from studies.shared.face_data import pairs_of
from studies.shared.figures import sheet
from studies.shared.study import by_kind
from veilkit.attacks import run_gated
from veilkit.attacks.learned.embedding_inversion import EmbeddingInversion
from veilkit.attacks.people_split import divide, pixels
from veilkit.attacks.pictures import SomePictures
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.metrics import PairRates

_PICTURE = (112, 112)  # width and height on the sheet


class DisguiseCells(DisguiseReleases):
    """The cells of the study. Nothing is computed before it is asked for, and nothing twice."""

    def cell(self, name: str) -> Cell:
        """A cell by its name."""
        alone = {"pictures": self.pictures, "utility order": self.utility_order, "guarantee": self.guarantee}
        several: dict[str, Callable[..., Cell]] = {
            "verified": self.verified, "inverted": self.inverted, "elsewhere": self.inverted_elsewhere,
            "order": self.order, "utility": self.utility, "landmarks": self.landmarks, "attack": self.attack,
        }  # fmt: skip
        return by_kind(name, {**alone, **several})

    def draw(self) -> None:
        """ROC and distances by each judge, and a sheet of faces."""
        for judge in self.judges:
            found = {release: self.verified(release, judge) for release in rows_of(self.config)}
            draw_recognition(self.folder, judge, found)
        if not (file := self.folder / "sheets" / "faces.png").exists():
            sheet(file, {name_of(name): row for name, row in self.shown().items()}, cell=_PICTURE)

    # Who is recognised (Tables 1, 4, 5, 6, 8 and 9)

    def pictures(self) -> dict[str, Any]:
        """How many pictures and people there are, and what became of the main release's faces."""

        def compute() -> dict[str, Any]:
            counts = self.originals.counts(self.released(self.config.main))
            return {**counts, "trained together": {kind: self.models.trained(kind) for kind in ("opp", "mlp", "ved")}}

        return self._cells.get("pictures", compute)

    def verified(self, release: str, judge: str) -> dict[str, Any]:
        """TPR at FPR, farthest match, accuracy, ROC and distances of a release, by a judge."""

        def compute() -> dict[str, Any]:
            embedder, originals = self.judges[judge], self.originals
            raw, made = originals.crops().features(embedder), self._crops(release).features(embedder)
            official = originals.pairs(pairs_of(self.lfw, self.config.folds))
            found = verified(made, raw, originals.people, official, self._rng, strangers=release == STRANGER)
            return {"judge": judge, **found}

        return self._cells.get(f"verified/{release}/{judge}", compute)

    def inverted(self, release: str, judge: str) -> dict[str, Any]:
        """What an attacker recognises who learned on public people to invert a judge's embeddings."""

        def compute() -> dict[str, Any]:
            return described(run_gated(EmbeddingInversion, self._target(release, judge)))

        return self._cells.get(f"inverted/{release}/{judge}", compute)

    def inverted_elsewhere(self, release: str, judge: str) -> dict[str, Any]:
        """The same by an attacker who learned on another set of faces (Figure 5e)."""

        def compute() -> dict[str, Any]:
            return described(run_gated(EmbeddingInversion, self._target(release, judge, teachers="elsewhere")))

        return self._cells.get(f"elsewhere/{release}/{judge}", compute)

    def order(self, judge: str) -> dict[str, Any]:
        """Paired differences of inverted TPR: among transforms, and of the most noise from the least."""

        def compute() -> dict[str, Any]:
            pairs = [("opp", "mlp"), ("mlp", "ved")]
            if self.config.noises:
                low, high = min(self.config.noises), max(self.config.noises)
                pairs += [(f"{kind}@{low:g}", f"{kind}@{high:g}") for kind in ("mlp", "ved") if low != high]
            found = {name: self._inverted_rates(name, judge) for pair in pairs for name in pair}
            return {f"{one} - {other}": difference(found[one], found[other]) for one, other in pairs}

        return self._cells.get(f"order/{judge}", compute)

    # What is kept (Tables 2, 3 and 7)

    def utility(self, release: str) -> dict[str, Any]:
        """Landmarks, gaze and expression against the original's, and a detector's sureness."""

        def compute() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for kind, judge in self.utility_judges.items():
                if judge.predictor is None:
                    found[kind] = {"judge": judge.name, "why": judge.why}
                    continue
                truth = predicted(judge.predictor, self.originals.tested, self._cache)
                answers = truth[self._places(release)]
                if release not in (ORIGINAL, STRANGER):
                    answers = predicted(judge.predictor, self._whole(release), self._cache)
                found[kind] = kept(judge, truth, answers, self.originals.people, self._rng)
            whole = self.originals.tested if release == STRANGER else self._whole(release)
            sure = quality(
                self.config.quality, whole, self._places(release), self.originals.people, self._cache, self._rng
            )
            return {**found, "quality": sure}

        return self._cells.get(f"utility/{release}", compute)

    def utility_order(self) -> dict[str, Any]:
        """Paired differences of the main release from the controls and from a stranger's picture."""

        def compute() -> dict[str, Any]:
            own = self.utility(self.config.main)
            found: dict[str, Any] = {}
            for kind in KINDS:
                pairs = {
                    f"{self.config.main} - {name}": (own[kind], self.utility(name)[kind])
                    for name in (*CONTROLS, STRANGER)
                }
                found[kind] = paired(pairs, "each", self._rng)
            return found

        return self._cells.get("utility order", compute)

    def landmarks(self, release: str) -> dict[str, Any]:
        """A landmark network that was trained on the public pictures of a release alone, on the test originals."""

        def compute() -> dict[str, Any]:
            judge, config = load_judge("landmarks", self.config.truth), self.config.landmark_training
            if judge.predictor is None:
                return {"why": judge.why}
            truth, asked = (
                predicted(judge.predictor, pictures, self._cache)
                for pictures in (self.originals.pictures["public"], self.originals.tested)
            )
            if truth.shape[1:] != POINTS:
                return {"why": f"landmark networks learn {POINTS[0]} points, but {judge.name} tells {truth.shape[1]}"}
            shown = self.originals.pictures["public"] if release == ORIGINAL else self.released(release).public
            assert isinstance(shown, FilePictures)
            out = self.folder / "landmarks" / f"{release}.safetensors"
            out.parent.mkdir(parents=True, exist_ok=True)
            model = trained_on(shown, truth, f"{release} faces by {judge.name}", config, out)
            found = landmark_error(
                model, self.originals.tested, asked, self.originals.people, config.stored, self._rng
            )
            against = {} if release == ORIGINAL else self._against_original(found)
            return {"truth": judge.name, **found, **against}

        return self._cells.get(f"landmarks/{release}", compute)

    # What attackers get, and what is guaranteed

    def attack(self, release: str, name: str) -> dict[str, Any]:
        """An attack on a release, through its gates, by the first judge."""

        def compute() -> dict[str, Any]:
            target = self._target(release, next(iter(self.judges)), name)
            return described(run_gated(self._attacker(name), target))

        return self._cells.get(f"attack/{release}/{name}", compute)

    def guarantee(self) -> dict[str, Any]:
        """What the paper's channel and the sound one claim and prove, and what an auditor measures of the latter."""
        return self._cells.get(
            "guarantee",
            lambda: guarantees(
                self.models.main, self.identities, epsilon=self.config.epsilon, draws=self.config.draws,
                seed=self.config.seed,
            ),
        )  # fmt: skip

    def shown(self) -> dict[str, Tensor]:
        """Rows of some tested faces, uint8 (N, 3, S, S): before, and after each protection."""
        people = np.unique(self.originals.people, return_index=True)[1]
        chosen = people[np.unique(np.linspace(0, len(people) - 1, self.config.shown).astype(np.int64))]
        size = (self.config.side, self.config.side)
        names = (ORIGINAL, *CONTROLS, "opp", "mlp", "ved", *self.config.noisy)
        return {name: pixels(SomePictures(self._crops(name), chosen), size) for name in names}

    def _against_original(self, found: dict[str, Any]) -> dict[str, Any]:
        if ORIGINAL not in self.config.trained:
            return {}
        clean = self.landmarks(ORIGINAL)
        return {"ratio": ratio(found, clean, self._rng)} if clean.get("each") else {}

    def _inverted_rates(self, release: str, judge: str) -> PairRates:
        """TPR of guessed embeddings, with the draws; the training is found again."""
        target = self._target(release, judge)
        division = divide(target)
        victims = division.victims
        answers = EmbeddingInversion().inverter(target, division).invert(victims.protected_features())
        assert victims.originals is not None
        assert victims.people is not None
        raw = victims.originals.features(self.judges[judge])
        return rates_of(answers, raw, victims.people, self._rng)
