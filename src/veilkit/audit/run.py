"""An audit from two folders to audit.json and report.html."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS, AttackTarget, Budget, Trial, run_gated
from veilkit.attacks.base import NO_BUDGET
from veilkit.attacks.foreground import foreground
from veilkit.attacks.intervals import CONFIDENCE, DRAWS
from veilkit.attacks.recovery import Recovery, RecoveryConfig
from veilkit.audit.attempts import Attempts, attempts
from veilkit.audit.cache import Cache
from veilkit.audit.extra import gather
from veilkit.audit.image_scores import TO_ORIGINAL, image_scores
from veilkit.audit.judges import choose_expert, choose_judge, describe
from veilkit.audit.levels import level_verdicts
from veilkit.audit.markdown import write_markdown
from veilkit.audit.pairing import HOW_TEXT
from veilkit.audit.recognition import Recognition, recognise
from veilkit.audit.report import write_report
from veilkit.audit.result import AuditResult, By, Measurement, Unmeasured
from veilkit.audit.subject import Subject, is_synthetic, load_subject
from veilkit.audit.summary import summarise
from veilkit.audit.tallies import tally
from veilkit.audit.thresholds import Thresholds, chosen_thresholds
from veilkit.audit.unpaired_measure import LEFT_OUT, attack_unpaired, class_similarity, unpaired_gaps
from veilkit.audit.unpaired_subject import UnpairedSubject, load_unpaired
from veilkit.audit.unpaired_summary import unpaired_findings
from veilkit.configs import as_dict
from veilkit.datasets.folder import check_folder
from veilkit.errors import DestinationError, UsageError
from veilkit.experts import Embedder
from veilkit.methods.decoder import Decoder
from veilkit.pipeline.decoding import decoder_for
from veilkit.pipeline.reading import Limits
from veilkit.pipeline.recovery_folders import finished_manifest
from veilkit.pipeline.writing import write_atomically
from veilkit.rng import Randomness
from veilkit.types import Evidence
from veilkit.version import __version__

RESULT, REPORT, TEXT = "audit.json", "report.html", "audit.md"
_ATTEMPTS = 8  # recovered pictures that the report shows
_MASKS = (128, 64)  # height and width at which people are told from what is behind them


@dataclass(frozen=True, slots=True)
class Spending:
    """What attackers who learn may spend, and where their trainings are kept."""

    budget: Budget
    work: Path


def run_audit(
    originals: str | Path,
    protected: str | Path,
    *,
    key: str | Path | None = None,
    seed: int | None = None,
    expert: str | Path | Embedder | None = None,
    judge: str | Path | Embedder | None = None,
    labels: str = "auto",
    unseen: str | Path | None = None,
    held_out: str | Path | None = None,
    student: str | Path | Embedder | None = None,
    decoder: str | Path | None = None,
    out: str | Path | None = None,
    show_originals: bool = False,
    learn: int | None = None,
    attacks: Sequence[str] | None = None,
    draw_seed: int = 0,
    thresholds: str | Path | Thresholds | None = None,
    cache: str | Path | None = None,
    limits: Limits | None = None,
) -> AuditResult:
    """Measure a folder of protected pictures, whoever made it, and write audit.json, report.html and audit.md.

    key, seed: of the release, where its names are pseudonyms; by default the key where `protect` puts it.
    expert: the authorised recogniser, whose numbers are utility. judge: an independent one; its numbers are privacy.
    Both are names, .safetensors files or embedders. labels: who is in the originals (see `datasets.labels`).
    unseen, held_out, student: of a synthetic release only, whose pictures belong to no original. A folder of other
    pictures of the training people, which were not trained on; one of pictures of other people, by default those of
    the originals who have no class; and a recogniser trained on the release.
    decoder: of a release that was made by a reversible method, for the attacker who stole it.
    out: PROTECTED.audit by default; features are kept in its folder cache, so that a stopped audit goes on.
    cache: a folder for features in place of that, which audits of one set of originals may share.
    learn: updates that each attacker who trains a network, or optimises pictures, may spend; None leaves them out.
    attacks: names of those to run (see `veilkit attacks list`); None runs all that can be run.
    thresholds: from which rate on a leak counts as how bad, or a TOML file that says so.
    show_originals: put pictures of originals into the report. draw_seed: of the bootstrap, the gates' noise and what
    attackers learn.
    """
    wanted = _wanted(attacks)
    bars = chosen_thresholds(thresholds)
    sources = (Path(originals).resolve(), Path(protected).resolve())
    for folder in sources:
        check_folder(folder)
    extra = gather(sources[1], unseen, held_out, student)
    stolen = None if decoder is None else decoder_for(finished_manifest(sources[1]), Path(decoder))
    target = destination(*sources, out)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DestinationError(f"the audit cannot be written to {target}: {error.strerror}") from None
    rng, limits = Randomness.from_seed(draw_seed), limits or Limits()
    key_file = None if key is None else Path(key)
    with Cache((target / "cache" if cache is None else Path(cache)) / "features.sqlite") as kept:
        subject = load_subject(*sources, key=key_file, seed=seed, labels=labels, limits=limits, cache=kept)
        authorised, expert_notes = choose_expert(expert)
        independent, judge_notes = choose_judge(judge, authorised)
        unpaired = None
        if is_synthetic(subject.manifest):
            unpaired = load_unpaired(
                *sources, subject, extra, key=key_file, seed=seed, labels=labels, limits=limits, cache=kept,
                recogniser=independent, rng=rng,
            )  # fmt: skip
        result, seen = _measure(
            subject, unpaired, authorised, independent, (*expert_notes, *judge_notes), kept, rng, limits,
            None if learn is None else Spending(Budget(updates=learn, seed=draw_seed), target / "cache" / "learned"),
            stolen, wanted, _facts(labels, draw_seed, show_originals) | extra.facts | _chosen(learn, attacks, stolen)
            | {"thresholds": as_dict(bars)},
        )  # fmt: skip
        result = replace(result, verdicts=level_verdicts(result, bars))
        _write(target / RESULT, result.to_json())
        _write(target / TEXT, write_markdown(result))
        _write(target / REPORT, write_report(result, subject, show_originals=show_originals, attempts=seen))
    return result


def _measure(
    subject: Subject,
    unpaired: UnpairedSubject | None,
    expert: Embedder,
    judge: Embedder,
    notes: tuple[str, ...],
    cache: Cache,
    rng: Randomness,
    limits: Limits,
    spending: Spending | None,
    stolen: Decoder | None,
    wanted: frozenset[str],
    facts: dict[str, Any],
) -> tuple[AuditResult, Attempts | None]:
    same = expert.sha256 == judge.sha256
    found = _recognition(subject, expert, judge, rng, same)
    images, image_notes = image_scores(subject, cache, rng)
    originals, seen = subject.inputs[0], None
    if unpaired is None:
        attacks, seen = _attack(subject, expert, judge, rng, spending, stolen, wanted)
    else:
        attacks = attack_unpaired(unpaired, wanted)
        images += class_similarity(unpaired, limits, cache, rng)
        originals = unpaired.used or originals
        image_notes += unpaired.notes
    search = subject.search
    result = AuditResult(
        veilkit=__version__,
        versions={"python": platform.python_version(), **{name: version(name) for name in ("torch", "numpy")}},
        config=facts,
        originals=originals,
        protected=subject.inputs[1],
        release=None if subject.manifest is None else subject.manifest.model_dump(),
        paired_by=HOW_TEXT[subject.pairing.how],
        pictures=len(subject.protected),
        people=None if subject.people is None else len({each for each in subject.identities if each is not None}),
        cameras_used=search is not None and search.cameras is not None,
        queries=0 if search is None else int((search.candidates()[0] > 0).sum()),
        gallery=0 if search is None else len(search.gallery),
        expert=describe(expert),
        judge=describe(judge),
        independent=not same,
        summary=(),
        measurements=(*(m for each in found for m in each.measurements), *images),
        attacks=attacks,
        curves=tuple(curve for each in found for curve in each.curves),
        histograms=tuple(histogram for each in found for histogram in each.histograms),
        rocs=tuple(roc for each in found for roc in each.rocs),
        tallies=tally(subject, (each for taker in found for each in taker.tallies)),
        unmeasured=_unmeasured(subject, unpaired, images, attacks),
        notes=(*subject.notes, *notes, *image_notes),
    )
    told = summarise(result) if unpaired is None else replace(result, summary=unpaired_findings(result))
    return told, seen


def _attack(
    subject: Subject,
    expert: Embedder,
    judge: Embedder,
    rng: Randomness,
    spending: Spending | None,
    stolen: Decoder | None,
    wanted: frozenset[str],
) -> tuple[tuple[Evidence, ...], Attempts | None]:
    target = AttackTarget(
        rng=rng,
        protected=subject.protected,
        originals=subject.originals,
        people=subject.people,
        search=subject.search,
        recogniser=judge,
        decoder=None if stolen is None else stolen.recover,
    )
    if spending is not None:
        masks = None if subject.originals is None else foreground(subject.originals, _MASKS)
        target = replace(target, budget=spending.budget, authorised=expert, masks=masks, work=spending.work)
    trial = Trial.of(target)
    found = tuple(
        run_gated(attack, target, trial=trial)
        if name in wanted
        else Evidence(name, attack.level, applicable=False, reason=LEFT_OUT)
        for name, attack in ATTACKS.items()
    )
    recovered = any(evidence.attack == Recovery.name and evidence.applicable for evidence in found)
    return found, attempts(target, RecoveryConfig(), _ATTEMPTS) if recovered else None


def _wanted(attacks: Sequence[str] | None) -> frozenset[str]:
    """The names of the attacks to run; raises for a name that is none."""
    known = {**ATTACKS, **UNPAIRED_ATTACKS}
    for name in attacks or ():
        if name not in known:
            raise UsageError(f"there is no attack {name!r}; there are {', '.join(sorted(known))}")
    return frozenset(known if attacks is None else attacks)


def _chosen(learn: int | None, attacks: Sequence[str] | None, stolen: Decoder | None) -> dict[str, Any]:
    chosen = {
        "learn": learn,
        "attacks": None if attacks is None else sorted(attacks),
        "decoder_sha256": None if stolen is None else stolen.sha256,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _recognition(
    subject: Subject, expert: Embedder, judge: Embedder, rng: Randomness, same: bool
) -> tuple[Recognition, ...]:
    if subject.search is None:
        return ()
    takers: tuple[tuple[By, Embedder, str], ...] = (
        ("expert", expert, ""),
        ("judge", judge, "not independent" if same else ""),
    )
    found = []
    for by, embedder, note in takers:
        features = {"protected": subject.protected.features(embedder)}
        if subject.originals is not None:
            features["raw"] = subject.originals.features(embedder)
        found.append(recognise(by, features, subject.search, rng, note=note))
    return tuple(found)


def _unmeasured(
    subject: Subject,
    unpaired: UnpairedSubject | None,
    images: tuple[Measurement, ...],
    attacks: tuple[Evidence, ...],
) -> tuple[Unmeasured, ...]:
    missing = []
    if subject.search is None:
        missing.append(Unmeasured("recognition of people in four settings", subject.no_search))
    if subject.originals is None and unpaired is None:
        why = "it is not known which original belongs to which protected picture"
        missing.append(Unmeasured("recognition with raw queries or a raw gallery", why))
        missing.append(Unmeasured("similarity to the originals", why))
    if left := [each.attack for each in attacks if each.reason == LEFT_OUT]:
        missing.append(Unmeasured(f"{len(left)} other attacks", LEFT_OUT))
    measured = {(each.setting, each.score.metric) for each in images}
    for metric, why in (
        ("PSNR", "every protected picture equals its original"),
        ("SSIM", "every picture is smaller than its window of 11 x 11 pixels"),
    ):
        if subject.originals is not None and (TO_ORIGINAL, metric) not in measured:
            missing.append(Unmeasured(metric, why))
    if ("protected", "AD") not in measured:
        missing.append(Unmeasured("chaos (AD)", "every protected picture has one single colour value"))
    if unpaired is not None:
        return (*missing, *unpaired_gaps(unpaired, images, attacks))
    learners = [e.attack for e in attacks if not e.applicable and e.reason.startswith(NO_BUDGET)]
    missing += [Unmeasured(f"attack {e.attack}", e.reason) for e in attacks
                if not e.applicable and e.attack not in learners and e.reason != LEFT_OUT]  # fmt: skip
    if learners:
        missing.append(
            Unmeasured(
                f"attackers who learn from the protection or hold the expert ({', '.join(learners)})",
                "they take minutes to hours, and none were asked for; give them a number of updates (--learn)",
            )
        )
    return tuple(missing)


def _facts(labels: str, draw_seed: int, show_originals: bool) -> dict[str, Any]:
    kind, _, argument = labels.partition(":")
    return {
        "labels": f"csv:{Path(argument).name}" if kind == "csv" else labels,  # no paths of this machine
        "bootstrap_draws": DRAWS,
        "confidence": CONFIDENCE,
        "draw_seed": draw_seed,
        "show_originals": show_originals,
    }


def destination(originals: str | Path, protected: str | Path, out: str | Path | None = None) -> Path:
    """Where an audit is written: `out`, or PROTECTED.audit; never among the pictures."""
    sources = (Path(originals).resolve(), Path(protected).resolve())
    target = sources[1].with_name(sources[1].name + ".audit") if out is None else Path(out).resolve()
    for folder in sources:
        if target == folder or folder in target.parents:
            raise UsageError(f"the audit must lie apart from the pictures, but {target} is in {folder}; see --out")
    return target


def _write(file: Path, text: str) -> None:
    try:
        write_atomically(file, text.encode("utf-8"), file.parent)
    except DestinationError as error:
        raise DestinationError(f"the audit cannot be written to {file.parent}: {error}") from None
