"""Key files: made once, readable by their owner alone, refused when damaged."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from veilkit import secret_file
from veilkit.errors import DestinationError, KeyFileError
from veilkit.key import Key, read_key, read_or_create_key
from veilkit.rng import Randomness
from veilkit.secret_file import SecretFileWarning


def test_a_new_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "private" / "key"
    key, new = read_or_create_key(file)
    assert new
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    again, new = read_or_create_key(file)
    assert not new
    assert again.commitment() == key.commitment()
    assert key.matches(read_key(file).commitment())


def test_two_keys_share_nothing(tmp_path: Path) -> None:
    one, two = (read_or_create_key(tmp_path / name)[0] for name in ("one", "two"))
    assert one.commitment() != two.commitment()
    assert not one.matches(two.commitment())
    assert one.pseudonym("a.jpg") != two.pseudonym("a.jpg")


def test_the_commitment_does_not_hold_the_key(tmp_path: Path) -> None:
    key, _ = read_or_create_key(tmp_path / "key")
    secret = (tmp_path / "key").read_text().split()[1]
    assert secret not in key.commitment()
    assert secret not in repr(key)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"veilkit-key-1", b"veilkit-key-1 " + b"a" * 63, b"veilkit-key-2 " + b"a" * 64, b"a" * 64,
     b"veilkit-key-1 " + b"g" * 64, b"veilkit-key-1 " + b"a" * 64 + b"\nmore"],
)  # fmt: skip
def test_a_damaged_key_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    for read in (read_key, read_or_create_key):
        with pytest.raises(KeyFileError, match="not a key file"):
            read(file)
    assert file.read_bytes() == content


def test_an_absent_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="there is no key file"):
        read_key(tmp_path / "absent")
    with pytest.raises(KeyFileError, match="cannot be read"):
        read_key(tmp_path)


def test_a_key_that_cannot_be_made_says_so() -> None:
    with pytest.raises(DestinationError, match="cannot be written"):
        read_or_create_key(Path("/proc/nowhere/key"))


def test_a_seed_is_public_and_reproducible() -> None:
    assert Key.from_seed(3).pseudonym("a") == Key.from_seed(3).pseudonym("a") != Key.from_seed(4).pseudonym("a")
    assert Key.from_seed(3).seed == 3


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602])
def test_a_key_that_others_can_read_is_refused_with_the_command_that_mends_it(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "my key"
    read_or_create_key(file)
    file.chmod(mode)
    with pytest.raises(KeyFileError, match=rf"mode {mode:o}.*chmod 600 '{file}'"):
        read_key(file)
    with pytest.raises(KeyFileError, match="chmod 600"):
        read_or_create_key(file)
    file.chmod(0o400)
    read_key(file)


def test_a_groups_key_of_another_owner_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    read_or_create_key(file)
    file.chmod(0o640)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    read_key(file)
    file.chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        read_key(file)


def test_where_a_file_system_keeps_no_rights_a_key_is_read_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    read_or_create_key(file)
    file.chmod(0o777)
    monkeypatch.setattr(os, "fchmod", lambda descriptor, mode: Path(f"/proc/self/fd/{descriptor}").chmod(0o777))
    with pytest.warns(SecretFileWarning, match="keeps no rights"):
        read_key(file)
    assert {path.name for path in tmp_path.iterdir()} == {"key"}


def test_an_endless_key_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_file, "_LARGEST", 1_000)
    with pytest.raises(KeyFileError, match="too large"):
        read_key(Path("/dev/zero"))


def test_a_key_does_not_show_itself() -> None:
    assert repr(Key.from_seed(3)) == "Key.from_seed(3)"
    assert repr(Key(Randomness(bytes(range(32))))) == "Key(secret)"
