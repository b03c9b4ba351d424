"""Honest releases of every method, on which an audit must raise no alarm.

    VEILKIT_DATA=... python benchmarks/audit_false_alarms.py [--only KIND] [--rows]

Two hundred releases, drawn anew for each seed: of generated people and faces, of CUHK03-NP and of LFW; by every
method of the table and as other tools would leave them; of 10 to 30 pictures, and some of 240. Only one attack is
made, as alarms do not rest on attacks. Each audit is kept in runs/audit_false_alarms, and a stopped command goes on;
--rows writes the row of what there is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import audit_mutants
from audit_mutants import audited
from claims import ROOT, record
from planted_leaks import by, many
from veilkit.methods import METHODS
from veilkit.pipeline.protect import protect
from veilkit.synthetic.faces.pictures import render_face

COMMAND = "VEILKIT_DATA=... python benchmarks/audit_false_alarms.py"
KEPT, MODELS = ROOT / "runs" / "audit_false_alarms", ROOT / "models"
RELEASES, PEOPLE, SHOTS = 200, 10, 3
LARGE = 240
Make = Callable[[Path, Path], Path]


def protected(method: str, preset: str | None = None, model: str | None = None, **settings: Any) -> Make:
    def make(originals: Path, release: Path) -> Path:
        protect(originals, release, method, preset=preset, settings=settings, labels="folder",
                model=None if model is None else MODELS / f"{model}.safetensors")  # fmt: skip
        return release

    return make


def _noisy(pixels: np.ndarray, number: int) -> np.ndarray:
    noise = np.random.default_rng([4, number]).normal(0, 30, pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype(np.uint8)


_BRIEF = {"steps": 2, "batch": 8, "expert": str(MODELS / "cuhk03_privacyreid.expert.safetensors")}
# Kinds of releases: the originals, how they are made, and how many of 200 are theirs.
KINDS: dict[str, tuple[str, Make, int]] = {
    **{f"{name}, generated": ("generated", make, 6) for name, make in audit_mutants.HONEST.items()},
    "blur, large": ("large", protected("blur"), 2),
    "noise, large": ("large", protected("noise"), 2),
    "pixelate, large": ("large", protected("pixelate"), 2),
    **{f"{name}, CUHK03": ("cuhk", protected(name), 8) for name in ("blur", "pixelate", "noise", "mixup")},
    "patches, CUHK03": ("cuhk", protected("patches"), 4),
    "patches kept, CUHK03": ("cuhk", protected("patches", "kept"), 4),
    "strong noise, CUHK03": ("cuhk", protected("noise", sigma=0.5), 6),
    "weak blur, CUHK03": ("cuhk", protected("blur", sigma=1.5), 6),
    "masked head, CUHK03": ("cuhk", protected("mask", "head"), 6),
    "blurred head, CUHK03": ("cuhk", protected("faceblur", "people"), 6),
    "face over head, CUHK03": ("cuhk", protected("facereplace", "people"), 4),
    "k-same heads, CUHK03": ("cuhk", protected("ksame", "people"), 4),
    "PixelFade, CUHK03": ("cuhk", protected("pixelfade", **_BRIEF), 6),
    "AVIH, CUHK03": ("cuhk", protected("avih", steps=2, spread=1, batch=8, expert=_BRIEF["expert"]), 6),
    "PrivacyReID, CUHK03": ("cuhk", protected("privacyreid", model="cuhk03_privacyreid"), 8),
    "PEPR-Net, CUHK03": ("cuhk", protected("peprnet", model="cuhk03_peprnet"), 8),
    "FRO, CUHK03": ("known", protected("fro", model="cuhk03_fro", **{"assembly.steps": 2}), 3),
    "blur by another tool, CUHK03": ("cuhk", audit_mutants.HONEST["blur by another tool, as JPEG"], 6),
    "fresh noise by another tool, CUHK03": (
        "cuhk", by(_noisy), 6,
    ),
    "faceblur, LFW": ("lfw", protected("faceblur"), 4),
    "facereplace, LFW": ("lfw", protected("facereplace"), 4),
    "k-same, LFW": ("lfw", protected("ksame", people=2), 2),
    "Disguise, LFW": ("lfw", protected("disguise", model="lfw_disguise"), 2),
    "blur, LFW": ("lfw", protected("blur"), 4),
    "faceblur, generated": ("faces", protected("faceblur"), 4),
}  # fmt: skip


def order() -> list[str]:
    """The kind of each release: all kinds in turn, the frequent ones again and again."""
    left = {kind: count for kind, (_, _, count) in KINDS.items()}
    kinds: list[str] = []
    while any(left.values()) and len(kinds) < RELEASES:
        for kind in left:
            if left[kind] and len(kinds) < RELEASES:
                kinds.append(kind)
                left[kind] -= 1
    return kinds


def originals_of(data: str, seed: int, folder: Path, pool: Path) -> Path:
    generator = np.random.default_rng([17, seed])
    if data in ("generated", "large"):
        some = audit_mutants.some(pool, folder / "some", seed)
        return some if data == "generated" else many(some, folder / "large", LARGE)
    if data == "faces":
        for person in generator.choice(10_000, PEOPLE // 2, replace=False):
            (folder / "faces" / f"p{person}").mkdir(parents=True)
            for shot in range(SHOTS):
                pixels = render_face(seed, int(person), shot, size=112)[0]
                Image.fromarray(pixels).save(folder / "faces" / f"p{person}" / f"{shot}.png")
        return folder / "faces"
    people = _lfw() if data == "lfw" else _cuhk("bounding_box_train" if data == "known" else None)
    names = sorted(people.keys() & METHODS["fro"].load(MODELS / "cuhk03_fro.safetensors").pool.place.keys()
                   if data == "known" else people)  # fmt: skip
    for place in generator.choice(len(names), PEOPLE // 2 if data == "lfw" else PEOPLE, replace=False):
        files = people[names[place]]
        person = folder / data / (names[place] if data == "known" else f"p{place:04}")
        person.mkdir(parents=True)
        for file in generator.choice(len(files), min(SHOTS, len(files)), replace=False):
            shutil.copy(files[file], person / f"{file}{files[file].suffix}")
    return folder / data


def _cuhk(part: str | None = None) -> dict[str, list[Path]]:
    """Pictures by person: of the test part, or of people to try thresholds on."""
    people: dict[str, list[Path]] = {}
    for file in sorted((Path(os.environ["VEILKIT_DATA"]) / "cuhk03-np" / (part or PART["cuhk"])).iterdir()):
        people.setdefault(file.name[:4], []).append(file)
    return {name: files for name, files in people.items() if len(files) >= 2}


def _lfw() -> dict[str, list[Path]]:
    """Pictures of people with two or more; those of the test folds are told by the list of pairs."""
    from veilkit.datasets.lfw import TEST_FOLDS, load_lfw

    root = Path(os.environ["VEILKIT_DATA"]) / "lfw"
    tested = {Path(name).parent.name for pair in load_lfw(root).pairs if pair.fold in TEST_FOLDS
              for name in (pair.first, pair.second)}  # fmt: skip
    found: dict[str, list[Path]] = {}
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and (folder.name in tested) is (PART["lfw"] == "test"):
            files = sorted(folder.glob("*.jpg"))
            if len(files) >= 2:
                found[folder.name] = files
    return found


PART = {"cuhk": "bounding_box_test", "lfw": "test"}


def trial(seed: int, kind: str, pool: Path) -> dict[str, Any]:
    """One honest release, and the alarms that its audit raises."""
    file = KEPT / f"{PART['lfw']}-{seed:03}.json"
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text())
        if kept["kind"] == kind:
            return kept
    data, make, _ = KINDS[kind]
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        originals = originals_of(data, seed, Path(folder), pool)
        release = make(originals, Path(folder, "release"))
        made = time.process_time()
        result = audited(originals, release, Path(folder, "audit"), draw_seed=seed, attacks=["own_original"],
                         labels="folder")  # fmt: skip
    found = {
        "kind": kind,
        "pictures": result.pictures,
        "alarms": [f"{alarm.name}: {alarm.text}" for alarm in result.alarms],
        "making": round(made - begun, 2),
        "auditing": round(time.process_time() - made, 2),
    }
    file.write_text(json.dumps(found, indent=1) + "\n")
    return found


def row(found: list[dict[str, Any]]) -> None:
    false = [each for each in found if each["alarms"]]
    what = "; ".join(f"{each['kind']}: {alarm.partition(':')[0]}" for each in false for alarm in each["alarms"])
    record(
        id="audit-false-alarms", claim=f"false alarms on honest releases of every method, of {len(found)}",
        figure=len(false), bar="<= 1", unit="audits",
        data="generated people and faces; CUHK03-NP and LFW, test people",
        scale=f"{len(found)} releases of {min(e['pictures'] for e in found)} to {max(e['pictures'] for e in found)} "
        f"pictures, {len({each['kind'] for each in found})} kinds",
        seed=0, command=COMMAND,
        note="; ".join(filter(None, [
            f"{len(found)} of {RELEASES} so far" if len(found) < RELEASES else "",
            what, ", ".join(sorted({each["kind"] for each in found})),
            "PixelFade and AVIH with 2 of their steps, FRO with 2",
        ])),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="kinds that hold this word, without a row")
    parser.add_argument("--releases", type=int, default=RELEASES, help="fewer, without a row")
    parser.add_argument("--training", action="store_true", help="people to try thresholds on, without a row")
    parser.add_argument("--rows", action="store_true", help="the row of what there is")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    if wanted.training:
        PART.update(cuhk="bounding_box_train", lfw="train")
    KEPT.mkdir(parents=True, exist_ok=True)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        kinds = order()[: wanted.releases]
        if wanted.rows:
            kinds = [kind for seed, kind in enumerate(kinds) if (KEPT / f"test-{seed:03}.json").exists()]
        pool = Path(folder) if wanted.rows else audit_mutants.people(Path(folder), 1 if wanted.training else 0)
        for seed, kind in enumerate(kinds):
            if wanted.only and not any(word in kind for word in wanted.only):
                continue
            result = trial(seed, kind, pool)
            found.append(result)
            print(seed, kind, result["pictures"], result["making"], result["auditing"], result["alarms"] or "silent",
                  flush=True)  # fmt: skip
    if not (wanted.only or wanted.training) and wanted.releases == RELEASES:
        row(found)


if __name__ == "__main__":
    main()
