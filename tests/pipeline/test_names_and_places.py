"""Secrets never end up among the pictures; pseudonyms tell nothing, and kept names never collide."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from pictures import picture, write_folder
from tests.conftest import tree
from veilkit.errors import DataError, UsageError
from veilkit.key import Key
from veilkit.pipeline.names import kept_names, pseudonyms
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


def test_pseudonyms_depend_on_path_and_key_only() -> None:
    one, other = pseudonyms(Key.from_seed(1), lambda _: ".png"), pseudonyms(Key.from_seed(2), lambda _: ".png")
    assert one("a/b.jpg") == one("a/b.jpg")
    assert len({one("a/b.jpg"), one("a/c.jpg"), one("b.jpg"), one("a/b.png"), other("a/b.jpg")}) == 5
    assert one("a/b.jpg").removesuffix(".png").isalnum()
    assert len(one("\udcff.jpg")) == len(one("a" * 200)) == 30


def test_kept_names_change_the_suffix() -> None:
    name = kept_names(["a/x.y.jpg", "a/z.PNG", "b"], lambda _: ".png")
    assert name("a/x.y.jpg") == "a/x.y.png"
    assert name("a/z.PNG") == "a/z.png"


def test_pictures_that_share_a_stem_keep_both_suffixes() -> None:
    name = kept_names(["a.jpg", "a.bmp", "b.jpg"], lambda _: ".png")
    assert [name("a.jpg"), name("a.bmp"), name("b.jpg")] == ["a.jpg.png", "a.bmp.png", "b.png"]


def test_a_picture_beside_a_folder_of_its_new_name_keeps_both_suffixes() -> None:
    paths = ["a.jpg", "a.png/x.jpg", "d/b.bmp", "d/b.png/e.png/y.jpg", "d/e.jpg"]
    name = kept_names(paths, lambda _: ".png")
    wanted = ["a.jpg.png", "a.png/x.png", "d/b.bmp.png", "d/b.png/e.png/y.png", "d/e.png"]
    assert [name(path) for path in paths] == wanted


@pytest.mark.parametrize("other", ["a.png/x.jpg", "a.bmp"])
def test_a_picture_whose_names_are_both_taken_is_refused(other: str) -> None:
    paths = ["a.jpg", other, "a.jpg.png/y.jpg"]
    with pytest.raises(DataError, match=r"names are both taken.*or use pseudonyms"):
        kept_names(paths, lambda _: ".png")("a.jpg")


def test_a_release_with_such_a_folder_is_written(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a.png").mkdir(parents=True)
    for path in ("a.jpg", "a.png/a.bmp"):
        Image.fromarray(picture(0, 16, 8)).save(source / path)
    outcome = protect(source, tmp_path / "release", "blur", seed=0, names="kept")
    assert outcome.protected == 2
    assert {str(file.relative_to(tmp_path / "release")) for file in (tmp_path / "release").rglob("*.png")} == {
        "a.jpg.png", "a.png", "a.png/a.png"
    }  # fmt: skip


_STEMS = st.sampled_from(["a", "b", "a.jpg", "a.png", "a.bmp", "a.jpg.png", "d/a", "d/a.jpg", "a.png/a"])


@settings(deadline=None)
@given(st.sets(st.builds(str.__add__, _STEMS, st.sampled_from([".jpg", ".png", ".bmp", ".png.png"]))))
def test_no_two_kept_names_are_the_same_in_any_order(paths: set[str]) -> None:
    assume(not any(path.startswith(f"{other}/") for path in paths for other in paths))  # no disk holds such a tree
    names = {path: kept_names(sorted(paths), lambda _: ".png")(path) for path in paths}
    assert len(set(names.values())) == len(paths)
    assert not any(name.startswith(f"{other}/") for name in names.values() for other in names.values())
    assert names == {path: kept_names(sorted(paths, reverse=True), lambda _: ".png")(path) for path in paths}


@pytest.mark.parametrize("folder", [".veilkit", "manifest.json", "SHA256SUMS"])
def test_folders_that_the_release_needs_for_itself_are_refused(folder: str) -> None:
    path = f"{folder}/a.jpg"
    with pytest.raises(DataError, match="rename it, or use pseudonyms"):
        kept_names([path], lambda _: ".png")(path)
    assert kept_names([f"x/{path}"], lambda _: ".png")(f"x/{path}") == f"x/{folder}/a.png"


def test_a_name_that_grows_too_long_is_refused_before_any_work() -> None:
    paths = [stem + suffix for stem, suffix in itertools.product(["x" * 250], [".jpg", ".bmp"])]
    with pytest.raises(DataError, match="too long"):
        kept_names(paths, lambda _: ".png")(paths[0])
    assert len(kept_names(paths[:1], lambda _: ".png")(paths[0])) == 254
