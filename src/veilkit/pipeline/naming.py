"""The names of pictures in a release."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from veilkit.pipeline.key import Key

Names: TypeAlias = Literal["pseudonyms", "kept"]


def pseudonyms(key: Key, suffix: str) -> Callable[[str], str]:
    """Each picture's keyed pseudonym."""
    return lambda path: key.pseudonym(path) + suffix


def kept_names(paths: Iterable[str], suffix: str) -> Callable[[str], str]:
    """Each picture's own path with the release's suffix.

    Where two would get one name (a.jpg and a.bmp), both keep their old suffix too (a.jpg.png and a.bmp.png).
    """
    seen: set[bytes] = set()
    twice: set[bytes] = set()
    for path in paths:
        short = os.fsencode(_with_suffix(path, suffix))
        (twice if short in seen else seen).add(short)

    def name(path: str) -> str:
        short = _with_suffix(path, suffix)
        return path + suffix if os.fsencode(short) in twice else short

    return name


def _with_suffix(path: str, suffix: str) -> str:
    return os.path.splitext(path)[0] + suffix  # noqa: PTH122 - paths may hold bytes that are not text
