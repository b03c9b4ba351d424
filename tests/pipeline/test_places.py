"""Secrets never end up among the pictures, by whatever way they could get there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pictures import write_folder
from tests.conftest import tree
from veilkit.errors import UsageError
from veilkit.pipeline.places import find_places, lies_in
from veilkit.pipeline.protect import protect


def _private_is_source(root: Path) -> dict[str, Path]:
    (root / "release.private").symlink_to(root / "source")
    return {}


def _private_is_below_source(root: Path) -> dict[str, Path]:
    (root / "release.private").symlink_to(root / "source" / "not there yet")
    return {}


def _private_is_the_release(root: Path) -> dict[str, Path]:
    (root / "release").mkdir()
    (root / "release.private").symlink_to(root / "release")
    return {}


def _private_holds_the_source(root: Path) -> dict[str, Path]:
    (root / "release.private").symlink_to(root)
    return {}


def _key_links_into_source(root: Path) -> dict[str, Path]:
    (root / "release.private").mkdir()
    (root / "release.private" / "key").symlink_to(root / "source" / "key")
    return {}


def _given_key_links_into_source(root: Path) -> dict[str, Path]:
    (root / "my key").symlink_to(root / "source" / "key")
    return {"key": root / "my key"}


def _given_key_is_a_link_in_source(root: Path) -> dict[str, Path]:
    (root / "source" / "key").symlink_to(root / "key")
    return {"key": root / "source" / "key"}


def _folder_of_key_links_into_source(root: Path) -> dict[str, Path]:
    (root / "keys").symlink_to(root / "source" / "person000")
    return {"key": root / "keys" / "key"}


def _key_in_source(root: Path) -> dict[str, Path]:
    return {"key": root / "x" / ".." / "source" / "person000" / "key"}


@pytest.mark.parametrize(
    "arrange",
    [
        _private_is_source, _private_is_below_source, _private_is_the_release, _private_holds_the_source,
        _key_links_into_source, _given_key_links_into_source, _given_key_is_a_link_in_source,
        _folder_of_key_links_into_source, _key_in_source,
    ],
)  # fmt: skip
def test_no_way_leads_a_key_among_the_pictures(tmp_path: Path, arrange: Callable[[Path], dict[str, Path]]) -> None:
    write_folder(tmp_path / "source", 2, people=1, height=16, width=16)
    options = arrange(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(UsageError, match="kept apart"):
        protect(tmp_path / "source", tmp_path / "release", "pixelate", **options)  # type: ignore[arg-type]
    assert tree(tmp_path) == before


def test_the_same_folder_under_another_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bind mount shows it, or a disk that takes upper and lower case for the same."""
    (tmp_path / "source").mkdir()
    (tmp_path / "Source").mkdir()
    assert not lies_in(tmp_path / "Source" / "x", tmp_path / "source")
    monkeypatch.setattr("veilkit.pipeline.places._identity", lambda path: str(path).lower())
    assert lies_in(tmp_path / "Source" / "x", tmp_path / "source")
    assert not lies_in(tmp_path, tmp_path / "source")


def test_a_key_beside_both_folders_is_fine(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    places = find_places(tmp_path / "source", tmp_path / "release", tmp_path / "key", None, sealing=True)
    assert (places.private, places.key_file) == (tmp_path, tmp_path / "key")


def test_links_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "release").symlink_to(tmp_path / "release")
    with pytest.raises(UsageError, match="a link to itself"):
        find_places(tmp_path / "source", tmp_path / "release", None, None, sealing=False)
