"""Small unpaired releases, in memory: people of their own colours, and students that know or do not know them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch

from tests.audit.folders import person
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.synthetic_release.base import LabelledPictures, Model, UnpairedRelease, UnpairedTarget
from veilkit.attacks.synthetic_release.gated import noise_release, open_release
from veilkit.attacks.synthetic_release.shadows import Recipe, Shadows
from veilkit.experts import load_expert
from veilkit.rng import Randomness

INSIDE, OUTSIDE, PUBLIC = range(14), range(14, 28), range(28, 42)
TRAINED, OTHERS = range(2), range(2, 4)


@cache
def drawn_person(identity: int, shot: int) -> torch.Tensor:
    return torch.from_numpy(person(identity, shot)).permute(2, 0, 1).float() / 255


def pictures(people: Sequence[int], shots: Sequence[int]) -> LabelledPictures:
    drawn = [drawn_person(identity, shot) for identity in people for shot in shots]
    return LabelledPictures(HeldPictures(drawn), np.repeat(np.array(people), len(shots)))


def members() -> LabelledPictures:
    return pictures(INSIDE, TRAINED)


def public() -> LabelledPictures:
    return pictures(PUBLIC, range(4))


def leaking() -> UnpairedRelease:
    return open_release(members())


def innocent(seed: int = 3) -> UnpairedRelease:
    return noise_release(members(), Randomness.from_seed(seed))


def shadows(recipe: Recipe | None = None) -> Shadows:
    population = public()
    copied: Recipe = lambda indices: open_release(population.only(indices))  # noqa: E731
    return Shadows(population.pictures, population.people, recipe or copied, rng=Randomness.from_seed(1))


def forgetful(indices: np.ndarray) -> UnpairedRelease:
    """A recipe that publishes noise."""
    return noise_release(public().only(indices), Randomness.from_seed(5).child(indices.tobytes()))


def target(release: UnpairedRelease | None = None, **changes: object) -> UnpairedTarget:
    """14 people inside, two pictures each trained on and two not, and 14 outside; the release copies by default."""
    values: dict[str, object] = {
        "rng": Randomness.from_seed(0),
        "release": leaking() if release is None else release,
        "members": members(),
        "unseen": pictures(INSIDE, OTHERS),
        "held_out": pictures(OUTSIDE, TRAINED),
        "recogniser": load_expert("histogram"),
        "shadows": shadows(forgetful if release is not None else None),
    }
    return UnpairedTarget(**{**values, **changes})  # type: ignore[arg-type]


def fitted(labelled: LabelledPictures) -> Model:
    """Least squares from pixels to classes: with more pixels than pictures it fits each of them exactly."""
    pixels = torch.stack([labelled.pictures.load(i).flatten() for i in range(len(labelled))]) - 0.5
    _, place = np.unique(labelled.people, return_inverse=True)
    wanted = 10 * torch.nn.functional.one_hot(torch.from_numpy(place)).float()
    weights = torch.linalg.lstsq(pixels, wanted, driver="gelsd").solution
    return lambda images: (images.flatten(1) - 0.5) @ weights
