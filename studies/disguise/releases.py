"""What the cells of Disguise's study are computed of: pictures, releases, and targets of attacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studies.disguise.faces import FaceOriginals, FaceRelease, Part, people_of_folds, people_outside
from studies.disguise.models import Models
from studies.disguise.plan import ORIGINAL, STRANGER, DisguiseStudyConfig
from studies.disguise.utility import (
    KINDS,
    Judge,
    load_judge,
)
from studies.shared.aligned_pictures import AlignedPictures
from studies.shared.cells import CellStore
from veilkit.attacks import ATTACKS, Attack, AttackTarget, Budget, Pairs
from veilkit.attacks.averaging import Averaging
from veilkit.attacks.learned.embedding_inversion import EmbeddingInversion
from veilkit.attacks.pictures import Pictures, SomePictures
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.datasets.lfw import Lfw
from veilkit.experts import Embedder
from veilkit.experts.finders import load_finder
from veilkit.methods.disguise.identity_channel import ChannelKind
from veilkit.methods.disguise.method import Disguise
from veilkit.pipeline.protect import protect
from veilkit.privacy import make_mechanism, unit
from veilkit.privacy.auditor import antipodal, identification
from veilkit.rng import Randomness
from veilkit.types import Guarantee, Split


class DisguiseReleases:
    """The pictures of the study, its releases, and releases under attack. Nothing is made before it is asked for.

    models: trained methods by transform. judges: recognisers by name, independent of all that was trained; the first
    also attacks. workers: processes that protect. elsewhere: faces of another set, who teach inversion too. start:
    weights that attackers who train a recogniser start from.
    """

    def __init__(
        self,
        lfw: Lfw,
        folder: Path,
        config: DisguiseStudyConfig,
        cells: CellStore,
        *,
        models: Models,
        judges: Mapping[str, Embedder],
        cache: Cache,
        workers: int,
        elsewhere: Split | None = None,
        start: Path | None = None,
    ) -> None:
        self.elsewhere, self._start = elsewhere, start
        self.config, self.folder, self.lfw, self.models, self.judges = config, folder, lfw, models, dict(judges)
        self._cells, self._cache, self._workers = cells, cache, workers
        self._rng = Randomness.from_seed(config.seed).child("disguise study")
        self._made: dict[str, FaceRelease] = {}

    @cached_property
    def originals(self) -> FaceOriginals:
        """The pictures that all releases are made of, copied into the study's folder."""
        config = self.config
        splits: dict[Part, Split] = {
            "tested": people_of_folds(self.lfw, config.folds, config.shots, config.people),
            "public": people_outside(self.lfw, config.folds, config.public_people, config.public_shots),
        }
        if self.elsewhere is not None:
            splits["elsewhere"] = self.elsewhere
        return FaceOriginals(splits, self.folder / "originals", load_finder(config.finder), config.side, self._cache)

    @cached_property
    def identities(self) -> Tensor:
        """(N, D) of the public people, to which transforms are fitted."""
        return torch.from_numpy(self.originals.crops(part="public").features(self.models.identity))

    @cached_property
    def utility_judges(self) -> dict[str, Judge]:
        """By what they judge."""
        return {kind: load_judge(kind, getattr(self.config, kind)) for kind in KINDS}

    def released(self, release: str) -> FaceRelease:
        """A release, made if it is not there yet, and read back."""
        if release not in self._made:
            method = self.models.method(release, lambda: self.identities)
            outcome = protect(
                self.originals.root, self.folder / "releases" / release.replace("@", "-"), method,
                seed=self.config.seed, names="kept", labels="folder", workers=self._workers, image_format="png",
            )  # fmt: skip
            self._made[release] = self.originals.released(outcome)
        return self._made[release]

    def _crops(self, release: str) -> Pictures:
        if release == STRANGER:
            return SomePictures(self.originals.crops(), self.originals.strangers())
        return self.originals.crops(None if release == ORIGINAL else self.released(release))

    def _whole(self, release: str) -> FilePictures:
        pictures = self.originals.tested if release == ORIGINAL else self.released(release).tested
        assert isinstance(pictures, FilePictures)
        return pictures

    def _places(self, release: str) -> NDArray[np.int64]:
        return self.originals.strangers() if release == STRANGER else np.arange(len(self.originals.people))

    def _attacker(self, name: str) -> Callable[[], Attack]:
        return partial(Averaging, self.config.counts) if name == Averaging.name else ATTACKS[name]

    def _target(
        self, release: str, judge: str, attack: str = EmbeddingInversion.name, teachers: Part = "public"
    ) -> AttackTarget:
        """A release under attack: pairs of the public people, or of another set, teach; test people are scored."""
        config, originals = self.config, self.originals
        made = self.released(release)
        everybody = max(map(len, originals.codes.values()))
        updates = config.inversion_updates if attack == EmbeddingInversion.name else config.updates
        budget = Budget(updates, everybody, config.batch, config.seed)
        if attack == Averaging.name:
            budget = replace(budget, pictures=min(everybody, config.averaged), updates=10**9)
        crops: Callable[..., AlignedPictures] = originals.crops
        own = release == config.main
        return AttackTarget(
            rng=self._rng, protected=crops(made), originals=crops(), people=originals.people, search=originals.search,
            recogniser=self.judges[judge], budget=budget,
            pairs=Pairs(crops(part=teachers), crops(made, part=teachers), originals.codes[teachers]),
            protector=self.models.again(config.seed) if own else None,
            neutral=self.models.neutral(config.seed) if own else None,
            work=self.folder / "work", start=self._start,
        )  # fmt: skip


_CANDIDATES = 64
_SOUND: ChannelKind = "privunit"


def guarantees(method: Disguise, identities: Tensor, *, epsilon: float, draws: int, seed: int) -> dict[str, Any]:
    """By channel: the text that a release prints, epsilon claimed and proved; None stands for infinite or none.

    For the sound channel also the lower bounds on epsilon that two attacks on the injected vector show in `draws`
    releases: naming one of the given people's identities (N, D), and telling a vector from its opposite.
    """
    sound = _under(method, _SOUND, epsilon)
    dimension = method.config.transform.dim
    mechanism = make_mechanism(_SOUND, dimension=dimension, epsilon=epsilon, delta=0.0)
    named = identification(
        mechanism.release, unit(identities[:_CANDIDATES]), delta=0.0, trials=draws,
        generator=Randomness.from_seed(seed).child("audit").numpy(),
    )  # fmt: skip
    apart = antipodal(mechanism.release, dimension=dimension, delta=0.0, draws=draws)
    return {
        "paper": _told(_under(method, "paper", None).guarantee()),
        _SOUND: {
            **_told(sound.guarantee()),
            "epsilon measured": max(named.epsilon, apart.epsilon),
            "by": {finding.attack: finding.epsilon for finding in (named, apart)},
            "draws": draws,
        },
    }


def _under(method: Disguise, channel: ChannelKind, epsilon: float | None) -> Disguise:
    return Disguise(replace(method.config, channel=channel, epsilon=epsilon, delta=0.0), method.model)


def _told(said: Guarantee) -> dict[str, Any]:
    proved = said.epsilon_proved
    return {
        "text": said.text,
        "epsilon claimed": said.epsilon_claimed,
        "epsilon proved": None if proved is None or math.isinf(proved) else proved,
    }
