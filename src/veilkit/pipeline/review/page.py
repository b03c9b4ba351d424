"""The review page: one file that shows pictures where they lie, and works without a network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from veilkit.display import counted
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.places import Places
from veilkit.pipeline.reports import read_report

_MOST = 5_000  # pictures on a page


@dataclass(frozen=True, slots=True)
class FoundBox:
    """A region that a run found or was given: left, top, right, bottom in pixels, and what became of it.

    doubtful: it may be a face. asked: what somebody asked for there before, if anything.
    """

    box: tuple[int, int, int, int]
    outcome: str
    doubtful: bool = False
    asked: str = ""


@dataclass(frozen=True, slots=True)
class ReviewPicture:
    """A picture of a run: its path below the originals, both files, its size upright, what was found and noted.

    made: what tells it from the same picture made anew, for which earlier decisions no longer count.
    """

    path: str
    made: str
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


def write_review(file: Path, pictures: Sequence[ReviewPicture], *, method: str, release: str, summary: str) -> Path:
    """Write the page, readable by its owner alone. release: by which a browser tells its decisions from another's."""
    ordered = most_doubtful(list(pictures))
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
    return file


def review_run(file: Path, ledger: Ledger, places: Places, shown: Path, method: str) -> Path:
    """Write the page of a run from its ledger; doubtful pictures first, and of very many only the first."""
    chosen: list[ReviewPicture] = []
    faces = 0
    for entry in ledger.entries("done"):
        picture = reviewed(entry, places.source, places.destination, shown)
        if picture is not None:
            faces += len(picture.faces)
            chosen.append(picture)
        if len(chosen) > 2 * _MOST:
            chosen = most_doubtful(chosen)
    return write_review(
        file,
        most_doubtful(chosen),
        method=method,
        release=ledger.file.stem,
        summary=f"{counted(ledger.count('done'), 'picture', 'pictures')}, {counted(faces, 'box', 'boxes')}. "
        "What no detector saw has no box: look for faces and people without one."
        + f" The first {_MOST} pictures."
        * (len(chosen) > _MOST),
    )


def reviewed(entry: Entry, originals: Path, release: Path, shown: Path) -> ReviewPicture | None:
    """A picture of a ledger as the page shows it; None where its method reported no faces."""
    report = read_report(entry.report)
    if "faces" not in report or "size" not in report:
        return None
    before, after = shown / f"{entry.output}.before.jpg", shown / f"{entry.output}.after.jpg"
    seen = [face for face in report["faces"] if not face.get("frame")]
    notes = list(report.get("told", ()))
    if report.get("frames", 1) > 1:
        notes.append(f"{report['frames']} frames or pages, of which the first is shown: open the file itself")
    return ReviewPicture(
        entry.source,
        (entry.output_sha256 or "")[:16],
        before if before.is_file() else originals / entry.source,
        after if after.is_file() else release / entry.output,
        report["size"][0],
        report["size"][1],
        tuple(
            FoundBox(tuple(face["box"]), face["outcome"], bool(face.get("doubtful")), face.get("asked", ""))
            for face in seen
        ),
        tuple(notes),
    )


def most_doubtful(pictures: list[ReviewPicture]) -> list[ReviewPicture]:
    """The pictures in the order in which somebody should look; of very many only the first."""
    return sorted(pictures, key=lambda picture: (-picture.doubts, os.fsencode(picture.path)))[:_MOST]


def _plain(picture: ReviewPicture, folder: Path) -> dict[str, Any]:
    faces = [asdict(face) for face in picture.faces]
    return {
        "path": os.fsencode(picture.path).decode("utf-8", "replace"),
        "made": picture.made,
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
