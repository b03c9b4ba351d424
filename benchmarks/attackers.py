"""What the strong attackers get of CUHK03-NP's test people: cloning, family transfer, the stolen expert, decoding.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/attackers.py [--only METHOD/ATTACK ...]

Victims and the people who teach attackers are different test people; the authorised experts learned from neither.
Each release is read back from its files. A stopped run goes on with the same command: releases and cells are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from claims import ROOT, put, record
from studies.shared.attacks import described
from veilkit.attacks import ATTACKS, Attack, AttackTarget, Budget, Pairs, run_gated
from veilkit.attacks.family_transfer import FamilyTransfer, TransferConfig
from veilkit.attacks.learned.cloning import CloningConfig, ExpertCloning
from veilkit.attacks.pictures import HeldPictures, SomePictures
from veilkit.attacks.quick.choices import BLIND, PAIRED
from veilkit.attacks.search import plan_search
from veilkit.attacks.target import given
from veilkit.experts import load_expert
from veilkit.experts.names import DATA
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness

WORK = ROOT / "runs" / "attackers"
MODELS = ROOT / "models"
EXPERT = MODELS / "cuhk03_mobilenetv2.safetensors"
PAGE = ROOT / "docs" / "audit-attacks.md"
UPDATES = 192
VICTIMS, PUBLIC, SHOTS, SEED = 30, 40, 4, 0
COMMAND = "VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/attackers.py"


@dataclass(frozen=True)
class Case:
    """A method as it is attacked. expert: authorised for its release. steps: so many pictures at a time."""

    label: str
    method: str
    expert: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Path | None = None


def of_model(label: str, method: str) -> Case:
    model = MODELS / f"cuhk03_{method}.safetensors"
    return Case(label, method, model.with_suffix(".expert.safetensors"), model=model)


CASES = {
    "pixelfade": Case("PixelFade", "pixelfade", EXPERT, {"expert": str(EXPERT)}),
    "avih": Case("AVIH", "avih", EXPERT, {"expert": str(EXPERT)}),
    "privacyreid": of_model("PrivacyReID", "privacyreid"),
    "peprnet": of_model("PEPR-Net, pictures", "peprnet"),
}


def few_of_each(files: list[Path]) -> list[Path]:
    """At most SHOTS pictures of a person, the first by name of each camera in turn."""
    cameras: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(files):
        cameras[file.name.split("_")[1]].append(file)
    in_turn = chain.from_iterable(zip_longest(*(cameras[name] for name in sorted(cameras))))
    return list(islice((file for file in in_turn if file is not None), SHOTS))


def originals(data: Path) -> Path:
    """Pictures of the first test people by name: the victims, then those who teach."""
    target = WORK / "originals"
    people: dict[str, list[Path]] = defaultdict(list)
    for part in ("query", "bounding_box_test"):
        for file in (data / "cuhk03-np" / part).iterdir():
            people[file.name.partition("_")[0]].append(file)
    target.mkdir(parents=True, exist_ok=True)
    for who in sorted(people)[: VICTIMS + PUBLIC]:
        for file in few_of_each(people[who]):
            if not (target / file.name).is_file():
                shutil.copyfile(file, target / file.name)
    return target


@dataclass(frozen=True)
class Aim:
    """An attack as it is made. make: a fresh attacker against a case; None where it is not for that case."""

    label: str
    make: Callable[[Case], Attack | None]


def plain(name: str) -> Callable[[Case], Attack]:
    return lambda case: ATTACKS[name]()


def transfer(network: Path) -> Callable[[Case], Attack | None]:
    return lambda case: None if network == case.expert else FamilyTransfer(TransferConfig((network,)))


def cloned(*starts: Path) -> Callable[[Case], Attack | None]:
    """Not where the attacker would start from the authorised expert itself."""
    return lambda case: None if case.expert in starts else ExpertCloning(CloningConfig(starts=starts))


RELATIVE = MODELS / "cuhk03_privacyreid.expert.safetensors"  # MobileNetV2 as the expert, trained apart from it
CHILD = MODELS / "cuhk03_peprnet.expert.safetensors"  # fine-tuned from the expert
OTHER = MODELS / "cuhk03_efficientnet.safetensors"
AIMS = {
    "colour_layout": Aim("colour layout", plain("colour_layout")),
    "linear_recovery": Aim("ridge regression", plain("linear_recovery")),
    "transfer-child": Aim("family transfer: MobileNetV2, fine-tuned from PixelFade's expert", transfer(CHILD)),
    "transfer-relative": Aim("family transfer: MobileNetV2, from the same public weights", transfer(RELATIVE)),
    "transfer-other": Aim("family transfer: EfficientNet-lite0", transfer(OTHER)),
    "pooled_linkage": Aim("pictures of a track pooled", plain("pooled_linkage")),
    "clothes": Aim("colours of clothes", plain("clothes")),
    "discriminant": Aim("discriminants", plain("discriminant")),
    "cloning": Aim("cloning: MobileNetV2", cloned(RELATIVE)),
    "stolen_expert": Aim("stolen expert", plain("stolen_expert")),
    "linear_decoder": Aim("decoding by ridge, from public originals", plain("linear_decoder")),
    "cloning-ensemble": Aim("cloning: MobileNetV2 and EfficientNet-lite0", cloned(RELATIVE, OTHER)),
    "public_decoder": Aim("decoding by a network, from public originals", plain("public_decoder")),
}


def read(folder: Path, files: list[Path]) -> HeldPictures:
    """Pictures of a release, or the originals, in the order of the originals' files."""
    found = []
    for file in files:
        path = next(each for each in (folder / file.name, folder / f"{file.stem}.png") if each.is_file())
        pixels = decode(read_bytes(path, Limits()), Limits())
        found.append(torch.from_numpy(pixels).permute(2, 0, 1).float() / 255)
    return HeldPictures(found)


def target(case: Case, source: Path, release: Path) -> AttackTarget:
    """The victims' part of a release, with the pairs of the others to learn from."""
    files = sorted(source.iterdir())
    names, cameras = ([file.name.split("_")[place] for file in files] for place in (0, 1))
    codes = np.unique(names, return_inverse=True)[1]
    attacked, taught = np.flatnonzero(codes < VICTIMS), np.flatnonzero(codes >= VICTIMS)
    raw, shown = read(source, files), read(release, files)
    asked = range(len(attacked))
    search, _ = plan_search([names[at] for at in attacked], [cameras[at] for at in attacked], asked, asked)
    return AttackTarget(
        rng=Randomness.from_seed(SEED),
        originals=SomePictures(raw, attacked), protected=SomePictures(shown, attacked),
        people=codes[attacked], search=search, recogniser=load_expert("osnet-0.25"),
        authorised=load_expert(case.expert), budget=Budget(UPDATES, seed=SEED), work=WORK / "trainings",
        pairs=Pairs(SomePictures(raw, taught), SomePictures(shown, taught), codes[taught]),
    )  # fmt: skip


def cell(case: Case, name: str, source: Path, so_far: bool) -> dict[str, Any] | None:
    """What an attack found, computed once; with the seconds of processor time that it took, gates and all."""
    file = WORK / "cells" / f"{case.method}.{name}.json"
    if file.is_file():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    if so_far or AIMS[name].make(case) is None:
        return None
    attacked, begun = target(case, source, WORK / case.method), time.process_time()
    evidence = run_gated(lambda: given(AIMS[name].make(case)), attacked)
    found = {**described(evidence), "seconds": round(time.process_time() - begun, 1)}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found, indent=1))
    print(case.label, AIMS[name].label, found["scores"], found["invalid"], found["seconds"], flush=True)
    return found


def told(found: dict[str, Any]) -> str:
    """A cell of the table."""
    if not found["applicable"]:
        return f"not applicable: {found['reason']}"
    words = []
    for metric in (PAIRED, "rank-1"):
        if metric in found["scores"]:
            value, low, high = (100 * each for each in found["scores"][metric])
            words.append(f"{value:.1f} [{low:.1f}, {high:.1f}]")
    weak = " INVALID" if found["scores"][PAIRED][1] <= BLIND else ", too brief: at least so much"
    return " / ".join(words) + (weak if found["invalid"] else "") + f", {found['seconds'] / 60:.1f} min"


def publish(cells: dict[str, dict[str, dict[str, Any]]]) -> None:
    """The table attacker x method, and a row for each method. What was not computed is named."""
    methods = [name for name in CASES if name in cells]
    lines = ["| attacker | level | " + " | ".join(CASES[name].label for name in methods) + " |"]
    lines.append("|---" * (2 + len(methods)) + "|")
    for name, aim in AIMS.items():
        found = {method: cells[method][name] for method in methods if name in cells[method]}
        if found:
            level = next(iter(found.values()))["level"]
            row = [told(found[method]) if method in found else "" for method in methods]
            lines.append(f"| {aim.label} | {level} | {' | '.join(row)} |")
    put(PAGE, "attackers", "\n".join(lines))
    about = {
        "data": "CUHK03-NP, detected, test part", "seed": SEED, "command": COMMAND,
        "scale": f"{VICTIMS} people attacked, {PUBLIC} others teach, {SHOTS} pictures each; {UPDATES} updates",
    }  # fmt: skip
    for method in methods:
        left = [aim.label for name, aim in AIMS.items() if name not in cells[method] and aim.make(CASES[method])]
        invalid = [AIMS[name].label for name, each in cells[method].items() if each["applicable"] and each["invalid"]]
        spent = sum(each["seconds"] for each in cells[method].values()) / 60
        told_of = "; ".join(f"{AIMS[name].label} {told(each)}" for name, each in cells[method].items())
        record(id=f"attackers-{method}", claim=f"{CASES[method].label}: attackers whose gates failed",
               figure=len(invalid), bar="== 0", unit=f"of {len(cells[method])}",
               note=f"paired choice / Rank-1 in %, core minutes with gates: {told_of}; {spent:.1f} min in all"
                    + (f"; not measured: {', '.join(left)}" if left else ""),
               **about)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="METHOD or METHOD/ATTACK; publishes nothing")
    parser.add_argument("--so-far", action="store_true", help="compute nothing, and publish what there is")
    given_words = parser.parse_args()
    wanted, so_far = given_words.only, given_words.so_far
    torch.set_num_threads(1)
    source = originals(Path(os.environ[DATA]))
    cells: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for method, case in CASES.items():
        names = [name for name in AIMS if not wanted or method in wanted or f"{method}/{name}" in wanted]
        if not names:
            continue
        if not so_far:
            protect(source, WORK / method, case.method, settings=dict(case.settings), model=case.model, seed=SEED,
                    names="kept")  # fmt: skip
        for name in names:
            if (found := cell(case, name, source, so_far)) is not None:
                cells[method][name] = found
    if not wanted:
        publish(cells)


if __name__ == "__main__":
    main()
