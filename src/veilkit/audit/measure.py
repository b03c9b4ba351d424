"""An audit from two folders to audit.json and report.html, by cells that a stopped audit finds again."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from veilkit.attacks import Budget, weights_facts
from veilkit.attacks.intervals import CONFIDENCE, DRAWS
from veilkit.audit.alarms import check_attacks, raise_alarms
from veilkit.audit.alarms.pairs import check_pairs
from veilkit.audit.cells.budget import affordable, with_choice
from veilkit.audit.cells.differences import tally
from veilkit.audit.cells.engine import compute_cells, seconds_of_attacks
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
from veilkit.audit.cells.store import CellFiles
from veilkit.audit.cells.surroundings import found_apart, judged_apart
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.judges import describe, with_seen
from veilkit.audit.options import AuditOptions, AuditPlan, wanted_attacks
from veilkit.audit.private_files import private_audit_folder, write_private
from veilkit.audit.report.html import write_report
from veilkit.audit.report.markdown import write_markdown
from veilkit.audit.report.pictures import recovered_pictures
from veilkit.audit.report.signing import write_signing
from veilkit.audit.result import AuditResult
from veilkit.audit.run import REPORT, RESULT, SIGNING, TEXT
from veilkit.audit.verdicts.findings import summarise
from veilkit.audit.verdicts.gaps import check_manifest, unmeasured
from veilkit.audit.verdicts.levels import level_verdicts
from veilkit.audit.verdicts.verdict import chosen_thresholds
from veilkit.configs import as_dict
from veilkit.errors import DestinationError
from veilkit.experts.names import file_sha256
from veilkit.pipeline.ledger_queries import ledger_counts
from veilkit.pipeline.pairing import HOW_TEXT
from veilkit.rng import Randomness
from veilkit.version import __version__

_RECOVERED = 8  # recovered pictures that the report shows


def measure(options: AuditOptions) -> AuditResult:
    """Make the audit that the options ask for, which have been checked."""
    thresholds = chosen_thresholds(options.thresholds)
    target, start = options.destination, None if options.start is None else Path(options.start).resolve()
    started = weights_facts(start)
    seconds = options.seconds
    try:
        private_audit_folder(target)
    except OSError as error:
        raise DestinationError(f"the audit cannot be written to {target}: {error.strerror}") from None
    files = CellFiles(target / "cells" if options.cells is None else Path(options.cells), options.prefix)
    store = target / "cache" if options.cache is None else Path(options.cache)
    plan = AuditPlan.of(
        options,
        features=store / "features.sqlite",
        work=(target / "cache" if options.cells is None else store) / "learned",
        attacks=wanted_attacks(options.attacks),
        budget=None if options.learn is None else Budget(updates=options.learn, seed=options.draw_seed),
    )
    plan = with_seen(plan)
    with Cache(plan.features) as kept:
        prepared = Prepared.of(plan, kept)
        _ = prepared.method  # a wrong model is reported before any work
        facts = _facts(plan, options.show_originals) | _chosen(options, started, prepared)
        facts["thresholds"] = as_dict(thresholds)
        if seconds is not None:
            choice = affordable(prepared, files, seconds)
            facts["budget"] = choice.facts
            prepared = Prepared.of(with_choice(plan, choice), kept)
        found = compute_cells(prepared, files, options.workers)
        result = _assembled(prepared, found, facts, prepared.rng)
        result = replace(result, alarms=(*options.alarms, *result.alarms))
        result = replace(result, verdicts=level_verdicts(result, thresholds))
        if prepared.plan.seen == "faces":
            apart = found_apart(prepared, files, options.workers)
            result = replace(result, surroundings=judged_apart(result, *apart, thresholds))
        recovered = (
            recovered_pictures(result.attacks, prepared.target, _RECOVERED) if options.show_originals else None
        )
        _write(target / RESULT, result.to_json())
        taken = seconds_of_attacks(files, (each.attack for each in result.attacks if each.applicable))
        _write(target / TEXT, write_markdown(result))
        _write(
            target / REPORT,
            write_report(
                result, prepared.subject, show_originals=options.show_originals, recovered=recovered, seconds=taken
            ),
        )
        _write(target / SIGNING, write_signing(result, ledger_counts(plan.private_folders)))
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
    raised = raise_alarms(subject, plan.originals, plan.key_file, plan.limits, rng, prepared.cache)
    alarms = (*doubted, *raised, *check_attacks(attacks))
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
        independent=not prepared.judge_is_expert,
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
        seen="faces" if subject.seen == "faces" else "pictures",
    )
    return summarise(result)


def _chosen(options: AuditOptions, started: Mapping[str, str], prepared: Prepared) -> dict[str, Any]:
    plan, student = prepared.plan, prepared.student
    chosen = {
        "unseen": plan.unseen and plan.unseen.name,  # no paths of this machine
        "held_out": plan.held_out and plan.held_out.name,
        "student_sha256": student and student.sha256,
        "learn": options.learn,
        "start_sha256": started.get("start"),
        "attacks": None if options.attacks is None else sorted(options.attacks),
        "decoder_sha256": None if prepared.stolen is None else prepared.stolen.sha256,
        "model_sha256": plan.model and file_sha256(plan.model),
        "boxes": plan.boxes and plan.boxes.name,
        "kind": plan.kind if plan.kind != "auto" else "faces" if plan.seen == "faces" else None,
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


def _write(file: Path, text: str) -> None:
    try:
        write_private(file, text.encode("utf-8", errors="replace"))  # a folder's name need be no text
    except DestinationError as error:
        raise DestinationError(f"the audit cannot be written to {file.parent}: {error}") from None
