"""Family transfer (L1): the networks at hand compete on other people's pictures, and the best one searches."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.people_split import divide, unsearchable
from veilkit.attacks.person_search import found_among
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.quick.choices import BLIND, PAIRED, own_choices, same_person_score
from veilkit.attacks.target import Budget, Pairs, given
from veilkit.checkpoint import load_checkpoint
from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts import Embedder, load_expert
from veilkit.experts.faces import load_viewed, names_view
from veilkit.experts.names import FACE_EXPERTS, PEOPLE_EXPERTS, file_sha256
from veilkit.networks.backbones import BACKBONE_KIND
from veilkit.networks.reid import REID_KIND
from veilkit.types import Evidence, Level

_COMPARED = 160  # public pictures that the networks compete on
_CHOSEN = "recogniser"


@dataclass(frozen=True, slots=True)
class TransferConfig:
    """networks: files of Re-ID networks, in place of the target's start and of the networks known by name."""

    networks: tuple[Path, ...] = ()


class FamilyTransfer(Attack):
    """Searches the release with a network that was never trained on it, but may resemble the authorised expert.

    What is made for one expert is often seen by networks of its family too: fine-tuned from it, or from the same
    public weights. Of all networks at hand that one is taken which tells most of other people's originals by their
    protected pictures; the authorised expert itself is not among them.
    """

    name = "family_transfer"
    summary = "finds people with whichever other network at hand sees most in other people's protected pictures"
    level = Level.L1
    headline = Headline(
        "People found by a network of the family",
        "Of the networks at hand, none of them trained on this release, the best one finds the person of a raw "
        "picture in it {value} of the time{interval}",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})
    uses_weights = True

    def __init__(self, config: TransferConfig | None = None) -> None:
        self.config = config or TransferConfig()
        self._chosen: str | None = None

    @classmethod
    def weights_facts(cls, start: Path | None) -> dict[str, str]:
        """The SHA-256 of the weights, which may be those of a whole network."""
        return {} if start is None else {"start": file_sha256(start)}

    def informed_by(self, evidence: Evidence) -> Self:
        """The gates try the network that was chosen."""
        self._chosen = evidence.details.get(_CHOSEN)
        return self

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices, Rank-k, mAP and mINP, raw queries in the protected gallery."""
        division = divide(replace(target, budget=target.budget or Budget()))
        public, victims = division.public, division.victims
        if missing := division.missing or unsearchable(victims):
            return self.not_applicable(*missing)
        networks = {name: each for name, each in self.networks(target).items() if self._chosen in (None, name)}
        told = {name: _told(public, each) for name, each in networks.items()}
        name = max(told, key=lambda each: told[each])
        chance = {PAIRED: BLIND, **given(victims.search).chance()}
        raw, released = (given(each).features(networks[name]) for each in (victims.originals, victims.protected))
        scores = (same_person_score(victims, raw, released), *found_among(victims, raw, released, chance))
        details = {
            **division.details,
            "chance": chance,
            _CHOSEN: name,
            "told of other people's originals": {each: round(value, 4) for each, value in told.items()},
        }
        return Evidence(self.name, self.level, scores, details=details)

    def networks(self, target: AttackTarget) -> dict[str, Embedder]:
        """All at hand but the authorised expert, by name; the judge where there is no other."""
        judge = given(target.recogniser)
        files = self.config.networks or ((target.start,) if target.start else ())
        found = {file.stem: load_expert(file) for file in files if _is_whole(file)}
        for name in () if self.config.networks else FACE_EXPERTS if names_view(judge.name) else PEOPLE_EXPERTS:
            with suppress(CheckpointError, MissingExtraError):
                found[name] = load_viewed(name) if names_view(name) else load_expert(name)
        taken = "" if target.authorised is None else target.authorised.sha256
        return {name: each for name, each in found.items() if each.sha256 != taken} or {judge.name: judge}


def _told(public: Pairs, network: Embedder) -> float:
    """How often a network prefers the own original of a protected picture to a stranger's, of some public ones."""
    some = np.unique(np.linspace(0, len(public) - 1, min(len(public), _COMPARED)).astype(np.int64))
    raw, shown = (
        HeldPictures([side.load(int(place)) for place in some]).features(network)
        for side in (public.originals, public.protected)
    )
    return float(own_choices(shown, raw, public.people[some]).mean())


def _is_whole(file: Path) -> bool:
    """Whether a file holds a Re-ID network, not a backbone without a head."""
    return load_checkpoint(file, (BACKBONE_KIND, REID_KIND)).kind == REID_KIND
