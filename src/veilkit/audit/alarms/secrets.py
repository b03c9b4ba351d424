"""Whether a release holds what must be kept apart from it: the seed or the key that it was made with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from veilkit.audit.result import Alarm
from veilkit.configs import as_dict
from veilkit.datasets.folder import walk
from veilkit.methods import METHODS, Learns
from veilkit.pipeline.manifest import MANIFEST, SUMS

_LARGEST = 4_000_000  # bytes of a text file that are looked at
_TEXTS = (".json", ".jsonl", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".conf", ".env", ".txt", ".csv", ".md", ".log",
          ".xml", "")  # fmt: skip
_SEED = re.compile(r"(?:^|[_\-. ])(?i:seeds?|random_?state|rng)$|[a-z0-9](?:Seed|RandomState)$")
_KEY = re.compile(
    r"(?:^|[_\-. ])(?i:secrets?|keys?|passw(?:or)?d|passphrase|salt|private_?key)$|"
    r"[a-z0-9](?:Secret|Key|Password|Salt)$"
)
_PUBLIC = re.compile(r"public[_\- ]?keys?$", re.IGNORECASE)
_LINE = re.compile(r"(?P<name>[\w.-]{1,60})[\"']?[ \t]*[:=][ \t]*[\"']?(?P<value>[^\s\"',}\]]+)")
_KEY_TEXT = re.compile(r"veilkit-key-1 [0-9a-f]{64}|AGE-SECRET-KEY-1[0-9A-Z]{20}|-----BEGIN [A-Z ]*PRIVATE KEY")
_NOTHING = frozenset({"", "null", "none", "~", "false", "true"})


def check_secrets(release: Path, key: Path | None) -> Iterator[Alarm]:
    """Look for seeds and keys in the files of a release that are no pictures.

    key: the file of the one it was made with, if known. What a model was trained with is no secret of the release.
    """
    what: dict[str, None] = {}
    secret = "" if key is None else (_text(key) or "").strip().rpartition(" ")[2]
    for path, is_image in sorted(walk(release)):
        if is_image or path.rpartition("/")[2] == SUMS:
            continue
        text = _text(release / path)
        if text is None:
            continue
        place = MANIFEST if path == MANIFEST else "another file"  # whose name may be somebody's
        what |= dict.fromkeys(f"{found} in {place}" for found in _secrets(text, Path(path).suffix.lower(), path))
        if secret and secret in text:
            what[f"the key itself in {place}"] = None
    if what:
        yield Alarm(
            "secret published",
            f"the release holds {', '.join(what)}: with it anybody can make the protection again, name by name and "
            "noise by noise, and undo what rests on secrecy. A release may hold a commitment to a key, never the key",
        )


def _text(file: Path) -> str | None:
    """What a file holds; bytes that are no text do not hide the rest."""
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return None
        return file.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError:
        return None


def _secrets(text: str, suffix: str, path: str) -> Iterator[str]:
    if _KEY_TEXT.search(text):
        yield "the text of a key"
    if suffix not in _TEXTS:
        return
    texts = {".json": [text], ".jsonl": [line for line in text.splitlines() if line.strip()]}.get(suffix)
    try:
        if texts is not None:
            for values in map(json.loads, texts):
                trained = training_record(values) if path == MANIFEST else frozenset()
                yield from _named(values, (), trained)
                if path == MANIFEST and isinstance(values, dict) and values.get("reproducible_by") == "anyone":
                    yield "the statement that anyone can reproduce it"
            return
    except (ValueError, RecursionError):
        pass  # no JSON, whatever it is called: its lines are looked at
    for found in _LINE.finditer(text):
        if found["value"].lower() not in _NOTHING and _kind(found["name"]):
            yield "a line that gives a seed or key"


def _kind(name: str) -> str:
    """What an entry of this name is: a seed, or like a key; "" for neither."""
    if _SEED.search(name):
        return "a seed"
    return "an entry named like a key" if _KEY.search(name) and not _PUBLIC.search(name) else ""


def _named(values: Any, place: Place, trained: frozenset[Place], inside: str = "") -> Iterator[str]:
    """Entries of parsed JSON that are named like a secret, or lie in one that is, and have a value."""
    if isinstance(values, dict):
        for name, value in values.items():
            here = (*place, str(name))
            yield from _named(value, here, trained, _kind(str(name)) or inside)
    elif isinstance(values, list):
        for value in values:
            yield from _named(value, place, trained, inside)
    elif inside and values is not None and not isinstance(values, bool) and values != "":
        if inside == "a seed" and (place in trained or any(name.lower() in RECORDS for name in place[:-1])):
            return  # of the training of its model
        yield inside


Place = tuple[str, ...]
"""The names of an entry and of those that it lies in, outermost first."""

RECORDS = frozenset({"card", "model_card", "train", "trained", "training"})
"""Names of entries that hold a model's card, or tell how it was trained."""


def training_record(manifest: Any) -> frozenset[Place]:
    """Settings of a method that learns, which its model was trained with; nothing for any other method.

    A release is made from its key and the model. The seed of the model's training makes neither of them.
    """
    name = manifest.get("method") if isinstance(manifest, Mapping) else None
    if not isinstance(name, str) or name not in METHODS or not issubclass(METHODS[name], Learns):
        return frozenset()
    return frozenset(("config", *place) for place in _places(as_dict(METHODS[name].default)))


def _places(values: Mapping[str, Any]) -> Iterator[Place]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((name, *place) for place in _places(value))
        else:
            yield (name,)
