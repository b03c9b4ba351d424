from __future__ import annotations

from pathlib import Path

import pytest

from veilkit.errors import KeyFileError, UsageError
from veilkit.key import Key, read_or_create_key
from veilkit.pipeline.manifest import Manifest
from veilkit.pipeline.pairing import choose_key, pair

KEY = Key.from_seed(3)


def manifest(**changes: object) -> Manifest:
    facts: dict[str, object] = {
        "veilkit": "0", "method": "blur", "config": {}, "seed": 3, "reproducible_by": "anyone",
        "names": "pseudonyms", "image_format": "png", "files": 2, "sums_sha256": "",
    }  # fmt: skip
    return Manifest.model_validate({**facts, **changes})


def test_pseudonyms_are_resolved_whatever_the_suffix() -> None:
    originals = ["a/1.jpg", "b/1.jpg"]
    protected = [KEY.pseudonym("b/1.jpg") + ".png", KEY.pseudonym("a/1.jpg") + ".webp"]
    found = pair(originals, protected, KEY)
    assert found.pairs == (("a/1.jpg", protected[1]), ("b/1.jpg", protected[0]))
    assert found.how == "key"


def test_paths_pair_up_to_the_suffix_and_a_whole_name_comes_first() -> None:
    """As protect keeps names: a.jpg.png where a.jpg and a.bmp would both become a.png."""
    found = pair(["x/a.jpg", "x/a.bmp", "x/b.jpg"], ["x/a.jpg.png", "x/a.bmp.png", "x/b.png"], None)
    assert dict(found.pairs) == {"x/a.jpg": "x/a.jpg.png", "x/a.bmp": "x/a.bmp.png", "x/b.jpg": "x/b.png"}
    assert found.how == "name"


def test_two_originals_of_one_name_are_not_guessed() -> None:
    found = pair(["x/a.jpg", "x/a.bmp", "x/b.jpg"], ["x/a.png", "x/b.png"], None)
    assert dict(found.pairs) == {"x/b.jpg": "x/b.png"}


def test_unique_file_names_pair_across_folders() -> None:
    found = pair(["p1/a.jpg", "p2/b.jpg", "p3/c.jpg", "p4/c.jpg"], ["out/a.png", "out/b.png", "out/c.png"], None)
    assert dict(found.pairs) == {"p1/a.jpg": "out/a.png", "p2/b.jpg": "out/b.png"}
    assert found.how == "stem"
    assert any("2 of 4 originals" in note for note in found.notes)
    assert any("1 of 3 protected" in note for note in found.notes)


@pytest.mark.parametrize(
    ("originals", "protected"),
    [
        (["a/1.jpg", "a/10.jpg", "b/1.jpg"], ["a/1_anonymized.jpg", "a/10_anonymized.jpg", "b/1_anonymized.jpg"]),
        (["a/one.png", "b/two.png"], ["out/one_anonymized.png", "out/two_anonymized.png"]),
        (["only.jpg"], ["only_anonymized.jpg"]),
        (["x-1.jpg", "x-2.jpg"], ["blurred-x-1.webp", "blurred-x-2.webp"]),
        (["1.jpg", "2.jpg"], ["1.new version.png", "2.new version.png"]),
    ],
)
def test_one_word_added_to_every_name_pairs(originals: list[str], protected: list[str]) -> None:
    """As `deface` leaves them, NAME_anonymized.jpg, and others alike; here in the same order on both sides."""
    found = pair(originals, protected, None)
    assert found.how == "affix"
    assert found.pairs == tuple(zip(originals, protected, strict=True))


def test_words_that_few_names_have_do_not_pair() -> None:
    assert pair(["anna.jpg", "bert.jpg"], ["anna_smith.png", "carl_jones.png"], None).how == "nothing"
    assert pair(["anna.jpg"], ["anna_smith.png"], None).how == "nothing"  # it may as well be somebody else
    some = pair(["a.jpg", "b.jpg", "c.jpg"], ["a_blur.png", "b_blur.png", "c-small.png"], None)
    assert dict(some.pairs) == {"a.jpg": "a_blur.png", "b.jpg": "b_blur.png"}
    assert any("1 of 3 protected pictures belongs to no original" in note for note in some.notes)


def test_hashes_are_asked_for_only_where_nothing_else_pairs() -> None:
    assert pair(["a.jpg"], ["a.png"], None, hashes=lambda: {"a.jpg": "wrong"}).how == "name"
    found = pair(["a.jpg"], ["0cc175b9.png"], None, hashes=lambda: {"a.jpg": "0cc175b9.png"})
    assert (found.how, found.pairs) == ("hash", (("a.jpg", "0cc175b9.png"),))


def test_nothing_in_common_is_no_pair() -> None:
    assert pair(["a.jpg"], ["b.png"], None).how == "nothing"


def test_the_key_of_another_release_is_told(tmp_path: Path) -> None:
    key, _ = read_or_create_key(tmp_path / "one")
    read_or_create_key(tmp_path / "two")
    facts = manifest(seed=None, key_commitment=key.commitment(), reproducible_by="the key's holder")
    right, notes = choose_key(tmp_path, facts, tmp_path / "one", None)
    assert right is not None
    assert notes == ()
    wrong, notes = choose_key(tmp_path, facts, tmp_path / "two", None)
    assert wrong is None
    assert "not the one that this release was made with" in notes[0]
    wrong, notes = choose_key(tmp_path, facts, None, 3)
    assert wrong is None
    assert "the seed is not the one" in notes[0]
    missing, notes = choose_key(tmp_path, facts, None, None)
    assert missing is None
    assert "--key" in notes[0]


def test_a_release_with_kept_names_needs_no_key_but_the_wrong_one_is_told(tmp_path: Path) -> None:
    key, _ = read_or_create_key(tmp_path / "one")
    read_or_create_key(tmp_path / "two")
    facts = manifest(seed=None, key_commitment=key.commitment(), reproducible_by="the key's holder", names="kept")
    for given in (None, tmp_path / "one"):
        assert choose_key(tmp_path, facts, given, None) == (None, ())
    unused, notes = choose_key(tmp_path, facts, tmp_path / "two", None)
    assert unused is None
    assert "not the one that this release was made with" in notes[0]
    assert "names were kept" in notes[0]


def test_a_public_seed_is_found_in_the_manifest(tmp_path: Path) -> None:
    found, notes = choose_key(tmp_path, manifest(), None, None)
    assert found is not None
    assert found.seed == 3
    assert notes == ()
    assert choose_key(tmp_path, manifest(), None, 4)[0] is None


def test_the_key_is_found_where_protect_puts_it(tmp_path: Path) -> None:
    key, _ = read_or_create_key(tmp_path / "release.private" / "key")
    facts = manifest(seed=None, key_commitment=key.commitment(), reproducible_by="the key's holder")
    found, _ = choose_key(tmp_path / "release", facts, None, None)
    assert found is not None
    assert found.commitment() == key.commitment()


def test_key_and_seed_together_or_a_missing_key_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not both"):
        choose_key(tmp_path, None, tmp_path / "key", 1)
    with pytest.raises(KeyFileError, match="no key file"):
        choose_key(tmp_path, None, tmp_path / "key", None)
