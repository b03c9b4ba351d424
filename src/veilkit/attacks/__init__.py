"""Releases to evidence. One file per attack; a new one is a line in this table."""

from __future__ import annotations

from veilkit.attacks.adversary import Budget, Masks, Pairs, Protector, Undo
from veilkit.attacks.attribute_path import AttributePath
from veilkit.attacks.averaging import Averaging
from veilkit.attacks.base import Attack, AttackTarget, Need, Oracle
from veilkit.attacks.farthest_match import FarthestMatch
from veilkit.attacks.features.inversion import FeatureDecoding, FeatureMatching, FeatureReconstruction
from veilkit.attacks.gated import Trial, run_gated
from veilkit.attacks.identify import Identification
from veilkit.attacks.jigsaw.attack import Jigsaw
from veilkit.attacks.learned.embedding_inversion import EmbeddingInversion
from veilkit.attacks.learned.identity_inversion import IdentityInversion
from veilkit.attacks.learned.recovery import Recovery, RecoveryWithFeatures
from veilkit.attacks.learned.retrained import Retrained
from veilkit.attacks.learned.silhouette import Silhouette
from veilkit.attacks.linkage import Linkage
from veilkit.attacks.mean_image import MeanImage
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.stock_recogniser import StockRecogniser
from veilkit.attacks.stolen_decoder import StolenDecoder
from veilkit.attacks.synthetic_release.base import (
    LabelledPictures,
    UnpairedAttack,
    UnpairedNeed,
    UnpairedRelease,
    UnpairedTarget,
)
from veilkit.attacks.synthetic_release.gated import UnpairedTrial, run_unpaired
from veilkit.attacks.synthetic_release.table import UNPAIRED_ATTACKS
from veilkit.attacks.unmix.attack import Unmix
from veilkit.lookup import Lookup

_ALL: tuple[type[Attack], ...] = (
    StockRecogniser,
    Linkage,
    FarthestMatch,
    OwnOriginal,
    MeanImage,
    Jigsaw,
    Unmix,
    StolenDecoder,
    AttributePath,
    # Those below learn or optimise, and apply only with a budget.
    Recovery,
    RecoveryWithFeatures,
    EmbeddingInversion,
    IdentityInversion,
    FeatureDecoding,
    FeatureMatching,
    FeatureReconstruction,
    Averaging,
    Identification,
    Retrained,
    Silhouette,
)
ATTACKS: Lookup[type[Attack]] = Lookup("attack", [(attack.name, attack) for attack in _ALL])


def attack_named(name: str) -> type[Attack] | type[UnpairedAttack] | None:
    """The attack of this name on paired or on synthetic releases; None where this version has none."""
    return UNPAIRED_ATTACKS.find(name) or ATTACKS.find(name)


__all__ = [
    "ATTACKS",
    "UNPAIRED_ATTACKS",
    "Attack",
    "AttackTarget",
    "Budget",
    "LabelledPictures",
    "Masks",
    "Need",
    "Oracle",
    "Pairs",
    "Protector",
    "Trial",
    "Undo",
    "UnpairedAttack",
    "UnpairedNeed",
    "UnpairedRelease",
    "UnpairedTarget",
    "UnpairedTrial",
    "attack_named",
    "run_gated",
    "run_unpaired",
]
