"""What FRO's release gives away: every attack on unpaired releases that needs no shadows, as JSON values."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks import (
    UNPAIRED_ATTACKS,
    LabelledPictures,
    UnpairedNeed,
    UnpairedRelease,
    UnpairedTarget,
    UnpairedTrial,
    run_unpaired,
)
from veilkit.attacks.pictures import Pictures
from veilkit.attacks.synthetic_release.nearest import RememberedPictures
from veilkit.audit.inputs.student import HOW, PrototypeStudent, RememberedModel
from veilkit.errors import DataError
from veilkit.experts import Embedder
from veilkit.networks.reid import ReidNetwork
from veilkit.rng import Randomness
from veilkit.training.pixels import read_pixels
from veilkit.types import Evidence, Split

WITHOUT_SHADOWS = tuple(name for name, attack in UNPAIRED_ATTACKS.items() if UnpairedNeed.SHADOWS not in attack.needs)


def attack_synthetic(
    members: Split,
    unseen: Split | None,
    held_out: Split,
    release: Split,
    targets: Tensor,
    student: ReidNetwork,
    recogniser: Embedder,
    *,
    size: tuple[int, int],
    seed: int,
) -> dict[str, Any]:
    """What each attack of `WITHOUT_SHADOWS` finds in a synthetic release, by the attack's name (see `described`).

    members: the pictures trained on. unseen: other pictures of these people. held_out: of other people. All three
    must differ in nothing else: see `UnpairedTarget`. release: synthetic pictures, whose identities are the members'
    names; targets: (N, C) the pool's logits on them. student: trained on them; see `prototypes` for its logits.
    size: (height, width) at which all pictures are looked at. seed: of bootstrap, subsampling and gates.
    """
    codes = person_codes(members, unseen, held_out)
    target = UnpairedTarget(
        rng=Randomness.from_seed(seed).child("attack synthetic"),
        release=held_release(release, targets, student, codes, size),
        members=held(members, codes, size),
        unseen=None if unseen is None or not len(unseen) else held(unseen, codes, size),
        held_out=held(held_out, codes, size),
        recogniser=recogniser,
    )
    trial = UnpairedTrial.of(target)
    return {name: described(run_unpaired(UNPAIRED_ATTACKS[name], target, trial=trial)) for name in WITHOUT_SHADOWS}


def described(evidence: Evidence) -> dict[str, Any]:
    """An attack's evidence as JSON values; the first score is its headline, `chance` what blind guessing scores."""
    about_student = UnpairedNeed.STUDENT in UNPAIRED_ATTACKS[evidence.attack].needs
    return {
        "level": str(evidence.level),
        "applicable": evidence.applicable,
        "reason": evidence.why_missing,
        "invalid": [str(reason) for reason in evidence.invalid],
        "scores": [
            {
                "metric": s.metric,
                "value": float(s.value),
                "low": _plain(s.low),
                "high": _plain(s.high),
                "note": s.note,
            }
            for s in evidence.scores
        ],
        "chance": {metric: float(value) for metric, value in evidence.details.get("chance", {}).items()},
        "note": HOW if about_student and evidence.applicable else "",
    }


class PixelPictures(Pictures):
    """Pictures in memory as 8-bit tensors (N, 3, H, W), a quarter of what floats would take."""

    def __init__(self, pixels: Tensor) -> None:
        self._pixels = pixels
        self._sizes = np.tile(np.array(pixels.shape[2:], dtype=np.int64), (len(pixels), 1))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""
        return self._sizes

    def load(self, index: int) -> Tensor:
        """One picture, (3, H, W) float32 in [0, 1]."""
        return self._pixels[index].to(torch.float32).div_(255)


def person_codes(*splits: Split | None) -> dict[str, int]:
    """A code for everybody in the splits, in the order of their names."""
    people = sorted({person for split in splits if split is not None for person in split.identities})
    return {person: code for code, person in enumerate(people)}


def held(split: Split, codes: dict[str, int], size: tuple[int, int]) -> LabelledPictures:
    """The split's pictures in memory, read once and embedded once, with their people's codes."""
    unknown = sum(record.identity not in codes for record in split.records)
    if unknown:
        raise DataError(
            f"expected a training person in each picture of the {split.name!r} split, but {unknown} of {len(split)} "
            "show somebody else or nobody known"
        )
    people = np.array([codes[str(record.identity)] for record in split.records], dtype=np.int64)
    return LabelledPictures(RememberedPictures(PixelPictures(read_pixels(split, size))), people)


def held_release(
    release: Split, targets: Tensor, student: ReidNetwork, codes: dict[str, int], size: tuple[int, int]
) -> UnpairedRelease:
    """A synthetic split with its soft labels, and the student that was trained on it."""
    synthetic = held(release, codes, size)
    features = RememberedModel(student.eval().embed)
    return UnpairedRelease(
        synthetic.pictures,
        synthetic.people,
        targets.numpy().astype(np.float32),
        PrototypeStudent(features, synthetic.pictures, synthetic.people),
        features,
    )


def _plain(value: float | None) -> float | None:
    return None if value is None else float(value)
