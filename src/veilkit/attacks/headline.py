"""What every attack says of itself: findings, verdicts, tables and remedies are built from it and from evidence."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from veilkit.types import Evidence, Level, Reason

_TABLE_METRICS = ("rank-1", "mAP", "PSNR", "SSIM", "AUC", "TPR at 1% FPR", "balanced accuracy", "paired choice")


class Cost(StrEnum):
    """What an attack takes, for who has to divide a time among several."""

    SECONDS = "seconds"
    TRAINING = "a training"
    RECOGNISER = "a training of a whole recogniser, or steps through one"


class Risk(StrEnum):
    """What an attack asks, in the words of the Article 29 Working Party's opinion on anonymisation (WP216)."""

    SINGLING_OUT = "singling out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"


@dataclass(frozen=True, slots=True)
class Headline:
    """A title for a finding, and its sentence, which holds {value}, {interval}, and {judge} or {Judge}, who searches.

    blind: what blind guessing does. metric: the score that it speaks of; the first of the evidence where it is empty.
    warning: what to add where more than chance was surely found. undoes: whether it brings back who or what was
    protected; its finding then comes first, with a warning. beside_originals: whether the judge's rate on the
    originals says what could be found. question, signal: attacks that ask one question share a finding, the first
    valid one in full, the others by their signal.
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
    summary = summary.replace("{", "{{").replace("}", "}}")
    sentence = f"The attack {name} ({summary}) succeeds {{value}} of the time{{interval}}"
    return Headline(name.replace("_", " ").capitalize(), sentence, metric="")


def undoing_headline(title: str, who: str, what: str) -> Headline:
    """The headline of an attack that brings pictures back, in which a judge then searches."""
    sentence = f"An attacker {who} {what}; in {{value}} of them{{interval}} {{judge}} then finds the very original"
    return Headline(title, sentence, undoes=True)


class Described(ABC):
    """An attack's name, what it does in a line, what its adversary knows, and how its result is stated.

    headline: the sentence of its finding, a general one by default. cost: of an attack that learns or optimises.
    baseline: not an adversary but what adversaries must beat; it has no gates and no verdict. tells_identity: whether
    it tells who somebody is; another takes no part in a level's grade.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    level: ClassVar[Level]
    headline: ClassVar[Headline]
    cost: ClassVar[Cost] = Cost.SECONDS
    baseline: ClassVar[bool] = False
    tells_identity: ClassVar[bool] = True

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if "name" in vars(cls) and "headline" not in vars(cls):
            cls.headline = general_headline(cls.name, cls.summary)

    @classmethod
    def risk(cls) -> Risk:
        """Which of the three risks it shows: by default the very original of a picture is found."""
        return Risk.SINGLING_OUT if cls.tells_identity else Risk.INFERENCE

    @classmethod
    def in_tables(cls, metric: str) -> bool:
        """Whether a report's tables show a score beside the headline; audit.json holds all of them."""
        return metric.endswith(_TABLE_METRICS)

    def not_applicable(self, *missing: Reason) -> Evidence:
        """The evidence of an attack that cannot be made."""
        return Evidence(self.name, self.level, missing=missing)
