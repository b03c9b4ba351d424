"""Names of experts, checked before anything is loaded: the built-in ones, the user's own, and files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from veilkit.errors import CheckpointError, UnknownNameError
from veilkit.lookup import unknown_name

SUFFIXES = (".onnx", ".safetensors")
BUILT_IN_NAMES = ("people", "histogram", "dlib")
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
