"""200 crafted SHA256SUMS and 200 crafted manifests: each ends in a result or an error raised on purpose."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pictures import write_folder
from tests.conftest import tree
from veilkit.audit.inputs.rerun import method_of, wants_model
from veilkit.audit.verdicts.gaps import check_manifest
from veilkit.errors import VeilkitError
from veilkit.media.reading import Limits
from veilkit.pipeline.manifest import MANIFEST, SUMS, known_manifest
from veilkit.pipeline.pairing import choose_key
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover
from veilkit.pipeline.sealing.age import write_identity
from veilkit.pipeline.synthesis import _kept_labels, is_synthetic

_COUNT = 200
_MEMORY = 64 * 2**20  # bytes that Python may take for one of them

_NAMES = [b"../x.png", b"/etc/passwd", b"a/../../b.png", b"", b".", b"a\0b.png", b"\xff\xfe.png", b"x" * 300,
          b"manifest.json", b".veilkit/lock", b"soft_labels.npz", b"a//b.png", "é.png".encode(), b"n" * 20_000,
          b"\x1b[31m.png", b"a.png/", b"*a.png", b"aaaaaaaaaaaaaaaaaaaaaaaaaa.png\r"]  # fmt: skip
_DIGESTS = ["é".encode() * 32, b"", b"0" * 63, b"0" * 65, b"G" * 64, b"A" * 64, b"\xff" * 64, "٣".encode() * 64,
            b"0" * 64, b"\\" * 64]  # fmt: skip
_ESCAPES = [b"\\q.png", b"\\", b"a\\\\\\", b"\\x41.png", b"\\\n", b"a\\nb.png", b"\\\xff"]


def crafted_sums(whole: bytes) -> Iterator[bytes]:
    """Lists cut off, mixed up, wrongly escaped, with other names, digests and separators; the same each time."""
    draw = random.Random(24)
    lines = whole.splitlines(keepends=True)
    changes: list[Callable[[], bytes]] = [
        lambda: whole[: draw.randrange(len(whole))],
        lambda: b"".join(draw.sample(lines, draw.randrange(len(lines)))),
        lambda: whole + draw.choice(lines),
        lambda: draw.choice(_DIGESTS) + b"  " + lines[0][66:] + b"".join(lines[1:]),
        lambda: lines[0][:66] + draw.choice(_NAMES) + b"\n" + b"".join(lines[1:]),
        lambda: b"\\" + lines[0][:66] + draw.choice(_ESCAPES) + b"\n" + b"".join(lines[1:]),
        lambda: draw.randbytes(draw.randrange(2_000)),
        lambda: whole.replace(b"  ", draw.choice([b" ", b"\t", b" *", b"   ", b""])),
        lambda: whole.replace(b"\n", draw.choice([b"\r\n", b"\n\n", b"\0\n", b""])),
        lambda: draw.choice([b"\n", b"0", b" ", b"\\"]) * draw.randrange(1, 3_000_000),
    ]
    for number in range(_COUNT):
        yield changes[number % len(changes)]()


_VALUES: list[Any] = [
    None, True, -1, 0, 10**30, 1.5, float("nan"), float("inf"), "", "é" * 64, "0" * 64, "\ud800", "../x",
    "a" * 100_000, [], {}, [[[]]], {"a": {"b": [1, None]}},
    "pixelate", "fro", "disguise", "noise", "kept", "pseudonyms", "anyone",
    {"sigma": -1}, {"sigma": "x"}, {"cell": 10**20}, {"model": 5}, {"model": None},
]  # fmt: skip


def crafted_manifests(whole: bytes) -> Iterator[bytes]:
    """Manifests with other values, fields too many or too few, other nesting, and files that are none."""
    draw = random.Random(25)
    facts: dict[str, Any] = json.loads(whole)
    names = [*facts, "surplus"]
    changes: list[Callable[[], bytes]] = [
        *[lambda: json.dumps(facts | {draw.choice(names): draw.choice(_VALUES)}).encode()] * 6,
        lambda: json.dumps({name: value for name, value in facts.items() if name != draw.choice(names)}).encode(),
        lambda: json.dumps(facts | {"key_commitment": draw.choice(["é" * 64, "É", "\u0660" * 64, ""])}).encode(),
        lambda: whole[: draw.randrange(len(whole))],
        lambda: json.dumps(facts | {"config": 0}).encode().replace(b'"config": 0', b'"config": ' + _nested(draw)),
        lambda: json.dumps(facts | {"files": 0}).encode().replace(b'"files": 0', b'"files": ' + b"9" * 5_000),
        lambda: draw.choice([b"[", b" ", b"0", b"\xff"]) * draw.randrange(6_000_000),
    ]
    for number in range(_COUNT):
        yield changes[number % len(changes)]()


def _nested(draw: random.Random) -> bytes:
    depth = draw.choice([50, 150, 5_000, 100_000])
    return b'{"a":' * depth + b"1" + b"}" * depth


class Release:
    """A finished, sealed release below `root`, whose list or manifest is replaced again and again."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.identity = root, root / "release", root / "identity.txt"
        write_folder(root / "source", 3, people=1, height=16, width=16)
        recipient = write_identity(self.identity)
        protect(root / "source", self.folder, "pixelate", seal_to=[recipient])
        self.files = tree(self.folder)

    def put(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def put_sums(self, data: bytes) -> None:
        """The list, and a manifest that fits it."""
        self.put(SUMS, data)
        facts = json.loads(self.files[MANIFEST]) | {"sums_sha256": hashlib.sha256(data).hexdigest()}
        self.put(MANIFEST, json.dumps(facts).encode())

    def recover(self) -> None:
        back = self.root / "back"
        recover(self.folder, back, identity=self.identity, key=self.root / "release.private" / "key")
        assert tree(back) == tree(self.root / "source")
        shutil.rmtree(back)

    def audit(self) -> None:
        """What an audit asks of a manifest and a list before it measures anything."""
        manifest, _ = known_manifest(self.folder)
        choose_key(self.folder, manifest, None, None)
        is_synthetic(manifest)
        wants_model(manifest)
        method_of(manifest)
        subject = SimpleNamespace(manifest=manifest, protected=SimpleNamespace(files=()))
        list(check_manifest(self.folder, subject))  # type: ignore[arg-type]

    def resume(self) -> None:
        recipient = next(line for line in self.identity.read_text().splitlines() if "public key" in line).split()[-1]
        protect(self.root / "source", self.folder, "pixelate", seal_to=[recipient])
        assert tree(self.folder) == self.files


def ends_well(action: Callable[[], object], memory: int = _MEMORY) -> bool:
    """Whether it gave a result. Any error that is not raised on purpose fails the test, and so does much memory."""
    tracemalloc.start()
    try:
        action()
        return True
    except VeilkitError as error:
        message = str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < memory
    assert 10 < len(message) < 1_000
    assert message.isprintable()
    return False


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


def test_200_crafted_lists_of_hashes(release: Release) -> None:
    results = []
    for number, data in enumerate(crafted_sums(release.files[SUMS])):
        release.put_sums(data)
        results.append(ends_well(release.recover))
        assert ends_well(release.audit)
        assert ends_well(lambda: _kept_labels({}, release.folder, "pseudonyms"))
        if number % 20 < 10 and number < 40:  # two of each kind
            assert ends_well(release.resume, _MEMORY + Limits().file_bytes)
    assert len(results) == _COUNT
    assert sum(results) <= 20  # those that were only put into another order


def test_200_crafted_manifests(release: Release) -> None:
    results = []
    for number, data in enumerate(crafted_manifests(release.files[MANIFEST])):
        release.put(MANIFEST, data)
        release.put(SUMS, release.files[SUMS])
        results.append(ends_well(release.recover))
        ends_well(release.audit)
        if number < 24:
            ends_well(release.resume, _MEMORY + Limits().file_bytes)
    assert len(results) == _COUNT
    assert 20 < sum(results) < 120  # what recovery does not ask for may be anything
