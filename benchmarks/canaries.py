"""Canaries: secret words in every corner of the originals; none may be found in the release or in what a run says.

The search must find every canary in a plain copy of the originals, and a word in visible pixels in the release of a
method that leaves them alone; otherwise finding nothing would mean nothing.
"""

from __future__ import annotations

import base64
import io
import os
import random
import re
import shutil
import string
import struct
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, PngImagePlugin

from claims import record
from pictures import picture
from process import run

SEED, COUNT, REFUSED = 0, 100, 5
FORMATS = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "TIFF": ".tif", "BMP": ".bmp"}
METHODS = (("mask", ("top=0.9", "left=0.9")), ("pixelate", ()), ("patches", ()))  # the first leaves pixels alone


@dataclass(slots=True)
class Planted:
    """The words hidden, by file (path below the source) and place, and the words that are in plain sight."""

    hidden: dict[str, dict[str, str]] = field(default_factory=dict)
    visible: dict[str, str] = field(default_factory=dict)

    def words(self) -> list[str]:
        return [word for places in self.hidden.values() for word in places.values()]


def plant(root: Path, count: int = COUNT, *, refused: int = REFUSED, seed: int = SEED) -> Planted:
    """`count` pictures of all formats with a word of 16 letters in each place, and some that will be refused."""
    rng = random.Random(seed)
    planted = Planted()
    for index in range(count + refused):
        form = list(FORMATS)[index % len(FORMATS)]
        words = {place: "".join(rng.choices(string.ascii_letters + string.digits, k=16)) for place in _PLACES}
        path = f"{words['folder']}/{words['file']}{FORMATS[form]}"
        data, places = _picture(form, index, words)
        (root / path).parent.mkdir(parents=True)
        if index < count:
            (root / path).write_bytes(data + words["trailing"].encode())
            planted.hidden[path] = {place: words[place] for place in (*places, "trailing", "file", "folder")}
            if form != "JPEG":
                planted.visible[path] = words["visible"]
        else:
            (root / path).write_bytes(data[: len(data) // 2])
            planted.hidden[path] = {place: words[place] for place in ("file", "folder")}
    return planted


_PLACES = (
    "exif", "exif16", "thumbnail", "xmp", "icc", "comment", "packed", "base64", "hex", "alpha", "visible", "trailing",
    "file", "folder",
)  # fmt: skip


def _picture(form: str, index: int, words: dict[str, str]) -> tuple[bytes, tuple[str, ...]]:
    """An encoded picture, and the places in which it holds words."""
    pixels = picture(index, 64, 32)
    _write_word(pixels, 20, words["visible"])
    options: dict[str, object] = {}
    places: tuple[str, ...] = ()
    if form in ("PNG", "WEBP", "TIFF"):  # rows that nobody sees, with a word in their colours
        alpha = np.full((64, 32, 1), 255, np.uint8)
        alpha[:4] = 0
        _write_word(pixels, 1, words["alpha"])
        pixels = np.concatenate([pixels, alpha], axis=2)
        places = ("alpha",)
    if form != "BMP":
        options = {"icc_profile": _profile(words["icc"])}
        places += ("icc",)
    if form in ("JPEG", "PNG", "WEBP"):
        options |= {"exif": _exif(words)}
        places += ("exif", "exif16", "thumbnail")
    xmp = f"<x:xmpmeta xmlns:x='adobe:ns:meta/'>{words['xmp']}</x:xmpmeta>"
    if form in ("JPEG", "WEBP"):
        options |= {"xmp": xmp.encode()}
        places += ("xmp",)
    if form == "JPEG":
        options |= {"comment": words["comment"].encode(), "quality": 95}
        places += ("comment",)
    elif form == "PNG":
        text = PngImagePlugin.PngInfo()
        text.add_text("Comment", words["comment"])
        text.add_text("Packed", words["packed"], zip=True)
        text.add_itxt("XML:com.adobe.xmp", xmp, zip=True)
        text.add_text("Base64", base64.b64encode(f"x{words['base64']}".encode()).decode())
        text.add_text("Hex", words["hex"].encode().hex())
        options |= {"pnginfo": text}
        places += ("xmp", "comment", "packed", "base64", "hex")
    elif form == "TIFF":
        options |= {"tiffinfo": {270: words["comment"], 700: xmp.encode()}}
        places += ("comment", "xmp")
    elif form == "WEBP":
        options |= {"lossless": True, "exact": True}
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form, **options)  # type: ignore[arg-type]
    return buffer.getvalue(), places


def _write_word(pixels: NDArray[np.uint8], row: int, word: str) -> None:
    values = np.frombuffer(word.encode(), np.uint8)
    pixels[row].reshape(-1)[: len(values)] = values


def _profile(word: str) -> bytes:
    """An sRGB profile, with the word in bytes that no reader looks at."""
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes() + word.encode())
    data[:4] = struct.pack(">I", len(data))
    return bytes(data)


def _exif(words: dict[str, str]) -> bytes:
    """A description in 8 and in 16 bits a letter, and a thumbnail with a comment."""
    thumbnail = io.BytesIO()
    Image.new("RGB", (16, 16), "red").save(thumbnail, "JPEG", comment=words["thumbnail"].encode())
    texts = ((0x010E, 2, words["exif"].encode() + b"\0"), (0x9C9B, 1, words["exif16"].encode("utf-16-le") + b"\0\0"))
    second = 8 + 2 + 12 * len(texts) + 4
    place = second + 2 + 12 * 3 + 4
    first, data = struct.pack("<H", len(texts)), b""
    for tag, kind, text in texts:
        first += struct.pack("<HHII", tag, kind, len(text), place + len(data))
        data += text
    fields = ((0x0103, 3, 6), (0x0201, 4, place + len(data)), (0x0202, 4, len(thumbnail.getvalue())))
    last = struct.pack("<H", 3) + b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in fields)
    body = struct.pack("<2sHI", b"II", 42, 8) + first + struct.pack("<I", second) + last + bytes(4)
    return b"Exif\0\0" + body + data + thumbnail.getvalue()


def encodings(word: str) -> list[bytes]:
    """A word as it may stand in a file: 8 and 16 bits a letter, hexadecimal, base64 at each of its three offsets."""
    plain = word.encode()
    found = [
        plain,
        word.encode("utf-16-le"),
        word.encode("utf-16-be"),
        plain.hex().encode(),
        plain.hex().upper().encode(),
    ]
    for offset in range(3):
        padded = base64.b64encode(bytes(offset) + plain)
        first = -(-8 * offset // 6)  # letters that the word does not fill alone are left out
        found.append(padded[first : 8 * (offset + len(plain)) // 6])
    return found


def searched(file: Path) -> bytes:
    """All that can be read out of a file: its name, its bytes, unpacked chunks, and the colours of its pixels."""
    data = file.read_bytes()
    parts = [os.fsencode(file.name), data]
    for found in re.finditer(rb"x[\x01\x5e\x9c\xda]", data):
        try:
            parts.append(zlib.decompressobj().decompress(data[found.start() :], 2**22))
        except zlib.error:
            continue
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            parts += [image.tobytes(), image.convert("RGB").tobytes()]
    except (OSError, SyntaxError, ValueError):
        pass
    return b"\0\0".join(parts)


def hits(haystacks: Iterator[tuple[str, bytes]], words: list[str]) -> set[tuple[str, str]]:
    """(where, word) for each word found, in any encoding."""
    patterns = {pattern: word for word in words for pattern in encodings(word)}
    # One regular expression over the words' first letters would be slow: look up each position's first six bytes.
    heads: dict[bytes, list[bytes]] = {}
    for pattern in patterns:
        heads.setdefault(pattern[:6], []).append(pattern)
    found = set()
    for where, data in haystacks:
        view = np.frombuffer(data, np.uint8)
        if len(view) < 6:
            continue
        keys = sum(view[offset : len(view) - 5 + offset].astype(np.int64) << (8 * offset) for offset in range(6))
        wanted = np.array([int.from_bytes(head, "little") for head in heads], np.int64)
        for place in np.flatnonzero(np.isin(keys, wanted)):
            for pattern in heads[data[place : place + 6]]:
                if data.startswith(pattern, place):
                    found.add((where, patterns[pattern]))
    return found


def tree(root: Path) -> Iterator[tuple[str, bytes]]:
    """What can be searched below a folder: every file, and the names of folders."""
    for folder, _, files in os.walk(root):
        relative = os.path.relpath(folder, root)
        yield relative, os.fsencode(relative)
        for name in files:
            yield f"{relative}/{name}", searched(Path(folder, name))


def detector_misses(source: Path, planted: Planted, work: Path) -> list[str]:
    """Words that the search does not find in a plain copy of the originals; there must be none."""
    copy = work / "copy"
    shutil.copytree(source, copy)
    found = {word for _, word in hits(tree(copy), planted.words())}
    return sorted(set(planted.words()) - found)


@dataclass(frozen=True, slots=True)
class Search:
    """What was found after a run: hidden words anywhere; visible words in the release; what the run left behind."""

    found: set[tuple[str, str]]
    visible: int
    leftovers: list[str]
    protected: int
    output: str


def measure(
    source: Path, planted: Planted, work: Path, method: str, settings: tuple[str, ...], workers: int
) -> Search:
    """Protect from the command line and search the release, temporary files and both output streams."""
    release, temporary = work / "release", work / "temporary"
    temporary.mkdir(parents=True)
    chosen = [word for setting in settings for word in ("--set", setting)]
    ended = run(
        "protect", source, release, "--method", method, *chosen, "--workers", str(workers), TMPDIR=str(temporary)
    )
    if ended.code not in (0, 3):
        raise SystemExit(f"the run failed:\n{ended.output}")
    found = hits(tree(release), planted.words()) | hits(tree(temporary), planted.words())
    found |= hits(iter([("output", ended.output.encode())]), planted.words())
    pictures = list(release.rglob("*.png"))
    expected = {release / "manifest.json", release / "SHA256SUMS", *pictures}
    left = [str(p.relative_to(work)) for p in (*release.rglob("*"), *temporary.rglob("*")) if p not in expected]
    visible = len({word for _, word in hits(tree(release), list(planted.visible.values()))})
    return Search(found, visible, left, len(pictures), ended.output)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        planted = plant(source)
        if missed := detector_misses(source, planted, Path(folder)):
            raise SystemExit(f"the search misses {len(missed)} canaries in a plain copy: it would prove nothing")
        found, notes = 0, []
        for method, settings in METHODS:
            search = measure(source, planted, Path(folder, method), method, settings, workers=2)
            found += len(search.found) + len(search.leftovers)
            notes.append(f"{method}: {search.protected} protected, {search.visible} visible words")
            print(notes[-1], sorted(search.found)[:5], search.leftovers)
            if method == "mask" and search.visible < len(planted.visible):
                raise SystemExit("words in plain sight were not found in the release: the search would prove nothing")
    record(
        id="canaries",
        claim="Canaries planted in EXIF, XMP, ICC, comments, thumbnails, alpha-hidden pixels, trailing bytes, file "
        f"names and folder names of {COUNT} images found in the release or in logs",
        figure=found,
        bar="== 0",
        unit="hits",
        data="generated pictures of 5 formats",
        scale=f"{len(planted.words())} canaries, {COUNT} pictures and {REFUSED} refused, {len(METHODS)} methods",
        seed=SEED,
        command="python benchmarks/canaries.py",
        note="the same search finds every canary in a plain copy of the originals; " + "; ".join(notes),
    )


if __name__ == "__main__":
    main()
