"""An audit from two folders to audit.json and report.html, by cells that a stopped audit finds again."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from veilkit.attacks import Budget
from veilkit.attacks.intervals import CONFIDENCE, DRAWS
from veilkit.attacks.starting_weights import weights_facts
from veilkit.audit.alarms import check_attacks, raise_alarms
from veilkit.audit.alarms.pairs import check_pairs
from veilkit.audit.cells.budget import seconds_of
from veilkit.audit.cells.engine import Place, compute_cells
from veilkit.audit.cells.prepared import (
    ATTACK,
    EVIDENCE,
    IMAGES,
    PICTURED,
    RECOGNISED,
    RECOGNITION,
    Prepared,
    evidence_of,
)
from veilkit.audit.cells.recovered_pictures import recovered_pictures
from veilkit.audit.cells.store import CellFiles
from veilkit.audit.cells.tallies import tally
from veilkit.audit.cells.timing import affordable, with_choice
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.judges import describe
from veilkit.audit.inputs.manifest_check import check_manifest
from veilkit.audit.inputs.plan import AuditPlan, wanted_attacks
from veilkit.audit.private_files import private_audit_folder, write_private
from veilkit.audit.report.html import write_report
from veilkit.audit.report.markdown import write_markdown
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.findings import summarise
from veilkit.audit.verdicts.gaps import unmeasured
from veilkit.audit.verdicts.levels import level_verdicts
from veilkit.audit.verdicts.thresholds import Thresholds, chosen_thresholds
from veilkit.configs import as_dict
from veilkit.datasets.folder import check_folder
from veilkit.errors import DestinationError, UsageError
from veilkit.experts import Embedder
from veilkit.experts.weights_folder import file_sha256
from veilkit.media.reading import Limits
from veilkit.pipeline.manifest import known_manifest
from veilkit.pipeline.pairing import HOW_TEXT
from veilkit.rng import Randomness
from veilkit.version import __version__

RESULT, REPORT, TEXT = "audit.json", "report.html", "audit.md"
_RECOVERED = 8  # recovered pictures that the report shows


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
    model: str | Path | None = None,
    out: str | Path | None = None,
    show_originals: bool = False,
    learn: int | None = None,
    attacks: Sequence[str] | None = None,
    draw_seed: int = 0,
    thresholds: str | Path | Thresholds | None = None,
    cache: str | Path | None = None,
    limits: Limits | None = None,
    budget: str | None = None,
    start: str | Path | None = None,
    workers: int = 1,
    boxes: str | Path | None = None,
    cells: str | Path | None = None,
    prefix: str = "",
) -> AuditResult:
    """Measure a folder of protected pictures, whoever made it, and write audit.json, report.html and audit.md.

    key, seed: of the release, where its names are pseudonyms; by default the key where `protect` puts it.
    expert: the authorised recogniser, whose numbers are utility. judge: an independent one; its numbers are privacy.
    Both are names, .safetensors files or embedders. labels: who is in the originals (see `datasets.labels`).
    unseen, held_out, student: of a synthetic release only, whose pictures belong to no original. A folder of other
    pictures of the training people, which were not trained on; one of pictures of other people, by default those of
    the originals who have no class; and a recogniser trained on the release.
    decoder: of a release that was made by a reversible method, for the attacker who stole it.
    model: that the release was made with, for attackers who run the protection themselves, or have stolen it.
    out: PROTECTED.audit by default; features are kept in its folder cache, so that a stopped audit goes on. All of it
    is its owner's alone (0700, files 0600).
    cache: a folder for features in place of that, which audits of one set of originals may share.
    learn: updates that each attacker who trains a network, or optimises pictures, may spend; None leaves them out.
    attacks: names of those to run (see `veilkit attacks list`); None runs all that can be run.
    budget: a time such as 10m or 2h in place of learn; `audit.spending` says what follows from it.
    start: weights from which the attacker starts who trains a recogniser, as one who finds public weights would: a
    backbone file or a Re-ID network. Without any, it starts from scratch.
    workers: processes that compute attacks, with the same result for any number. boxes: a CSV file
    path,x,y,w,h,identity of people in whole pictures, each of which is audited as a picture. cells, prefix: a folder
    for cells in place of OUT/cells, which several audits may share, and what the names of this one's begin with.
    thresholds: from which rate on a leak counts as how bad, or a TOML file that says so.
    show_originals: put pictures of originals into the report. draw_seed: of the bootstrap, the gates' noise and what
    attackers learn.
    """
    bars = chosen_thresholds(thresholds)
    sources = (Path(originals).resolve(), Path(protected).resolve())
    for folder in sources:
        check_folder(folder)
    if sources[0] == sources[1]:
        raise UsageError(
            "ORIGINALS and PROTECTED are one folder: put the protected pictures, as a tool leaves them beside their "
            "originals, into a folder of their own"
        )
    if known_manifest(sources[0])[0] is not None and known_manifest(sources[1])[0] is None:
        raise UsageError(
            f"ORIGINALS, {sources[0].name}, is a release of `veilkit protect`, and PROTECTED is none: are the two "
            "swapped? To audit what was made of a release, move its manifest.json away"
        )
    if learn is not None and budget is not None:
        raise UsageError("give a number of updates (--learn) or a time (--budget), not both")
    if workers < 1:
        raise UsageError(f"expected at least one worker, but got {workers}")
    seconds = None if budget is None else seconds_of(budget)
    started = weights_facts(_path(start))
    target = destination(*sources, out)
    try:
        private_audit_folder(target)
    except OSError as error:
        raise DestinationError(f"the audit cannot be written to {target}: {error.strerror}") from None
    place = Place(CellFiles(target / "cells" if cells is None else Path(cells)), prefix)
    store = target / "cache" if cache is None else Path(cache)
    plan = AuditPlan(
        *sources,
        features=store / "features.sqlite",
        work=(target / "cache" if cells is None else store) / "learned",
        attacks=wanted_attacks(attacks),
        key=_path(key),
        seed=seed,
        expert=expert,
        judge=judge,
        labels=labels,
        boxes=_path(boxes),
        unseen=_path(unseen),
        held_out=_path(held_out),
        student=student,
        decoder=_path(decoder),
        model=_path(model),
        budget=None if learn is None else Budget(updates=learn, seed=draw_seed),
        start=_path(start),
        draw_seed=draw_seed,
        limits=limits or Limits(),
    )
    with Cache(plan.features) as kept:
        prepared = Prepared.of(plan, kept)
        _ = prepared.method  # a wrong model is told before any work
        facts = _facts(plan, show_originals) | prepared.inputs.facts | _chosen(learn, started, attacks, prepared)
        facts["thresholds"] = as_dict(bars)
        if seconds is not None:
            choice = affordable(prepared, place, seconds)
            facts["budget"] = choice.facts
            prepared = Prepared.of(with_choice(plan, choice), kept)
        found = compute_cells(prepared, place, workers)
        result = _assembled(prepared, found, facts, prepared.rng)
        result = replace(result, verdicts=level_verdicts(result, bars))
        recovered = recovered_pictures(result.attacks, prepared.target, _RECOVERED) if show_originals else None
        _write(target / RESULT, result.to_json())
        _write(target / TEXT, write_markdown(result))
        _write(
            target / REPORT,
            write_report(result, prepared.subject, show_originals=show_originals, recovered=recovered),
        )
    return result


def _assembled(
    prepared: Prepared, cells: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any], rng: Randomness
) -> AuditResult:
    subject, unpaired, plan = prepared.subject, prepared.unpaired, prepared.plan
    seen = [RECOGNISED.validate_python(cell) for name, cell in cells.items() if name.startswith(RECOGNITION)]
    images = PICTURED.validate_python(cells[IMAGES])
    attacks = evidence_of(
        prepared,
        {name.removeprefix(ATTACK): EVIDENCE.validate_python(cell) for name, cell in cells.items()
         if name.startswith(ATTACK)},
    )  # fmt: skip
    doubted, unconfirmed = check_pairs(
        subject, plan.private_folders, unpaired.why if unpaired is not None and unpaired.target is None else ""
    )
    alarms = (*doubted, *raise_alarms(subject, plan.key_file, plan.limits, rng), *check_attacks(attacks))
    originals, notes = subject.inputs[0], images.notes
    if unpaired is not None:
        originals = unpaired.used or originals
        notes += unpaired.notes
    doubts = check_manifest(plan.protected, subject)
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
        expert=describe(prepared.expert),
        judge=describe(prepared.judge),
        independent=not prepared.same,
        summary=(),
        measurements=(*(m for each in seen for m in each.measurements), *images.measurements),
        attacks=attacks,
        curves=tuple(curve for each in seen for curve in each.curves),
        histograms=tuple(histogram for each in seen for histogram in each.histograms),
        rocs=tuple(roc for each in seen for roc in each.rocs),
        tallies=tally(subject, (each for taker in seen for each in taker.tallies)),
        unmeasured=(*unmeasured(subject, unpaired, images.measurements, attacks, plan.why_none), *doubts),
        notes=(*subject.notes, *prepared.notes, *notes, *filter(None, (unconfirmed,))),
        alarms=alarms,
    )
    return summarise(result)


def _chosen(
    learn: int | None, started: Mapping[str, str], attacks: Sequence[str] | None, prepared: Prepared
) -> dict[str, Any]:
    chosen = {
        "learn": learn,
        "start_sha256": started.get("start"),
        "attacks": None if attacks is None else sorted(attacks),
        "decoder_sha256": None if prepared.stolen is None else prepared.stolen.sha256,
        "model_sha256": None if prepared.plan.model is None else file_sha256(prepared.plan.model),
        "boxes": None if prepared.plan.boxes is None else prepared.plan.boxes.name,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _facts(plan: AuditPlan, show_originals: bool) -> dict[str, Any]:
    kind, _, argument = plan.labels.partition(":")
    return {
        "labels": f"csv:{Path(argument).name}" if kind == "csv" else plan.labels,  # no paths of this machine
        "bootstrap_draws": DRAWS,
        "confidence": CONFIDENCE,
        "draw_seed": plan.draw_seed,
        "show_originals": show_originals,
    }


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given).resolve()


def destination(originals: str | Path, protected: str | Path, out: str | Path | None = None) -> Path:
    """Where an audit is written: `out`, or PROTECTED.audit; never among the pictures."""
    try:
        sources = (Path(originals).resolve(), Path(protected).resolve())
        target = sources[1].with_name(sources[1].name + ".audit") if out is None else Path(out).resolve()
    except (OSError, RuntimeError):  # a link to itself
        raise UsageError(f"{out or protected} leads nowhere: links there form a loop") from None
    for folder in sources:
        if target == folder or folder in target.parents:
            raise UsageError(f"the audit must lie apart from the pictures, but {target} is in {folder}; see --out")
    return target


def _write(file: Path, text: str) -> None:
    try:
        write_private(file, text.encode("utf-8", errors="replace"))  # a folder's name need be no text
    except DestinationError as error:
        raise DestinationError(f"the audit cannot be written to {file.parent}: {error}") from None
