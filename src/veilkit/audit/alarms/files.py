"""What protected files hold besides the colours that are seen, and whether their names give originals away."""

from __future__ import annotations

import io
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from PIL import Image

from veilkit.audit.inputs.hash_names import named_by_hash
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.datasets.folder import walk
from veilkit.errors import RefusedImage
from veilkit.media.reading import FORMATS, Limits, read_bytes
from veilkit.progress import Progress

_HARMLESS = frozenset(
    {
        "jfif",
        "jfif_version",
        "jfif_unit",
        "jfif_density",
        "dpi",
        "progressive",
        "progression",
        "gamma",
        "chromaticity",
    }
    | {"adobe", "adobe_transform", "interlace", "srgb", "icc_profile", "compression", "transparency", "lossless"}
    | {"resolution", "aspect", "loop", "background", "timestamp", "duration", "bbox", "default_image"}
)  # of what Pillow tells of a file: how it is coded, which a viewer needs
_SAMPLE = 50  # originals whose hashes are tried where the key has resolved the names
_SOS, _EOI = 0xDA, 0xD9  # JPEG's markers: a scan begins, the picture ends
_ADOBE = 0xEE  # JPEG's segment that says how colours are coded
_CHUNKS = frozenset(  # of PNG files, that a viewer needs, and those that are told by what is in them
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"pHYs", b"sBIT", b"bKGD"}
    | {b"cICP", b"hIST", b"tIME", b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"acTL", b"fcTL", b"fdAT"}
)
_IN_A_SCAN = frozenset({b"\0", *(bytes([number]) for number in range(0xD0, 0xD8))})


def check_files(subject: Subject, limits: Limits) -> Iterator[Alarm]:
    """Look into every picture of the release, also those that are not measured: all of them are given away."""
    root = subject.protected.root
    paths = sorted((path for path, is_image in walk(root) if is_image), key=os.fsencode)
    hidden, others = 0, Counter[str]()
    with Progress(len(paths), "looking into files") as progress:
        for path in paths:
            # One that cannot be read is skipped: of those that are measured, reading its pixels tells.
            with suppress(RefusedImage, OSError, ValueError, SyntaxError):
                transparent, found = inspect(read_bytes(root / path, limits))
                hidden += transparent
                others.update(found)
            progress.advance()
    if hidden:
        yield Alarm(
            "hidden channel",
            f"{hidden} of {len(paths)} protected files have a transparency channel that is not plainly opaque: it, "
            "or the colours below it, may show what a viewer does not. Save pictures without transparency",
        )
    if others:
        what = ", ".join(f"{name} ({count})" for name, count in others.most_common())
        yield Alarm("metadata", f"protected files hold more than pixels: {what}. Save the pictures without metadata")


def inspect(data: bytes) -> tuple[bool, set[str]]:
    """Whether a file has transparency that is used, and kinds of other content that no viewer needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of odd metadata with texts taken from the file
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            image.load()
            found = set()
            if image.format != "TIFF" and len(image.getexif()):  # a TIFF is itself made of such tags
                found.add("EXIF")
            for name in image.info:
                kind = str(name).lower()
                if kind in ("exif", "xmp", "comment", "photoshop", "mp", "mpoffset") or kind.startswith("xml:"):
                    found.add({"exif": "EXIF", "comment": "comments"}.get(kind, "XMP or other metadata"))
                elif kind not in _HARMLESS:
                    found.add("text")
            if getattr(image, "n_frames", 1) > 1:
                found.add("more pictures")
            if _trailing(data, str(image.format)):
                found.add("bytes after the picture")
            if _unexplained(data, image.info.get("icc_profile")):
                found.add("bytes that no reader looks at")
            transparent = image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info
            transparent = transparent and bool((np.asarray(image.convert("RGBA"))[..., 3] != 255).any())
            return transparent, found


def _trailing(data: bytes, kind: str) -> bool:
    """Whether anything but padding follows the picture's own end."""
    ends = {"PNG": _png_end, "JPEG": _jpeg_end, "MPO": _jpeg_end}
    return kind in ends and len(data[ends[kind](data) :].strip(b"\0\r\n")) > 0


def _unexplained(data: bytes, profile: object) -> bool:
    """Whether a file holds parts that are neither the picture nor how to show it: chunks and segments of no known
    name, what follows the packed pixels, a colour profile that is longer than it says.
    """
    if isinstance(profile, bytes) and int.from_bytes(profile[:4]) != len(profile):
        return True
    if data.startswith(b"\xff\xd8"):
        return any(0xE2 < marker <= 0xEF and marker != _ADOBE for marker in jpeg_segments(data))
    if not data.startswith(b"\x89PNG"):
        return False
    unpacker = zlib.decompressobj()
    for name, body in png_chunks(data):
        if name == b"IDAT":
            with suppress(zlib.error):
                unpacker.decompress(body)
            if unpacker.unused_data.strip(b"\0"):
                return True
        elif name not in _CHUNKS:
            return True
    return False


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of the chunks, which have a length, a name, content and a checksum, up to IEND."""
    place, name = 8, b""
    while place + 8 <= len(data) and name != b"IEND":
        length, name = int.from_bytes(data[place : place + 4]), data[place + 4 : place + 8]
        yield name, data[place + 8 : place + 8 + length]
        place += 12 + length


def jpeg_segments(data: bytes) -> dict[int, bytes]:
    """The contents of the segments before the picture, joined by marker."""
    found: dict[int, bytes] = {}
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF and data[place + 1] != _SOS:
        marker, length = data[place + 1], int.from_bytes(data[place + 2 : place + 4])
        found[marker] = found.get(marker, b"") + data[place + 4 : place + 2 + length]
        place += 2 + max(length, 2)
    return found


def _png_end(data: bytes) -> int:
    """The place after the chunk IEND."""
    return 8 + sum(12 + len(body) for _, body in png_chunks(data))


def _jpeg_end(data: bytes) -> int:
    """The place after the marker EOI: segments have a length, scans go on to the next marker that is no restart."""
    place = 2
    while place + 2 <= len(data):
        marker = data[place + 1]
        if marker == _EOI:
            return place + 2
        if marker == 0xFF:  # filling
            place += 1
            continue
        place += 2 + int.from_bytes(data[place + 2 : place + 4])
        while marker == _SOS and place + 2 <= len(data):
            place = data.find(b"\xff", place)
            if place < 0:
                return len(data)
            if data[place + 1 : place + 2] not in _IN_A_SCAN:
                break
            place += 2
    return len(data)


def check_names(subject: Subject, limits: Limits) -> Iterator[Alarm]:
    """Names that are hashes of originals, whether they were paired by them or through a key."""
    count = len(subject.pairing.pairs) if subject.pairing.how == "hash" else 0
    if subject.pairing.how == "key" and subject.originals is not None:
        some = subject.pairing.pairs[:_SAMPLE]
        found = named_by_hash(subject.originals.root, [raw for raw, _ in some], [made for _, made in some], limits)
        count = len(found)
    if count:
        yield Alarm(
            "hashed names",
            f"{count} protected pictures are named by a hash of their original or of its name, without a key: "
            "whoever holds an original, or guesses its name, finds it in the release. Names need a secret key",
        )
