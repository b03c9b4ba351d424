"""The review page: one file that shows pictures where they lie, and works without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class FoundBox:
    """A region that a run protected: left, top, right, bottom in pixels, what became of it, and whether in doubt."""

    box: tuple[int, int, int, int]
    outcome: str
    doubtful: bool


@dataclass(frozen=True, slots=True)
class ReviewPicture:
    """A picture of a run: its path below the originals, both files, its size upright, what was found and noted."""

    path: str
    before: Path
    after: Path
    width: int
    height: int
    faces: tuple[FoundBox, ...]
    notes: tuple[str, ...]

    @property
    def doubts(self) -> int:
        """How much of it somebody should look at: doubtful regions, and notes."""
        return sum(face.doubtful for face in self.faces) + len(self.notes)


def write_review(file: Path, pictures: Sequence[ReviewPicture], *, method: str, release: str, summary: str) -> None:
    """Write the page, readable by its owner alone. release: by which a browser tells its decisions from another's."""
    ordered = sorted(pictures, key=lambda picture: (-picture.doubts, os.fsencode(picture.path)))
    data = {"release": release, "pictures": [_plain(picture, file.parent) for picture in ordered]}
    style, script = (_part(f"review.{kind}") for kind in ("css", "js"))
    text = (
        Environment(autoescape=True)
        .from_string(_part("review.html"))
        .render(
            method=method,
            summary=summary,
            style=Markup(style),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            style_hash=_digest(style),
            script_hash=_digest(script),
            data=Markup(_embedded(data)),  # noqa: S704 - nothing of it can end the element
        )
    )
    draft = file.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    draft.replace(file)


def _plain(picture: ReviewPicture, folder: Path) -> dict[str, Any]:
    faces = [{"box": face.box, "outcome": face.outcome, "doubtful": face.doubtful} for face in picture.faces]
    return {
        "path": os.fsencode(picture.path).decode("utf-8", "replace"),
        "before": _address(picture.before, folder),
        "after": _address(picture.after, folder),
        "width": picture.width,
        "height": picture.height,
        "faces": faces,
        "notes": picture.notes,
        "doubts": picture.doubts,
    }


def _address(file: Path, folder: Path) -> str:
    """The file as seen from the page's folder."""
    return quote(os.fsencode(os.path.relpath(file, folder)))


def _embedded(data: object) -> str:
    """JSON that may stand in a page: no name that somebody else chose can end the element that holds it."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return (resources.files("veilkit.pipeline.review") / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """How a content security policy names an inline part."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
