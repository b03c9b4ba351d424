"""Recovered pictures for a report, from whichever attack offers some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from veilkit.attacks import ATTACKS, AttackTarget
from veilkit.attacks.recovered_pictures import RecoveredPictures, ShowsRecovered
from veilkit.types import Evidence


@dataclass(frozen=True, slots=True, eq=False)
class Recovered:
    """Pictures that an attack recovered."""

    attack: str
    pictures: RecoveredPictures


def recovering(evidence: Iterable[Evidence]) -> list[str]:
    """Names of the attacks that were made and can show pictures which they recovered, in the order of their table."""
    made = {each.attack for each in evidence if each.applicable}
    return [name for name, attack in ATTACKS.items() if name in made and issubclass(attack, ShowsRecovered)]


def recovered_pictures(evidence: Iterable[Evidence], target: AttackTarget, count: int) -> Recovered | None:
    """At most `count` pictures by the first attack that can show some; None where none was made."""
    for name in recovering(evidence):
        attack = ATTACKS[name]()
        assert isinstance(attack, ShowsRecovered)
        return Recovered(name, attack.recovered_pictures(target, count))
    return None
