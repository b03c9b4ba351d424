"""What an attack, and all attacks of one level, let a reader conclude. Never that something is safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from veilkit.types import Level


class Grade(StrEnum):
    """How bad a leak is, the worst first; then what cannot be graded."""

    BROKEN = "broken"
    SERIOUS = "serious leak"
    SLIGHT = "slight leak"
    UNCLEAR = "too few to tell"
    NOTHING_FOUND = "nothing found"
    NO_VERDICT = "no verdict"
    NOT_ATTACKED = "not attacked"

    @property
    def graded(self) -> bool:
        """Whether an attack stands behind it that passed its gates, or found something though it failed them."""
        return self not in (Grade.NO_VERDICT, Grade.NOT_ATTACKED)

    @property
    def leak(self) -> bool:
        """Whether more than chance was found."""
        return self in (Grade.BROKEN, Grade.SERIOUS, Grade.SLIGHT)


ORDER = tuple(Grade)
"""The worst first."""
KNOWS: dict[Level, tuple[str, str]] = {
    Level.L0: ("ignorant", "knows nothing of the protection"),
    Level.L1: ("black-box", "can run the protection on pictures of other people, or knows how it works"),
    Level.L2: ("informed", "trains on protected pictures"),
    Level.L3: ("white-box", "holds the authorised recogniser or a secret of the protection"),
}
"""A level's name, and what its attacker knows or does."""


@dataclass(frozen=True, slots=True)
class AttackVerdict:
    """One attack that was made, told in plain language with its numbers.

    value, low, high, chance: of its headline `metric`, a rate or an area in [0, 1]. over_chance: how much of the way
    from chance (0) to certainty (1) it goes, clipped to [0, 1]; None where chance is not known. unprotected: the same
    where nothing is protected, as its gates found. counts: whether it takes part in its level's grade; where a person
    stands does not tell who it is. invalid: gates that it failed; where it is graded all the same, it found at least
    so much.
    """

    attack: str
    grade: Grade
    text: str
    metric: str
    value: float
    low: float | None
    high: float | None
    chance: float | None
    over_chance: float | None
    over_chance_low: float | None = None
    over_chance_high: float | None = None
    unprotected: float | None = None
    invalid: tuple[str, ...] = ()
    counts: bool = True


@dataclass(frozen=True, slots=True)
class LevelVerdict:
    """What the attackers of one level got. grade: the worst of the attacks that show anything.

    text: what can be concluded. aside: what else must be known with it. needs: what would give more verdicts, and to
    which attacks. not_attacked: attacks that were not made, and why.
    """

    level: Level
    grade: Grade
    text: str
    aside: str = ""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    attacks: tuple[AttackVerdict, ...] = ()
    not_attacked: Mapping[str, str] = field(default_factory=dict)

    @property
    def worst(self) -> AttackVerdict | None:
        """The attack that decided the grade."""
        graded = [each for each in self.attacks if each.counts and each.grade is self.grade and each.grade.graded]
        return max(graded, key=lambda each: each.over_chance or 0.0, default=None)
