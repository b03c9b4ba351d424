"""Training of a learned, reversible anonymiser (PrivacyReID), resumable to the same bits after any kill.

All randomness derives from (seed, epoch, step), and the state is saved at each epoch's end: a run that was killed
repeats the epoch it was in and reaches the same weights, on the same machine with the same number of threads. Nothing
is chosen by anybody but people of the training part who were set aside.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from veilkit.networks.pix2pix_unet import Pix2PixUNet
from veilkit.networks.reid import ReidNetwork
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.allocator import keep_memory, without_denormals
from veilkit.training.anonymiser_baseline import train_baseline
from veilkit.training.anonymiser_check import ValidationPeople
from veilkit.training.anonymiser_config import AnonymiserConfig
from veilkit.training.anonymiser_data import AnonymiserData, Desensitiser, run_facts
from veilkit.training.anonymiser_people import set_aside
from veilkit.training.anonymiser_run import AnonymiserRun
from veilkit.training.decision_log import write_decisions
from veilkit.training.joint_reid import JointReid
from veilkit.training.upgradation import Limits, Supervision, decide
from veilkit.types import Split


@dataclass(frozen=True, slots=True, eq=False)
class TrainedAnonymiser:
    """What training leaves, in evaluation mode: G_X, G_Y, the recogniser, and each check with what was decided."""

    anonymise: Pix2PixUNet
    recover: Pix2PixUNet
    reid: ReidNetwork
    decisions: tuple[dict[str, Any], ...]


def train_anonymiser(
    split: Split,
    config: AnonymiserConfig,
    desensitiser: Desensitiser,
    *,
    work_dir: Path,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> TrainedAnonymiser:
    """Train on the labelled people of `split`, a part of whom only validate.

    work_dir: gets the state after each epoch, from which the same run goes on; `decisions.jsonl` and `.svg`; and
    sheets of validation pictures in `samples`, which are as private as the pictures. init: weights of the
    recogniser's backbone.
    """
    keep_memory()
    work_dir = Path(work_dir)
    rng = Randomness.from_seed(config.reid.seed).child("anonymiser")
    people = set_aside(split, config.validation, rng.child("validation"))
    watched = ValidationPeople(people, config.size, desensitiser)
    data = AnonymiserData(people.train, config, desensitiser)
    reid = JointReid(config.reid, data.people, rng.child("reid"), init)
    facts = run_facts(split, config, desensitiser, reid.started_from)
    with without_denormals():
        rank1 = None
        if config.upgrade:
            start = work_dir / "baseline.safetensors"
            rank1 = watched.desensitised_rank1(train_baseline(data, config, facts, start, init=init, stream=stream))
        slack = {"psnr_slack": config.psnr_slack, "ssim_slack": config.ssim_slack, "rank1_slack": config.rank1_slack}
        limits = Limits(*watched.desensitised_likeness(), rank1, **slack)
        first = limits.first_rank1
        run = AnonymiserRun(data, config, reid, facts, None if first is None else Supervision(first))
        _train(run, watched, limits, work_dir, stream)
    return TrainedAnonymiser(run.anonymise.eval(), run.recover.eval(), run.reid.network.eval(), tuple(run.decisions))


def _train(
    run: AnonymiserRun, watched: ValidationPeople, limits: Limits, work_dir: Path, stream: TextIO | None
) -> None:
    state, epochs = work_dir / "state.safetensors", run.config.reid.epochs
    if state.exists():
        run.restore(state)
        write_decisions(work_dir, run.decisions)  # a kill may have come between the state and them
    steps = len(run.data.batches(0))
    with Progress(epochs * steps, "training", done=run.epoch * steps, stream=stream) as progress:
        while run.epoch < epochs:
            _train_epoch(run, progress)
            due = run.epoch % run.config.check_every == 0 or run.epoch == epochs
            if due:
                progress.say(_check(run, watched, limits))
            run.save(state)
            if due:
                write_decisions(work_dir, run.decisions)
                watched.sheet(work_dir / "samples" / f"epoch-{run.epoch:04}.png", run.anonymise, run.recover)


def _train_epoch(run: AnonymiserRun, progress: Progress) -> None:
    batches = run.data.batches(run.epoch)
    for step, positions in enumerate(batches):
        losses = run.step(step, positions, step / len(batches))
        progress.advance(
            1,
            f"epoch {run.epoch + 1}/{run.config.reid.epochs}, losses: anonymised {losses.anonymisation:.2f}, "
            f"recovered {losses.recovery:.2f}, Re-ID {losses.reid:.2f}, discriminators {losses.discriminators:.2f}",
        )
    run.epoch += 1


def _check(run: AnonymiserRun, watched: ValidationPeople, limits: Limits) -> str:
    """Measure, decide, act and note; returns a line that tells it."""
    found = watched.check(run.anonymise, run.recover, run.reid.network)
    action, to_beat = "off", None
    if run.supervision is not None:
        to_beat = run.supervision.best
        action, run.supervision = decide(found.psnr, found.ssim, found.rank1, limits=limits, before=run.supervision)
        if action == "upgrade":
            run.upgrade()
        elif action == "revert":
            run.revert()
    private = limits.private(found.psnr, found.ssim)
    run.decisions.append(
        {
            "epoch": run.epoch,
            "action": action,
            "private": private,
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
    return (
        f"epoch {run.epoch}: anonymised PSNR {found.psnr:.2f} dB, SSIM {found.ssim:.3f} "
        f"({'within' if private else 'over'} the limits), Rank-1 {found.rank1:.1%}, recovered PSNR "
        f"{found.recovered_psnr:.2f} dB; supervision: {action}"
    )
