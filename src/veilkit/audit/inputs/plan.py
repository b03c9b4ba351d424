"""What one audit is asked to do: two folders, who judges, what attackers may spend. A worker can be sent it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from veilkit.attacks import Budget
from veilkit.audit.options import AuditOptions
from veilkit.experts import Embedder
from veilkit.media.reading import Limits
from veilkit.options import words_of

Recogniser = str | Path | Embedder | None


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The options of an audit, resolved. features: the cache's file. work: where trainings are kept.

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

    @classmethod
    def of(cls, options: AuditOptions, **own: Any) -> AuditPlan:
        """The plan of an audit with these options, whose paths are followed now; `own` is what they do not hold."""
        words, names = words_of(AuditOptions), {each.name for each in fields(cls)} - own.keys()
        given: dict[str, Any] = {name: getattr(options, name) for name in names if hasattr(options, name)}
        for name, value in given.items():
            if name in words and words[name].kind is Path and isinstance(value, str | Path):
                given[name] = Path(value).resolve()
        return cls(**{name: value for name, value in given.items() if value is not None}, **own)

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
