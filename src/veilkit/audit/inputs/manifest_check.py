"""Whether a release is what its manifest says: the files that it lists, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Unmeasured
from veilkit.datasets.folder import load_folder
from veilkit.errors import DataError
from veilkit.media.reading import sha256
from veilkit.pipeline.listing import read_listing
from veilkit.pipeline.manifest import SUMS
from veilkit.text import counted


def check_manifest(release: Path, subject: Subject) -> tuple[Unmeasured, ...]:
    """What the manifest and SHA256SUMS do not agree in with the files; nothing where they do or there is none.

    The pictures are measured as they are found. That the method which the manifest names made them is then not known.
    """
    manifest = subject.manifest
    if manifest is None:
        return ()
    wrong = []
    sums = release / SUMS
    try:
        if not sums.is_file():
            wrong.append(f"there is no {SUMS}")
        elif sha256(sums.read_bytes()) != manifest.sums_sha256:
            wrong.append(f"{SUMS} is not the one that it was made with")
        else:
            wrong += _differences(release, subject, read_listing(release, manifest.names))
    except DataError:
        wrong.append(f"{SUMS} is not one that a release can have")
    except OSError as error:
        wrong.append(f"{SUMS} cannot be read ({error.strerror})")
    if not wrong:
        return ()
    why = (
        f"the manifest does not match the files: {', '.join(wrong)}. The pictures that are there are measured as "
        f"they are; that they were made by the method {manifest.method!r} with these settings is only claimed"
    )
    return (Unmeasured("whether the release is what its manifest says", why),)


def _differences(release: Path, subject: Subject, listed: Mapping[str, str]) -> list[str]:
    present = {record.path for record in load_folder(release, "none").records}
    pictures = {path for path in listed if path in present or _is_picture(path)}
    known = {file.path: file.file_sha256 for file in subject.protected.files}
    counts = (
        (len(pictures - present), "listed picture is missing", "listed pictures are missing"),
        (len(present - listed.keys()), "picture is not listed", "pictures are not listed"),
        (
            sum(listed.get(path, digest) != digest for path, digest in known.items()),
            "picture has other content",
            "pictures have other content",
        ),
    )
    return [counted(*each) for each in counts if each[0]]


def _is_picture(path: str) -> bool:
    return path.lower().endswith((".png", ".jpg", ".jpeg"))
