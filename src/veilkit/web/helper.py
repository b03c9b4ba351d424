"""A process that reads other people's pictures for the server, so that a crash or a bomb ends it and not the server.

It is asked on standard input and answers on standard output: a length, a JSON object, a length, bytes. What takes
torch is imported when it is first asked for.
"""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from veilkit.errors import DataError, RefusedImage, UsageError, VeilkitError
from veilkit.media.reading import Limits, decode
from veilkit.pipeline.engines.bounds import bound_memory
from veilkit.web.roots import Place, open_below

_LIMITS = Limits()
_QUALITY = 88
_PREVIEW_PIXELS = 2_000_000
_MEMORY = {"look": 1_200 * 2**20, "work": None}

Answer = tuple[dict[str, Any], bytes]


def main() -> None:
    """Answer until the other end is closed. The one argument: `look` for pictures alone, `work` for all."""
    bound_memory(_MEMORY[sys.argv[1]])
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    while (request := read_frame(asked)) is not None:
        try:
            facts, data = _OPERATIONS[request.pop("do")](**request)
        except VeilkitError as error:
            facts, data = {"error": str(error), "kind": type(error).__name__}, b""
        except MemoryError:
            facts, data = {"error": "there is not enough memory for this picture", "kind": "DataError"}, b""
        for part in (json.dumps(facts).encode(), data):
            answers.write(struct.pack("<I", len(part)) + part)
        answers.flush()


def read_frame(asked: BinaryIO) -> dict[str, Any] | None:
    """The next request; None at the end."""
    head = asked.read(4)
    if len(head) < 4:
        return None
    found: dict[str, Any] = json.loads(asked.read(struct.unpack("<I", head)[0]))
    return found


def shrink(root: str, parts: list[str], side: int) -> Answer:
    """A picture as a JPEG of at most `side` pixels along its longer side."""
    pixels = _pixels(root, parts)
    height, width = pixels.shape[:2]
    return {"width": width, "height": height}, _jpeg(_at_most(pixels, side / max(height, width)))


def preview(
    root: str, parts: list[str], method: str, preset: str | None, settings: Mapping[str, Any], side: int
) -> Answer:
    """What a method makes of one picture, shrunk first where it is large. Nothing is kept, and no key is used."""
    began = time.monotonic()
    pixels = _pixels(root, parts)
    height, width = pixels.shape[:2]
    pixels = _at_most(pixels, (_PREVIEW_PIXELS / (height * width)) ** 0.5)
    loaded = _loaded(method, preset, json.dumps(settings, sort_keys=True))
    from veilkit.methods import Mixes, Synthesiser

    if isinstance(loaded.method, Mixes | Synthesiser):
        raise UsageError(f"{method} makes no picture of one original alone, so there is no preview of it")
    made = loaded.protect(pixels, seed=0)
    report = made.reports[0]
    tall, wide = made.images.shape[:2]
    facts = {
        "width": wide,
        "height": tall,
        "shrunk": [wide, tall] != [width, height],
        "counts": report.details.get("counts", {}),
        "notes": list(report.notes),
        "seconds": round(time.monotonic() - began, 2),
    }
    return facts, _jpeg(_at_most(made.images, side / max(tall, wide)))


def review(release: str) -> Answer:
    """The pictures of a release to look through, doubtful ones first, with what was found in each."""
    from veilkit.pipeline.ledger import Entry
    from veilkit.pipeline.ledger_queries import known_release
    from veilkit.pipeline.manifest import listed_pictures
    from veilkit.pipeline.places import private_beside
    from veilkit.pipeline.recovery.target import finished_manifest
    from veilkit.pipeline.review.page import most_doubtful, reviewed

    folder = Path(release)
    manifest, private = finished_manifest(folder), private_beside(folder)
    listed = listed_pictures(folder, manifest)
    known = known_release(private, listed)
    if known is None:
        raise DataError(f"there is no ledger of this release in {private}: reviews need it")
    source, shown = Path(known.about.get("source", "")), known.file.with_suffix(".shown")
    found = (
        reviewed(
            Entry(row.original, row.picture, output_sha256=listed[row.picture], report=json.dumps(row.report)),
            source, folder, shown,
        )
        for row in known.rows
    )  # fmt: skip
    pictures = most_doubtful([each for each in found if each is not None])
    facts = {
        "method": manifest.method,
        "source": str(source),
        "ledger": str(known.file),
        "count": len(known.rows),
        "pictures": [
            {**asdict(each), "before": str(each.before), "after": str(each.after), "doubts": each.doubts}
            for each in pictures
        ],
    }
    return facts, b""


def warm() -> Answer:
    """Import what a preview takes, before anybody waits for it."""
    import torch

    from veilkit.methods import METHODS
    from veilkit.methods.in_memory import load_method

    _ = load_method, METHODS["faceblur"]
    torch.set_num_threads(1)
    return {}, b""


@lru_cache(maxsize=12)
def _loaded(method: str, preset: str | None, settings: str) -> Any:
    """A method, with the quick search for faces: a preview must not take as long as a run."""
    from veilkit.configs import as_dict
    from veilkit.methods import METHODS
    from veilkit.methods.in_memory import load_method

    kind = METHODS[method]
    given: dict[str, Any] = json.loads(settings)
    if "search" in as_dict(kind.default):
        given.setdefault("search", "quick")
    return load_method(method, preset=preset, **given)


def _pixels(root: str, parts: list[str]) -> NDArray[np.uint8]:
    held = open_below(Place(Path(root), tuple(parts)))
    with os.fdopen(held, "rb") as opened:
        data = opened.read(_LIMITS.file_bytes + 1)
    if len(data) > _LIMITS.file_bytes:
        raise RefusedImage("file too large")
    return decode(data, _LIMITS)


def _at_most(pixels: NDArray[np.uint8], scale: float) -> NDArray[np.uint8]:
    if scale >= 1:
        return pixels
    height, width = pixels.shape[:2]
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0))


def _jpeg(pixels: NDArray[np.uint8]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()


_OPERATIONS: dict[str, Callable[..., Answer]] = {
    "shrink": shrink, "preview": preview, "review": review, "warm": warm,
}  # fmt: skip

if __name__ == "__main__":
    main()
