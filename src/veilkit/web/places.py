"""What lies in a folder, as the page shows it: nothing hidden, no links, and what each folder is."""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path
from typing import Any

from veilkit.datasets.folder import is_image_name
from veilkit.pipeline.formats import foreign_kind
from veilkit.web.roots import Roots, open_below

_MOST = 2_000  # entries that are shown
_SAMPLES, _LOOKED = 18, 200  # pictures on which methods are compared; folders that are looked through for them
_KINDS = (("manifest.json", "release"), ("audit.json", "audit"), ("compare.json", "comparison"),
          ("gallery.json", "gallery"), ("study.html", "study"))  # fmt: skip


def listing(roots: Roots, text: str) -> dict[str, Any]:
    """The folder's name, the places above it, and what is in it."""
    place = roots.place(text)
    held = open_below(place, folder=True)
    folders: list[str] = []
    pictures: list[str] = []
    others: list[str] = []
    try:
        with os.scandir(held) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.is_symlink():
                    continue
                kind = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(kind):
                    folders.append(entry.name)
                elif stat.S_ISREG(kind):
                    (pictures if _shown(entry.name) else others).append(entry.name)
        listed = {
            "folders": [{"name": name, "place": f"{text}/{name}", "kind": _kind(held, name)}
                        for name in _first(folders)],
            "pictures": [{"name": name, "place": f"{text}/{name}", "video": not is_image_name(name)}
                         for name in _first(pictures)],
            "files": [{"name": name, "place": f"{text}/{name}"} for name in _first(others)],
            "samples": _samples(held, text),
        }  # fmt: skip
    finally:
        os.close(held)
    head = text.partition("/")[0]
    above = [{"name": place.root.name or str(place.root), "place": head}]
    above += [{"name": part, "place": "/".join([head, *place.parts[: number + 1]])}
              for number, part in enumerate(place.parts)]  # fmt: skip
    return {
        "place": text,
        "name": place.path.name or str(place.path),
        "above": above,
        "kind": _kind_of(place.path),
        "counts": {"folders": len(folders), "pictures": len(pictures), "files": len(others)},
        **listed,
    }


def _samples(held: int, text: str) -> list[dict[str, str]]:
    """Some pictures of the folder and of those below it, the first of each folder first."""
    by_folder: list[list[dict[str, str]]] = []
    for looked, (below, folders, files, _) in enumerate(os.fwalk(".", dir_fd=held, follow_symlinks=False)):
        folders[:] = [name for name in _first(folders) if not name.startswith(".") and not name.endswith(".private")]
        prefix = "/".join([text, *Path(below).parts])
        shown = [name for name in _first(files) if not name.startswith(".") and is_image_name(name)]
        by_folder.append([{"name": name, "place": f"{prefix}/{name}"} for name in shown[:_SAMPLES]])
        if looked + 1 == _LOOKED:
            break
    turns = (each for turn in itertools.zip_longest(*by_folder) for each in turn if each is not None)
    return list(itertools.islice(turns, _SAMPLES))


def _first(names: list[str]) -> list[str]:
    return sorted(names, key=lambda name: (name.lower(), name))[:_MOST]


def _shown(name: str) -> bool:
    return is_image_name(name) or foreign_kind(name, b"") == "a video"


def _kind(above: int, name: str) -> str:
    if name.endswith(".private"):
        return "private"
    for file, kind in _KINDS:
        try:
            found = os.stat(f"{name}/{file}", dir_fd=above, follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            return kind
    return "folder"


def _kind_of(path: Path) -> str:
    if path.name.endswith(".private"):
        return "private"
    return next((kind for file, kind in _KINDS if (path / file).is_file()), "folder")
