"""All attacks on unpaired releases; a new one is a line in this table."""

from __future__ import annotations

from veilkit.attacks.synthetic_release.base import UnpairedAttack
from veilkit.attacks.synthetic_release.class_linkage import ClassLinkage
from veilkit.attacks.synthetic_release.membership import (
    PersonInLabels,
    PersonInSet,
    PersonInStudent,
    PictureInLabels,
    PictureInSet,
    PictureInStudent,
)
from veilkit.attacks.synthetic_release.memorisation import Memorisation
from veilkit.attacks.synthetic_release.shadow_membership import PersonByShadows, PictureByShadows
from veilkit.lookup import Lookup

_ALL: tuple[type[UnpairedAttack], ...] = (
    ClassLinkage,
    Memorisation,
    PersonInSet,
    PictureInSet,
    PersonInLabels,
    PictureInLabels,
    PersonInStudent,
    PictureInStudent,
    PersonByShadows,
    PictureByShadows,
)
UNPAIRED_ATTACKS: Lookup[type[UnpairedAttack]] = Lookup("attack", [(attack.name, attack) for attack in _ALL])
