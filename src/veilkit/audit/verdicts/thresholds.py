"""From which rate on a leak counts as how bad. Conventions, stated in every report; a user may set others."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from veilkit.audit.verdicts.verdict import Grade
from veilkit.configs import check_range, with_settings
from veilkit.errors import ConfigError

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
