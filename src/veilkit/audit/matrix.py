"""A matrix of audits: every combination that a spec names, one after the other, their cells in one folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from veilkit.attacks import weights_facts
from veilkit.audit.inputs.spec import AuditSpec, DatasetSpec, ExpertSpec, MethodSpec, ReleaseSpec
from veilkit.audit.options import AuditOptions
from veilkit.audit.private_files import private_audit_folder, write_private
from veilkit.audit.result import AuditResult
from veilkit.audit.run import REPORT, make_audit
from veilkit.audit.verdicts.wording import at_least
from veilkit.errors import CheckpointError, DataError, DestinationError, KeyFileError
from veilkit.options import check_model_file
from veilkit.pipeline.protect import protect

MATRIX = "matrix.json"


@dataclass(frozen=True, slots=True)
class Combination:
    """One audit of a matrix. source: a release that is there, or a method that makes one."""

    dataset: DatasetSpec
    source: ReleaseSpec | MethodSpec
    expert: ExpertSpec
    seed: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.dataset.name}.{self.source.name}.{self.expert.name}.seed{self.seed}"


@dataclass(frozen=True, slots=True)
class Audited:
    """A combination and what came of it; result is None where nothing could be measured, for the reason `why`."""

    combination: Combination
    result: AuditResult | None
    why: str = ""


def combinations(spec: AuditSpec) -> Iterator[Combination]:
    """All audits of a spec, in its order."""
    pairs: list[tuple[DatasetSpec, ReleaseSpec | MethodSpec]] = [(spec.dataset_of(r), r) for r in spec.releases]
    pairs += [(dataset, method) for method in spec.methods for dataset in spec.datasets
              if method.dataset in (None, dataset.name)]  # fmt: skip
    for dataset, source in pairs:
        for expert in spec.experts:
            for seed in spec.seeds:
                yield Combination(dataset, source, expert, seed)


def run_matrix(spec: AuditSpec, out: str | Path, *, workers: int = 1) -> tuple[Audited, ...]:
    """Run all audits of a spec, below `out`.

    cells/: one file for each cell, by dataset, release, expert, seed and attack. audits/: audit.json and report.html
    of each audit. releases/: what methods made, under their public seeds. cache/: features that audits share.
    matrix.json: all of it in short. What was done before and is unchanged is not done again. An audit in which
    nothing can be measured is listed with the reason, and the others are made.
    """
    target = Path(out).resolve()
    done = tuple(audits(spec, target, workers=workers))
    text = json.dumps({"format": "veilkit-audit-matrix-1", "audits": [_row(each) for each in done]}, indent=2) + "\n"
    write_private(target / MATRIX, text.encode())
    return done


def audits(spec: AuditSpec, out: str | Path, *, workers: int = 1) -> Iterator[Audited]:
    """The audits of a spec, one after the other, each as soon as it is made; files as `run_matrix` says."""
    for start in (spec.start, *(dataset.start for dataset in spec.datasets)):
        check_model_file(start)
        weights_facts(start)  # wrong weights are reported before anything is protected
    target = Path(out).resolve()
    try:
        private_audit_folder(target)
    except OSError as error:
        raise DestinationError(f"the audits cannot be written to {target}: {error.strerror}") from None
    for each in combinations(spec):
        yield _audited(spec, each, target, workers)


def released(each: Combination, out: str | Path, *, workers: int = 1) -> Path:
    """The release that a combination audits; what a method makes is made now, below `out`, where it is not there."""
    source, dataset = each.source, each.dataset
    if isinstance(source, ReleaseSpec):
        return source.protected
    folder = Path(out).resolve() / "releases" / f"{dataset.name}.{source.name}.seed{each.seed}"
    protect(
        dataset.originals, folder, source.method, preset=source.preset, settings=source.settings, seed=each.seed,
        labels=dataset.labels, model=source.model, workers=0 if workers == 1 else workers,
    )  # fmt: skip
    return folder


def _audited(spec: AuditSpec, each: Combination, target: Path, workers: int) -> Audited:
    try:
        folder = released(each, target, workers=workers)
        result = make_audit(options_of(spec, each, folder, target, workers))
    except (DataError, KeyFileError, CheckpointError) as error:  # what is wrong with this one release
        return Audited(each, None, str(error))
    return Audited(each, result)


def options_of(spec: AuditSpec, each: Combination, folder: Path, target: Path, workers: int) -> AuditOptions:
    """The options of one audit of a matrix: what the spec says for all, and its expert, dataset and release.

    An option has the same name in a spec as here; what a release or a dataset says of itself counts for more.
    """
    options: dict[str, Any] = {}
    for part in (spec, each.expert, each.dataset, each.source):
        options |= {field.name: value for field in fields(AuditOptions)
                    if (value := getattr(part, field.name, None)) is not None}  # fmt: skip
    own: dict[str, Any] = {
        "protected": folder, "out": target / "audits" / each.name, "draw_seed": each.seed, "cache": target / "cache",
        "workers": workers, "cells": target / "cells", "prefix": f"{each.name}.",
    }  # fmt: skip
    if not isinstance(each.source, ReleaseSpec):
        own["seed"] = each.seed
    return AuditOptions(**options | own)


def _row(each: Audited) -> dict[str, Any]:
    """What matrix.json says of one audit: of each attack its headline, or why there is none."""
    combination = each.combination
    row: dict[str, Any] = {
        "dataset": combination.dataset.name,
        "release": combination.source.name,
        "expert": combination.expert.name,
        "seed": combination.seed,
    }
    if each.result is None:
        return {**row, "why": each.why}
    attacks: dict[str, Any] = {}
    for evidence in each.result.attacks:
        if not evidence.applicable:
            attacks[evidence.attack] = {"level": str(evidence.level), "not applicable": evidence.why_missing}
            continue
        first = evidence.scores[0]
        attacks[evidence.attack] = {
            "level": str(evidence.level), "metric": first.metric, "value": first.value, "low": first.low,
            "high": first.high, "role": str(first.role), "invalid": [str(reason) for reason in evidence.invalid],
            "at_least": at_least(evidence),
        }  # fmt: skip
    alarms = [alarm.name for alarm in each.result.alarms]
    return {**row, "alarms": alarms, "attacks": attacks, "report": f"audits/{combination.name}/{REPORT}"}
