from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import audit_inputs
from process import Finished
from veilkit.attacks.pictures import HeldPictures
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.student import PrototypeStudent, RememberedModel
from veilkit.cli import app
from veilkit.errors import DataError, DestinationError


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audit_inputs.people(tmp_path_factory.mktemp("people"))


def audit(*words: object) -> Finished:
    done = CliRunner().invoke(app, [*map(str, words), "--expert", "histogram", "--judge", "histogram"])
    return Finished(done.exit_code, done.output, 0.0, 0.0)


@pytest.mark.parametrize("case", audit_inputs.CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_gaps_are_told_and_only_hopeless_ones_are_errors(
    case: audit_inputs.Case, source: Path, tmp_path: Path
) -> None:
    _, short = audit_inputs.check(case, source, tmp_path / "work", audit)
    assert short == []


def test_a_silent_gap_would_be_noticed(source: Path, tmp_path: Path) -> None:
    whole = audit_inputs.CASES[0]
    done, _ = audit_inputs.check(whole, source, tmp_path / "work", audit)
    wrong = audit_inputs.Case("wrong", whole.make, 2, ("no such text",))
    assert len(audit_inputs.shortcomings(wrong, done, tmp_path / "work" / "audit")) == 5
    wrong = audit_inputs.Case("wrong", whole.make, 0, (), (("judge", "raw-raw", "rank-7"),), ("chaos (AD)",))
    assert len(audit_inputs.shortcomings(wrong, done, tmp_path / "work" / "audit")) == 2


def test_vectors_come_back_by_kind_and_subject(tmp_path: Path) -> None:
    rows = [(f"s{index}", np.full(3, index, dtype=np.float32)) for index in range(1200)]
    with Cache(tmp_path / "deep" / "cache.sqlite") as cache:
        cache.put("a", rows)
        cache.put("b", [("s0", np.array([9.0], dtype=np.float32))])
    with Cache(tmp_path / "deep" / "cache.sqlite") as cache:
        found = cache.get("a", [subject for subject, _ in rows] + ["unknown"])
        assert len(found) == 1200
        assert all(np.array_equal(found[subject], vector) for subject, vector in rows)
        assert cache.get("b", ["s0"])["s0"][0] == 9.0
        assert cache.get("c", ["s0"]) == {}


def test_a_file_that_is_no_cache_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(DestinationError, match="cannot be used"), Cache(tmp_path / "cache.sqlite"):
        pass


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
