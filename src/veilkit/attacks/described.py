"""What every attack says of itself: findings, verdicts, tables and remedies are built from it and from evidence."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from veilkit.attacks.headline import Cost, Headline, general_headline
from veilkit.types import Evidence, Level, Reason

_TABLE_METRICS = ("rank-1", "mAP", "PSNR", "SSIM", "AUC", "TPR at 1% FPR", "balanced accuracy")


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
    def in_tables(cls, metric: str) -> bool:
        """Whether a report's tables show a score beside the headline; audit.json holds all of them."""
        return metric.endswith(_TABLE_METRICS)

    def not_applicable(self, *missing: Reason) -> Evidence:
        """The evidence of an attack that cannot be made."""
        return Evidence(self.name, self.level, missing=missing)
