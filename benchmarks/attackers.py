"""What the strong attackers get of CUHK03-NP's test people: cloning, family transfer, the stolen expert, decoding.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/attackers.py [--only METHOD/ATTACK ...]

Victims and the people who teach attackers are different test people; the authorised experts learned from neither.
Each release is read back from its files. A stopped run goes on with the same command: releases and cells are kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import torch

from claims import ROOT
from veilkit.experts.names import DATA
from veilkit.pipeline.protect import protect

WORK = ROOT / "runs" / "attackers"
MODELS = ROOT / "models"
EXPERT = MODELS / "cuhk03_mobilenetv2.safetensors"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="METHOD or METHOD/ATTACK")
    wanted = parser.parse_args().only
    torch.set_num_threads(1)
    source = originals(Path(os.environ[DATA]))
    for name, case in CASES.items():
        if not wanted or name in wanted:
            protect(source, WORK / name, case.method, settings=dict(case.settings), model=case.model, seed=SEED,
                    names="kept")  # fmt: skip


if __name__ == "__main__":
    main()
