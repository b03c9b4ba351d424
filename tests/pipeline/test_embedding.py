from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from veilkit.errors import RefusedImage
from veilkit.experts import load_expert
from veilkit.media.reading import Limits, decode
from veilkit.pipeline import embedding
from veilkit.pipeline.embedding import embed_pictures


def test_features_do_not_depend_on_what_a_picture_is_read_with(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expert = load_expert("histogram")
    paths = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.*"))
    monkeypatch.setattr(embedding, "_BATCH", 5)
    parts = list(embed_pictures(folder, paths, expert, limits=Limits()))
    assert [len(part.paths) for part in parts] == [5, 5, 2]
    assert [path for part in parts for path in part.paths] == paths
    features = torch.cat([part.features for part in parts])
    for row, path in enumerate(paths):
        data = (folder / path).read_bytes()
        image = torch.from_numpy(decode(data, Limits())).permute(2, 0, 1)[None].float() / 255
        assert torch.allclose(features[row], expert.embed(image)[0], atol=1e-6)
        assert parts[row // 5].contents[row % 5] == hashlib.sha256(data).digest()


def test_what_cannot_be_read_is_refused_and_what_is_known_passed_over(folder: Path) -> None:
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    paths = ["broken.jpg", "person0/shot0.jpg", "person1/shot0.jpg", "person2/shot0.jpg", "gone.jpg"]

    def known(path: str, content: bytes) -> bool:
        if path.startswith("person2"):
            raise RefusedImage("it has changed")
        return path.startswith("person1")

    (found,) = embed_pictures(folder, paths, load_expert("histogram"), limits=Limits(), known=known)
    assert (found.paths, found.kept) == (("person0/shot0.jpg",), 1)
    assert [path for path, _ in found.refused] == ["broken.jpg", "person2/shot0.jpg", "gone.jpg"]


def test_a_picture_without_a_feature_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expert = load_expert("histogram")
    whole = expert.embed

    def strange(images: torch.Tensor) -> torch.Tensor:
        features = whole(images).clone()
        features[0, 0] = torch.nan
        features[1] = 0.0
        return features

    monkeypatch.setattr(type(expert), "embed", lambda self, images: strange(images))
    paths = ["person0/shot0.jpg", "person2/shot0.jpg", "person4/shot0.jpg"]
    (found,) = embed_pictures(folder, paths, expert, limits=Limits())
    assert found.paths == ("person4/shot0.jpg",)
    assert all("no feature" in reason for _, reason in found.refused)


def test_large_pictures_are_made_smaller_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_LARGEST", 300)
    (found,) = embed_pictures(folder, ["person0/shot0.jpg"], load_expert("histogram"), limits=Limits())
    assert found.features.shape == (1, load_expert("histogram").dim)
