"""Releases to evidence. One file per attack; a new one is a line in this table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilkit.lookup import LazyLookup, lazy_names

if TYPE_CHECKING:
    from pathlib import Path

    from veilkit.attacks.base import Attack, Need
    from veilkit.attacks.gated import Trial, run_gated
    from veilkit.attacks.synthetic_release.base import (
        LabelledPictures,
        UnpairedAttack,
        UnpairedNeed,
        UnpairedRelease,
        UnpairedTarget,
    )
    from veilkit.attacks.synthetic_release.gated import UnpairedTrial, run_unpaired
    from veilkit.attacks.target import AttackTarget, Budget, Masks, Oracle, Pairs, Protector, Undo

# An attack is imported when it is first asked for: a wrong name must not wait for networks.
ATTACKS: LazyLookup[type[Attack]] = LazyLookup(
    "attack",
    [
        ("stock_recogniser", "veilkit.attacks.person_search:StockRecogniser"),
        ("linkage", "veilkit.attacks.person_search:Linkage"),
        ("farthest_match", "veilkit.attacks.farthest_match:FarthestMatch"),
        ("own_original", "veilkit.attacks.own_original:OwnOriginal"),
        ("mean_image", "veilkit.attacks.mean_image:MeanImage"),
        ("jigsaw", "veilkit.attacks.jigsaw.attack:Jigsaw"),
        ("unmix", "veilkit.attacks.unmix.attack:Unmix"),
        ("stolen_decoder", "veilkit.attacks.stolen_decoder:StolenDecoder"),
        ("attribute_path", "veilkit.attacks.person_search:AttributePath"),
        ("colour_layout", "veilkit.attacks.quick.originals:ColourLayout"),
        ("pooled_linkage", "veilkit.attacks.quick.pooled:PooledLinkage"),
        ("clothes", "veilkit.attacks.quick.clothes:Clothes"),
        ("linear_recovery", "veilkit.attacks.quick.originals:LinearRecovery"),
        ("family_transfer", "veilkit.attacks.family_transfer:FamilyTransfer"),
        ("discriminant", "veilkit.attacks.quick.people:Discriminant"),
        ("linear_decoder", "veilkit.attacks.quick.originals:LinearDecoder"),
        ("stolen_expert", "veilkit.attacks.quick.people:StolenExpert"),
        # Those below learn or optimise, and apply only with a budget.
        ("recovery", "veilkit.attacks.learned.recovery:Recovery"),
        ("recovery_features", "veilkit.attacks.learned.recovery:RecoveryWithFeatures"),
        ("embedding_inversion", "veilkit.attacks.learned.embedding_inversion:EmbeddingInversion"),
        ("identity_inversion", "veilkit.attacks.learned.embedding_inversion:IdentityInversion"),
        ("feature_decoder", "veilkit.attacks.features.inversion:FeatureDecoding"),
        ("public_decoder", "veilkit.attacks.features.inversion:PublicDecoding"),
        ("feature_matching", "veilkit.attacks.features.inversion:FeatureMatching"),
        ("feature_reconstruction", "veilkit.attacks.features.inversion:FeatureReconstruction"),
        ("averaging", "veilkit.attacks.averaging:Averaging"),
        ("identification", "veilkit.attacks.identify:Identification"),
        ("cloning", "veilkit.attacks.learned.cloning:ExpertCloning"),
        ("retrained", "veilkit.attacks.learned.retrained:Retrained"),
        ("silhouette", "veilkit.attacks.learned.silhouette:Silhouette"),
    ],
)
UNPAIRED_ATTACKS: LazyLookup[type[UnpairedAttack]] = LazyLookup(
    "attack",
    [
        ("class_linkage", "veilkit.attacks.synthetic_release.class_linkage:ClassLinkage"),
        ("memorisation", "veilkit.attacks.synthetic_release.memorisation:Memorisation"),
        ("membership_set_person", "veilkit.attacks.synthetic_release.membership:PersonInSet"),
        ("membership_set_picture", "veilkit.attacks.synthetic_release.membership:PictureInSet"),
        ("membership_labels_person", "veilkit.attacks.synthetic_release.membership:PersonInLabels"),
        ("membership_labels_picture", "veilkit.attacks.synthetic_release.membership:PictureInLabels"),
        ("membership_student_person", "veilkit.attacks.synthetic_release.membership:PersonInStudent"),
        ("membership_student_picture", "veilkit.attacks.synthetic_release.membership:PictureInStudent"),
        ("membership_shadows_person", "veilkit.attacks.synthetic_release.membership:PersonByShadows"),
        ("membership_shadows_picture", "veilkit.attacks.synthetic_release.membership:PictureByShadows"),
    ],
)


def attack_named(name: str) -> type[Attack] | type[UnpairedAttack] | None:
    """The attack of this name on paired or on synthetic releases; None where this version has none."""
    return UNPAIRED_ATTACKS.find(name) or ATTACKS.find(name)


def weights_facts(start: Path | None) -> dict[str, str]:
    """What results depend on where attackers start from weights; raises where one cannot start from them."""
    return {name: value for attack in ATTACKS.values() for name, value in attack.weights_facts(start).items()}


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
    "weights_facts",
]

__getattr__ = lazy_names(
    __name__,
    {
        "base": "Attack Need",
        "gated": "Trial run_gated",
        "synthetic_release.base": "LabelledPictures UnpairedAttack UnpairedNeed UnpairedRelease UnpairedTarget",
        "synthetic_release.gated": "UnpairedTrial run_unpaired",
        "target": "AttackTarget Budget Masks Oracle Pairs Protector Undo",
    },
)
