"""What is to be read: a folder, one file, the files of a pattern, or a list of files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilkit.datasets.folder import Kind, check_folder, is_image_name, survey
from veilkit.errors import DataError, UsageError


@dataclass(frozen=True, slots=True)
class Source:
    """root: a folder. files: paths below it, if not all that it holds is meant."""

    root: Path
    files: tuple[str, ...] | None = None

    def survey(self) -> Iterator[tuple[str, Kind]]:
        """Everything that is meant: its path below the root, and what it is."""
        if self.files is None:
            yield from survey(self.root)
            return
        for path in self.files:
            if os.path.isdir(self.root / path):  # noqa: PTH112 - raises nothing
                yield path, Kind.linked_folder  # an ordinary one was replaced by what it holds
            else:
                yield path, Kind.picture if is_image_name(path) else Kind.other

    @classmethod
    def of(cls, named: str | Path | Sequence[str | Path]) -> Source:
        """The source that somebody named: a path, a pattern such as 'photos/**/*.jpg', or a list of paths."""
        if not isinstance(named, str | Path):
            return cls._listed([os.fspath(each) for each in named], None)
        text = os.fspath(named)
        if os.path.isdir(text):  # noqa: PTH112 - Path.is_dir raises where a folder above may not be entered
            return cls(Path(text))
        if os.path.isfile(text):  # noqa: PTH113
            return cls(Path(text).parent, (Path(text).name,))
        if not glob.has_magic(text):
            check_folder(Path(text))  # says what is there
        found = sorted(glob.glob(text, recursive=True), key=os.fsencode)  # noqa: PTH207 - keeps odd bytes
        if not found:
            raise DataError(f"no file fits the pattern {text}")
        # The same root however many files fit, so that files that come later belong to the same release.
        parts = Path(text).parts
        magic = next(place for place, part in enumerate(parts) if glob.has_magic(part))
        return cls._listed(found, Path(*parts[:magic]))

    @classmethod
    def _listed(cls, paths: Sequence[str], root: Path | None) -> Source:
        if not paths:
            raise UsageError("expected paths of pictures, one a line, but the list is empty")
        absolute = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - Path.resolve would follow links
        if missing := [path for path in absolute if not os.path.lexists(path)]:
            raise DataError(f"{len(missing)} of {len(paths)} listed files are not there, the first is {missing[0]}")
        top = Path(os.path.commonpath([Path(path).parent for path in absolute])) if root is None else root.absolute()
        files: dict[str, None] = {}
        for path in absolute:
            below = os.path.relpath(path, top)
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                prefix = "" if below == "." else f"{below}/"
                files.update((prefix + each, None) for each, _ in survey(Path(path)))
            else:
                files[below] = None
        return cls(top, tuple(files))
