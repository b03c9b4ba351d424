"""All attacks on unpaired releases; a new one is a line in this table."""

from __future__ import annotations

from veilkit.attacks.class_linkage import ClassLinkage
from veilkit.attacks.membership import (
    PersonInLabels,
    PersonInSet,
    PersonInStudent,
    PictureInLabels,
    PictureInSet,
    PictureInStudent,
)
from veilkit.attacks.memorisation import Memorisation
from veilkit.attacks.shadow_membership import PersonByShadows, PictureByShadows
from veilkit.attacks.unpaired import UnpairedAttack
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
