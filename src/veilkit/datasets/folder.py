"""Any folder of pictures, nested as it likes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from veilkit.datasets.labels import labeller
from veilkit.errors import DataError
from veilkit.types import Record, Split

IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".avif", ".avifs"}
    | {".heic", ".heif", ".hif", ".heics", ".heifs", ".dcm", ".dicom"}
)


class Kind(Enum):
    """What lies below a folder."""

    picture = "a file named like a picture"
    other = "any other file"
    linked_folder = "a link to a folder"
    too_deep = "a folder whose path is longer than the system can open"


def is_image_name(name: str) -> bool:
    """Whether a file name ends like a picture's."""
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES  # noqa: PTH122 - Path() rejects hostile names


def check_folder(root: Path) -> None:
    """Raise unless `root` is a folder."""
    if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises where a folder above may not be entered
        what = "a file" if os.path.exists(root) else "not there, or may not be entered"  # noqa: PTH110
        raise DataError(f"expected a folder of pictures, but {root} is {what}")


def walk(root: Path) -> Iterator[tuple[str, bool]]:
    """Every file below `root`: its relative path with "/" between parts, and whether its name is a picture's.

    Links to folders are not followed (they may form loops).
    """
    for path, kind in survey(root):
        if kind in (Kind.picture, Kind.other):
            yield path, kind is Kind.picture


def survey(root: Path) -> Iterator[tuple[str, Kind]]:
    """Everything below `root` that is not an ordinary folder, by its relative path, and what it is."""
    check_folder(root)
    waiting = [(str(root), "")]  # not by recursion: a tree may be deeper than Python's stack
    while waiting:
        folder, prefix = waiting.pop()
        try:
            entries = os.scandir(folder)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                yield prefix.removesuffix("/"), Kind.too_deep
                continue
            raise DataError(
                f"a folder below {root} cannot be read ({error.strerror}); find {root} -type d ! -readable names it"
            ) from None
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{prefix}{entry.name}/"))
                elif os.path.isdir(entry.path):  # noqa: PTH112 - entry.is_dir() raises on a link to itself
                    yield prefix + entry.name, Kind.linked_folder
                else:
                    yield prefix + entry.name, Kind.picture if is_image_name(entry.name) else Kind.other


def load_folder(root: Path, labels: str = "auto", name: str = "all") -> Split:
    """All pictures below `root` in the order of their paths, labelled as `labels` says (see `labels.labeller`)."""
    label = labeller(labels, root)
    paths = sorted((path for path, is_image in walk(root) if is_image), key=os.fsencode)
    if not paths:
        raise DataError(f"no pictures ({', '.join(sorted(IMAGE_SUFFIXES))}) below {root}")
    return Split(name, root, tuple(Record(path, *label(path)) for path in paths))
