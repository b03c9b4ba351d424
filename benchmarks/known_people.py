"""Who is surely somebody: distances of dlib's face network between examples and pictures of people (LFW).

VEILKIT_DATA=... python benchmarks/known_people.py [--people N]

Thresholds are looked at on people of folds 1 to 7 and of no pairs, errors are measured on those of folds 8 to 10.
"""

from __future__ import annotations

import argparse
import os
import random
from collections import defaultdict
from pathlib import Path

import torch

from claims import record
from veilkit.datasets.lfw import TEST_FOLDS, load_lfw, outside_folds
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.finders import load_finder
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.methods.faces.method import found_faces
from veilkit.methods.faces.people import OTHER, SAME, face_features
from veilkit.progress import Progress
from veilkit.types import Record

SEED, EXAMPLES, SHOTS = 0, 2, 6
COMMAND = "python benchmarks/known_people.py"


def features(root: Path, records: list[Record]) -> dict[str, torch.Tensor]:
    """Features of the largest face that dlib finds, by person."""
    finder, network = load_finder("dlib"), DlibIdentity.load()
    by_person: dict[str, list[torch.Tensor]] = defaultdict(list)
    with Progress(len(records), "looking") as progress:
        for each in records:
            pixels = decode(read_bytes(root / each.path, Limits()), Limits())
            picture = torch.from_numpy(pixels).permute(2, 0, 1).float().div(255)
            faces = found_faces(finder.detect(picture[None])[0], None)
            if faces and faces[0].points is not None:
                by_person[str(each.identity)].append(face_features(network, picture, faces[0])[0])
            progress.advance()
    return {person: torch.stack(some) for person, some in by_person.items()}


def distances(people: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """To the nearest of a person's first examples: of other pictures of that person, and of other people's."""
    own, others = [], []
    for person, some in people.items():
        if len(some) <= EXAMPLES:
            continue
        own.append(torch.cdist(some[EXAMPLES:], some[:EXAMPLES]).amin(1))
        strangers = torch.cat([each for other, each in people.items() if other != person])
        others.append(torch.cdist(strangers, some[:EXAMPLES]).amin(1))
    return torch.cat(own), torch.cat(others)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=250)
    most = parser.parse_args().people
    lfw = load_lfw(Path(os.environ["VEILKIT_DATA"]) / "lfw")
    training = {record.identity for record in outside_folds(lfw, TEST_FOLDS).records}
    for name, chosen in (("training", True), ("test", False)):
        shots: dict[str, list[Record]] = defaultdict(list)
        for each in lfw.images.records:
            if (each.identity in training) == chosen:
                shots[str(each.identity)].append(each)
        several = sorted(person for person, some in shots.items() if len(some) > EXAMPLES)
        people = random.Random(SEED).sample(several, min(most, len(several)))
        found = features(lfw.images.root, [each for person in people for each in shots[person][:SHOTS]])
        own, others = distances(found)
        print(f"{name}: {len(found)} people, {len(own)} own and {len(others)} other pictures against examples")
        for at in (0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.72, 0.75, 0.80, 0.85):
            print(
                f"  {at:.2f}: own nearer {(own < at).float().mean():.4f}, others {(others < at).float().mean():.6f}"
            )
    about = {
        "data": "LFW, people of folds 8 to 10", "seed": SEED, "command": COMMAND,
        "scale": f"{len(found)} people, {EXAMPLES} examples each; {len(own)} own pictures, {len(others)} of others",
    }  # fmt: skip
    record(
        id="spare-strangers", claim=f"Strangers nearer than {SAME} to a spared person's examples, left as they are",
        figure=round(100 * float((others < SAME).float().mean()), 4), bar="<= 0.02", unit="%", **about,
    )  # fmt: skip
    record(
        id="spare-own", claim=f"Pictures of a spared person that are protected all the same (beyond {SAME})",
        figure=round(100 * float((own >= SAME).float().mean()), 1), bar="<= 50", unit="%", **about,
    )  # fmt: skip
    record(
        id="only-missed", claim=f"Pictures of the only protected person farther than {OTHER}, left as they are",
        figure=round(100 * float((own > OTHER).float().mean()), 3), bar="<= 0.5", unit="%", **about,
    )  # fmt: skip
    record(
        id="only-strangers", claim=f"Strangers nearer than {OTHER}, protected all the same",
        figure=round(100 * float((others <= OTHER).float().mean()), 1), bar="<= 50", unit="%", **about,
    )  # fmt: skip


if __name__ == "__main__":
    main()
