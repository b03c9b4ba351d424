"""Disguise's speed: faces per second of the whole path, each stage's share, and the ratio to blurring the same faces.

    python benchmarks/disguise_speed.py [--model MODEL] [--quick]

Generated group photos go through `protect` of the small preset (random weights unless a model is given; they take as
long), with dlib's finder and identity network where the extra `faces` is there, else with known faces and a small
network, which is said. One torch thread; processor time, the median of rounds. --quick records nothing.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import torch

from claims import record
from disguise_groups import Group, Truth, groups, untrained, with_finders
from veilkit.errors import MissingExtraError
from veilkit.experts.base import Detector
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.finders import load_finder
from veilkit.methods.disguise.identity import IdentityEncoder
from veilkit.methods.disguise.method import SMALL, Disguise
from veilkit.methods.disguise.method import method as disguise
from veilkit.methods.disguise.model import DisguiseModel
from veilkit.methods.disguise.swapper import Swapper
from veilkit.methods.faces.controls import FaceBlur
from veilkit.methods.faces.method import FaceMethod
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

PICTURES, ROUNDS, SEED = 8, 3, 12
COMMAND = "python benchmarks/disguise_speed.py"
STAGES = ("find", "align", "identity", "swap", "colours", "paste")


class Clock:
    """Processor seconds by stage."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()

    def timed(self, stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            begun = time.process_time()
            try:
                return work(*given, **named)
            finally:
                self.spent[stage] += time.process_time() - begun

        return run


@contextmanager
def watched(method: Disguise, clock: Clock) -> Iterator[None]:
    """Every stage of `method` under the clock."""
    finder = method.finder
    places: Sequence[tuple[Any, str, str]] = (
        (finder, "detect", "find"), (method, "_crop", "align"), (method, "_identity_of", "identity"),
        (method.model.swapper, "forward", "swap"), (disguise, "colour_matched", "colours"),
        (disguise, "paste", "paste"),
    )  # fmt: skip
    patches = [
        mock.patch.object(whose, name, clock.timed(stage, getattr(whose, name))) for whose, name, stage in places
    ]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def run(method: FaceMethod[Any], some: Sequence[Group]) -> tuple[float, int]:
    """Processor seconds for all pictures, and how many faces were changed."""
    begun, faces = time.process_time(), 0
    for number, group in enumerate(some):
        batch = ImageBatch(group.picture[None], (f"group {number}",))
        release = method.protect(batch, rng=Randomness.from_seed(SEED))
        assert release.reports is not None
        faces += sum("hidden" not in face["outcome"] for face in release.reports[0].details["faces"])
    return time.process_time() - begun, faces


def parts(some: Sequence[Group], model: Path | None) -> tuple[Disguise, Detector, str]:
    """The method, its finder, and what they are."""
    try:
        finder, expert = load_finder("dlib"), DlibIdentity.load()
    except MissingExtraError:
        finder = Truth(some, misses=False)
        return with_finders(untrained(), finder, None), finder, "known faces and a small identity network"
    if model is not None:
        return with_finders(Disguise.load(model), finder, None), finder, "dlib, a trained model"
    plain = untrained().model
    encoder = IdentityEncoder((expert,), SMALL.transform.dim, views=SMALL.views)
    own = DisguiseModel(
        Swapper(SMALL.swapper).eval().requires_grad_(False), plain.transform, None, encoder.fingerprint,
        (expert.dim,), 1.0, plain.people,
    )  # fmt: skip
    return Disguise(SMALL, own, identity=(expert,), finder=finder), finder, "dlib, random weights"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a trained model; random weights without one")
    parser.add_argument("--quick", action="store_true", help="a trial in small; nothing is recorded")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    some = groups(2 if arguments.quick else PICTURES, misses=0.0)
    method, finder, what = parts(some, arguments.model)
    blur = FaceBlur(finder=finder)
    run(method, some[:1]), run(blur, some[:1])  # the first of each loads something
    times: list[float] = []
    blurred: list[float] = []
    clock, faces = Clock(), 0
    for _ in range(1 if arguments.quick else ROUNDS):
        with watched(method, clock):
            spent, faces = run(method, some)
        times.append(spent)
        blurred.append(run(blur, some)[0])
    whole, total = median(times), sum(times)
    shares = {stage: clock.spent[stage] / total for stage in STAGES}
    shares["rest"] = max(0.0, 1 - sum(shares.values()))
    told = ", ".join(f"{stage} {100 * share:.0f} %" for stage, share in shares.items())
    print(f"{faces / whole:.2f} faces/s; {told}; {whole / median(blurred):.2f} times as long as blurring")
    if arguments.quick or not faces:
        return
    about = {
        "data": "generated group photos", "seed": SEED, "command": COMMAND,
        "scale": f"{len(some)} pictures, {faces} faces, 1 thread, {what}, median of {ROUNDS}",
    }  # fmt: skip
    record(
        id="disguise-faces-per-second", claim="Disguise: faces per second of one core, the whole path",
        figure=round(faces / whole, 2), bar=">= 10", unit="/s", note=told, **about,
    )  # fmt: skip
    record(
        id="disguise-against-blur", claim="Disguise: time against blurring the same faces, found by the same finder",
        figure=round(whole / median(blurred), 2), bar="<= 10", unit="x", note=told, **about,
    )  # fmt: skip


if __name__ == "__main__":
    main()
