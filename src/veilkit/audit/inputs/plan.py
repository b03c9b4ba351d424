"""What one audit is asked to do: two folders, who judges, what attackers may spend. A worker can be sent it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS, Budget
from veilkit.errors import UsageError
from veilkit.experts import Embedder
from veilkit.media.reading import Limits

Recogniser = str | Path | Embedder | None


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The options of `run_audit`, resolved. features: the cache's file. work: where trainings are kept.

    attacks: names of those to make. budget: of attackers who learn, None for none; why_none: why there is none, where
    one was asked for. people: at most so many are measured, None for all. start: weights that those who train a
    recogniser start from. model: of the protection, for who can run it or has stolen it.
    """

    originals: Path
    protected: Path
    features: Path
    work: Path
    attacks: frozenset[str]
    key: Path | None = None
    seed: int | None = None
    expert: Recogniser = None
    judge: Recogniser = None
    labels: str = "auto"
    boxes: Path | None = None
    unseen: Path | None = None
    held_out: Path | None = None
    student: Recogniser = None
    decoder: Path | None = None
    model: Path | None = None
    budget: Budget | None = None
    why_none: str = ""
    start: Path | None = None
    people: int | None = None
    draw_seed: int = 0
    limits: Limits = field(default_factory=Limits)

    @property
    def key_file(self) -> Path | None:
        """The key that was given, or the one where `protect` puts it."""
        beside = self.protected.with_name(self.protected.name + ".private") / "key"
        return self.key or (beside if beside.is_file() else None)

    @property
    def private_folders(self) -> tuple[Path, ...]:
        """Where a ledger of the release may lie: beside its key, and where `protect` puts it."""
        beside = self.protected.with_name(self.protected.name + ".private")
        return (beside,) if self.key is None or self.key.parent == beside else (self.key.parent, beside)


def wanted_attacks(attacks: Sequence[str] | None) -> frozenset[str]:
    """The names of the attacks to run, all of them by default; raises for a name that is none."""
    known = {**ATTACKS, **UNPAIRED_ATTACKS}
    for name in attacks or ():
        if name not in known:
            raise UsageError(f"there is no attack {name!r}; there are {', '.join(sorted(known))}")
    return frozenset(known if attacks is None else attacks)
