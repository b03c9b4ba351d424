"""How large the ovals are through which an audit sees faces, or under which it hides them, by training people.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/face_ovals.py

MobileFaceNet searches for people of LFW's training folds (1 to 7), one picture each among another of everybody. The
oval of a face is the smallest through which it finds at least 99 % of what it finds without one. The oval that hides
a face from its surroundings is the smallest around which it finds no more than twice what blind guessing finds, or
the largest that is tried.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from claims import record
from veilkit.audit.inputs import faces
from veilkit.datasets.lfw import TEST_FOLDS, load_lfw, outside_folds
from veilkit.experts.faces import load_viewed
from veilkit.experts.names import DATA
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.rng import Randomness

COMMAND = "VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/face_ovals.py"
JUDGE, PEOPLE, SEED = "mobilefacenet@arcface", 80, 0
SCALES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
FACE, HEAD = (0.32, 0.4), (0.4, 0.5)  # what they are scales of
KEPT, MOST = 0.99, 2.0
Pictures = list[tuple[NDArray[np.uint8], faces.Face]]


def pictures(data: Path) -> tuple[Pictures, Pictures]:
    """Two pictures each of some training people, with the largest face of each."""
    split = outside_folds(load_lfw(data / "lfw"), TEST_FOLDS, fewest=2, shots=2)
    by_person: dict[str, list[Path]] = defaultdict(list)
    for each in split.records:
        by_person[str(each.identity)].append(data / "lfw" / each.path)
    known, finder, limits = sorted(by_person), faces.face_finder(), Limits()
    found: tuple[Pictures, Pictures] = ([], [])
    for place in Randomness.from_seed(SEED).child("face ovals").permutation(len(known)):
        pair = []
        for file in by_person[known[place]]:
            pixels = decode(read_bytes(file, limits), limits)
            pair += [(pixels, each) for each in faces.faces_in(pixels, finder)[:1]]
        if len(pair) == 2:
            found[0].append(pair[0])
            found[1].append(pair[1])
        if len(found[0]) == PEOPLE:
            break
    return found


def finds(
    sides: tuple[Pictures, Pictures], seen: Callable[[NDArray[np.uint8], faces.Face], NDArray[np.uint8]]
) -> float:
    """Share of people whose second picture is the nearest to their first, of what `seen` shows."""
    judge = load_viewed(JUDGE)
    features = []
    with torch.no_grad():
        for side in sides:
            crops = [torch.from_numpy(seen(*each)).permute(2, 0, 1).float().div(255) for each in side]
            features.append(F.normalize(torch.cat([judge.embed(torch.stack(crops[k : k + 16]))
                                                   for k in range(0, len(crops), 16)])))  # fmt: skip
    best = (features[0] @ features[1].T).argmax(dim=1)
    return float((best == torch.arange(len(best))).float().mean())


def scaled(oval: tuple[float, float], scale: float) -> tuple[float, float]:
    return round(oval[0] * scale, 3), round(oval[1] * scale, 3)


def through(oval: tuple[float, float]) -> Callable[[NDArray[np.uint8], faces.Face], NDArray[np.uint8]]:
    return lambda pixels, face: faces.FacePart(face, oval).cut(pixels)


def around(oval: tuple[float, float]) -> Callable[[NDArray[np.uint8], faces.Face], NDArray[np.uint8]]:
    """What a face network sees of a picture without its face, at the place where that was."""
    everything = (9.0, 9.0)
    return lambda pixels, face: faces.FacePart(face, everything).cut(
        faces.SurroundingsPart((face,), oval).cut(pixels)
    )


def first(rates: Sequence[float], fits: Callable[[float], bool]) -> int:
    """Place of the first rate that fits, or of the last."""
    return next((place for place, rate in enumerate(rates) if fits(rate)), len(rates) - 1)


def main() -> None:
    if DATA not in os.environ:
        sys.exit("This needs LFW: set VEILKIT_DATA to the folder that holds lfw.")
    sides = pictures(Path(os.environ[DATA]))
    whole, chance = finds(sides, through((9.0, 9.0))), 1 / len(sides[0])
    print(f"{len(sides[0])} people; without an oval {whole:.3f}, blind guessing {chance:.3f}", flush=True)
    inside, outside = [], []
    for scale in SCALES:
        inside.append(finds(sides, through(scaled(FACE, scale))))
        outside.append(finds(sides, around(scaled(HEAD, scale))))
        print(f"{scale:g}: through the oval {inside[-1]:.3f}, around it {outside[-1]:.3f}", flush=True)
    face = first(inside, lambda rate: rate >= KEPT * whole)
    head = first(outside, lambda rate: rate <= MOST * chance)
    chosen = {"face": scaled(FACE, SCALES[face]), "head": scaled(HEAD, SCALES[head])}
    others = sum(
        used != asked for used, asked in zip((faces.FACE_OVAL, faces.HEAD_OVAL), chosen.values(), strict=True)
    )
    record(
        id="face-ovals", claim="Ovals of faces in audits that differ from those that training people ask for",
        figure=others, bar="== 0", unit="ovals", data="LFW, training folds 1 to 7",
        scale=f"{len(sides[0])} people, two pictures each; judge {JUDGE}", seed=SEED, command=COMMAND,
        note=f"the rule asks for {chosen['face']} for a face (through it {inside[face]:.1%} are found, {whole:.1%} "
        f"without), and for {chosen['head']} around one ({outside[head]:.1%} are found by the rest, blind guessing "
        f"{chance:.1%})",
    )  # fmt: skip


if __name__ == "__main__":
    main()
