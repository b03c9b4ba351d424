"""Logits of a student by its class prototypes, against the same in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilkit.attacks.pictures import HeldPictures
from veilkit.audit.inputs.student import PrototypeStudent, RememberedModel
from veilkit.errors import DataError

WEIGHTS = torch.randn(3 * 4 * 2, 5, generator=torch.Generator().manual_seed(0))
CODES = np.array([7, 2, 7, 2, 9])


def features(images: torch.Tensor) -> torch.Tensor:
    return images.flatten(1) @ WEIGHTS


def drawn(count: int, seed: int) -> torch.Tensor:
    return torch.rand(count, 3, 4, 2, generator=torch.Generator().manual_seed(seed))


def test_logits_are_scaled_cosines_to_the_mean_unit_feature_of_each_class() -> None:
    synthetic, asked = drawn(5, 1), drawn(6, 2)
    units = [
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in (features(x).numpy() for x in (synthetic, asked))
    ]
    means = np.stack([units[0][code == CODES].mean(axis=0) for code in (2, 7, 9)])
    expected = 20 * units[1] @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    student = PrototypeStudent(features, HeldPictures(synthetic), CODES)
    np.testing.assert_allclose(student(asked).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_class_alone_is_refused() -> None:
    with pytest.raises(DataError, match="two classes"):
        PrototypeStudent(features, HeldPictures(drawn(2, 0)), np.array([1, 1]))


def test_a_picture_is_looked_at_once() -> None:
    seen = []

    def counting(images: torch.Tensor) -> torch.Tensor:
        seen.append(len(images))
        return features(images)

    images = drawn(6, 3)
    model = RememberedModel(counting)
    first = model(images[:4])
    second = model(images[2:])
    assert seen == [4, 2]
    torch.testing.assert_close(torch.cat([first, second[2:]]), features(images))
    torch.testing.assert_close(second[:2], first[2:])
