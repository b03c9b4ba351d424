"""Restoring originals: byte for byte, or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import shutil
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from PIL import Image

from pictures import picture, write_folder
from tests.conftest import tree
from veilkit.errors import DataError, DestinationError, KeyFileError, SealError, UsageError
from veilkit.key import read_key
from veilkit.media.writing import write_atomically
from veilkit.pipeline.manifest import SUMS, read_sums
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover
from veilkit.pipeline.recovery import sealed as recovering
from veilkit.pipeline.sealing.age import read_identities, write_identity
from veilkit.pipeline.sealing.files import Binding, seal, unseal
from veilkit.rng import Randomness

ODD = "sub folder/déjà vu \U0001f9d1.jpg"


class Scene:
    """Originals, their release, sealed files and keys, below one folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.source, self.release = root, root / "source", root / "release"
        self.sealed, self.back, self.identity = root / "release.sealed", root / "back", root / "key.txt"
        write_folder(self.source, 4, people=2, height=32, width=16)
        Image.fromarray(picture(9, 20, 30)).save(self.source / "top.png")
        (self.source / "sub folder").mkdir()
        exif = Image.Exif()
        exif[0x010E] = "somebody at home"
        exif[0x0112] = 6
        Image.fromarray(picture(10, 20, 30)).save(self.source / ODD, exif=exif.tobytes())
        (self.source / ODD).write_bytes((self.source / ODD).read_bytes() + b"trailing bytes")
        self.recipient = write_identity(self.identity)
        protect(self.source, self.release, "pixelate", seal_to=[self.recipient])
        key = read_key(root / "release.private" / "key")
        self.names = [f"{key.pseudonym(path)}.png" for path in sorted(tree(self.source))]  # "top.png" comes last

    @property
    def log(self) -> list[dict[str, str | None]]:
        file = self.root / "back.access.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def of(self, name: str) -> Path:
        return self.sealed / f"{name}.age"

    def forge(self, name: str, **changes: object) -> None:
        """A sealed file that anybody could make who has the public key and has seen the release."""
        data = (self.source / "top.png").read_bytes()
        digest = dict(read_sums(self.release / SUMS))[name]
        binding = replace(Binding.of(data, "x.png", name, digest, Randomness.from_seed(0)), **changes)  # type: ignore[arg-type]
        self.of(name).write_bytes(seal(data, binding, [self.recipient]))

    def assert_refused(self, match: str, **options: object) -> None:
        """Nothing but the log is written, and no byte of it anywhere below the folder of originals."""
        before = {name: data for name, data in tree(self.root).items() if not name.endswith(".jsonl")}
        with pytest.raises(SealError, match=match):
            recover(self.release, self.back, identity=self.identity, **options)  # type: ignore[arg-type]
        after = {name: data for name, data in tree(self.root).items() if not name.endswith(".jsonl")}
        assert after == before
        assert {line["result"] for line in self.log} == {"refused"}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_originals_come_back_byte_for_byte_and_the_log_says_so(scene: Scene) -> None:
    done = recover(scene.release, scene.back, identity=scene.identity, key=scene.root / "release.private" / "key")
    assert (done.restored, done.already_there, done.log) == (6, 0, scene.root / "back.access.jsonl")
    assert tree(scene.back) == tree(scene.source)
    assert ODD in tree(scene.back)
    assert len(list(scene.back.iterdir())) == len(list(scene.source.iterdir()))
    assert sorted(str(line["picture"]) for line in scene.log) == sorted(scene.names)
    assert {line["original"] for line in scene.log} == tree(scene.source).keys()
    assert {(line["recipient"], line["result"]) for line in scene.log} == {(scene.recipient, "restored")}


def test_sealed_files_can_lie_elsewhere_and_the_private_folder_is_not_needed(scene: Scene) -> None:
    shutil.rmtree(scene.root / "release.private")
    scene.sealed.rename(scene.root / "vault")
    with pytest.raises(DataError, match="name it"):
        recover(scene.release, scene.back, identity=scene.identity)
    log = scene.root / "logs" / "log.jsonl"
    recover(scene.release, scene.back, identity=scene.identity, sealed=scene.root / "vault", log=log)
    assert tree(scene.back) == tree(scene.source)
    assert len(log.read_text().splitlines()) == 6


def test_some_pictures_only(scene: Scene) -> None:
    done = recover(scene.release, scene.back, identity=scene.identity, only=[scene.names[2], scene.names[2]])
    (path,) = tree(scene.back)
    assert done.restored == 1
    assert tree(scene.back)[path] == tree(scene.source)[path]
    with pytest.raises(UsageError, match=r"no picture 'nobody\.png'"):
        recover(scene.release, scene.back, identity=scene.identity, only=["nobody.png"])


@pytest.mark.parametrize(
    ("only", "paths"),
    [(["top.png"], {"top.png"}), (["sub folder/*"], {ODD}), (["sub folder"], {ODD}),
     (["person00*/*"], None), (["*.jpg", "top.png"], None),
     ([ODD], {ODD}), (["to[pq].pn?", "top.png"], {"top.png"})],
)  # fmt: skip
def test_originals_are_named_by_their_own_paths_and_by_patterns(
    scene: Scene, only: list[str], paths: set[str] | None
) -> None:
    recover(scene.release, scene.back, identity=scene.identity, only=only)
    if paths is None:
        paths = {path for path in tree(scene.source) if any(fnmatchcase(path, each) for each in only)}
        assert len(paths) >= 4
    assert tree(scene.back) == {path: data for path, data in tree(scene.source).items() if path in paths}


def test_patterns_match_names_in_the_release_and_need_no_ledger(scene: Scene) -> None:
    shutil.rmtree(scene.root / "release.private")
    done = recover(scene.release, scene.back, identity=scene.identity, only=[f"{scene.names[0][:20]}*"])
    assert done.restored == 1
    with pytest.raises(UsageError, match=r"no picture 'top\.png'.*its ledger is needed, and there is none in"):
        recover(scene.release, scene.back, identity=scene.identity, only=["top.png"])


def test_names_of_originals_come_from_the_ledger_of_just_this_release(scene: Scene) -> None:
    """One key serves two releases; the ledger of the other one, and a damaged one, are passed over."""
    private = scene.root / "vault"
    (scene.root / "release.private").rename(private)
    protect(scene.source, scene.root / "other", "blur", key=private / "key")
    (private / "a.ledger").write_bytes(b"damaged")
    with pytest.raises(UsageError, match="no picture"):
        recover(scene.release, scene.back, identity=scene.identity, only=["top.png"])
    recover(scene.release, scene.back, identity=scene.identity, only=["top.png"], key=private / "key")
    assert tree(scene.back) == {"top.png": (scene.source / "top.png").read_bytes()}


def rewritten(release: Path, sums: str, files: int) -> None:
    """SHA256SUMS and a manifest that fits it, as somebody could write them who can write to the release."""
    (release / SUMS).write_text(sums)
    facts = json.loads((release / "manifest.json").read_text())
    facts |= {"sums_sha256": hashlib.sha256(sums.encode()).hexdigest(), "files": files}
    (release / "manifest.json").write_text(json.dumps(facts))


def test_an_emptied_list_with_a_fitting_manifest_is_an_error(scene: Scene) -> None:
    rewritten(scene.release, "", 6)
    with pytest.raises(DataError, match=r"lists 0 pictures, but manifest\.json says that there are 6"):
        recover(scene.release, scene.back, identity=scene.identity)
    rewritten(scene.release, "", 0)
    with pytest.raises(DataError, match="lists no picture, so there is nothing to restore"):
        recover(scene.release, scene.back, identity=scene.identity)


def test_a_shortened_list_with_a_fitting_manifest_is_an_error(scene: Scene) -> None:
    lines = (scene.release / SUMS).read_text().splitlines(keepends=True)
    rewritten(scene.release, "".join(lines[:-2]), 4)
    with pytest.raises(DataError, match="holds 2 originals of pictures that the release does not list"):
        recover(scene.release, scene.back, identity=scene.identity)
    kept = lines[0].split()[1]
    assert recover(scene.release, scene.back, identity=scene.identity, only=[kept]).restored == 1


def test_a_second_recovery_writes_nothing_and_never_over_other_files(scene: Scene) -> None:
    recover(scene.release, scene.back, identity=scene.identity)
    (scene.back / "own.txt").write_text("mine")
    times = {path: path.stat().st_mtime_ns for path in scene.back.rglob("*.*")}
    done = recover(scene.release, scene.back, identity=scene.identity)
    assert (done.restored, done.already_there) == (0, 6)
    assert {path: path.stat().st_mtime_ns for path in scene.back.rglob("*.*")} == times
    assert [line["result"] for line in scene.log].count("already there") == 6
    (scene.back / "top.png").write_bytes(b"mine as well")
    with pytest.raises(SealError, match=r"nothing was restored, as 1 of 6 .* another file is already in its place"):
        recover(scene.release, scene.back, identity=scene.identity)
    assert (scene.back / "top.png").read_bytes() == b"mine as well"


def test_a_recovery_that_was_stopped_goes_on(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0

    def stop(target: Path, data: bytes, scratch: Path) -> None:
        nonlocal written
        written += 1
        if written == 3:
            (scratch / f"{os.getpid()}.part").write_bytes(data[:50])
            raise KeyboardInterrupt
        write_atomically(target, data, scratch)

    monkeypatch.setattr(recovering, "write_atomically", stop)
    with pytest.raises(KeyboardInterrupt):
        recover(scene.release, scene.back, identity=scene.identity)
    assert tree(scene.back).items() < tree(scene.source).items()
    monkeypatch.undo()
    leftover = scene.back / recovering.SCRATCH
    leftover.mkdir()
    (leftover / "7.part").write_bytes(b"half, of a run that was killed")
    done = recover(scene.release, scene.back, identity=scene.identity)
    assert (done.restored, done.already_there) == (4, 2)
    assert tree(scene.back) == tree(scene.source)
    assert not leftover.exists()


def test_one_recovery_at_a_time(scene: Scene) -> None:
    held = scene.back / recovering.SCRATCH
    held.mkdir(parents=True)
    descriptor = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(DestinationError, match="another recovery"):
            recover(scene.release, scene.back, identity=scene.identity)
    finally:
        os.close(descriptor)
    assert tree(scene.back) == {}


def test_another_key_opens_nothing(scene: Scene) -> None:
    scene.identity = scene.root / "other.txt"
    write_identity(scene.identity)
    scene.assert_refused("nothing was restored, as 6 of 6 .* not sealed to this key")
    assert len(scene.log) == 6


def test_flipped_bytes_are_refused(scene: Scene) -> None:
    rng, file = random.Random(0), scene.of(scene.names[0])
    whole = file.read_bytes()
    for place in rng.sample(range(len(whole)), 12):
        altered = bytearray(whole)
        altered[place] ^= 1 << rng.randrange(8)
        file.write_bytes(altered)
        scene.assert_refused("as 1 of 6")
    file.write_bytes(whole[:-1])
    scene.assert_refused("damaged, cut off or altered")
    file.write_bytes(b"")
    scene.assert_refused("empty file")
    file.unlink()
    scene.assert_refused("its sealed file is missing")
    os.mkfifo(file)
    with pytest.raises(SealError, match="not a regular file"):
        recover(scene.release, scene.back, identity=scene.identity)
    file.unlink()
    file.write_bytes(whole)
    assert recover(scene.release, scene.back, identity=scene.identity).restored == 6


def test_swapped_files_are_refused(scene: Scene) -> None:
    one, two = (scene.of(name) for name in scene.names[:2])
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    scene.assert_refused("as 2 of 6 .* swapped")
    done = recover(scene.release, scene.back, identity=scene.identity, only=scene.names[2:])
    assert done.restored == 4


def test_a_protected_picture_that_changed_is_refused(scene: Scene) -> None:
    name = scene.names[0]
    whole = (scene.release / name).read_bytes()
    (scene.release / name).write_bytes(whole + b"\0")
    scene.assert_refused("not the one that SHA256SUMS names")
    (scene.release / name).unlink()
    scene.assert_refused("its protected picture is missing")


def test_a_replaced_release_does_not_fit_its_sealed_files(scene: Scene) -> None:
    """All of a release made again under the same names, hashes and manifest included."""
    key = scene.root / "release.private" / "key"
    protect(scene.source, scene.root / "other", "blur", key=key)
    shutil.rmtree(scene.release)
    (scene.root / "other").rename(scene.release)
    scene.assert_refused("was sealed for a protected picture of SHA-256")


@pytest.mark.parametrize("path", ["../escaped.png", "/tmp/escaped.png", "a/../../escaped.png", ""])
def test_a_crafted_path_leads_nowhere(scene: Scene, path: str) -> None:
    scene.forge(scene.names[0], original=path)
    scene.assert_refused("leads out of the folder")


def test_crafted_files_that_clash_are_refused(scene: Scene) -> None:
    scene.forge(scene.names[0], original="top.png/inside.png")
    scene.assert_refused("another original's folder")
    other = unseal(scene.of(scene.names[1]).read_bytes(), read_identities(scene.identity)).binding.original
    scene.forge(scene.names[0], original=other)
    scene.assert_refused("two sealed files name one original")
    scene.forge(scene.names[0], original=f"{recovering.SCRATCH}/x.png")
    scene.assert_refused("needed for unfinished files")


def test_a_link_in_the_folder_is_not_followed(scene: Scene) -> None:
    scene.back.mkdir()
    (scene.root / "elsewhere").mkdir()
    (scene.back / "sub folder").symlink_to(scene.root / "elsewhere")
    scene.assert_refused("a file or a link")
    assert list((scene.root / "elsewhere").iterdir()) == []


def test_the_releases_key_tells_files_that_others_made(scene: Scene) -> None:
    """Without it a forger who has the public key and write access to the sealed files is not noticed."""
    name = scene.names[0]
    key = scene.root / "release.private" / "key"
    scene.forge(name, original="forged.png")
    scene.assert_refused("was not sealed under the release's key", key=key)
    recover(scene.release, scene.root / "forged", identity=scene.identity, only=[name])
    assert tree(scene.root / "forged").keys() == {"forged.png"}
    protect(scene.source, scene.root / "second", "pixelate")
    with pytest.raises(KeyFileError, match="not the key that this release was made with"):
        recover(scene.release, scene.back, identity=scene.identity, key=scene.root / "second.private" / "key")


def test_a_file_that_is_replaced_after_the_check_is_not_restored(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checked(*arguments: object) -> list[object]:
        steps = kept(*arguments)  # type: ignore[arg-type]
        scene.forge(scene.names[0], original="forged.png")
        return steps  # type: ignore[return-value]

    kept = recovering._checked
    monkeypatch.setattr(recovering, "_checked", checked)
    with pytest.raises(SealError, match="replaced while"):
        recover(scene.release, scene.back, identity=scene.identity, only=scene.names[:1])
    assert tree(scene.back) == {}


def test_what_cannot_be_logged_is_not_restored(scene: Scene) -> None:
    with pytest.raises(DestinationError, match="without it nothing is restored"):
        recover(scene.release, scene.back, identity=scene.identity, log="/dev/full")
    assert tree(scene.back) == {}


def test_a_write_that_fails_is_logged(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(target: Path, data: bytes, scratch: Path) -> None:
        (scratch / f"{os.getpid()}.part").symlink_to("/dev/full")
        write_atomically(target, data, scratch)

    monkeypatch.setattr(recovering, "write_atomically", full)
    with pytest.raises(DestinationError, match="disk is full"):
        recover(scene.release, scene.back, identity=scene.identity)
    assert [line["result"] for line in scene.log] == ["restored", "failed"]
    assert tree(scene.back) == {}


def test_places_that_overlap_are_refused(scene: Scene) -> None:
    for target in (scene.release, scene.release / "x", scene.sealed / "x", scene.root):
        with pytest.raises(UsageError, match="kept apart"):
            recover(scene.release, target, identity=scene.identity)
    for log in (scene.release / "log", scene.sealed / "log", scene.back / "log"):
        with pytest.raises(UsageError, match="log must be kept apart"):
            recover(scene.release, scene.back, identity=scene.identity, log=log)
    scene.back.write_text("a file")
    with pytest.raises(DestinationError, match="is a file"):
        recover(scene.release, scene.back, identity=scene.identity)


def test_releases_that_are_unfinished_altered_or_not_sealed_are_told(scene: Scene) -> None:
    protect(scene.source, scene.root / "plain", "pixelate")
    with pytest.raises(DataError, match="none were sealed"):
        recover(scene.root / "plain", scene.back, identity=scene.identity)
    with pytest.raises(KeyFileError, match="there is no file"):
        recover(scene.release, scene.back, identity=scene.root / "absent")
    sums = (scene.release / SUMS).read_text()
    (scene.release / SUMS).write_text(sums.replace(scene.names[0], "../x.png"))
    with pytest.raises(DataError, match="not the one that manifest"):
        recover(scene.release, scene.back, identity=scene.identity)
    (scene.release / "manifest.json").unlink()
    with pytest.raises(DataError, match="no finished release"):
        recover(scene.release, scene.back, identity=scene.identity)
    assert not scene.back.exists()
