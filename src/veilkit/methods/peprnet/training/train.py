"""Training of PEPR-Net's first stage, resumable to the same bits after any kill.

All randomness derives from (seed, epoch, step), and the state is saved at each epoch's end: a run that was killed
repeats the epoch it was in and reaches the same weights, on the same machine with the same number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from veilkit.methods.peprnet.deid_decoder import DeidDecoder
from veilkit.methods.peprnet.training.config import PeprTrainingConfig
from veilkit.methods.peprnet.training.run import PeprRun, Target
from veilkit.networks.reid import ReidNetwork
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.allocator import keep_memory, without_denormals
from veilkit.training.holdout import Holdout, hold_out
from veilkit.training.pixels import read_pixels
from veilkit.training.retrieval import evaluate_reid
from veilkit.types import Split


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPepr:
    """What training leaves, in evaluation mode, and the losses of each epoch. The adversary's head is thrown away."""

    encoder: ReidNetwork
    decoder: DeidDecoder | None
    history: tuple[dict[str, float], ...]


def train_peprnet(
    split: Split,
    config: PeprTrainingConfig,
    target: Target | None,
    *,
    work_dir: Path,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> TrainedPepr:
    """Train encoder, decoder and adversary together on the labelled people of `split` (Eq. 4).

    target: what the decoder must draw; None trains without one. work_dir: gets the state after each epoch, from which
    the same run goes on. init: weights of the encoder's backbone.
    """
    keep_memory()
    rng = Randomness.from_seed(config.seed).child("peprnet")
    watched = hold_out(split, config.validation, rng) if config.validation else None
    run = PeprRun(split if watched is None else watched.train, config, target, init)
    state = Path(work_dir) / "state.safetensors"
    if state.exists():
        run.restore(state)
    steps = len(run.batches(0))
    bar = Progress(config.epochs * steps, "training", done=run.epoch * steps, stream=stream)
    with without_denormals(), bar as progress:
        while run.epoch < config.epochs:
            _train_epoch(run, progress)
            run.save(state)
            if watched is not None:
                progress.say(_validation(run, watched))
    decoder = None if run.decoder is None else run.decoder.eval()
    return TrainedPepr(run.encoder.eval(), decoder, tuple(run.history))


def _train_epoch(run: PeprRun, progress: Progress) -> None:
    batches, losses = run.batches(run.epoch), []
    for step, positions in enumerate(batches):
        found = run.step(step, positions, step / len(batches))
        losses.append(found)
        progress.advance(
            1,
            f"epoch {run.epoch + 1}/{run.config.epochs}, losses: Re-ID {found.reid:.3f}, De-ID {found.deid:.4f}, "
            f"adversary {found.adversary:.3f}",
        )
    run.close_epoch(losses)


def _validation(run: PeprRun, people: Holdout) -> str:
    size = run.config.size
    pixels = read_pixels(people.query, size), read_pixels(people.gallery, size)
    found = evaluate_reid(run.encoder, people.query, people.gallery, *pixels)
    return f"epoch {run.epoch}: validation Rank-1 {found.rank(1):.1%}, mAP {found.mean_ap:.1%}"
