"""What `audit` may be asked for, checked before anything is read, computed or made on disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.datasets.folder import check_folder
from veilkit.errors import DataError, KeyFileError, UsageError
from veilkit.experts.names import check_expert_name
from veilkit.options import Options, check_model_file, option, words_of

if TYPE_CHECKING:
    from veilkit.attacks import Budget
    from veilkit.audit.inputs.faces import Seen
    from veilkit.audit.result import Alarm
    from veilkit.audit.verdicts.verdict import Thresholds
    from veilkit.experts.base import Embedder
    from veilkit.media.reading import Limits

_UNITS = {"s": 1, "m": 60, "h": 3600}
NO_BUDGET = "none"
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smh])")


@dataclass(frozen=True)
class AuditOptions(Options):
    """One audit. expert, judge and student are names, model files, or embedders of one's own.

    cache: a folder for features, in place of OUT/cache, which audits of one set of originals may share. cells: a
    folder for cells in place of OUT/cells, which several audits may share; prefix: what the names of this one's begin
    with. limits: what is read of pictures. alarms: what was found wrong before the pictures were made.
    """

    originals: str | Path = option(MISSING, "Folder of the original pictures.", kind=Path, positional=True)
    protected: str | Path = option(
        MISSING, "Folder of protected pictures, made by any tool.", kind=Path, positional=True
    )
    key: str | Path | None = option(
        None, "Key of the release, where its names are pseudonyms.", kind=Path, shown="PROTECTED.private/key"
    )
    seed: int | None = option(None, "The public seed that the release was made with, instead of a key.", kind=int)
    expert: str | Path | Embedder | None = option(
        None, "The authorised recogniser: a name or a .safetensors file.", shown="people"
    )
    judge: str | Path | Embedder | None = option(
        None, "An independent recogniser to attack with.", shown="the built-in one that is not the expert"
    )
    labels: str = option(
        "auto", "Who is in an original: auto, none, folder, market, pattern:REGEX or csv:FILE.", fact="labels"
    )
    unseen: str | Path | None = option(
        None, "Synthetic release: other pictures of the training people, not trained on, labelled alike.", kind=Path,
        metavar="DIR", fact="unseen", stands="UNSEEN",
    )  # fmt: skip
    held_out: str | Path | None = option(
        None, "Synthetic release: pictures of other people.", kind=Path, metavar="DIR",
        shown="people of ORIGINALS without a class", fact="held_out", stands="OTHERS",
    )  # fmt: skip
    student: str | Path | Embedder | None = option(
        None, "For a synthetic release: a student trained on it (.safetensors).", kind=Path, metavar="FILE",
        fact="student_sha256", stands="STUDENT",
    )  # fmt: skip
    decoder: str | Path | None = option(
        None, "The release's secret decoder, for attackers who stole it.", kind=Path, metavar="FILE",
        fact="decoder_sha256", stands="DECODER",
    )  # fmt: skip
    model: str | Path | None = option(
        None, "The model that the release was made with, for attackers who run the protection.", kind=Path,
        metavar="FILE", fact="model_sha256", stands="MODEL",
    )  # fmt: skip
    out: str | Path | None = option(
        None, "Folder for audit.json, report.html and audit.md.", kind=Path, shown="PROTECTED.audit"
    )
    show_originals: bool = option(False, "Show originals beside protected pictures in the report.", kind=bool)
    learn: int | None = option(
        None, "Also make attacks that learn (recovery networks, feature inversion, a retrained recogniser ...), "
        "with this many updates each, three times over for their gates; 2000 take about an hour each on a CPU core.",
        kind=int, least=1, metavar="UPDATES", fact="learn",
    )  # fmt: skip
    budget: str | None = option(
        None, "Take about this long (90s, 10m, 2h), in place of --learn: people and updates are chosen to fit. "
        "none: only attackers in closed form, on all people.", metavar="TIME",
        shown="3m, without --learn and --attack",
    )  # fmt: skip
    start: str | Path | None = option(
        None, "Weights from which the attacker who trains a recogniser starts: a backbone or a Re-ID network "
        "(.safetensors).", kind=Path, metavar="FILE", shown="scratch", fact="start_sha256", stands="WEIGHTS",
    )  # fmt: skip
    attacks: Sequence[str] | None = option(
        None, "Only this attack (`veilkit attacks list`); may be repeated.", flag="--attack", metavar="NAME",
        many=True, fact="attacks",
    )  # fmt: skip
    boxes: str | Path | None = option(
        None, "CSV (path,x,y,w,h,identity) of people in whole pictures; each box is audited as a picture of its "
        "own.", kind=Path,
        metavar="FILE", fact="boxes", stands="BOXES",
    )  # fmt: skip
    kind: str = option(
        "auto", "Judge by the faces, and by their surroundings apart, or by the whole person. auto looks for "
        "faces in a sample, unless --expert, --judge or --boxes decide it.",
        choices=("auto", "faces", "people"), fact="kind",
    )  # fmt: skip
    videos: bool = option(
        False, "Audit videos: faces are followed through the originals and cut out of both; each track is a person.",
        kind=bool,
    )  # fmt: skip
    workers: int = option(1, "Processes that make attacks; the result is the same for any number.", kind=int, least=1)
    draw_seed: int = option(0, "Seed of the bootstrap and of the gates' noise.", kind=int, fact="draw_seed")
    thresholds: str | Path | Thresholds | None = option(
        None, "How far on the way from chance to certainty a leak is serious, broken, or ruled out.", kind=Path,
        metavar="TOML", shown="serious 0.1, broken 0.5, ruled_out 0.05",
    )  # fmt: skip
    cache: str | Path | None = None
    limits: Limits | None = None
    cells: str | Path | None = None
    prefix: str = ""
    alarms: tuple[Alarm, ...] = ()

    def check(self) -> AuditOptions:
        """Raise for a folder, file, name or number that is wrong, or for what does not go together."""
        originals, protected = (Path(each).resolve() for each in (self.originals, self.protected))
        for folder in (originals, protected):
            check_folder(folder)
        if originals == protected:
            raise UsageError(
                "ORIGINALS and PROTECTED are one folder: put the protected pictures, as a tool leaves them beside "
                "their originals, into a folder of their own"
            )
        _check_not_swapped(originals, protected)
        super().check()
        if self.learn is not None and self.seconds is not None:
            raise UsageError("give a number of updates (--learn) or a time (--budget), not both")
        _ = self.seconds
        if self.videos and self.boxes is not None:
            raise UsageError("boxes are for pictures: leave them out, or --videos")
        if self.kind == "faces" and self.boxes is not None:
            raise UsageError("--boxes say where people stand: leave them out, or --kind faces")
        if self.thresholds is not None:
            from veilkit.audit.verdicts.verdict import chosen_thresholds

            chosen_thresholds(self.thresholds)
        wanted_attacks(self.attacks)
        check_expert_name(self.expert)
        check_expert_name(self.judge)
        self._check_files()
        _ = self.destination
        return self

    def _check_files(self) -> None:
        for file in (self.start, self.model, self.decoder, self.student):
            if isinstance(file, str | Path):
                check_model_file(file)
        if self.key is not None and not Path(self.key).exists():
            raise KeyFileError(f"there is no key file {self.key}; name the one that the release was made with")
        if self.boxes is not None and not Path(self.boxes).is_file():
            raise DataError(f"expected a CSV file of boxes, but {self.boxes} is not there, or is no file")
        for folder in (self.unseen, self.held_out):
            if folder is not None:
                check_folder(Path(folder))

    @property
    def seconds(self) -> float | None:
        """The time that was given; None for none."""
        return None if self.budget in (None, NO_BUDGET) else seconds_of(self.budget)

    @property
    def destination(self) -> Path:
        """Where the audit is written: `out`, or PROTECTED.audit; never among the pictures."""
        try:
            sources = (Path(self.originals).resolve(), Path(self.protected).resolve())
            beside = sources[1].with_name(sources[1].name + ".audit")
            target = beside if self.out is None else Path(self.out).resolve()
        except (OSError, RuntimeError):  # a link to itself
            raise UsageError(f"{self.out or self.protected} leads nowhere: links there form a loop") from None
        for folder in sources:
            if target == folder or folder in target.parents:
                raise UsageError(
                    f"the audit must lie apart from the pictures, but {target} is in {folder}; see --out"
                )
        return target


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The options of an audit, resolved. features: the cache's file. work: where trainings are kept.

    attacks: names of those to make. budget: of attackers who learn, None for none; why_none: why there is none, where
    one was asked for. people: at most so many are measured, None for all. start: weights that those who train a
    recogniser start from. model: of the protection, for who can run it or has stolen it. seen: what of each file is
    judged; why_seen: what a reader must know of that choice.
    """

    originals: Path
    protected: Path
    features: Path
    work: Path
    attacks: frozenset[str]
    limits: Limits
    key: Path | None = None
    seed: int | None = None
    expert: str | Path | Embedder | None = None
    judge: str | Path | Embedder | None = None
    labels: str = "auto"
    boxes: Path | None = None
    unseen: Path | None = None
    held_out: Path | None = None
    student: str | Path | Embedder | None = None
    decoder: Path | None = None
    model: Path | None = None
    budget: Budget | None = None
    why_none: str = ""
    start: Path | None = None
    people: int | None = None
    draw_seed: int = 0
    kind: str = "auto"
    seen: Seen = "pictures"
    why_seen: str = ""

    @classmethod
    def of(cls, options: AuditOptions, **own: Any) -> AuditPlan:
        """The plan of an audit with these options, whose paths are followed now; `own` is what they do not hold."""
        from veilkit.media.reading import Limits

        own = {"limits": options.limits or Limits(), **own}
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


def _check_not_swapped(originals: Path, protected: Path) -> None:
    if not (originals / "manifest.json").is_file():  # most folders; reading a manifest takes a library
        return
    from veilkit.pipeline.manifest import known_manifest

    if known_manifest(originals)[0] is not None and known_manifest(protected)[0] is None:
        raise UsageError(
            f"ORIGINALS, {originals.name}, is a release of `veilkit protect`, and PROTECTED is none: are the two "
            "swapped? To audit what was made of a release, move its manifest.json away"
        )


def wanted_attacks(attacks: Sequence[str] | None) -> frozenset[str]:
    """The names of the attacks to run, all of them by default; raises for a name that is none."""
    from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS

    known = (*ATTACKS, *UNPAIRED_ATTACKS)
    for name in attacks or ():
        if name not in known:
            raise UsageError(f"there is no attack {name!r}; there are {', '.join(sorted(known))}")
    return frozenset(known if attacks is None else attacks)


def seconds_of(text: str) -> float:
    """A time such as 90s, 10m, 2h or 1h30m in seconds.

    >>> seconds_of("1h30m")
    5400.0
    """
    parts = _TIME.findall(text.strip().lower())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip().lower():
        raise UsageError(f"a budget is a time such as 90s, 10m, 2h or 1h30m, or none, but got {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds <= 0:
        raise UsageError(f"a budget must be more than nothing, but got {text!r}")
    return float(seconds)
