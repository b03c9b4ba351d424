"""The names of pictures in a release, and relative paths that others have written down."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias

from veilkit.errors import DataError
from veilkit.media.video import VIDEO_SUFFIX

if TYPE_CHECKING:
    from veilkit.key import Key

SCRATCH = ".veilkit"  # where files of a release are written before they get their names
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes, on all usual file systems


def path_fault(path: str) -> str | None:
    """Why `path` may not be joined to a folder; None where it is relative, in its simplest form, and stays below.

    >>> [path_fault(path) is None for path in ("a/b.png", "../x.png", "/x.png", "a//b.png", "")]
    [True, False, False, False, False]
    """
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        data = b""
    parts = data.split(b"/")
    if any(part in (b"", b".", b"..") or len(part) > _LONGEST_NAME for part in parts) or b"\0" in data:
        return "leads out of the folder, or is none"
    if len(data) > _LONGEST_PATH:
        return f"is too long: {len(data)} bytes, at most {_LONGEST_PATH}"
    return None


Names: TypeAlias = Literal["pseudonyms", "folders", "kept"]
RESERVED = frozenset({SCRATCH, MANIFEST, SUMS})
_LONGEST = 255  # bytes in a file name, on all usual file systems
PAGES = ".tif"
"""Suffix of a picture of several pages in a release."""
_PICTURES = (".png", ".jpg", PAGES, VIDEO_SUFFIX)
_LAYOUT = ("query", "bounding_box_test", "bounding_box_train", "train", "val", "test", "gallery")
_PSEUDONYM = re.compile(r"[a-z2-7]{26}(/[a-z2-7]{26})?\.(png|jpg|tif|mp4)")
_IN_FOLDERS = re.compile(rf"(({'|'.join(_LAYOUT)}|[a-z2-7]{{26}})/)*[a-z2-7]{{26}}\.(png|jpg|tif|mp4)")


def name_fault(name: str, names: Names) -> str | None:
    """Why `name`, which anybody may have written, cannot be that of a picture in a release; None where it can.

    names: "pseudonyms" for the one form that those have, in a person's folder where the pictures are synthetic;
    "folders" for the same in folders that are pseudonyms themselves, or words of a known layout.

    >>> [name_fault(name, "kept") is None for name in ("a/b.png", "../b.png", "manifest.json", ".veilkit/1.png")]
    [True, False, False, False]
    """
    if fault := path_fault(name):
        return fault
    if not name.endswith(_PICTURES) or name.partition("/")[0] in RESERVED:
        return "is not the name of a picture in a release"
    if names != "kept" and not (_PSEUDONYM if names == "pseudonyms" else _IN_FOLDERS).fullmatch(name):
        return "is not a pseudonym"
    return None


def pseudonyms(key: Key, suffix: Callable[[str], str]) -> Callable[[str], str]:
    """Each picture's keyed pseudonym."""
    return lambda path: key.pseudonym(path) + suffix(path)


def folder_pseudonyms(key: Key, suffix: Callable[[str], str]) -> Callable[[str], str]:
    """Each picture's keyed pseudonym, in folders as the picture's own, each under a pseudonym of its name.

    One name is one pseudonym wherever it stands: a person's folders in query and gallery keep belonging together.
    Names of a layout, such as query and bounding_box_test, are kept.
    """

    def name(path: str) -> str:
        *folders, _ = path.split("/")
        hidden = (each if each in _LAYOUT else key.pseudonym(f"folder {each}") for each in folders)
        return "/".join((*hidden, key.pseudonym(path) + suffix(path)))

    return name


def kept_names(paths: Iterable[str], suffix: Callable[[str], str]) -> Callable[[str], str]:
    """Each picture's own path with the suffix that it gets in the release.

    Where two could get one name (a.jpg and a.bmp), both keep their old suffix too (a.jpg.png and a.bmp.png), and so
    does a picture whose name would be that of a folder (a.jpg beside a.png/).
    """
    seen: set[bytes] = set()
    twice: set[bytes] = set()
    folders: set[bytes] = set()
    for path in paths:
        folders.update(_new_folders(os.fsencode(path), folders))
        # The long name counts as well: a.jpg must not become a.jpg.png beside a picture of that name.
        for possible in {os.fsencode(_with_suffix(path, suffix(path))), os.fsencode(path + suffix(path))}:
            (twice if possible in seen else seen).add(possible)

    def name(path: str) -> str:
        short, long = _with_suffix(path, suffix(path)), path + suffix(path)
        if os.fsencode(short) not in twice and os.fsencode(short) not in folders:
            return _checked(short)
        if os.fsencode(long) in folders:
            raise DataError(
                "a picture's possible names are both taken, with its old suffix by a folder: "
                "rename the picture or the folder, or use pseudonyms"
            )
        return _checked(long)

    return name


def _new_folders(path: bytes, known: set[bytes]) -> Iterator[bytes]:
    """The folders that hold `path`, from the innermost outwards, up to one that is known."""
    while (path := path.rpartition(b"/")[0]) and path not in known:
        yield path


def _checked(name: str) -> str:
    first, *rest = name.split("/")
    if rest and first in RESERVED:
        raise DataError(
            f"with kept names no folder of the source may be called {first}: rename it, or use pseudonyms"
        )
    if len(os.fsencode(name.rpartition("/")[2])) > _LONGEST:
        raise DataError("a picture's kept name is too long with its new suffix: shorten it, or use pseudonyms")
    return name


def _with_suffix(path: str, suffix: str) -> str:
    return os.path.splitext(path)[0] + suffix  # noqa: PTH122 - paths may hold bytes that are not text
