"""Names of experts, checked before anything is loaded: the built-in ones, the user's own, and files of weights."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from veilkit.errors import CheckpointError, UnknownNameError
from veilkit.lookup import unknown_name

SUFFIXES = (".onnx", ".safetensors")
BUILT_IN_NAMES = ("people", "outfits", "histogram", "stripes", "dlib", "retail-0277", "osnet-0.25")
PEOPLE_EXPERTS = ("retail-0277", "osnet-0.25", "people", "outfits")  # that were learned; the strongest first
FACE_EXPERTS = ("mobilefacenet@arcface", "dlib@dlib")
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
VIEW_SIGN = "@"


def data_home() -> Path:
    """The user's folder: $VEILKIT_HOME, or veilkit below $XDG_DATA_HOME, or ~/.local/share/veilkit."""
    if own := os.environ.get("VEILKIT_HOME"):
        return Path(own)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "veilkit"


def added_names(root: Path | None = None) -> tuple[str, ...]:
    """The names of the user's own experts, sorted, whether or not their folders are in order."""
    root = data_home() / "experts" if root is None else root
    if not root.is_dir():
        return ()
    return tuple(sorted(each.name for each in root.iterdir() if each.is_dir() and NAME.fullmatch(each.name)))


def expert_names() -> tuple[str, ...]:
    """The built-in names, then the user's."""
    return (*BUILT_IN_NAMES, *(name for name in added_names() if name not in BUILT_IN_NAMES))


def is_file_name(name: str | Path) -> bool:
    """Whether an expert is meant by the path of its file."""
    return isinstance(name, Path) or name.endswith(SUFFIXES) or "/" in name


def unknown_expert(name: str) -> UnknownNameError:
    """What answers a name that no expert has."""
    known = dict.fromkeys(expert_names())
    return UnknownNameError(f"{unknown_name('expert', name, known)}, or the path of a .safetensors file")


def check_expert_name(given: Any) -> None:
    """Raise for a name that no expert has, or a file that is not there; anything else than text is an expert itself.

    A name with a view, such as dlib@dlib, is checked when it is loaded.
    """
    if not isinstance(given, str | Path):
        return
    if is_file_name(given):
        if not Path(given).is_file():
            raise CheckpointError(f"{given}: no such model file")
    elif isinstance(given, str) and VIEW_SIGN not in given and given not in expert_names():
        raise unknown_expert(given)


VARIABLE, DATA = "VEILKIT_WEIGHTS", "VEILKIT_DATA"


def file_sha256(path: Path) -> str:
    """64 hexadecimal digits; the file is never held in memory as a whole."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path}: the model file cannot be read: {error.strerror}") from None


@contextmanager
def packaged_weights(file: str, expert: str) -> Iterator[tuple[Path, str]]:
    """The file of weights that comes with veilkit for an expert, and the text of its model card."""
    folder = resources.files("veilkit.experts") / "weights"
    weights, card = folder / f"{file}.safetensors", folder / f"{file}.md"
    if not weights.is_file():
        raise CheckpointError(f"this installation lacks the weights of the expert {expert!r}; install veilkit again")
    with resources.as_file(weights) as path:
        yield path, card.read_text(encoding="utf-8") if card.is_file() else ""


def packaged_file(package: str, name: str) -> Path | None:
    """A file of an installed package, found without importing it; None where either is absent."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path for path in paths if path.is_file()), None)


def weights_folder() -> Path | None:
    """$VEILKIT_WEIGHTS, or the folder `weights` beside $VEILKIT_DATA; None where neither is set."""
    if own := os.environ.get(VARIABLE):
        return Path(own)
    data = os.environ.get(DATA)
    return Path(data).resolve().parent / "weights" if data else None


def weights_file(name: str) -> Path:
    """The file `name` in that folder."""
    folder = weights_folder()
    if folder is None or not (folder / name).is_file():
        where = f"it is not in {folder}" if folder else f"{VARIABLE} is not set"
        raise CheckpointError(f"this judge needs {name}, but {where}; point {VARIABLE} at the folder that holds it")
    return folder / name
