"""Age keys in files: made once, for their owner alone, and secret and public halves never mixed up."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pyrage
import pytest

from veilkit.errors import DestinationError, KeyFileError, UsageError
from veilkit.pipeline.sealing.age import Identity, read_identities, read_recipients, write_identity


def test_an_identity_file_is_like_one_of_age_keygen_and_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "keys" / "key.txt"
    recipient = write_identity(file)
    created, public, secret = file.read_text().splitlines()
    assert re.fullmatch(r"# created: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", created)
    assert public == f"# public key: {recipient}"
    assert str(pyrage.x25519.Identity.from_str(secret).to_public()) == recipient
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["key.txt"]
    assert [identity.recipient for identity in read_identities(file)] == [recipient]


def test_no_identity_is_ever_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "key.txt"
    write_identity(file)
    before = file.read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for taken in (file, tmp_path / "link"):
        with pytest.raises(DestinationError, match="never overwritten"):
            write_identity(taken)
    assert file.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


def test_several_keys_and_comments_are_read(tmp_path: Path) -> None:
    made = [Identity.generate() for _ in range(3)]
    (tmp_path / "keys").touch(mode=0o600)
    (tmp_path / "keys").write_text("# mine\n\n" + "\n".join(identity.secret for identity in made) + "\n")
    assert read_identities(tmp_path / "keys") == tuple(made)


def test_an_identity_that_others_can_read_is_refused(tmp_path: Path) -> None:
    write_identity(tmp_path / "key.txt")
    (tmp_path / "key.txt").chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        read_identities(tmp_path / "key.txt")
    (tmp_path / "list").write_text(f"{Identity.generate().recipient}\n")  # public, for everybody to read
    assert len(read_recipients([tmp_path / "list"])) == 1


def test_a_secret_is_in_no_repr_and_no_error(tmp_path: Path) -> None:
    identity = Identity.generate()
    assert identity.secret not in repr(identity)
    (tmp_path / "cut").write_text(identity.secret[:-1])
    with pytest.raises(KeyFileError, match="cut off") as error:
        read_identities(tmp_path / "cut")
    assert identity.secret[20:-1] not in str(error.value)
    (tmp_path / "whole").write_text(identity.secret)
    for given in (identity.secret, str(tmp_path / "whole"), tmp_path / "whole"):
        with pytest.raises(UsageError, match="secret key") as refusal:
            read_recipients([given])
        assert identity.secret not in str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\xfe", b"veilkit-key-1 " + b"a" * 64, b"age1abc\n"])
def test_what_is_no_identity_file_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(KeyFileError, match=r"not an identity file|not text"):
        read_identities(tmp_path / "key")
    with pytest.raises(KeyFileError, match="there is no file"):
        read_identities(tmp_path / "absent")


def test_recipients_come_from_words_and_files_each_once(tmp_path: Path) -> None:
    one, two, three = (Identity.generate().recipient for _ in range(3))
    (tmp_path / "list").write_text(f"# the archive\n{two}\n\n  {three}\n{two}\n")
    assert read_recipients([one, str(tmp_path / "list"), one]) == tuple(sorted((one, two, three)))
    assert read_recipients([]) == ()


def test_recipients_that_are_none_are_told(tmp_path: Path) -> None:
    whole = Identity.generate().recipient
    (tmp_path / "empty").write_text("# nobody\n")
    (tmp_path / "ssh").write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n")
    for given, message in ((whole[:-1], "copy it again"), (str(tmp_path / "empty"), "there are none"),
                           (str(tmp_path / "ssh"), "expected a recipient age1")):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            read_recipients([given])
    with pytest.raises(KeyFileError, match="there is no file"):
        read_recipients([str(tmp_path / "absent")])
