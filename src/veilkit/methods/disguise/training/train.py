"""Training of Disguise in two phases, resumable to the same bits after any kill.

First the swapper alone learns to put any identity into any face, then swapper and identity transform are trained
together, under the utility experts. All randomness derives from (seed, step), and the state is saved every so many
steps: a run that was killed repeats the last of them and reaches the same weights, on the same machine with the same
number of threads. Some people of the training part are set aside to be watched; nothing is chosen by anybody.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TextIO

from torch import Tensor

from veilkit.errors import ConfigError, DataError
from veilkit.experts.base import Detector, Embedder
from veilkit.experts.finders import FaceSettings
from veilkit.methods.disguise.identity import IdentityEncoder, fit_ensemble
from veilkit.methods.disguise.identity_transforms import Ensemble, Transform, transformed
from veilkit.methods.disguise.swapper import Swapper
from veilkit.methods.disguise.training.config import DisguiseTrainingConfig
from veilkit.methods.disguise.training.data import DisguiseData
from veilkit.methods.disguise.training.monitor import Monitor, last_watched
from veilkit.methods.disguise.training.run import DisguiseRun, Losses
from veilkit.methods.disguise.training.transform import fit_transform
from veilkit.privacy import DisguisePaper
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.faces import align_faces
from veilkit.training.fitting import FitConfig
from veilkit.training.loop import keep_memory, without_denormals
from veilkit.training.pixels import split_digest
from veilkit.types import Split

_STATE, _ENSEMBLE, _CROPS, _TRANSFORM = "state.safetensors", "ensemble.safetensors", "crops", "transform.safetensors"
_VECTORS = 256  # identities in a batch, where only the transform is fitted


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What a training begins with. experts: fingerprint of the identity experts. sha256: of all of it."""

    swapper: Swapper
    transform: Transform
    ensemble: Ensemble | None
    centres: tuple[Tensor, ...]
    experts: str
    sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class TrainedDisguise:
    """What training leaves, in evaluation mode.

    sensitivity: the largest L1 distance seen between two transformed identities of training people, without noise:
    what the paper takes for a sensitivity. without_face: pictures that were left out. watched: the last look at
    people it did not train on (see `disguise_watch.WATCHED`).
    """

    swapper: Swapper
    transform: Transform
    ensemble: Ensemble | None
    centres: tuple[Tensor, ...]
    sensitivity: float
    without_face: int
    watched: dict[str, float]


def train_disguise(
    split: Split,
    config: DisguiseTrainingConfig,
    *,
    identity: Sequence[Embedder],
    utility: Sequence[Embedder],
    finder: Detector,
    work_dir: Path,
    start: Start | None = None,
    stream: TextIO | None = None,
) -> TrainedDisguise:
    """Train on the labelled people of `split`, a part of whom is only watched.

    identity, utility: differentiable experts; they get aligned crops (see `IdentityEncoder`) and own their resize.
    start: networks of an earlier training to begin with, in place of new ones; the critics are new.
    work_dir: gets the crops, the state, `watched.jsonl` and sheets in `samples`; all as private as the pictures.
    """
    keep_memory()
    work_dir = Path(work_dir)
    if any(record.identity is None for record in split.records):
        raise DataError(f"expected an identity for each image of the {split.name!r} split, but some have none")
    aligned = align_faces(split, finder, config.swapper.size, work_dir / _CROPS, stream=stream)
    trained_on, watched = _people(aligned.crops, config)
    data = DisguiseData(trained_on, config.swapper.size, config.batch, config.seed)
    encoder = IdentityEncoder(identity, config.transform.dim, views=config.views)
    facts = _facts(aligned.crops, config, encoder, utility, finder, start)
    with without_denormals():
        encoder.centres = () if start is None else start.centres
        features = encoder.features_of_pixels(data.pixels)
        if config.centred and start is None:
            features = encoder.centre_on(features)
        if encoder.needs_ensemble and start is not None:
            encoder.ensemble = start.ensemble
        elif encoder.needs_ensemble:
            state = work_dir / _ENSEMBLE
            fit_ensemble(encoder, features, config.ensemble_steps, config.seed, {"run": facts}, state, stream)
        data.identities = encoder.joined(features).detach()
        run = DisguiseRun(data, config, encoder, utility, facts)
        if start is not None:
            run.begin_with(start.swapper, start.transform)
        _train(run, Monitor(watched, config.swapper.size, encoder, config), work_dir, stream)
    run.swapper.eval().requires_grad_(False)
    run.transform.eval().requires_grad_(False)
    answers = transformed(run.transform, data.identities).vectors
    sensitivity = DisguisePaper.measured(answers, epsilon=1.0).sensitivity
    return TrainedDisguise(
        run.swapper,
        run.transform,
        encoder.ensemble,
        encoder.centres,
        sensitivity,
        aligned.without,
        last_watched(work_dir),
    )


def _people(crops: Split, config: DisguiseTrainingConfig) -> tuple[Split, Split]:
    """The people to train on, and those who are watched."""
    people = crops.identities
    count = max(1, round(config.validation * len(people)))
    if len(people) - count < 2:
        raise DataError(f"{config.validation:.0%} of {len(people)} people leaves fewer than 2 to train on")
    order = Randomness.from_seed(config.seed).child("disguise", "validation").permutation(len(people))
    held = {people[place] for place in order[:count]}
    parts = [
        Split(name, crops.root, tuple(record for record in crops.records if (record.identity in held) is inside))
        for name, inside in ((crops.name, False), ("watched", True))
    ]
    return parts[0], parts[1]


def _train(run: DisguiseRun, monitor: Monitor, work_dir: Path, stream: TextIO | None) -> None:
    state, config = work_dir / _STATE, run.config
    if state.exists():
        run.restore(state)
    with Progress(config.steps, "training", done=run.done, stream=stream) as progress:
        while run.done < config.steps:
            if run.done == config.swapper_steps and config.transform_steps:
                run.take_transform(_first_transform(run, work_dir, stream))
            progress.advance(1, _note(run, run.step()))
            last = run.done in (config.swapper_steps, config.steps)
            if run.done % config.check_every == 0 or last:
                progress.say(monitor.measure(run.done, run.swapper, run.transform, work_dir))
            if run.done % config.save_every == 0 or last:
                run.save(state)


def _first_transform(run: DisguiseRun, work_dir: Path, stream: TextIO | None) -> Transform:
    """Fitted to the training people's identities, before swapper and transform are trained together."""
    config, identities = run.config, run.data.identities
    fit = FitConfig(config.transform_steps, min(_VECTORS, len(identities)), rate=1e-3, seed=config.seed)
    state = work_dir / _TRANSFORM
    return fit_transform(config.transform, identities, config, fit, state=state, stream=stream)[0]


def _note(run: DisguiseRun, losses: Losses) -> str:
    phase = "swapper" if run.done <= run.config.swapper_steps else "all"
    return (
        f"{phase}: identity {losses.identity:.2f}, de-identified {losses.deid:.2f}, mix {losses.mix:.3f}, "
        f"utility {losses.utility:.3f}, reconstruction {losses.reconstruction:.3f}, critics {losses.critics:.2f}"
    )


def _facts(
    crops: Split,
    config: DisguiseTrainingConfig,
    encoder: IdentityEncoder,
    utility: Sequence[Embedder],
    finder: Detector,
    start: Start | None,
) -> dict[str, Any]:
    """What makes two runs the same one, as JSON values; crops are named by their pictures' content.

    How many steps are to come is none of it: the rate is constant, so that a run may be made longer.
    """
    if start is not None and start.experts != encoder.fingerprint:
        raise ConfigError(
            "the model to begin with was trained with other identity experts: name the same, or begin anew"
        )
    known = asdict(config)
    own = {each.name for each in fields(DisguiseTrainingConfig)} - {each.name for each in fields(FaceSettings)}
    own -= {"swapper_steps", "joint_steps", "check_every", "save_every"}
    facts = {
        **{name: known[name] for name in sorted(own)},
        "identity": encoder.fingerprint,
        "utility": [f"{expert.name} {expert.info.fingerprint}" for expert in utility],
        "finder": finder.info.fingerprint,
        "start": None if start is None else start.sha256,
        "data": split_digest(crops),
    }
    whole: dict[str, Any] = json.loads(json.dumps(facts))
    return whole
