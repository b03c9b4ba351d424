"""Names in the release: pseudonyms tell nothing, kept names never collide."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilkit.errors import DataError
from veilkit.pipeline.key import Key
from veilkit.pipeline.naming import kept_names, pseudonyms


def test_pseudonyms_depend_on_path_and_key_only() -> None:
    one, other = pseudonyms(Key.from_seed(1), ".png"), pseudonyms(Key.from_seed(2), ".png")
    assert one("a/b.jpg") == one("a/b.jpg")
    assert len({one("a/b.jpg"), one("a/c.jpg"), one("b.jpg"), one("a/b.png"), other("a/b.jpg")}) == 5
    assert one("a/b.jpg").removesuffix(".png").isalnum()
    assert len(one("\udcff.jpg")) == len(one("a" * 200)) == 30


def test_kept_names_change_the_suffix() -> None:
    name = kept_names(["a/x.y.jpg", "a/z.PNG", "b"], ".png")
    assert name("a/x.y.jpg") == "a/x.y.png"
    assert name("a/z.PNG") == "a/z.png"


def test_pictures_that_share_a_stem_keep_both_suffixes() -> None:
    name = kept_names(["a.jpg", "a.bmp", "b.jpg"], ".png")
    assert [name("a.jpg"), name("a.bmp"), name("b.jpg")] == ["a.jpg.png", "a.bmp.png", "b.png"]


_STEMS = st.sampled_from(["a", "b", "a.jpg", "a.png", "a.bmp", "a.jpg.png", "d/a", "d/a.jpg"])


@settings(deadline=None)
@given(st.sets(st.builds(str.__add__, _STEMS, st.sampled_from([".jpg", ".png", ".bmp", ".png.png"]))))
def test_no_two_kept_names_are_the_same_in_any_order(paths: set[str]) -> None:
    names = {path: kept_names(sorted(paths), ".png")(path) for path in paths}
    assert len(set(names.values())) == len(paths)
    assert names == {path: kept_names(sorted(paths, reverse=True), ".png")(path) for path in paths}


@pytest.mark.parametrize("folder", [".veilkit", "manifest.json", "SHA256SUMS"])
def test_folders_that_the_release_needs_for_itself_are_refused(folder: str) -> None:
    path = f"{folder}/a.jpg"
    with pytest.raises(DataError, match="rename it, or use pseudonyms"):
        kept_names([path], ".png")(path)
    assert kept_names([f"x/{path}"], ".png")(f"x/{path}") == f"x/{folder}/a.png"


def test_a_name_that_grows_too_long_is_refused_before_any_work() -> None:
    paths = [stem + suffix for stem, suffix in itertools.product(["x" * 250], [".jpg", ".bmp"])]
    with pytest.raises(DataError, match="too long"):
        kept_names(paths, ".png")(paths[0])
    assert len(kept_names(paths[:1], ".png")(paths[0])) == 254
