"""Membership inference by shadows on FRO: its whole recipe, once for the target and for each of some shadows.

A shadow is pool, synthetic set and student of other people. What a run leaves is kept under a name that belongs to
its pictures and settings, so that a study that was stopped goes on with the runs that are missing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from studies.fro.attacks import described, held, held_release, person_codes
from veilkit.attacks import UNPAIRED_ATTACKS, UnpairedRelease, UnpairedTarget, UnpairedTrial, run_unpaired
from veilkit.attacks.synthetic_release.shadows import FEWEST, Shadows
from veilkit.errors import ConfigError, DataError
from veilkit.experts import Embedder
from veilkit.methods.fro.method import Fro
from veilkit.methods.fro.pool import load_synthetic, views_of
from veilkit.networks.reid import load_reid
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.training.loop import Decay
from veilkit.training.pixels import read_pixels
from veilkit.training.reid import train_reid
from veilkit.training.reid_config import PLAIN, ReidConfig
from veilkit.types import Record, Split

BY_SHADOWS = ("membership_shadows_person", "membership_shadows_picture")


@dataclass(frozen=True, slots=True)
class ShadowStudyConfig:
    """people: trained on in the target and in each shadow. pictures: of each person, trained on; as many are not.

    backbone, size, epochs, rate, batch: of pools and students, a batch being so many people with four pictures each.
    replay: temperature at which students match their pool's logits. preset, steps, scale: of the synthesis. count: of
    shadows. knows: the least share of its own training pictures that the target's pool must recognise: that nobody is
    found in what was never learned would say nothing about a pool that has learned.
    """

    people: int = 24
    pictures: int = 4
    backbone: str = "mobilenetv2"
    size: tuple[int, int] = (96, 48)
    epochs: int = 20
    rate: float = 1e-3
    batch: int = 8
    replay: float = 4.0
    preset: str = "varied-people"
    steps: int = 40
    scale: float = 1.0
    count: int = FEWEST
    knows: float = 0.9

    def __post_init__(self) -> None:
        if self.people < 2 or self.pictures < 1:
            raise ConfigError(f"expected two people and a picture of each, but got {self.people} and {self.pictures}")
        if self.count < FEWEST or self.count % 2:
            raise ConfigError(f"expected an even number of at least {FEWEST} shadows, but got {self.count}")

    def recipe(self, seed: int) -> ReidConfig:
        """Of a pool and its student."""
        return replace(
            PLAIN, backbone=self.backbone, size=self.size, epochs=self.epochs, rate=self.rate,
            warmup=min(1, self.epochs - 1), decay=Decay.COSINE, identities=self.batch, seed=seed,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShadowParts:
    """Who plays which part; nobody plays two. unseen are other pictures of the members."""

    members: Split
    unseen: Split
    held_out: Split
    public: Split


def shadow_parts(split: Split, config: ShadowStudyConfig) -> ShadowParts:
    """The first people by name who have pictures enough: `people` members, as many held out, twice as many public.

    A person's pictures are taken in pairs of one camera, of which one is trained on and the other is not: pictures
    that were trained on and others must not differ in their cameras.
    """
    paired = {person: pairs_by_camera(split, person)[: config.pictures] for person in split.identities}
    names = [person for person, pairs in paired.items() if len(pairs) == config.pictures]
    if len(names) < 4 * config.people:
        raise DataError(
            f"expected {4 * config.people} people with {config.pictures} pairs of pictures by one camera each, but "
            f"{split.name!r} has {len(names)}; take fewer people or pictures"
        )
    count = config.people

    def part(name: str, first: int, last: int, *sides: int) -> Split:
        chosen = (pair[side] for person in names[first:last] for pair in paired[person] for side in sides)
        return Split(name, split.root, tuple(sorted(chosen, key=lambda record: record.path)))

    return ShadowParts(
        part("members", 0, count, 0),
        part("unseen", 0, count, 1),
        part("held out", count, 2 * count, 0),
        part("public", 2 * count, 4 * count, 0, 1),
    )


def shadow_attack(
    parts: ShadowParts,
    config: ShadowStudyConfig,
    recogniser: Embedder,
    folder: Path,
    *,
    init: Path | None = None,
    workers: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """What the attacks of `BY_SHADOWS` find, by name (see `fro_attacks.described`); INVALID if the pool knows nobody.

    folder: where pools, releases and students are kept. init: weights that pools and students start from. Every run
    has a seed of its own, since an adversary does not know the target's.
    """
    codes = person_codes(parts.members, parts.held_out, parts.public)
    public = held(parts.public, codes, config.size)

    def run(split: Split) -> UnpairedRelease:
        made, targets, student = _run(split, config, folder, init, workers, seed)
        return held_release(made, targets, load_reid(student), codes, config.size)

    def shadow(indices: NDArray[np.int64]) -> UnpairedRelease:
        records = tuple(parts.public.records[index] for index in indices)
        return run(Split("shadow", parts.public.root, records))

    rng = Randomness.from_seed(seed).child("shadow study")
    target = UnpairedTarget(
        rng=rng,
        release=run(parts.members),
        members=held(parts.members, codes, config.size),
        unseen=held(parts.unseen, codes, config.size),
        held_out=held(parts.held_out, codes, config.size),
        recogniser=recogniser,
        shadows=Shadows(public.pictures, public.people, shadow, rng=rng, count=config.count, share=0.5),
    )
    trial = UnpairedTrial.of(target)
    found = {name: described(run_unpaired(UNPAIRED_ATTACKS[name], target, trial=trial)) for name in BY_SHADOWS}
    known = _known(parts.members, folder / "pools" / f"{_name(parts.members, config, init, seed)}.safetensors")
    if known < config.knows:
        told = (
            f"the target's pool recognises {known:.0%} of its own training pictures, where {config.knows:.0%} are due"
        )
        for each in found.values():
            each["invalid"].append(told)
    return found


def _known(members: Split, file: Path) -> float:
    """The share of the pictures that a pool was trained on whose person it names."""
    pool = Fro.load(file).pool
    told = pool.logits(read_pixels(members, pool.size).float().div(255)).argmax(1).tolist()
    named = [pool.people[place] for place in told]
    return float(np.mean([name == record.identity for name, record in zip(named, members.records, strict=True)]))


def _run(
    split: Split, config: ShadowStudyConfig, folder: Path, init: Path | None, workers: int, seed: int
) -> tuple[Split, Tensor, Path]:
    """Pool, synthetic set with its logits, and the student's file, of these pictures."""
    name = _name(split, config, init, seed)
    own = int(name, 16) >> 33
    recipe = config.recipe(own)
    pool, student = (folder / kind / f"{name}.safetensors" for kind in ("pools", "students"))
    for kind in ("pools", "students"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    source = _copied(split, folder / "originals" / name)
    if not pool.exists():
        preset = Fro.preset_table()[config.preset]
        assembly = replace(preset.assembly, steps=config.steps)
        method = Fro(replace(preset, scale=config.scale, assembly=assembly, pool=recipe))
        method.fit(split, work_dir=folder / "work" / name / "pool", init=init).save(pool)
    release = folder / "releases" / name
    protect(source, release, "fro", model=pool, seed=own, names="kept", labels="folder", workers=workers)
    made, targets = load_synthetic(release)
    if not student.exists():
        recipe = replace(recipe, temperature=config.replay)
        work = folder / "work" / name / "student"
        train_reid(made, recipe, student, work_dir=work, init=init, targets=views_of(made, targets))
    shutil.rmtree(folder / "work" / name, ignore_errors=True)
    return made, targets, student


def _name(split: Split, config: ShadowStudyConfig, init: Path | None, seed: int) -> str:
    """64 bits in hexadecimal that belong to these pictures' paths and people and to all settings of a run."""
    settings = {
        key: value for key, value in asdict(config).items() if key not in ("people", "pictures", "count", "knows")
    }
    start = "" if init is None else hashlib.sha256(init.read_bytes()).hexdigest()
    facts = [settings, start, seed, [(record.path, record.identity) for record in split.records]]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _copied(split: Split, folder: Path) -> Path:
    """The pictures in one folder per person: a synthesis is told its people by a folder."""
    for index, record in enumerate(split.records):
        target = folder / str(record.identity) / f"{index}-{Path(record.path).name}"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_suffix(".draft")
            shutil.copyfile(split.file(index), draft)
            draft.replace(target)
    return folder


def pairs_by_camera(split: Split, person: str) -> list[tuple[Record, Record]]:
    """A person's pictures in pairs of one camera, by path; the first pair of each camera, then the second of each."""
    cameras: dict[str, list[Record]] = {}
    for record in sorted(split.records, key=lambda each: each.path):
        if record.identity == person:
            cameras.setdefault(str(record.camera), []).append(record)
    placed = [
        (place, camera, (records[place], records[place + 1]))
        for camera, records in cameras.items()
        for place in range(0, len(records) - 1, 2)
    ]
    return [pair for _, _, pair in sorted(placed, key=lambda each: each[:2])]
