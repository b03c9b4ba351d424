"""Training of a learned, reversible anonymiser (PrivacyReID), resumable to the same bits after any kill.

All randomness derives from (seed, epoch, step), and the state is saved at each epoch's end: a run that was killed
repeats the epoch it was in and reaches the same weights, on the same machine with the same number of threads. Nothing
is chosen by anybody but people of the training part who were set aside.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from veilkit.checkpoint import save_checkpoint
from veilkit.methods.privacyreid.config import PrivacyReidConfig
from veilkit.methods.privacyreid.run import AnonymiserData, AnonymiserRun, JointReid
from veilkit.methods.privacyreid.supervision import (
    Action,
    Desensitiser,
    Limits,
    Supervision,
    decide,
    write_decisions,
)
from veilkit.methods.privacyreid.validation import Check, ValidationPeople, set_aside
from veilkit.networks.pix2pix import Pix2PixUNet
from veilkit.networks.reid import ReidNetwork
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.loop import Schedule, keep_memory, train_epochs, without_denormals
from veilkit.training.retrieval import Holdout
from veilkit.training.state import pack, read_counts, read_state, run_facts, unpack
from veilkit.types import Split

STATE_KIND = "anonymiser-baseline"
_STATE, _BASELINE = "state.safetensors", "baseline.safetensors"
_CHECKS = "checks"  # folder of states that are kept for another run to go on from


class _Baseline:
    """The recogniser of raw and desensitised pictures, between two epochs."""

    def __init__(self, data: AnonymiserData, config: PrivacyReidConfig, init: Path | None) -> None:
        self._data, self.batches, self.epoch = data, data.batches, 0
        rng = Randomness.from_seed(config.reid.seed).child("baseline")
        self.reid = JointReid(config.reid, data.people, rng, init)
        epochs = config.baseline_epochs
        self._schedule = Schedule(epochs, min(config.reid.warmup, epochs), config.reid.decay, config.milestones)

    def step(self, step: int, positions: NDArray[np.int64], progress: float) -> float:
        images, labels = self._data.varied(positions, self.epoch, step)
        loss = self.reid.loss([images, self._data.desensitised(images, self.epoch, step)], labels)
        self.reid.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.reid.step(self._schedule.factor(self.epoch + progress))
        return loss.item()


def train_baseline(
    data: AnonymiserData,
    config: PrivacyReidConfig,
    facts: dict[str, Any],
    state: Path,
    *,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> ReidNetwork:
    """The recogniser after `baseline_epochs`; resumable to the same bits from `state`, saved at each epoch's end."""
    run, epochs = _Baseline(data, config, init), config.baseline_epochs
    if state.exists():
        saved = read_state(state, STATE_KIND, facts)
        unpack(run.reid.parts, saved.tensors, state.name)
        run.epoch = read_counts(saved, state, {"epoch": epochs})["epoch"]

    def after_epoch(progress: Progress) -> None:
        save_checkpoint(state, pack(run.reid.parts), {"epoch": run.epoch, "run": facts}, STATE_KIND)

    train_epochs(run, epochs, after_epoch, note="loss {:.2f}".format, what="baseline", stream=stream)
    return run.reid.network.eval()


@dataclass(frozen=True, slots=True, eq=False)
class TrainedAnonymiser:
    """What training leaves, in evaluation mode: G_X, G_Y, the recogniser, and each check with what was decided."""

    anonymise: Pix2PixUNet
    recover: Pix2PixUNet
    reid: ReidNetwork
    decisions: tuple[dict[str, Any], ...]


def train_anonymiser(
    split: Split,
    config: PrivacyReidConfig,
    desensitiser: Desensitiser,
    *,
    work_dir: Path,
    init: Path | None = None,
    keep_checks: bool = False,
    shared: Path | None = None,
    stream: TextIO | None = None,
) -> TrainedAnonymiser:
    """Train on the labelled people of `split`, a part of whom only validate.

    work_dir: gets the state after each epoch, from which the same run goes on; `decisions.jsonl` and `.svg`; and
    sheets of validation pictures in `samples`, which are as private as the pictures. init: weights of the
    recogniser's backbone.

    Until its first upgrade, a run with upgradation is the same as one without. keep_checks: keep the state at each
    check in `work_dir`/checks. shared: the work folder of the same run without upgradation, which kept them; this one
    takes them over up to its first upgrade, and reaches the same bits as if it had trained so far itself.
    """
    keep_memory()
    work_dir = Path(work_dir)
    rng, people = _people(split, config)
    watched = ValidationPeople(people, config.size, desensitiser)
    data = AnonymiserData(people.train, config, desensitiser)
    reid = JointReid(config.reid, data.people, rng.child("reid"), init)
    facts = _facts(split, config, desensitiser, reid.started_from)
    with without_denormals():
        rank1 = None
        if config.upgrade:
            start = work_dir / _BASELINE
            rank1 = watched.desensitised_rank1(train_baseline(data, config, facts, start, init=init, stream=stream))
        slack = {"psnr_slack": config.psnr_slack, "ssim_slack": config.ssim_slack, "rank1_slack": config.rank1_slack}
        limits = Limits(*watched.desensitised_likeness(), rank1, **slack)
        first = limits.first_rank1
        run = AnonymiserRun(data, config, reid, facts, None if first is None else Supervision(first))
        if shared is not None and config.upgrade and not (work_dir / _STATE).exists():
            others = _facts(split, replace(config, upgrade=False), desensitiser, reid.started_from)
            _take_over(run, Path(shared) / _CHECKS, others, limits)
        _train(run, watched, limits, work_dir, stream, keep_checks)
    return TrainedAnonymiser(run.anonymise.eval(), run.recover.eval(), run.reid.network.eval(), tuple(run.decisions))


def train_desensitised(
    split: Split,
    config: PrivacyReidConfig,
    desensitiser: Desensitiser,
    *,
    work_dir: Path,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> ReidNetwork:
    """The recogniser of raw and desensitised pictures alone, which `train_anonymiser` then finds in its work folder.

    It is the paper's baseline, and its Rank-1 is where upgradation starts from.
    """
    keep_memory()
    rng, people = _people(split, config)
    data = AnonymiserData(people.train, config, desensitiser)
    started_from = JointReid(config.reid, data.people, rng.child("reid"), init).started_from
    facts = _facts(split, config, desensitiser, started_from)
    with without_denormals():
        return train_baseline(data, config, facts, Path(work_dir) / _BASELINE, init=init, stream=stream)


def _facts(
    split: Split, config: PrivacyReidConfig, desensitiser: Desensitiser, started_from: str | None
) -> dict[str, Any]:
    return run_facts(config, split, desensitiser=desensitiser.name, init=started_from)


def _people(split: Split, config: PrivacyReidConfig) -> tuple[Randomness, Holdout]:
    rng = Randomness.from_seed(config.reid.seed).child("anonymiser")
    return rng, set_aside(split, config.validation, rng.child("validation"))


def _take_over(run: AnonymiserRun, checks: Path, facts: dict[str, Any], limits: Limits) -> None:
    """Go on from the first check that upgrades, or else from the last, of a run of `facts`, without upgradation."""
    decisions: list[dict[str, Any]] = []
    for file in sorted(checks.glob("*.safetensors")):
        run.restore(file, facts)
        measured = run.decisions[-1]
        run.decisions = decisions
        if _decide(run, Check(**{name: measured[name] for name in Check.__slots__}), limits) == "upgrade":
            return


def _train(
    run: AnonymiserRun,
    watched: ValidationPeople,
    limits: Limits,
    work_dir: Path,
    stream: TextIO | None,
    keep_checks: bool,
) -> None:
    state, epochs = work_dir / _STATE, run.config.reid.epochs
    if state.exists():
        run.restore(state)
    if run.epoch:
        write_decisions(work_dir, run.decisions)  # a kill may have come between the state and them

    def after_epoch(progress: Progress) -> None:
        due = run.epoch % run.config.check_every == 0 or run.epoch == epochs
        if due:
            progress.say(_check(run, watched, limits))
            if keep_checks:  # before the state, so that no check is passed over when a kill comes between them
                run.save(work_dir / _CHECKS / f"epoch-{run.epoch:04}.safetensors")
        run.save(state)
        if due:
            write_decisions(work_dir, run.decisions)
            watched.sheet(work_dir / "samples" / f"epoch-{run.epoch:04}.png", run.anonymise, run.recover)

    train_epochs(run, epochs, after_epoch, stream=stream)
    if not state.exists():  # all that there was to do was taken over
        run.save(state)


def _check(run: AnonymiserRun, watched: ValidationPeople, limits: Limits) -> str:
    """Measure, decide, act and note; returns a line that tells it."""
    found = watched.check(run.anonymise, run.recover, run.reid.network)
    action = _decide(run, found, limits)
    return (
        f"epoch {run.epoch}: anonymised PSNR {found.psnr:.2f} dB, SSIM {found.ssim:.3f} "
        f"({'within' if limits.private(found.psnr, found.ssim) else 'over'} the limits), Rank-1 {found.rank1:.1%}, "
        f"recovered PSNR {found.recovered_psnr:.2f} dB; supervision: {action}"
    )


def _decide(run: AnonymiserRun, found: Check, limits: Limits) -> Action | Literal["off"]:
    """Decide upon what was found, act and note."""
    action: Action | Literal["off"] = "off"
    to_beat = None
    if run.supervision is not None:
        to_beat = run.supervision.best
        action, run.supervision = decide(found.psnr, found.ssim, found.rank1, limits=limits, before=run.supervision)
        if action == "upgrade":
            run.upgrade()
        elif action == "revert":
            run.revert()
    run.decisions.append(
        {
            "epoch": run.epoch,
            "action": action,
            "private": limits.private(found.psnr, found.ssim),
            "supervision": "desensitised" if run.target is None else "upgraded",
            **asdict(found),
            "psnr_limit": limits.psnr + limits.psnr_slack,
            "ssim_limit": limits.ssim + limits.ssim_slack,
            "rank1_to_beat": to_beat,
            "desensitised_psnr": limits.psnr,
            "desensitised_ssim": limits.ssim,
            "desensitised_rank1": limits.rank1,
        }
    )
    return action
