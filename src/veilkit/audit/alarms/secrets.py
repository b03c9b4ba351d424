"""Whether a release holds what must be kept apart from it: the seed or the key that it was made with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from veilkit.audit.result import Alarm
from veilkit.datasets.folder import walk
from veilkit.pipeline.manifest import MANIFEST, SUMS

_LARGEST = 4_000_000  # bytes of a text file that are looked at
_TEXTS = (".json", ".jsonl", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".txt", ".csv", ".md", ".log", ".xml", "")
_SECRET = re.compile(
    r"(?:^|[_\-. ])(?:seeds?|secrets?|keys?|passw(?:or)?d|passphrase|salt|random_?state|private_?key|rng)$",
    re.IGNORECASE,
)
_LINE = re.compile(r"^\s*[\"']?(?P<name>[\w. -]{0,40}?)[\"']?\s*[:=]\s*[\"']?(?P<value>[^\s\"',}]+)", re.MULTILINE)
_KEY_TEXT = re.compile(r"veilkit-key-1 [0-9a-f]{64}|AGE-SECRET-KEY-1[0-9A-Z]{20}|-----BEGIN [A-Z ]*PRIVATE KEY")
_NOTHING = frozenset({"", "null", "none", "~", "false"})


def check_secrets(release: Path, key: Path | None) -> tuple[Alarm, ...]:
    """Look for seeds and keys in the text files of a release. key: the file of the one it was made with, if known."""
    what: dict[str, None] = {}
    secret = "" if key is None else (_text(key) or "").strip().rpartition(" ")[2]
    for path, is_image in sorted(walk(release)):
        suffix = Path(path).suffix.lower()
        if is_image or suffix not in _TEXTS or path.rpartition("/")[2] == SUMS:
            continue
        text = _text(release / path)
        if text is None:
            continue
        place = MANIFEST if path == MANIFEST else "another file"  # whose name may be somebody's
        what |= dict.fromkeys(f"{found} in {place}" for found in _secrets(text, suffix))
        if secret and secret in text:
            what[f"the key itself in {place}"] = None
    if not what:
        return ()
    return (
        Alarm(
            "secret published",
            f"the release holds {', '.join(what)}: with it anybody can make the protection again, name by name and "
            "noise by noise, and undo what rests on secrecy. A release may hold a commitment to a key, never the key",
        ),
    )


def _text(file: Path) -> str | None:
    try:
        if file.stat().st_size > _LARGEST:
            return None
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _secrets(text: str, suffix: str) -> Iterator[str]:
    if _KEY_TEXT.search(text):
        yield "the text of a key"
    if suffix == ".json":
        with suppress(ValueError, RecursionError):
            yield from _named(json.loads(text))
        return
    for found in _LINE.finditer(text):
        if _SECRET.search(found["name"]) and found["value"].lower() not in _NOTHING:
            yield "a line that gives a seed or key"


def _named(values: Any) -> Iterator[str]:
    """Entries of parsed JSON that are named like a secret and have a value."""
    if isinstance(values, dict):
        for name, value in values.items():
            if isinstance(value, dict | list):
                yield from _named(value)
            elif _SECRET.search(str(name)) and value is not None and value is not False and value != "":
                yield "a seed" if "seed" in str(name).lower() else "an entry named like a key"
    elif isinstance(values, list):
        for value in values:
            yield from _named(value)
