"""How an attack says what it found: the sentence of its headline, and what a reader must know with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cost(StrEnum):
    """What an attack takes, for who has to divide a time among several."""

    SECONDS = "seconds"
    TRAINING = "a training"
    RECOGNISER = "a training of a whole recogniser, or steps through one"


@dataclass(frozen=True, slots=True)
class Headline:
    """A title for a finding, and its sentence, which holds {value}, {interval}, and {judge} or {Judge}, who searches.

    blind: what blind guessing does. metric: the score that it speaks of; the first of the evidence where it is empty.
    warning: what to add where more than chance was surely found. undoes: whether it brings back who or what was
    protected; it is then told first, and warned of. beside_originals: whether the judge's rate on the
    originals says what could be found. question, signal: attacks of one question are told together, the first valid
    one in full, the others by their signal.
    """

    title: str
    sentence: str
    blind: str = "finds"
    metric: str = "rank-1"
    warning: str = ""
    undoes: bool = False
    beside_originals: bool = False
    question: str = ""
    signal: str = ""

    def __post_init__(self) -> None:
        if self.undoes and not self.warning:
            object.__setattr__(self, "warning", "This protection is not safe.")


def general_headline(name: str, summary: str) -> Headline:
    """The headline of an attack that gives none."""
    title = name.replace("_", " ").capitalize()
    sentence = f"The attack {name} ({_plain(summary)}) succeeds {{value}} of the time{{interval}}"
    return Headline(title, sentence, metric="")


def undoing_headline(title: str, who: str, what: str) -> Headline:
    """The headline of an attack that brings pictures back, in which a judge then searches."""
    sentence = f"An attacker {who} {what}; in {{value}} of them{{interval}} {{judge}} then finds the very original"
    return Headline(title, sentence, undoes=True)


def _plain(text: str) -> str:
    """Text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")
