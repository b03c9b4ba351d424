"""Whether a release is what its manifest says: the files that it lists, and no others."""

from __future__ import annotations

from pathlib import Path

from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Unmeasured
from veilkit.datasets.folder import load_folder
from veilkit.errors import DataError
from veilkit.media.reading import sha256
from veilkit.pipeline.manifest import SUMS, read_sums
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
    present = {record.path for record in load_folder(release, "none").records}
    listed = _listed(sums, manifest.sums_sha256)
    if isinstance(listed, str):
        wrong.append(listed)
    else:
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
        wrong += [counted(*each) for each in counts if each[0]]
    if not wrong:
        return ()
    why = (
        f"the manifest does not match the files: {', '.join(wrong)}. The pictures that are there are measured as "
        f"they are; that they were made by the method {manifest.method!r} with these settings is only claimed"
    )
    return (Unmeasured("whether the release is what its manifest says", why),)


def _listed(sums: Path, expected: str) -> dict[str, str] | str:
    """The hashes of a release's files by their paths, or why they are not known."""
    if not sums.is_file():
        return f"there is no {SUMS}"
    try:
        if sha256(sums.read_bytes()) != expected:
            return f"{SUMS} is not the one that it was made with"
        return dict(read_sums(sums))
    except (DataError, ValueError, KeyError):
        return f"{SUMS} has lines that are not in the format of sha256sum"
    except OSError as error:
        return f"{SUMS} cannot be read ({error.strerror})"


def _is_picture(path: str) -> bool:
    return path.lower().endswith((".png", ".jpg", ".jpeg"))
