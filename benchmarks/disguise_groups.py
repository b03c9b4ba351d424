"""Group photos: every face swapped or covered, and a report that names the right faces, with planted misses.

    python benchmarks/disguise_groups.py [--model MODEL]

Group photos of generated people, whose faces are known. The first finder knows all of them but some that are kept
from it; the second knows all. A face counts as dealt with if its middle was changed; a report is right if it tells
exactly the planted faces as missed, and all others as swapped or hidden. Without a model the networks have random
weights, which makes no difference to who is found. Where their weights are there, the real finders of the default
(CenterFace first, and the second look) are tried too, without a bar. --quick is a trial in small that records
nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from claims import record
from veilkit.attacks.learned.learning import digest
from veilkit.errors import VeilkitError
from veilkit.experts.base import Detections, Detector, ExpertInfo
from veilkit.experts.finders import load_finder, load_second
from veilkit.methods.disguise.identity_transforms import make_transform
from veilkit.methods.disguise.method import SMALL, SWAPPED, Disguise
from veilkit.methods.disguise.model import DisguiseModel
from veilkit.methods.disguise.swapper import Swapper
from veilkit.methods.faces.method import MISSED, FaceMethod
from veilkit.rng import Randomness
from veilkit.synthetic.faces import FaceTruth, render_group
from veilkit.training.fitting import seeded
from veilkit.types import ImageBatch

PICTURES, SIZE, SEED, MISSES = 40, 128, 11, 0.3
COMMAND = "python benchmarks/disguise_groups.py"
_CHANGED = 0.5 / 255  # more than rounding


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """picture: (3, H, W) in [0, 1]. planted: for each face, whether it is kept from the first finder."""

    picture: Tensor
    truths: tuple[FaceTruth, ...]
    planted: tuple[bool, ...]


class Truth(Detector):
    """A finder that knows the faces of some pictures, but for those kept from it; it knows no other picture."""

    def __init__(self, groups: Sequence[Group], *, misses: bool) -> None:
        self._known = {digest(group.picture): group for group in groups}
        self._misses = misses

    @property
    def info(self) -> ExpertInfo:
        name = "truth with misses" if self._misses else "truth"
        return ExpertInfo(
            name=name, kind="detector", dim=0, sha256=digest(np.frombuffer(name.encode(), np.uint8)),
            differentiable=False, licence="none", source="generated", origin="user",
        )  # fmt: skip

    def detect(self, images: Tensor) -> list[Detections]:
        found = []
        for image in images:
            group = self._known[digest(image)]
            seen = [t for t, miss in zip(group.truths, group.planted, strict=True) if not (miss and self._misses)]
            boxes = torch.tensor([t.box for t in seen], dtype=torch.float32).reshape(-1, 4)
            points = torch.from_numpy(np.stack([t.five for t in seen])) if seen else torch.zeros(0, 5, 2)
            found.append(Detections(boxes, torch.ones(len(seen)), points))
        return found


def groups(count: int, size: int = SIZE, seed: int = SEED, misses: float = MISSES) -> list[Group]:
    """Photos of two to nine generated people, with faces kept from the first finder at random, in some from none."""
    made = []
    for number in range(count):
        node = Randomness.from_seed(seed).child("groups", number)
        people = 2 + node.child("people").integer(0, 8)
        pixels, truths = render_group(seed, [100 * number + place for place in range(people)], number, size=size)
        planted = node.child("planted").numpy().random(people) < (misses if number % 4 else 0.0)
        picture = torch.from_numpy(pixels).permute(2, 0, 1).float().div(255)
        made.append(Group(picture, tuple(truths), tuple(planted.tolist())))
    return made


def measured(method: FaceMethod[Any], some: Sequence[Group]) -> dict[str, Any]:
    """What became of every face, and whether each report is right."""
    counts = {"faces": 0, "planted": 0, "swapped": 0, "dealt with": 0, "right reports": 0, "told missed": 0}
    for number, group in enumerate(some):
        batch = ImageBatch(group.picture[None], (f"group {number}",))
        release = method.protect(batch, rng=Randomness.from_seed(SEED))
        assert release.images is not None
        assert release.reports is not None
        told = release.reports[0].details["faces"]
        outcomes = [_outcome(truth, told) for truth in group.truths]
        changed = [_changed(group.picture, release.images[0], truth) for truth in group.truths]
        counts["faces"] += len(group.truths)
        counts["planted"] += sum(group.planted)
        counts["swapped"] += sum(outcome == SWAPPED for outcome in outcomes)
        counts["told missed"] += sum(face["outcome"] == MISSED for face in told)
        counts["dealt with"] += sum(changed)
        expected = [(outcome == MISSED) == miss for outcome, miss in zip(outcomes, group.planted, strict=True)]
        counts["right reports"] += all(expected) and len(told) == len(group.truths) and None not in outcomes
    return {**counts, "pictures": len(some)}


def _outcome(truth: FaceTruth, told: Sequence[Mapping[str, Any]]) -> str | None:
    """What the report says of the face in this box, if it tells one there."""
    box = [round(edge) for edge in truth.box]
    return next((str(face["outcome"]) for face in told if face["box"] == box), None)


def _changed(before: Tensor, after: Tensor, truth: FaceTruth) -> bool:
    """Whether most of the pixels around eyes, nose and mouth are others than before."""
    (left, top), (right, bottom) = truth.five.min(axis=0), truth.five.max(axis=0)
    rows = slice(max(0, int(top)), max(int(bottom), int(top) + 1))
    columns = slice(max(0, int(left)), max(int(right), int(left) + 1))
    apart = (after - before)[:, rows, columns].abs().amax(0)
    return bool((apart > _CHANGED).float().mean() > 0.5) if apart.numel() else False


def untrained() -> Disguise:
    """The small preset with random weights, and without the need of an identity expert's file."""
    from veilkit.experts.preprocessing import Preprocessing
    from veilkit.experts.torch_embedder import ModuleEmbedder
    from veilkit.methods.disguise.identity import IdentityEncoder

    rng, config = Randomness.from_seed(SEED), replace(SMALL, identity=(), views=("whole",))
    dim = config.transform.dim
    expert = ModuleEmbedder(
        seeded(lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, dim)), rng.child("who")),
        Preprocessing((16, 16), (0.5,) * 3, (0.25,) * 3), name="random",
    )  # fmt: skip
    swapper = seeded(lambda: Swapper(config.swapper), rng.child("swapper")).eval().requires_grad_(False)
    transform = seeded(lambda: make_transform(config.transform), rng.child("transform")).eval().requires_grad_(False)
    model = DisguiseModel(
        swapper, transform, None, IdentityEncoder((expert,), dim, views=config.views).fingerprint, (dim,), 1.0,
        torch.zeros(0, dim),
    )  # fmt: skip
    return Disguise(config, model, identity=(expert,))


def with_finders(method: Disguise, finder: Detector, second: Detector | None) -> Disguise:
    """The same networks with finders of one's own; experts of the model are loaded by name, if it has any."""
    return Disguise(method.config, method.model, identity=method.encoder.experts, finder=finder, second=second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a trained model; random weights without one")
    parser.add_argument("--quick", action="store_true", help="a trial in small; nothing is recorded")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    method = untrained() if arguments.model is None else Disguise.load(arguments.model)
    some = groups(4 if arguments.quick else PICTURES)
    found = measured(with_finders(method, Truth(some, misses=True), Truth(some, misses=False)), some)
    print(found)
    if not arguments.quick:
        weights = "random weights" if arguments.model is None else "a trained model"
        about = {
            "data": "generated group photos", "seed": SEED, "command": COMMAND,
            "scale": f"{found['pictures']} pictures, {found['faces']} faces, {found['planted']} kept from the first "
                     f"finder; {weights}",
        }  # fmt: skip
        record(
            id="disguise-groups-dealt", claim="Disguise, group photos: faces that are swapped or covered",
            figure=round(100 * found["dealt with"] / found["faces"], 2), bar="== 100", unit="%",
            note=f"{found['swapped']} swapped, the others hidden", **about,
        )  # fmt: skip
        record(
            id="disguise-groups-report", claim="Disguise, group photos: pictures whose report names exactly the "
            "faces that the first finder missed", figure=round(100 * found["right reports"] / found["pictures"], 2),
            bar="== 100", unit="%", note=f"{found['told missed']} told, {found['planted']} planted", **about,
        )  # fmt: skip
    try:
        real = with_finders(method, load_finder(SMALL.finder), load_second(SMALL.second, SMALL.finder))
        seen = measured(real, some)  # their boxes are not the true ones: only what became of the faces can be told
        print(f"with the finders of the default {seen['dealt with']} of {seen['faces']} faces were changed")
    except VeilkitError as error:
        print(f"real finders are left out: {error}")


if __name__ == "__main__":
    main()
