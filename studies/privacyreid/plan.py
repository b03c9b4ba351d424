"""What PrivacyReID's study computes: its options, the three trainings that it compares, and the attacks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from veilkit.attacks import ATTACKS
from veilkit.attacks.learned.recovery import Recovery
from veilkit.attacks.people_split import FEWEST
from veilkit.attacks.stolen_decoder import StolenDecoder
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.experts.names import file_sha256
from veilkit.methods.privacyreid.config import SMALL, Kind, PrivacyReidConfig

BASE, WITHOUT, WITH = "base", "without", "with"
KIND = "pixelate"  # the first supervision that tables and claims are about
STAGES = (BASE, WITHOUT, WITH)  # the paper's Table 5, from the worst retrieval to the best
LEARNED = (WITHOUT, WITH)
STRANGER = "stranger"  # Figure 9a: a recogniser that was trained on raw pictures alone
_CHOICES = ("desensitise", "attacks", "compared")  # each entry of these has cells of its own

# Base and joint training have equally many epochs, as in the paper, and fewer than the preset, as three are trained:
# on CUHK03-NP about two core hours together. Checks are more frequent in proportion.
METHOD = replace(SMALL, reid=replace(SMALL.reid, epochs=20), baseline_epochs=20, check_every=2)


@dataclass(frozen=True, slots=True)
class PrivacyReidStudyConfig:
    """people: of the test part, the first by name, whose pictures are searched for, recovered and attacked.

    queries, gallery: pictures of each of them, cameras in turn. public_people, public_pictures: of the training part,
    the first by name and pictures of each; attackers may protect these and learn from them. training_people: of the
    training part, the first by name, from whom all trainings learn, a part of them for validation; None is everybody.
    desensitise: first supervisions, each of which is trained three times. method: of all trainings, but for what
    tells the three apart (`desensitise` and `upgrade`).

    updates, batch: of every attacker who trains a network. width: of the recovery network. attacks: on the release
    with upgradation; compared: on the desensitised one too. shown: people in Figure 9.
    """

    people: int = 700
    queries: int = 2
    gallery: int = 2
    public_people: int = 200
    public_pictures: int = 4
    training_people: int | None = None
    desensitise: tuple[Kind, ...] = ("pixelate",)
    method: PrivacyReidConfig = field(default_factory=lambda: METHOD)
    updates: int = 1000
    batch: int = 16
    width: int = 16
    attacks: tuple[str, ...] = (
        "stock_recogniser", "linkage", "own_original", "recovery", "stolen_decoder", "retrained",
    )  # fmt: skip
    compared: tuple[str, ...] = ("stock_recogniser", "linkage", "own_original", "recovery", "retrained")
    shown: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.desensitise:
            raise ConfigError("desensitise must name at least one of blur, pixelate and noise")
        for name in (*self.attacks, *self.compared):
            _ = ATTACKS[name]
        if StolenDecoder.name in self.compared:
            raise ConfigError("desensitised pictures have no decoder: leave stolen_decoder out of compared")
        if min(self.people, self.public_people) < FEWEST:
            raise ConfigError(
                f"people and public_people must be at least {FEWEST}, for an attacker to learn from some and to be "
                f"scored on others, but got {self.people} and {self.public_people}"
            )
        if min(self.queries, self.gallery, self.public_pictures) < 1:
            raise ConfigError("queries, gallery and public_pictures must be at least 1")
        if not 2 <= self.shown <= self.people:
            raise ConfigError(f"shown must be at least 2 and at most people, but got {self.shown} and {self.people}")

    def trained(self, kind: Kind, stage: str) -> PrivacyReidConfig:
        """The configuration of one training; base is what the one with upgradation starts from."""
        return replace(self.method, desensitise=kind, upgrade=stage != WITHOUT)

    @property
    def locked(self) -> bool:
        """Whether it can be told if the secret decoder recovers more than a network that never saw it."""
        return Recovery.name in self.attacks


def cell_names(config: PrivacyReidStudyConfig) -> tuple[str, ...]:
    """All cells, in the order in which they are computed."""
    return tuple(
        name
        for kind in config.desensitise
        for name in (
            *(f"training/{kind}/{stage}" for stage in LEARNED),
            *(f"release/{kind}/{stage}" for stage in STAGES),
            *(f"recovered/{kind}/{stage}" for stage in LEARNED),
            f"order/{kind}",
            *(f"features/{kind}/{stage}" for stage in (STRANGER, *STAGES)),
            *(f"attack/{kind}/{BASE}/{attack}" for attack in config.compared),
            *(f"attack/{kind}/{WITH}/{attack}" for attack in config.attacks),
            *((f"lock/{kind}",) if config.locked else ()),
        )
    )


def scale(config: PrivacyReidStudyConfig) -> str:
    """What the figures are of."""
    people = "all" if config.training_people is None else config.training_people
    return (
        f"{KIND}; {config.method.reid.epochs} epochs of {people} training people, MobileNetV2; {config.people} test "
        f"people, {config.queries} query and {config.gallery} gallery pictures each; attackers: "
        f"{config.public_people} training people, {config.updates} updates"
    )


def study_settings(config: PrivacyReidStudyConfig, judge: Embedder, init: Path | None) -> dict[str, Any]:
    """All that the cells of a study depend on, besides the pictures. More attacks or desensitisers may be added."""
    shared = {name: value for name, value in asdict(config).items() if name not in _CHOICES}
    return {
        **shared,
        "judge": judge.info.fingerprint,
        "init": None if init is None else file_sha256(init),
    }
