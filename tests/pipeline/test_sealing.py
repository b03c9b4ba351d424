"""Sealed originals: nothing altered, cut off or made by somebody else passes as one, and kills lose none."""

from __future__ import annotations

import hashlib
import json
import os
import random
import string
from dataclasses import replace
from pathlib import Path

import pyrage
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sealing
from pictures import write_folder
from veilkit.errors import SealError
from veilkit.pipeline.sealing.age import Identity, encrypt
from veilkit.pipeline.sealing.files import MAGIC, Binding, check_path, seal, unseal
from veilkit.rng import Randomness

IDENTITY = Identity.generate()
KEY = Randomness.from_seed(1)
ORIGINAL = bytes(range(256)) * 20
BINDING = Binding.of(ORIGINAL, "photos/a b.jpg", "abc.png", "0" * 64, KEY)
SEALED = seal(ORIGINAL, BINDING, [IDENTITY.recipient])


@settings(deadline=None, max_examples=25)
@given(st.binary(max_size=2_000), st.binary(min_size=1, max_size=60).map(os.fsdecode))
def test_any_bytes_under_any_path_come_back(original: bytes, path: str) -> None:
    binding = Binding.of(original, path, path, "f" * 64, KEY)
    found = unseal(seal(original, binding, [IDENTITY.recipient]), [IDENTITY])
    assert (found.original, found.binding, found.recipient) == (original, binding, IDENTITY.recipient)
    binding.check_origin(KEY)


def test_without_veilkit_the_original_follows_the_second_line() -> None:
    plain = pyrage.decrypt(SEALED, [pyrage.x25519.Identity.from_str(IDENTITY.secret)])
    magic, line, original = plain.split(b"\n", 2)
    assert magic == MAGIC.strip()
    assert original == ORIGINAL
    facts = json.loads(line)
    assert facts["original_sha256"] == hashlib.sha256(ORIGINAL).hexdigest()
    assert (facts["original"], facts["protected"]) == ("photos/a b.jpg", "abc.png")


def test_any_one_of_several_recipients_opens_and_nobody_else() -> None:
    people = [Identity.generate() for _ in range(3)]
    sealed = seal(ORIGINAL, BINDING, [each.recipient for each in people])
    for each in people:
        assert unseal(sealed, [each]).original == ORIGINAL
        assert unseal(sealed, [IDENTITY, each]).recipient == each.recipient
    with pytest.raises(SealError, match="not sealed to this key"):
        unseal(sealed, [IDENTITY])


def test_sealing_twice_gives_other_bytes() -> None:
    assert seal(ORIGINAL, BINDING, [IDENTITY.recipient]) != SEALED


def test_every_flip_of_the_header_and_some_of_the_body_are_refused() -> None:
    rng = random.Random(0)
    body = SEALED.index(b"\n---") + 1
    body = SEALED.index(b"\n", body) + 1
    for place in [*range(body), *rng.sample(range(body, len(SEALED)), 40), len(SEALED) - 1]:
        altered = bytearray(SEALED)
        altered[place] ^= rng.randrange(1, 256)
        with pytest.raises(SealError):
            unseal(bytes(altered), [IDENTITY])


def test_files_that_are_cut_off_or_longer_are_refused() -> None:
    for length in (0, 1, 50, len(SEALED) // 2, len(SEALED) - 17, len(SEALED) - 1):
        with pytest.raises(SealError):
            unseal(SEALED[:length], [IDENTITY])
    with pytest.raises(SealError):
        unseal(SEALED + b"\0", [IDENTITY])


def line(**changes: object) -> bytes:
    facts = {name: getattr(BINDING, name) for name in BINDING.__slots__} | changes
    return json.dumps({name: value for name, value in facts.items() if value is not ...}).encode() + b"\n"


@pytest.mark.parametrize(
    "plain",
    [b"", ORIGINAL, MAGIC, MAGIC + b"\n", MAGIC + b"{}\n", MAGIC + b"[]\n" + ORIGINAL, MAGIC + b"\xff\n",
     MAGIC + b"[" * 100_000 + b"\n", MAGIC + b" " * 200_000 + line() + ORIGINAL, MAGIC + line()[:-1] + ORIGINAL,
     MAGIC + line(extra=1) + ORIGINAL, MAGIC + line(origin=...) + ORIGINAL, MAGIC + line(original=7) + ORIGINAL,
     MAGIC + line(original_bytes=True) + ORIGINAL, MAGIC + line(original_bytes="5120") + ORIGINAL,
     MAGIC + line(original_bytes=5119) + ORIGINAL, MAGIC + line(original_sha256="0" * 64) + ORIGINAL,
     MAGIC + line() + ORIGINAL[:-1], MAGIC + line() + ORIGINAL + b"x", MAGIC.replace(b"1", b"2") + line() + ORIGINAL],
)  # fmt: skip
def test_what_others_sealed_to_the_same_key_is_refused(plain: bytes) -> None:
    with pytest.raises(SealError, match="opens, but"):
        unseal(encrypt(plain, [IDENTITY.recipient]), [IDENTITY])


def test_a_binding_fits_one_picture_and_one_key() -> None:
    BINDING.check("abc.png", "0" * 64)
    with pytest.raises(SealError, match="another picture"):
        BINDING.check("abd.png", "0" * 64)
    with pytest.raises(SealError, match="was sealed for a protected picture"):
        BINDING.check("abc.png", "1" * 64)
    BINDING.check_origin(KEY)
    changed = {"original": "b", "original_sha256": "1" * 64, "original_bytes": 3, "origin": "é\ud800"}
    for forged in [replace(BINDING, **{name: value}) for name, value in changed.items()]:
        with pytest.raises(SealError, match="release's key"):
            forged.check_origin(KEY)
    with pytest.raises(SealError, match="release's key"):
        BINDING.check_origin(Randomness.from_seed(2))


@pytest.mark.parametrize(
    "path",
    ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", ".", "./a", "a/./b", "a//b", "a/", "nul\0", "\ud800",
     "a" * 256, "a/" * 2_100 + "a"],
)  # fmt: skip
def test_paths_that_lead_astray_are_refused(path: str) -> None:
    with pytest.raises(SealError, match="path that it names"):
        check_path(path)


@given(
    st.lists(st.text(string.ascii_letters + " é.-~\n", min_size=1).filter(lambda name: name.strip(".")), min_size=1)
)
def test_plain_paths_are_taken(parts: list[str]) -> None:
    check_path("/".join(part[:50] for part in parts[:9]))
    check_path("..a/...")
    check_path("\udcff\n.jpg")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_folder(tmp_path / "source", 40, height=64, width=32)
    return tmp_path / "source"


def test_a_run_killed_while_sealing_ends_with_all_originals_sealed(tmp_path: Path) -> None:
    count = 240  # enough that a kill comes before the last one on a quick machine too
    write_folder(tmp_path / "many", count, height=128, width=64)
    report = sealing.kill(tmp_path / "many", tmp_path, kills=2, workers=(1,))
    assert (report.half, report.wrong, report.left) == ((), (), ())
    assert report.cut == 1
    assert any(0 < visible < count for _, visible in report.kills), report.kills


def test_no_altered_file_and_no_other_key_writes_a_byte(source: Path, tmp_path: Path) -> None:
    report = sealing.attack(source, tmp_path, flips=10, keys=5)
    assert report.opened == ()
    assert report.header > 150


@pytest.mark.parametrize("method", ["mask", "mixup"])
def test_originals_come_back(source: Path, tmp_path: Path, method: str) -> None:
    assert sealing.restored(source, tmp_path, method) == []


def test_folders_that_differ_are_told(tmp_path: Path) -> None:
    for name, content in (("one", b"1"), ("two", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same").write_bytes(b"same")
        (tmp_path / name / "other").write_bytes(content)
        (tmp_path / name / name).write_bytes(b"")
    assert sealing.differing(tmp_path / "one", tmp_path / "two") == ["one", "other", "two"]
