"""What releases of faces keep: faces that are found again, and landmarks that stay where they were."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from studies.comparison import measures as all_measures
from veilkit.attacks.pictures import HeldPictures
from veilkit.rng import Randomness


class Finder:
    """Says that the points are where the first pixel's brightness puts them, and that black pictures have none."""

    def predict(self, images: torch.Tensor) -> torch.Tensor:
        base = torch.tensor([[40.0, 10], [30, 10], [0, 10], [10, 10], [20, 30]])
        shift = 10 * images[:, 0, 0, 0]
        points = base[None] + torch.stack([shift, torch.zeros_like(shift)], -1)[:, None]
        points[images.flatten(1).sum(1) == 0] = torch.nan
        return points


def test_faces_are_counted_where_they_were_and_points_measured_where_both_were_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(all_measures, "load_predictor", lambda name: Finder())
    before, after = torch.full((4, 3, 8, 8), 0.5), torch.full((4, 3, 8, 8), 0.5)
    before[3] = 0  # a face that nobody finds in the original is not asked for
    after[2] = 0
    after[1] = 0.9  # moved by 4 pixels, where the eyes are 40 apart
    people = np.array([0, 0, 1, 1])
    found = all_measures.faces_kept(HeldPictures(before), HeldPictures(after), people, Randomness.from_seed(0))
    assert found["found"][0] == pytest.approx(2 / 3)
    assert found["moved"][0] == pytest.approx(0.05)
    gone = all_measures.faces_kept(HeldPictures(before), HeldPictures(0 * after), people, Randomness.from_seed(0))
    assert (gone["found"][0], gone["moved"]) == (0.0, None)
    assert gone["found"][2] > 0.5  # of two people: none of them found proves little
    none = all_measures.faces_kept(HeldPictures(0 * before), HeldPictures(after), people, Randomness.from_seed(0))
    assert (none["found"], none["moved"]) == (None, None)
