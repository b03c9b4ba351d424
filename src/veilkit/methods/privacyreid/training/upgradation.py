"""Supervision upgradation (PrivacyReID, Section 3.4): when learned pictures take the place of desensitised ones.

Pure functions of what was measured on the validation people; `anonymiser` acts on the answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Action: TypeAlias = Literal["upgrade", "keep", "revert"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the desensitised pictures of the validation people measured, and how much more is allowed.

    psnr, ssim: mean likeness of desensitised pictures to their originals, in dB and in [-1, 1]. rank1: share of raw
    queries found in a desensitised gallery, by a network trained on both; None where nothing is to be upgraded.
    """

    psnr: float
    ssim: float
    rank1: float | None = None
    psnr_slack: float = 1.0
    ssim_slack: float = 0.05
    rank1_slack: float = 0.05

    def private(self, psnr: float, ssim: float) -> bool:
        """Whether pictures of this likeness to their originals satisfy both privacy constraints."""
        return psnr < self.psnr + self.psnr_slack and ssim < self.ssim + self.ssim_slack

    @property
    def first_rank1(self) -> float | None:
        """What the first upgrade has to beat."""
        return None if self.rank1 is None else self.rank1 - self.rank1_slack


@dataclass(frozen=True, slots=True)
class Supervision:
    """What the generator is trained towards, between two checks.

    best: Rank-1 that the next upgrade has to beat, that of the last upgrade or the first value. upgraded: whether the
    targets are a frozen generator's pictures instead of desensitised ones.
    """

    best: float
    upgraded: bool = False


def decide(
    psnr: float, ssim: float, rank1: float, *, limits: Limits, before: Supervision
) -> tuple[Action, Supervision]:
    """What follows from a check of the generator as it is now.

    psnr, ssim: of its pictures against their originals. rank1: raw queries found in a gallery of its pictures.
    Private pictures that beat the best become the targets; pictures that are not private bring the desensitised ones
    back. The best stays as it was unless there is an upgrade: a failed check sets no mark.
    """
    if not limits.private(psnr, ssim):
        return ("revert" if before.upgraded else "keep"), Supervision(before.best)
    if rank1 > before.best:
        return "upgrade", Supervision(rank1, upgraded=True)
    return "keep", before
