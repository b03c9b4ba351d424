"""What files tell besides their pixels: sizes, times, headers and coding choices that name a person or a content.

A coding choice is natural where it follows from the pixels: the same pixels, coded anew in a plain way, then say as
much. A side channel is what says more: by it another file of the same person is told from a stranger's, or files are
alike whose originals are, or files stand in their originals' order.
"""

from __future__ import annotations

import hashlib
import io
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from veilkit.audit.alarms.files import jpeg_segments, png_chunks
from veilkit.audit.alarms.pairs import thumbnails
from veilkit.audit.alarms.relations import (
    Rows,
    distances,
    person_choices,
    rank_correlation,
    ranks,
    same_structure,
    surely_by_person,
    unlike,
)
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.errors import RefusedImage
from veilkit.media.reading import FORMATS, Limits, read_bytes
from veilkit.rng import Randomness

_FILES, _FEWEST, _FEWEST_PEOPLE = 64, 12, 4
_CHOICES, _MORE, _DEVIATIONS = 0.9, 0.2, 5.0  # of right choices; beyond what is natural; above chance
_ORDERED = 0.8  # rank correlation with the order of the originals
_STRUCTURE = 0.5  # rank correlation of the distances of files with those of their originals
_ROWS = 4096  # filter bytes of a picture that are compared


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one file, what is no pixel. coded: numbers by name, or rows of them, of the file and of its plain coding."""

    header: str
    shape: tuple[int, ...]
    coded: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    plain: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


def check_side_channels(subject: Subject, limits: Limits, rng: Randomness) -> Iterator[Alarm]:
    """Look into some files, drawn at random, for anything that tells whose or of what they are."""
    if subject.originals is None:
        return
    subject = subject.whole
    assert subject.originals is not None
    places = _some(subject, rng)
    if len(places) < _FEWEST:
        return
    made = [
        facts_of(_bytes(subject.protected.root / subject.protected.files[place].path, limits)) for place in places
    ]
    raw = [facts_of(_bytes(subject.originals.root / subject.originals.files[place].path, limits)) for place in places]
    people = None if subject.people is None else subject.people[places]
    truth = distances(thumbnails([subject.originals.pixels(int(place)) for place in places]))
    order = ranks_of_paths([subject.originals.files[place].path for place in places])
    generator = rng.child("side channels").numpy()
    told: dict[str, str] = {}
    for name, (values, natural) in _channels(subject, places, made, raw).items():
        if why := _tells(values, natural, people, truth, order, generator):
            told[name] = why
    if told:
        what = "; ".join(f"{name} {why}" for name, why in told.items())
        yield Alarm(
            "side channel",
            f"files tell more than their pixels: {what}. Write all pictures by one encoder with fixed settings and "
            "nothing added, and give all files one time",
        )


def _some(subject: Subject, rng: Randomness) -> NDArray[np.int64]:
    """Whole people where any are known twice, else any pictures."""
    order = rng.child("files").permutation(len(subject.protected))
    if subject.people is None:
        return np.asarray(order[:_FILES], dtype=np.int64)
    codes, counts = np.unique(subject.people, return_counts=True)
    twice = np.isin(subject.people[order], codes[counts >= 2])
    ranked = subject.people[order]
    first = {code: place for place, code in reversed(list(enumerate(ranked)))}
    together = np.array([first[code] for code in ranked])
    return np.asarray(order[np.lexsort((together, ~twice))][:_FILES], dtype=np.int64)


def _bytes(file: Path, limits: Limits) -> bytes:
    with suppress(RefusedImage):
        return read_bytes(file, limits)
    return b""


def facts_of(data: bytes) -> Facts:
    """What a file says besides its pixels, and what a plain coding of the same pixels would say."""
    if data.startswith(b"\x89PNG"):
        header, shape, filters = _png(data)
    elif data.startswith(b"\xff\xd8"):
        (header, shape), filters = _jpeg(data), np.empty(0)
    else:
        return Facts("", ())
    again = _coded_again(data)
    plain_filters = _png(again)[2] if again.startswith(b"\x89PNG") else np.empty(0)
    coded = {"size": np.array([len(data) - len(again)], dtype=np.float64), "filters": filters}
    plain = {"size": np.array([len(again)], dtype=np.float64), "filters": plain_filters}
    if palette := dict(png_chunks(data)).get(b"PLTE", b""):
        colours = np.frombuffer(palette, dtype=np.uint8).reshape(-1, 3).astype(np.float64)
        coded["palette"], plain["palette"] = ranks(colours.sum(axis=1)), np.sort(colours.sum(axis=1))
    return Facts(header, shape, coded, plain)


def _coded_again(data: bytes) -> bytes:
    target = io.BytesIO()
    with warnings.catch_warnings(), suppress(OSError, ValueError, SyntaxError):
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.format in ("JPEG", "MPO"):
                image.save(target, "JPEG", quality="keep")
            else:
                Image.fromarray(np.asarray(image.convert("RGB"))).save(target, "PNG")
    return target.getvalue()


def _png(data: bytes) -> tuple[str, tuple[int, ...], NDArray[np.float64]]:
    """A hash of all chunks but the picture's, width and height, and the filter of each row."""
    digest, packed = hashlib.sha256(), []
    for name, body in png_chunks(data):
        if name == b"IDAT":
            packed.append(body)
        elif name != b"PLTE":
            digest.update(name + (body[8:] if name == b"IHDR" else body))
    digest.update(packed[0][:2] if packed else b"")
    width, height = (int.from_bytes(data[at : at + 4]) for at in (16, 20))
    depth, kind, laced = data[24], data[25], data[28]
    filters: NDArray[np.float64] = np.empty(0)
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(kind, 0)
    if not laced and channels and height <= _ROWS:
        unpacker = zlib.decompressobj()
        with suppress(zlib.error):
            step = 1 + (width * depth * channels + 7) // 8
            rows = unpacker.decompress(b"".join(packed), height * step)
            filters = np.frombuffer(rows, dtype=np.uint8)[::step].astype(np.float64)
    return digest.hexdigest(), (width, height), filters


def _jpeg(data: bytes) -> tuple[str, tuple[int, ...]]:
    """A hash of all segments but those that code the picture, and height and width."""
    digest, shape = hashlib.sha256(), (0, 0)
    for marker, body in jpeg_segments(data).items():
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            shape, body = (int.from_bytes(body[1:3]), int.from_bytes(body[3:5])), body[5:]
        if marker != 0xC4:  # Huffman tables follow from the picture
            digest.update(bytes([marker]) + body)
    return digest.hexdigest(), shape


Channel = tuple[Rows, Rows | None]
"""(N, D) of the files; the same as it follows from pixels or originals, where that can be said."""


def _channels(subject: Subject, places: NDArray[np.int64], made: list[Facts], raw: list[Facts]) -> dict[str, Channel]:
    found: dict[str, Channel] = {
        "headers": (_named([each.header for each in made]), _named([each.header for each in raw])),
        "pictures' sides": (_rows([each.shape for each in made]), _rows([each.shape for each in raw])),
    }
    named = ("file sizes", "size"), ("filters of PNG rows", "filters"), ("orders of colours in palettes", "palette")
    for name, key in named:
        if all(len(each.coded.get(key, ())) for each in made):
            found[name] = _rows([each.coded[key] for each in made]), _rows([each.plain[key] for each in made])
    if subject.pairing.how in ("key", "hash"):  # else the names tell the same, plainly
        times = [
            (subject.protected.root / subject.protected.files[place].path).stat().st_mtime_ns for place in places
        ]
        found["times of files"] = np.array(times, dtype=np.float64)[:, None] - min(times), None
    return found


def _rows(values: Sequence[NDArray[np.float64] | tuple[int, ...]]) -> Rows:
    """(N, D) of values that are cut to the shortest."""
    length = min(map(len, values))
    return np.array([each[:length] for each in values], dtype=np.float64)


def _named(names: list[str]) -> Rows:
    """(N, K): which of the K different texts each one is."""
    _, codes = np.unique(names, return_inverse=True)
    return np.asarray(np.eye(codes.max() + 1)[codes])


def _tells(
    values: Rows,
    natural: Rows | None,
    people: NDArray[np.int64] | None,
    truth: Rows,
    order: Rows,
    generator: np.random.Generator,
) -> str:
    """What values (N, D) tell of the originals, and natural ones do not; "" for nothing."""
    if not values.size or (values == values[0]).all():
        return ""
    apart = distances(values)
    usual = None if natural is None else distances(natural)
    if people is not None and len(np.unique(people)) >= _FEWEST_PEOPLE:
        right = person_choices(apart, people)
        expected = 0.5 if usual is None else person_choices(usual, people)
        sure = right >= max(_CHOICES, expected + _MORE)
        if sure and surely_by_person(apart, people, generator) > _DEVIATIONS:
            return f"name the person (another file of theirs is told from a stranger's {right:.0%} of the time)"
    if values.shape[1] == 1:
        along = abs(rank_correlation(values[:, 0], order))
        expected = 0.0 if natural is None else abs(rank_correlation(natural[:, 0], order))
        if along >= max(_ORDERED, expected + _MORE) and along * (len(order) - 1) ** 0.5 > _DEVIATIONS - 1:
            return f"follow the order of the originals (rank correlation {along:.2f})"
    pairs = unlike(truth, np.ones(truth.shape, dtype=np.bool_) if people is None else people[:, None] != people)
    found, deviations = same_structure(apart, truth, pairs, generator)
    expected = 0.0 if usual is None else same_structure(usual, truth, pairs, generator, 2)[0]
    if found >= max(_STRUCTURE, expected + _MORE) and deviations > _DEVIATIONS:
        return f"are alike where the originals are (rank correlation {found:.2f})"
    return ""


def ranks_of_paths(paths: list[str]) -> Rows:
    """(N,) the places of paths in their order."""
    return np.argsort(np.argsort(np.array(paths))).astype(np.float64)
