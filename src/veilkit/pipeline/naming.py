"""The names of pictures in a release."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

from veilkit.errors import DataError
from veilkit.key import Key
from veilkit.pipeline.manifest import MANIFEST, SUMS
from veilkit.pipeline.paths import SCRATCH, path_fault

Names: TypeAlias = Literal["pseudonyms", "kept"]
RESERVED = frozenset({SCRATCH, MANIFEST, SUMS})
_LONGEST = 255  # bytes in a file name, on all usual file systems
_PICTURES = (".png", ".jpg")
_PSEUDONYM = re.compile(r"[a-z2-7]{26}(/[a-z2-7]{26})?\.(png|jpg)")


def name_fault(name: str, names: Names) -> str | None:
    """Why `name`, which anybody may have written, cannot be that of a picture in a release; None where it can.

    names: "pseudonyms" for the one form that those have, in a person's folder where the pictures are synthetic.

    >>> [name_fault(name, "kept") is None for name in ("a/b.png", "../b.png", "manifest.json", ".veilkit/1.png")]
    [True, False, False, False]
    """
    if fault := path_fault(name):
        return fault
    if not name.endswith(_PICTURES) or name.partition("/")[0] in RESERVED:
        return "is not the name of a picture in a release"
    if names == "pseudonyms" and not _PSEUDONYM.fullmatch(name):
        return "is not a pseudonym"
    return None


def pseudonyms(key: Key, suffix: str) -> Callable[[str], str]:
    """Each picture's keyed pseudonym."""
    return lambda path: key.pseudonym(path) + suffix


def kept_names(paths: Iterable[str], suffix: str) -> Callable[[str], str]:
    """Each picture's own path with the release's suffix.

    Where two could get one name (a.jpg and a.bmp), both keep their old suffix too (a.jpg.png and a.bmp.png), and so
    does a picture whose name would be that of a folder (a.jpg beside a.png/).
    """
    seen: set[bytes] = set()
    twice: set[bytes] = set()
    folders: set[bytes] = set()
    for path in paths:
        folders.update(_new_folders(os.fsencode(path), folders))
        # The long name counts as well: a.jpg must not become a.jpg.png beside a picture of that name.
        for possible in {os.fsencode(_with_suffix(path, suffix)), os.fsencode(path + suffix)}:
            (twice if possible in seen else seen).add(possible)

    def name(path: str) -> str:
        short, long = _with_suffix(path, suffix), path + suffix
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
