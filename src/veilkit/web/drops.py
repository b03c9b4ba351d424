"""Pictures that were dropped on the page: a private folder for each drop, wiped when the server ends."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from veilkit.datasets.folder import is_image_name
from veilkit.errors import DataError, DestinationError, UsageError
from veilkit.pipeline.formats import foreign_kind
from veilkit.web.roots import check_name

_FILES, _BYTES, _DROPS = 2_000, 4 * 2**30, 50
_AT_ONCE = 8
_FREE = 2**30  # bytes that are left on the disk


class FullError(DestinationError):
    """There is no room for more dropped files."""


class Drops:
    """The drops of a server, below a private folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._writing = asyncio.Semaphore(_AT_ONCE)

    def make(self) -> str:
        """A new and empty drop, by its place."""
        if sum(1 for _ in self.folder.iterdir()) >= _DROPS:
            raise FullError(f"there are {_DROPS} drops: wipe some first")
        name = f"drop-{secrets.token_hex(8)}"
        (self.folder / name).mkdir(mode=0o700)
        return name

    def find(self, name: str) -> Path:
        """The folder of a drop."""
        if not re.fullmatch(r"drop-[0-9a-f]{16}", name) or not (self.folder / name).is_dir():
            raise DataError("there is no such drop: it may have been wiped")
        return self.folder / name

    async def take(self, drop: str, name: str, size: int | None, parts: AsyncIterator[bytes]) -> str:
        """Write a file as it comes, whole or not at all; returns its name there."""
        folder = self.find(drop)
        if not is_image_name(name) and foreign_kind(name, b"") != "a video":
            raise UsageError("only pictures and videos are taken: this name is not one of theirs")
        async with self._writing:
            held = sum(1 for _ in folder.iterdir())
            if held >= _FILES:
                raise FullError(f"full: a drop holds at most {_FILES} files. Put the others into a folder")
            room = min(_BYTES - self._used(), shutil.disk_usage(self.folder).free - _FREE)
            if room < (size or 1):
                raise FullError("full: there is no more room for dropped files. Wipe a drop, or use a folder")
            draft = folder / f".{secrets.token_hex(8)}.part"
            try:
                with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    async for part in parts:
                        room -= len(part)
                        if room < 0:
                            raise FullError("full: there is no more room for dropped files")
                        out.write(part)
                return self._named(draft, folder, name)
            finally:
                draft.unlink(missing_ok=True)

    def wipe(self, drop: str) -> None:
        """Take a drop away."""
        shutil.rmtree(self.find(drop), ignore_errors=True)

    def wipe_all(self, keep: frozenset[str] = frozenset()) -> None:
        """Take all drops away but those that are still needed."""
        for each in self.folder.iterdir():
            if each.name not in keep:
                shutil.rmtree(each, ignore_errors=True)

    def _used(self) -> int:
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    @staticmethod
    def _named(draft: Path, folder: Path, name: str) -> str:
        """Move a whole file under its own name, or a plain one where its own cannot be kept."""
        stem, suffix = os.path.splitext(name)  # noqa: PTH122
        try:
            check_name(name)
        except UsageError:
            stem, suffix = "picture", suffix.lower()
        for number in range(1, _FILES + 2):
            wanted = f"{stem}{'' if number == 1 else f' ({number})'}{suffix}"
            try:
                (folder / wanted).hardlink_to(draft)
            except FileExistsError:
                continue
            return wanted
        raise DestinationError("there are too many files of this name")
