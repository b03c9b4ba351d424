"""The folders that the page may touch. Whatever lies outside of them, or is reached through a link, does not exist.

A place is written `0/photos/2024`: the number of the folder that the server was given, then a path below it. Pictures
that were dropped on the page lie in a folder of their own, `drop-<id>`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import DataError, UsageError

_NEW_NAME = re.compile(r"[^\x00-\x1f\x7f/\\<>:\"|?*]{1,120}")
_LONGEST = 4_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is: the root's path, and the parts of the path below it."""

    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The path on this machine."""
        return self.root.joinpath(*self.parts)


def open_below(place: Place, *, folder: bool = False) -> int:
    """A descriptor of a file or folder; no part of the way below the root may be a link."""
    held = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(place.parts):
            last = number == len(place.parts) - 1
            deeper = os.open(part, _FOLDER if folder or not last else _FILE, dir_fd=held)
            os.close(held)
            held = deeper
        kind = os.fstat(held).st_mode
        if not (stat.S_ISDIR(kind) if folder else stat.S_ISREG(kind)):
            raise OSError("neither a folder nor a regular file")
    except (OSError, ValueError):
        os.close(held)
        raise DataError(
            f"there is no such {'folder' if folder else 'file'} below the folders that the server was given, or a "
            "link is on the way to it, which is not followed"
        ) from None
    return held


class Roots:
    """The folders of a server. drops: the folder of dropped pictures, each drop with a folder of its own."""

    def __init__(self, folders: Sequence[Path], drops: Path) -> None:
        self.folders: list[Path] = []
        for each in folders:
            if not each.is_dir():
                raise UsageError(f"expected a folder that the page may use, but {each} is not one")
            if (real := each.resolve()) not in self.folders:
                self.folders.append(real)
        self.drops = drops.resolve()

    def place(self, text: str) -> Place:
        """The place that a text names; it need not be there."""
        if not isinstance(text, str) or len(text) > _LONGEST or "\0" in text:
            raise UsageError("a place is written as 0/folder/name")
        head, *parts = text.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise UsageError("a place is written as 0/folder/name, without empty parts or dots")
        if re.fullmatch(r"drop-[0-9a-f]{16}", head):
            return Place(self.drops / head, tuple(parts))
        if not re.fullmatch(r"[0-9]{1,4}", head) or int(head) >= len(self.folders):
            raise UsageError(
                "there is no such folder: a place begins with the number of one that the server was given"
            )
        return Place(self.folders[int(head)], tuple(parts))

    def text(self, path: Path) -> str | None:
        """The place of a path as text; None where it is below none of the folders."""
        for number, root in enumerate(self.folders):
            if path == root or root in path.parents:
                return "/".join([str(number), *path.relative_to(root).parts])
        if self.drops in path.parents:
            return path.relative_to(self.drops).as_posix()
        return None

    def existing(self, text: str, *, folder: bool | None = None) -> Path:
        """The path of what is there; folder: whether it must be one, or a file (False)."""
        place = self.place(text)
        for wanted in (True, False) if folder is None else (folder,):
            try:
                os.close(open_below(place, folder=wanted))
            except DataError:
                if not wanted or folder is not None:
                    raise
            else:
                break
        return place.path

    def new(self, text: str) -> Path:
        """The path of what may be made, or is there already; the folder that it is in must be there."""
        place = self.place(text)
        if not place.parts or place.root.parent == self.drops:
            raise UsageError("choose a name below one of the folders that the server was given")
        above = Place(place.root, place.parts[:-1])
        held = open_below(above, folder=True)
        try:
            kind = os.stat(place.parts[-1], dir_fd=held, follow_symlinks=False).st_mode
            if stat.S_ISLNK(kind):
                raise UsageError("this name is a link: choose another")
        except FileNotFoundError:
            check_name(place.parts[-1])
        finally:
            os.close(held)
        return place.path


def check_name(name: str) -> str:
    """The name of a new file or folder; raises for what a shell, a browser or another system could mistake."""
    if not _NEW_NAME.fullmatch(name) or name[0] in ".-~ " or name[-1] in ". ":
        raise UsageError(
            'a new name has at most 120 characters, none of / \\ < > : " | ? *, and begins with none of . - ~'
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UsageError("a new name is text that can be written as UTF-8") from None
    return name


def refuse_links(folder: Path) -> None:
    """Raise where a link lies below a folder: a command would follow it out of the folders of the server."""

    def stop(error: OSError) -> None:
        raise DataError(f"a folder below {folder.name} cannot be read: {error.strerror}")

    for _ in _links(folder, stop):
        raise DataError(
            f"{folder.name} holds links, which the page does not follow since they may lead anywhere: put the files "
            "themselves there, or use the command"
        )


def _links(folder: Path, stop: Callable[[OSError], None]) -> Iterator[str]:
    for above, folders, files in os.walk(folder, onerror=stop):
        for name in (*folders, *files):
            path = os.path.join(above, name)  # noqa: PTH118 - names may hold bytes that are not text
            if os.path.islink(path):  # noqa: PTH114
                yield path
