"""Where upgradation starts from: a recogniser trained on raw and desensitised pictures (PrivacyReID, Section 3.4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

from veilkit.checkpoint import save_checkpoint
from veilkit.methods.privacyreid.training.config import AnonymiserConfig
from veilkit.methods.privacyreid.training.data import AnonymiserData, read_counts
from veilkit.methods.privacyreid.training.joint_reid import JointReid
from veilkit.networks.reid import ReidNetwork
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.schedule import Schedule
from veilkit.training.state import read_state

STATE_KIND = "anonymiser-baseline"


def train_baseline(
    data: AnonymiserData,
    config: AnonymiserConfig,
    facts: dict[str, Any],
    state: Path,
    *,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> ReidNetwork:
    """The recogniser after `baseline_epochs`; resumable to the same bits from `state`, saved at each epoch's end."""
    reid = JointReid(config.reid, data.people, Randomness.from_seed(config.reid.seed).child("baseline"), init)
    epochs, epoch = config.baseline_epochs, 0
    if state.exists():
        saved = read_state(state, STATE_KIND, facts)
        reid.restore(saved.tensors, state.name)
        epoch = read_counts(saved, state, {"epoch": epochs})["epoch"]
    schedule = Schedule(epochs, min(config.reid.warmup, epochs), config.reid.decay, config.milestones)
    steps = len(data.batches(0))
    with Progress(epochs * steps, "baseline", done=epoch * steps, stream=stream) as progress:
        while epoch < epochs:
            batches = data.batches(epoch)
            for step, positions in enumerate(batches):
                images, labels = data.varied(positions, epoch, step)
                loss = reid.loss([images, data.desensitised(images, epoch, step)], labels)
                reid.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                reid.step(schedule.factor(epoch + step / len(batches)))
                progress.advance(1, f"epoch {epoch + 1}/{epochs}, loss {loss.item():.2f}")
            epoch += 1
            save_checkpoint(state, reid.tensors(), {"epoch": epoch, "run": facts}, STATE_KIND)
    return reid.network.eval()
