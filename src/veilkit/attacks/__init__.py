"""Releases to evidence. One file per attack; a new one is a line in this table."""

from __future__ import annotations

from veilkit.attacks.attribute_path import AttributePath
from veilkit.attacks.averaging import Averaging
from veilkit.attacks.base import Attack, AttackTarget, Need, Oracle
from veilkit.attacks.embedding_inversion import EmbeddingInversion
from veilkit.attacks.farthest_match import FarthestMatch
from veilkit.attacks.feature_inversion import FeatureDecoding, FeatureMatching, FeatureReconstruction
from veilkit.attacks.gated import Trial, run_gated
from veilkit.attacks.identify import Identification
from veilkit.attacks.identity_inversion import IdentityInversion
from veilkit.attacks.jigsaw import Jigsaw
from veilkit.attacks.linkage import Linkage
from veilkit.attacks.mean_image import MeanImage
from veilkit.attacks.means import Budget, Masks, Pairs, Protector, Undo
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.recovery import Recovery, RecoveryWithFeatures
from veilkit.attacks.retrained import Retrained
from veilkit.attacks.silhouette import Silhouette
from veilkit.attacks.stock_recogniser import StockRecogniser
from veilkit.attacks.stolen_decoder import StolenDecoder
from veilkit.attacks.unmix import Unmix
from veilkit.attacks.unpaired import LabelledPictures, UnpairedAttack, UnpairedNeed, UnpairedRelease, UnpairedTarget
from veilkit.attacks.unpaired_gated import UnpairedTrial, run_unpaired
from veilkit.attacks.unpaired_table import UNPAIRED_ATTACKS
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
    "run_gated",
    "run_unpaired",
]
