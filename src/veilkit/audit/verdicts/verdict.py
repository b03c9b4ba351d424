"""What an attack, and all attacks of one level, let a reader conclude. Never that something is safe."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from veilkit.configs import check_range, with_settings
from veilkit.errors import ConfigError
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
class Rate:
    """A measured rate with its interval, and what blind guessing reaches."""

    metric: str
    value: float
    low: float | None
    high: float | None
    chance: float | None


@dataclass(frozen=True, slots=True)
class AttackVerdict:
    """One attack that was made, in plain language with its numbers.

    value, low, high, chance: of its headline `metric`, a rate or an area in [0, 1]. over_chance: how much of the way
    from chance (0) to certainty (1) it goes, clipped to [0, 1]; None where chance is not known. unprotected: the same
    where nothing is protected, as its gates found. counts: whether it takes part in its level's grade; where a person
    stands does not tell who it is. invalid: gates that it failed; where it is graded all the same, it found at least
    so much. choices: its choices between two candidates, where those decided the grade.
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
    choices: Rate | None = None

    @property
    def decisive(self) -> Rate:
        """What decided the grade."""
        return self.choices or Rate(self.metric, self.value, self.low, self.high, self.chance)


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
    def name(self) -> str:
        """What its attackers are called."""
        return KNOWS[self.level][0]

    @property
    def knows(self) -> str:
        """What they know or do."""
        return KNOWS[self.level][1]

    @property
    def sentences(self) -> str:
        """Conclusion and aside together."""
        return " ".join(filter(None, (self.text, self.aside)))

    @property
    def worst(self) -> AttackVerdict | None:
        """The attack that decided the grade."""
        graded = [each for each in self.attacks if each.counts and each.grade is self.grade and each.grade.graded]
        return max(graded, key=lambda each: each.over_chance or 0.0, default=None)


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares of the way from chance (0) to certainty (1), so that attacks of different chance can be graded alike.

    serious, broken: a leak that goes so far is called that; less, if surely more than chance, is slight. ruled_out:
    "nothing found" is only said where the interval leaves room for no more than this; else there were too few people.
    """

    serious: float = 0.1
    broken: float = 0.5
    ruled_out: float = 0.05

    def __post_init__(self) -> None:
        for name in ("serious", "broken", "ruled_out"):
            check_range(name, getattr(self, name), 0.0, 1.0)
        if not 0.0 < self.serious <= self.broken:
            raise ConfigError(
                f"serious must be above 0 and at most broken, but got serious={self.serious}, broken={self.broken}"
            )

    def meaning(self) -> dict[Grade, str]:
        """What each grade stands for, in words."""
        serious, broken, ruled_out = (f"{100 * each:g} %" for each in (self.serious, self.broken, self.ruled_out))
        return {
            Grade.BROKEN: f"an attack gets at least {broken} of the way from chance to certainty",
            Grade.SERIOUS: f"at least {serious} of that way",
            Grade.SLIGHT: f"less than {serious}, but surely more than chance (95 % interval)",
            Grade.UNCLEAR: "not surely more than chance, but more people are needed to rule a leak out",
            Grade.NOTHING_FOUND: f"these attackers are at chance; more than {ruled_out} of the way is ruled out "
            "(95 % interval). Others may find more",
            Grade.NO_VERDICT: "attacks were made, but all failed their gates: their numbers prove nothing",
            Grade.NOT_ATTACKED: "nobody tried",
        }


def chosen_thresholds(given: str | Path | Thresholds | None) -> Thresholds:
    """The thresholds themselves, those of a TOML file, or the defaults."""
    if given is None:
        return Thresholds()
    return given if isinstance(given, Thresholds) else read_thresholds(Path(given))


def read_thresholds(file: Path) -> Thresholds:
    """Thresholds of a TOML file: `serious`, `broken` and `ruled_out`, at its top or in a table `thresholds`."""
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"the thresholds cannot be read from {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from None
    table = values.get("thresholds", values)
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: expected a table [thresholds], but got thresholds = {table!r}")
    return with_settings(Thresholds(), table)


def over_chance(rate: float, chance: float) -> float:
    """How much of the way from chance to certainty a rate goes, in [0, 1].

    >>> over_chance(0.75, 0.5), over_chance(0.05, 0.1)
    (0.5, 0.0)
    """
    if chance >= 1.0:
        return 0.0
    return min(1.0, max(0.0, (rate - chance) / (1.0 - chance)))


def grade(value: float, low: float | None, high: float | None, chance: float, thresholds: Thresholds) -> Grade:
    """The grade of a rate with its interval; without an interval nobody can tell."""
    if low is None or high is None:
        return Grade.UNCLEAR
    if low > chance:
        got = over_chance(value, chance) + _ROUNDING
        if got >= thresholds.broken:
            return Grade.BROKEN
        return Grade.SERIOUS if got >= thresholds.serious else Grade.SLIGHT
    return Grade.NOTHING_FOUND if over_chance(high, chance) <= thresholds.ruled_out else Grade.UNCLEAR
